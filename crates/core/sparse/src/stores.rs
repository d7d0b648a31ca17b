//! The stores of a validator whose organisation has holders: a state is begun, taken up, kept and closed at all of them together.

use crate::messages::{Ask, Point, images};
use crate::placement::Places;
use crate::remote::{Holding, Remote};
use crate::store::{SharedStore, tables_with_rows};
use crate::{Link, Placement};
use crypto::Digest;
use parking_lot::Mutex;
use proofs::state::TreeShape;
use state::{
    AfterImage, Filling, KeptState, KeyRange, Reopened, ResumePoint, RowId, Store, StoreError, Stores,
    Version,
};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use types::Catalog;

/// Rows that are sent together to a holder that gets its first ones.
const ROWS_TOGETHER: usize = 4_096;

/// A holder that has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHolder {
    /// What it is called.
    pub name: String,
    /// Height of the first block behind which it had some: states from there on are whole only with its rows.
    pub since: u64,
}

/// Which holders have rows, as their validator remembers it beside its store: who has none of a state that must have them has lost
/// them, and is not new.
pub trait KnownHolders: Send + Sync {
    /// Those.
    fn known(&self) -> Vec<KnownHolder>;

    /// From now on these.
    ///
    /// # Errors
    /// It cannot be written down.
    fn remember(&self, known: &[KnownHolder]) -> Result<(), StoreError>;
}

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
    known: Arc<dyn KnownHolders>,
}

impl SharedStores {
    /// `links`: to the holders of the placement, in their order.
    pub fn new(
        local: Arc<dyn Stores>,
        ledger: Digest,
        placement: Placement,
        links: Vec<Arc<dyn Link>>,
        known: Arc<dyn KnownHolders>,
    ) -> SharedStores {
        debug_assert_eq!(placement.holders(), links.len(), "a link to each holder");
        let holders = Arc::new(links.into_iter().map(|link| Arc::new(Holding::new(link))).collect());
        let (states, newest) = Default::default();
        SharedStores { local, ledger, placement, holders, states, newest, known }
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
        let store = SharedStore::new(local, Arc::new(remotes), self.placement.clone(), self.known.clone());
        let store = Arc::new(store);
        *self.newest.lock() = Arc::downgrade(&store);
        store
    }

    /// Rows of each holder at the end of the last block; nothing before the first one.
    pub fn rows_by_holder(&self) -> Vec<u64> {
        self.newest_shared().map_or_else(Vec::new, |store| store.rows_by_holder())
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
        let known = self.known.known();
        let is_holder = |name: &str| self.holders.iter().any(|holder| holder.name() == name);
        left.retain(|point| {
            let mut needed = known.iter().filter(|holder| holder.since <= point.header.height);
            needed.all(|holder| is_holder(&holder.name))
        });
        for holder in self.holders.iter() {
            let there = holder.state(0).left()?;
            left.retain(|point| {
                // Who had no rows yet gets them from where they stand.
                !needs(&known, holder.name(), point.header.height)
                    || there.iter().any(|other| other.header == point.header)
            });
        }
        Ok(left)
    }

    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        let remotes = self.next_state()?;
        let Some(reopened) = self.local.reopen(height)? else { return Ok(None) };
        let Reopened { point, state: local, live } = reopened;
        let known = self.known.known();
        let (version, catalog) = (local.version(), local.catalog());
        for remote in &remotes {
            match remote.reopen(height)? {
                Some(there) if there.header == point.header => {}
                Some(_) => return Ok(None),
                None if needs(&known, remote.name(), height) => return Ok(None),
                None => {
                    remote.tell(Ask::Begin { version: version.number(), catalog: catalog.clone() })?;
                    remote.tell(Ask::Finish)?;
                }
            }
        }
        move_rows(&local, &remotes, &self.placement)?;
        Ok(Some(Reopened { point, state: self.shared(local, remotes), live }))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.local.settle()?;
        self.tell_all(|| Ask::Settle)?;
        // No state is left any more that needs who is no holder.
        let before = self.known.known();
        let mut known = before.clone();
        known.retain(|known| self.holders.iter().any(|holder| holder.name() == known.name));
        if known == before { Ok(()) } else { self.known.remember(&known) }
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
        let ask = || Ask::RemoveCheckpointsBehind(height);
        // A state is about to be made again, maybe because a holder was lost: it is waited for.
        self.tell_all(ask).or_else(|_| {
            self.begin_session()?;
            self.tell_all(ask)
        })
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

/// Whether the state behind this block needs the rows of this holder.
fn needs(known: &[KnownHolder], name: &str, height: u64) -> bool {
    known.iter().any(|holder| holder.name == name && holder.since <= height)
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

/// Brings the rows of each table to where they stand from now on. Where they have stood the stores themselves say.
fn move_rows(local: &Arc<dyn Store>, remotes: &[Remote], placement: &Placement) -> Result<(), StoreError> {
    let (catalog, places) = (local.catalog(), placement.places(&local.catalog()));
    let snapshot = local.snapshot();
    let mut changes: Vec<Vec<AfterImage>> = vec![Vec::new(); remotes.len() + 1];
    for table in tables_with_rows(&catalog) {
        let to = places.of(table);
        let mut leave = |from: Option<usize>, rows: Vec<(types::Key, types::Row)>| {
            let id = |key: &types::Key| RowId { table, key: key.clone() };
            let place = |place: Option<usize>| place.unwrap_or(remotes.len());
            for (key, row) in rows {
                changes[place(from)].push(AfterImage { row: id(&key), value: None });
                changes[place(to)].push(AfterImage { row: id(&key), value: Some(row) });
            }
        };
        if to.is_some() && local.rows(table) > 0 {
            let mut rows = Vec::new();
            snapshot.scan(table, &KeyRange::ALL, false, &mut |key, row| {
                rows.push((key.clone(), row.clone()));
                ControlFlow::Continue(())
            })?;
            leave(None, rows);
        }
        for (number, remote) in remotes.iter().enumerate() {
            if to != Some(number) && remote.rows(table)? > 0 {
                let (at, mut rows) = (Point::Version(u64::MAX), Vec::new());
                remote.scan(at, table, &KeyRange::ALL, false, &mut |mut more| {
                    rows.append(&mut more);
                    true
                })?;
                leave(Some(number), rows);
            }
        }
    }
    // Between the block behind which the state stands and the first batch of the next one.
    let version = Version::of_number(local.version().number() + 1);
    let mut here = changes.pop().unwrap_or_default();
    for (remote, mut changes) in remotes.iter().zip(changes) {
        if !changes.is_empty() {
            changes.sort_by(|a, b| a.row.cmp(&b.row));
            remote.apply(version.number(), images(changes), None)?;
        }
    }
    here.sort_by(|a, b| a.row.cmp(&b.row));
    if here.is_empty() { Ok(()) } else { local.apply(version, &here, None) }
}
