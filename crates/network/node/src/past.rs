//! The states after the newest blocks, for queries that read tables as they were.
//!
//! A table has one number for as long as its rows have one shape, so `AS OF HEIGHT` looks up the number and needs no
//! second schema. A transaction that is ordered runs on snapshots that refuse questions about the past (the defaults
//! of [`Snapshot`]), because other nodes may keep less. The binder refuses by name what it can tell.

use crate::row_history::KeptRows;
use crate::store_failure::Reporting;
use parking_lot::RwLock;
use state::{
    ColumnBatch, FirstFailure, KeyRange, PastChange, PastError, ReadColumns, RowId, Snapshot, StoreError,
};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, Table, TableId};

/// How many are kept where `node.toml` says nothing else.
pub(crate) const HISTORY_HEIGHTS: usize = 16;

/// The states after the newest blocks, the oldest first. They share all rows that have not changed, so that one costs what its
/// successor has changed: about 150 bytes and the row for each changed row.
pub(crate) struct PastStates {
    most: usize,
    kept: RwLock<VecDeque<(u64, Arc<dyn Snapshot>)>>,
}

impl PastStates {
    /// At most this many, at least the newest one.
    pub(crate) fn new(most: usize, height: u64, snapshot: Arc<dyn Snapshot>) -> PastStates {
        PastStates { most: most.max(1), kept: RwLock::new(VecDeque::from([(height, snapshot)])) }
    }

    /// The state after the next block.
    pub(crate) fn push(&self, height: u64, snapshot: Arc<dyn Snapshot>) {
        let mut kept = self.kept.write();
        while kept.len() >= self.most {
            kept.pop_front();
        }
        kept.push_back((height, snapshot));
    }

    /// The state after the block at `height`.
    ///
    /// # Errors
    /// It is not kept.
    pub(crate) fn at(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        let kept = self.kept.read();
        let (Some((oldest, _)), Some((newest, _))) = (kept.front(), kept.back()) else {
            return Err(PastError::Nowhere);
        };
        let (oldest, newest) = (*oldest, *newest);
        let position = height.checked_sub(oldest).ok_or(PastError::NoMore { oldest, newest })?;
        let found = usize::try_from(position).ok().and_then(|position| kept.get(position));
        found.map(|(_, snapshot)| snapshot.clone()).ok_or(PastError::NotYet { oldest, newest })
    }
}

/// A state together with those before it and the history of its rows. That one of those before it cannot be read is noted in
/// `failure`; `now` does that itself.
pub(crate) struct WithPast {
    now: Arc<dyn Snapshot>,
    failure: Arc<FirstFailure>,
    past: Arc<PastStates>,
    rows: Option<Arc<KeptRows>>,
}

impl WithPast {
    pub(crate) fn new(
        now: Arc<dyn Snapshot>,
        past: Arc<PastStates>,
        rows: Option<Arc<KeptRows>>,
        failure: Arc<FirstFailure>,
    ) -> WithPast {
        WithPast { now, failure, past, rows }
    }
}

impl Snapshot for WithPast {
    fn catalog(&self) -> &Arc<Catalog> {
        self.now.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.now.get(table, key)
    }

    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        self.now.get_many(rows)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.now.scan(table, range, reverse, visit)
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        self.now.about_rows(table)
    }

    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        self.now.columns(table, ordinals)
    }

    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        self.now.read_columns(table, ordinals)
    }

    fn at_height(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        let snapshot = self.past.at(height)?;
        Ok(Arc::new(Reporting::new(snapshot, self.failure.clone())))
    }

    fn row_history(&self, table: TableId, key: &Key) -> Result<Vec<PastChange>, PastError> {
        self.rows.as_ref().ok_or(PastError::Nothing)?.changes(table, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::Memory;
    use state::{Stores, Version};
    use types::Catalog;

    #[test]
    fn the_newest_heights_are_kept_and_the_others_are_named() {
        let state = Memory.create(Arc::default()).expect("memory");
        let past = PastStates::new(3, 0, state.snapshot());
        for height in 1..=5 {
            let catalog = Catalog { version: height, ..Catalog::default() };
            state.apply(Version::after_batch(height, 0), &[], Some(Arc::new(catalog))).expect("memory");
            past.push(height, state.snapshot());
        }
        let height = |asked| past.at(asked).map(|snapshot| snapshot.catalog().version);
        assert_eq!(height(3), Ok(3));
        assert_eq!(height(5), Ok(5));
        assert_eq!(height(2), Err(PastError::NoMore { oldest: 3, newest: 5 }));
        assert_eq!(height(6), Err(PastError::NotYet { oldest: 3, newest: 5 }));
        assert_eq!(height(u64::MAX), Err(PastError::NotYet { oldest: 3, newest: 5 }));
    }
}
