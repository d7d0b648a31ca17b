//! Makes stores whose snapshots give columns.

use crate::keeper::Keeper;
use crate::store::ColumnedStore;
use parking_lot::Mutex;
use proofs::state::TreeShape;
use state::{AfterImage, Filling, KeptState, Reopened, ResumePoint, Store, StoreError, Stores, Version};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;
use types::Catalog;

/// A question seldom has to write more than what has changed in twice this.
const KEPT_UP_EVERY: Duration = Duration::from_millis(100);

/// Stores as others make them, whose snapshots give columns.
#[derive(Clone)]
pub struct WithColumns {
    inner: Arc<dyn Stores>,
    given: Given,
    _keeper: Option<Arc<Keeper>>,
}

/// The stores that were given and that somebody has.
#[derive(Clone)]
struct Given {
    memory_bytes_max: Arc<AtomicU64>,
    stores: Arc<Mutex<Vec<Weak<ColumnedStore>>>>,
}

impl Given {
    fn give(&self, inner: Arc<dyn Store>) -> Arc<dyn Store> {
        let store = Arc::new(ColumnedStore::new(inner, self.memory_bytes_max.clone()));
        let mut stores = self.stores.lock();
        stores.retain(|store| store.strong_count() > 0);
        stores.push(Arc::downgrade(&store));
        store
    }

    fn keep_up(&self) {
        self.all().iter().for_each(|store| store.keep_up());
    }

    fn all(&self) -> Vec<Arc<ColumnedStore>> {
        self.stores.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl WithColumns {
    /// Stores as `inner` makes them. The columns of one of them take at most so many bytes, without what queries still read
    /// after it has changed.
    pub fn new(inner: Arc<dyn Stores>, memory_bytes_max: u64) -> WithColumns {
        WithColumns::sharing(inner, Arc::new(AtomicU64::new(memory_bytes_max)))
    }

    /// The same; whoever has the number changes it while the stores are used. What is more than it is forgotten when the next
    /// columns are made.
    pub fn sharing(inner: Arc<dyn Stores>, memory_bytes_max: Arc<AtomicU64>) -> WithColumns {
        WithColumns { inner, given: Given { memory_bytes_max, stores: Arc::default() }, _keeper: None }
    }

    /// The same, with a thread that brings up the columns that somebody has asked for in the last five seconds. The thread ends
    /// with the last clone of these stores.
    pub fn kept_up(self) -> io::Result<WithColumns> {
        let given = self.given.clone();
        let keeper = Keeper::start(KEPT_UP_EVERY, move || given.keep_up())?;
        Ok(WithColumns { _keeper: Some(Arc::new(keeper)), ..self })
    }

    /// One round of what the thread does.
    pub fn keep_up(&self) {
        self.given.keep_up();
    }

    /// Bytes of the columns of all stores that somebody has.
    pub fn bytes(&self) -> u64 {
        self.given.all().iter().map(|store| store.bytes()).sum()
    }
}

impl Stores for WithColumns {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        let inner = self.inner.begin(version, catalog)?;
        Ok(Box::new(ColumnedFilling { inner, given: self.given.clone() }))
    }

    /// With its columns. Where that one has gone, or was never given, it is the store without columns: a second one with columns
    /// would not hear what is applied to the first.
    fn newest(&self) -> Option<Arc<dyn Store>> {
        let newest = self.inner.newest()?;
        let found = self.given.all().into_iter().find(|store| Arc::ptr_eq(store.inner(), &newest));
        Some(found.map_or(newest, |store| store as Arc<dyn Store>))
    }

    fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        self.inner.left()
    }

    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        let reopened = self.inner.reopen(height)?;
        Ok(reopened.map(|Reopened { point, state, live }| Reopened {
            point,
            state: self.given.give(state),
            live,
        }))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.inner.settle()
    }

    fn kept_checkpoint(&self, height: u64, shape: TreeShape) -> Result<Option<KeptState>, StoreError> {
        self.inner.kept_checkpoint(height, shape)
    }

    fn keep_checkpoints(&self, heights: &[u64]) -> Result<(), StoreError> {
        self.inner.keep_checkpoints(heights)
    }

    fn remove_checkpoints_behind(&self, height: u64) -> Result<(), StoreError> {
        self.inner.remove_checkpoints_behind(height)
    }

    fn check_files(&self, rest: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.inner.check_files(rest)
    }

    fn recorded(&self, height: u64) {
        self.inner.recorded(height);
    }

    fn recording_ends(&self) {
        self.inner.recording_ends();
    }

    fn create(&self, catalog: Arc<Catalog>) -> Result<Arc<dyn Store>, StoreError> {
        Ok(self.given.give(self.inner.create(catalog)?))
    }
}

/// A store that gets its rows: it has columns when it has them.
struct ColumnedFilling {
    inner: Box<dyn Filling>,
    given: Given,
}

impl Filling for ColumnedFilling {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        self.inner.add(rows)
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        let ColumnedFilling { inner, given } = *self;
        Ok(given.give(inner.finish()?))
    }
}
