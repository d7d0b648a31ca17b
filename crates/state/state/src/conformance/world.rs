//! Random blocks, applied to a store and to a plain map.

use crate::{AfterImage, PlainState, RowId, Snapshot, Store, Stores, Version};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Catalog, Column, DataType, Deferral, Index, Key, Row, Table, TableId, Value};

/// Keys of a table: few, so that rows come and go.
pub(super) const KEYS: i32 = 300;

/// A store, what it should show, and older versions that somebody holds.
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) model: PlainState,
    pub(super) held: Vec<(Arc<dyn Snapshot>, PlainState)>,
    pub(super) random: StdRng,
    pub(super) height: u64,
    /// Numbers that were given to tables and indexes; none is used twice.
    next: u32,
    previous: (Version, PlainState),
}

pub(super) fn key(number: i32) -> Key {
    Key::encode([&Value::Integer(number)]).expect("an integer is a key")
}

/// Column 2 is another one for every key.
fn row(number: i32, random: &mut StdRng) -> Row {
    let unique = i64::from(number) * 1_000 + random.random_range(0..3);
    let text = "x".repeat(random.random_range(0..40));
    Arc::from([Value::Integer(number), Value::text(text), Value::BigInt(unique)])
}

fn table(number: u32) -> Arc<Table> {
    let column = |name: &str, data_type| Column {
        name: name.into(),
        data_type,
        not_null: false,
        default: None,
        generated: false,
    };
    Arc::new(Table {
        id: TableId(number),
        name: format!("t{number}"),
        columns: vec![
            column("id", DataType::Integer),
            column("name", DataType::Text(None)),
            column("number", DataType::BigInt),
        ],
        primary_key: vec![0],
        primary_key_name: format!("t{number}_pkey"),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    })
}

impl World {
    /// Two tables without rows, the first with an ordered index.
    pub(super) fn new(stores: &dyn Stores, seed: u64) -> World {
        let mut catalog = Catalog::default();
        for number in [1, 2] {
            catalog.tables.insert(format!("t{number}"), table(number));
        }
        let index = Index {
            number: 3,
            name: "i3".into(),
            columns: vec![1],
            unique: false,
            constraint: false,
            details: Default::default(),
            deferral: Deferral::Never,
            primary: false,
            method: types::IndexMethod::Ordered,
        };
        catalog.indexes.insert(TableId(1), vec![index]);
        let catalog = Arc::new(catalog);
        let store = stores.create(catalog.clone()).expect("a store without rows");
        let model = PlainState::new(catalog);
        World {
            previous: (store.version(), model.clone()),
            store,
            model,
            held: Vec::new(),
            random: StdRng::seed_from_u64(seed),
            height: 0,
            next: 4,
        }
    }

    /// One block: some batches, at times a schema change, at times a snapshot that is held or let go.
    pub(super) fn block(&mut self) {
        self.block_known(&mut |_| ());
    }

    /// The same; what each batch comes to is told before it is applied.
    pub(super) fn block_known(&mut self, tell: &mut dyn FnMut(&PlainState)) {
        self.height += 1;
        for batch in 0..self.random.random_range(1..4) {
            let version = Version::after_batch(self.height, batch);
            let (changes, catalog) = match self.random.random_range(0..8) {
                0 => self.schema_change(),
                _ => (self.changes(), None),
            };
            self.previous = (self.store.version(), self.model.clone());
            if let Some(catalog) = &catalog {
                self.model.change_catalog(catalog.clone());
            }
            changes.iter().for_each(|change| self.model.apply(change));
            tell(&self.model);
            self.store.apply(version, &changes, catalog).expect("nothing fails here");
            assert_eq!(self.store.version(), version);
            self.hold_or_release();
        }
    }

    fn hold_or_release(&mut self) {
        match self.random.random_range(0..6) {
            0 => self.held.push((self.store.snapshot(), self.model.clone())),
            1 => {
                let (version, model) = self.previous.clone();
                let snapshot = self.store.snapshot_at(version).expect("the version before is there");
                self.held.push((snapshot, model));
            }
            2 if !self.held.is_empty() => {
                let one = self.random.random_range(0..self.held.len());
                drop(self.held.swap_remove(one));
            }
            _ => {}
        }
        if self.held.len() > 8 {
            drop(self.held.remove(0));
        }
    }

