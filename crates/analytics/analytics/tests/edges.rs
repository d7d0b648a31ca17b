//! What ends with an error on columns, or nearly does, is what it is on rows.

mod columned;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod support;

use columned::{Columned, Counted, Streamed};
use sql::{Reader, prepare};
use std::sync::Arc;
use support::Database;

/// The answers are equal; gives how many groupings were made from columns.
fn compare(database: &Database, sql: &str) -> usize {
    let groups = Arc::new(Counted::default());
    let prepared = prepare(&database.library, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let by_rows = prepared.query_as(&database.reader(), &database.state, &[]);
    let reader = Reader { fragments: Some(groups.clone()), ..database.reader() };
    assert_eq!(prepared.query_as(&reader, &Columned(&database.state), &[]), by_rows, "{sql}");
    let made = groups.made();
    assert_eq!(prepared.query_as(&reader, &Streamed(&database.state), &[]), by_rows, "{sql}");
    assert_eq!(groups.made(), 2 * made, "{sql}: as much from columns that nobody keeps");
    made
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
        ("SELECT count(*) FROM t WHERE s < 'b'", 1),
        ("SELECT sum(c) FROM t WHERE false", 1),
    ] {
        assert_eq!(compare(&database, question), made, "{question}");
    }
}

#[test]
fn a_materialized_view_without_rows_to_show_is_refused_on_both() {
    let mut database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, n int)",
        "INSERT INTO t SELECT n, n * n FROM generate_series(1, 100) AS n",
        "CREATE MATERIALIZED VIEW v AS SELECT k, n FROM t WITH NO DATA",
    ]);
    for question in ["SELECT sum(n) FROM v", "SELECT count(*) FROM t JOIN v USING (k)"] {
        let prepared = prepare(&database.library, question, &[]).expect("a query");
        assert_eq!(compare(&database, question), 0, "{question}");
        let refused = prepared.query_as(&database.reader(), &database.state, &[]).expect_err(question);
        assert_eq!(refused.state.to_string(), "55000", "{question}");
    }
    database.run("REFRESH MATERIALIZED VIEW v").expect("filled");
    assert_eq!(compare(&database, "SELECT sum(n) FROM v"), 1);
}

#[test]
fn queries_in_from_are_grouped_on_columns_each() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, g int, n bigint)",
        "INSERT INTO t SELECT n, n % 7, n * n FROM generate_series(1, 100) AS n",
    ]);
    for (question, made) in [
        ("SELECT max(total) FROM (SELECT g, sum(n) AS total FROM t GROUP BY g) AS x", 1),
        (
            "SELECT string_agg(total::text, ',' ORDER BY g) FROM (SELECT g, sum(n) AS total FROM t GROUP BY g) AS x",
            1,
        ),
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

#[test]
fn queries_inside_of_conditions_are_answered_from_columns() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, g int, n bigint, p numeric(10,2))",
        "INSERT INTO t SELECT n, CASE WHEN n % 10 <> 0 THEN n % 7 END, n * n, n * 1.5 FROM generate_series(1, 100) AS n",
        "CREATE TABLE u (k int PRIMARY KEY, t int, w int NOT NULL)",
        "INSERT INTO u SELECT n, CASE WHEN n % 9 <> 0 THEN n * 3 END, n % 5 FROM generate_series(1, 50) AS n",
    ]);
    for (question, made) in [
        ("SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.t = t.k AND u.w <> t.g)", 1),
        ("SELECT count(*) FROM t WHERE NOT EXISTS (SELECT DISTINCT w FROM u WHERE u.t = t.k)", 1),
        ("SELECT g, count(*) FROM t WHERE k IN (SELECT w FROM u) GROUP BY g ORDER BY g", 1),
        ("SELECT count(*) FROM t WHERE k NOT IN (SELECT w FROM u)", 1),
        ("SELECT count(*) FROM t WHERE g NOT IN (SELECT t FROM u WHERE t < 100)", 1),
        ("SELECT count(*) FROM t WHERE g NOT IN (SELECT t FROM u WHERE t < 0)", 1),
        ("SELECT count(*) FROM t WHERE g NOT IN (SELECT t FROM u)", 1),
        ("SELECT count(*) FROM t WHERE g NOT IN (SELECT t FROM u WHERE u.w = t.k)", 0),
        ("SELECT count(*) FROM t WHERE p > (SELECT 1.2 * avg(p) FROM t AS o WHERE o.g = t.g)", 1),
        ("SELECT sum(p) FROM t WHERE n > (SELECT avg(n) FROM t)", 1),
        ("SELECT 1 FROM t WHERE n > (SELECT avg(n) FROM t)", 1),
        ("SELECT count(*) FROM t, u WHERE t.k = u.t", 1),
        ("SELECT g, sum(n) FROM t GROUP BY g HAVING sum(n) > (SELECT sum(n) * 0.15 FROM t) ORDER BY g", 2),
        // Without a row, count gives 0 and not NULL.
        ("SELECT count(*) FROM t WHERE 0 = (SELECT count(*) FROM u WHERE u.t = t.k)", 0),
        ("SELECT count(*) FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.t = t.k)", 0),
        ("SELECT count(*) FROM t WHERE k = 1 OR k IN (SELECT w FROM u)", 0),
    ] {
        assert_eq!(compare(&database, question), made, "{question}");
    }
}

