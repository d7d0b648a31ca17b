//! CREATE INDEX, DROP INDEX and UNIQUE.

use crate::ddl::deferral::bind_deferral;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::{generated_name, relation_exists, take_number};
use crate::ddl::rows::Rows;
use plan::table::{TablePlan, describe_key, listed_columns};
use sqlparser::ast::{self, Expr, IndexColumn, IndexType};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{
    Catalog, DataType, Deferral, ExecutionVersion, Index, SqlError, SqlState, Table, Value, limits,
    object_name,
};

/// An index as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct IndexDraft {
    /// Its name; `None`: PostgreSQL's.
    pub name: Option<String>,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// UNIQUE
    pub unique: bool,
    /// It is a UNIQUE constraint.
    pub constraint: bool,
    /// When the constraint is held.
    pub deferral: Deferral,
    /// The constraint is a PRIMARY KEY that can be deferred.
    pub primary: bool,
}

impl IndexDraft {
    /// A primary key that can be deferred.
    pub(super) fn key(name: Option<String>, columns: Vec<String>, deferral: Deferral) -> IndexDraft {
        IndexDraft { name, columns, unique: true, constraint: true, deferral, primary: true }
    }
}

/// CREATE INDEX: the table, and the index.
pub(super) fn bind_create_index(create: &ast::CreateIndex) -> Result<(String, IndexDraft), SqlError> {
    let refused = [
        (create.predicate.is_some(), "a partial index (WHERE)"),
        (!create.include.is_empty(), "INCLUDE"),
        (create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (!create.index_options.is_empty() || !create.alter_options.is_empty(), "this form of CREATE INDEX"),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(found, _)| *found) {
        return Err(SqlError::unsupported(what));
    }
    match &create.using {
        None | Some(IndexType::BTree) => {}
        Some(other) => {
            return Err(SqlError::unsupported(format_args!("an index USING {other}"))
                .hint("Indexes are ordered: leave USING out, or write USING btree."));
        }
    }
    let name = create.name.as_ref().map(table_name).transpose()?;
    let columns = create.columns.iter().map(column_name).collect::<Result<_, _>>()?;
    let (unique, deferral) = (create.unique, Deferral::Never);
    let draft = IndexDraft { name, columns, unique, constraint: false, deferral, primary: false };
    Ok((table_name(&create.table_name)?, draft))
}

/// UNIQUE as a constraint of a table.
pub(super) fn bind_unique(
    unique: &ast::UniqueConstraint,
    rules: ExecutionVersion,
) -> Result<IndexDraft, SqlError> {
    let deferral = bind_deferral(unique.characteristics.as_ref(), rules)?;
    if !unique.index_options.is_empty() {
        return Err(SqlError::unsupported("this form of UNIQUE"));
    }
    if matches!(unique.nulls_distinct, ast::NullsDistinctOption::NotDistinct) {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT"));
    }
    let name = unique.name.as_ref().map(name_of).transpose()?;
    let columns = unique.columns.iter().map(column_name).collect::<Result<_, _>>()?;
    Ok(IndexDraft { name, columns, unique: true, constraint: true, deferral, primary: false })
}

/// The column that an index is on. It can be read in both directions, so that ASC and DESC are the same.
fn column_name(column: &IndexColumn) -> Result<String, SqlError> {
    let Expr::Identifier(ident) = &column.column.expr else {
        return Err(SqlError::unsupported("an index on an expression")
            .hint("Keep the value in a column, and index that."));
    };
    if let Some(class) = &column.operator_class
        && !is_natural_order(&class.to_string())
    {
        return Err(SqlError::unsupported(format_args!("the operator class {class} of an index")));
    }
    name_of(ident)
}

/// Whether an operator class orders as the values of its type are ordered: in the collation C those for patterns do too.
fn is_natural_order(class: &str) -> bool {
    const CLASSES: [&str; 22] = [
        "bool_ops",
        "bpchar_ops",
        "bpchar_pattern_ops",
        "bytea_ops",
        "date_ops",
        "float4_ops",
        "float8_ops",
        "int2_ops",
        "int4_ops",
        "int8_ops",
        "interval_ops",
        "jsonb_ops",
        "numeric_ops",
        "record_ops",
        "text_ops",
        "text_pattern_ops",
        "time_ops",
        "timestamp_ops",
        "timestamptz_ops",
        "uuid_ops",
        "varchar_ops",
        "varchar_pattern_ops",
    ];
    CLASSES.contains(&class.to_ascii_lowercase().as_str())
}

/// Refuses a key on a column whose values have no order.
///
/// # Errors
/// `42704`
pub(super) fn check_ordered(table: &Table, ordinals: &[u16]) -> Result<(), SqlError> {
    let types = ordinals.iter().map(|ordinal| table.columns[usize::from(*ordinal)].data_type);
    match types.into_iter().find(|found| *found == DataType::Json) {
        None => Ok(()),
        Some(found) => {
            let message =
                format!("data type {found} has no default operator class for access method \"btree\"");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint("Use jsonb, which has an order."))
        }
    }
}

