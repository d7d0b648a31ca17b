//! What comes out of analytical queries, for machines and for people.

use crate::report::{Table, grouped};
use crate::side_by_side::{TITLES, Times};
use serde::Serialize;

/// What `entente bench analytics --json` promises, one per query and system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnalyticsRecord {
    /// Which query.
    pub query: &'static str,
    /// `entente`, `postgres` or `duckdb`.
    pub system: &'static str,
    /// Rows of the largest table that it reads.
    pub rows: u64,
    /// Milliseconds until all rows are there, the median over the rounds.
    pub ms: f64,
    /// Whether every run has given PostgreSQL's rows; `None` where PostgreSQL was not measured.
    pub rows_equal: Option<bool>,
}

/// The records for people: a line for each query.
pub fn analytics_table(records: &[AnalyticsRecord]) -> String {
    let mut table = Table::new(["query", "rows"].into_iter().chain(TITLES));
    for of_query in records.chunk_by(|one, next| one.query == next.query) {
        let ms = |name: &str| of_query.iter().find(|record| record.system == name).map(|record| record.ms);
        let titles = [of_query[0].query.to_string(), grouped(of_query[0].rows)];
        table.rows.push(titles.into_iter().chain(Times::of(ms).cells()).collect());
    }
    table.markdown()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(query: &'static str, system: &'static str, ms: f64) -> AnalyticsRecord {
        AnalyticsRecord { query, system, rows: 1_000, ms, rows_equal: Some(true) }
    }

    #[test]
    fn a_query_is_a_line_and_what_was_left_out_is_a_dash() {
        let records = [
            record("filter", "entente", 2.0),
            record("filter", "postgres", 5.0),
            record("join", "entente", 3.0),
            record("join", "duckdb", 2.0),
        ];
        let table = analytics_table(&records);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| filter | 1,000 | 2.00 | 5.00 | – | 2.50 | – |",
                "| join | 1,000 | 3.00 | – | 2.00 | – | 1.50 |"
            ]
        );
    }

    #[test]
    fn a_record_has_five_keys() {
        let record = AnalyticsRecord { rows_equal: None, ..record("q6", "duckdb", 1.5) };
        let text = serde_json::to_string(&record).expect("plain data");
        assert_eq!(text, r#"{"query":"q6","system":"duckdb","rows":1000,"ms":1.5,"rows_equal":null}"#);
    }
}
