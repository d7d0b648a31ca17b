//! Entries of ordered indexes, made where the files have rows without them: a store that has all rows in memory writes none.

use crate::Budget;
use crate::files::{Files, WriteError};
use crate::filling::DiskFilling;
use crate::gate::Gate;
use crate::layout::table_key;
use crate::merged::whole_table;
use state::{AfterImage, KeyRange, RowId, Snapshot, StoreError, Version};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Row, TableId};

/// Makes all entries anew. Gives how many each index has.
pub(crate) fn make_entries(
    (files, gate): (&Arc<Files>, &Arc<Gate>),
    budget: Budget,
    snapshot: &dyn Snapshot,
) -> Result<BTreeMap<TableId, u64>, StoreError> {
    let catalog = snapshot.catalog().clone();
    remove_entries(files)?;
    let (owned, version) = ((files.clone(), gate.clone()), Version::GENESIS);
    let mut filling = DiskFilling::new(owned, true, budget, version, catalog.clone());
    for (table, index) in catalog.indexes.iter().flat_map(|(table, all)| all.iter().map(|one| (*table, one)))
    {
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

/// Numbers of ordered indexes stand behind those of everything else.
fn remove_entries(files: &Arc<Files>) -> Result<(), StoreError> {
    let (owner, now) = (files.take_over(), files.now());
    let first = table_key(TableId::FIRST_INDEX);
    let (_, last) = whole_table(TableId(u32::MAX));
    let old = now.range((std::ops::Bound::Included(first), last), false);
    let written = files.write(owner, old.map(|item| item.map(|(key, _)| (key.to_vec(), None))));
    written.map(drop).map_err(WriteError::into_store_error)
}
