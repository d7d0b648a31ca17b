//! The tree over a state, kept up: what has changed is hashed again, and nothing else.
//!
//! Rows are gathered into ranges, ranges into groups; where either ends follows from the content since its beginning
//! ([`TreeShape`]). A group's leaf stands in the tree over all tables. Whoever keeps the tree has a record of each group, which
//! says where its ranges begin and what their leaves are, and the list of all groups in memory.
//!
//! ```text
//!  changed keys ──▶ the ranges that they stand in ──read and hash──▶ new ranges ──▶ groups ──▶ leaves of the tree
//!                                  ranges beside them: as recorded ──────▲
//! ```
//!
//! A range that has changed may end somewhere else, and so may its group. Then the next ones are read too, until an end is where
//! it was before. Ends follow from content, so that happens soon.

use crate::growing::Growing;
use crate::row_hashes::{HashedRow, READ_ROWS, hash_on_all_threads, hash_rows};
use crate::{GroupHead, GroupRecord, KeyRange, RangeRecord, RangeRows, RowId, Snapshot, StoreError};
use proofs::state::TreeShape;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use types::{Key, Row, TableId};

/// Changed keys whose ranges are read and hashed side by side.
const KEYS_AHEAD: usize = 4_096;
/// Groups whose rows are read together, at most.
const GROUPS_TOGETHER: usize = 32;

/// All groups of a state, by table and first key.
pub type Groups = BTreeMap<RowId, GroupHead>;

/// Where the records of groups are read.
pub trait GroupRecords: Sync {
    /// The record of a group that [`Groups`] has.
    ///
    /// # Errors
    /// It cannot be read, or is not there.
    fn group(&self, first: &RowId) -> Result<GroupRecord, StoreError>;
}

/// A group that has come, or has changed; `None`: one that has gone.
pub type GroupChange = (RowId, Option<GroupRecord>);

/// Brings the groups of a state up to what it is now. `groups`: as they were, and are afterwards; `changed`: the rows that have
/// changed since then, ascending, each once; `snapshot`: the state as it is now; `records`: of the groups as they were; `rows`: of
/// some ranges as they were, and are afterwards, for the next time. `write` gets what has become of groups, ascending, each once.
///
/// Uses rayon's current pool, and gives the same for any number of threads. Memory: that of some ten thousand rows, beside
/// `groups`.
///
/// # Errors
/// Those of `snapshot`, of `records`, of `changed` and of `write`; then `groups` and `rows` are of no use any more.
pub fn bring_up(
    shape: TreeShape,
    groups: &mut Groups,
    snapshot: &dyn Snapshot,
    (records, rows): (&dyn GroupRecords, &RangeRows),
    changed: &mut dyn Iterator<Item = Result<RowId, StoreError>>,
    write: &mut dyn FnMut(GroupChange) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut tables: BTreeMap<TableId, bool> = groups.keys().map(|id| (id.table, false)).collect();
    let catalog = snapshot.catalog();
    tables.extend(catalog.tables.values().map(|table| (table.id, true)));
    tables.extend(catalog.kept_besides_tables().map(|(table, _)| (table, true)));
    let mut changed = changed.peekable();
    for (table, is_there) in tables {
        let growing = Growing::new(shape, table, Some(rows));
        let of = Before { table, snapshot, records, rows };
        let mut bringing =
            TableUp { shape, table, groups, of, write, growing, taken: Vec::new(), next: None };
        if !is_there {
            bringing.remove_all()?;
        }
        let (mut stretch, mut keys) = (Vec::new(), 0);
        // Rows of tables that the tree does not have count for nothing.
        while let Some(next) = changed.next_if(|next| next.as_ref().map_or(true, |next| next.table <= table))
        {
            let next = next?;
            if next.table < table || !is_there {
                continue;
            }
            bringing.plan(next.key, &mut stretch);
            keys += 1;
            if keys >= KEYS_AHEAD && !bringing.is_planned(changed.peek(), stretch.last()) {
                bringing.bring_up(std::mem::take(&mut stretch))?;
                keys = 0;
            }
        }
        bringing.bring_up(stretch)?;
        bringing.catch_up(None)?;
    }
    changed.find_map(Result::err).map_or(Ok(()), Err)
}

