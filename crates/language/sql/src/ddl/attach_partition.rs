//! Whether a table can become a partition of another one: it must have that one's columns and constraints, and no more.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use std::sync::Arc;
use types::{Check, Column, ForeignKey, Index, SqlError, SqlState, Table, as_given, object_name};

/// The table of this name, if it can become a partition of `table`.
///
/// # Errors
/// PostgreSQL's where it cannot there either; `0A000` for what a partition cannot have alone.
pub(super) fn check_attached(
    catalog: &NewCatalog,
    table: &Table,
    name: &str,
) -> Result<Arc<Table>, SqlError> {
    let Some(child) = catalog.tables.get(name).cloned() else { return Err(no_table(catalog, name)) };
    if child.id == table.id {
        let error = SqlError::new(SqlState::DUPLICATE_TABLE, "circular inheritance not allowed");
        let name = object_name(name);
        return Err(error.detail(format!("\"{name}\" is already a child of \"{name}\".")));
    }
    if child.id.is_temporary() != table.id.is_temporary() {
        let message = match table.id.is_temporary() {
            true => "cannot attach a permanent relation as partition of temporary relation",
            false => "cannot attach a temporary relation as partition of permanent relation",
        };
        let message = format!("{message} \"{}\"", table.object_name());
        return Err(SqlError::new(SqlState(*b"42809"), message));
    }
    check_columns(table, &child)?;
    check_checks(table, &child)?;
    check_extras(catalog, table, &child)?;
    Ok(child)
}

fn no_table(catalog: &NewCatalog, name: &str) -> SqlError {
    if catalog.partition(name).is_some() {
        let message = format!("\"{}\" is already a partition", object_name(name));
        return SqlError::new(SqlState(*b"42809"), message);
    }
    if catalog.views.contains_key(name) {
        let message = format!(
            "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
            object_name(name)
        );
        let error = SqlError::new(SqlState(*b"42809"), message);
        return error.detail("This operation is not supported for views.");
    }
    match relation_exists(catalog, name) {
        true => SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a table", object_name(name))),
        false => {
            let message = format!("relation \"{}\" does not exist", as_given(name));
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
    }
}

fn mismatch(message: String) -> SqlError {
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn check_columns(table: &Table, child: &Table) -> Result<(), SqlError> {
    if let Some(other) = child.columns.iter().find(|column| table.ordinal(&column.name).is_none()) {
        let message = format!(
            "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
            child.object_name(),
            other.name,
            table.object_name()
        );
        let detail = "The new partition may contain only the columns present in parent.";
        return Err(mismatch(message).detail(detail));
    }
    for column in &table.columns {
        let Some(own) = child.ordinal(&column.name).map(|ordinal| &child.columns[ordinal]) else {
            return Err(mismatch(format!("child table is missing column \"{}\"", column.name)));
        };
        check_column(child, column, own)?;
    }
    let names = |table: &Table| table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    if names(table) == names(child) {
        return Ok(());
    }
    Err(SqlError::unsupported("ATTACH PARTITION of a table whose columns are in another order")
        .hint("Make a table LIKE the partitioned one, and insert the rows there."))
}

fn check_column(child: &Table, column: &Column, own: &Column) -> Result<(), SqlError> {
    if column.data_type != own.data_type {
        let (child, name) = (child.object_name(), &column.name);
        return Err(mismatch(format!("child table \"{child}\" has different type for column \"{name}\"")));
    }
    if column.not_null && !own.not_null {
        return Err(mismatch(format!("column \"{}\" in child table must be marked NOT NULL", column.name)));
    }
    if own.not_null && !column.not_null {
        return Err(alone(child, &format!("NOT NULL of its column \"{}\"", column.name)));
    }
    if column.generated != own.generated {
        let (verb, name) = (if column.generated { "must" } else { "must not" }, &column.name);
        return Err(mismatch(format!("column \"{name}\" in child table {verb} be a generated column")));
    }
    if column.generated && column.default != own.default {
        let name = &column.name;
        return Err(mismatch(format!(
            "column \"{name}\" in child table has a conflicting generation expression"
        )));
    }
    Ok(())
}

fn check_checks(table: &Table, child: &Table) -> Result<(), SqlError> {
    for check in &table.checks {
        match child.checks.iter().find(|own| own.name == check.name) {
            None => return Err(mismatch(format!("child table is missing constraint \"{}\"", check.name))),
            Some(own) if own.condition != check.condition => {
                return Err(mismatch(format!(
                    "child table \"{}\" has different definition for check constraint \"{}\"",
                    child.object_name(),
                    check.name
                )));
            }
            Some(own) if !own.valid => {
                return Err(alone(child, &format!("the constraint \"{}\", which is NOT VALID", own.name)));
            }
            Some(_) => {}
        }
    }
    let is_other = |own: &&Check| table.checks.iter().all(|check| check.name != own.name);
    match child.checks.iter().find(is_other) {
        Some(own) => Err(alone(child, &format!("the constraint \"{}\"", own.name))),
        None => Ok(()),
    }
}

/// What a partition cannot have that its table has not.
fn alone(child: &Table, what: &str) -> SqlError {
    SqlError::unsupported(format_args!("ATTACH PARTITION of \"{}\" with {what}", child.object_name()))
        .hint("Drop it first, or give it to the partitioned table: a partition has what its table has.")
}

fn check_extras(catalog: &NewCatalog, table: &Table, child: &Table) -> Result<(), SqlError> {
    if child.partitioning.is_some() {
        return Err(alone(child, "partitions of its own"));
    }
    if !child.primary_key.is_empty() && child.primary_key != table.primary_key {
        return Err(alone(child, "a primary key of its own"));
    }
    let same_index = |own: &Index, index: &Index| {
        let facts = |index: &Index| (index.unique, index.constraint, index.primary, index.deferral);
        own.columns == index.columns && own.details == index.details && facts(own) == facts(index)
    };
    let indexes = catalog.indexes_of(table.id);
    let is_other = |own: &&Index| !indexes.iter().any(|index| same_index(own, index));
    if let Some(own) = catalog.indexes_of(child.id).iter().find(is_other) {
        return Err(alone(child, &format!("the index \"{}\"", own.name)));
    }
    let same_reference = |own: &ForeignKey, one: &ForeignKey| {
        let one = ForeignKey { number: own.number, name: own.name.clone(), valid: own.valid, ..one.clone() };
        *own == one
    };
    let references = catalog.foreign_keys_of(table.id);
    let is_other = |own: &&ForeignKey| !references.iter().any(|one| same_reference(own, one));
    if let Some(own) = catalog.foreign_keys_of(child.id).iter().find(is_other) {
        return Err(alone(child, &format!("the constraint \"{}\"", own.name)));
    }
    if catalog.foreign_keys.values().flatten().any(|one| one.parent == child.id) {
        return Err(alone(child, "a FOREIGN KEY that references it"));
    }
    if let Some(trigger) = catalog.triggers_of(child.id).next() {
        return Err(alone(child, &format!("the trigger \"{}\"", trigger.name)));
    }
    let mut owners = catalog.sequences.values().filter_map(|sequence| sequence.owner.as_ref());
    if owners.any(|owner| owner.table == child.id) {
        return Err(alone(child, "a sequence of its own"));
    }
    if child.row_security != types::RowSecurity::default() {
        return Err(alone(child, "policies of its own"));
    }
    if child.endorsement.is_some() && child.endorsement != table.endorsement {
        return Err(alone(child, "an endorsement policy of its own"));
    }
    Ok(())
}
