//! Columns miss no batch, and go with their store.

use crate::hooked::{Hooked, Hooks};
use crate::world::{apply, catalog, check, image, store, table};
use columns::WithColumns;
use memory::Memory;
use state::conformance::{FailingStores, Failures, Operation};
use state::{AfterImage, Stores};
use std::sync::Arc;
use types::{DataType, Value};

const TWO: [DataType; 2] = [DataType::BigInt, DataType::BigInt];

fn images(numbers: impl IntoIterator<Item = i64>, value: i64) -> Vec<AfterImage> {
    let row = |number| Some([Value::BigInt(number), Value::BigInt(value)].into_iter().collect());
    numbers.into_iter().map(|number| image(1, number, row(number))).collect()
}

#[test]
fn a_batch_between_the_snapshot_and_the_first_question_is_not_missed() {
    let made = [table(1, &TWO)];
    let store = store(&made);
    apply(store.as_ref(), images(0..100, 1));
    let before = store.snapshot();
    apply(store.as_ref(), images(50..60, 2));
    let between = store.snapshot();
    apply(store.as_ref(), images(55..65, 3));
    assert!(check(before.as_ref(), &made[0], &[0, 1]));
    assert!(check(between.as_ref(), &made[0], &[0, 1]));
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
    apply(store.as_ref(), images(0..5, 4));
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
    assert!(!check(before.as_ref(), &made[0], &[0, 1]), "there are newer columns");
}

#[test]
fn a_batch_while_all_rows_are_read_is_not_missed() {
    let (made, hooks) = ([table(1, &TWO)], Arc::new(Hooks::default()));
    let store = WithColumns::new(Arc::new(Hooked(hooks.clone())), 1 << 30).create(catalog(&made)).unwrap();
    apply(store.as_ref(), images(0..100, 1));
    let (snapshot, applying) = (store.snapshot(), store.clone());
    *hooks.scan.lock() = Some(Box::new(move || {
        apply(applying.as_ref(), images(0..100, 2));
        apply(applying.as_ref(), images(90..110, 3));
    }));
    assert!(check(snapshot.as_ref(), &made[0], &[1]));
    assert!(hooks.scan.lock().is_none(), "it was done");
    assert!(check(store.snapshot().as_ref(), &made[0], &[1]));
    // And another column, which all rows are read for again.
    let (snapshot, applying) = (store.snapshot(), store.clone());
    *hooks.scan.lock() = Some(Box::new(move || apply(applying.as_ref(), images(200..300, 4))));
    assert!(check(snapshot.as_ref(), &made[0], &[0]));
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
}

#[test]
fn a_batch_that_is_there_before_its_writer_goes_on_is_not_missed() {
    let (made, hooks) = ([table(1, &TWO)], Arc::new(Hooks::default()));
    let store = WithColumns::new(Arc::new(Hooked(hooks.clone())), 1 << 30).create(catalog(&made)).unwrap();
    apply(store.as_ref(), images(0..100, 1));
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
    let (asking, table) = (store.clone(), made[0].clone());
    *hooks.applied.lock() = Some(Box::new(move || {
        assert!(check(asking.snapshot().as_ref(), &table, &[0, 1]));
    }));
    apply(store.as_ref(), images(90..110, 2));
    assert!(hooks.applied.lock().is_none(), "it was done");
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
}

#[test]
fn a_table_that_goes_while_all_rows_are_read_has_no_columns() {
    let (made, hooks) = ([table(1, &TWO)], Arc::new(Hooks::default()));
    let stores = WithColumns::new(Arc::new(Hooked(hooks.clone())), 1 << 30);
    let store = stores.create(catalog(&made)).unwrap();
    apply(store.as_ref(), images(0..100, 1));
    let (snapshot, applying) = (store.snapshot(), store.clone());
    *hooks.scan.lock() = Some(Box::new(move || {
        let version = state::Version::after_batch(applying.version().height() + 1, 0);
        applying.apply(version, &[], Some(catalog(&[table(2, &TWO)]))).unwrap();
    }));
    assert!(check(snapshot.as_ref(), &made[0], &[1]));
    assert_eq!(stores.bytes(), 0);
    assert!(!check(snapshot.as_ref(), &made[0], &[1]), "it is gone");
    assert!(!check(store.snapshot().as_ref(), &made[0], &[1]), "it is gone");
}

