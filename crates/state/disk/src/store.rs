//! The store with rows on the disk: what is applied, which versions can be read, and when the newest rows go to the files.

use crate::cache::{RowCache, bytes_of, row_memory};
use crate::core::{Written, WrittenRows};
use crate::durable::Durable;
use crate::entries::write_entries;
use crate::files::Files;
use crate::files_snapshot::FilesSnapshot;
use crate::gate::Gate;
use crate::layout::Meta;
use crate::options::{Budget, RowsIn};
use crate::points::{Admitted, Changes, Point, WhenWritten};
use crate::prefetching::Prefetcher;
use crate::view::View;
use crate::warming::{self, Warming};
use crypto::Digest;
use parking_lot::{Mutex, MutexGuard};
use proofs::state::TreeShape;
use rayon::prelude::*;
use state::{
    AfterImage, BlockEnd, CheckpointHeader, KeptState, KeyRange, LiveContent, ResumePoint, RowId, Simulate,
    Snapshot, Store, StoreError, StoreStatistics, Version, all_entry_changes, indexes_made, new_entries,
    tables_dropped,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use types::{Catalog, Key, Row, TableId};
use versioned::{Absence, VersionedRows, Write};

/// Rows below this number are read by one thread.
const PARALLEL_ROWS_MIN: usize = 256;
/// So many points may wait to be written before batches wait for them.
const WAITING_MAX: usize = 2;
/// Batches wait for all of them where so many runs of the files overlap.
const OVERLAPPING_MAX: usize = 48;

/// Memory that is expected for the entries of a row in an index.
const INDEXED_ROW_BYTES: u64 = 512;

/// Rows on the disk, with the newest in memory.
pub(crate) struct DiskStore {
    shared: Arc<Shared>,
    durable: Durable,
    prefetcher: Prefetcher,
    /// `None`: there is no room for all rows.
    _warming: Option<Warming>,
    /// One thread applies at a time.
    applying: Mutex<()>,
}

/// What the store and its snapshots have in common.
struct Shared {
    cache: Arc<RowCache>,
    budget: Budget,
    versions: Mutex<Versions>,
    /// Nanoseconds that batches have waited for the disk.
    waited: AtomicU64,
}

struct Versions {
    newest: Version,
    /// The newest version, those that snapshots hold, and those released since the last batch.
    retained: BTreeMap<Version, Retained>,
    /// Rows per table at the newest version.
    counts: BTreeMap<TableId, u64>,
    /// Tables that have gone since rows were handed over last.
    dropped: BTreeSet<TableId>,
    /// Ids that were admitted since then.
    admitted: Admitted,
    /// Memory of the newest rows.
    newest_bytes: u64,
    /// The end of the last block, unless batches have been applied since.
    ended: Option<ResumePoint>,
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
        (files, gate, written): (Arc<Files>, Arc<Gate>, Written),
        budget: Budget,
        version: Version,
        catalog: Arc<Catalog>,
        counts: BTreeMap<TableId, u64>,
    ) -> Result<DiskStore, StoreError> {
        let view = View::of_files(version, catalog, files.now());
        // Entries of ordered indexes are not found by key.
        let mut read_by_key = counts.clone();
        read_by_key.retain(|table, _| !table.is_index());
        let has_room = warming::have_room(&read_by_key, files.bytes(), budget.rows);
        let versions = Versions {
            newest: version,
            retained: BTreeMap::from([(version, Retained { snapshots: 0, view })]),
            counts,
            dropped: BTreeSet::new(),
            admitted: Admitted::default(),
            newest_bytes: 0,
            ended: None,
        };
        let shared = Arc::new(Shared {
            cache: Arc::new(RowCache::new(budget.rows)),
            budget,
            versions: Mutex::new(versions),
            waited: AtomicU64::new(0),
        });
        let durable = Durable::start(files, gate, written, (RowsIn::Disk, budget))?;
        let prefetcher = Prefetcher::start(&shared.cache)?;
        let newest = shared.clone();
        let newest = move || newest.versions.lock().newest_mut().clone();
        let warming = has_room
            .then(|| Warming::start(shared.cache.clone(), read_by_key.into_keys().collect(), newest))
            .transpose()?;
        Ok(DiskStore { shared, durable, prefetcher, _warming: warming, applying: Mutex::new(()) })
    }

    /// Hands the newest rows over to be written. With the lock, so that nobody reads between.
    fn hand_over(&self, versions: &mut MutexGuard<'_, Versions>, is_checkpoint: bool) {
        let (point, counts) = (versions.ended, versions.counts.clone());
        let dropped = std::mem::take(&mut versions.dropped);
        let admitted = std::mem::take(&mut versions.admitted);
        versions.newest_bytes = 0;
        let view = versions.newest_mut();
        let layer = std::mem::replace(&mut view.newest, Arc::new(VersionedRows::new(Absence::Kept)));
        view.writing.insert(0, layer.clone());
        let (version, catalog) = (view.version, view.catalog.clone());
        let written = written(self.shared.clone(), layer.clone(), version);
        self.durable.hand_over(Point {
            version,
            changes: Changes::Layer(layer),
            dropped,
            catalog,
            meta: Meta::new(point, counts, true),
            admitted,
            is_checkpoint,
            written,
        });
    }

    /// What every row that changes was before.
    fn rows_before(&self, view: &View, changes: &[AfterImage]) -> Result<Vec<Option<Row>>, StoreError> {
        let read = |change: &AfterImage| view.get(&self.shared.cache, change.row.table, &change.row.key);
        match changes.len() < PARALLEL_ROWS_MIN {
            true => changes.iter().map(read).collect(),
            false => changes.par_iter().map(read).collect(),
        }
    }

    /// Waits while many points wait to be written: what they have is in memory.
    fn wait_for_room(&self) -> Result<(), StoreError> {
        let core = &self.durable.core;
        let most = if core.files.overlapping_runs() > OVERLAPPING_MAX { 0 } else { WAITING_MAX };
        let waited = core.wait_for_points(most)?;
        self.shared.waited.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// What happens when a layer is written: from now on the newest version reads the files, and not this layer.
fn written(shared: Arc<Shared>, layer: Arc<VersionedRows>, version: Version) -> WhenWritten {
    Box::new(move |files| {
        let changed = layer.tables().into_iter().flat_map(|table| {
            let rows = layer.scan(version, table, &KeyRange::ALL, false);
            rows.map(move |(key, row)| {
                let bytes = bytes_of(&row);
                (RowId { table, key }, row, bytes)
            })
        });
        let epoch = shared.cache.begin_epoch(changed);
        let mut versions = shared.versions.lock();
        let view = versions.newest_mut();
        view.writing.retain(|other| !Arc::ptr_eq(other, &layer));
        (view.files, view.epoch) = (files.clone(), epoch);
        epoch
    })
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

    fn prefetch(&self, transactions: &[Arc<dyn Simulate>]) {
        if self.prefetcher.is_worth_it(self.shared.cache.hits_and_misses()) {
            let view = self.shared.versions.lock().newest_mut().clone();
            self.prefetcher.prefetch(&view, transactions);
        }
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        let _applying = self.applying.lock();
        self.wait_for_room()?;
        let after = catalog.as_deref();
        if after.is_some_and(|after| indexes_made(&self.catalog(), after).next().is_some()) {
            // The files are to have entries beside what the newest version finds there, and nothing else.
            self.durable.core.wait_for_points(0)?;
        }
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
        let mut counts: Vec<(TableId, i64)> = changes.iter().zip(&old).map(counted).collect();
        let mut grown = 0;
        let mut write = |changes: &[AfterImage], old: &[Option<Row>]| {
            let write = Write { version, changes, retained: &retained, free: &[], dropped: &[] };
            grown += write_newest(&before.newest, &write, old);
        };
        write(changes, &old);
        // Entries of indexes have no values that grow.
        write(&entries, &[]);
        counts.extend(entries.iter().map(counted_entry));
        let (made, mut files) = (View { version, ..before.clone() }, None);
        for (table, index) in indexes_made(&before.catalog, &after) {
            if self.rows(table) > self.shared.budget.newest / INDEXED_ROW_BYTES {
                let (core, budget) = (&self.durable.core, self.shared.budget);
                counts.extend(write_entries(core, &made, (table, index), budget.newest)?);
                files = Some(core.files.now());
            } else {
                let entries = new_entries(index, |visit| made.scan(table, &KeyRange::ALL, false, visit))?;
                write(&entries, &[]);
                counts.extend(entries.iter().map(counted_entry));
            }
        }
        counts.retain(|(table, change)| *change != 0 && !dropped.contains(table));

        let mut versions = self.shared.versions.lock();
        let mut view = View { version, catalog: after, catalog_digest, ..versions.newest_mut().clone() };
        view.files = files.unwrap_or(view.files);
        if !dropped.is_empty() {
            view.dropped = Arc::new(view.dropped.iter().copied().chain(dropped.iter().copied()).collect());
        }
        versions.count(&counts, &dropped);
        versions.dropped.extend(dropped);
        versions.retained.insert(version, Retained { snapshots: 0, view });
        versions.newest = version;
        versions.newest_bytes = versions.newest_bytes.saturating_add_signed(grown);
        versions.ended = None;
        // The end of the block is a better place.
        if versions.newest_bytes > 2 * self.shared.budget.newest {
            self.hand_over(&mut versions, false);
        }
        Ok(())
    }

    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        let _applying = self.applying.lock();
        let mut versions = self.shared.versions.lock();
        let BlockEnd { point, admitted, is_resumable, is_checkpoint, is_due } = end;
        versions.ended = is_resumable.then_some(point);
        versions.admitted.add(admitted);
        if is_checkpoint || (is_due && is_resumable) || versions.newest_bytes > self.shared.budget.newest {
            self.hand_over(&mut versions, is_checkpoint);
        }
        drop(versions);
        self.durable.core.check()
    }

    fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        let _applying = self.applying.lock();
        self.hand_over(&mut self.shared.versions.lock(), false);
        self.durable.newest_point()
    }

    fn keep_checkpoint(
        &self,
        header: &CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        let catalog = snapshot.catalog().clone();
        // The rows in memory are not needed any more once they are in the files.
        drop(snapshot);
        let in_files = |rows: &WrittenRows| {
            let cache = (self.shared.cache.clone(), rows.epoch);
            FilesSnapshot::with_cache(rows.files.clone(), catalog.clone(), cache)
        };
        self.durable.seal(header.height, &in_files, &live, shape)
    }

    fn statistics(&self) -> StoreStatistics {
        let counts = self.shared.versions.lock().counts.clone();
        let rows = counts.iter().filter(|(table, _)| table.is_made()).map(|(_, rows)| rows).sum();
        let (cache_hits, cache_misses) = self.shared.cache.hits_and_misses();
        let waited = Duration::from_nanos(self.shared.waited.load(Ordering::Relaxed));
        StoreStatistics { rows, cache_hits, cache_misses, waited, ..self.durable.core.statistics() }
    }
}

