//! The multi-version memory (Block-STM, section 3.1, algorithm 2): for every row that any transaction wrote, what each
//! of them wrote last.
//!
//! Rows are spread over ordered shards. Reading one row takes a shared lock on its shard and a short lock on the row;
//! an exclusive lock on a shard is taken once per row, when it is first written. A scan collects its interval from
//! every shard. It is no snapshot, and needs not be one: whatever changes after it is found by validation, which scans
//! again.

use super::scheduler::Incarnation;
use super::synchronization::{Mutex, RwLock};
use crate::execution::shard_of;
use smallvec::SmallVec;
use state::{KeyRange, RowId};
use std::collections::BTreeMap;
use types::{Key, Row, TableId};

/// What a transaction writes: rows as they are behind it, `None` where they are gone.
pub(super) type Writes = Vec<(RowId, Option<Row>)>;

/// Parts of the memory with a lock each.
const SHARDS: usize = if cfg!(test) { 2 } else { 64 };

/// Where a value that somebody read comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The state before the batch.
    Base,
    /// This execution of a smaller number.
    Written(Incarnation),
}

/// What a transaction finds of a row.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Found {
    /// No smaller number wrote it.
    Base,
    /// The value that the largest smaller number wrote; `None`: it removed the row.
    Written(Incarnation, Option<Row>),
    /// The largest smaller number that wrote it is about to be executed again and will probably write it again.
    Estimate(u32),
}

enum Entry {
    Written(u32, Option<Row>),
    Estimate,
}

/// What transactions left of one row, ascending: mostly one entry, and mostly added at the end.
#[derive(Default)]
struct Versions(SmallVec<[(u32, Entry); 1]>);

impl Versions {
    /// The entry of the largest number below `end`.
    fn last_below(&self, end: u32) -> Option<&(u32, Entry)> {
        self.0[..self.0.partition_point(|(transaction, _)| *transaction < end)].last()
    }

    fn set(&mut self, transaction: u32, entry: Entry) {
        match self.0.binary_search_by_key(&transaction, |(transaction, _)| *transaction) {
            Ok(position) => self.0[position].1 = entry,
            Err(position) => self.0.insert(position, (transaction, entry)),
        }
    }

    fn remove(&mut self, transaction: u32) {
        self.0.retain(|(other, _)| *other != transaction);
    }
}

/// One part of the memory.
type Shard = BTreeMap<RowId, Mutex<Versions>>;

pub(super) struct Memory(Vec<RwLock<Shard>>);

impl Memory {
    pub(super) fn new() -> Memory {
        Memory((0..SHARDS).map(|_| RwLock::default()).collect())
    }

    fn shard(&self, row: &RowId) -> &RwLock<Shard> {
        &self.0[shard_of(row, SHARDS)]
    }

    /// The row as `reader` must see it.
    pub(super) fn read(&self, row: &RowId, reader: u32) -> Found {
        match self.shard(row).read().get(row) {
            Some(versions) => found(versions, reader),
            None => Found::Base,
        }
    }

    /// The rows of an interval that smaller numbers than `reader` wrote, by key.
    pub(super) fn scan(&self, table: TableId, range: &KeyRange, reader: u32) -> Vec<(Key, Found)> {
        let mut rows = Vec::new();
        if range.is_empty() {
            return rows;
        }
        let interval = range.of_table(table);
        for shard in &self.0 {
            let shard = shard.read();
            for (row, versions) in shard.range(interval.clone()) {
                match found(versions, reader) {
                    Found::Base => {}
                    found => rows.push((row.key.clone(), found)),
                }
            }
        }
        rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        rows
    }

    /// Replaces what an earlier incarnation wrote, of the rows `before`, by what this one wrote; both by table and key.
    /// True if it wrote a row that the earlier one did not write.
    pub(super) fn record(&self, incarnation: Incarnation, before: &[RowId], writes: Writes) -> bool {
        let Incarnation { transaction, number } = incarnation;
        let mut before = before.iter().peekable();
        let mut wrote_new = false;
        for (row, value) in writes {
            while let Some(gone) = before.next_if(|one| **one < row) {
                self.remove(gone, transaction);
            }
            wrote_new |= before.next_if(|one| **one == row).is_none();
            self.write(row, transaction, Entry::Written(number, value));
        }
        before.for_each(|gone| self.remove(gone, transaction));
        wrote_new
    }

    /// Marks what a transaction wrote as what it will probably write again.
    pub(super) fn estimate(&self, transaction: u32, rows: &[RowId]) {
        for row in rows {
            self.change(row, |versions| versions.set(transaction, Entry::Estimate));
        }
    }

    fn remove(&self, row: &RowId, transaction: u32) {
        self.change(row, |versions| versions.remove(transaction));
    }

    fn change(&self, row: &RowId, change: impl FnOnce(&mut Versions)) {
        if let Some(versions) = self.shard(row).read().get(row) {
            change(&mut versions.lock());
        }
    }

    fn write(&self, row: RowId, transaction: u32, entry: Entry) {
        let shard = self.shard(&row);
        if let Some(versions) = shard.read().get(&row) {
            versions.lock().set(transaction, entry);
            return;
        }
        shard.write().entry(row).or_default().lock().set(transaction, entry);
    }

    /// By shard: every row that a number below `end` wrote, with the last value, by table and key.
    pub(super) fn into_rows(self, end: u32) -> Vec<Writes> {
        let shards = self.0.into_iter().map(RwLock::into_inner);
        let last = |versions: Mutex<Versions>| match versions.into_inner().last_below(end)? {
            (_, Entry::Written(_, value)) => Some(value.clone()),
            (_, Entry::Estimate) => None,
        };
        shards
            .map(|rows| rows.into_iter().filter_map(|(row, all)| Some((row, last(all)?))).collect())
            .collect()
    }
}

fn found(versions: &Mutex<Versions>, reader: u32) -> Found {
    match versions.lock().last_below(reader) {
        None => Found::Base,
        Some((transaction, Entry::Estimate)) => Found::Estimate(*transaction),
        Some((transaction, Entry::Written(number, value))) => {
            Found::Written(Incarnation { transaction: *transaction, number: *number }, value.clone())
        }
    }
}
