//! The entries of ordered indexes, which follow from the rows.
//!
//! Nobody writes them and nothing stores them: whoever changes a row in front of a snapshot, or in the state itself,
//! changes the entries with it ([`entry_changes`]). An entry has no columns; its key says which row it belongs to.
//! The entries of computed indexes ([`types::Index::is_computed`]) are none of these: they are rows like others.

use crate::{AfterImage, RowId, StoreError};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use types::{Catalog, Index, Key, Row, TableId};

/// What a change of a row makes of the entries of its table's indexes.
pub fn entry_changes<'c>(
    catalog: &'c Catalog,
    row: &'c RowId,
    before: Option<&'c Row>,
    after: Option<&'c Row>,
) -> impl Iterator<Item = AfterImage> + 'c {
    let changed = move |index: &&Index| match (before, after) {
        _ if index.is_computed() => false,
        (Some(before), Some(after)) => !index.is_same_entry(before, after),
        (before, after) => before.is_some() || after.is_some(),
    };
    catalog.indexes_of(row.table).iter().filter(changed).flat_map(move |index| {
        let entry = |of: &Row| RowId { table: index.entries(), key: index.entry(&row.key, of) };
        let gone = before.map(|before| AfterImage { row: entry(before), value: None });
        let new = after.map(|after| AfterImage { row: entry(after), value: Some(Row::default()) });
        gone.into_iter().chain(new)
    })
}

/// What changes of rows make of entries, by table and key. `before`: the state in front of which the changes stand.
///
/// # Errors
/// Those of `before`.
pub fn all_entry_changes(
    catalog: &Catalog,
    changes: &[AfterImage],
    before: impl Fn(TableId, &Key) -> Result<Option<Row>, StoreError>,
) -> Result<Vec<AfterImage>, StoreError> {
    let mut entries = Vec::new();
    if catalog.indexes.is_empty() {
        return Ok(entries);
    }
    for change in changes {
        if catalog.indexes_of(change.row.table).is_empty() {
            continue;
        }
        let before = before(change.row.table, &change.row.key)?;
        entries.extend(entry_changes(catalog, &change.row, before.as_ref(), change.value.as_ref()));
    }
    Ok(in_order(entries))
}

/// The entries of an index that is new, for every row of its table, and the keys that are taken in it. `rows` shows those
/// rows to whom it is given.
///
/// # Errors
/// Those of `rows`.
pub fn new_entries(
    index: &Index,
    rows: impl FnOnce(&mut dyn FnMut(&Key, &Row) -> ControlFlow<()>) -> Result<(), StoreError>,
) -> Result<Vec<AfterImage>, StoreError> {
    let mut entries = Vec::new();
    rows(&mut |key, row| {
        let value = Some(Row::default());
        entries_of_row(index, key, row, |entry| {
            entries.push(AfterImage { row: entry, value: value.clone() })
        });
        ControlFlow::Continue(())
    })?;
    Ok(in_order(entries))
}

/// The entry of a row in an index, and the key that it takes there.
pub fn entries_of_row(index: &Index, key: &Key, row: &Row, mut put: impl FnMut(RowId)) {
    put(RowId { table: index.entries(), key: index.entry(key, row) });
    if index.unique
        && let Ok(Some(taken)) = index.unique_entry(row)
    {
        put(RowId { table: index.unique_entries(), key: taken });
    }
}

/// The keys that rows of a table take in its unique indexes, for a state that comes without them.
pub(crate) fn taken_keys<'c>(
    catalog: &'c Catalog,
    table: TableId,
    row: &'c Row,
) -> impl Iterator<Item = AfterImage> + 'c {
    let unique = catalog.indexes_of(table).iter().filter(|index| index.unique && !index.is_computed());
    unique.filter_map(|index| {
        let key = index.unique_entry(row).ok().flatten()?;
        Some(AfterImage { row: RowId { table: index.unique_entries(), key }, value: Some(Row::default()) })
    })
}

/// Tables and indexes whose rows and entries go with a change of the catalog.
pub fn tables_dropped(before: &Catalog, after: &Catalog) -> Vec<TableId> {
    let kept: BTreeSet<TableId> = after.row_tables().collect();
    before.row_tables().filter(|table| !kept.contains(table)).collect()
}

pub(crate) fn in_order(mut entries: Vec<AfterImage>) -> Vec<AfterImage> {
    entries.sort_unstable_by(|a, b| a.row.cmp(&b.row));
    entries
}

/// The indexes of `after` that `before` does not have, with their tables; not computed ones, whose entries are written.
pub fn indexes_made<'c>(
    before: &'c Catalog,
    after: &'c Catalog,
) -> impl Iterator<Item = (TableId, &'c Index)> + 'c {
    after.indexes.iter().flat_map(move |(table, indexes)| {
        let known = before.indexes_of(*table);
        let made = move |index: &&Index| {
            !index.is_computed() && !known.iter().any(|known| known.number == index.number)
        };
        indexes.iter().filter(made).map(|index| (*table, index))
    })
}
