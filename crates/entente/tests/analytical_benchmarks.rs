//! The 22 queries of TPC-H give PostgreSQL's rows, nearly all of them from columns; and transactions go on beside questions.

use analytics::DataFusion;
use bench::{HtapOptions, TpchOptions, htap, tpch, tpch_table};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn all_queries_of_tpc_h_give_the_rows_of_postgresql_and_most_from_columns() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let options = TpchOptions {
        scale: 0.01,
        rounds: 1,
        systems: names(&["entente", "postgres"]),
        queries: names(&TpchOptions::QUERIES),
        seconds_max: 120.0,
        fragments: Some(Arc::new(DataFusion::default())),
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