/// A group with rows that have changed.
struct Planned {
    /// Its first key; `None`: what stands in front of the first group.
    first: Option<Key>,
    /// Where the group behind it begins.
    next: Option<Key>,
    /// The changed keys, ascending; not of what stands in front of the first group, which is read whole.
    changed: Vec<Key>,
}

/// An old range, as it is taken over.
enum OldRange {
    /// As it was.
    Same(RangeRecord),
    /// Its rows as they are now.
    Rows(Vec<HashedRow>),
}

/// What is read of a table: its rows as they are now, its groups as they were.
#[derive(Clone, Copy)]
struct Before<'a> {
    table: TableId,
    snapshot: &'a dyn Snapshot,
    records: &'a dyn GroupRecords,
    rows: &'a RangeRows,
}

/// One table that is brought up.
struct TableUp<'a> {
    shape: TreeShape,
    table: TableId,
    groups: &'a mut Groups,
    of: Before<'a>,
    write: &'a mut dyn FnMut(GroupChange) -> Result<(), StoreError>,
    growing: Growing<'a>,
    /// First keys of the old groups that the groups which are being made take the place of.
    taken: Vec<Key>,
    /// Where the old group behind those begins; `None`: there is none.
    next: Option<Key>,
}

impl TableUp<'_> {
    fn id(&self, key: &Key) -> RowId {
        RowId { table: self.table, key: key.clone() }
    }

    /// All groups of a table that is not there any more.
    fn remove_all(&mut self) -> Result<(), StoreError> {
        self.of.rows.forget(self.table);
        let all = self.groups.range(KeyRange::ALL.of_table(self.table));
        let all: Vec<RowId> = all.map(|(id, _)| id.clone()).collect();
        all.into_iter().try_for_each(|id| {
            self.groups.remove(&id);
            (self.write)((id, None))
        })
    }

    /// The old group that begins at or before the key; `None`: the key stands in front of all.
    fn group_of(&self, key: &Key) -> Option<Key> {
        let first = KeyRange::ALL.of_table(self.table).0;
        self.groups.range((first, Bound::Included(self.id(key)))).next_back().map(|(id, _)| id.key.clone())
    }

    fn group_behind(&self, first: Option<&Key>) -> Option<Key> {
        let (start, end) = KeyRange::ALL.of_table(self.table);
        let start = first.map_or(start, |first| Bound::Excluded(self.id(first)));
        self.groups.range((start, end)).next().map(|(id, _)| id.key.clone())
    }

    /// Adds the group of a changed key to those that are to be made again.
    fn plan(&self, key: Key, planned: &mut Vec<Planned>) {
        if let Some(last) = planned.last_mut()
            && last.next.as_ref().is_none_or(|next| key < *next)
        {
            last.changed.extend(last.first.is_some().then_some(key));
            return;
        }
        let first = self.group_of(&key);
        let next = self.group_behind(first.as_ref());
        let changed = first.is_some().then_some(key).into_iter().collect();
        planned.push(Planned { first, next, changed });
    }

    /// Whether the next key stands in the last group that is planned.
    fn is_planned(&self, next: Option<&Result<RowId, StoreError>>, last: Option<&Planned>) -> bool {
        let (Some(Ok(next)), Some(last)) = (next, last) else { return false };
        next.table == self.table && last.next.as_ref().is_none_or(|behind| next.key < *behind)
    }

    /// Makes groups again that are planned. Those behind them follow where the last one does not end where it did.
    fn bring_up(&mut self, planned: Vec<Planned>) -> Result<(), StoreError> {
        let of = self.of;
        // So many that a store gains by reading them together, and every thread has some.
        let together = planned.len().div_ceil(2 * rayon::current_num_threads()).clamp(1, GROUPS_TOGETHER);
        let read: Vec<Vec<Vec<OldRange>>> = planned
            .par_chunks(together)
            .map(|planned| of.ranges(planned))
            .collect::<Result<_, StoreError>>()?;
        let read = planned.into_iter().zip(read.into_iter().flatten());
        for (Planned { first, next, .. }, ranges) in read {
            self.catch_up(first.as_ref())?;
            match first {
                Some(first) => self.taken.push(first),
                None => self.read_rows(&KeyRange { start: Bound::Unbounded, end: before(next.as_ref()) })?,
            }
            self.next = next;
            for range in ranges {
                self.take_over(range)?;
            }
            self.put_closed()?;
        }
        Ok(())
    }

    /// Takes over old groups until the groups that are made end where an old one does, or up to the old group that begins with
    /// `end`.
    fn catch_up(&mut self, end: Option<&Key>) -> Result<(), StoreError> {
        while !self.growing.is_closed() {
            let Some(first) = self.next.clone() else {
                self.growing.end();
                break;
            };
            if end.is_some_and(|end| first >= *end) {
                return Ok(());
            }
            let record = self.of.records.group(&self.id(&first))?;
            self.next = self.group_behind(Some(&first));
            self.taken.push(first);
            for range in record.ranges {
                self.take_over(OldRange::Same(range))?;
            }
        }
        self.put_closed()
    }

    /// An old range that follows. Where the range that is made has not ended, its rows go on with it.
    fn take_over(&mut self, range: OldRange) -> Result<(), StoreError> {
        match range {
            OldRange::Rows(rows) => rows.into_iter().for_each(|row| self.growing.row(row)),
            OldRange::Same(range) if self.growing.is_between_ranges() => self.growing.range(range),
            OldRange::Same(range) => {
                let rows = match self.of.rows.take(self.table, &range.first) {
                    Some(rows) => rows,
                    None => {
                        let from = KeyRange { start: Bound::Included(range.first), end: Bound::Unbounded };
                        self.of.hashed(&from, range.rows as usize)?
                    }
                };
                rows.into_iter().for_each(|row| self.growing.row(row));
            }
        }
        Ok(())
    }

    /// All rows of an interval, of which there may be many.
    fn read_rows(&mut self, range: &KeyRange) -> Result<(), StoreError> {
        let (mut read, growing) = (Vec::with_capacity(READ_ROWS), &mut self.growing);
        let mut hash = |read: &mut Vec<(Key, Row)>| {
            hash_on_all_threads(read).for_each(|row| growing.row(row));
        };
        self.of.snapshot.scan(self.table, range, false, &mut |key, row| {
            read.push((key.clone(), row.clone()));
            if read.len() == READ_ROWS {
                hash(&mut read);
            }
            ControlFlow::Continue(())
        })?;
        hash(&mut read);
        Ok(())
    }

    /// Hands out the groups that are made, where the last of them has ended.
    fn put_closed(&mut self) -> Result<(), StoreError> {
        if !self.growing.is_closed() {
            return Ok(());
        }
        let mut changes: BTreeMap<RowId, Option<GroupRecord>> = BTreeMap::new();
        for first in std::mem::take(&mut self.taken) {
            let id = self.id(&first);
            self.groups.remove(&id);
            changes.insert(id, None);
        }
        for record in self.growing.take_records() {
            let id = self.id(&record.ranges[0].first);
            let head = record.head(self.shape, self.table).expect("a group that is made has a range");
            self.groups.insert(id.clone(), head);
            changes.insert(id, Some(record));
        }
        changes.into_iter().try_for_each(|change| (self.write)(change))
    }
}

