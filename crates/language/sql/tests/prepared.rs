//! What the gateway learns from a script before it runs.

mod support;

use sql::{Reader, StatementKind, is_schema_change, prepare};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::Database;
use types::{DataType, ExecutionVersion, Payload, Value};

fn database() -> Database {
    Database::with(&[
        "CREATE TABLE account (id bigint PRIMARY KEY, balance numeric(12,2), name varchar(10))",
        "INSERT INTO account VALUES (1, 1.5, 'ada'), (2, 2.5, 'bob')",
        "CREATE PROCEDURE p(a bigint, INOUT b text, OUT c integer) LANGUAGE plpgsql AS $$ BEGIN c := a; END $$",
    ])
}

fn kind(sql: &str) -> StatementKind {
    prepare(&database().library, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}")).kind()
}

#[test]
fn scripts_are_told_apart_by_what_they_do() {
    assert_eq!(kind(""), StatementKind::Empty);
    assert_eq!(kind(" ; -- nothing\n;"), StatementKind::Empty);
    assert_eq!(kind("SELECT 1; SELECT 2"), StatementKind::Read);
    assert_eq!(kind("SELECT 1; DELETE FROM account"), StatementKind::Write);
    assert_eq!(kind("WITH a AS (DELETE FROM account) SELECT 1"), StatementKind::Write);
    assert_eq!(kind("WITH a AS (SELECT 1) DELETE FROM account"), StatementKind::Write);
    assert_eq!(kind("CALL p(1, 'x', NULL)"), StatementKind::Write);
    assert_eq!(kind("CREATE TABLE t (a integer); DROP TABLE t"), StatementKind::SchemaChange);
    let StatementKind::Copy { table, columns } = kind("COPY account (name, id) FROM STDIN") else {
        panic!("expected COPY");
    };
    assert_eq!(table, "account");
    let columns: Vec<_> = columns.iter().map(|column| (column.name.as_str(), column.data_type)).collect();
    assert_eq!(columns, [("name", DataType::Text(Some(10))), ("id", DataType::BigInt)]);
    for (sql, expected) in [
        ("SELECT 1; DROP TABLE t", true),
        (" /* x */ create table t (a int)", true),
        ("SELECT 'CREATE'", false),
        ("REFRESH MATERIALIZED VIEW v", true),
        ("SELECT refresh FROM t", false),
    ] {
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        assert_eq!(is_schema_change(&payload, ExecutionVersion::NEWEST), expected, "{sql}");
    }
}

#[test]
fn types_of_parameters_are_inferred_from_their_use() {
    let database = database();
    let inferred = |sql: &str, given: &[DataType]| {
        let prepared = prepare(&database.library, sql, given);
        prepared.unwrap_or_else(|error| panic!("{sql}: {error:?}")).parameters().to_vec()
    };
    const NUMERIC: DataType = DataType::Numeric(None);
    const TEXT: DataType = DataType::Text(None);
    assert_eq!(inferred("SELECT name FROM account WHERE id = $1", &[]), [DataType::BigInt]);
    assert_eq!(inferred("INSERT INTO account VALUES ($1, $2, $3)", &[]), [DataType::BigInt, NUMERIC, TEXT]);
    assert_eq!(
        inferred(
            "WITH a AS (UPDATE account SET balance = $2 WHERE id = $1 RETURNING name) SELECT 1 FROM a WHERE name = $3",
            &[]
        ),
        [DataType::BigInt, NUMERIC, TEXT]
    );
    assert_eq!(
        inferred("UPDATE account SET balance = balance + $2 WHERE id = $1", &[]),
        [DataType::BigInt, NUMERIC]
    );
    assert_eq!(inferred("SELECT $1", &[]), [TEXT]);
    assert_eq!(inferred("SELECT $1::integer + $2", &[]), [DataType::Integer, DataType::Integer]);
    assert_eq!(inferred("SELECT id FROM account LIMIT $1", &[]), [DataType::BigInt]);
    assert_eq!(inferred("CALL p($1, $2, NULL)", &[]), [DataType::BigInt, TEXT]);
    assert_eq!(inferred("SELECT $1 + 1", &[DataType::BigInt]), [DataType::BigInt]);
    assert_eq!(inferred("SELECT id FROM account WHERE name IN ($1, $2)", &[]), [TEXT, TEXT]);
}

