//! Tables, rows, and what columns say of them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use columns::WithColumns;
use memory::Memory;
use rand::RngExt;
use rand::rngs::StdRng;
use state::{AfterImage, ColumnBatch, KeyRange, RowId, Snapshot, Store, Stores, Version};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Column, DataType, Key, Numeric, Row, Table, TableId, Value};

/// One of each that is kept; the first one is the primary key.
pub const TYPES: [DataType; 13] = [
    DataType::BigInt,
    DataType::Boolean,
    DataType::SmallInt,
    DataType::Integer,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::TimestampTz,
    DataType::Real,
    DataType::Double,
    DataType::Numeric(Some((12, 2))),
    DataType::Text(None),
    DataType::Char(Some(20)),
];

pub fn table(id: u32, types: &[DataType]) -> Arc<Table> {
    let column = |(number, data_type): (usize, &DataType)| Column {
        name: format!("c{number}"),
        data_type: *data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    Arc::new(Table {
        id: TableId(id),
        name: format!("t{id}"),
        columns: types.iter().enumerate().map(column).collect(),
        primary_key: vec![0],
        primary_key_name: format!("t{id}_pkey"),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    })
}

pub fn catalog(tables: &[Arc<Table>]) -> Arc<Catalog> {
    let tables = tables.iter().map(|table| (table.name.clone(), table.clone())).collect();
    Arc::new(Catalog { tables, ..Catalog::default() })
}

/// A store in memory with columns.
pub fn store(tables: &[Arc<Table>]) -> Arc<dyn Store> {
    stores_and_store(tables).1
}

/// The same with what has made it.
pub fn stores_and_store(tables: &[Arc<Table>]) -> (WithColumns, Arc<dyn Store>) {
    let stores = WithColumns::new(Arc::new(Memory), 1 << 30);
    let store = stores.create(catalog(tables)).unwrap();
    (stores, store)
}

pub fn key(number: i64) -> Key {
    Key::encode([&Value::BigInt(number)]).unwrap()
}

pub fn image(table: u32, number: i64, row: Option<Row>) -> AfterImage {
    AfterImage { row: RowId { table: TableId(table), key: key(number) }, value: row }
}

/// Applies changes of rows as the next block.
pub fn apply(store: &dyn Store, mut changes: Vec<AfterImage>) {
    changes.sort_by(|one, other| one.row.cmp(&other.row));
    let height = store.version().height() + 1;
    store.apply(Version::after_batch(height, 0), &changes, None).unwrap();
}

fn value(data_type: DataType, random: &mut StdRng) -> Value {
    if random.random_bool(0.1) {
        return Value::Null;
    }
    let number = random.random_range(-50..50i64);
    match data_type {
        DataType::Boolean => Value::Boolean(number > 0),
        DataType::SmallInt => Value::SmallInt(number as i16),
        DataType::Integer => Value::Integer(number as i32),
        DataType::BigInt => Value::BigInt(number),
        DataType::Date => Value::Date(number as i32),
        DataType::Time => Value::Time(number + 100),
        DataType::Timestamp => Value::Timestamp(number << 40),
        DataType::TimestampTz => Value::TimestampTz(number << 40),
        DataType::Real => Value::Real(if number == 0 { -0.0 } else { number as f32 / 8.0 }),
        DataType::Double => Value::Double([0.0, -0.0, f64::NAN, f64::INFINITY, 2.5][number as usize % 5]),
        DataType::Numeric(Some((_, scale))) => Value::Numeric(Numeric::new(number.into(), scale as u8)),
        DataType::Char(Some(length)) => {
            Value::Char(format!("{number:<width$}", width = length as usize).into())
        }
        DataType::Text(_) => Value::text(
            "x".repeat(random.random_range(0..4) * random.random_range(1..20)) + &number.to_string(),
        ),
        _ => panic!("it is not kept"),
    }
}

pub fn row(number: i64, types: &[DataType], random: &mut StdRng) -> Row {
    let others = types[1..].iter().map(|data_type| value(*data_type, random));
    [Value::BigInt(number)].into_iter().chain(others).collect()
}

fn value_at(array: &ArrayRef, at: usize, data_type: DataType) -> Value {
    if array.is_null(at) {
        return Value::Null;
    }
    match data_type {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(at)),
        DataType::SmallInt => Value::SmallInt(array.as_primitive::<Int16Type>().value(at)),
        DataType::Integer => Value::Integer(array.as_primitive::<Int32Type>().value(at)),
        DataType::Date => Value::Date(array.as_primitive::<Int32Type>().value(at)),
        DataType::BigInt => Value::BigInt(array.as_primitive::<Int64Type>().value(at)),
        DataType::Time => Value::Time(array.as_primitive::<Int64Type>().value(at)),
        DataType::Timestamp => Value::Timestamp(array.as_primitive::<Int64Type>().value(at)),
        DataType::TimestampTz => Value::TimestampTz(array.as_primitive::<Int64Type>().value(at)),
        DataType::Real => Value::Real(array.as_primitive::<Float32Type>().value(at)),
        DataType::Double => Value::Double(array.as_primitive::<Float64Type>().value(at)),
        DataType::Numeric(Some((_, scale))) => {
            let mantissa = array.as_primitive::<Decimal128Type>().value(at);
            Value::Numeric(Numeric::new(mantissa, scale as u8))
        }
        DataType::Text(_) => Value::text(array.as_string_view().value(at)),
        DataType::Char(_) => Value::Char(array.as_string_view().value(at).into()),
        _ => panic!("it is not kept"),
    }
}