fn before(key: Option<&Key>) -> Bound<Key> {
    key.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()))
}

impl Before<'_> {
    /// The ranges of old groups, group by group: rows where one has changed, and what is recorded of the others. None of what stands
    /// in front of the first group.
    fn ranges(&self, planned: &[Planned]) -> Result<Vec<Vec<OldRange>>, StoreError> {
        let mut groups: Vec<Vec<OldRange>> = Vec::with_capacity(planned.len());
        let (mut unread, mut places) = (Vec::new(), Vec::new());
        for Planned { first, next, changed } in planned {
            let Some(first) = first else {
                groups.push(Vec::new());
                continue;
            };
            let record = self.records.group(&RowId { table: self.table, key: first.clone() })?;
            let mut changed = changed.as_slice();
            let ends: Vec<Option<Key>> =
                record.ranges.iter().skip(1).map(|range| Some(range.first.clone())).collect();
            let ends = ends.into_iter().chain([next.clone()]);
            let mut ranges = Vec::with_capacity(record.ranges.len());
            for (range, end) in record.ranges.into_iter().zip(ends) {
                let own = changed.partition_point(|key| end.as_ref().is_none_or(|end| key < end));
                let (own, rest) = changed.split_at(own);
                changed = rest;
                ranges.push(if own.is_empty() {
                    OldRange::Same(range)
                } else if let Some(rows) = self.rows.take(self.table, &range.first) {
                    OldRange::Rows(self.changed(rows, own)?)
                } else {
                    places.push((groups.len(), ranges.len()));
                    unread.push(KeyRange { start: Bound::Included(range.first), end: before(end.as_ref()) });
                    OldRange::Rows(Vec::new())
                });
            }
            groups.push(ranges);
        }
        let (mut rows, mut counts) = (Vec::new(), vec![0; unread.len()]);
        self.snapshot.scan_many(self.table, &unread, &mut |number, key, row| {
            counts[number] += 1;
            rows.push((key, row));
        })?;
        let mut rows = hashed(rows);
        for ((group, range), count) in places.into_iter().zip(counts) {
            groups[group][range] = OldRange::Rows(rows.by_ref().take(count).collect());
        }
        Ok(groups)
    }

    /// The rows of a range as they are now, of which these have changed, have come or have gone.
    fn changed(&self, rows: Vec<HashedRow>, changed: &[Key]) -> Result<Vec<HashedRow>, StoreError> {
        let mut now = Vec::with_capacity(changed.len());
        for key in changed {
            now.extend(self.snapshot.get(self.table, key)?.map(|row| (key.clone(), row)));
        }
        let mut now = hashed(now).peekable();
        let (mut merged, mut changed) =
            (Vec::with_capacity(rows.len() + now.len()), changed.iter().peekable());
        for row in rows {
            while let Some(next) = now.next_if(|next| next.key <= row.key) {
                merged.push(next);
            }
            while changed.next_if(|key| **key < row.key).is_some() {}
            if changed.next_if(|key| **key == row.key).is_none() {
                merged.push(row);
            }
        }
        merged.extend(now);
        Ok(merged)
    }

    /// The rows from a key on, at most so many.
    fn hashed(&self, interval: &KeyRange, rows_max: usize) -> Result<Vec<HashedRow>, StoreError> {
        let mut rows = Vec::new();
        self.snapshot.scan(self.table, interval, false, &mut |key, row| {
            rows.push((key.clone(), row.clone()));
            if rows.len() < rows_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(hashed(rows).collect())
    }
}

fn hashed(rows: Vec<(Key, Row)>) -> impl ExactSizeIterator<Item = HashedRow> {
    let hashed = hash_rows(&rows).into_iter().zip(rows);
    hashed.map(|((leaf, bytes), (key, _))| HashedRow { key, leaf, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AfterImage, LiveContent, LiveRequests, PlainState, StateTree};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use std::sync::Arc;
    use types::{Catalog, Column, DataType, Table, Value};

    /// What somebody keeps who has room for everything.
    struct Kept {
        groups: Groups,
        records: BTreeMap<RowId, GroupRecord>,
        rows: RangeRows,
    }

    struct Records<'a>(&'a BTreeMap<RowId, GroupRecord>);

    impl GroupRecords for Records<'_> {
        fn group(&self, first: &RowId) -> Result<GroupRecord, StoreError> {
            self.0.get(first).cloned().ok_or_else(|| StoreError::read("records", "no such group"))
        }
    }

    impl Kept {
        /// With so many bytes for rows of ranges.
        fn with_room(bytes: u64) -> Kept {
            Kept { groups: Groups::new(), records: BTreeMap::new(), rows: RangeRows::new(bytes) }
        }

        fn bring_up(
            &mut self,
            shape: TreeShape,
            state: &PlainState,
            changed: BTreeMap<RowId, ()>,
        ) -> StateTree {
            let before = self.records.clone();
            let mut changes: Vec<GroupChange> = Vec::new();
            let changed = &mut changed.into_keys().map(Ok);
            let records = (&Records(&before) as &dyn GroupRecords, &self.rows);
            bring_up(shape, &mut self.groups, state, records, changed, &mut |change| {
                changes.push(change);
                Ok(())
            })
            .expect("a map can be read");
            assert!(changes.is_sorted_by(|(one, _), (other, _)| one < other), "each once, ascending");
            for (first, record) in changes {
                match record {
                    Some(record) => drop(self.records.insert(first, record)),
                    None => drop(self.records.remove(&first).expect("it was there")),
                }
            }
            assert!(self.records.keys().eq(self.groups.keys()));
            let groups = self.groups.iter().map(|(id, head)| (id.clone(), *head));
            StateTree::of_groups(&state.catalog, &live(), shape, groups)
        }
    }

    fn live() -> LiveContent {
        LiveRequests::new().content()
    }

    fn catalog(tables: impl IntoIterator<Item = u32>) -> Arc<Catalog> {
        let column = |name: &str| Column {
            name: name.into(),
            data_type: DataType::BigInt,
            not_null: false,
            default: None,
            generated: false,
        };
        let mut catalog = Catalog::default();
        for number in tables {
            let table = Table {
                id: TableId(number),
                name: format!("t{number}"),
                columns: vec![column("id"), column("value")],
                primary_key: vec![0],
                primary_key_name: format!("t{number}_pkey"),
                checks: Vec::new(),
                endorsement: None,
                row_security: types::RowSecurity::default(),
                partitioning: None,
                materialized: None,
            };
            catalog.tables.insert(table.name.clone(), Arc::new(table));
        }
        Arc::new(catalog)
    }

    fn id(table: u32, number: i64) -> RowId {
        let key = Key::encode([&Value::BigInt(number)]).expect("a number is a key");
        RowId { table: TableId(table), key }
    }

    fn change(state: &mut PlainState, changed: &mut BTreeMap<RowId, ()>, row: RowId, value: Option<i64>) {
        let value = value.map(|value| Row::from([Value::BigInt(0), Value::BigInt(value)]));
        state.apply(&AfterImage { row: row.clone(), value });
        changed.insert(row, ());
    }

    /// Changes of every kind: scattered ones, stretches that come, go or change, whole tables, both ends.
    fn random_changes(random: &mut StdRng, state: &mut PlainState, keys: i64) -> BTreeMap<RowId, ()> {
        let mut changed = BTreeMap::new();
        for _ in 0..random.random_range(0..4) {
            let table = random.random_range(1..4);
            let (first, last) = match random.random_range(0..6) {
                0 => (0, keys),
                1 => (0, random.random_range(1..40)),
                2 => (keys - random.random_range(1..40), keys),
                3 => {
                    let first = random.random_range(0..keys);
                    (first, first + 1)
                }
                _ => {
                    let first = random.random_range(0..keys);
                    (first, (first + random.random_range(1..3_000)).min(keys))
                }
            };
            let (share, gone) = (random.random_range(0.0..1.0f64).powi(3), random.random_range(0..4));
            for number in first..last {
                if random.random_bool(share.max(0.001)) || last - first == 1 {
                    let value = match gone {
                        0 => None,
                        1 => random.random_bool(0.5).then(|| random.random()),
                        _ => Some(random.random()),
                    };
                    change(state, &mut changed, id(table, number), value);
                }
            }
        }
        changed
    }

    #[test]
    fn the_tree_is_that_of_a_full_computation_whatever_has_changed() {
        for seed in 0..12 {
            let mut random = StdRng::seed_from_u64(seed);
            let shape = if seed % 3 == 0 { TreeShape::Ranges } else { TreeShape::Groups };
            let keys = [300, 5_000, 20_000][seed as usize % 3];
            // For no rows, for some, for all.
            let room = [0, 100_000, 1 << 30][seed as usize / 3 % 3];
            let (mut state, mut kept) = (PlainState::new(catalog(1..4)), Kept::with_room(room));
            for round in 0..30 {
                let mut changed = random_changes(&mut random, &mut state, keys);
                if random.random_bool(0.1) {
                    // A table goes, and comes with its rows or without.
                    state.change_catalog(catalog([1, 3]));
                    if random.random_bool(0.5) {
                        changed.retain(|row, ()| row.table != TableId(2));
                    }
                    kept.bring_up(shape, &state, changed);
                    changed = BTreeMap::new();
                    state.change_catalog(catalog(1..4));
                }
                let tree = kept.bring_up(shape, &state, changed);
                let full = StateTree::new(&state, &live(), shape).expect("a map can be read");
                assert_eq!(tree.root(), full.root(), "seed {seed}, round {round}");
                assert_eq!(tree, full, "seed {seed}, round {round}");
            }
        }
    }

    #[test]
    fn only_what_has_changed_is_read() {
        for room in [0, 1 << 30] {
            let (mut state, mut kept) = (PlainState::new(catalog([1])), Kept::with_room(room));
            let mut all = BTreeMap::new();
            (0..50_000).for_each(|number| change(&mut state, &mut all, id(1, number), Some(number)));
            kept.bring_up(TreeShape::Groups, &state, all);
            let groups = kept.groups.len();
            assert!((20..120).contains(&groups), "{groups} groups of about a thousand rows");
            let mut one = BTreeMap::new();
            change(&mut state, &mut one, id(1, 25_000), Some(-1));
            let counting = Counting { inner: &state, rows: Default::default() };
            let (before, mut changes) = (kept.records.clone(), 0);
            let changed = &mut one.into_keys().map(Ok);
            let records = (&Records(&before) as &dyn GroupRecords, &kept.rows);
            bring_up(TreeShape::Groups, &mut kept.groups, &counting, records, changed, &mut |_| {
                changes += 1;
                Ok(())
            })
            .expect("a map can be read");
            let rows = counting.rows.load(std::sync::atomic::Ordering::Relaxed);
            let rows_max = if room == 0 { 1_000 } else { 1 };
            assert!(
                (1..=rows_max).contains(&rows) && changes <= 4,
                "{rows} rows read, {changes} groups changed"
            );
        }
    }

    /// Counts the rows that are read.
    struct Counting<'a> {
        inner: &'a PlainState,
        rows: std::sync::atomic::AtomicU64,
    }

    impl Snapshot for Counting<'_> {
        fn catalog(&self) -> &Arc<Catalog> {
            &self.inner.catalog
        }

        fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
            self.rows.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(self.inner.get(table, key))
        }

        fn scan(
            &self,
            table: TableId,
            range: &KeyRange,
            reverse: bool,
            visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
        ) -> Result<(), StoreError> {
            self.inner.scan(table, range, reverse, &mut |key, row| {
                self.rows.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                visit(key, row)
            });
            Ok(())
        }
    }
}
