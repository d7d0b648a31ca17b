use crate::{AfterImage, KeyRange, Snapshot};
use std::collections::BTreeMap;
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

    /// Makes the row have this value.
    pub fn apply(&mut self, image: &AfterImage) {
        let table = self.tables.entry(image.row.table).or_default();
        match &image.value {
            Some(row) => table.insert(image.row.key.clone(), row.clone()),
            None => table.remove(&image.row.key),
        };
    }
}

impl Snapshot for PlainState {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Option<Row> {
        self.tables.get(&table)?.get(key).cloned()
    }

    fn scan(
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
}