#[test]
fn numbers_show_as_many_digits_as_on_rows() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, g int, p numeric(10,2), q numeric(10,4), d date)",
        "INSERT INTO t SELECT n, n % 3, n * 1.5, n * 0.25, date '1999-01-01' + n FROM generate_series(1, 100) AS n",
    ]);
    for (question, made) in [
        (
            "SELECT g, sum(CASE WHEN g = 1 THEN p ELSE 0 END), avg(CASE WHEN g = 1 THEN p WHEN g = 2 THEN q ELSE 0 END) FROM t GROUP BY g ORDER BY g",
            1,
        ),
        ("SELECT g, sum(coalesce(CASE WHEN k > 50 THEN p END, 1)) FROM t GROUP BY g ORDER BY g", 1),
        ("SELECT g, sum(p / 3) FROM t GROUP BY g ORDER BY g", 1),
        ("SELECT extract(year FROM d), count(*) FROM t GROUP BY 1 ORDER BY 1", 1),
        (
            "SELECT x.y, count(*) FROM (SELECT extract(year FROM d)::int AS y FROM t) AS x GROUP BY x.y ORDER BY 1",
            1,
        ),
        ("SELECT max(x.a) FROM (SELECT g, avg(p) AS a FROM t GROUP BY g) AS x", 0),
        ("SELECT count(*) FROM (SELECT g, avg(p) AS a FROM t GROUP BY g) AS x WHERE x.a > 70", 1),
    ] {
        assert_eq!(compare(&database, question), made, "{question}");
    }
}

#[test]
fn explain_says_which_way_and_why() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, g int, n bigint, f float, c char(3))",
        "INSERT INTO t SELECT n, n % 7, n * n, n, 'c' FROM generate_series(1, 100) AS n",
    ]);
    for (question, expected) in [
        ("SELECT g, sum(n) FROM t GROUP BY g", Some("Groups: from columns of t (about 1 rows)")),
        ("SELECT k FROM t WHERE n > 5 ORDER BY n LIMIT 3", Some("Rows: from columns of t (about 1 rows)")),
        ("SELECT sum(f) FROM t", Some("Groups: row by row: a sum of double precision")),
        ("SELECT count(*) FROM t WHERE k = 1", Some("Groups: row by row: a key or an index finds the rows")),
        ("SELECT k FROM t WHERE n > 5 ORDER BY c LIMIT 3", Some("Rows: from columns of t (about 1 rows)")),
        ("SELECT k FROM t WHERE k = 1", None),
        ("INSERT INTO t VALUES (0, 0, 0, 0)", None),
    ] {
        let reader = Reader { fragments: Some(Arc::new(Counted::default())), ..database.reader() };
        let prepared = prepare(&database.library, &format!("EXPLAIN {question}"), &[]).expect("a statement");
        let results = prepared.query_as(&reader, &Columned(&database.state), &[]).expect("lines");
        let lines: Vec<String> =
            results[0].rows.iter().map(|row| types::format_value(&row[0]).expect("a line")).collect();
        let found = lines.iter().find(|line| line.starts_with("Groups:") || line.starts_with("Rows:"));
        assert_eq!(found.map(String::as_str), expected, "{question}: {lines:?}");
        // Nobody keeps columns: then nothing is said of them.
        let results = prepared.query_as(&database.reader(), &database.state, &[]).expect("lines");
        assert_eq!(results[0].rows.len(), lines.len() - usize::from(expected.is_some()));
    }
}

#[test]
fn groups_by_several_short_keys_are_those_of_the_rows() {
    let mut scripts = vec![
        "CREATE TABLE t (k int PRIMARY KEY, c char(1), v varchar(3), i int, b boolean, n bigint)".to_string(),
    ];
    for key in 0..60 {
        let of = |values: &[&str], by: usize| values[key / by % values.len()].to_string();
        let (c, v) = (of(&["'A'", "' '", "NULL", "'ß'"], 1), of(&["''", "'äöü'", "NULL", "'a'", "'a '"], 3));
        let (i, b) = (of(&["-1", "2147483647", "NULL", "0"], 2), of(&["true", "false", "NULL"], 4));
        scripts.push(format!("INSERT INTO t VALUES ({key}, {c}, {v}, {i}, {b}, {key})"));
    }
    let database = Database::with(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
    for keys in [
        "c", "v", "c, v", "v, c", "i, b", "c, i, b", "b, c", "v, b", "c, c", "i, i", "v, i", "n, b",
        "n, c, b",
    ] {
        for question in [
            format!("SELECT {keys}, count(*), sum(n), min(v) FROM t GROUP BY {keys}"),
            format!("SELECT {keys}, avg(n) FROM t GROUP BY {keys} HAVING count(*) > 2 ORDER BY 1 DESC"),
            format!(
                "SELECT count(*), max(x.s) FROM (SELECT {keys}, sum(n) AS s FROM t GROUP BY {keys}) AS x"
            ),
        ] {
            assert_eq!(compare(&database, &question), 1, "{question}");
        }
    }
}
