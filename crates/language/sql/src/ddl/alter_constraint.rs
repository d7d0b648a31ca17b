//! Constraints that are there: ALTER CONSTRAINT and VALIDATE CONSTRAINT.

use crate::ddl::foreign_keys;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::constraint_exists;
use crate::ddl::rows::Rows;
use plan::expression::Environment;
use plan::table::TablePlan;
use std::sync::Arc;
use types::{Deferral, ForeignKey, SqlError, SqlState, Table};

fn no_constraint(table: &Table, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.object_name());
    SqlError::new(SqlState(*b"42704"), message)
}

fn other_constraint(table: &Table, name: &str, what: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of relation \"{}\" is not a {what}", table.object_name());
    SqlError::new(SqlState(*b"42809"), message)
}

/// The FOREIGN KEY of a table with this name.
fn foreign_key_of<'c>(catalog: &'c mut NewCatalog, table: &Table, name: &str) -> Option<&'c mut ForeignKey> {
    let own = catalog.catalog.foreign_keys.get_mut(&table.id)?;
    own.iter_mut().find(|foreign_key| foreign_key.name == name)
}

/// ALTER CONSTRAINT.
///
/// # Errors
/// It is not there, or no FOREIGN KEY.
pub(super) fn alter_constraint(
    catalog: &mut NewCatalog,
    table: &Table,
    name: &str,
    deferral: Deferral,
) -> Result<(), SqlError> {
    if let Some(foreign_key) = foreign_key_of(catalog, table, name) {
        foreign_key.deferral = deferral;
        return Ok(());
    }
    Err(match constraint_exists(catalog, table, name) {
        true => other_constraint(table, name, "foreign key constraint"),
        false => no_constraint(table, name),
    })
}

/// VALIDATE CONSTRAINT: holds the rows against it that were there before it.
///
/// # Errors
/// It is not there, or neither FOREIGN KEY nor CHECK; a row that does not keep it.
pub(super) fn validate_constraint(
    catalog: &mut NewCatalog,
    table: &Arc<Table>,
    name: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if let Some(foreign_key) = foreign_key_of(catalog, table, name) {
        if !std::mem::replace(&mut foreign_key.valid, true) {
            let foreign_key = foreign_key.clone();
            foreign_keys::check_rows(catalog, table, &foreign_key, rows)?;
        }
        return Ok(());
    }
    let Some(position) = table.checks.iter().position(|check| check.name == name) else {
        return Err(match constraint_exists(catalog, table, name) {
            true => other_constraint(table, name, "foreign key or check constraint"),
            false => no_constraint(table, name),
        });
    };
    if table.checks[position].valid {
        return Ok(());
    }
    hold_check(catalog, table, name, rows)?;
    let mut new = Table::clone(table);
    new.checks[position].valid = true;
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(())
}

/// Holds the rows of a table against one of its CHECKs.
///
/// # Errors
/// `23514` for a row that does not keep it.
pub(super) fn hold_check(
    catalog: &NewCatalog,
    table: &Table,
    name: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let plan = TablePlan::stored(table, catalog, &catalog.routines())?;
    let Some(check) = plan.checks.iter().find(|check| check.name == name) else { return Ok(()) };
    rows.visit(table.id, &mut |_, _, row| match check.is_violated(&Environment::new(row, &[], 0))? {
        true => {
            let message = format!(
                "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                table.object_name()
            );
            Err(SqlError::new(SqlState::CHECK_VIOLATION, message))
        }
        _ => Ok(()),
    })
}
