//! What version 7 brings, and how version 6 refuses it or reads it otherwise.

mod support;

use support::{Database, shown, shown_with_rows};
use types::ExecutionVersion;

/// What version 7 has brought, and the words of version 6.
const REFUSED_BY_VERSION_6: &[(&str, &str)] = &[
    ("CREATE TYPE mood AS ENUM ('sad', 'ok')", "0A000 CREATE TYPE … AS ENUM is not supported"),
    ("ALTER TYPE pair ADD VALUE 'x'", "0A000 ALTER TYPE … ADD VALUE is not supported"),
    ("ALTER TYPE pair RENAME VALUE 'x' TO 'y'", "0A000 ALTER TYPE … RENAME VALUE is not supported"),
    ("ALTER TYPE pair RENAME TO two", "0A000 ALTER TYPE … RENAME TO is not supported"),
    ("ALTER TYPE public.pair SET SCHEMA s", "0A000 ALTER TYPE … SET SCHEMA is not supported"),
    (
        "CREATE TABLE g (a integer, c integer GENERATED ALWAYS AS (a * 2) STORED)",
        "0A000 GENERATED ALWAYS AS (…) STORED is not supported",
    ),
    ("CREATE DOMAIN positive AS integer CHECK (VALUE > 0)", "0A000 CREATE DOMAIN is not supported"),
    ("DROP DOMAIN positive", "0A000 DROP DOMAIN is not supported"),
    ("SELECT enum_first(NULL)", "42883 function enum_first(unknown) does not exist"),
    ("SELECT enum_range(NULL::pair)", "42883 function enum_range(pair) does not exist"),
];

#[test]
fn version_6_refuses_by_its_words_what_version_7_has() {
    let mut database = Database::of_version(ExecutionVersion::V6);
    database.run("CREATE TYPE pair AS (a integer, b text)").expect("a type");
    let hints: Vec<Option<String>> = REFUSED_BY_VERSION_6
        .iter()
        .map(|(sql, expected)| {
            assert_eq!(shown(database.run(sql)), *expected);
            database.error(sql).hint.map(|hint| hint.to_string())
        })
        .collect();
    assert_eq!(hints[0].as_deref(), Some("Use text with a CHECK."));
    let other = "Create another type, and go over to it: ALTER TABLE … ALTER COLUMN … TYPE … USING ROW(…)::…";
    assert!(hints[1..5].iter().all(|hint| hint.as_deref() == Some(other)));
    let types = database.rows("SELECT ROW(1, 'a')::pair");
    database.go_over_to(ExecutionVersion::V7);
    assert_eq!(database.rows("SELECT ROW(1, 'a')::pair"), types);
    database.run(REFUSED_BY_VERSION_6[0].0).expect("version 7 has enums");
    assert_eq!(database.rows("SELECT 'ok'::mood > 'sad'"), [["t"]]);
}

/// What version 6 says of functions that are named like those of the system which give rows, and of other things that are
/// read otherwise since version 7: what the last program said that knew no version 7.
const AS_EVER_IN_VERSION_6: &[(&str, &str)] = &[
    ("SELECT unnest(3)", "0A000 set-returning functions are not allowed in this place"),
    (
        "SET search_path = app, public; CREATE TABLE app.d (x text DEFAULT generate_series('d'::text))",
        "CREATE TABLE",
    ),
    (
        "SET search_path = app, public; CREATE VIEW app.v AS SELECT v FROM generate_series('a'::text) AS g (v)",
        "CREATE VIEW",
    ),
    ("SELECT v FROM app.v", "own a"),
    ("SELECT single.single FROM unnest(ARRAY[ROW(7)]::one[]) AS single", "7"),
    ("COMMENT ON DOMAIN one IS 'x'", "0A000 COMMENT ON DOMAIN is not supported"),
    (
        "CREATE INDEX ON plain (a jsonb_ops)",
        "0A000 the operator class jsonb_ops of an index is not supported",
    ),
    (
        "ALTER TABLE plain ADD UNIQUE (a jsonb_ops)",
        "0A000 the operator class jsonb_ops of an index is not supported",
    ),
    (
        "CREATE TABLE u (a text, UNIQUE (a jsonb_ops))",
        "0A000 the operator class jsonb_ops of an index is not supported",
    ),
    ("CREATE SEQUENCE s AS json", "0A000 the type json is not supported"),
    ("DROP FUNCTION unnest(jsonb)", "0A000 the type jsonb is not supported"),
];

