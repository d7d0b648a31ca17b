//! Snapshots of the state while it changes, compared with the plain model.

use memory::Memory;
use proptest::prelude::*;
use state::{AfterImage, KeyRange, PlainState, RowId, Snapshot, Stores, Version};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use types::{Catalog, Deferral, Index, Key, Row, Table, TableId, Value};

fn row(value: i64) -> Row {
    Arc::from([Value::BigInt(value)])
}

fn key(number: u16) -> Key {
    Key::from_bytes(&number.to_be_bytes())
}

fn images(changes: &BTreeMap<(u32, u16), Option<i64>>) -> Vec<AfterImage> {
    changes
        .iter()
        .map(|((table, number), value)| AfterImage {
            row: RowId { table: TableId(*table), key: key(*number) },
            value: value.map(row),
        })
        .collect()
}

fn collect(
    snapshot: &dyn Snapshot,
    table: u32,
    range: &KeyRange,
    reverse: bool,
    limit: usize,
) -> Vec<(Key, Row)> {
    let mut rows = Vec::new();
    let scanned = snapshot.scan(TableId(table), range, reverse, &mut |key, row| {
        rows.push((key.clone(), row.clone()));
        if rows.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    scanned.expect("memory can be read");
    rows
}

fn assert_equal(snapshot: &dyn Snapshot, model: &PlainState) {
    for table in 0..3 {
        let expected = collect(model, table, &KeyRange::ALL, false, usize::MAX);
        assert_eq!(collect(snapshot, table, &KeyRange::ALL, false, usize::MAX), expected);
        for number in 0..48 {
            let key = key(number);
            assert_eq!(snapshot.get(TableId(table), &key), Ok(model.get(TableId(table), &key)));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Apply(BTreeMap<(u32, u16), Option<i64>>),
    Hold,
    HoldPrevious,
    Release(usize),
    Scan { table: u32, start: (u8, u16), end: (u8, u16), reverse: bool, limit: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let changes = prop::collection::btree_map((0u32..3, 0u16..48), prop::option::of(any::<i64>()), 0..40);
    let bound = (0u8..3, 0u16..48);
    prop_oneof![
        4 => changes.prop_map(Step::Apply),
        2 => Just(Step::Hold),
        1 => Just(Step::HoldPrevious),
        2 => (0usize..8).prop_map(Step::Release),
        2 => (0u32..3, bound.clone(), bound, any::<bool>(), 1usize..60).prop_map(
            |(table, start, end, reverse, limit)| Step::Scan { table, start, end, reverse, limit }
        ),
    ]
}

fn bound((kind, number): (u8, u16)) -> Bound<Key> {
    match kind {
        0 => Bound::Included(key(number)),
        1 => Bound::Excluded(key(number)),
        _ => Bound::Unbounded,
    }
}

proptest! {
    #[test]
    fn each_snapshot_keeps_showing_its_state(steps in prop::collection::vec(step(), 1..40)) {
        let state = Memory.create(Arc::default()).expect("memory does not fail");
        let mut model = PlainState::default();
        let mut previous = (Version::GENESIS, model.clone());
        let mut held: Vec<(Arc<dyn Snapshot>, PlainState)> = Vec::new();
        let mut height = 0;
        for step in steps {
            match step {
                Step::Apply(changes) => {
                    height += 1;
                    previous = (state.version(), model.clone());
                    let images = images(&changes);
                    images.iter().for_each(|image| model.apply(image));
                    state.apply(Version::after_batch(height, 0), &images, None).expect("memory does not fail");
                }
                Step::Hold => held.push((state.snapshot(), model.clone())),
                Step::HoldPrevious => {
                    let snapshot = state.snapshot_at(previous.0);
                    held.push((snapshot.expect("the version before is there"), previous.1.clone()));
                }
                Step::Release(at) => if at < held.len() { drop(held.swap_remove(at)) },
                Step::Scan { table, start, end, reverse, limit } => {
                    let range = KeyRange { start: bound(start), end: bound(end) };
                    for (snapshot, model) in &held {
                        let found = collect(&**snapshot, table, &range, reverse, limit);
                        prop_assert_eq!(found, collect(model, table, &range, reverse, limit));
                    }
                }
            }
        }
        held.push((state.snapshot(), model.clone()));
        held.iter().for_each(|(snapshot, model)| assert_equal(snapshot.as_ref(), model));
        for table in 0..3 {
            let rows = model.tables.get(&TableId(table)).map_or(0, |rows| rows.len() as u64);
            prop_assert_eq!(state.rows(TableId(table)), rows);
        }
    }
}

fn index(number: u32, unique: bool) -> Index {
    Index {
        number,
        name: format!("i{number}"),
        columns: vec![0],
        unique,
        constraint: false,
        details: Default::default(),
        deferral: Deferral::Never,
        primary: false,
        method: types::IndexMethod::Ordered,
    }
}

/// Table 1 with these indexes, ordered ones or unique ones.
fn indexed(indexes: &[(u32, bool)]) -> Arc<Catalog> {
    let mut catalog = Catalog::clone(&catalog(&[1]));
    if !indexes.is_empty() {
        let indexes = indexes.iter().map(|(number, unique)| index(*number, *unique));
        catalog.indexes.insert(TableId(1), indexes.collect());
    }
    Arc::new(catalog)
}

proptest! {
    /// Rows come and go, indexes are made and dropped; what every snapshot shows of both is the plain model's.
    #[test]
    fn entries_follow_from_the_rows_in_every_snapshot(
        steps in prop::collection::vec(
            (prop::collection::btree_map(0u16..24, prop::option::of(0i64..6), 0..12), 0u8..8, any::<bool>()),
            1..24,
        ),
    ) {
        // Numbers are never used twice.
        let (mut indexes, mut next) = (vec![(10, false)], 11);
        let state = Memory.create(indexed(&indexes)).expect("memory does not fail");
        let mut model = PlainState::new(indexed(&indexes));
        let mut held = Vec::new();
        for (height, (changes, schema, hold)) in (1..).zip(steps) {
            // No two rows have the same value: a unique index would not have been made.
            let change = |(number, value): (u16, Option<i64>)| {
                ((1, number), value.map(|value| 10 * i64::from(number) + value))
            };
            let images = images(&changes.into_iter().map(change).collect());
            // A schema change is alone in its batch.
            let catalog = match schema {
                0 | 1 => {
                    indexes.push((next, schema == 1));
                    next += 1;
                    Some(indexed(&indexes))
                }
                2 | 3 if !indexes.is_empty() => {
                    indexes.remove(height as usize % indexes.len());
                    Some(indexed(&indexes))
                }
                _ => None,
            };
            match &catalog {
                Some(catalog) => model.change_catalog(catalog.clone()),
                None => images.iter().for_each(|image| model.apply(image)),
            }
            let images = if catalog.is_some() { Vec::new() } else { images };
            state.apply(Version::after_batch(height, 0), &images, catalog).expect("memory does not fail");
            if hold {
                held.push((state.snapshot(), model.clone()));
            }
        }
        held.push((state.snapshot(), model));
        for (snapshot, model) in &held {
            for number in 10..next {
                let index = index(number, true);
                for table in [index.entries(), index.unique_entries()] {
                    for reverse in [false, true] {
                        let found = collect(&**snapshot, table.0, &KeyRange::ALL, reverse, usize::MAX);
                        let expected = collect(model, table.0, &KeyRange::ALL, reverse, usize::MAX);
                        prop_assert_eq!(found, expected, "index {}", number);
                    }
                }
            }
            // And the model's entries are those of its rows, one each.
            let rows = collect(model, 1, &KeyRange::ALL, false, usize::MAX);
            for index in model.catalog().indexes_of(TableId(1)) {
                let mut expected: Vec<Key> = rows.iter().map(|(key, row)| index.entry(key, row)).collect();
                expected.sort();
                let entries = collect(model, index.entries().0, &KeyRange::ALL, false, usize::MAX);
                prop_assert_eq!(entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), expected);
            }
        }
    }
}

#[test]
fn a_scan_of_many_rows_reads_the_index_in_pieces_both_ways() {
    let state = Memory.create(Arc::default()).expect("memory does not fail");
    let changes: BTreeMap<_, _> =
        (0..5_000u16).map(|number| ((1, number), Some(i64::from(number)))).collect();
    state.apply(Version::after_batch(1, 0), &images(&changes), None).expect("memory does not fail");
    let before = state.snapshot();
    let gone: BTreeMap<_, _> = (0..5_000u16).step_by(2).map(|number| ((1, number), None)).collect();
    state.apply(Version::after_batch(2, 0), &images(&gone), None).expect("memory does not fail");
    let numbers = |snapshot: &dyn Snapshot, reverse| {
        let rows = collect(snapshot, 1, &KeyRange::ALL, reverse, usize::MAX);
        rows.into_iter()
            .map(|(key, _)| u16::from_be_bytes(key.as_bytes().try_into().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(before.as_ref(), false), (0..5_000).collect::<Vec<_>>());
    assert_eq!(numbers(before.as_ref(), true), (0..5_000).rev().collect::<Vec<_>>());
    assert_eq!(
        numbers(state.snapshot().as_ref(), true),
        (0..2_500).rev().map(|half| 2 * half + 1).collect::<Vec<_>>()
    );
}

#[test]
fn versions_that_nobody_holds_are_forgotten() {
    let state = Memory.create(Arc::default()).expect("memory does not fail");
    let one = |value| images(&BTreeMap::from([((1, 1), value)]));
    for height in 1..=3 {
        state
            .apply(Version::after_batch(height, 0), &one(Some(height as i64)), None)
            .expect("memory does not fail");
    }
    assert!(state.snapshot_at(Version::after_batch(1, 0)).is_none(), "two versions old");
    assert!(state.snapshot_at(Version::after_batch(2, 0)).is_some(), "the version before");
    assert!(state.snapshot_at(Version::after_batch(9, 0)).is_none(), "not yet");
    let third = state.snapshot();
    for height in 4..=9 {
        state.apply(Version::after_batch(height, 0), &one(None), None).expect("memory does not fail");
    }
    let again = state.snapshot_at(Version::after_batch(3, 0)).expect("held");
    drop(third);
    assert_eq!(again.get(TableId(1), &key(1)), Ok(Some(row(3))));
}

fn catalog(tables: &[u32]) -> Arc<Catalog> {
    let table = |id: u32| Table {
        id: TableId(id),
        name: format!("t{id}"),
        columns: vec![],
        primary_key: vec![],
        primary_key_name: String::new(),
        checks: vec![],
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    let tables = tables.iter().map(|id| (format!("t{id}"), Arc::new(table(*id)))).collect();
    Arc::new(Catalog { tables, ..Catalog::default() })
}

#[test]
fn a_dropped_table_stays_visible_to_older_snapshots_only() {
    let state = Memory.create(catalog(&[1, 2])).expect("memory does not fail");
    let changes: BTreeMap<_, _> =
        (0..300).map(|number| ((1 + u32::from(number % 2), number), Some(7))).collect();
    state.apply(Version::after_batch(1, 0), &images(&changes), None).expect("memory does not fail");
    let before = state.snapshot();
    state.apply(Version::after_batch(2, 0), &[], Some(catalog(&[2]))).expect("memory does not fail");
    let (all, after) = (KeyRange::ALL, state.snapshot());
    assert_eq!((state.rows(TableId(1)), state.rows(TableId(2))), (0, 150));
    assert_ne!(before.catalog().digest(), after.catalog().digest());
    assert_eq!(after.catalog().digest(), state.catalog_digest());
    for height in 3..6 {
        state
            .apply(Version::after_batch(height, 0), &images(&BTreeMap::from([((2, 9), Some(8))])), None)
            .expect("memory does not fail");
        assert_eq!(collect(&*before, 1, &all, false, 999).len(), 150);
        assert_eq!(collect(&*after, 1, &all, false, 999).len(), 0);
        assert_eq!(after.get(TableId(1), &key(2)), Ok(None));
        assert_eq!(before.get(TableId(1), &key(2)), Ok(Some(row(7))));
    }
    drop((before, after));
    state.apply(Version::after_batch(6, 0), &[], None).expect("memory does not fail");
    state.apply(Version::after_batch(7, 0), &[], None).expect("memory does not fail");
    assert_eq!(collect(&*state.snapshot(), 1, &all, false, 999).len(), 0);
    assert_eq!(collect(&*state.snapshot(), 2, &all, false, 999).len(), 150);
}

/// Every batch writes the same number into every row, so a reader that sees two numbers has seen half a batch.
#[test]
fn readers_see_a_batch_whole_or_not_at_all() {
    const ROWS: u16 = 600;
    let state = Memory.create(Arc::default()).expect("memory does not fail");
    let batch = |number: i64| {
        let changes: BTreeMap<_, _> = (0..ROWS)
            // Some rows come and go.
            .map(|row| ((1, row), (row % 5 > 0 || (number + i64::from(row)) % 2 == 0).then_some(number)))
            .collect();
        images(&changes)
    };
    state.apply(Version::after_batch(1, 0), &batch(1), None).expect("memory does not fail");
    let (stop, checked) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (state, stop, checked) = (&state, &stop, &checked);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let snapshot = state.snapshot();
                    // This row is always there.
                    let one = snapshot.get(TableId(1), &key(1)).unwrap().expect("a row");
                    let Value::BigInt(number) = one[0] else { panic!("a bigint") };
                    let rows = collect(&*snapshot, 1, &KeyRange::ALL, reader == 1, usize::MAX);
                    assert!(rows.iter().all(|(_, found)| *found == row(number)), "half a batch");
                    let expected = (0..ROWS).filter(|row| row % 5 > 0 || (number + i64::from(*row)) % 2 == 0);
                    assert_eq!(rows.len(), expected.count());
                    for at in (0..ROWS).step_by(7) {
                        let expected = (at % 5 > 0 || (number + i64::from(at)) % 2 == 0).then(|| row(number));
                        assert_eq!(snapshot.get(TableId(1), &key(at)), Ok(expected));
                    }
                    checked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut number = 1;
        while checked.load(Ordering::Relaxed) < 200 && number < 100_000 {
            number += 1;
            state
                .apply(Version::after_batch(number as u64, 0), &batch(number), None)
                .expect("memory does not fail");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(checked.load(Ordering::Relaxed) >= 3, "the readers have read");
}
