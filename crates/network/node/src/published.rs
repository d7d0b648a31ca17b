use crate::NodeError;
use crate::attesting::Certified;
use crate::past::{PastStates, WithPast};
use crate::row_history::KeptRows;
use crate::store_failure::{Reporting, StoreHealth};
use parking_lot::RwLock;
use sql::Library;
use state::{FirstFailure, Snapshot};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

use crypto::Digest;

/// State digests that a node remembers for `/status`.
const RECENT_DIGESTS: usize = 1_000;

/// What the pipeline has made visible: the newest applied state for reads, the newest recorded height for the world.
pub(crate) struct Published {
    store_health: Arc<StoreHealth>,
    rows: Option<Arc<KeptRows>>,
    /// So many past states are kept.
    heights: usize,
    certified: Arc<Certified>,
    inner: RwLock<Inner>,
    /// The newest recorded height, for those who wait for one.
    height: watch::Sender<u64>,
}

struct Inner {
    /// Of the newest applied block.
    snapshot: Arc<dyn Snapshot>,
    /// The compiled catalog of the snapshot.
    library: Arc<Library>,
    /// Of the snapshot: it changes together with it, so that no block counts as newer than what it reads.
    applied_height: u64,
    past: Arc<PastStates>,
    recent: VecDeque<(u64, Digest)>,
    not_serving: Option<String>,
    /// The node has been told to stop.
    stopping: bool,
    /// Why nobody is served for a while.
    suspended: Option<String>,
}

impl Published {
    /// `heights`: so many states are kept. `rows`: the history of rows, where there is one.
    pub(crate) fn new(
        snapshot: Arc<dyn Snapshot>,
        library: Arc<Library>,
        (heights, rows): (usize, Option<Arc<KeptRows>>),
        height: u64,
        digest: Digest,
        certified: Arc<Certified>,
        store_health: Arc<StoreHealth>,
    ) -> Published {
        let past = Arc::new(PastStates::new(heights, height, snapshot.clone()));
        let recent = VecDeque::from([(height, digest)]);
        let inner = Inner {
            snapshot,
            library,
            applied_height: height,
            past,
            recent,
            not_serving: None,
            stopping: false,
            suspended: None,
        };
        Published {
            store_health,
            rows,
            heights,
            certified,
            inner: RwLock::new(inner),
            height: watch::Sender::new(height),
        }
    }

    /// What is known about others' outcomes.
    pub(crate) fn certified(&self) -> &Arc<Certified> {
        &self.certified
    }

    /// The compiled catalog of the newest applied block.
    pub(crate) fn library(&self) -> Arc<Library> {
        self.inner.read().library.clone()
    }

    /// The newest applied state, and its compiled catalog. That the state cannot be read is noted in
    /// [`Published::store_health`], whoever reads it.
    pub(crate) fn at_one_height(&self) -> (Arc<Library>, Arc<dyn Snapshot>) {
        let inner = self.inner.read();
        let (library, snapshot) = (inner.library.clone(), inner.snapshot.clone());
        // With the lock: it is that of this state.
        let failure = self.store_health.of_readers();
        drop(inner);
        (library, Arc::new(Reporting::new(snapshot, failure)))
    }

    /// Height of the newest applied block.
    pub(crate) fn applied_height(&self) -> u64 {
        self.inner.read().applied_height
    }

    /// Where it is noted that the store of the state has failed: nobody is served from then on, and the next block is not
    /// executed.
    pub(crate) fn store_health(&self) -> &StoreHealth {
        &self.store_health
    }

    /// Notes it where this error is one of the store of the state: whatever made the state again would meet it again.
    pub(crate) fn note_store_failure(&self, error: &NodeError) {
        if let Some(failure) = error.store_failure() {
            self.store_health.note(failure.clone());
        }
    }

    /// A snapshot of [`Published::at_one_height`] together with the states before it.
    pub(crate) fn with_past(&self, snapshot: Arc<dyn Snapshot>) -> WithPast {
        let (past, failure) = self.past();
        WithPast::new(snapshot, past, self.rows.clone(), failure)
    }