/// The rows of an answer as texts, sorted: a copy that shares nothing.
pub fn rows_of(batches: &[ColumnBatch], table: &Table, ordinals: &[usize]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        assert_eq!(batch.columns.len(), ordinals.len());
        assert!(batch.rows > 0);
        for (array, ordinal) in batch.columns.iter().zip(ordinals) {
            assert_eq!(array.len(), batch.rows);
            let expected = state::column_type(table.columns[*ordinal].data_type).unwrap();
            assert_eq!(*array.data_type(), expected);
            assert!(array.nulls().is_none_or(|nulls| nulls.null_count() > 0 || batch.rows < 8_192));
        }
        for at in 0..batch.rows {
            let values = batch.columns.iter().zip(ordinals);
            let values =
                values.map(|(array, ordinal)| value_at(array, at, table.columns[*ordinal].data_type));
            rows.push(format!("{:?}", values.collect::<Vec<_>>()));
        }
    }
    rows.sort_unstable();
    rows
}

/// The same from a scan.
pub fn scanned(snapshot: &dyn Snapshot, table: &Table, ordinals: &[usize]) -> Vec<String> {
    let mut rows = Vec::new();
    let visited = snapshot.scan(table.id, &KeyRange::ALL, false, &mut |_, row| {
        rows.push(format!("{:?}", ordinals.iter().map(|ordinal| row[*ordinal].clone()).collect::<Vec<_>>()));
        ControlFlow::Continue(())
    });
    visited.unwrap();
    rows.sort_unstable();
    rows
}

/// The rows of columns that are made for whoever reads them, as texts, sorted; and how many pieces there were.
pub fn made_of_rows(snapshot: &dyn Snapshot, table: &Table, ordinals: &[usize]) -> (Vec<String>, usize) {
    let made = snapshot.read_columns(table, ordinals).expect("they can be made of rows");
    let (mut batches, mut behind) = (Vec::new(), None);
    while let Some(piece) = made.piece(behind.as_ref()).unwrap() {
        batches.push(piece.batch.expect("all values fit"));
        behind = piece.last;
        if behind.is_none() {
            break;
        }
    }
    (rows_of(&batches, table, ordinals), batches.len())
}

/// Asks, and compares with a scan of the same snapshot. False: there are no columns of it.
pub fn check(snapshot: &dyn Snapshot, table: &Table, ordinals: &[usize]) -> bool {
    let answer = snapshot.columns(table, ordinals).unwrap();
    answer.is_some_and(|batches| {
        assert_eq!(rows_of(&batches, table, ordinals), scanned(snapshot, table, ordinals), "{ordinals:?}");
        true
    })
}

/// Some columns, in any order, perhaps one of them twice.
pub fn some_ordinals(random: &mut StdRng, columns: usize) -> Vec<usize> {
    (0..random.random_range(0..5)).map(|_| random.random_range(0..columns)).collect()
}
