use crate::shard::{Shard, ShardReport};
use crypto::Digest;
use parking_lot::{Mutex, RwLock};
use rayon::prelude::*;
use state::{
    AfterImage, Filling, KeyHasher, KeyRange, Snapshot, Store, StoreError, Version, all_entry_changes,
    indexes_made, new_entries, tables_dropped,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// Shards of the rows; a power of two. More shards mean fewer threads that meet at a lock.
const SHARDS: usize = 64;
/// Batches below this size are written by one thread: handing out less work costs more than it saves.
const PARALLEL_ROWS_MIN: usize = 256;
/// Keys that a scan takes from the index at a time: first, and at most. The index is locked for that long.
const SCAN_CHUNK: (usize, usize) = (16, 1024);

/// The tables in memory, at the newest version and at every version that somebody holds a snapshot of.
///
/// One thread writes ([`Store::apply`]), any number read snapshots, all through a shared reference. A row is found by
/// hashing its key to one of the shards, each behind its own lock; an ordered index per table has the keys for
/// scans. Readers never wait for a whole batch: a lock is held for one row, for the rows of a batch that fall into
/// one shard, or for one chunk of a scan.
pub(crate) struct MemoryStore {
    tables: Arc<Tables>,
    writer: Mutex<()>,
}

struct Tables {
    hasher: KeyHasher,
    shards: Box<[PaddedShard]>,
    indexes: RwLock<BTreeMap<TableId, Arc<Index>>>,
    versions: Mutex<Versions>,
}

/// Keys of the rows of one table that some retained version sees.
type Index = RwLock<BTreeSet<Key>>;

/// A shard that shares no cache line with another one.
#[derive(Default)]
#[repr(align(128))]
struct PaddedShard(RwLock<Shard>);

struct Versions {
    newest: Version,
    /// The newest version, those that snapshots hold, and those released since the last write.
    retained: BTreeMap<Version, Retained>,
    /// Rows per table at the newest version.
    rows: BTreeMap<TableId, u64>,
    /// Tables whose rows some retained version may still see, with the version that dropped them.
    dropped: Vec<(Version, TableId)>,
}

struct Retained {
    snapshots: usize,
    catalog: Arc<Catalog>,
    catalog_digest: Digest,
}

/// The state at one version, unchanged for as long as somebody holds it. What it needs beyond the newest version
/// stays in memory that long.
struct MemorySnapshot {
    tables: Arc<Tables>,
    version: Version,
    catalog: Arc<Catalog>,
}

impl MemoryStore {
    /// No rows, at `version`.
    pub(crate) fn at(version: Version, catalog: Arc<Catalog>) -> MemoryStore {
        let catalog_digest = catalog.digest();
        let versions = Versions {
            newest: version,
            retained: BTreeMap::from([(version, Retained { snapshots: 0, catalog, catalog_digest })]),
            rows: BTreeMap::new(),
            dropped: Vec::new(),
        };
        let tables = Tables {
            hasher: KeyHasher::new(),
            shards: (0..SHARDS).map(|_| PaddedShard::default()).collect(),
            indexes: RwLock::default(),
            versions: Mutex::new(versions),
        };
        MemoryStore { tables: Arc::new(tables), writer: Mutex::new(()) }
    }
}

impl Store for MemoryStore {
    fn version(&self) -> Version {
        self.tables.versions.lock().newest
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.tables.versions.lock().published().catalog.clone()
    }

    fn catalog_digest(&self) -> Digest {
        self.tables.versions.lock().published().catalog_digest
    }

    fn rows(&self, table: TableId) -> u64 {
        self.tables.versions.lock().rows.get(&table).copied().unwrap_or(0)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        let mut versions = self.tables.versions.lock();
        let newest = versions.newest;
        versions.hold(&self.tables, newest).expect("the newest version is retained")
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        let held = self.tables.versions.lock().hold(&self.tables, version);
        held.map(|snapshot| snapshot as Arc<dyn Snapshot>)
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        let _writer = self.writer.lock();
        let mut versions = self.tables.versions.lock();
        assert!(version > versions.newest, "version {version:?} follows {:?}", versions.newest);
        let newest = versions.newest;
        versions.retained.retain(|version, retained| *version == newest || retained.snapshots > 0);
        let retained: Vec<Version> = versions.retained.keys().copied().collect();
        let free = versions.free_dropped(retained[0]);
        let before = versions.published();
        let dropped = catalog.as_ref().map_or(Vec::new(), |after| tables_dropped(&before.catalog, after));
        let catalog_digest = catalog.as_ref().map_or(before.catalog_digest, |catalog| catalog.digest());
        let before = before.catalog.clone();
        let catalog = catalog.unwrap_or_else(|| before.clone());
        drop(versions);

        let mut entries =
            all_entry_changes(&before, changes, |table, key| Ok(self.tables.get(newest, table, key)))?;
        entries.retain(|entry| !dropped.contains(&entry.row.table));
        let write = Write { version, changes, retained: &retained, free: &free, dropped: &dropped };
        let mut reports = self.tables.write_with_keys(&write, true);
        let rest = Write { free: &[], dropped: &[], ..write };
        let mut more = |entries: &[AfterImage]| {
            if !entries.is_empty() {
                reports.extend(self.tables.write_with_keys(&Write { changes: entries, ..rest }, true));
            }
        };
        more(&entries);
        for (table, index) in indexes_made(&before, &catalog) {
            let entries = new_entries(index, |visit| {
                self.tables.scan(version, table, &KeyRange::ALL, false, visit);
                Ok(())
            });
            more(&entries?);
        }

        let mut versions = self.tables.versions.lock();
        versions.count(&reports);
        for table in dropped {
            versions.rows.remove(&table);
            versions.dropped.push((version, table));
        }
        versions.retained.insert(version, Retained { snapshots: 0, catalog, catalog_digest });
        versions.newest = version;
        Ok(())
    }

    fn durable_point(&self) -> Result<Option<Version>, StoreError> {
        Ok(None)
    }
}

impl Filling for MemoryStore {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        let version = self.version();
        let entries = all_entry_changes(&self.catalog(), rows, |_, _| Ok(None))?;
        for changes in [rows, &entries] {
            let write = Write { version, changes, retained: &[version], free: &[], dropped: &[] };
            let reports = self.tables.write_with_keys(&write, false);
            self.tables.versions.lock().count(&reports);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(*self))
    }
}

