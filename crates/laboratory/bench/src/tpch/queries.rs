//! The 22 queries as the specification has them, with the values that it validates them with.

/// What a file has where the query depends on the scale.
const FRACTION: &str = ":fraction";

/// A query.
pub(super) struct Query {
    /// As records name it.
    pub(super) id: &'static str,
    sql: &'static str,
}

/// All of them.
pub(super) const QUERIES: [Query; 22] = [
    Query { id: "q1", sql: include_str!("queries/q01.sql") },
    Query { id: "q2", sql: include_str!("queries/q02.sql") },
    Query { id: "q3", sql: include_str!("queries/q03.sql") },
    Query { id: "q4", sql: include_str!("queries/q04.sql") },
    Query { id: "q5", sql: include_str!("queries/q05.sql") },
    Query { id: "q6", sql: include_str!("queries/q06.sql") },
    Query { id: "q7", sql: include_str!("queries/q07.sql") },
    Query { id: "q8", sql: include_str!("queries/q08.sql") },
    Query { id: "q9", sql: include_str!("queries/q09.sql") },
    Query { id: "q10", sql: include_str!("queries/q10.sql") },
    Query { id: "q11", sql: include_str!("queries/q11.sql") },
    Query { id: "q12", sql: include_str!("queries/q12.sql") },
    Query { id: "q13", sql: include_str!("queries/q13.sql") },
    Query { id: "q14", sql: include_str!("queries/q14.sql") },
    Query { id: "q15", sql: include_str!("queries/q15.sql") },
    Query { id: "q16", sql: include_str!("queries/q16.sql") },
    Query { id: "q17", sql: include_str!("queries/q17.sql") },
    Query { id: "q18", sql: include_str!("queries/q18.sql") },
    Query { id: "q19", sql: include_str!("queries/q19.sql") },
    Query { id: "q20", sql: include_str!("queries/q20.sql") },
    Query { id: "q21", sql: include_str!("queries/q21.sql") },
    Query { id: "q22", sql: include_str!("queries/q22.sql") },
];

impl Query {
    /// Its words at a scale: the fraction of query 11 is 0.0001 at scale 1, with the ten digits of the specification's program.
    pub(super) fn at(&self, scale: f64) -> String {
        self.sql.replace(FRACTION, &format!("{:.10}", 0.0001 / scale))
    }
}

/// Some queries by their ids, in the order of the specification; the first id that no query has otherwise.
pub(super) fn named(ids: &[String]) -> Result<Vec<&'static Query>, String> {
    match ids.iter().find(|id| QUERIES.iter().all(|query| query.id != id.as_str())) {
        Some(unknown) => Err(unknown.clone()),
        None => Ok(QUERIES.iter().filter(|query| ids.iter().any(|id| id == query.id)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_query_11_depends_on_the_scale() {
        let differ: Vec<&str> =
            QUERIES.iter().filter(|query| query.at(1.0) != query.at(0.01)).map(|query| query.id).collect();
        assert_eq!(differ, ["q11"]);
        assert!(QUERIES[10].at(1.0).contains("* 0.0001000000\n"));
        assert!(QUERIES[10].at(0.01).contains("* 0.0100000000\n"));
    }

    #[test]
    fn queries_have_their_places() {
        let ids: Vec<String> = ["q21", "q1", "q9"].map(str::to_string).to_vec();
        let found: Vec<&str> =
            named(&ids).expect("there are such").into_iter().map(|query| query.id).collect();
        assert_eq!(found, ["q1", "q9", "q21"]);
        assert_eq!(named(&["q0".to_string()]).err().as_deref(), Some("q0"));
        for (number, query) in QUERIES.iter().enumerate() {
            assert_eq!(query.id, format!("q{}", number + 1));
        }
    }
}
