//! Which column of a table or view a column of a result is: what clients are told of it.

mod support;

use support::Database;
use types::ColumnOrigin;

const TABLES: [&str; 3] = [
    "CREATE TABLE t (a integer PRIMARY KEY, v varchar(20), n numeric(10, 2))",
    "CREATE SCHEMA other",
    "CREATE VIEW w AS SELECT v AS shown, n FROM t",
];

/// By column `relation.position`, or nothing.
fn origins(database: &Database, sql: &str) -> Vec<String> {
    let prepared = sql::prepare(&database.library, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let shown = |origin: Option<&Option<ColumnOrigin>>| match origin {
        Some(Some(ColumnOrigin { relation, column })) => format!("{relation}.{column}"),
        _ => String::new(),
    };
    (0..prepared.columns().len()).map(|column| shown(prepared.origins().get(column))).collect()
}

/// Each with what PostgreSQL 15 says in RowDescription.
#[test]
fn columns_of_tables_and_views_are_known_through_whatever_leaves_them_as_they_are() {
    let mut database = Database::with(&TABLES);
    database.run("CREATE TABLE other.u (x integer, a integer)").expect("a table");
    for (sql, expected) in [
        ("SELECT v, a, v || 'x', upper(v), $1::text FROM t", vec!["t.1", "t.0", "", "", ""]),
        ("SELECT * FROM t", vec!["t.0", "t.1", "t.2"]),
        ("SELECT x.*, t.n AS m FROM t, other.u x", vec!["other.u.0", "other.u.1", "t.2"]),
        ("SELECT v::text, v::varchar(10), v::varchar(20) FROM t", vec!["", "", "t.1"]),
        ("SELECT a AS b, count(*) FROM t GROUP BY a", vec!["t.0", ""]),
        ("SELECT DISTINCT v FROM t", vec!["t.1"]),
        ("SELECT max(v), row_number() OVER (ORDER BY a), a FROM t GROUP BY a", vec!["", "", "t.0"]),
        ("SELECT v FROM t UNION ALL SELECT v FROM t", vec![""]),
        ("SELECT x.b, x.c FROM (SELECT v AS b, 1 AS c FROM t) x", vec!["t.1", ""]),
        ("WITH x AS (SELECT v, a + 1 FROM t) SELECT * FROM x", vec!["t.1", ""]),
        (
            "WITH RECURSIVE r AS (SELECT a FROM t UNION ALL SELECT a + 1 FROM r WHERE a < 3) SELECT a FROM r",
            vec![""],
        ),
        ("SELECT shown, w.* FROM w", vec!["w.0", "w.0", "w.1"]),
        ("SELECT a FROM t l LEFT JOIN t r USING (a)", vec!["t.0"]),
        ("SELECT a FROM t l FULL JOIN t r USING (a)", vec![""]),
        ("SELECT r.v FROM t l LEFT JOIN t r ON false", vec!["t.1"]),
        ("(SELECT v FROM t) ORDER BY 1 LIMIT 1", vec!["t.1"]),
        ("SELECT (SELECT v FROM t), g FROM generate_series(1, 2) g", vec!["", ""]),
        ("SELECT coalesce(v, v), 'x', NULL FROM t", vec!["", "", ""]),
        ("SELECT l.n FROM other.u, LATERAL (SELECT n FROM t) l", vec!["t.2"]),
        ("VALUES (1, 'x')", vec!["", ""]),
        ("INSERT INTO t VALUES (1) RETURNING *, a + 1", vec!["t.0", "t.1", "t.2", ""]),
        ("UPDATE t SET v = 'x' RETURNING n", vec!["t.2"]),
        ("UPDATE t SET v = 'x' FROM (SELECT 1 AS q) s RETURNING t.v, s.q", vec!["t.1", ""]),
        ("DELETE FROM t USING other.u x WHERE x.a = t.a RETURNING x.x, t.a", vec!["other.u.0", "t.0"]),
        ("INSERT INTO w (shown) VALUES ('x') RETURNING shown", vec!["w.0"]),
    ] {
        assert_eq!(origins(&database, sql), expected, "{sql}");
    }
}
