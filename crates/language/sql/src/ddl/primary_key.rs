//! The primary key of a table that exists: ALTER TABLE … ADD PRIMARY KEY, and dropping it.
//!
//! Rows stand under their keys, so the table gets another number and its rows are written there under the new ones: those
//! of the columns, or hidden ones in the order of the rows. A key that can be deferred is no place for a row, because two rows may
//! have the same for a while: it is a unique index of a table with hidden keys.

use crate::ddl::deferral::bind_deferral;
use crate::ddl::foreign_keys::{refuse_key_needed, remove_foreign_keys};
use crate::ddl::index_drafts::IndexDraft;
use crate::ddl::indexes::{check_ordered, create_index};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::{generated_name, relation_exists};
use crate::ddl::renumber::renumber;
use crate::ddl::rows::Rows;
use plan::table::describe_key;
use sqlparser::ast::{Expr, IndexColumn, PrimaryKeyConstraint};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::names::name_of;
use types::{Catalog, Deferral, ExecutionVersion, Key, SqlError, SqlState, Table, Value};

/// A primary key as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct KeyDraft {
    /// Its name; `None`: PostgreSQL's.
    name: Option<String>,
    /// Names of its columns.
    columns: Vec<String>,
    /// When it is held.
    deferral: Deferral,
}

impl KeyDraft {
    /// # Errors
    /// Forms that are not supported.
    pub(super) fn bind(key: &PrimaryKeyConstraint, rules: ExecutionVersion) -> Result<KeyDraft, SqlError> {
        let deferral = bind_deferral(key.characteristics.as_ref(), rules)?;
        let name = key.name.as_ref().map(name_of).transpose()?;
        let columns = key.columns.iter().map(column_name).collect::<Result<_, _>>()?;
        Ok(KeyDraft { name, columns, deferral })
    }
}

fn column_name(column: &IndexColumn) -> Result<String, SqlError> {
    match &column.column.expr {
        Expr::Identifier(ident) => name_of(ident),
        _ => Err(SqlError::unsupported("an expression in PRIMARY KEY")),
    }
}

/// ADD PRIMARY KEY.
///
/// # Errors
/// A key that is there; columns that are not; rows with NULL in them or of which two have the same key.
pub(super) fn add_primary_key(
    catalog: &mut NewCatalog,
    table: &Table,
    draft: &KeyDraft,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if has_primary_key(catalog, table) {
        let message = format!("multiple primary keys for table \"{}\" are not allowed", table.object_name());
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let mut key: Vec<u16> = Vec::with_capacity(draft.columns.len());
    for name in &draft.columns {
        let Some(ordinal) = table.ordinal(name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.object_name());
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if key.contains(&(ordinal as u16)) {
            let message = format!("column \"{name}\" appears twice in primary key constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        key.push(ordinal as u16);
    }
    check_ordered(table, &key)?;
    let primary_key_name = match &draft.name {
        Some(name) if relation_exists(catalog, &table.index_name(name)) => {
            let message = format!("relation \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        Some(name) => name.clone(),
        None => {
            let candidates = (0..).map(|number: u32| {
                let label = if number == 0 { "pkey".to_string() } else { format!("pkey{number}") };
                generated_name(table.object_name(), "", &label)
            });
            let mut candidates = candidates.into_iter();
            candidates.find(|name| !relation_exists(catalog, &table.index_name(name))).unwrap_or_default()
        }
    };
    if draft.deferral.is_deferrable() {
        return add_deferrable_key(catalog, table, draft, (&key, primary_key_name), rows);
    }
    let mut new = Table { primary_key: key.clone(), primary_key_name, ..renumber(catalog, table)? };
    for ordinal in &key {
        new.columns[usize::from(*ordinal)].not_null = true;
    }
    let mut seen = BTreeSet::new();
    rows.rewrite(table.id, new.id, &mut |_, row| Ok((distinct_key(&new, row, &mut seen)?, row.clone())))?;
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(())
}

/// Whether a table has a primary key, one that can be deferred among them.
pub(super) fn has_primary_key(catalog: &Catalog, table: &Table) -> bool {
    !table.primary_key.is_empty() || catalog.indexes_of(table.id).iter().any(|index| index.primary)
}

/// ADD PRIMARY KEY of one that can be deferred: rows stay under their hidden keys.
fn add_deferrable_key(
    catalog: &mut NewCatalog,
    table: &Table,
    draft: &KeyDraft,
    (key, name): (&[u16], String),
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let mut new = table.clone();
    for ordinal in key {
        new.columns[usize::from(*ordinal)].not_null = true;
    }
    rows.visit(table.id, &mut |_, _, row| match key
        .iter()
        .find(|ordinal| row[usize::from(**ordinal)].is_null())
    {
        Some(ordinal) => {
            let column = &table.columns[usize::from(*ordinal)].name;
            Err(contains_nulls(table.object_name(), column))
        }
        None => Ok(()),
    })?;
    let new = Arc::new(new);
    catalog.tables.insert(new.name.clone(), new.clone());
    let columns = draft.columns.clone();
    create_index(catalog, &new, &IndexDraft::key(Some(name), columns, draft.deferral), rows)
}

/// The primary key of a row of a table that is made; `seen`: those of the rows before it.
///
/// # Errors
/// NULL in it; a key that has been seen.
pub(super) fn distinct_key(table: &Table, row: &[Value], seen: &mut BTreeSet<Key>) -> Result<Key, SqlError> {
    let values = || table.primary_key.iter().map(|ordinal| &row[usize::from(*ordinal)]);
    let names = || table.primary_key.iter().map(|ordinal| table.columns[usize::from(*ordinal)].name.as_str());
    if let Some((name, _)) = names().zip(values()).find(|(_, value)| value.is_null()) {
        return Err(contains_nulls(table.object_name(), name));
    }
    let key = Key::encode(values())?;
    if seen.insert(key.clone()) {
        return Ok(key);
    }
    let values: Vec<Value> = values().cloned().collect();
    let message = format!("could not create unique index \"{}\"", table.primary_key_name);
    let detail = format!("{} is duplicated.", describe_key(&names().collect::<Vec<_>>().join(", "), &values));
    Err(SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(detail))
}

/// DROP CONSTRAINT of the primary key. Its columns go on refusing NULL, as in PostgreSQL.
///
/// # Errors
/// A FOREIGN KEY that references it, without CASCADE.
pub(super) fn drop_primary_key(
    catalog: &mut Catalog,
    table: &Table,
    cascade: bool,
    rows: &mut Rows<'_, '_>,
) -> Result<Arc<Table>, SqlError> {
    if cascade {
        remove_foreign_keys(catalog, |_, foreign_key| {
            foreign_key.parent == table.id && foreign_key.index.is_none()
        });
    }
    refuse_key_needed(catalog, table)?;
    let new = Table { primary_key: Vec::new(), ..renumber(catalog, table)? };
    rows.rewrite_hidden(table.id, new.id)?;
    let new = Arc::new(new);
    catalog.tables.insert(new.name.clone(), new.clone());
    Ok(new)
}

pub(super) fn contains_nulls(table: &str, column: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    SqlError::new(SqlState::NOT_NULL_VIOLATION, message)
}
