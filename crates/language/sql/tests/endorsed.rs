//! What endorsers sign, held against the schema. That it does what was simulated is checked wherever `support` runs
//! anything.

mod support;

use sql::bind_endorsed;
use state::{Command, RowChange};
use std::sync::Arc;
use support::Database;
use types::{
    ColumnSet, EndorsedEffects, EndorsedRead, EndorsedScan, EndorsedWrite, EnumPlace, EnumValue, Key,
    KeyBound, Row, RowWrite, SqlError, SqlState, TableId, Value,
};

fn database() -> Database {
    Database::with(&[
        "CREATE TABLE account (id bigint PRIMARY KEY, owner varchar(5) NOT NULL, balance bigint CHECK (balance >= 0), \
         ceiling integer, note text, CHECK (balance <= ceiling))",
        "INSERT INTO account VALUES (1, 'one', 10, 100, NULL)",
    ])
}

fn table(database: &Database) -> TableId {
    database.library.catalog().tables["account"].id
}

fn key(id: i64) -> Key {
    Key::encode([&Value::BigInt(id)]).expect("a key")
}

fn bind(database: &Database, write: RowWrite) -> Result<Command, SqlError> {
    let write = EndorsedWrite { table: table(database), key: key(1), guard: None, write };
    let endorsed = EndorsedEffects { writes: vec![write], ..EndorsedEffects::default() };
    bind_endorsed(&database.library, &endorsed).map(|mut effects| effects.commands.remove(0))
}

fn row(id: i64, owner: &str, balance: Value, ceiling: Value) -> Row {
    [Value::BigInt(id), Value::text(owner), balance, ceiling, Value::Null].into()
}

#[test]
fn what_no_execution_can_have_done_is_refused_by_name() {
    let database = database();
    let big = Value::BigInt;
    let refused = [
        (RowWrite::Put([big(1)].into()), "has 5 values, found 1"),
        (RowWrite::Put(row(2, "two", big(1), Value::Null)), "under another row's key"),
        (RowWrite::Put(row(1, "sixsix", big(1), Value::Null)), "is of type character varying(5)"),
        (RowWrite::Put(row(1, "one", Value::text("1"), Value::Null)), "is of type bigint, found text"),
        (RowWrite::Put(row(1, "one", big(1), big(5))), "is of type integer, found bigint"),
        (RowWrite::Assign(vec![(0, big(2))]), "primary key of table \"account\" is changed"),
        (RowWrite::Assign(vec![(1, Value::Null)]), "\"owner\" of table \"account\" is NOT NULL"),
        (RowWrite::Assign(vec![(9, big(1))]), "has no column 10"),
        (RowWrite::Assign(vec![(3, Value::Integer(1)), (2, big(1))]), "do not ascend"),
        (RowWrite::Add { ordinal: 1, amount: 1 }, "added to a column of type character varying(5)"),
        (RowWrite::Add { ordinal: 0, amount: 1 }, "primary key"),
        (RowWrite::Add { ordinal: u16::MAX, amount: 1 }, "has no column 65536"),
    ];
    for (write, expected) in refused {
        let error = bind(&database, write.clone()).expect_err(expected);
        assert!(error.message.contains(expected), "{write:?}: {error:?}");
        assert_eq!(error.state, SqlState::INVALID_PARAMETER_VALUE);
    }
    let other = EndorsedEffects {
        reads: vec![EndorsedRead { table: TableId(77), key: key(1), columns: ColumnSet::ALL }],
        ..EndorsedEffects::default()
    };
    let error = bind_endorsed(&database.library, &other).expect_err("no such table");
    assert!(error.message.contains("no table with the number 77"), "{error:?}");
    let scan = EndorsedScan {
        table: table(&database),
        start: KeyBound::Unbounded,
        end: KeyBound::Unbounded,
        columns: ColumnSet::ALL,
        predicate_columns: ColumnSet::EMPTY,
        result: vec![key(2), key(1)],
    };
    let error =
        bind_endorsed(&database.library, &EndorsedEffects { scans: vec![scan], ..Default::default() });
    assert!(error.expect_err("not sorted").message.contains("do not ascend"));
}

#[test]
fn constraints_are_checked_on_the_row_as_it_stands_in_the_end() {
    let database = database();
    let apply =
        |write: RowWrite, now: &Row| bind(&database, write).expect("it fits").function.apply(Some(now));
    let now = row(1, "one", Value::BigInt(10), Value::Integer(20));
    let state = |result: Result<RowChange, SqlError>| result.expect_err("a constraint").state;
    assert_eq!(state(apply(RowWrite::Add { ordinal: 2, amount: -11 }, &now)), SqlState::CHECK_VIOLATION);
    assert_eq!(state(apply(RowWrite::Add { ordinal: 2, amount: 11 }, &now)), SqlState::CHECK_VIOLATION);
    assert_eq!(state(apply(RowWrite::Assign(vec![(3, Value::Integer(9))]), &now)), SqlState::CHECK_VIOLATION);
    let richest = row(1, "one", Value::BigInt(i64::MAX), Value::Null);
    let over = apply(RowWrite::Add { ordinal: 2, amount: 1 }, &richest);
    assert_eq!(state(over), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
    let changed = apply(RowWrite::Add { ordinal: 2, amount: -10 }, &now).expect("it holds");
    assert_eq!(changed, RowChange::Put(row(1, "one", Value::BigInt(0), Value::Integer(20))));

    // What a check looks at beside the written column is used, so that conflicts show.
    let command = bind(&database, RowWrite::Add { ordinal: 2, amount: 1 }).expect("it fits");
    assert!(command.uses.contains(ColumnSet::column(3)) && command.can_fail && command.addition.is_none());
    let command = bind(&database, RowWrite::Assign(vec![(1, Value::text("two"))])).expect("it fits");
    assert_eq!((command.uses, command.writes), (ColumnSet::EXISTS, ColumnSet::column(1)));
}

#[test]
fn generated_values_and_labels_are_those_of_the_ledger() {
    let database = Database::with(&[
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE account (id bigint PRIMARY KEY, a integer, c integer GENERATED ALWAYS AS (a * 2) STORED, m mood)",
        "INSERT INTO account VALUES (1, 2)",
    ]);
    let now: Row = [Value::BigInt(1), Value::Integer(2), Value::Integer(4), Value::Null].into();
    let apply =
        |values| bind(&database, RowWrite::Assign(values)).expect("it fits").function.apply(Some(&now));
    apply(vec![(1, Value::Integer(5)), (2, Value::Integer(10))]).expect("as it is generated");
    for wrong in [vec![(1, Value::Integer(5)), (2, Value::Integer(11))], vec![(1, Value::Integer(5))]] {
        let error = apply(wrong).expect_err("another value");
        assert!(error.message.contains("another value than it is generated with"), "{error:?}");
    }
    let type_id = database.library.catalog().types["mood"].id;
    let value = |place, label: &str| {
        Value::Enum(Arc::new(EnumValue { type_id, place: EnumPlace::nth(place), label: label.into() }))
    };
    apply(vec![(3, value(1, "ok"))]).expect("a value of the type");
    for wrong in [value(1, "sad"), value(2, "happy"), Value::text("ok")] {
        assert!(bind(&database, RowWrite::Assign(vec![(3, wrong)])).is_err());
    }
}
