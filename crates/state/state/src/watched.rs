use crate::{FirstFailure, KeyRange, PastChange, PastError, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// A snapshot that remembers that it could not be read, for work that is not trusted to pass that up.
pub struct Watched<'a> {
    base: &'a dyn Snapshot,
    failure: FirstFailure,
}

impl<'a> Watched<'a> {
    /// Nothing has been read yet.
    pub fn new(base: &'a dyn Snapshot) -> Watched<'a> {
        Watched { base, failure: FirstFailure::default() }
    }

    /// What the work on it came to.
    ///
    /// # Errors
    /// The first read that failed.
    pub fn check<T>(self, done: T) -> Result<T, StoreError> {
        self.failure.check(done)
    }

    fn note<T>(&self, read: Result<T, StoreError>) -> Result<T, StoreError> {
        read.inspect_err(|error| self.failure.note(error.clone()))
    }
}

impl Snapshot for Watched<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.base.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.note(self.base.get(table, key))
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.note(self.base.scan(table, range, reverse, visit))
    }

    fn at_height(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        self.base.at_height(height)
    }

    fn row_history(&self, table: TableId, key: &Key) -> Result<Vec<PastChange>, PastError> {
        self.base.row_history(table, key)
    }
}
