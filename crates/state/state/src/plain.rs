use crate::indexes::{indexes_made, new_entries};
use crate::{AfterImage, KeyRange, RowId, Snapshot, StoreError, entry_changes};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// The state as two nested maps: slow to copy, obviously right. What tests compare with and replay on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlainState {
    /// Tables and procedures.
    pub catalog: Arc<Catalog>,
    /// Rows by table and key.
    pub tables: BTreeMap<TableId, BTreeMap<Key, Row>>,
}

impl PlainState {
    /// An empty state with this catalog.
    pub fn new(catalog: Arc<Catalog>) -> PlainState {
        PlainState { catalog, tables: BTreeMap::new() }
    }

    /// Makes the row have this value, and its indexes the entries that follow.
    pub fn apply(&mut self, image: &AfterImage) {
        let catalog = self.catalog.clone();
        let before = self.get(image.row.table, &image.row.key);
        for entry in entry_changes(&catalog, &image.row, before.as_ref(), image.value.as_ref()) {
            self.put(&entry);
        }
        self.put(image);
    }

    /// Has these tables, procedures and indexes from now on; rows of those that are gone go.
    pub fn change_catalog(&mut self, catalog: Arc<Catalog>) {
        let before = std::mem::replace(&mut self.catalog, catalog.clone());
        let kept: BTreeSet<TableId> = catalog.row_tables().collect();
        self.tables.retain(|table, _| kept.contains(table));
        for (table, index) in indexes_made(&before, &catalog) {
            let entries = new_entries(index, |visit| {
                self.scan(table, &KeyRange::ALL, false, visit);
                Ok(())
            });
            for entry in entries.expect("what is in memory can be read") {
                self.put(&entry);
            }
        }
    }

    /// As [`Snapshot::get`], which cannot fail here.
    pub fn get(&self, table: TableId, key: &Key) -> Option<Row> {
        self.tables.get(&table)?.get(key).cloned()
    }

    /// As [`Snapshot::scan`], which cannot fail here.
    pub fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) {
        let Some(rows) = self.tables.get(&table).filter(|_| !range.is_empty()) else { return };
        let mut rows = rows.range::<Key, _>(range.bounds());
        let mut next = || if reverse { rows.next_back() } else { rows.next() };
        while let Some((key, row)) = next() {
            if visit(key, row).is_break() {
                return;
            }
        }
    }

    fn put(&mut self, image: &AfterImage) {
        let RowId { table, key } = &image.row;
        if let Some(row) = &image.value {
            self.tables.entry(*table).or_default().insert(key.clone(), row.clone());
        } else if let Some(rows) = self.tables.get_mut(table) {
            rows.remove(key);
            // Equal states are equal maps, whatever was there before.
            if rows.is_empty() {
                self.tables.remove(table);
            }
        }
    }
}

impl Snapshot for PlainState {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Ok(self.get(table, key))
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.scan(table, range, reverse, visit);
        Ok(())
    }
}
