//! CREATE INDEX, DROP INDEX and UNIQUE.

use crate::ddl::index_drafts::{IndexDraft, IndexPart};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::operator_classes::check_classes;
use crate::ddl::relations::{generated_name, relation_exists, take_number};
use crate::ddl::rows::Rows;
use plan::bind_indexes::bind_index;
use plan::computed_index::{ComputedIndex, entry_row};
use plan::table::{TablePlan, describe_key, listed_columns};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{
    Catalog, DataType, Index, IndexDetails, IndexMethod, Key, SqlError, SqlState, Table, Value, limits,
    object_name,
};

/// Refuses a key on a column whose values have no order.
///
/// # Errors
/// `42704`
pub(super) fn check_ordered(table: &Table, ordinals: &[u16]) -> Result<(), SqlError> {
    let columns = ordinals.iter().filter_map(|ordinal| table.columns.get(usize::from(*ordinal)));
    refuse_unordered(columns.map(|column| column.data_type))
}

fn refuse_unordered(types: impl Iterator<Item = DataType>) -> Result<(), SqlError> {
    let mut types = types;
    match types.find(|found| *found == DataType::Json) {
        None => Ok(()),
        Some(found) => {
            let message =
                format!("data type {found} has no default operator class for access method \"btree\"");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint("Use jsonb, which has an order."))
        }
    }
}

/// Refuses an inverted index on values that have no parts.
fn refuse_without_parts(mut types: impl Iterator<Item = DataType>) -> Result<(), SqlError> {
    match types.find(|found| !found.has_parts()) {
        None => Ok(()),
        Some(found) => {
            let found = found.family();
            let message =
                format!("data type {found} has no default operator class for access method \"gin\"");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                .hint("There are such indexes on tsvector, jsonb and arrays."))
        }
    }
}

/// The same of all keys that a table has.
///
/// # Errors
/// `42704`
pub(super) fn check_keys_ordered(catalog: &Catalog, table: &Table) -> Result<(), SqlError> {
    check_ordered(table, &table.primary_key)?;
    let mut indexes = catalog.indexes_of(table.id).iter();
    indexes.try_for_each(|index| match index.method {
        IndexMethod::Ordered => check_ordered(table, &index.columns),
        IndexMethod::Inverted => {
            let columns = index.columns.iter().filter_map(|ordinal| table.columns.get(usize::from(*ordinal)));
            refuse_without_parts(columns.map(|column| column.data_type))
        }
    })
}

