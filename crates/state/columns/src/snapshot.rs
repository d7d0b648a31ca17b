//! A snapshot that gives columns.

use crate::columns::{Columns, Question};
use crate::reading::RowsAsColumns;
use state::{
    ColumnBatch, KeyRange, PastChange, PastError, ReadColumns, RowId, Snapshot, Store, StoreError, Version,
};
use std::ops::ControlFlow;
use std::sync::{Arc, Once, Weak};
use types::{Catalog, Key, Row, Table, TableId};

/// A snapshot of another store, and the columns of that. It keeps neither the store nor the columns: both go when the store is
/// replaced.
pub(crate) struct ColumnedSnapshot {
    inner: Arc<dyn Snapshot>,
    version: Version,
    store: Weak<dyn Store>,
    columns: Weak<Columns>,
    /// Somebody has asked for columns.
    has_asked: Once,
}

impl ColumnedSnapshot {
    /// `inner`: that of `store` at `version`.
    pub(crate) fn new(
        inner: Arc<dyn Snapshot>,
        version: Version,
        store: Weak<dyn Store>,
        columns: Weak<Columns>,
    ) -> ColumnedSnapshot {
        ColumnedSnapshot { inner, version, store, columns, has_asked: Once::new() }
    }

    /// Whether the table is there at this version and at the newest one. Columns of one that is only here would serve nobody
    /// else.
    fn is_kept(&self, table: TableId) -> bool {
        let newest = self.store.upgrade().map(|store| store.catalog());
        self.inner.catalog().table(table).is_some()
            && newest.is_some_and(|catalog| catalog.table(table).is_some())
    }
}

impl Drop for ColumnedSnapshot {
    fn drop(&mut self) {
        if self.has_asked.is_completed()
            && let Some(columns) = self.columns.upgrade()
        {
            columns.end_reading(self.version);
        }
    }
}

impl Snapshot for ColumnedSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        self.inner.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.inner.get(table, key)
    }

    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        self.inner.get_many(rows)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.scan(table, range, reverse, visit)
    }

    fn scan_many(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        visit: &mut dyn FnMut(usize, Key, Row),
    ) -> Result<(), StoreError> {
        self.inner.scan_many(table, ranges, visit)
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        self.store.upgrade().map(|store| store.rows(table)).or_else(|| self.inner.about_rows(table))
    }

    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        let Some(columns) = self.columns.upgrade() else { return Ok(None) };
        if !self.is_kept(table.id) {
            return Ok(None);
        }
        self.has_asked.call_once(|| columns.begin_reading(self.version));
        let table = &*self.catalog().without_domains(table);
        columns.ask(&Question {
            snapshot: self.inner.as_ref(),
            version: self.version,
            table,
            ordinals,
            about_rows: self.about_rows(table.id).unwrap_or(0),
        })
    }

    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        let is_there = self.inner.catalog().table(table.id).is_some();
        let table = &*self.catalog().without_domains(table);
        let columns = is_there.then(|| RowsAsColumns::new(self.inner.clone(), table, ordinals))??;
        Some(Arc::new(columns))
    }

    fn at_height(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        self.inner.at_height(height)
    }

    fn row_history(&self, table: TableId, key: &Key) -> Result<Vec<PastChange>, PastError> {
        self.inner.row_history(table, key)
    }
}
