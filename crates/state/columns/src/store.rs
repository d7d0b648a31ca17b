//! A store whose snapshots give columns.

use crate::columns::Columns;
use crate::snapshot::ColumnedSnapshot;
use crypto::Digest;
use parking_lot::Mutex;
use proofs::state::TreeShape;
use state::{
    AfterImage, BlockEnd, CheckpointHeader, KeptState, LiveContent, Simulate, Snapshot, Store, StoreError,
    StoreStatistics, Version,
};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use types::{Catalog, TableId};

/// Another store, and copies of its tables in columns.
pub(crate) struct ColumnedStore {
    inner: Arc<dyn Store>,
    columns: Arc<Columns>,
    /// What was newest in the round of keeping up before.
    newest_before: Mutex<Option<(Version, Arc<dyn Snapshot>)>>,
}

impl ColumnedStore {
    /// No columns of `inner` yet.
    pub(crate) fn new(inner: Arc<dyn Store>, memory_bytes_max: Arc<AtomicU64>) -> ColumnedStore {
        let columns = Arc::new(Columns::new(inner.version(), memory_bytes_max));
        ColumnedStore { inner, columns, newest_before: Mutex::new(None) }
    }

    /// The store with the rows.
    pub(crate) fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }

    /// Bytes of the columns.
    pub(crate) fn bytes(&self) -> u64 {
        self.columns.bytes()
    }

    /// A round of keeping up: brings columns that somebody has asked for lately up to what was newest in the round before. So a
    /// question that has begun in this round, or that has asked before, finds none that are newer than its snapshot.
    pub(crate) fn keep_up(&self) {
        let asked = self.columns.asked_lately();
        let mut newest_before = self.newest_before.lock();
        if asked.is_empty() {
            *newest_before = None;
            return;
        }
        if let Some((version, snapshot)) = newest_before.as_ref() {
            if self.columns.are_read_before(*version) {
                return;
            }
            asked.iter().for_each(|table| self.columns.keep_up(table, *version, snapshot.as_ref()));
        }
        let newest = self.inner.version();
        *newest_before = self.inner.snapshot_at(newest).map(|snapshot| (newest, snapshot));
    }

    fn columned(&self, snapshot: Arc<dyn Snapshot>, version: Version) -> Arc<dyn Snapshot> {
        let (store, columns) = (Arc::downgrade(&self.inner), Arc::downgrade(&self.columns));
        Arc::new(ColumnedSnapshot::new(snapshot, version, store, columns))
    }
}

impl Store for ColumnedStore {
    fn version(&self) -> Version {
        self.inner.version()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog()
    }

    fn catalog_digest(&self) -> Digest {
        self.inner.catalog_digest()
    }

    fn rows(&self, table: TableId) -> u64 {
        self.inner.rows(table)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        loop {
            // The one before the newest is still there, so that one batch may come between.
            let version = self.inner.version();
            if let Some(snapshot) = self.snapshot_at(version) {
                return snapshot;
            }
        }
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        self.inner.snapshot_at(version).map(|snapshot| self.columned(snapshot, version))
    }

    fn prefetch(&self, transactions: &[Arc<dyn Simulate>]) {
        self.inner.prefetch(transactions);
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        // Before: whoever can see the batch finds noted what it has changed.
        self.columns.announce(version, changes);
        let after = catalog.clone();
        let applied = self.inner.apply(version, changes, catalog);
        match (&applied, after) {
            (Ok(()), Some(after)) => self.columns.keep_only(&after),
            (Ok(()), None) => {}
            (Err(_), _) => self.columns.clear(),
        }
        applied
    }

    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        self.inner.end_block(end)
    }

    fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        self.inner.durable_point()
    }

    fn keep_checkpoint(
        &self,
        header: &CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        self.inner.keep_checkpoint(header, snapshot, live, shape)
    }

    fn statistics(&self) -> StoreStatistics {
        self.inner.statistics()
    }
}
