//! The 22 queries of TPC-H give PostgreSQL's rows, nearly all of them from columns; and transactions go on beside questions.

use analytics::DataFusion;
use bench::{EntentePlace, HtapOptions, TpchOptions, htap, tpch, tpch_table};
use node::{StoreChoice, StoreKind};
use std::sync::Arc;
use std::time::Duration;

/// All queries here and in PostgreSQL, whose rows they must give, most of them from columns.
fn all_of_tpc_h(place: EntentePlace) {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let options = TpchOptions {
        scale: 0.01,
        rounds: 1,
        systems: names(&["entente", "postgres"]),
        queries: names(&TpchOptions::QUERIES),
        seconds_max: 120.0,
        fragments: Some(Arc::new(DataFusion::default())),
        place,
    };
    let mut said = Vec::new();
    let records = tpch(&options, &mut |text| said.push(text.to_string())).expect("both can be measured");
    let table = tpch_table(&records);
    assert_eq!(records.len(), 2 * TpchOptions::QUERIES.len(), "{said:#?}");
    for record in &records {
        assert_eq!(record.rows_equal, Some(true), "{record:?}\n{said:#?}\n{table}");
    }
    let from_columns = records.iter().filter(|record| record.from == Some("columns")).count();
    assert!(from_columns >= 18, "{from_columns} from columns\n{table}");
}

#[test]
fn all_queries_of_tpc_h_give_the_rows_of_postgresql_and_most_from_columns() {
    all_of_tpc_h(EntentePlace::default());
}

#[test]
fn they_do_with_rows_on_the_disk_and_no_room_for_columns_or_joins() {
    let folder = tempfile::tempdir().expect("a folder");
    let choice = StoreChoice { kind: StoreKind::Disk, memory_megabytes: Some(64) };
    let stores = choice.open(folder.path()).expect("a folder of its own");
    all_of_tpc_h(EntentePlace { stores: Some(stores), column_bytes: 1 << 20, query_bytes: 12 << 20 });
}

#[test]
fn transactions_and_questions_run_side_by_side_in_both_systems() {
    let options = HtapOptions {
        warehouses: 1,
        customers: 30,
        items: 200,
        systems: HtapOptions::SYSTEMS.map(str::to_string).to_vec(),
        rounds: 1,
        seconds: 0.3,
        every: Duration::from_millis(20),
        threads: 1,
        block_size: 50,
        seed: 1,
        fragments: Arc::new(DataFusion::from_rows(0)),
    };
    let records = htap(&options, &mut |_| ()).expect("both can be measured");
    let loads: Vec<(&str, &str)> = records.iter().map(|record| (record.system, record.load)).collect();
    let expected = [
        ("entente", "without_columns"),
        ("entente", "nobody_asks"),
        ("entente", "questions"),
        ("entente", "idle"),
        ("postgres", "nobody_asks"),
        ("postgres", "questions"),
        ("postgres", "idle"),
    ];
    assert_eq!(loads, expected);
    for record in &records {
        let (asks, runs) = (matches!(record.load, "questions" | "idle"), record.load != "idle");
        assert_eq!(record.questions > 0, asks, "{record:?}");
        assert_eq!(record.committed_tps.is_some_and(|tps| tps > 0.0), runs, "{record:?}");
    }
}
