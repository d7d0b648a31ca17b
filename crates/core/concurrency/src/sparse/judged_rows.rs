//! Rows as judged transactions leave them, of blocks that are not committed: the paper's *dirty state*.

use super::store::SparseStore;
use super::transaction::{IntervalVersions, SparseTransaction, Version};
use state::{RowId, StoreError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use types::Key;

struct JudgedRow {
    version: Version,
    exists: bool,
}

/// They hide what the store has.
#[derive(Default)]
pub(super) struct JudgedRows {
    rows: BTreeMap<RowId, JudgedRow>,
}

impl JudgedRows {
    /// A transaction is valid.
    pub(super) fn write(&mut self, transaction: &SparseTransaction) {
        for write in transaction.writes() {
            let row = JudgedRow { version: transaction.position, exists: write.value.is_some() };
            self.rows.insert(write.row.clone(), row);
        }
    }

    /// What a transaction wrote is in the store.
    pub(super) fn recorded(&mut self, transaction: &SparseTransaction) {
        for write in transaction.writes() {
            if self.rows.get(&write.row).is_some_and(|row| row.version == transaction.position) {
                self.rows.remove(&write.row);
            }
        }
    }

    /// Whether everything that a transaction read is as it was.
    pub(super) fn is_current(
        &self,
        transaction: &SparseTransaction,
        store: &impl SparseStore,
    ) -> Result<bool, StoreError> {
        for read in transaction.reads() {
            let version = match self.rows.get(&read.row) {
                Some(row) => row.exists.then_some(row.version),
                None => store.version(&read.row)?,
            };
            if version != read.version {
                return Ok(false);
            }
        }
        for interval in transaction.intervals() {
            if !self.has(interval, store)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an interval has the rows that were found in it, and no others.
    fn has(&self, interval: &IntervalVersions, store: &impl SparseStore) -> Result<bool, StoreError> {
        let mut expected = interval.result.iter();
        let mut is_next =
            |key: &Key, version| expected.next().is_some_and(|next| next.0 == *key && next.1 == version);
        let mut judged = self.rows.range(interval.range.of_table(interval.table)).peekable();
        let mut is_same = true;
        store.versions(interval.table, &interval.range, &mut |key, version| {
            while let Some((row, change)) = judged.next_if(|(row, _)| row.key < *key) {
                is_same &= !change.exists || is_next(&row.key, change.version);
            }
            is_same &= match judged.next_if(|(row, _)| row.key == *key) {
                Some((_, change)) => !change.exists || is_next(key, change.version),
                None => is_next(key, version),
            };
            if is_same { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let mut behind = judged.filter(|(_, change)| change.exists);
        let is_same = is_same && behind.all(|(row, change)| is_next(&row.key, change.version));
        Ok(is_same && expected.next().is_none())
    }
}
