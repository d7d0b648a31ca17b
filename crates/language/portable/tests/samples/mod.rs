//! Tables for the tests of this crate.
#![allow(dead_code, reason = "each test uses some of it")]

use portable::{Action, Expression, Script, Statement, Term, check_script};
use std::sync::Arc;
use types::{Catalog, Check, Column, DataType, Numeric, Payload, SqlError, Table, TableId, Value};

/// 2026-01-01 00:00 UTC.
pub const NOW_MS: u64 = 1_767_225_600_000;
/// The same in microseconds since 2000.
pub const NOW: i64 = 820_540_800_000_000;

pub fn column(name: &str, data_type: DataType) -> Column {
    Column { name: name.to_string(), data_type, not_null: false, default: None, generated: false }
}

pub fn table(id: u32, name: &str, columns: Vec<Column>, primary_key: Vec<u16>) -> Table {
    Table {
        id: TableId(id),
        name: name.to_string(),
        columns,
        primary_key,
        primary_key_name: format!("{name}_pkey"),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    }
}

/// Ordinals of the columns of `account`.
pub const ID: usize = 0;
pub const SMALL: usize = 1;
pub const WHOLE: usize = 2;
pub const BALANCE: usize = 3;
pub const AMOUNT: usize = 4;
pub const NAME: usize = 5;
pub const CODE: usize = 6;
pub const ACTIVE: usize = 7;
pub const BORN: usize = 8;
pub const AT: usize = 9;
pub const SEEN: usize = 10;
pub const MARK: usize = 11;
pub const BYTES: usize = 12;
pub const RATE: usize = 13;

pub fn account() -> Table {
    let columns = vec![
        column("id", DataType::Integer),
        column("small", DataType::SmallInt),
        column("whole", DataType::Integer),
        column("balance", DataType::BigInt),
        column("amount", DataType::Numeric(Some((10, 2)))),
        column("name", DataType::Text(Some(100))),
        column("code", DataType::Text(Some(4))),
        column("active", DataType::Boolean),
        column("born", DataType::Date),
        column("at", DataType::Timestamp),
        column("seen", DataType::TimestampTz),
        column("mark", DataType::Uuid),
        column("bytes", DataType::Bytea),
        column("rate", DataType::Numeric(Some((60, 20)))),
    ];
    table(1, "account", columns, vec![0])
}

pub fn entry() -> Table {
    let mut columns = vec![
        column("ledger", DataType::Text(Some(8))),
        column("number", DataType::BigInt),
        column("note", DataType::Text(None)),
        column("status", DataType::Text(Some(8))),
        column("written", DataType::TimestampTz),
        column("draw", DataType::BigInt),
    ];
    columns[3].default = Some("'new'::character varying".to_string());
    columns[4].default = Some("now()".to_string());
    columns[5].default = Some("-7".to_string());
    table(2, "s.entry", columns, vec![0, 1])
}

/// A table whose default is no constant.
pub fn serial() -> Table {
    let mut columns = vec![column("id", DataType::BigInt), column("n", DataType::BigInt)];
    columns[1].default = Some("nextval('serial_n_seq')".to_string());
    table(3, "serial", columns, vec![0])
}

pub fn double() -> Table {
    table(4, "double", vec![column("id", DataType::BigInt), column("x", DataType::Double)], vec![0])
}

pub fn catalog() -> Catalog {
    catalog_of([account(), entry(), serial(), double()])
}

pub fn catalog_of(tables: impl IntoIterator<Item = Table>) -> Catalog {
    let tables = tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))).collect();
    Catalog { tables, ..Catalog::default() }
}

pub fn check(name: &str, condition: &str) -> Check {
    Check { name: name.to_string(), condition: condition.to_string(), valid: true }
}

pub fn script_with(sql: &str, parameters: &[Value]) -> Result<Script, SqlError> {
    let payload = Payload::Script { sql: sql.to_string(), parameters: parameters.to_vec() };
    check_script(&catalog(), &payload, NOW_MS)
}

pub fn script(sql: &str) -> Result<Script, SqlError> {
    script_with(sql, &[])
}

pub fn statement_with(sql: &str, parameters: &[Value]) -> Statement {
    let mut script = script_with(sql, parameters).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    assert_eq!(script.statements.len(), 1, "{sql}");
    script.statements.remove(0)
}

pub fn statement(sql: &str) -> Statement {
    statement_with(sql, &[])
}

/// The only row that a statement inserts.
pub fn row(sql: &str, parameters: &[Value]) -> Vec<Value> {
    match statement_with(sql, parameters).action {
        Action::Insert(rows) if rows.len() == 1 => rows[0].to_vec(),
        other => panic!("{sql}: {other:?}"),
    }
}

/// What a statement sets.
pub fn set(sql: &str) -> Vec<(usize, Expression)> {
    match statement(sql).action {
        Action::Update { set, .. } => set,
        other => panic!("{sql}: {other:?}"),
    }
}

/// The condition of a DELETE from `account`.
pub fn condition(sql: &str) -> Expression {
    match statement(&format!("DELETE FROM account WHERE {sql}")).action {
        Action::Delete { condition: Some(condition) } => condition,
        other => panic!("{sql}: {other:?}"),
    }
}

pub fn of_column(ordinal: usize) -> Expression {
    Expression { term: Term::Column(ordinal), data_type: account().columns[ordinal].data_type }
}

pub fn constant(value: Value, data_type: DataType) -> Expression {
    Expression { term: Term::Constant(value), data_type }
}

pub fn boolean(term: Term) -> Expression {
    Expression { term, data_type: DataType::Boolean }
}

pub fn number(text: &str) -> Value {
    Value::Numeric(Numeric::parse(text).expect("a number"))
}

pub fn numeric(precision: u16, scale: i16) -> DataType {
    DataType::Numeric(Some((precision, scale)))
}
