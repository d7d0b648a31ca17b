//! The state of a batch under way, read and written by many transactions at once.
//!
//! Changed rows lie in shards, each behind its lock, in front of the batch's snapshot. Consistency over several rows is
//! the plan's business: whoever runs conflicts with nobody else who runs. A row may still be written by two at once, in
//! different columns, so a command is applied to the row as it stands, under the lock of its shard.

use crate::execution::{Step, differs, shard_of, step};
use rayon::prelude::*;
use state::{
    AfterImage, Changes, Command, FirstFailure, KeyRange, Overlay, RowId, Snapshot, StoreError, entry_changes,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use types::{Catalog, Key, Row, TableId};

/// Enough that few threads meet, and few enough that a scan can visit all.
const SHARDS: usize = 32;

#[derive(Default)]
struct Shard(RwLock<BTreeMap<RowId, Option<Row>>>);

impl Shard {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<RowId, Option<Row>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<RowId, Option<Row>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A snapshot with the changes of the transactions that are done in front of it.
pub(super) struct SharedState<'a> {
    base: &'a dyn Snapshot,
    shards: Vec<Shard>,
    /// Of the entries of indexes. Whoever holds a lock of a row may take one of these, never the other way round.
    entries: Vec<Shard>,
}

impl<'a> SharedState<'a> {
    /// Nothing changed yet.
    pub(super) fn new(base: &'a dyn Snapshot) -> SharedState<'a> {
        let shards = || (0..SHARDS).map(|_| Shard::default()).collect();
        SharedState { base, shards: shards(), entries: shards() }
    }

    fn shards_of(&self, table: TableId) -> &[Shard] {
        if table.is_index() { &self.entries } else { &self.shards }
    }

    fn shard(&self, row: &RowId) -> &Shard {
        &self.shards_of(row.table)[shard_of(row, SHARDS)]
    }

    /// Applies the commands of a transaction that was simulated on this state and conflicts with nobody who runs.
    /// False where one failed, which then is not undone.
    pub(super) fn apply(&self, commands: &[Command]) -> Result<bool, StoreError> {
        for command in commands {
            let mut rows = self.shard(&command.row).write();
            let fetched;
            let current = match rows.get(&command.row) {
                Some(row) => row.as_ref(),
                None => {
                    fetched = self.base.get(command.row.table, &command.row.key)?;
                    fetched.as_ref()
                }
            };
            match step(command, current) {
                Step::Unchanged => {}
                Step::Changed(after) => {
                    // Under the lock of the row, so that entries change in the order in which it does.
                    for entry in entry_changes(self.base.catalog(), &command.row, current, after.as_ref()) {
                        self.shard(&entry.row).write().insert(entry.row, entry.value);
                    }
                    rows.insert(command.row.clone(), after);
                }
                Step::Again | Step::Error(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The rows that differ from the snapshot, by table and key.
    pub(super) fn into_changes(self) -> Result<Vec<AfterImage>, StoreError> {
        let (base, failure) = (self.base, FirstFailure::default());
        let before = |row: &RowId| failure.keep(base.get(row.table, &row.key));
        let changes = self.shards.into_par_iter().flat_map_iter(|shard| {
            let rows = shard.0.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
            rows.filter(|(row, value)| differs(before(row).as_ref(), value.as_ref()))
                .map(|(row, value)| AfterImage { row, value })
        });
        let changes: Vec<AfterImage> = changes.collect();
        let mut changes = failure.check(changes)?;
        changes.par_sort_unstable_by(|a, b| a.row.cmp(&b.row));
        Ok(changes)
    }
}

impl Snapshot for SharedState<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.base.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        let row = RowId { table, key: key.clone() };
        if let Some(value) = self.shard(&row).read().get(&row) {
            return Ok(value.clone());
        }
        self.base.get(table, key)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let bounds = range.of_table(table);
        let mut changes = Vec::new();
        for shard in self.shards_of(table) {
            let rows = shard.read();
            let rows = rows.range(bounds.clone());
            changes.extend(rows.map(|(row, value)| AfterImage { row: row.clone(), value: value.clone() }));
        }
        match changes.is_empty() {
            true => self.base.scan(table, range, reverse, visit),
            false => {
                Overlay::with_changes(self.base, Changes::of_rows(changes)).scan(table, range, reverse, visit)
            }
        }
    }
}
