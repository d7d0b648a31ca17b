//! A store that fails where no block is executed: for a reader at the gateway, for an endorser, at a checkpoint. The node stops
//! serving at once, and its pipeline before the next block. Where files are damaged the state is made again, and the node goes on.

use parking_lot::RwLock;
use state::{ColumnBatch, ColumnPiece, FirstFailure, KeyRange, ReadColumns, RowId, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, Table, TableId};

/// Whether the store of the state that the node stands on can be read and written.
#[derive(Default)]
pub(crate) struct StoreHealth {
    now: RwLock<OfOneState>,
}

/// Of the state as it was made last.
#[derive(Default)]
struct OfOneState {
    failure: Arc<FirstFailure>,
    /// It is known, and told, that it is damaged.
    is_told: bool,
}

impl StoreHealth {
    /// Where readers of the state note that it cannot be read.
    pub(crate) fn of_readers(&self) -> Arc<FirstFailure> {
        self.now.read().failure.clone()
    }

    /// The first failure.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.now.read().failure.get().cloned()
    }

    /// Somebody has met a failure.
    pub(crate) fn note(&self, failure: StoreError) {
        self.now.read().failure.note(failure);
    }

    /// Whether whoever asks is the first to tell that the state is damaged.
    pub(crate) fn tell(&self) -> bool {
        !std::mem::replace(&mut self.now.write().is_told, true)
    }

    /// The state was made again. What readers of the one before still find is of no matter; a disk that has failed still has.
    pub(crate) fn begin_anew(&self) {
        let mut now = self.now.write();
        if now.is_told || now.failure.get().is_some_and(StoreError::can_be_made_again) {
            *now = OfOneState::default();
        }
    }
}

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