impl Versions {
    fn published(&self) -> &Retained {
        self.retained.get(&self.newest).expect("the newest version is retained")
    }

    fn hold(&mut self, tables: &Arc<Tables>, version: Version) -> Option<Arc<MemorySnapshot>> {
        let retained = self.retained.get_mut(&version)?;
        retained.snapshots += 1;
        Some(Arc::new(MemorySnapshot { tables: tables.clone(), version, catalog: retained.catalog.clone() }))
    }

    /// Takes out the dropped tables that no version from `oldest` on sees.
    fn free_dropped(&mut self, oldest: Version) -> Vec<TableId> {
        let (free, waiting) = self.dropped.iter().partition(|(version, _)| *version <= oldest);
        self.dropped = waiting;
        free.into_iter().map(|(_, table): (Version, TableId)| table).collect()
    }

    fn count(&mut self, reports: &[ShardReport]) {
        for (table, change) in reports.iter().flat_map(|report| &report.counts) {
            let rows = self.rows.entry(*table).or_default();
            *rows = rows.checked_add_signed(*change).expect("every row that goes has been counted");
        }
    }
}

/// What every shard does in one write.
#[derive(Clone, Copy)]
struct Write<'a> {
    version: Version,
    changes: &'a [AfterImage],
    retained: &'a [Version],
    free: &'a [TableId],
    dropped: &'a [TableId],
}

impl Tables {
    /// Bits of the hash that the tables inside a shard use least.
    #[inline]
    fn shard(hash: u64) -> usize {
        (hash >> 40) as usize % SHARDS
    }

    fn get(&self, version: Version, table: TableId, key: &Key) -> Option<Row> {
        let hash = self.hasher.hash(key.as_bytes());
        self.shards[Tables::shard(hash)].0.read().get(version, table, key, hash)
    }

    fn scan(
        &self,
        version: Version,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        let Some(index) = self.indexes.read().get(&table).filter(|_| !range.is_empty()).cloned() else {
            return;
        };
        let (mut chunk, most) = SCAN_CHUNK;
        let mut rest = range.clone();
        let mut keys: Vec<Key> = Vec::new();
        loop {
            keys.clear();
            {
                let index = index.read();
                let found = index.range::<Key, _>(rest.bounds());
                if reverse {
                    keys.extend(found.rev().take(chunk).cloned());
                } else {
                    keys.extend(found.take(chunk).cloned());
                }
            }
            for key in &keys {
                if let Some(row) = self.get(version, table, key)
                    && visit(key, &row).is_break()
                {
                    return;
                }
            }
            if keys.len() < chunk {
                return;
            }
            chunk = (chunk * 4).min(most);
            if let Some(last) = keys.pop() {
                *(if reverse { &mut rest.end } else { &mut rest.start }) = Bound::Excluded(last);
            }
        }
    }

