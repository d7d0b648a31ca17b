//! A store that notes how long batches take on their way into it.

use super::record::Times;
use crypto::Digest;
use proofs::state::TreeShape;
use state::{
    AfterImage, BlockEnd, CheckpointHeader, KeptState, LiveContent, Simulate, Snapshot, Store, StoreError,
    StoreStatistics, Version,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use types::{Catalog, TableId};

/// What is noted.
#[derive(Default)]
pub(super) struct Noted {
    /// When the last batch took effect, or its block began.
    since: Option<Instant>,
    pub(super) batches: Times,
    pub(super) blocks: Times,
    /// The longest time that the end of a block took, which is when rows are handed over to be written.
    pub(super) hand_over: Duration,
    /// The longest time that it took to install one batch.
    pub(super) apply: Duration,
}

/// Another store, and what batches it has seen.
pub(super) struct WatchedStore {
    inner: Arc<dyn Store>,
    noted: Mutex<Noted>,
    /// Files are being merged.
    merging: Arc<AtomicBool>,
}

impl WatchedStore {
    pub(super) fn new(inner: Arc<dyn Store>, merging: Arc<AtomicBool>) -> WatchedStore {
        WatchedStore { inner, noted: Mutex::default(), merging }
    }

    pub(super) fn block_begins(&self) {
        self.note(|noted, _| noted.since = Some(Instant::now()));
    }

    pub(super) fn block_ended(&self, took: Duration) {
        self.note(|noted, merging| {
            noted.since = None;
            noted.blocks.add(took, merging);
        });
    }

    /// What was noted, from here on anew.
    pub(super) fn take(&self) -> Noted {
        let mut taken = Noted::default();
        self.note(|noted, _| taken = std::mem::take(noted));
        taken
    }

    fn note(&self, note: impl FnOnce(&mut Noted, bool)) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut noted, self.merging.load(Ordering::Relaxed));
    }
}

impl Store for WatchedStore {
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
        self.inner.snapshot()
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        self.inner.snapshot_at(version)
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
        let start = Instant::now();
        self.inner.apply(version, changes, catalog)?;
        let end = Instant::now();
        self.note(|noted, merging| {
            noted.apply = noted.apply.max(end - start);
            if let Some(since) = noted.since.replace(end) {
                noted.batches.add(end - since, merging);
            }
        });
        Ok(())
    }

    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        let start = Instant::now();
        self.inner.end_block(end)?;
        self.note(|noted, _| noted.hand_over = noted.hand_over.max(start.elapsed()));
        Ok(())
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
