//! What JSON takes is bounded and counted, and what execution version 8 answers otherwise than version 7.

mod support;

use support::{Database, texts};
use types::{ExecutionVersion, SqlError, StatementResult};

/// Values have commas between them, rows semicolons.
fn shown(result: Result<Vec<StatementResult>, SqlError>) -> String {
    match result.map(|results| results.into_iter().next_back()) {
        Ok(Some(result)) if !result.columns.is_empty() => {
            texts(&result).iter().map(|row| row.join(", ")).collect::<Vec<_>>().join("; ")
        }
        Ok(result) => result.map_or_else(String::new, |result| result.tag),
        Err(error) => format!("{} {}", error.state, error.message),
    }
}

fn since_7(what: impl Fn(Database)) {
    for version in [ExecutionVersion::V7, ExecutionVersion::V8] {
        what(Database::of_version(version));
    }
}

#[test]
fn numbers_with_exponents_are_refused_before_they_fill_the_memory() {
    since_7(|mut database| {
        for sql in [
            "SELECT to_jsonb(array_fill('1e131000'::json, ARRAY[16000]))",
            "SELECT jsonb_build_array(VARIADIC_PLACE)",
            "SELECT array_fill('1e131000'::json, ARRAY[16000])::jsonb[]",
            "SELECT array_fill('1e131000'::text, ARRAY[12000])::jsonb[]",
            "SELECT ('[' || repeat('1e131000,', 12000) || '1]')::jsonb",
        ] {
            let many = vec!["'1e131000'::json"; 400].join(", ");
            let error = database.error(&sql.replace("VARIADIC_PLACE", &many));
            assert_eq!(error.state.to_string(), "54000", "{sql}: {error:?}");
            assert!(error.message.contains("TEXT_BYTES_MAX"), "{sql}: {error:?}");
        }
        let same = "SELECT length(('{' || repeat('\"a\":1e131000,', 8000) || '\"b\":1}')::jsonb::text)";
        assert_eq!(database.rows(same), [["131016"]]);
    });
}

#[test]
fn rows_of_many_columns_are_counted_while_they_are_made() {
    let columns =
        |count: usize| (1..=count).map(|number| format!("c{number} integer")).collect::<Vec<_>>().join(", ");
    since_7(|mut database| {
        let rows = |count: usize| {
            format!(
                "SELECT count(*) FROM json_to_recordset(('[' || repeat('{{}},', 40000) || '{{}}]')::json) AS x ({})",
                columns(count)
            )
        };
        database.step_limit = 100_000;
        let error = database.error(&rows(1_600));
        assert_eq!(error.state.to_string(), "54000", "{error:?}");
        assert!(error.message.contains("EXECUTION_BYTES_MAX"), "{error:?}");
        let error = database.error(&rows(1_601));
        let limit = ("54011", "column definition lists can have at most 1600 entries (LISTED_COLUMNS_MAX)");
        match database.library.version() {
            // It has the limit of memory alone.
            ExecutionVersion::V7 => assert_eq!(error.state.to_string(), "54000", "{error:?}"),
            _ => assert_eq!((error.state.to_string().as_str(), error.message.as_str()), limit),
        }
        assert_eq!(database.rows(&rows(3)), [["40001"]]);
        let numbers = "SELECT count(*) FROM jsonb_to_recordset(('[' || repeat('{\"a\":[1e130000]},', 1) || '{}]')::jsonb) AS x (a numeric[])";
        assert_eq!(database.rows(numbers), [["2"]]);
        let numbers = "SELECT count(*) FROM json_to_recordset(('[{\"a\":[' || repeat('1e130000,', 12000) || '1]}]')::json) AS x (a numeric[])";
        let error = database.error(numbers);
        assert!(["54000", "57014"].contains(&error.state.to_string().as_str()), "{error:?}");
    });
}

#[test]
fn numbers_that_differ_have_keys_that_differ() {
    since_7(|mut database| {
        database.run("CREATE TABLE t (j jsonb PRIMARY KEY, n integer)").expect("a table");
        database.run("INSERT INTO t VALUES ('1e6001', 1)").expect("a short key");
        let odd = format!("1{}1", "0".repeat(6_000));
        let error = database.error(&format!("INSERT INTO t VALUES ('{odd}', 2)"));
        assert_eq!(error.state.to_string(), "54000", "{error:?}");
        database.run(&format!("CREATE TABLE i (j jsonb); INSERT INTO i VALUES ('{odd}'), ('1e6001'), ('[1e6001]'), ('[{odd}]')")).expect("rows");
        database.run("CREATE INDEX ON i (j)").expect("an index");
        for (sql, count) in [("j = '1e6001'", "1"), ("j > '1e6001'", "3"), ("j = '[1e6001]'", "1")] {
            assert_eq!(database.rows(&format!("SELECT count(*) FROM i WHERE {sql}")), [[count]], "{sql}");
        }
    });
}

