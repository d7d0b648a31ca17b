//! Relations of a catalog by name: which are there, which names are free, and the names and numbers that new ones get.

use std::sync::Arc;
use types::{
    Catalog, SqlError, SqlState, Table, TableId, as_given, limits, object_name, schema_of, split_catalog_name,
};

/// Whether a table, a view, a sequence or an index has this name; that of a primary key counts.
pub(super) fn relation_exists(catalog: &Catalog, name: &str) -> bool {
    let (schema, object) = split_catalog_name(name);
    let has_index = |table: &Arc<Table>| {
        let has_key = !table.primary_key.is_empty() && table.primary_key_name == object;
        let mut indexes = catalog.indexes_of(table.id).iter();
        (has_key || indexes.any(|index| index.name == object)) && schema_of(&table.name) == schema
    };
    catalog.tables.contains_key(name)
        || catalog.views.contains_key(name)
        || catalog.sequences.contains_key(name)
        || catalog.types.get(name).is_some_and(|known| known.is_composite())
        || catalog.tables.values().any(has_index)
}

pub(super) fn find_table(catalog: &Catalog, name: &str) -> Result<Arc<Table>, SqlError> {
    if let Some((table, _)) = catalog.partition(name) {
        let what = format_args!("this change of the partition \"{}\" alone", object_name(name));
        let hint = format!("A partition has what its table has: change \"{}\".", table.object_name());
        return Err(SqlError::unsupported(what).hint(hint));
    }
    if catalog.views.contains_key(name) || catalog.sequences.contains_key(name) {
        return Err(SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a table", object_name(name))));
    }
    catalog.tables.get(name).cloned().ok_or_else(|| {
        let message = format!("relation \"{}\" does not exist", as_given(name));
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })
}

/// Refuses a name that a relation has.
pub(super) fn check_free(catalog: &Catalog, name: &str) -> Result<(), SqlError> {
    if relation_exists(catalog, name) {
        let message = format!("relation \"{}\" already exists", object_name(name));
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    check_type_free(catalog, name)
}

/// Refuses the name of a type for a relation, whose rows have a type of its name.
pub(super) fn check_type_free(catalog: &Catalog, name: &str) -> Result<(), SqlError> {
    if !catalog.types.contains_key(name) {
        return Ok(());
    }
    let message = format!("type \"{}\" already exists", object_name(name));
    Err(SqlError::new(SqlState(*b"42710"), message).hint(
        "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
    ))
}

/// A number that no table and no index has had.
pub(super) fn take_number(catalog: &mut Catalog) -> Result<u32, SqlError> {
    let number = catalog.next_table;
    if number & !TableId::FIRST_TEMPORARY.0 >= TableId::NUMBERS_MAX - 1 {
        let message = "a ledger numbers at most 2^29 tables and indexes in its life";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.next_table += 1;
    Ok(number)
}

/// PostgreSQL's name for a constraint without one: `table_column_label`, cut to fit.
pub(super) fn generated_name(table: &str, column: &str, label: &str) -> String {
    let room = limits::NAME_BYTES_MAX - label.len() - 1 - usize::from(!column.is_empty());
    let (mut first, mut second) = (table.len(), column.len());
    while first + second > room {
        if first > second { first -= 1 } else { second -= 1 }
    }
    let cut = |text: &str, length: usize| {
        let end = (0..=length).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text[..end].to_string()
    };
    let (table, column) = (cut(table, first), cut(column, second));
    if column.is_empty() { format!("{table}_{label}") } else { format!("{table}_{column}_{label}") }
}

/// Whether a constraint of a table has this name.
pub(super) fn constraint_exists(catalog: &Catalog, table: &Table, name: &str) -> bool {
    table.checks.iter().any(|check| check.name == name)
        || (!table.primary_key.is_empty() && table.primary_key_name == name)
        || catalog.indexes_of(table.id).iter().any(|index| index.constraint && index.name == name)
        || catalog.foreign_keys_of(table.id).iter().any(|foreign_key| foreign_key.name == name)
}

/// The error of what tables can have and materialized views cannot.
pub(super) fn not_for_materialized_views(message: &str) -> SqlError {
    SqlError::new(SqlState(*b"42809"), message.to_string())
        .detail("This operation is not supported for materialized views.")
}
