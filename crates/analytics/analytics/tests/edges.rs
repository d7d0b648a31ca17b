//! What ends with an error on columns, or nearly does, is what it is on rows.

mod columned;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod support;

use columned::{Columned, Counted};
use sql::{Reader, prepare};
use std::sync::Arc;
use support::Database;

/// The answers are equal; gives how many groupings were made from columns.
fn compare(database: &Database, sql: &str) -> usize {
    let groups = Arc::new(Counted::default());
    let prepared = prepare(&database.library, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let by_rows = prepared.query_as(&database.reader(), &database.state, &[]);
    let reader = Reader { groups: Some(groups.clone()), ..database.reader() };
    assert_eq!(prepared.query_as(&reader, &Columned(&database.state), &[]), by_rows, "{sql}");
    groups.made()
}

#[test]
fn dates_that_no_timestamp_has_are_an_error_on_both() {
    let scripts =
        ["CREATE TABLE t (k int PRIMARY KEY, d date)", "INSERT INTO t VALUES (1, '2026-11-24'), (2, NULL)"];
    let mut database = Database::with(&scripts);
    let question = "SELECT count(*) FROM t WHERE d <= date '2027-01-01' + interval '1 hour'";
    assert_eq!(compare(&database, question), 1);
    database.run("INSERT INTO t VALUES (3, '294276-12-31')").expect("a date");
    assert_eq!(compare(&database, question), 1);
    database.run("INSERT INTO t VALUES (4, '294277-01-01')").expect("a date");
    assert_eq!(compare(&database, question), 0);
}

#[test]
fn numbers_at_the_ends_of_their_types_are_computed_or_left_to_rows() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, i int, c bigint, n numeric(38,2), s char(3))",
        "INSERT INTO t VALUES (1, 2147483647, 9223372036854775807, 999999999999999999999999999999999999.99, 'a'), \
         (2, 2147483647, 9223372036854775807, 999999999999999999999999999999999999.99, 'a  ')",
    ]);
    for (question, made) in [
        ("SELECT sum(i), sum(c), avg(c), min(n), max(c) FROM t", 1),
        // The sum has 39 digits with its two behind the point.
        ("SELECT sum(n) FROM t", 0),
        ("SELECT sum(n * 100000) FROM t", 0),
        ("SELECT sum(c + 1) FROM t", 0),
        ("SELECT sum(i + 1) FROM t", 0),
        ("SELECT sum(i / (i - 2147483647)) FROM t", 0),
        ("SELECT s, count(*) FROM t WHERE s = 'a' GROUP BY s", 1),
        ("SELECT count(*) FROM t WHERE s < 'b'", 0),
        ("SELECT sum(c) FROM t WHERE false", 1),
    ] {
        assert_eq!(compare(&database, question), made, "{question}");
    }
}

#[test]
fn queries_in_from_are_grouped_on_columns_each() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, g int, n bigint)",
        "INSERT INTO t SELECT n, n % 7, n * n FROM generate_series(1, 100) AS n",
    ]);
    for (question, made) in [
        ("SELECT max(total) FROM (SELECT g, sum(n) AS total FROM t GROUP BY g) AS x", 1),
        ("WITH x AS (SELECT g, avg(n) AS a FROM t GROUP BY g) SELECT count(*) FROM x WHERE a > 3000", 1),
        (
            "SELECT a.g, a.c, b.s FROM (SELECT g, count(*) AS c FROM t GROUP BY g) AS a \
          JOIN (SELECT g, sum(n) AS s FROM t GROUP BY g) AS b ON a.g = b.g ORDER BY a.g",
            2,
        ),
        ("SELECT count(*) FROM t UNION ALL SELECT sum(k) FROM t", 2),
        ("SELECT t.k, (SELECT sum(o.n) FROM t AS o WHERE o.g = t.g) FROM t ORDER BY t.k LIMIT 5", 0),
        (
            "SELECT x.g, y.s FROM (VALUES (1), (2)) AS x (g), LATERAL (SELECT sum(n) AS s FROM t WHERE t.g = x.g) AS y",
            0,
        ),
    ] {
        assert_eq!(compare(&database, question), made, "{question}");
    }
}
