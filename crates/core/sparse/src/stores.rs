//! The stores of a validator whose organisation has holders: a state is begun, taken up, kept and closed at all of them together.

use crate::messages::{Ask, images};
use crate::placement::Places;
use crate::remote::{Holding, Remote};
use crate::store::SharedStore;
use crate::{Link, Placement};
use crypto::Digest;
use parking_lot::Mutex;
use proofs::state::TreeShape;
use state::{AfterImage, Filling, KeptState, Reopened, ResumePoint, Store, StoreError, Stores, Version};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use types::Catalog;

/// Rows that are sent together to a holder that gets its first ones.
const ROWS_TOGETHER: usize = 4_096;

/// Stores of which each holder has a part. They come back where all of them do: at checkpoints.
#[derive(Clone)]
pub struct SharedStores {
    local: Arc<dyn Stores>,
    ledger: Digest,
    pub(crate) placement: Placement,
    holders: Arc<Vec<Arc<Holding>>>,
    /// States that were begun or taken up, as holders know them; 0: there is no session yet.
    states: Arc<AtomicU64>,
    newest: Arc<Mutex<Weak<SharedStore>>>,
}

impl SharedStores {
    /// `links`: to the holders of the placement, in their order.
    pub fn new(
        local: Arc<dyn Stores>,
        ledger: Digest,
        placement: Placement,
        links: Vec<Arc<dyn Link>>,
    ) -> SharedStores {
        debug_assert_eq!(placement.holders(), links.len(), "a link to each holder");
        let holders = Arc::new(links.into_iter().map(|link| Arc::new(Holding::new(link))).collect());
        let (states, newest) = Default::default();
        SharedStores { local, ledger, placement, holders, states, newest }
    }

    /// From here on the holders belong to this store alone.
    fn begin_session(&self) -> Result<(), StoreError> {
        // Greater than that of every process before.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        for (number, holder) in self.holders.iter().enumerate() {
            holder.begin_session(now, self.ledger, self.placement.schemas(number))?;
        }
        self.states.fetch_max(1, Ordering::Relaxed);
        Ok(())
    }

    /// A state that is to be opened at every holder.
    fn next_state(&self) -> Result<Vec<Remote>, StoreError> {
        if self.states.load(Ordering::Relaxed) == 0 {
            self.begin_session()?;
        }
        let number = self.states.fetch_add(1, Ordering::Relaxed);
        Ok(self.holders.iter().map(|holder| holder.state(number)).collect())
    }

    fn shared(&self, local: Arc<dyn Store>, remotes: Vec<Remote>) -> Arc<dyn Store> {
        let number = local.version().number();
        remotes.iter().for_each(|remote| remote.version.store(number, Ordering::Release));
        let store = SharedStore::new(local, Arc::new(remotes), self.placement.clone());
        let store = Arc::new(store);
        *self.newest.lock() = Arc::downgrade(&store);
        store
    }

    /// The store that was made or taken up last, while somebody has it.
    pub(crate) fn newest_shared(&self) -> Option<Arc<SharedStore>> {
        self.newest.lock().upgrade()
    }

    fn tell_all(&self, ask: impl Fn() -> Ask) -> Result<(), StoreError> {
        self.holders.iter().try_for_each(|holder| holder.state(0).tell(ask()))
    }
}

impl Stores for SharedStores {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        let remotes = self.next_state()?;
        let local = self.local.begin(version, catalog.clone())?;
        let begin = || Ask::Begin { version: version.number(), catalog: catalog.clone() };
        remotes.iter().try_for_each(|remote| remote.tell(begin()))?;
        let waiting = remotes.iter().map(|_| Vec::new()).collect();
        let places = self.placement.places(&catalog);
        Ok(Box::new(SharedFilling { local, places, waiting, remotes, stores: self.clone() }))
    }

    fn newest(&self) -> Option<Arc<dyn Store>> {
        self.newest.lock().upgrade().map(|store| store as Arc<dyn Store>)
    }

    fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        self.begin_session()?;
        let mut left = self.local.left()?;
        for holder in self.holders.iter() {
            let there = holder.state(0).left()?;
            left.retain(|point| there.iter().any(|other| other.header == point.header));
        }
        Ok(left)
    }

    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        let remotes = self.next_state()?;
        let Some(reopened) = self.local.reopen(height)? else { return Ok(None) };
        for remote in &remotes {
            match remote.reopen(height)? {
                Some(point) if point.header == reopened.point.header => {}
                _ => return Ok(None),
            }
        }
        let Reopened { point, state, live } = reopened;
        Ok(Some(Reopened { point, state: self.shared(state, remotes), live }))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.local.settle()?;
        self.tell_all(|| Ask::Settle)
    }

    fn kept_checkpoint(&self, height: u64, shape: TreeShape) -> Result<Option<KeptState>, StoreError> {
        let Some(local) = self.local.kept_checkpoint(height, shape)? else { return Ok(None) };
        let number = shape_number(shape);
        let Some(newest) = self.newest_shared() else { return Ok(None) };
        newest.compose(local, || Ask::KeptCheckpoint { height, shape: number })
    }

    fn keep_checkpoints(&self, heights: &[u64]) -> Result<(), StoreError> {
        self.local.keep_checkpoints(heights)?;
        self.tell_all(|| Ask::KeepCheckpoints(heights.to_vec()))
    }

    fn remove_checkpoints_behind(&self, height: u64) -> Result<(), StoreError> {
        self.local.remove_checkpoints_behind(height)?;
        self.tell_all(|| Ask::RemoveCheckpointsBehind(height))
    }

    fn check_files(&self, rest: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.local.check_files(rest)
    }

    fn recorded(&self, height: u64) {
        self.local.recorded(height);
        // Who does not hear it does not come back above what it has heard last.
        let _ = self.tell_all(|| Ask::Recorded(height));
    }

    fn recording_ends(&self) {
        self.local.recording_ends();
        let _ = self.tell_all(|| Ask::RecordingEnds);
    }
}

/// A shape, as it travels.
pub(crate) fn shape_number(shape: TreeShape) -> u32 {
    match shape {
        TreeShape::Ranges => 0,
        TreeShape::Groups => 1,
    }
}

/// The first rows of a state, on their way to where they stand.
struct SharedFilling {
    local: Box<dyn Filling>,
    places: Places,
    waiting: Vec<Vec<AfterImage>>,
    remotes: Vec<Remote>,
    stores: SharedStores,
}

impl SharedFilling {
    fn send(&mut self, holder: usize) -> Result<(), StoreError> {
        // Parts come in any order, and each is in order.
        let mut rows = std::mem::take(&mut self.waiting[holder]);
        rows.sort_unstable_by(|a, b| a.row.cmp(&b.row));
        if rows.is_empty() { Ok(()) } else { self.remotes[holder].tell(Ask::Add(images(rows))) }
    }
}

impl Filling for SharedFilling {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        let mut here = Vec::new();
        for row in rows {
            match self.places.of(row.row.table) {
                None => here.push(row.clone()),
                Some(holder) => {
                    self.waiting[holder].push(row.clone());
                    if self.waiting[holder].len() >= ROWS_TOGETHER {
                        self.send(holder)?;
                    }
                }
            }
        }
        if here.is_empty() { Ok(()) } else { self.local.add(&here) }
    }

    fn finish(mut self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        for holder in 0..self.waiting.len() {
            self.send(holder)?;
        }
        self.remotes.iter().try_for_each(|remote| remote.tell(Ask::Finish))?;
        let local = self.local.finish()?;
        Ok(self.stores.shared(local, self.remotes))
    }
}