/// What versions 7 and 8 say of the same.
const BOTH: &[(&str, &str, &str)] = &[
    // Names that values do not know.
    ("SELECT to_json(coalesce(q, q)) FROM (SELECT 1 AS one) q", "{\"f1\":1}", "{\"one\":1}"),
    ("SELECT to_json(array_agg(q)) FROM (SELECT 1 AS one) q", "[{\"f1\":1}]", "[{\"one\":1}]"),
    (
        "SELECT row_to_json(q) FROM (SELECT 1 AS n, x FROM (SELECT 1 AS one) x) q",
        "{\"n\":1,\"x\":{\"f1\":1}}",
        "{\"n\":1,\"x\":{\"one\":1}}",
    ),
    (
        "SELECT to_json((SELECT q FROM (SELECT 1 AS one) q))",
        "{\"f1\":1}",
        "0A000 JSON of a record whose fields have no names that are known here is not supported",
    ),
    // DISTINCT.
    ("SELECT json_agg(DISTINCT n) FROM (VALUES (1.0), (1.00)) v (n)", "[1.0, 1.00]", "[1.0]"),
    (
        "SELECT json_object_agg(DISTINCT n, '1'::json) FROM (VALUES (1.0), (1.00)) v (n)",
        "{ \"1.0\" : 1, \"1.00\" : 1 }",
        "42883 could not identify an equality operator for type json",
    ),
    // Equality.
    ("SELECT '1'::json IN ('1'::json)", "t", "42883 operator does not exist: json = json"),
    (
        "SELECT greatest('1'::json, '2'::json)",
        "2",
        "42883 could not identify a comparison function for type json",
    ),
    ("SELECT p = p FROM t", "t", "42883 could not identify an equality operator for type json"),
    (
        "WITH RECURSIVE r AS (SELECT '1'::json AS x UNION SELECT x FROM r) SELECT x FROM r",
        "1",
        "42883 could not identify an equality operator for type json",
    ),
    // Functions of the ledger that have the names of the system's.
    ("SELECT * FROM jsonb_object_keys('{\"a\": 1}'::jsonb)", "own", "a"),
    ("SELECT jsonb_object_keys('{\"a\": 1}'::jsonb)", "own", "a"),
    ("SELECT jsonb_object_keys(7)", "own 7", "own 7"),
    ("SELECT 1 FROM t WHERE jsonb_object_keys(7) = 'own 7'", "1", "1"),
    ("SELECT * FROM jsonb_object_keys(7)", "own 7", "own 7"),
    (
        "SELECT 1 FROM t WHERE jsonb_object_keys('{\"a\": 1}'::jsonb) = 'own'",
        "1",
        "0A000 set-returning functions are not allowed in WHERE",
    ),
    ("SELECT * FROM jsonb_each('{\"a\": 1}'::jsonb)", "own", "a, 1"),
    ("SELECT jsonb_each('{\"a\": 1}'::jsonb)", "own", "(a,1)"),
    ("SELECT jsonb_each('{\"a\": 1}'::jsonb), jsonb_each('{\"b\": 1}'::jsonb)", "own, own", "(a,1), (b,1)"),
];

#[test]
fn version_8_mends_what_version_7_answers() {
    for (version, at) in [(ExecutionVersion::V7, 0), (ExecutionVersion::V8, 1)] {
        let mut database = Database::of_version(version);
        for script in [
            "CREATE TYPE pair AS (a integer, j json); CREATE TABLE t (p pair)",
            "INSERT INTO t VALUES ('(1,2)')",
            "CREATE FUNCTION jsonb_object_keys(x jsonb) RETURNS text LANGUAGE sql AS 'SELECT ''own'''",
            "CREATE FUNCTION jsonb_object_keys(x integer) RETURNS text LANGUAGE sql AS 'SELECT ''own '' || x'",
            "CREATE FUNCTION jsonb_each(x jsonb) RETURNS text LANGUAGE sql AS 'SELECT ''own'''",
        ] {
            database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
        }
        for (sql, seven, eight) in BOTH {
            let expected = [seven, eight][at];
            assert_eq!(shown(database.run(sql)), *expected, "{sql} in {version:?}");
        }
    }
}

#[test]
fn a_detail_is_as_long_as_a_receipt_may_show_it() {
    for (version, most) in [(ExecutionVersion::V7, 140_000), (ExecutionVersion::V8, 8_200)] {
        let mut database = Database::of_version(version);
        database.run("CREATE TABLE t (j jsonb PRIMARY KEY)").expect("a table");
        database.run("INSERT INTO t VALUES ('1e131000')").expect("a row");
        for sql in ["INSERT INTO t VALUES ('1e131000')", "SELECT repeat('x', 100000)::json"] {
            let detail = database.run(sql).expect_err(sql).detail.expect("a detail");
            assert!(detail.len() < most && detail.len() > most / 2, "{sql}: {}", detail.len());
        }
    }
}
