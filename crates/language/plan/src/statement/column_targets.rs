//! The columns that INSERT and UPDATE give values, and DEFAULT.

use crate::expression::Expression;
use crate::scope::VariableScope;
use crate::table::TablePlan;
use sqlparser::ast::{self, Expr, ObjectName, Spanned};
use syntax::names::name_of;
use types::{Privileges, SqlError, SqlState, Value};

/// Ordinal of an assigned column, which must not be among those `assigned` already.
pub(super) fn target_column(
    table: &TablePlan,
    scope: &VariableScope,
    column: &ObjectName,
    assigned: &[usize],
) -> Result<usize, SqlError> {
    let [ast::ObjectNamePart::Identifier(ident)] = column.0.as_slice() else {
        return Err(scope.located(SqlError::unsupported(format_args!("the target {column}")), column.span()));
    };
    let name = name_of(ident)?;
    let Some(ordinal) = table.ordinal(&name) else {
        return Err(scope.located(no_column(table, &name), ident.span));
    };
    if assigned.contains(&ordinal) {
        let message = format!("column \"{name}\" specified more than once");
        return Err(scope.located(SqlError::new(SqlState::DUPLICATE_COLUMN, message), ident.span));
    }
    Ok(ordinal)
}

/// Notes what a statement does with columns of a table.
pub(super) fn note_columns(
    scope: &VariableScope,
    table: &TablePlan,
    ordinals: impl Iterator<Item = u16>,
    privileges: Privileges,
) {
    let columns = ordinals.filter_map(|ordinal| table.columns.get(usize::from(ordinal)));
    columns.for_each(|column| scope.note_column(&table.relation, &column.name, privileges));
}

/// `42703`: the table has no column of this name.
pub fn no_column(table: &TablePlan, name: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

/// Ordinals of the columns that an INSERT names, or all.
pub(super) fn insert_targets(
    table: &TablePlan,
    scope: &VariableScope,
    columns: &[ObjectName],
) -> Result<Vec<usize>, SqlError> {
    if columns.is_empty() {
        return Ok((0..table.columns.len()).collect());
    }
    let mut targets = Vec::with_capacity(columns.len());
    for column in columns {
        targets.push(target_column(table, scope, column, &targets)?);
    }
    Ok(targets)
}

/// A row of nothing but defaults.
pub fn default_row(table: &TablePlan) -> Vec<Expression> {
    let default = |column: &crate::table::ColumnPlan| match &column.default {
        Some(default) => default.clone(),
        None => Expression::constant(Value::Null, column.data_type),
    };
    table.columns.iter().map(default).collect()
}

/// Whether a value is DEFAULT.
pub(super) fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}