/// Adds an index to a table of the catalog.
///
/// # Errors
/// A name that is taken, unknown columns, too many indexes; rows that have the same key already.
pub(super) fn create_index(
    catalog: &mut NewCatalog,
    table: &Arc<Table>,
    draft: &IndexDraft,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let columns = key_columns(table, draft)?;
    let included = draft.included.iter().map(|name| named_column(table, name, false));
    let included: Vec<u16> = included.collect::<Result<_, _>>()?;
    if draft.method == IndexMethod::Ordered {
        check_ordered(table, &columns)?;
    }
    if columns.len() + included.len() > limits::INDEX_COLUMNS_MAX {
        let message = format!(
            "cannot use more than {} columns in an index (INDEX_COLUMNS_MAX)",
            limits::INDEX_COLUMNS_MAX
        );
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let details = IndexDetails {
        expressions: draft.expressions().map(str::to_string).collect(),
        predicate: draft.predicate.clone(),
        included,
        nulls_not_distinct: draft.nulls_not_distinct,
        written: draft.written(table),
    };
    let known = catalog.indexes_of(table.id);
    if known.len() >= limits::INDEXES_MAX {
        let message = format!("a table has at most {} indexes (INDEXES_MAX)", limits::INDEXES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let is_same = |known: &Index| {
        known.constraint
            && known.columns == columns
            && known.details == details
            && known.deferral == draft.deferral
            && !draft.primary
    };
    if draft.constraint && known.iter().any(is_same) {
        // As PostgreSQL: the same UNIQUE twice is one.
        return Ok(());
    }
    let name = index_name(catalog, table, draft)?;
    let index = Index {
        number: 0,
        name,
        columns,
        unique: draft.unique,
        constraint: draft.constraint,
        details,
        deferral: draft.deferral,
        primary: draft.primary,
        method: draft.method,
    };
    let computed = index.is_computed().then(|| bind_new(catalog, table, &index)).transpose()?;
    check_classes(catalog, table, &index, computed.as_ref())?;
    let index = Index { number: take_number(catalog)?, ..index };
    if index.unique && computed.is_none() {
        check_unique(catalog, table, &index, rows)?;
    }
    catalog.indexes.entry(table.id).or_default().push(index);
    Ok(())
}

fn named_column(table: &Table, name: &str, in_constraint: bool) -> Result<u16, SqlError> {
    table.ordinal(name).map(|ordinal| ordinal as u16).ok_or_else(|| {
        let named = if in_constraint { " named in key" } else { "" };
        let message = format!("column \"{name}\"{named} does not exist");
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

/// Ordinals of the columns that an index is on, [`Index::EXPRESSION`] in the places of expressions.
fn key_columns(table: &Table, draft: &IndexDraft) -> Result<Vec<u16>, SqlError> {
    let mut columns: Vec<u16> = Vec::with_capacity(draft.parts.len());
    for part in &draft.parts {
        let name = match part {
            IndexPart::Column(name) => name,
            IndexPart::Expression { .. } => {
                columns.push(Index::EXPRESSION);
                continue;
            }
        };
        let ordinal = named_column(table, name, draft.constraint)?;
        if draft.constraint && columns.contains(&ordinal) {
            let message = format!("column \"{name}\" appears twice in unique constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(ordinal);
    }
    Ok(columns)
}

/// The name of a new index: the one that it is given, or PostgreSQL's.
fn index_name(catalog: &Catalog, table: &Table, draft: &IndexDraft) -> Result<String, SqlError> {
    match &draft.name {
        Some(name) if relation_exists(catalog, &table.index_name(name)) => {
            let message = format!("relation \"{name}\" already exists");
            Err(SqlError::new(SqlState::DUPLICATE_TABLE, message))
        }
        Some(name) => Ok(name.clone()),
        None => {
            let label = match (draft.primary, draft.constraint) {
                (true, _) => "pkey",
                (false, true) => "key",
                (false, false) => "idx",
            };
            let columns = if draft.primary { String::new() } else { draft.part_names().join("_") };
            let mut candidates = (0..).map(|number: u32| {
                let label = if number == 0 { label.to_string() } else { format!("{label}{number}") };
                generated_name(table.object_name(), &columns, &label)
            });
            let free = candidates.find(|name| !relation_exists(catalog, &table.index_name(name)));
            Ok(free.unwrap_or_default())
        }
    }
}

/// Binds a computed index that is new, by the rules of now.
fn bind_new(catalog: &NewCatalog, table: &Table, index: &Index) -> Result<ComputedIndex, SqlError> {
    let routines = catalog.routines();
    let plan = TablePlan::stored(table, catalog, &routines)?;
    let computed = bind_index(&plan, &Arc::new(index.clone()), &routines)?;
    match index.method {
        IndexMethod::Ordered => refuse_unordered(computed.keys.iter().map(|key| key.data_type()))?,
        IndexMethod::Inverted => refuse_without_parts(computed.keys.iter().map(|key| key.data_type()))?,
    }
    Ok(computed)
}

/// Writes the entries of computed indexes that are new, or have another number, because their table has.
///
/// # Errors
/// `23505` where two rows have the same key; what computing raises.
pub(super) fn write_entries(
    previous: &Catalog,
    catalog: &NewCatalog,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let known = |index: &Index| previous.indexes.values().flatten().any(|known| known.number == index.number);
    for (table, indexes) in &catalog.indexes {
        for index in indexes.iter().filter(|index| index.is_computed() && !known(index)) {
            let Some(table) = catalog.table(*table) else { continue };
            write_entries_of(catalog, table, index, rows)?;
        }
    }
    Ok(())
}

fn write_entries_of(
    catalog: &NewCatalog,
    table: &Table,
    index: &Index,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let plan = TablePlan::stored(table, catalog, &catalog.routines())?;
    let Some(computed) = plan.computed.iter().find(|one| one.index.number == index.number) else {
        return Ok(());
    };
    let mut entries: BTreeMap<Key, Key> = BTreeMap::new();
    rows.visit(table.id, &mut |_, key, row| {
        for (entry, values) in computed.entries(key, row)? {
            if entries.insert(entry, key.clone()).is_some() {
                return Err(duplicated(&index.name, &computed.listed(), &values));
            }
        }
        Ok(())
    })?;
    for (entry, primary) in entries {
        let row = entry_row(&primary);
        rows.execution.keep_row(&entry, &row, primary.as_bytes().len() as u64)?;
        rows.put(index.computed_entries(), entry, row)?;
    }
    Ok(())
}

fn duplicated(index: &str, columns: &str, values: &[Value]) -> SqlError {
    let message = format!("could not create unique index \"{index}\"");
    let detail = format!("{} is duplicated.", describe_key(columns, values));
    SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail)
}

/// Refuses a unique index on rows of which two have the same key, and keys that are too long.
pub(super) fn check_unique(
    catalog: &NewCatalog,
    table: &Table,
    index: &Index,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let mut seen = BTreeSet::new();
    rows.visit(table.id, &mut |_, _, row| {
        let Some(key) = index.unique_entry(row)? else { return Ok(()) };
        if seen.insert(key) {
            return Ok(());
        }
        let values: Vec<Value> =
            index.columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect();
        let columns =
            listed_columns(&TablePlan::stored(table, catalog, &catalog.routines())?, &index.columns);
        Err(duplicated(&index.name, &columns, &values))
    })
}

/// DROP INDEX.
///
/// # Errors
/// It is not there, or a constraint needs it.
pub(super) fn drop_index(catalog: &mut Catalog, if_exists: bool, name: &str) -> Result<(), SqlError> {
    let found = catalog.tables.values().find_map(|table| {
        let mut indexes = catalog.indexes_of(table.id).iter();
        let index = indexes.find(|index| table.index_name(&index.name) == name)?;
        Some((table.id, index.clone()))
    });
    let Some((table, index)) = found else {
        if if_exists {
            return Ok(());
        }
        let (state, message) = match relation_exists(catalog, name) {
            true => (SqlState(*b"42809"), format!("\"{}\" is not an index", object_name(name))),
            false => (SqlState(*b"42704"), format!("index \"{}\" does not exist", object_name(name))),
        };
        return Err(SqlError::new(state, message));
    };
    let table_name = catalog.table(table).map(|table| table.name.clone()).unwrap_or_default();
    if index.constraint {
        let message =
            format!("cannot drop index {name} because constraint {name} on table {table_name} requires it");
        return Err(SqlError::new(SqlState(*b"2BP01"), message)
            .hint(format!("You can drop constraint {name} on table {table_name} instead.")));
    }
    crate::ddl::foreign_keys::refuse_needed(
        catalog,
        &index,
        &format!("index {name}"),
        &format!("index {name}"),
    )?;
    remove_index(catalog, table, &index);
    Ok(())
}

/// Takes an index out of the catalog.
pub(super) fn remove_index(catalog: &mut Catalog, table: types::TableId, index: &Index) {
    if let Some(indexes) = catalog.indexes.get_mut(&table) {
        indexes.retain(|known| known.number != index.number);
        if indexes.is_empty() {
            catalog.indexes.remove(&table);
        }
    }
}
