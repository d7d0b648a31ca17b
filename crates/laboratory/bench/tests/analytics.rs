//! Analytical queries: Entente's rows are PostgreSQL's, and records are as promised.

use bench::{AnalyticsOptions, analytics, analytics_table};
use serde_json::Value;

const QUERIES: [(&str, u64); 7] = [
    ("count_sum", 5_000),
    ("filter", 5_000),
    ("group_int", 5_000),
    ("group_text", 5_000),
    ("join", 5_000),
    ("q1", 6_005),
    ("q6", 6_005),
];

fn options(systems: &[&str]) -> AnalyticsOptions {
    let systems = systems.iter().map(|system| (*system).to_string()).collect();
    AnalyticsOptions { rows: 5_000, scale: 0.001, rounds: 2, systems, fragments: None }
}

#[test]
fn every_query_has_postgresqls_rows_and_a_record_of_five_keys() {
    let mut said = Vec::new();
    let records = analytics(&options(&["entente", "postgres"]), &mut |text| said.push(text.to_string()))
        .expect("both can be measured");
    let Value::Array(records_as_json) = serde_json::to_value(&records).expect("plain data") else {
        panic!("no list")
    };
    let keys = |record: &Value| record.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let mut expected = ["query", "system", "rows", "ms", "rows_equal"];
    expected.sort_unstable();
    for record in &records_as_json {
        let mut keys = keys(record);
        keys.sort_unstable();
        assert_eq!(keys, expected);
        assert!(record["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{record}");
        assert_eq!(record["rows_equal"], Value::Bool(true), "{record}");
    }
    let measured: Vec<(&str, &str, u64)> =
        records.iter().map(|record| (record.query, record.system, record.rows)).collect();
    let expected: Vec<(&str, &str, u64)> = QUERIES
        .iter()
        .flat_map(|(query, rows)| ["entente", "postgres"].map(|system| (*query, system, *rows)))
        .collect();
    assert_eq!(measured, expected, "{said:#?}");
    assert_eq!(analytics_table(&records).lines().count(), 9);
}

#[test]
fn without_postgresql_nobody_says_whether_rows_are_its() {
    let records = analytics(&options(&["entente"]), &mut |_| ()).expect("it needs nothing else");
    assert_eq!(records.len(), QUERIES.len());
    assert!(records.iter().all(|record| record.system == "entente" && record.rows_equal.is_none()));
}