#[test]
fn a_parameter_that_is_too_long_for_its_column_is_an_error() {
    let mut database = database();
    let long = vec![Value::text("eleven char")];
    let error =
        database.run_with("INSERT INTO account (id, name) VALUES (9, $1)", long).expect_err("too long");
    assert_eq!(error.state.to_string(), "22001");
    let unknown =
        prepare(&database.library, "INSERT INTO account (id, name) VALUES (9, $1)", &[]).expect("a script");
    assert_eq!(unknown.parameters(), [DataType::Text(None)]);
    let null = vec![Value::Null];
    assert!(database.run_with("INSERT INTO account (id, name) VALUES (9, $1)", null).is_ok());
}

#[test]
fn columns_are_known_before_the_first_row() {
    let database = database();
    let columns = |sql: &str| -> Vec<(String, DataType)> {
        let prepared =
            prepare(&database.library, sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        prepared.columns().iter().map(|column| (column.name.clone(), column.data_type)).collect()
    };
    assert_eq!(
        columns("SELECT id, balance, count(*) FROM account GROUP BY id, balance"),
        [
            ("id".to_string(), DataType::BigInt),
            ("balance".to_string(), DataType::Numeric(Some((12, 2)))),
            ("count".to_string(), DataType::BigInt)
        ]
    );
    assert!(columns("DELETE FROM account").is_empty());
    assert_eq!(
        columns("DELETE FROM account RETURNING name"),
        [("name".to_string(), DataType::Text(Some(10)))]
    );
    let outputs = [("b".to_string(), DataType::Text(None)), ("c".to_string(), DataType::Integer)];
    assert_eq!(columns("CALL p(1, 'x', NULL)"), outputs);
}

#[test]
fn reads_run_on_a_snapshot_with_parameters_and_time() {
    let database = database();
    let prepared =
        prepare(&database.library, "SELECT name, now() FROM account WHERE id = $1", &[]).expect("a query");
    let results =
        prepared.query(&database.state, &[Value::text("2")], 1_000, 946_684_800_001).expect("a row");
    assert_eq!(results[0].tag, "SELECT 1");
    assert_eq!(results[0].rows, vec![vec![Value::text("bob"), Value::TimestampTz(1_000)]]);
    let empty = prepare(&database.library, "", &[]).expect("no statement");
    assert_eq!(empty.query(&database.state, &[], 1_000, 0), Ok(Vec::new()));
    let write = prepare(&database.library, "DELETE FROM account", &[]).expect("a statement");
    let error = write.query(&database.state, &[], 1_000, 0).expect_err("it writes");
    assert_eq!(error.state.to_string(), "25006");
}

#[test]
fn every_statement_of_a_script_has_its_tag() {
    let mut database = database();
    let results = database
        .run("INSERT INTO account VALUES (3), (4); UPDATE account SET name = 'x' WHERE id > 2; DELETE FROM account WHERE id = 9; SELECT id FROM account; CALL p(1, 'x', NULL)")
        .expect("a script");
    let tags: Vec<&str> = results.iter().map(|result| result.tag.as_str()).collect();
    assert_eq!(tags, ["INSERT 0 2", "UPDATE 2", "DELETE 0", "SELECT 4", "CALL"]);
}

/// What runs for minutes if nobody stops it: scans, joins, functions, blocks and temporary tables.
#[test]
fn an_interrupt_ends_what_runs() {
    let queries = [
        "SELECT count(*) FROM generate_series(1, 3000) AS a JOIN generate_series(1, 3000) AS b ON a + b < 0",
        "SELECT count(*) FROM generate_series(1, 3000) AS a, LATERAL (SELECT count(*) FROM generate_series(1, 3000) AS b WHERE b < a) AS c",
        "SELECT turn()",
        "SELECT (SELECT count(*) FROM account AS x WHERE x.id > a) FROM generate_series(1, 100000000) AS a",
    ];
    let database = Database::with(&[
        "CREATE TABLE account (id bigint PRIMARY KEY)",
        "INSERT INTO account SELECT generate_series(1, 1000)",
        "CREATE FUNCTION turn() RETURNS integer LANGUAGE plpgsql AS $$
         DECLARE n integer := 0; BEGIN LOOP n := (n + 1) % 10; END LOOP; END $$",
    ]);
    for sql in queries {
        let prepared = prepare(&database.library, sql, &[]).expect("a query");
        let interrupt = Arc::<AtomicBool>::default();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                interrupt.store(true, Ordering::Relaxed);
            });
            let reader =
                Reader { step_limit: u64::MAX, interrupt: Arc::clone(&interrupt), ..Reader::default() };
            prepared.query_as(&reader, &database.state, &[])
        });
        let error = result.expect_err("interrupted");
        assert_eq!(error.state.to_string(), "57014", "{sql}: {error:?}");
        assert!(error.message.contains("nobody waits"), "{sql}: {error:?}");
    }
}
