//! Columns take no more memory than they may.

use crate::world::{apply, catalog, check, image, table};
use columns::WithColumns;
use memory::Memory;
use state::{Snapshot, Store, Stores};
use std::sync::Arc;
use types::{DataType, Table, Value};

const BIGINTS: [DataType; 3] = [DataType::BigInt; 3];
const ROWS: i64 = 10_000;

fn filled(stores: &WithColumns, made: &[Arc<Table>]) -> Arc<dyn Store> {
    let store = stores.create(catalog(made)).unwrap();
    let images = made.iter().flat_map(|table| {
        let row = |number| Some((0..table.columns.len()).map(|_| Value::BigInt(number)).collect());
        (0..ROWS).map(move |number| image(table.id.0, number, row(number)))
    });
    apply(store.as_ref(), images.collect());
    store
}

#[test]
fn a_table_that_has_no_room_is_refused_and_others_stay() {
    let made = [table(1, &BIGINTS), table(2, &[DataType::BigInt; 40])];
    // One table of three columns takes 400,000 bytes.
    let stores = WithColumns::new(Arc::new(Memory), 1_000_000);
    let store = filled(&stores, &made);
    let all: Vec<usize> = (0..40).collect();
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1, 2]));
    let bytes = stores.bytes();
    assert!(!check(store.snapshot().as_ref(), &made[1], &all));
    assert_eq!(stores.bytes(), bytes);
    assert!(check(store.snapshot().as_ref(), &made[1], &[7]));
    assert!(stores.bytes() <= 1_000_000 && stores.bytes() > bytes);
    // With those that are there it would be too much.
    assert!(check(store.snapshot().as_ref(), &made[1], &all[..30].iter().map(|_| 9).collect::<Vec<_>>()));
    assert!(check(store.snapshot().as_ref(), &made[1], &all[..9]));
    assert!(stores.bytes() <= 1_000_000);
}

#[test]
fn the_table_that_nobody_has_asked_for_longest_goes() {
    let made = [table(1, &BIGINTS), table(2, &BIGINTS), table(3, &BIGINTS)];
    let stores = WithColumns::new(Arc::new(Memory), 900_000);
    let store = filled(&stores, &made);
    let array = |snapshot: &dyn Snapshot, number: usize| {
        let batches = snapshot.columns(&made[number], &[0, 1, 2]).unwrap().expect("there is room");
        assert!(stores.bytes() <= 900_000);
        batches[0].columns[0].clone()
    };
    let snapshot = store.snapshot();
    let (first, second) = (array(snapshot.as_ref(), 0), array(snapshot.as_ref(), 1));
    assert!(Arc::ptr_eq(&first, &array(snapshot.as_ref(), 0)));
    array(snapshot.as_ref(), 2);
    assert!(Arc::ptr_eq(&first, &array(snapshot.as_ref(), 0)), "it was asked for after the second one");
    assert!(!Arc::ptr_eq(&second, &array(snapshot.as_ref(), 1)), "it was made anew");
}

#[test]
fn texts_that_are_longer_than_anybody_thought_are_refused_on_the_way() {
    let made = [table(1, &[DataType::BigInt, DataType::Text(None)])];
    let stores = WithColumns::new(Arc::new(Memory), 2_000_000);
    let store = stores.create(catalog(&made)).unwrap();
    let row = |number, text: &str| Some([Value::BigInt(number), Value::text(text)].into_iter().collect());
    let rows = |text: &str| (0..ROWS).map(|number| image(1, number, row(number, text))).collect();
    apply(store.as_ref(), rows(&"long ".repeat(100)));
    assert!(!check(store.snapshot().as_ref(), &made[0], &[1]));
    assert!(!check(store.snapshot().as_ref(), &made[0], &[0, 1]));
    assert_eq!(stores.bytes(), 0);
    assert!(check(store.snapshot().as_ref(), &made[0], &[0]), "the others have room");
    // What grows later is forgotten with the question that finds it.
    let short = WithColumns::new(Arc::new(Memory), 2_000_000);
    let store = short.create(catalog(&made)).unwrap();
    apply(store.as_ref(), rows("short"));
    assert!(check(store.snapshot().as_ref(), &made[0], &[1]));
    assert!(short.bytes() > 0);
    apply(store.as_ref(), rows(&"long ".repeat(100)));
    assert!(check(store.snapshot().as_ref(), &made[0], &[1]));
    assert_eq!(short.bytes(), 0);
    assert!(!check(store.snapshot().as_ref(), &made[0], &[1]));
}
