//! What comes out of the queries of TPC-H, for machines and for people.

use crate::report::{Table, grouped};
use crate::side_by_side::{FROM_COLUMNS, TITLES, Times};
use serde::Serialize;

/// What `entente bench tpch --json` promises, one per query and system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TpchRecord {
    /// Which query, `q1` to `q22`.
    pub query: &'static str,
    /// `entente`, `postgres` or `duckdb`.
    pub system: &'static str,
    /// Rows of `lineitem`.
    pub rows: u64,
    /// Milliseconds until all rows are there, the median over the rounds; `None` where the system has refused the query or has
    /// not ended it in time.
    pub ms: Option<f64>,
    /// Whether every run has given PostgreSQL's rows; `None` where one of both has given none.
    pub rows_equal: Option<bool>,
    /// Where Entente had the rows of all fragments from: `columns` or `rows`. Not there for other systems, and where `ms` is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// Why there are no rows. Not there where there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The records for people: a line for each query, sums over the queries that all systems have ended, and what was refused.
pub fn tpch_table(records: &[TpchRecord]) -> String {
    let mut table = Table::new(["query", "entente from"].into_iter().chain(TITLES));
    let (mut sums, mut ended) = (Times::default(), 0_u64);
    let mut from_columns = 0_u64;
    let mut refused = String::new();
    for of_query in records.chunk_by(|one, next| one.query == next.query) {
        let query = of_query[0].query;
        let from = of_query.iter().find_map(|record| record.from);
        from_columns += u64::from(from == Some(FROM_COLUMNS));
        let times = Times::of(|name| of_query.iter().find(|record| record.system == name)?.ms);
        let titles = [query.to_string(), from.unwrap_or("–").to_string()];
        table.rows.push(titles.into_iter().chain(times.cells()).collect());
        if of_query.iter().all(|record| record.ms.is_some()) {
            sums.add(&times);
            ended += 1;
        }
        for (record, error) in of_query.iter().filter_map(|record| Some((record, record.error.as_ref()?))) {
            refused += &format!("\n{query} in {}: {error}", record.system);
        }
    }
    let title = format!("sum of {ended} that all have ended");
    let titles = [title, format!("{from_columns} columns")];
    table.rows.push(titles.into_iter().chain(sums.cells()).collect());
    let rows = records.first().map_or(0, |record| record.rows);
    format!("{}\nlineitem has {} rows{refused}", table.markdown(), grouped(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(query: &'static str, system: &'static str, ms: f64) -> TpchRecord {
        TpchRecord {
            query,
            system,
            rows: 6_001_215,
            ms: Some(ms),
            rows_equal: Some(true),
            from: None,
            error: None,
        }
    }

    fn late(query: &'static str, system: &'static str) -> TpchRecord {
        let error = Some("not ended after 5 s".to_string());
        TpchRecord { ms: None, rows_equal: None, error, ..record(query, system, 0.0) }
    }

    #[test]
    fn sums_are_those_of_queries_that_all_have_ended() {
        let entente = |query, ms, from| TpchRecord { from: Some(from), ..record(query, "entente", ms) };
        let records = [
            entente("q1", 2.0, "columns"),
            record("q1", "postgres", 6.0),
            record("q1", "duckdb", 1.0),
            entente("q2", 3.0, "rows"),
            record("q2", "postgres", 4.0),
            record("q2", "duckdb", 1.0),
            late("q3", "entente"),
            record("q3", "postgres", 100.0),
            record("q3", "duckdb", 100.0),
        ];
        let table = tpch_table(&records);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| q1 | columns | 2.00 | 6.00 | 1.00 | 3.00 | 2.00 |",
                "| q2 | rows | 3.00 | 4.00 | 1.00 | 1.33 | 3.00 |",
                "| q3 | – | – | 100.00 | 100.00 | – | – |",
                "| sum of 2 that all have ended | 1 columns | 5.00 | 10.00 | 2.00 | 2.00 | 2.50 |",
                "",
                "lineitem has 6,001,215 rows",
                "q3 in entente: not ended after 5 s",
            ]
        );
    }

    #[test]
    fn a_record_has_five_keys_and_those_that_say_something() {
        let text = |record: &TpchRecord| serde_json::to_string(record).expect("plain data");
        assert_eq!(
            text(&record("q6", "duckdb", 1.5)),
            r#"{"query":"q6","system":"duckdb","rows":6001215,"ms":1.5,"rows_equal":true}"#
        );
        let error = r#""error":"not ended after 5 s""#;
        assert_eq!(
            text(&late("q6", "entente")),
            format!(
                r#"{{"query":"q6","system":"entente","rows":6001215,"ms":null,"rows_equal":null,{error}}}"#
            )
        );
    }
}