    /// Everything begins anew on another store with the same content.
    pub(super) fn go_on_with(&mut self, store: Arc<dyn Store>) {
        self.held.clear();
        self.previous = (store.version(), self.model.clone());
        self.store = store;
    }

    /// After-images of one batch: few rows, or so many that every thread gets some.
    fn changes(&mut self) -> Vec<AfterImage> {
        let tables: Vec<TableId> = self.model.catalog.tables.values().map(|table| table.id).collect();
        let mut changes = BTreeMap::new();
        let rows = if self.random.random_bool(0.1) { 600 } else { self.random.random_range(0..20) };
        for _ in 0..rows {
            let Some(table) = tables.get(self.random.random_range(0..tables.len().max(1))) else { break };
            let number = self.random.random_range(0..KEYS);
            let value = self.random.random_bool(0.7).then(|| row(number, &mut self.random));
            self.change(RowId { table: *table, key: key(number) }, value, &mut changes);
        }
        changes.into_iter().map(|(row, value)| AfterImage { row, value }).collect()
    }

    /// A row, and the keys that it takes in unique indexes, which are written as rows are.
    fn change(&self, id: RowId, value: Option<Row>, changes: &mut BTreeMap<RowId, Option<Row>>) {
        let before = match changes.get(&id) {
            Some(before) => before.clone(),
            None => self.model.get(id.table, &id.key),
        };
        for index in self.model.catalog.indexes_of(id.table).iter().filter(|index| index.unique) {
            let taken = |row: &Row| {
                let key = index.unique_entry(row).expect("a short key").expect("no NULL");
                RowId { table: index.unique_entries(), key }
            };
            changes.extend(before.iter().map(|row| (taken(row), None)));
            changes.extend(value.iter().map(|row| (taken(row), Some(Row::default()))));
        }
        changes.insert(id, value);
    }

    /// A table or an index that comes or goes; a table may come with rows.
    fn schema_change(&mut self) -> (Vec<AfterImage>, Option<Arc<Catalog>>) {
        let mut catalog = Catalog::clone(&self.model.catalog);
        catalog.version += 1;
        let number = self.next;
        let some = |random: &mut StdRng, catalog: &Catalog| {
            let ids: Vec<TableId> = catalog.tables.values().map(|table| table.id).collect();
            (!ids.is_empty()).then(|| ids[random.random_range(0..ids.len())])
        };
        let mut changes = Vec::new();
        match self.random.random_range(0..4) {
            0 => {
                self.next += 1;
                catalog.tables.insert(format!("t{number}"), table(number));
                changes = (0..self.random.random_range(0..KEYS))
                    .map(|of| AfterImage {
                        row: RowId { table: TableId(number), key: key(of) },
                        value: Some(row(of, &mut self.random)),
                    })
                    .collect();
            }
            1 if catalog.tables.len() > 1 => {
                if let Some(table) = some(&mut self.random, &catalog) {
                    catalog.tables.retain(|_, known| known.id != table);
                    catalog.indexes.remove(&table);
                }
            }
            2 => {
                if let Some(table) = some(&mut self.random, &catalog) {
                    self.next += 1;
                    let unique = self.random.random_bool(0.5);
                    let name = format!("i{number}");
                    let columns = vec![if unique { 2 } else { 1 }];
                    let index = Index {
                        number,
                        name,
                        columns,
                        unique,
                        constraint: false,
                        details: Default::default(),
                        deferral: Deferral::Never,
                        primary: false,
                        method: types::IndexMethod::Ordered,
                    };
                    catalog.indexes.entry(table).or_default().push(index);
                }
            }
            _ => {
                if let Some(table) = some(&mut self.random, &catalog)
                    && let Some(indexes) = catalog.indexes.get_mut(&table)
                {
                    indexes.pop();
                    if indexes.is_empty() {
                        catalog.indexes.remove(&table);
                    }
                }
            }
        }
        (changes, Some(Arc::new(catalog)))
    }

    /// Every number under which there may be rows or entries.
    pub(super) fn numbers(&self) -> Vec<TableId> {
        let index = |number: u32| Index {
            number,
            name: String::new(),
            columns: Vec::new(),
            unique: true,
            constraint: false,
            details: Default::default(),
            deferral: Deferral::Never,
            primary: false,
            method: types::IndexMethod::Ordered,
        };
        let of = |number: u32| [TableId(number), index(number).entries(), index(number).unique_entries()];
        (1..=self.next).flat_map(of).collect()
    }
}
