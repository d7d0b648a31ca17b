//! Values that come encoded, as a client has made them: a value of an enum counts only if its type has it, wherever it stands.

mod support;

use std::sync::Arc;
use support::Database;
use types::{
    Array, Composite, ElementType, EnumPlace, EnumValue, ExecutionVersion, PackedRows, Payload,
    SessionResults, SessionStep, SqlError, TypeId, Value,
};

const SCHEMA: &[&str] = &[
    "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE other AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pair AS (n integer, m mood)",
    "CREATE DOMAIN good AS mood CHECK (VALUE <> 'sad')",
    "CREATE TABLE t (id integer PRIMARY KEY, m mood, ms mood[], p pair, g good, note text)",
    "CREATE PROCEDURE put(id integer, m mood) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t (id, m) VALUES (id, m); END $$",
    "CREATE PROCEDURE put_all(id integer, ms mood[], p pair) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t (id, ms, p) VALUES (id, ms, p); END $$",
];

fn database(version: ExecutionVersion) -> Database {
    let mut database = Database::of_version(version);
    for script in SCHEMA {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    database
}

fn type_id(database: &Database, name: &str) -> TypeId {
    database.library.catalog().types[name].id
}

fn value(type_id: TypeId, place: u16, label: &str) -> Value {
    Value::Enum(Arc::new(EnumValue { type_id, place: EnumPlace::nth(place), label: label.into() }))
}

fn array_of(value: &Value) -> Value {
    let element = ElementType::new(value.data_type()).expect("it has arrays");
    Value::Array(Arc::new(Array::new(element, vec![value.clone()]).expect("a short array")))
}

fn row_of(type_id: Option<TypeId>, value: &Value) -> Value {
    let values = vec![Value::Integer(1), value.clone()];
    Value::Composite(Arc::new(Composite::new(type_id, values).expect("a short row")))
}

/// Everything by which a client brings a value: what is called, and the value of the enum in it.
fn payloads(pair: TypeId, value: &Value) -> Vec<Payload> {
    let id = || Value::Integer(1);
    let call = |procedure: &str, arguments| Payload::Call { procedure: procedure.to_string(), arguments };
    let script = |sql: &str, parameters| Payload::Script { sql: sql.to_string(), parameters };
    let insert = |column: &str, value| Payload::Insert {
        table: "t".to_string(),
        columns: vec!["id".to_string(), column.to_string()],
        rows: vec![vec![id(), value]],
    };
    let packed = PackedRows::pack([vec![id(), value.clone()]]).expect("a short row");
    let columns = vec!["id".to_string(), "m".to_string()];
    let run = |sql: &str, parameters| SessionStep::Run { sql: sql.to_string(), parameters };
    let session = |step| Payload::Session {
        steps: vec![step],
        now_ms: support::START_MS,
        results: SessionResults::default().digest(),
    };
    vec![
        call("put", vec![id(), value.clone()]),
        call("put_all", vec![id(), array_of(value), Value::Null]),
        call("put_all", vec![id(), Value::Null, row_of(Some(pair), value)]),
        call("put_all", vec![id(), Value::Null, row_of(None, value)]),
        script("INSERT INTO t (id, m) VALUES (1, $1)", vec![value.clone()]),
        script("INSERT INTO t (id, ms) VALUES (1, $1)", vec![array_of(value)]),
        script("INSERT INTO t (id, p) VALUES (1, $1)", vec![row_of(Some(pair), value)]),
        script("INSERT INTO t (id, g) VALUES (1, $1)", vec![value.clone()]),
        script("INSERT INTO t (id, note) VALUES (1, $1::text)", vec![value.clone()]),
        script("INSERT INTO t (id, note) VALUES (1, ($1)::text)", vec![row_of(None, value)]),
        script("SELECT $1", vec![array_of(&row_of(None, value))]),
        insert("m", value.clone()),
        insert("ms", array_of(value)),
        insert("p", row_of(Some(pair), value)),
        insert("g", value.clone()),
        session(SessionStep::Insert { table: "t".to_string(), columns, rows: packed }),
        session(run("INSERT INTO t (id, m) VALUES (1, $1)", vec![value.clone()])),
        session(run("SELECT $1", vec![row_of(None, value)])),
    ]
}

fn refused(error: &SqlError) -> bool {
    error.message.contains("invalid input value for enum")
}

#[test]
fn a_value_that_its_enum_does_not_have_comes_in_nowhere() {
    for version in [ExecutionVersion::V7, ExecutionVersion::CURRENT] {
        let mut database = database(version);
        let (mood, pair) = (type_id(&database, "mood"), type_id(&database, "pair"));
        // A place that no label has; a label of another place; a type that is not there.
        let crafted = [
            value(mood, 2, "happy"),
            value(mood, 1, "sad"),
            value(mood, 1, "great"),
            value(TypeId(4_000), 0, "sad"),
        ];
        for value in crafted {
            for payload in payloads(pair, &value) {
                let shown = format!("{version:?}: {payload:?}");
                let is_session = matches!(payload, Payload::Session { .. });
                let error = database.execute(payload).expect_err(&shown);
                // A block ends with other results than the client was given; a type that is not there is refused by what needs one.
                let is_unknown = shown.contains("TypeId(4000)");
                assert!(is_session || is_unknown || refused(&error), "{shown}: {error:?}");
                assert_eq!(database.rows("SELECT count(*) FROM t"), [["0"]], "{shown}");
            }
        }
    }
}

#[test]
fn a_value_of_another_enum_is_none_of_this_one() {
    let mut database = database(ExecutionVersion::CURRENT);
    let (other, pair) = (type_id(&database, "other"), type_id(&database, "pair"));
    for payload in payloads(pair, &value(other, 1, "ok")).into_iter().take(4) {
        let error = database.execute(payload).expect_err("of another type");
        assert!(matches!(&error.state.0, b"42846" | b"42883" | b"42804"), "{error:?}");
    }
}

#[test]
fn values_of_the_enum_come_in_as_they_are() {
    let mut database = database(ExecutionVersion::CURRENT);
    let (mood, pair) = (type_id(&database, "mood"), type_id(&database, "pair"));
    let ok = value(mood, 1, "ok");
    for payload in payloads(pair, &ok) {
        // Their results are made up.
        if matches!(payload, Payload::Session { .. }) {
            continue;
        }
        let shown = format!("{payload:?}");
        database.execute(payload).unwrap_or_else(|error| panic!("{shown}: {error:?}"));
        database.run("DELETE FROM t").expect("it is there");
    }
    database.execute(payloads(pair, &ok).remove(0)).expect("a good value");
    assert_eq!(database.rows("SELECT m, m = 'ok', m > 'sad' FROM t"), [["ok", "t", "t"]]);
    // A value that has another label since counts no longer.
    database.run("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'").expect("nothing names it");
    let error = database.execute(payloads(pair, &ok).remove(5)).expect_err("the label of before");
    assert_eq!(error.message, "invalid input value for enum mood: \"ok\"");
}
