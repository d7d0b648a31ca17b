//! The graph against its definition: every pair that conflicts is in order, and nobody else waits where nothing has
//! been put behind a gate and no segments have been united.

use super::edges::{Plan, SEGMENTS_MAX, cuts};
use proptest::prelude::*;
use state::{Footprint, KeyRange, Region};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Mutex;
use types::{ColumnSet, Granularity, Key, SqlError, TableId};

type Footprints = Vec<Result<Footprint, SqlError>>;

fn key(number: u16) -> Key {
    Key::from_bytes(&number.to_be_bytes())
}

fn row(number: u16, columns: ColumnSet) -> Region {
    Region::row(TableId(1), key(number), columns)
}

fn writer(region: Region) -> Result<Footprint, SqlError> {
    Ok(Footprint { reads: vec![], writes: vec![region] })
}

fn reader(region: Region) -> Result<Footprint, SqlError> {
    Ok(Footprint { reads: vec![region], writes: vec![] })
}

fn everything(columns: ColumnSet) -> Region {
    Region { table: TableId(1), range: KeyRange::ALL, columns }
}

fn bound(kind: u8, number: u16) -> Bound<Key> {
    match kind {
        0 => Bound::Included(key(number)),
        1 => Bound::Excluded(key(number)),
        _ => Bound::Unbounded,
    }
}

/// By node: which transactions it waits for, directly or through others.
fn waits_for(plan: &Plan) -> Vec<Vec<bool>> {
    let transactions = plan.transactions() as usize;
    let nodes = plan.predecessors().count();
    let mut before = vec![vec![false; transactions]; nodes];
    let mut open: Vec<u32> = plan.predecessors().collect();
    let mut ready: Vec<u32> = (0..nodes as u32).filter(|node| open[*node as usize] == 0).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        let mut known = before[node as usize].clone();
        if (node as usize) < transactions {
            known[node as usize] = true;
        }
        for successor in plan.successors(node) {
            let successor = *successor as usize;
            before[successor].iter_mut().zip(&known).for_each(|(to, from)| *to |= from);
            open[successor] -= 1;
            if open[successor] == 0 {
                ready.push(successor as u32);
            }
        }
    }
    assert_eq!(done, nodes, "there is no cycle");
    before
}

/// Keys on, before and behind every bound that tests use.
fn samples() -> Vec<Key> {
    let beside = |number: u16| [key(number), Key::from_bytes(&[&number.to_be_bytes()[..], &[0]].concat())];
    (0..60).flat_map(beside).chain([Key::default(), Key::from_bytes(&[255])]).collect()
}

fn conflict(a: &Footprint, b: &Footprint, keys: &[Key]) -> bool {
    let meet = |a: &[Region], b: &[Region]| {
        a.iter().any(|a| {
            b.iter().any(|b| {
                a.table == b.table
                    && a.columns.intersects(b.columns)
                    && keys.iter().any(|key| a.range.contains(key) && b.range.contains(key))
            })
        })
    };
    meet(&a.writes, &b.reads) || meet(&a.reads, &b.writes) || meet(&a.writes, &b.writes)
}

/// Into how many segments all regions together cut a table at most: with few, none are ever united.
fn segments(footprints: &Footprints) -> usize {
    let mut starts = BTreeMap::<TableId, BTreeSet<_>>::new();
    for footprint in footprints.iter().flatten() {
        for region in footprint.reads.iter().chain(&footprint.writes) {
            let (start, end) = cuts(&region.range);
            starts.entry(region.table).or_default().extend([Some(start), end].into_iter().flatten());
        }
    }
    1 + starts.values().map(BTreeSet::len).max().unwrap_or(0)
}

fn regions(keys: u16) -> impl Strategy<Value = Vec<Region>> {
    let region = (0..2u32, 0..6u8, 0..3u8, 0..keys, 0..3u8, 0..keys, 1..8u8).prop_map(
        |(table, shape, start, first, end, last, columns)| {
            let columns = (0..3).filter(|bit| columns >> bit & 1 == 1);
            let columns = columns.fold(ColumnSet::EMPTY, |set, ordinal| set | ColumnSet::column(ordinal));
            let table = TableId(table);
            match shape {
                0 | 1 => {
                    let (first, last) = (first.min(last), first.max(last));
                    Region {
                        table,
                        range: KeyRange { start: bound(start, first), end: bound(end, last) },
                        columns,
                    }
                }
                2 => Region { table, range: KeyRange::prefix(key(first)), columns },
                _ => Region::row(table, key(first), columns),
            }
        },
    );
    prop::collection::vec(region, 0..3)
}

