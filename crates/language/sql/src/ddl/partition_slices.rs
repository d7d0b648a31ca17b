//! The rows that a partition has, or would have.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::rows::Rows;
use plan::bind_tables::bind_check;
use plan::expression::{Environment, Expression};
use plan::partition_conditions::PartitionConditions;
use plan::table::TablePlan;
use types::session_format::{SessionFormat, within_format};
use types::{SqlError, SqlState, Table};

/// What is true of the rows of a partition of a table.
///
/// # Errors
/// None of a partition that the table has.
pub(super) fn condition_of(catalog: &NewCatalog, table: &Table, name: &str) -> Result<Expression, SqlError> {
    let routines = catalog.routines();
    let Some(conditions) = PartitionConditions::new(table, routines.types()) else {
        return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a partition of a table that has none"));
    };
    bind_check(&TablePlan::stored(table, catalog, &routines)?, &conditions.of(name), &routines)
}

/// Whether a row is one of these.
///
/// # Errors
/// None of what a binder has made.
pub(super) fn is_within(condition: &Expression, row: &[types::Value]) -> Result<bool, SqlError> {
    within_format(SessionFormat::default(), || condition.is_true(&Environment::new(row, &[], 0)))
}

/// Whether a table has rows that a partition of this name has, or would have.
///
/// # Errors
/// They cannot be read.
pub(super) fn any_row(
    catalog: &NewCatalog,
    table: &Table,
    name: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<bool, SqlError> {
    let condition = condition_of(catalog, table, name)?;
    let mut found = false;
    rows.visit(table.id, &mut |_, _, row| {
        found |= is_within(&condition, row)?;
        Ok(())
    })?;
    Ok(found)
}