    /// The state behind the block at `height`, where it is one of those that are kept.
    pub(crate) fn state_at(&self, height: u64) -> Option<Arc<dyn Snapshot>> {
        let (past, failure) = self.past();
        let snapshot = past.at(height).ok()?;
        Some(Arc::new(Reporting::new(snapshot, failure)))
    }

    /// The states before the newest one, and where it is noted that one cannot be read.
    fn past(&self) -> (Arc<PastStates>, Arc<FirstFailure>) {
        let inner = self.inner.read();
        (inner.past.clone(), self.store_health.of_readers())
    }

    /// The block at `height` was applied.
    pub(crate) fn applied(&self, snapshot: Arc<dyn Snapshot>, library: &Arc<Library>, height: u64) {
        debug_assert_eq!(snapshot.catalog().version, library.catalog().version);
        let past = self.inner.read().past.clone();
        past.push(height, snapshot.clone());
        let mut inner = self.inner.write();
        let before = std::mem::replace(&mut inner.snapshot, snapshot);
        (inner.library, inner.applied_height) = (library.clone(), height);
        drop(inner);
        // It may be the last to hold what it alone kept.
        drop(before);
    }

    /// Clients see another state from now on, at the same height: schemas with members have gone on.
    pub(crate) fn refresh(&self, snapshot: Arc<dyn Snapshot>, library: Arc<Library>) {
        let mut inner = self.inner.write();
        (inner.snapshot, inner.library) = (snapshot, library);
    }

    /// Whether the node has been told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.inner.read().stopping
    }

    /// A block was recorded.
    pub(crate) fn recorded(&self, height: u64, digest: Digest) {
        let mut inner = self.inner.write();
        if inner.recent.len() == RECENT_DIGESTS {
            inner.recent.pop_front();
        }
        inner.recent.push_back((height, digest));
        drop(inner);
        self.height.send_replace(height);
    }

    /// The blocks above `height` are taken back: this is the state behind it, made anew.
    pub(crate) fn replace(
        &self,
        snapshot: Arc<dyn Snapshot>,
        library: Arc<Library>,
        height: u64,
        digest: Digest,
    ) {
        let past = Arc::new(PastStates::new(self.heights, height, snapshot.clone()));
        let mut inner = self.inner.write();
        inner.recent.retain(|(recorded, _)| *recorded < height);
        inner.recent.push_back((height, digest));
        (inner.snapshot, inner.past, inner.library, inner.applied_height) = (snapshot, past, library, height);
        self.store_health.begin_anew();
        drop(inner);
        self.height.send_replace(height);
    }

    /// Waits until this height is recorded.
    pub(crate) async fn wait_for(&self, height: u64) {
        // Its sender is here, so that it never closes.
        let _ = self.height.subscribe().wait_for(|recorded| *recorded >= height).await;
    }

    /// Height and state digest of the newest recorded block.
    pub(crate) fn newest(&self) -> (u64, Digest) {
        *self.inner.read().recent.back().expect("it starts with one and never loses the last")
    }

    /// Heights and digests of the last blocks, ascending.
    pub(crate) fn recent(&self) -> Vec<(u64, Digest)> {
        self.inner.read().recent.iter().copied().collect()
    }

    /// The node has been told to stop: whatever ends from now on has not failed.
    pub(crate) fn stop(&self) {
        self.inner.write().stopping = true;
    }

    /// The node cannot go on.
    pub(crate) fn stop_serving(&self, reason: String) {
        let mut inner = self.inner.write();
        if !inner.stopping {
            tracing::error!(reason, "the node stops serving");
            inner.not_serving.get_or_insert(reason);
        }
    }

    /// Nobody is served until [`Published::resume`].
    pub(crate) fn suspend(&self, reason: String) {
        self.inner.write().suspended = Some(reason);
    }

    /// What suspended serving is over.
    pub(crate) fn resume(&self) {
        self.inner.write().suspended = None;
    }

    /// Why the node does not serve.
    pub(crate) fn not_serving(&self) -> Option<String> {
        let inner = self.inner.read();
        let failed = || self.store_health.failure().map(|failure| failure.to_string());
        inner.not_serving.clone().or_else(failed).or_else(|| inner.suspended.clone())
    }
}