fn batches(keys: u16, size: usize) -> impl Strategy<Value = Footprints> {
    let footprint =
        (regions(keys), regions(keys)).prop_map(|(reads, writes)| Ok(Footprint { reads, writes }));
    prop::collection::vec(footprint, 0..size)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whoever_conflicts_waits_for_the_earlier_one(
        footprints in prop_oneof![batches(4, 12), batches(60, 80), batches(8, 50)],
    ) {
        let plan = Plan::new(&footprints, Granularity::Column);
        let before = waits_for(&plan);
        let keys = samples();
        let gates = plan.predecessors().count() > footprints.len();
        let exact = !gates && segments(&footprints) <= SEGMENTS_MAX;
        for (later, footprint) in footprints.iter().enumerate() {
            let footprint = footprint.as_ref().expect("all are analysed");
            for (earlier, other) in footprints[..later].iter().enumerate() {
                let other = other.as_ref().expect("all are analysed");
                if conflict(other, footprint, &keys) {
                    prop_assert!(before[later][earlier], "{later} waits for {earlier}: {footprint:?} {other:?}");
                } else if exact {
                    prop_assert!(!plan.successors(earlier as u32).contains(&(later as u32)), "{earlier} → {later}");
                }
            }
            prop_assert!(!before[later][later..].contains(&true), "nobody waits for a later one");
        }
    }

    #[test]
    fn every_transaction_runs_once_behind_all_it_waits_for(footprints in batches(8, 60)) {
        let plan = Plan::new(&footprints, Granularity::Column);
        let before = waits_for(&plan);
        let ran = Mutex::new(Vec::new());
        super::schedule::run(&plan, &|node| ran.lock().expect("no panic").push(node as usize));
        let ran = ran.into_inner().expect("no panic");
        let mut place = vec![usize::MAX; footprints.len()];
        for (position, node) in ran.iter().enumerate() {
            prop_assert_eq!(place[*node], usize::MAX);
            place[*node] = position;
        }
        for (node, before) in before[..footprints.len()].iter().enumerate() {
            prop_assert!(place[node] != usize::MAX);
            prop_assert!(before.iter().enumerate().all(|(other, waits)| !waits || place[other] < place[node]));
        }
    }
}

#[test]
fn per_row_all_columns_are_one() {
    let footprints: Footprints = (0..2).map(|column| writer(row(1, ColumnSet::column(column)))).collect();
    assert_eq!(Plan::new(&footprints, Granularity::Column).edges(), 0);
    assert_eq!(Plan::new(&footprints, Granularity::Row).edges(), 1);
}

const COUNT: u16 = 2_000;

#[test]
fn a_hot_row_has_as_many_edges_as_transactions() {
    let plan = Plan::new(
        &(0..COUNT).map(|_| writer(row(1, ColumnSet::ALL))).collect::<Footprints>(),
        Granularity::Column,
    );
    assert_eq!(plan.edges(), usize::from(COUNT) - 1);
    let turns =
        |n| if n % 100 == 0 { writer(row(1, ColumnSet::ALL)) } else { reader(row(1, ColumnSet::ALL)) };
    let plan = Plan::new(&(0..COUNT).map(turns).collect::<Footprints>(), Granularity::Column);
    assert!(plan.edges() <= 2 * usize::from(COUNT), "{} edges", plan.edges());
}

#[test]
fn scans_of_a_table_full_of_writers_have_linear_edges_and_gates() {
    // Nine writers of rows of their own between any two scans of everything.
    let turns = |n| match n % 10 {
        0 => reader(everything(ColumnSet::ALL)),
        _ => writer(row(n, ColumnSet::ALL)),
    };
    let plan = Plan::new(&(0..COUNT).map(turns).collect::<Footprints>(), Granularity::Column);
    assert!(plan.edges() <= 8 * usize::from(COUNT), "{} edges", plan.edges());
    let nodes = plan.predecessors().count();
    assert!(nodes <= 3 * usize::from(COUNT), "{nodes} nodes");
    // Half scan, then half write.
    let half =
        |n| if n < COUNT / 2 { reader(everything(ColumnSet::ALL)) } else { writer(row(n, ColumnSet::ALL)) };
    let plan = Plan::new(&(0..COUNT).map(half).collect::<Footprints>(), Granularity::Column);
    assert!(plan.edges() <= 8 * usize::from(COUNT), "{} edges", plan.edges());
}
