//! The store: what is applied, which versions can be read, and when the newest rows go to the disk.

use crate::Budget;
use crate::cache::{RowCache, row_memory};
use crate::files::Files;
use crate::view::View;
use crate::writer::{self, Changed, DurablePoint};
use crypto::Digest;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rayon::prelude::*;
use state::{
    AfterImage, FirstFailure, KeyRange, RowId, Snapshot, Store, StoreError, Version, all_entry_changes,
    indexes_made, new_entries, tables_dropped,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use types::{Catalog, Key, Row, TableId};
use versioned::{Absence, VersionedRows, Write};

/// Rows below this number are read by one thread.
const PARALLEL_ROWS_MIN: usize = 256;

/// Rows on the disk, with the newest in memory.
pub(crate) struct DiskStore {
    shared: Arc<Shared>,
    /// One thread applies at a time.
    applying: Mutex<()>,
    /// Takes durable points; `None` once the store is dropped.
    points: Option<crossbeam_channel::Sender<DurablePoint>>,
    writer: Option<JoinHandle<()>>,
}

/// What the store, its snapshots and its writer have in common.
pub(crate) struct Shared {
    pub(crate) files: Arc<Files>,
    cache: RowCache,
    budget: Budget,
    versions: Mutex<Versions>,
    /// A durable point is written, or could not be.
    written: Condvar,
    failure: FirstFailure,
}

struct Versions {
    newest: Version,
    /// The newest version, those that snapshots hold, and those released since the last batch.
    retained: BTreeMap<Version, Retained>,
    /// Rows per table at the newest version.
    counts: BTreeMap<TableId, u64>,
    /// Tables that have gone since rows were handed over last.
    dropped: BTreeSet<TableId>,
    /// Memory of the newest rows.
    newest_bytes: u64,
    /// The newest version on the disk.
    durable: Option<Version>,
}

struct Retained {
    snapshots: usize,
    view: View,
}

/// The state at one version, unchanged for as long as somebody holds it.
struct DiskSnapshot {
    shared: Arc<Shared>,
    view: View,
}

impl DiskStore {
    /// A store whose files have the rows of this version.
    pub(crate) fn new(
        files: Arc<Files>,
        budget: Budget,
        version: Version,
        catalog: Arc<Catalog>,
        counts: BTreeMap<TableId, u64>,
    ) -> Result<DiskStore, StoreError> {
        let view = View {
            version,
            catalog_digest: catalog.digest(),
            catalog,
            dropped: Arc::default(),
            newest: Arc::new(VersionedRows::new(Absence::Kept)),
            writing: None,
            files: Arc::new(files.now()),
            epoch: 0,
        };
        let retained = BTreeMap::from([(version, Retained { snapshots: 0, view })]);
        let (dropped, newest_bytes, durable) = (BTreeSet::new(), 0, None);
        let versions = Versions { newest: version, retained, counts, dropped, newest_bytes, durable };
        let shared = Arc::new(Shared {
            cache: RowCache::new(budget.rows),
            files,
            budget,
            versions: Mutex::new(versions),
            written: Condvar::new(),
            failure: FirstFailure::default(),
        });
        // One is written while the next is gathered.
        let (points, waiting) = crossbeam_channel::bounded(1);
        let thread = std::thread::Builder::new().name("disk-writer".into()).spawn({
            let shared = shared.clone();
            move || writer::run(&shared, &waiting)
        });
        let writer = thread.map_err(|error| StoreError::write(shared.files.folder().display(), error))?;
        Ok(DiskStore { shared, applying: Mutex::new(()), points: Some(points), writer: Some(writer) })
    }

    /// Hands the newest rows over to be written, unless rows are being written already. With the lock, so that nobody reads
    /// between.
    fn hand_over(&self, versions: &mut MutexGuard<'_, Versions>) -> bool {
        let view = versions.newest_mut();
        if view.writing.is_some() {
            return false;
        }
        let rows = std::mem::replace(&mut view.newest, Arc::new(VersionedRows::new(Absence::Kept)));
        view.writing = Some(rows.clone());
        let version = view.version;
        let dropped = std::mem::take(&mut versions.dropped);
        versions.newest_bytes = 0;
        let point = DurablePoint { version, rows, dropped };
        // The writer ends only where something has failed, which is noted.
        self.points.as_ref().is_some_and(|points| points.send(point).is_ok())
    }

    /// What every row that changes was before.
    fn rows_before(&self, view: &View, changes: &[AfterImage]) -> Result<Vec<Option<Row>>, StoreError> {
        let read = |change: &AfterImage| view.get(&self.shared.cache, change.row.table, &change.row.key);
        match changes.len() < PARALLEL_ROWS_MIN {
            true => changes.iter().map(read).collect(),
            false => changes.par_iter().map(read).collect(),
        }
    }

    /// Waits, while rows are being written, for the newest ones to take not much more memory than they may.
    fn wait_for_room(&self) -> Result<(), StoreError> {
        let mut versions = self.shared.versions.lock();
        while versions.newest_bytes > 2 * self.shared.budget.newest && versions.newest_mut().writing.is_some()
        {
            self.shared.check()?;
            self.shared.written.wait(&mut versions);
        }
        self.shared.check()
    }
}

impl Store for DiskStore {
    fn version(&self) -> Version {
        self.shared.versions.lock().newest
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.shared.versions.lock().newest_mut().catalog.clone()
    }

    fn catalog_digest(&self) -> Digest {
        self.shared.versions.lock().newest_mut().catalog_digest
    }

    fn rows(&self, table: TableId) -> u64 {
        self.shared.versions.lock().counts.get(&table).copied().unwrap_or(0)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        let mut versions = self.shared.versions.lock();
        let newest = versions.newest;
        versions.hold(&self.shared, newest).expect("the newest version is retained")
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        let held = self.shared.versions.lock().hold(&self.shared, version);
        held.map(|snapshot| snapshot as Arc<dyn Snapshot>)
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        let _applying = self.applying.lock();
        self.wait_for_room()?;
        let mut versions = self.shared.versions.lock();
        assert!(version > versions.newest, "version {version:?} follows {:?}", versions.newest);
        let newest = versions.newest;
        versions.retained.retain(|version, retained| *version == newest || retained.snapshots > 0);
        let retained: Vec<Version> = versions.retained.keys().copied().collect();
        // Nobody else changes the newest rows; the writer may put other files behind them meanwhile, with the same content.
        let before = versions.newest_mut().clone();
        drop(versions);

        let dropped = catalog.as_ref().map_or(Vec::new(), |after| tables_dropped(&before.catalog, after));
        let after = catalog.unwrap_or_else(|| before.catalog.clone());
        let catalog_digest = match Arc::ptr_eq(&after, &before.catalog) {
            true => before.catalog_digest,
            false => after.digest(),
        };
        let old = self.rows_before(&before, changes)?;
        let entries = all_entry_changes(&before.catalog, changes, |table, key| {
            let row = RowId { table, key: key.clone() };
            Ok(changes.binary_search_by(|change| change.row.cmp(&row)).ok().and_then(|at| old[at].clone()))
        })?;
        let is_kept = |change: &&AfterImage| !dropped.contains(&change.row.table);
        let entries: Vec<AfterImage> = entries.iter().filter(is_kept).cloned().collect();
        let mut counts: Vec<(TableId, i64)> = changes
            .iter()
            .zip(&old)
            .map(|(change, old)| {
                (change.row.table, i64::from(change.value.is_some()) - i64::from(old.is_some()))
            })
            .collect();
        let mut bytes = 0;
        let mut write = |changes: &[AfterImage]| {
            if !changes.is_empty() {
                let write = Write { version, changes, retained: &retained, free: &[], dropped: &[] };
                before.newest.write(&write);
                bytes += changes.iter().map(memory_of).sum::<u64>();
            }
        };
        write(changes);
        write(&entries);
        counts.extend(entries.iter().map(counted));
        let made = View { version, ..before.clone() };
        for (table, index) in indexes_made(&before.catalog, &after) {
            let entries = new_entries(index, |visit| made.scan(table, &KeyRange::ALL, false, visit))?;
            write(&entries);
            counts.extend(entries.iter().map(counted));
        }
        counts.retain(|(table, change)| *change != 0 && !dropped.contains(table));

        let mut versions = self.shared.versions.lock();
        let mut view = View { version, catalog: after, catalog_digest, ..versions.newest_mut().clone() };
        if !dropped.is_empty() {
            view.dropped = Arc::new(view.dropped.iter().copied().chain(dropped.iter().copied()).collect());
        }
        versions.count(&counts, &dropped);
        versions.dropped.extend(dropped);
        versions.retained.insert(version, Retained { snapshots: 0, view });
        versions.newest = version;
        versions.newest_bytes += bytes;
        if versions.newest_bytes > self.shared.budget.newest {
            self.hand_over(&mut versions);
        }
        Ok(())
    }

    fn durable_point(&self) -> Result<Option<Version>, StoreError> {
        let _applying = self.applying.lock();
        let mut versions = self.shared.versions.lock();
        let version = versions.newest;
        loop {
            self.shared.check()?;
            if versions.durable.is_some_and(|durable| durable >= version) {
                // The files go with the process: it comes back from a checkpoint.
                return Ok(None);
            }
            if !self.hand_over(&mut versions) {
                self.shared.written.wait(&mut versions);
            }
        }
    }
}

/// What an entry of an index, which comes or goes, does to the number of them.
fn counted(entry: &AfterImage) -> (TableId, i64) {
    (entry.row.table, if entry.value.is_some() { 1 } else { -1 })
}

/// Memory that a change takes.
fn memory_of(change: &AfterImage) -> u64 {
    let bytes = change.value.as_ref().map_or(0, |row| borsh::object_length(row).unwrap_or(0));
    row_memory(&change.row.key, bytes)
}

impl Versions {
    fn newest_mut(&mut self) -> &mut View {
        &mut self.retained.get_mut(&self.newest).expect("the newest version is retained").view
    }

    fn hold(&mut self, shared: &Arc<Shared>, version: Version) -> Option<Arc<DiskSnapshot>> {
        let retained = self.retained.get_mut(&version)?;
        retained.snapshots += 1;
        Some(Arc::new(DiskSnapshot { shared: shared.clone(), view: retained.view.clone() }))
    }

    fn count(&mut self, changes: &[(TableId, i64)], dropped: &[TableId]) {
        for table in dropped {
            self.counts.remove(table);
        }
        for (table, change) in changes {
            let rows = self.counts.entry(*table).or_default();
            *rows = rows.checked_add_signed(*change).expect("every row that goes has been counted");
        }
    }
}

impl Shared {
    /// # Errors
    /// What could not be written.
    fn check(&self) -> Result<(), StoreError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Something could not be written: whoever waits for it hears of it, and whoever comes later.
    pub(crate) fn fail(&self, failure: StoreError) {
        self.failure.note(failure);
        let _versions = self.versions.lock();
        self.written.notify_all();
    }

    /// A durable point is written: from now on the newest version reads the files, and no rows that are being written.
    pub(crate) fn is_durable(&self, point: &DurablePoint, changed: Vec<Changed>) {
        let epoch = self.cache.begin_epoch(changed.into_iter());
        let mut versions = self.versions.lock();
        versions.durable = Some(point.version);
        let view = versions.newest_mut();
        (view.writing, view.files, view.epoch) = (None, Arc::new(self.files.now()), epoch);
        self.written.notify_all();
    }

    /// Files were merged: the newest version reads the new ones, with the same content.
    pub(crate) fn read_merged(&self) {
        self.versions.lock().newest_mut().files = Arc::new(self.files.now());
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        self.points = None;
        if let Some(writer) = self.writer.take() {
            // One that has panicked has said so.
            let _ = writer.join();
        }
    }
}

impl Drop for DiskSnapshot {
    fn drop(&mut self) {
        let mut versions = self.shared.versions.lock();
        let retained = versions.retained.get_mut(&self.view.version).expect("a held version is retained");
        retained.snapshots -= 1;
    }
}

impl Snapshot for DiskSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.view.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.view.get(&self.shared.cache, table, key)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.view.scan(table, range, reverse, visit)
    }
}
