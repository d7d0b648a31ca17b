//! Columns are brought up while questions come, and only then.

use crate::hooked::{Hooked, Hooks};
use crate::world::{apply, catalog, check, image, table};
use columns::WithColumns;
use state::{AfterImage, Store, Stores};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use types::{DataType, Table, Value};

const TWO: [DataType; 2] = [DataType::BigInt, DataType::BigInt];

/// Two tables, and what was read of them.
struct Kept {
    hooks: Arc<Hooks>,
    stores: WithColumns,
    store: Arc<dyn Store>,
    tables: [Arc<Table>; 2],
}

impl Kept {
    fn new() -> Kept {
        let (tables, hooks) = ([table(1, &TWO), table(2, &TWO)], Arc::new(Hooks::default()));
        let stores = WithColumns::new(Arc::new(Hooked(hooks.clone())), 1 << 30);
        let store = stores.create(catalog(&tables)).unwrap();
        let kept = Kept { hooks, stores, store, tables };
        kept.change(0..100, 1);
        kept
    }

    fn change(&self, numbers: std::ops::Range<i64>, value: i64) {
        let row = |number| Some([Value::BigInt(number), Value::BigInt(value)].into_iter().collect());
        let both = numbers.flat_map(|number| [1, 2].map(|table| image(table, number, row(number))));
        apply(self.store.as_ref(), both.collect::<Vec<AfterImage>>());
    }

    /// Asks about a table at the newest version: how many rows are looked up for that.
    fn looked_up_for(&self, table: usize) -> usize {
        let before = self.hooks.looked_up.load(Relaxed);
        assert!(check(self.store.snapshot().as_ref(), &self.tables[table], &[0, 1]));
        self.hooks.looked_up.load(Relaxed) - before
    }

    /// How many rows are looked up in rounds of keeping up.
    fn looked_up_in(&self, rounds: usize) -> usize {
        let before = self.hooks.looked_up.load(Relaxed);
        (0..rounds).for_each(|_| self.stores.keep_up());
        self.hooks.looked_up.load(Relaxed) - before
    }
}

#[test]
fn a_question_finds_written_what_was_there_two_rounds_before() {
    let kept = Kept::new();
    assert_eq!(kept.looked_up_for(0), 0, "all rows are read");
    kept.change(0..10, 2);
    assert_eq!(kept.looked_up_in(1), 0, "a question may have begun");
    kept.change(8..15, 3);
    assert_eq!(kept.looked_up_in(1), 10, "of one table: nobody asks about the other");
    assert_eq!(kept.looked_up_for(0), 7);
    assert_eq!(kept.looked_up_for(0), 0);
}

#[test]
fn nothing_is_written_where_nobody_has_asked_lately() {
    let kept = Kept::new();
    kept.looked_up_for(0);
    kept.looked_up_in(51);
    kept.change(0..10, 2);
    assert_eq!(kept.looked_up_in(5), 0);
    assert_eq!(kept.looked_up_for(0), 10);
    kept.change(0..10, 3);
    assert_eq!(kept.looked_up_in(2), 10, "somebody has asked again");
}

#[test]
fn who_has_begun_to_ask_gets_all_tables_as_they_were() {
    let kept = Kept::new();
    (0..2).for_each(|table| assert_eq!(kept.looked_up_for(table), 0));
    kept.change(0..10, 2);
    let snapshot = kept.store.snapshot();
    assert!(check(snapshot.as_ref(), &kept.tables[0], &[0, 1]));
    for value in 3..9 {
        kept.change(5..15, value);
        kept.stores.keep_up();
    }
    assert!(check(snapshot.as_ref(), &kept.tables[1], &[0, 1]), "nobody has written what is newer");
    drop(snapshot);
    assert!(kept.looked_up_in(2) > 0, "nobody holds it back any more");
}

#[test]
fn a_table_that_changes_too_much_is_left_to_the_next_question() {
    let kept = Kept::new();
    kept.looked_up_for(0);
    kept.looked_up_in(1);
    for block in 0..3 {
        kept.change(block * 40_000..(block + 1) * 40_000, 2);
    }
    assert_eq!(kept.looked_up_in(2), 0);
    assert_eq!(kept.looked_up_for(0), 0, "all rows are read");
}

#[test]
fn a_thread_does_that_until_the_stores_go() {
    let Kept { hooks, stores, store, tables } = Kept::new();
    let stores = stores.kept_up().unwrap();
    assert!(check(store.snapshot().as_ref(), &tables[0], &[0, 1]));
    let changed = image(1, 5, Some([Value::BigInt(5), Value::BigInt(7)].into_iter().collect()));
    apply(store.as_ref(), vec![changed]);
    let begun = Instant::now();
    while hooks.looked_up.load(Relaxed) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody writes it");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(stores);
    assert!(check(store.snapshot().as_ref(), &tables[0], &[0, 1]));
}
