use crypto::Digest;
use parking_lot::Mutex;
use state::{
    AfterImage, Filling, KeyRange, Snapshot, Store, StoreError, Version, all_entry_changes, indexes_made,
    new_entries, tables_dropped,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};
use versioned::{Absence, VersionedRows, Write};

/// The tables in memory, at the newest version and at every version that somebody holds a snapshot of.
///
/// One thread writes ([`Store::apply`]), any number read snapshots, all through a shared reference.
pub(crate) struct MemoryStore {
    tables: Arc<Tables>,
    writer: Mutex<()>,
}

struct Tables {
    rows: VersionedRows,
    versions: Mutex<Versions>,
}

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
        let tables = Tables { rows: VersionedRows::new(Absence::Forgotten), versions: Mutex::new(versions) };
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
        let mut counts = self.tables.rows.write(&write).counts;
        let rest = Write { free: &[], dropped: &[], ..write };
        let mut more = |entries: &[AfterImage]| {
            if !entries.is_empty() {
                counts.extend(self.tables.rows.write(&Write { changes: entries, ..rest }).counts);
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
        versions.count(&counts);
        for table in dropped {
            versions.rows.remove(&table);
            versions.dropped.push((version, table));
        }
        versions.retained.insert(version, Retained { snapshots: 0, catalog, catalog_digest });
        versions.newest = version;
        Ok(())
    }
}

impl Filling for MemoryStore {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        let version = self.version();
        let entries = all_entry_changes(&self.catalog(), rows, |_, _| Ok(None))?;
        for changes in [rows, &entries] {
            let counts = self.tables.rows.fill(version, changes).counts;
            self.tables.versions.lock().count(&counts);
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

    fn count(&mut self, counts: &[(TableId, i64)]) {
        for (table, change) in counts {
            let rows = self.rows.entry(*table).or_default();
            *rows = rows.checked_add_signed(*change).expect("every row that goes has been counted");
        }
    }
}

impl Tables {
    #[inline]
    fn get(&self, version: Version, table: TableId, key: &Key) -> Option<Row> {
        self.rows.get(version, table, key).flatten()
    }

    fn scan(
        &self,
        version: Version,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        for (key, row) in self.rows.scan(version, table, range, reverse) {
            if let Some(row) = row
                && visit(&key, &row).is_break()
            {
                return;
            }
        }
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
