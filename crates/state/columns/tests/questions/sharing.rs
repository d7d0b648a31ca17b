//! Answers share what did not change.

use crate::world::{apply, check, image, store, table};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use state::{ColumnBatch, Store};
use std::sync::Arc;
use types::{DataType, Row, Table, Value};

const TYPES: [DataType; 3] = [DataType::BigInt, DataType::BigInt, DataType::Text(None)];
const CHUNK: i64 = 8_192;

fn row(number: i64, value: i64) -> Option<Row> {
    Some(
        [Value::BigInt(number), Value::BigInt(value), Value::text("a text that is not short")]
            .into_iter()
            .collect(),
    )
}

fn ask(store: &dyn Store, table: &Table) -> Vec<ColumnBatch> {
    store.snapshot().columns(table, &[0, 1, 2]).unwrap().expect("there are columns")
}

/// Which buffers of values are the same, by chunk and column.
fn same(one: &[ColumnBatch], other: &[ColumnBatch]) -> Vec<[bool; 3]> {
    let address = |batch: &ColumnBatch, column: usize| {
        let array = &batch.columns[column];
        match column {
            2 => array.as_string_view().views().inner().as_ptr(),
            _ => array.as_primitive::<Int64Type>().values().inner().as_ptr(),
        }
    };
    let pairs = one.iter().zip(other);
    pairs.map(|(one, other)| [0, 1, 2].map(|column| address(one, column) == address(other, column))).collect()
}

#[test]
fn only_what_changes_is_copied_and_only_while_it_is_lent() {
    let made = [table(1, &TYPES)];
    let store = store(&made);
    apply(store.as_ref(), (0..3 * CHUNK).map(|number| image(1, number, row(number, 0))).collect());
    let first = ask(store.as_ref(), &made[0]);
    let second = ask(store.as_ref(), &made[0]);
    assert_eq!(same(&first, &second), [[true; 3]; 3]);
    drop(second);
    apply(store.as_ref(), vec![image(1, CHUNK + 5, row(CHUNK + 5, 7))]);
    let second = ask(store.as_ref(), &made[0]);
    assert_eq!(same(&first, &second), [[true; 3], [true, false, true], [true; 3]]);
    let value = |batches: &[ColumnBatch]| batches[1].columns[1].as_primitive::<Int64Type>().value(5);
    assert_eq!((value(&first), value(&second)), (0, 7));
    // Nobody has the values of the second chunk any more, but for the columns.
    let address = second[1].columns[1].as_primitive::<Int64Type>().values().inner().as_ptr();
    drop(second);
    apply(store.as_ref(), vec![image(1, CHUNK + 6, row(CHUNK + 6, 8))]);
    let third = ask(store.as_ref(), &made[0]);
    assert_eq!(third[1].columns[1].as_primitive::<Int64Type>().values().inner().as_ptr(), address);
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1, 2]));
}

#[test]
fn rows_that_go_copy_nothing_and_arrays_without_them_are_made_once() {
    let made = [table(1, &TYPES)];
    let store = store(&made);
    apply(store.as_ref(), (0..2 * CHUNK).map(|number| image(1, number, row(number, 0))).collect());
    let first = ask(store.as_ref(), &made[0]);
    apply(store.as_ref(), vec![image(1, 5, None)]);
    let second = ask(store.as_ref(), &made[0]);
    assert_eq!(same(&first, &second), [[false; 3], [true; 3]]);
    assert_eq!((second[0].rows, second[1].rows), (CHUNK as usize - 1, CHUNK as usize));
    let third = ask(store.as_ref(), &made[0]);
    assert!((0..3).all(|column| Arc::ptr_eq(&second[0].columns[column], &third[0].columns[column])));
    // The hole is filled.
    apply(store.as_ref(), vec![image(1, 3 * CHUNK, row(3 * CHUNK, 1))]);
    let fourth = ask(store.as_ref(), &made[0]);
    assert_eq!(fourth.len(), 2);
    assert_eq!(same(&first, &fourth), [[false, false, true], [true; 3]]);
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1, 2]));
}
