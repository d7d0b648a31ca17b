//! A store that gets the rows of its first version, in sorted runs of as many as memory may have; and one that gets the entries of its
//! indexes so.

use crate::cache::row_memory;
use crate::core::Written;
use crate::files::{Files, WriteError};
use crate::gate::Gate;
use crate::layout::{row_bytes, row_key};
use crate::options::Budget;
use crate::store::DiskStore;
use state::{AfterImage, Filling, KeyRange, RowId, Snapshot, Store, StoreError, Version, all_entry_changes};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Row, TableId};

pub(crate) struct DiskFilling {
    files: Arc<Files>,
    gate: Arc<Gate>,
    /// As whom it writes.
    owner: u64,
    /// Entries of ordered indexes are written like rows.
    with_entries: bool,
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
    /// `files`: without rows.
    pub(crate) fn new(
        (files, gate): (Arc<Files>, Arc<Gate>),
        with_entries: bool,
        budget: Budget,
        version: Version,
        catalog: Arc<Catalog>,
    ) -> DiskFilling {
        let owner = files.take_over();
        let (counts, waiting, waiting_bytes) = (BTreeMap::new(), Vec::new(), 0);
        DiskFilling {
            files,
            gate,
            owner,
            with_entries,
            budget,
            version,
            catalog,
            counts,
            waiting,
            waiting_bytes,
        }
    }

    /// Rows of each table so far.
    pub(crate) fn counts(&self) -> &BTreeMap<TableId, u64> {
        &self.counts
    }

    /// The rows are in the files, all of them.
    pub(crate) fn into_files(mut self) -> Result<(Arc<Files>, Arc<Gate>), StoreError> {
        self.write()?;
        Ok((self.files, self.gate))
    }

    /// Adds rows that stand for themselves.
    pub(crate) fn add_rows<'r>(
        &mut self,
        rows: impl Iterator<Item = &'r AfterImage>,
    ) -> Result<(), StoreError> {
        for AfterImage { row: id, value } in rows {
            let Some(row) = value else { continue };
            let bytes = row_bytes(row);
            self.waiting_bytes += row_memory(&id.key, bytes.len());
            self.waiting.push((row_key(id.table, &id.key), bytes));
            *self.counts.entry(id.table).or_default() += 1;
        }
        if self.waiting_bytes > self.budget.newest { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let mut rows = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let rows = rows.into_iter().map(|(key, value)| Ok((key, Some(value))));
        let written = self.files.write(self.owner, rows).and_then(|_| self.files.merge_filling());
        written.map_err(WriteError::into_store_error)
    }
}

/// Fills files that have rows in with the entries of all ordered indexes, of which they have none: a store that has all rows in
/// memory writes none. Gives how many each index has.
pub(crate) fn make_entries(
    (files, gate): (&Arc<Files>, &Arc<Gate>),
    budget: Budget,
    snapshot: &dyn Snapshot,
) -> Result<BTreeMap<TableId, u64>, StoreError> {
    let catalog = snapshot.catalog().clone();
    let (owned, version) = ((files.clone(), gate.clone()), Version::GENESIS);
    let mut filling = DiskFilling::new(owned, true, budget, version, catalog.clone());
    let all = catalog.indexes.iter().flat_map(|(table, all)| all.iter().map(|one| (*table, one)));
    for (table, index) in all.filter(|(_, index)| !index.is_computed()) {
        let mut added = Ok(());
        snapshot.scan(table, &KeyRange::ALL, false, &mut |key, row| {
            let row = RowId { table: index.entries(), key: index.entry(key, row) };
            let entry = AfterImage { row, value: Some(Row::default()) };
            added = filling.add_rows(std::iter::once(&entry));
            if added.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        added?;
    }
    let counts = filling.counts().clone();
    filling.into_files()?;
    Ok(counts)
}

impl Filling for DiskFilling {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        let entries = match self.with_entries {
            true => all_entry_changes(&self.catalog, rows, |_, _| Ok(None))?,
            false => Vec::new(),
        };
        self.add_rows(rows.iter().chain(&entries))
    }

    fn finish(mut self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        self.write()?;
        let DiskFilling { files, gate, budget, version, catalog, counts, .. } = *self;
        Ok(Arc::new(DiskStore::new((files, gate, Written::default()), budget, version, catalog, counts)?))
    }
}
