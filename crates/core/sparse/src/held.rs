//! A holder's state without what it does not hold: whoever reads something else is told, and reads no empty table.

use crate::holder::elsewhere;
use rustc_hash::FxHashSet;
use state::{KeyRange, RowId, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// A snapshot of what a holder holds.
pub(crate) struct HeldSnapshot {
    inner: Arc<dyn Snapshot>,
    /// Numbers of tables, sequences and indexes.
    held: Arc<FxHashSet<u32>>,
}

impl HeldSnapshot {
    pub(crate) fn new(inner: Arc<dyn Snapshot>, held: Arc<FxHashSet<u32>>) -> HeldSnapshot {
        HeldSnapshot { inner, held }
    }

    fn check(&self, table: TableId) -> Result<(), StoreError> {
        if self.held.contains(&table.number()) { Ok(()) } else { Err(elsewhere(table)) }
    }
}

impl Snapshot for HeldSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        self.inner.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.check(table)?;
        self.inner.get(table, key)
    }

    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        rows.iter().try_for_each(|row| self.check(row.table))?;
        self.inner.get_many(rows)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.check(table)?;
        self.inner.scan(table, range, reverse, visit)
    }

    fn scan_many(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        visit: &mut dyn FnMut(usize, Key, Row),
    ) -> Result<(), StoreError> {
        self.check(table)?;
        self.inner.scan_many(table, ranges, visit)
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        self.inner.about_rows(table)
    }
}
