//! What the clients of this node see: the ledger's tables and those of this organisation's schemas, as one state.
//!
//! Tables of a schema with members have numbers that nothing else has ([`SchemaMembers::has_table`]), so whoever asks for a row is
//! sent to the state that has it. Nothing that is ordered runs here.

use sql::{CompileOptions, Library};
use state::{ColumnBatch, KeyRange, ReadColumns, RowId, Snapshot, StoreError};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, ExecutionVersion, Key, Row, SchemaMembers, Table, TableId};

/// In versions of catalogs that are put together, and in no other.
const TOGETHER: u64 = 1 << 62;

/// The state of one schema.
#[derive(Clone)]
pub(super) struct SchemaView {
    pub(super) members: Arc<SchemaMembers>,
    pub(super) snapshot: Arc<dyn Snapshot>,
}

/// The ledger's state with those of schemas.
pub(super) struct Together {
    catalog: Arc<Catalog>,
    ledger: Arc<dyn Snapshot>,
    schemas: Arc<[SchemaView]>,
}

/// The catalogs of a ledger and of schemas, compiled together, and what they were made of.
pub(super) struct CompiledTogether {
    versions: Vec<u64>,
    rules: ExecutionVersion,
    library: Arc<Library>,
}

impl CompiledTogether {
    /// Compiled again only if one of the catalogs has changed since `before`. `compilations`: how often that was, in this process.
    ///
    /// # Errors
    /// What does not compile; every part does by itself.
    pub(super) fn of(
        before: Option<CompiledTogether>,
        ledger: &Arc<Library>,
        schemas: &[SchemaView],
        compilations: &mut u64,
    ) -> Result<CompiledTogether, types::SqlError> {
        let catalogs = || {
            let schemas = schemas.iter().map(|view| view.snapshot.catalog());
            std::iter::once(ledger.catalog()).chain(schemas)
        };
        let numbers = schemas.iter().map(|view| u64::from(view.members.number));
        let versions: Vec<u64> = catalogs().map(|catalog| catalog.version).chain(numbers).collect();
        let rules = ledger.version();
        if let Some(before) = before.filter(|before| before.versions == versions && before.rules == rules) {
            return Ok(before);
        }
        let mut together = Catalog::clone(ledger.catalog());
        for catalog in catalogs().skip(1) {
            add(&mut together, catalog);
        }
        // What a statement was bound to before counts no longer, whichever of them has changed, come or gone.
        *compilations += 1;
        together.version = TOGETHER | *compilations;
        let options = CompileOptions { version: rules, ..CompileOptions::default() };
        let library = Arc::new(Library::with_options(Arc::new(together), options)?);
        Ok(CompiledTogether { versions, rules, library })
    }

    pub(super) fn library(&self) -> &Arc<Library> {
        &self.library
    }
}

/// Adds what stands in a schema. All names have the schema in front, and all numbers are its own.
fn add(together: &mut Catalog, catalog: &Catalog) {
    let Catalog {
        tables,
        indexes,
        foreign_keys,
        triggers,
        views,
        sequences,
        procedures,
        aggregates,
        types,
        row_types,
        comments,
        ..
    } = catalog.clone();
    together.tables.extend(tables);
    together.indexes.extend(indexes);
    together.foreign_keys.extend(foreign_keys);
    together.triggers.extend(triggers);
    together.views.extend(views);
    together.sequences.extend(sequences);
    together.procedures.extend(procedures);
    together.aggregates.extend(aggregates);
    together.types.extend(types);
    together.row_types.extend(row_types);
    together.comments.extend(comments);
}

impl Together {
    pub(super) fn new(
        catalog: Arc<Catalog>,
        ledger: Arc<dyn Snapshot>,
        schemas: Arc<[SchemaView]>,
    ) -> Together {
        Together { catalog, ledger, schemas }
    }

    fn of(&self, table: TableId) -> &dyn Snapshot {
        let own = self.schemas.iter().find(|view| view.members.has_table(table));
        own.map_or(self.ledger.as_ref(), |view| view.snapshot.as_ref())
    }
}

impl Snapshot for Together {
    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.of(table).get(table, key)
    }

    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        match rows.first() {
            Some(first) if rows.iter().all(|row| row.table == first.table) => {
                self.of(first.table).get_many(rows)
            }
            _ => rows.iter().map(|row| self.get(row.table, &row.key)).collect(),
        }
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.of(table).scan(table, range, reverse, visit)
    }

    fn scan_many(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        visit: &mut dyn FnMut(usize, Key, Row),
    ) -> Result<(), StoreError> {
        self.of(table).scan_many(table, ranges, visit)
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        self.of(table).about_rows(table)
    }

    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        self.of(table.id).columns(table, ordinals)
    }

    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        self.of(table.id).read_columns(table, ordinals)
    }
}
