//! Random histories of rows and tables.

use crate::world::{
    TYPES, apply, catalog, check, image, made_of_rows, row, rows_of, scanned, some_ordinals, store,
    stores_and_store, table,
};
use columns::WithColumns;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{AfterImage, ColumnBatch, Snapshot, Store, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::Table;

/// An answer that somebody has, with a copy.
struct Held {
    table: Arc<Table>,
    ordinals: Vec<usize>,
    batches: Vec<ColumnBatch>,
    rows: Vec<String>,
}

struct History {
    stores: WithColumns,
    store: Arc<dyn Store>,
    tables: Vec<Arc<Table>>,
    next: u32,
    keys: i64,
    snapshots: Vec<Arc<dyn Snapshot>>,
    held: Vec<Held>,
    random: StdRng,
    /// Questions of older snapshots, and how many were answered.
    older: (usize, usize),
}

impl History {
    fn new(seed: u64, keys: i64) -> History {
        let tables = vec![table(1, &TYPES), table(2, &TYPES)];
        let (stores, store) = stores_and_store(&tables);
        History {
            stores,
            store,
            tables,
            next: 3,
            keys,
            snapshots: Vec::new(),
            held: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            older: (0, 0),
        }
    }

    fn change(&mut self, changes: i64, deleted: f64) {
        let mut images: BTreeMap<(u32, i64), AfterImage> = BTreeMap::new();
        for _ in 0..changes {
            let table = self.tables[self.random.random_range(0..self.tables.len())].id.0;
            let number = self.random.random_range(0..self.keys);
            let is_gone = self.random.random_bool(deleted);
            let row = (!is_gone).then(|| row(number, &TYPES, &mut self.random));
            images.insert((table, number), image(table, number, row));
        }
        apply(self.store.as_ref(), images.into_values().collect());
    }

    /// A table goes, and comes back with another number.
    fn make_again(&mut self) {
        let one = self.random.random_range(0..self.tables.len());
        self.tables[one] = table(self.next, &TYPES);
        self.next += 1;
        let version = Version::after_batch(self.store.version().height() + 1, 0);
        self.store.apply(version, &[], Some(catalog(&self.tables))).unwrap();
    }

    fn ask(&mut self) {
        let table = self.tables[self.random.random_range(0..self.tables.len())].clone();
        let ordinals = some_ordinals(&mut self.random, TYPES.len());
        let snapshot = self.store.snapshot();
        let batches =
            snapshot.columns(&table, &ordinals).unwrap().expect("at the newest version there are columns");
        let rows = rows_of(&batches, &table, &ordinals);
        assert_eq!(rows, scanned(snapshot.as_ref(), &table, &ordinals), "{ordinals:?}");
        if self.random.random_bool(0.4) {
            self.held.push(Held { table, ordinals, batches, rows });
        }
        if self.random.random_bool(0.4) {
            self.snapshots.push(snapshot);
        }
        if let Some(snapshot) = self.snapshots.get(self.random.random_range(0..8)).cloned() {
            let table = &self.tables[self.random.random_range(0..self.tables.len())];
            let ordinals = some_ordinals(&mut self.random, TYPES.len());
            self.older.0 += 1;
            self.older.1 += usize::from(check(snapshot.as_ref(), table, &ordinals));
            // Those that nobody keeps any more are made of rows.
            if snapshot.catalog().table(table.id).is_some() {
                let (made, pieces) = made_of_rows(snapshot.as_ref(), table, &ordinals);
                assert_eq!(made, scanned(snapshot.as_ref(), table, &ordinals), "{ordinals:?}");
                assert_eq!(pieces, made.len().div_ceil(8_192));
            } else {
                assert!(snapshot.read_columns(table, &ordinals).is_none(), "it is not there yet");
            }
        }
    }

    /// What somebody has does not change.
    fn check_held(&mut self) {
        for held in &self.held {
            assert_eq!(rows_of(&held.batches, &held.table, &held.ordinals), held.rows);
        }
        if self.held.len() > 6 {
            self.held.drain(..3);
        }
        if self.snapshots.len() > 8 {
            self.snapshots.drain(..3);
        }
    }

    fn run(&mut self, blocks: usize, changes: i64) {
        for _ in 0..blocks {
            let deleted = [0.05, 0.3, 0.9][self.random.random_range(0..3)];
            let changes = self.random.random_range(0..=changes);
            self.change(changes, deleted);
            if self.random.random_bool(0.03) {
                self.make_again();
            }
            if self.random.random_bool(0.3) {
                self.stores.keep_up();
            }
            if self.random.random_bool(0.5) {
                self.ask();
            }
            self.check_held();
        }
        assert!(self.older.1 > 0, "of {} questions of older snapshots some are answered", self.older.0);
    }
}

#[test]
fn answers_are_those_of_a_scan_in_small_tables() {
    (0..12).for_each(|seed| History::new(seed, 120).run(150, 60));
}

#[test]
fn answers_are_those_of_a_scan_in_tables_of_several_chunks() {
    for seed in 0..2 {
        let mut history = History::new(seed, 20_000);
        history.change(60_000, 0.0);
        history.run(24, 2_000);
    }
}

#[test]
fn rows_that_come_behind_all_others_and_holes_that_are_filled() {
    let made = [table(1, &TYPES)];
    let (store, mut random) = (store(&made), StdRng::seed_from_u64(7));
    let mut add = |numbers: std::ops::Range<i64>| {
        let images = numbers.map(|number| image(1, number, Some(row(number, &TYPES, &mut random))));
        apply(store.as_ref(), images.collect());
        assert!(check(store.snapshot().as_ref(), &made[0], &[0, 11, 10]));
    };
    add(0..9_000);
    add(9_000..17_000);
    let remove = |numbers: std::ops::Range<i64>| {
        apply(store.as_ref(), numbers.map(|number| image(1, number, None)).collect());
        assert!(check(store.snapshot().as_ref(), &made[0], &[0, 11, 10]));
        // From the arrays that were made for it, too.
        assert!(check(store.snapshot().as_ref(), &made[0], &[0, 11]));
    };
    remove(100..5_000);
    add(50..3_000);
    // Most of the table, so that it is made anew, and then all of it.
    remove(20..12_000);
    remove(0..17_000);
    add(5..10);
}
