//! A store in memory that does something while it is read or written.

use crypto::Digest;
use memory::Memory;
use parking_lot::Mutex;
use state::{AfterImage, Filling, KeyRange, Snapshot, Store, StoreError, Stores, Version};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use types::{Catalog, Key, Row, TableId};

/// What is done once.
type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// When something is done.
#[derive(Default)]
pub struct Hooks {
    /// The next scan meets its first row.
    pub scan: Hook,
    /// The next batch is there, and whoever applies it does not know that yet.
    pub applied: Hook,
    /// Rows that were looked up by key.
    pub looked_up: AtomicUsize,
}

fn act(hook: &Hook) {
    let hook = hook.lock().take();
    if let Some(hook) = hook {
        hook();
    }
}

/// Makes such stores.
pub struct Hooked(pub Arc<Hooks>);

struct HookedStore(Arc<dyn Store>, Arc<Hooks>);

struct HookedSnapshot(Arc<dyn Snapshot>, Arc<Hooks>);

impl Stores for Hooked {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        Memory.begin(version, catalog)
    }

    fn create(&self, catalog: Arc<Catalog>) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(HookedStore(Memory.create(catalog)?, self.0.clone())))
    }
}

impl Store for HookedStore {
    fn version(&self) -> Version {
        self.0.version()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    fn catalog_digest(&self) -> Digest {
        self.0.catalog_digest()
    }

    fn rows(&self, table: TableId) -> u64 {
        self.0.rows(table)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::new(HookedSnapshot(self.0.snapshot(), self.1.clone()))
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        let snapshot = self.0.snapshot_at(version)?;
        Some(Arc::new(HookedSnapshot(snapshot, self.1.clone())))
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        self.0.apply(version, changes, catalog)?;
        act(&self.1.applied);
        Ok(())
    }
}

impl Snapshot for HookedSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        self.0.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.1.looked_up.fetch_add(1, Relaxed);
        self.0.get(table, key)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.scan(table, range, reverse, &mut |key, row| {
            act(&self.1.scan);
            visit(key, row)
        })
    }
}
