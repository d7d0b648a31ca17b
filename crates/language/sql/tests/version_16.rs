//! What version 16 has and version 15 refuses, beside what has tests of its own.

mod support;

use support::Database;
use types::ExecutionVersion;

#[test]
fn before_version_16_a_sequence_is_no_relation_of_a_query() {
    const SEQUENCE: &str = "CREATE SEQUENCE counted START 7";
    let ask = "SELECT last_value, is_called FROM counted";
    let mut older = Database::of_version(ExecutionVersion::V15);
    older.run(SEQUENCE).expect("a sequence");
    let error = older.error(ask);
    assert_eq!(format!("{} {}", error.state, error.message), "42P01 relation \"counted\" does not exist");
    let mut newer = Database::of_version(ExecutionVersion::V16);
    newer.run(SEQUENCE).expect("a sequence");
    newer.run(ask).expect("where it stands");
}

#[test]
fn an_operator_with_a_schema_is_none_of_the_ledgers_statements() {
    let sql = "SELECT 1 OPERATOR(pg_catalog.=) ANY (ARRAY[1])";
    for (version, state) in [(ExecutionVersion::V15, "42601"), (ExecutionVersion::V16, "0A000")] {
        assert_eq!(Database::of_version(version).error(sql).state.to_string(), state);
    }
}

#[test]
fn a_sequence_that_does_not_count_stands_behind_what_was_drawn() {
    let mut database = Database::of_version(ExecutionVersion::V16);
    database.run("CREATE SEQUENCE placed; CREATE TABLE t (id bigint PRIMARY KEY)").expect("a sequence");
    database.run("INSERT INTO t SELECT nextval('placed') FROM generate_series(1, 3)").expect("values");
    let behind =
        "INSERT INTO t SELECT 0 FROM placed WHERE NOT is_called AND last_value > (SELECT max(id) FROM t)";
    database.run(behind).expect("where it stands");
    let error = database.error(behind);
    assert_eq!(error.state.to_string(), "23505", "the row was there");
}

#[test]
fn before_version_16_there_is_no_type_of_numbers_of_objects() {
    const STATEMENTS: [[&str; 2]; 6] = [
        ["CREATE TABLE objects (id oid PRIMARY KEY)", "42704 type \"oid\" does not exist"],
        ["CREATE TABLE objects (id integer PRIMARY KEY, ids oid[])", "42704 type \"oid\" does not exist"],
        ["SELECT 1::oid", "42704 type \"oid\" does not exist"],
        ["SELECT oid '1'", "42703 column \"oid\" does not exist"],
        ["SELECT oid(1)", "42883 function oid(integer) does not exist"],
        [
            "CREATE FUNCTION f(o oid) RETURNS text LANGUAGE sql AS 'SELECT $1::text'",
            "42704 type \"oid\" does not exist",
        ],
    ];
    for [sql, expected] in STATEMENTS {
        let error = Database::of_version(ExecutionVersion::V15).error(sql);
        assert_eq!(format!("{} {}", error.state, error.message), expected, "{sql}");
        Database::of_version(ExecutionVersion::V16).run(sql).expect(sql);
    }
}
