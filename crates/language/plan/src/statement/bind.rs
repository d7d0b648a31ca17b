//! Binding of statements.

use crate::expression::{Binder, Expression};
use crate::scope::VariableScope;
use crate::statement::BoundStatement;
use crate::statement::call::bind_call;
use crate::statement::delete::bind_delete;
use crate::statement::insert::bind_insert;
use crate::statement::query::in_statement;
use crate::statement::truncate::bind_truncate;
use crate::statement::update::bind_update;
use crate::statement::with::bind_whole;
use crate::table::TablePlan;
use crate::tables::Tables;
use crate::trigger::wrong_target;
use sqlparser::ast::{Expr, ObjectName, Spanned, Statement, TableFactor, TableWithJoins};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{ColumnSet, SqlError, SqlState, object_name};

/// Binds SELECT, INSERT, UPDATE, DELETE or CALL.
///
/// # Errors
/// Unknown names, wrong types; `0A000` for what is not supported, by name.
pub fn bind_statement(
    tables: &Tables,
    scope: &VariableScope,
    statement: &Statement,
) -> Result<BoundStatement, SqlError> {
    match statement {
        Statement::Query(query) => bind_whole(tables, scope, query),
        Statement::Insert(insert) => {
            in_statement(tables, scope, |scope, _| bind_insert(scope, insert)).map(BoundStatement::Insert)
        }
        Statement::Update(update) => {
            in_statement(tables, scope, |scope, _| bind_update(scope, update)).map(BoundStatement::Update)
        }
        Statement::Delete(delete) => {
            in_statement(tables, scope, |scope, _| bind_delete(scope, delete)).map(BoundStatement::Delete)
        }
        Statement::Truncate(truncate) => bind_truncate(tables, scope, truncate).map(BoundStatement::Delete),
        Statement::Call(call) => bind_call(scope, call).map(BoundStatement::Call),
        other => Err(unsupported_statement(other)),
    }
}

/// The error that names a statement which is not supported.
fn unsupported_statement(statement: &Statement) -> SqlError {
    let text = statement.to_string();
    let words = text
        .split_whitespace()
        .take_while(|word| word.chars().all(|character| character.is_ascii_uppercase()) && word.len() > 1);
    let name = words.take(3).collect::<Vec<_>>().join(" ");
    let error = SqlError::unsupported(if name.is_empty() { "this statement" } else { name.as_str() });
    match statement {
        Statement::Explain { .. } | Statement::ExplainTable { .. } => {
            error.hint("Use EXPLAIN without options: it runs nothing, and shows what a statement would read and register.")
        }
        Statement::Merge(_) => error.hint("Use UPDATE and INSERT in a procedure."),
        _ => error,
    }
}

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

/// The conditions of a WHERE, all of which must be true.
pub(super) fn bind_where(binder: &Binder<'_>, selection: Option<&Expr>) -> Result<Vec<Expression>, SqlError> {
    let Some(selection) = selection else { return Ok(Vec::new()) };
    let condition = binder.in_clause(Some("WHERE")).bind_condition(selection, "WHERE")?;
    Ok(condition.into_conjuncts())
}

pub(super) fn columns_of(expressions: &[Expression]) -> ColumnSet {
    expressions.iter().fold(ColumnSet::EMPTY, |set, expression| set | expression.columns())
}