#[test]
fn rows_that_did_not_change_are_the_same_at_all_versions_between() {
    let made = [table(1, &TWO), table(2, &TWO)];
    let store = store(&made);
    apply(store.as_ref(), images(0..100, 1));
    let first = store.snapshot();
    let row = || Some([Value::BigInt(1), Value::BigInt(2)].into_iter().collect());
    let other = |number| vec![image(2, number, row())];
    apply(store.as_ref(), other(1));
    let second = store.snapshot();
    apply(store.as_ref(), other(2));
    assert!(check(first.as_ref(), &made[0], &[1]));
    // Whoever asks first with a newer snapshot takes the older answers from nobody.
    apply(store.as_ref(), other(3));
    assert!(check(store.snapshot().as_ref(), &made[0], &[1]));
    apply(store.as_ref(), other(4));
    let (third, newest) = (store.snapshot(), store.snapshot());
    assert!(check(newest.as_ref(), &made[0], &[0]));
    assert!(check(third.as_ref(), &made[0], &[0, 1]));
    assert!(!check(second.as_ref(), &made[0], &[1]), "columns were made for a newer version");
}

#[test]
fn columns_that_most_has_changed_of_are_made_anew() {
    let made = [table(1, &TWO), table(2, &TWO)];
    let stores = WithColumns::new(Arc::new(Memory), 1 << 30);
    let store = stores.create(catalog(&made)).unwrap();
    apply(store.as_ref(), images(0..60_000, 1));
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
    let bytes = stores.bytes();
    assert!(bytes > 60_000 * 16);
    let old = store.snapshot();
    (2..5).for_each(|value| apply(store.as_ref(), images(0..60_000, value)));
    assert!(check(old.as_ref(), &made[0], &[0, 1]), "they are there as long as nobody asks");
    assert!(check(store.snapshot().as_ref(), &made[1], &[0, 1]));
    assert!(stores.bytes() < bytes / 10, "{} bytes", stores.bytes());
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
    apply(store.as_ref(), images(0..10, 9));
    assert!(check(store.snapshot().as_ref(), &made[0], &[0, 1]));
}

#[test]
fn nothing_stays_where_a_row_cannot_be_read() {
    let (made, failures) = ([table(1, &TWO)], Arc::new(Failures::default()));
    let failing = FailingStores::new(Arc::new(Memory), failures.clone());
    let stores = WithColumns::new(Arc::new(failing), 1 << 30);
    let store = stores.create(catalog(&made)).unwrap();
    apply(store.as_ref(), images(0..100, 1));
    failures.fail(Operation::Read, 40);
    assert!(store.snapshot().columns(&made[0], &[1]).is_err(), "all rows are read");
    assert_eq!(stores.bytes(), 0);
    failures.mend();
    assert!(check(store.snapshot().as_ref(), &made[0], &[1]));
    apply(store.as_ref(), images(10..20, 2));
    failures.fail(Operation::Read, 5);
    assert!(store.snapshot().columns(&made[0], &[1]).is_err(), "what has changed is read");
    assert_eq!(stores.bytes(), 0);
    failures.mend();
    assert!(check(store.snapshot().as_ref(), &made[0], &[1]));
    failures.fail(Operation::Apply, 0);
    let version = state::Version::after_batch(9, 0);
    assert!(store.apply(version, &images(0..10, 3), None).is_err());
    assert_eq!(stores.bytes(), 0, "nobody knows what the rows are");
}

#[test]
fn columns_go_with_their_store() {
    let made = [table(1, &TWO)];
    let stores = WithColumns::new(Arc::new(Memory), 1 << 30);
    let store = stores.create(catalog(&made)).unwrap();
    apply(store.as_ref(), images(0..100, 1));
    let snapshot = store.snapshot();
    assert_eq!(snapshot.about_rows(made[0].id), Some(100));
    assert!(check(snapshot.as_ref(), &made[0], &[1]));
    assert!(stores.bytes() > 800);
    drop(store);
    assert_eq!(stores.bytes(), 0);
    assert!(!check(snapshot.as_ref(), &made[0], &[1]), "whoever has a snapshot reads rows");
}
