//! A store that fails where no block is executed: for a reader at the gateway, for an endorser, at a checkpoint. The node stops
//! serving at once, and its pipeline before the next block.

use state::{ColumnBatch, ColumnPiece, FirstFailure, KeyRange, ReadColumns, RowId, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, Table, TableId};

/// A snapshot that tells the node when it cannot be read.
#[derive(Clone)]
pub(crate) struct Reporting {
    inner: Arc<dyn Snapshot>,
    failure: Arc<FirstFailure>,
}

impl Reporting {
    pub(crate) fn new(inner: Arc<dyn Snapshot>, failure: Arc<FirstFailure>) -> Reporting {
        Reporting { inner, failure }
    }

    fn report<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        read.inspect_err(|failure| self.failure.note(failure.clone()))
    }
}

impl Snapshot for Reporting {
    fn catalog(&self) -> &Arc<Catalog> {
        self.inner.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.report(self.inner.get(table, key))
    }

    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        self.report(self.inner.get_many(rows))
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.report(self.inner.scan(table, range, reverse, visit))
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        self.inner.about_rows(table)
    }

    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        self.report(self.inner.columns(table, ordinals))
    }

    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        let inner = self.inner.read_columns(table, ordinals)?;
        Some(Arc::new(ReportingColumns { inner, failure: self.failure.clone() }))
    }
}

/// Columns whose reader tells the node when rows cannot be read.
struct ReportingColumns {
    inner: Arc<dyn ReadColumns>,
    failure: Arc<FirstFailure>,
}

impl ReadColumns for ReportingColumns {
    fn piece(&self, behind: Option<&Key>) -> Result<Option<ColumnPiece>, StoreError> {
        self.inner.piece(behind).inspect_err(|failure| self.failure.note(failure.clone()))
    }
}
