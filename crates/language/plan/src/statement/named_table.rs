//! The tables that statements name.

use crate::scope::VariableScope;
use crate::table::TablePlan;
use crate::tables::Tables;
use crate::trigger::wrong_target;
use sqlparser::ast::{ObjectName, Spanned, TableFactor, TableWithJoins};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{SqlError, SqlState, object_name};

/// The table of this name.
pub(super) fn find_table<'t>(
    tables: &'t Tables,
    scope: &VariableScope,
    name: &ObjectName,
) -> Result<&'t Arc<TablePlan>, SqlError> {
    let called = table_name(name)?;
    if scope.transition_table(&called).is_some() {
        return Err(wrong_target(&called));
    }
    let called = tables.find(&called);
    if tables.view(&called).is_some() {
        let message = format!("\"{}\" is not a table", object_name(&called));
        return Err(scope.located(SqlError::new(SqlState(*b"42809"), message), name.span()));
    }
    tables.get(&called).map_err(|error| scope.located(error, name.span()))
}

/// The only table of a FROM clause, with the name under which its columns are known.
pub(super) fn single_table<'t>(
    tables: &'t Tables,
    scope: &VariableScope,
    from: &TableWithJoins,
) -> Result<(&'t Arc<TablePlan>, String), SqlError> {
    if !from.joins.is_empty() {
        return Err(scope.located(
            SqlError::unsupported("JOIN here").hint("Use it in a SELECT."),
            from.joins[0].relation.span(),
        ));
    }
    let TableFactor::Table { name, alias, .. } = &from.relation else {
        let what = match &from.relation {
            TableFactor::Derived { .. } => "a subquery in FROM here",
            TableFactor::NestedJoin { .. } => "JOIN here",
            _ => "this form of FROM",
        };
        return Err(scope.located(SqlError::unsupported(what), from.relation.span()));
    };
    plain_table(&from.relation).map_err(|error| scope.located(error, name.span()))?;
    let table = find_table(tables, scope, name)?;
    let known_as = match alias {
        None => table.name.clone(),
        Some(alias) if alias.columns.is_empty() => name_of(&alias.name)?,
        Some(alias) => {
            return Err(scope.located(SqlError::unsupported("a list of column aliases"), alias.name.span));
        }
    };
    Ok((table, known_as))
}

/// Refuses a table with anything around its name but an alias.
pub(super) fn plain_table(factor: &TableFactor) -> Result<(), SqlError> {
    let plain = match factor {
        TableFactor::Table { args, with_hints, version, with_ordinality, partitions, sample, .. } => {
            args.is_none()
                && with_hints.is_empty()
                && version.is_none()
                && !with_ordinality
                && partitions.is_empty()
                && sample.is_none()
        }
        _ => false,
    };
    if plain { Ok(()) } else { Err(SqlError::unsupported("this form of FROM")) }
}