/// The same of all keys that a table has.
///
/// # Errors
/// `42704`
pub(super) fn check_keys_ordered(catalog: &Catalog, table: &Table) -> Result<(), SqlError> {
    check_ordered(table, &table.primary_key)?;
    catalog.indexes_of(table.id).iter().try_for_each(|index| check_ordered(table, &index.columns))
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
    let mut columns: Vec<u16> = Vec::with_capacity(draft.columns.len());
    for name in &draft.columns {
        let Some(ordinal) = table.ordinal(name) else {
            let named = if draft.constraint { " named in key" } else { "" };
            let message = format!("column \"{name}\"{named} does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if draft.constraint && columns.contains(&(ordinal as u16)) {
            let message = format!("column \"{name}\" appears twice in unique constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push(ordinal as u16);
    }
    check_ordered(table, &columns)?;
    if columns.len() > limits::INDEX_COLUMNS_MAX {
        let message = format!(
            "cannot use more than {} columns in an index (INDEX_COLUMNS_MAX)",
            limits::INDEX_COLUMNS_MAX
        );
        return Err(SqlError::new(SqlState(*b"54011"), message));
    }
    let known = catalog.indexes_of(table.id);
    if known.len() >= limits::INDEXES_MAX {
        let message = format!("a table has at most {} indexes (INDEXES_MAX)", limits::INDEXES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let is_same = |known: &Index| {
        known.constraint && known.columns == columns && known.deferral == draft.deferral && !draft.primary
    };
    if draft.constraint && known.iter().any(is_same) {
        // As PostgreSQL: the same UNIQUE twice is one.
        return Ok(());
    }
    let name = match &draft.name {
        Some(name) if relation_exists(catalog, &table.index_name(name)) => {
            let message = format!("relation \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        Some(name) => name.clone(),
        None => {
            let label = match (draft.primary, draft.constraint) {
                (true, _) => "pkey",
                (false, true) => "key",
                (false, false) => "idx",
            };
            let columns = if draft.primary { String::new() } else { draft.columns.join("_") };
            let candidates = (0..).map(|number: u32| {
                let label = if number == 0 { label.to_string() } else { format!("{label}{number}") };
                generated_name(table.object_name(), &columns, &label)
            });
            let mut candidates = candidates.into_iter();
            candidates.find(|name| !relation_exists(catalog, &table.index_name(name))).unwrap_or_default()
        }
    };
    let number = take_number(catalog)?;
    let (unique, constraint, deferral, primary) =
        (draft.unique, draft.constraint, draft.deferral, draft.primary);
    let index = Index { number, name, columns, unique, constraint, deferral, primary };
    if index.unique {
        check_unique(catalog, table, &index, rows)?;
    }
    catalog.indexes.entry(table.id).or_default().push(index);
    Ok(())
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
        let message = format!("could not create unique index \"{}\"", index.name);
        let detail = format!("{} is duplicated.", describe_key(&columns, &values));
        Err(SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail))
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
