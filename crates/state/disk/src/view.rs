//! What a version of the state is read from.

use crate::cache::RowCache;
use crate::files::FilesAt;
use crate::files_snapshot::read_row;
use crate::merged;
use crypto::Digest;
use state::{KeyRange, StoreError, Version};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};
use versioned::{Absence, VersionedRows};

/// Where the rows of one version are: in memory what the newest batches have written, then what waits to be written to the
/// disk, then the files. Nothing of it changes for this version.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) version: Version,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) catalog_digest: Digest,
    /// Tables that have gone, whose rows may still be in one of the places, or in the cache. No number is used twice.
    pub(crate) dropped: Arc<BTreeSet<TableId>>,
    pub(crate) newest: Arc<VersionedRows>,
    /// What is being written, the newest first.
    pub(crate) writing: Vec<Arc<VersionedRows>>,
    pub(crate) files: Arc<FilesAt>,
    /// The epoch of the cache that belongs to the files.
    pub(crate) epoch: u64,
}

impl View {
    /// What the files have, and nothing newer.
    pub(crate) fn of_files(version: Version, catalog: Arc<Catalog>, files: Arc<FilesAt>) -> View {
        View {
            version,
            catalog_digest: catalog.digest(),
            catalog,
            dropped: Arc::default(),
            newest: Arc::new(VersionedRows::new(Absence::Kept)),
            writing: Vec::new(),
            files,
            epoch: 0,
        }
    }

    /// The row with this primary key.
    pub(crate) fn get(&self, cache: &RowCache, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        if self.dropped.contains(&table) {
            return Ok(None);
        }
        for rows in std::iter::once(&self.newest).chain(&self.writing) {
            if let Some(known) = rows.get(self.version, table, key) {
                return Ok(known);
            }
        }
        cache.get(self.epoch, table, key, || read_row(&self.files, table, key))
    }

    /// Reads the row with this primary key into the cache, where it would be read from the files.
    pub(crate) fn prefetch(&self, cache: &RowCache, table: TableId, key: &Key) -> Result<(), StoreError> {
        if cache.contains(table, key) { Ok(()) } else { self.get(cache, table, key).map(drop) }
    }

    /// Visits the rows of an interval in key order (backwards if `reverse`), until `visit` breaks.
    pub(crate) fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if self.dropped.contains(&table) || range.is_empty() {
            return Ok(());
        }
        merged::scan(self, table, range, reverse, visit)
    }
}
