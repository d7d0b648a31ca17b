use crate::attesting::Certified;
use crate::past::{PastStates, WithPast};
use crate::row_history::KeptRows;
use parking_lot::RwLock;
use sql::Library;
use state::{Snapshot, State, StateSnapshot};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

use crypto::Digest;

/// Looks for a snapshot with a library that fits before it is given up.
const SCHEMA_CHANGES_MAX: usize = 1_000;
/// State digests that a node remembers for `/status`.
const RECENT_DIGESTS: usize = 1_000;

/// What the pipeline has made visible: the newest applied state for reads, the newest recorded height for the world.
pub(crate) struct Published {
    rows: Option<Arc<KeptRows>>,
    /// So many past states are kept.
    heights: usize,
    certified: Arc<Certified>,
    inner: RwLock<Inner>,
    /// The newest recorded height, for those who wait for one.
    height: watch::Sender<u64>,
}

struct Inner {
    state: Arc<State>,
    past: Arc<PastStates>,
    library: Arc<Library>,
    recent: VecDeque<(u64, Digest)>,
    not_serving: Option<String>,
    /// Why nobody is served for a while.
    suspended: Option<String>,
}

impl Published {
    /// `heights`: so many states are kept. `rows`: the history of rows, where there is one.
    pub(crate) fn new(
        state: Arc<State>,
        library: Arc<Library>,
        (heights, rows): (usize, Option<Arc<KeptRows>>),
        height: u64,
        digest: Digest,
        certified: Arc<Certified>,
    ) -> Published {
        let past = Arc::new(PastStates::new(heights, height, state.snapshot()));
        let recent = VecDeque::from([(height, digest)]);
        let inner = Inner { state, past, library, recent, not_serving: None, suspended: None };
        Published { rows, heights, certified, inner: RwLock::new(inner), height: watch::Sender::new(height) }
    }

    /// The tables.
    pub(crate) fn state(&self) -> Arc<State> {
        self.inner.read().state.clone()
    }

    /// What is known about others' outcomes.
    pub(crate) fn certified(&self) -> &Arc<Certified> {
        &self.certified
    }

    /// The compiled catalog of the newest applied block.
    pub(crate) fn library(&self) -> Arc<Library> {
        self.inner.read().library.clone()
    }

    /// The compiled catalog and a snapshot that has it; `None` while the tables are being changed all the time.
    pub(crate) fn at_one_height(&self) -> Option<(Arc<Library>, Arc<StateSnapshot>)> {
        // A schema change may come between one and the other.
        for _ in 0..SCHEMA_CHANGES_MAX {
            let (library, snapshot) = (self.library(), self.state().snapshot());
            if snapshot.catalog().version == library.catalog().version {
                return Some((library, snapshot));
            }
            std::thread::yield_now();
        }
        None
    }

    /// A snapshot together with the states before it.
    pub(crate) fn with_past(&self, snapshot: Arc<StateSnapshot>) -> WithPast {
        WithPast::new(snapshot, self.inner.read().past.clone(), self.rows.clone())
    }

    /// The block at `height` was applied.
    pub(crate) fn applied(&self, library: &Arc<Library>, height: u64) {
        let (state, past) = {
            let inner = self.inner.read();
            (inner.state.clone(), inner.past.clone())
        };
        past.push(height, state.snapshot());
        if !Arc::ptr_eq(&self.inner.read().library, library) {
            self.inner.write().library = library.clone();
        }
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
    pub(crate) fn replace(&self, state: Arc<State>, library: Arc<Library>, height: u64, digest: Digest) {
        let past = Arc::new(PastStates::new(self.heights, height, state.snapshot()));
        let mut inner = self.inner.write();
        inner.recent.retain(|(recorded, _)| *recorded < height);
        inner.recent.push_back((height, digest));
        (inner.state, inner.past, inner.library) = (state, past, library);
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

    /// The node cannot go on.
    pub(crate) fn stop_serving(&self, reason: String) {
        tracing::error!(reason, "the node stops serving");
        self.inner.write().not_serving.get_or_insert(reason);
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
        inner.not_serving.clone().or_else(|| inner.suspended.clone())
    }
}