#[test]
fn version_6_answers_as_ever_where_version_7_reads_otherwise() {
    let mut database = Database::of_version(ExecutionVersion::V6);
    for script in [
        "CREATE SCHEMA app; CREATE TYPE one AS (a integer); CREATE TABLE plain (a text)",
        "CREATE FUNCTION unnest(x integer) RETURNS integer LANGUAGE sql AS 'SELECT x'",
        "CREATE FUNCTION app.generate_series(x text) RETURNS text LANGUAGE sql AS 'SELECT ''own '' || x'",
    ] {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    for (sql, expected) in AS_EVER_IN_VERSION_6 {
        assert_eq!(shown_with_rows(database.run(sql)), *expected, "{sql}");
    }
}

/// What version 7 brings, and what version 6 says of it, with the hint.
const SINCE_VERSION_7: &[(&str, &str, Option<&str>)] = &[
    (
        "SELECT random()",
        "0A000 the function random() is not supported",
        Some("Pass a random number as an argument."),
    ),
    (
        "SELECT gen_random_uuid()",
        "0A000 the function gen_random_uuid() is not supported",
        Some("Pass the identifier as an argument."),
    ),
    ("SELECT gen_random_bytes(3)", "42883 function gen_random_bytes(integer) does not exist", None),
    (
        "SELECT clock_timestamp()",
        "0A000 the function clock_timestamp() is not supported",
        Some("Use now(), the time of the block."),
    ),
    (
        "SELECT exp(1)",
        "0A000 exp of double precision, whose last digits differ between machines, is not supported",
        Some("Cast the argument to numeric."),
    ),
    ("CREATE EXTENSION pgcrypto", "0A000 CREATE EXTENSION is not supported", None),
    ("SELECT md5('a')", "42883 function md5(unknown) does not exist", None),
];

#[test]
fn what_version_7_brings_is_refused_before_in_the_same_words_as_ever() {
    for (sql, refused, hint) in SINCE_VERSION_7 {
        let error = Database::of_version(ExecutionVersion::V6).error(sql);
        assert_eq!(format!("{} {}", error.state, error.message), *refused, "{sql}");
        assert_eq!(error.hint.as_deref().filter(|_| hint.is_some()), *hint, "{sql}");
        Database::of_version(ExecutionVersion::V7)
            .run(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

#[test]
fn json_is_there_from_version_7_on() {
    let refusals = [
        ("CREATE TABLE t (id integer, j jsonb)", "0A000 the type jsonb is not supported"),
        ("SELECT '1'::json", "0A000 the type json is not supported"),
        ("SELECT '{1}'::jsonb[]", "0A000 the type jsonb is not supported"),
        ("SELECT '{1}'::_jsonb", "42704 type \"_jsonb\" does not exist"),
        ("SELECT to_json(1)", "0A000 the function to_json() is not supported"),
        ("SELECT row_to_json(ROW(1))", "0A000 the function row_to_json() is not supported"),
        ("SELECT json_agg(1)", "0A000 the function json_agg() is not supported"),
        ("SELECT jsonb_object_agg('a', 1)", "0A000 the function jsonb_object_agg() is not supported"),
        (
            "SELECT jsonb_set('{}', '{a}', '1')",
            "42883 function jsonb_set(unknown, unknown, unknown) does not exist",
        ),
        ("SELECT jsonb('1')", "42883 function jsonb(unknown) does not exist"),
        (
            "SELECT jsonb_path_query('{}', '$')",
            "42883 function jsonb_path_query(unknown, unknown) does not exist",
        ),
        ("SELECT jsonb_array_elements('[1]')", "42883 function jsonb_array_elements(unknown) does not exist"),
        ("SELECT * FROM json_each('{}')", "42883 function json_each(unknown) does not exist"),
        ("SELECT 'x' -> 'a'", "0A000 the operator -> is not supported"),
        ("SELECT 'x' ->-1", "0A000 the operator ->- is not supported"),
        ("SELECT 'x' ? 'a'", "0A000 the operator ? is not supported"),
    ];
    let mut database = Database::of_version(ExecutionVersion::V6);
    for (sql, refusal) in refusals {
        assert_eq!(shown(database.run(sql)), refusal, "{sql}");
    }
    // A ledger may have functions of these names.
    database
        .run("CREATE FUNCTION to_json(value integer) RETURNS text LANGUAGE sql AS 'SELECT ''own'''")
        .expect("a function");
    assert_eq!(database.rows("SELECT to_json(1)"), [["own"]]);
    database.go_over_to(ExecutionVersion::V7);
    assert_eq!(database.rows("SELECT to_json(1)"), [["1"]], "the system's comes first");
    assert_eq!(database.rows("SELECT jsonb_agg(1), '{\"a\":1}'::jsonb -> 'a'"), [["[1]", "1"]]);
    database.run("CREATE TABLE t (id integer PRIMARY KEY, j jsonb)").expect("a table");
}
