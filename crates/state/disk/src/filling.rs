//! A store that gets the rows of its first version, in sorted runs of as many as memory may have.

use crate::Budget;
use crate::cache::row_memory;
use crate::files::Files;
use crate::layout::{row_bytes, row_key};
use crate::store::DiskStore;
use state::{AfterImage, Filling, Store, StoreError, Version, all_entry_changes};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use types::{Catalog, TableId};

pub(crate) struct DiskFilling {
    files: Arc<Files>,
    budget: Budget,
    version: Version,
    catalog: Arc<Catalog>,
    counts: BTreeMap<TableId, u64>,
    /// Keys and values that are not written yet.
    waiting: Vec<(Vec<u8>, Vec<u8>)>,
    /// The memory that they take.
    waiting_bytes: u64,
}

impl DiskFilling {
    pub(crate) fn new(
        folder: &Path,
        budget: Budget,
        version: Version,
        catalog: Arc<Catalog>,
    ) -> Result<DiskFilling, StoreError> {
        let files = Files::open(folder, budget.blocks)?;
        let (counts, waiting, waiting_bytes) = (BTreeMap::new(), Vec::new(), 0);
        Ok(DiskFilling { files, budget, version, catalog, counts, waiting, waiting_bytes })
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let mut rows = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.files.write(rows.into_iter().map(|(key, value)| Ok((key, Some(value)))))?;
        self.files.merge()
    }
}

impl Filling for DiskFilling {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        let entries = all_entry_changes(&self.catalog, rows, |_, _| Ok(None))?;
        for AfterImage { row: id, value } in rows.iter().chain(&entries) {
            let Some(row) = value else { continue };
            let bytes = row_bytes(row);
            self.waiting_bytes += row_memory(&id.key, bytes.len());
            self.waiting.push((row_key(id.table, &id.key), bytes));
            *self.counts.entry(id.table).or_default() += 1;
        }
        if self.waiting_bytes > self.budget.newest { self.write() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        self.write()?;
        let DiskFilling { files, budget, version, catalog, counts, .. } = *self;
        Ok(Arc::new(DiskStore::new(files, budget, version, catalog, counts)?))
    }
}