/// Writes changes in front of the files. Gives how much memory that takes: that of rows that are new there, and what others have
/// grown by. `old`: what rows were before.
fn write_newest(newest: &VersionedRows, write: &Write<'_>, old: &[Option<Row>]) -> i64 {
    let changes = write.changes;
    if changes.is_empty() {
        return 0;
    }
    let new = newest.write(write).new;
    let mut grown: i64 = new.iter().map(|position| memory_of(&changes[*position as usize])).sum();
    let mut new = new.into_iter().peekable();
    for (position, (change, old)) in (0..).zip(changes.iter().zip(old)) {
        if new.next_if_eq(&position).is_none() {
            grown += memory_of(change) - row_memory(&change.row.key, bytes_of(old)) as i64;
        }
    }
    grown
}

/// What a change does to the number of rows.
fn counted((change, old): (&AfterImage, &Option<Row>)) -> (TableId, i64) {
    (change.row.table, i64::from(change.value.is_some()) - i64::from(old.is_some()))
}

/// What an entry of an index, which comes or goes, does to the number of them.
fn counted_entry(entry: &AfterImage) -> (TableId, i64) {
    (entry.row.table, if entry.value.is_some() { 1 } else { -1 })
}

/// Memory that a change takes.
fn memory_of(change: &AfterImage) -> i64 {
    row_memory(&change.row.key, bytes_of(&change.value)) as i64
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

#[cfg(test)]
mod tests {
    use crate::{Disk, DiskOptions};
    use state::{AfterImage, RowId, Stores, Version};
    use std::sync::Arc;
    use types::{Key, TableId, Value};

    #[test]
    fn rows_go_to_the_disk_when_they_take_memory_however_often_one_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = DiskOptions { memory_bytes: 1 << 20, ..DiskOptions::default() };
        let stores = Disk::open(folder.path(), options).expect("it opens");
        let store = stores.create(Arc::default()).expect("it is made");
        let apply = |batch: u64, value: Value| {
            let row = RowId { table: TableId(1), key: Key::encode([&Value::BigInt(1)]).expect("a key") };
            let image = AfterImage { row, value: Some(Arc::from([value])) };
            store.apply(Version::after_batch(batch, 0), &[image], None).expect("it is written");
        };
        // Each would take two hundred bytes if it came on top, and memory has room for 170,000.
        (1..4_000).for_each(|batch| apply(batch, Value::BigInt(batch as i64)));
        let points = || {
            store.durable_point().expect("it is written");
            store.statistics().durable_points
        };
        assert_eq!(points(), 1, "the one that was asked for");
        apply(4_000, Value::BigInt(0));
        (1..8).for_each(|batch| apply(4_000 + batch, Value::text("x".repeat(batch as usize * 20_000))));
        assert!(points() > 2, "the row grows");
    }
}
