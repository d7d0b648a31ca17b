//! The 22 queries of TPC-H give PostgreSQL's rows, nearly all of them from columns.

use analytics::DataFusion;
use bench::{TpchOptions, tpch, tpch_table};
use std::sync::Arc;

#[test]
fn all_queries_of_tpc_h_give_the_rows_of_postgresql_and_most_from_columns() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let options = TpchOptions {
        scale: 0.01,
        rounds: 1,
        systems: names(&["entente", "postgres"]),
        queries: names(&TpchOptions::QUERIES),
        seconds_max: 120.0,
        groups: Some(Arc::new(DataFusion::default())),
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