    /// Writes rows and keeps the ordered keys of their tables.
    fn write_with_keys(&self, write: &Write<'_>, keep_replaced: bool) -> Vec<ShardReport> {
        let reports = self.write(write, keep_replaced);
        self.update_keys(write.changes, &reports, write.free);
        reports
    }

    fn write(&self, write: &Write<'_>, keep_replaced: bool) -> Vec<ShardReport> {
        let (batch, starts) = self.by_shard(write.changes);
        let write_shard = |(number, shard): (usize, &PaddedShard)| {
            let mut report = ShardReport::default();
            let batch = &batch[starts[number]..starts[number + 1]];
            let mut shard = shard.0.write();
            shard.trim(write.retained, &self.hasher, &mut report);
            write.free.iter().for_each(|table| shard.free_table(*table));
            shard.write(write.version, write.changes, batch, keep_replaced, &self.hasher, &mut report);
            write.dropped.iter().for_each(|table| shard.drop_table(write.version, *table));
            report
        };
        if write.changes.len() < PARALLEL_ROWS_MIN {
            self.shards.iter().enumerate().map(write_shard).collect()
        } else {
            self.shards.par_iter().enumerate().map(write_shard).collect()
        }
    }

    /// Hash and position of each change, those of one shard side by side and in order; where each shard's begin.
    fn by_shard(&self, changes: &[AfterImage]) -> (Vec<(u64, u32)>, [usize; SHARDS + 1]) {
        assert!(u32::try_from(changes.len()).is_ok(), "a batch has fewer than 2^32 rows");
        assert!(
            changes.is_sorted_by(|a, b| a.row < b.row),
            "after-images stand by table and key, one per row"
        );
        let hashes: Vec<u64> =
            changes.iter().map(|image| self.hasher.hash(image.row.key.as_bytes())).collect();
        let mut starts = [0; SHARDS + 1];
        hashes.iter().for_each(|hash| starts[Tables::shard(*hash) + 1] += 1);
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut next = starts;
        let mut batch = vec![(0, 0); changes.len()];
        for (position, hash) in hashes.into_iter().enumerate() {
            let place = &mut next[Tables::shard(hash)];
            batch[*place] = (hash, position as u32);
            *place += 1;
        }
        (batch, starts)
    }

    fn update_keys(&self, changes: &[AfterImage], reports: &[ShardReport], free: &[TableId]) {
        if !free.is_empty() {
            let mut indexes = self.indexes.write();
            free.iter().for_each(|table| drop(indexes.remove(table)));
        }
        // First out, then in: a key may be forgotten and come again in one write.
        for (table, key) in reports.iter().flat_map(|report| &report.forgotten) {
            if let Some(index) = self.indexes.read().get(table) {
                index.write().remove(key);
            }
        }
        let mut inserted: Vec<u32> = reports.iter().flat_map(|report| &report.inserted).copied().collect();
        inserted.sort_unstable();
        let table_of = |position: u32| changes[position as usize].row.table;
        let runs: Vec<&[u32]> = inserted.chunk_by(|a, b| table_of(*a) == table_of(*b)).collect();
        runs.into_par_iter().for_each(|run| {
            let index = self.index_to_write(table_of(run[0]));
            for chunk in run.chunks(SCAN_CHUNK.1) {
                index
                    .write()
                    .extend(chunk.iter().map(|position| changes[*position as usize].row.key.clone()));
            }
        });
    }

    fn index_to_write(&self, table: TableId) -> Arc<Index> {
        if let Some(index) = self.indexes.read().get(&table) {
            return index.clone();
        }
        self.indexes.write().entry(table).or_default().clone()
    }
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut versions = self.tables.versions.lock();
        let retained = versions.retained.get_mut(&self.version).expect("a held version is retained");
        retained.snapshots -= 1;
    }
}

impl Snapshot for MemorySnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Ok(self.tables.get(self.version, table, key))
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.tables.scan(self.version, table, range, reverse, visit);
        Ok(())
    }
}
