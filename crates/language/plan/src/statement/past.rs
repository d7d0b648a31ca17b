//! `t AS OF HEIGHT n`: a table as it was after an earlier block, for as long as the node keeps that; and
//! `entente.history('t', key)`: what became of a row.

use crate::expression::{Binder, Expression, Relations, Source};
use crate::logical::{LogicalPlan, Scan};
use crate::row_security::seen;
use crate::statement::bind_row_function::plain_arguments;
use crate::statement::level::Level;
use crate::statement::named_table::find_table;
use crate::statement::query_scope::QueryScope;
use crate::statement::relation_names::{add_relation, set_row_type, set_table};
use crate::statement::row_function::{HISTORY_COLUMNS, RowFunction, RowKind};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName, Spanned, TableAlias, Value as Literal};
use std::sync::Arc;
use syntax::names::table_name;
use syntax::rewrite::PAST_MARK;
use types::{DataType, Privileges, SqlError, SqlState};

/// The height of what `rewrite` has made a function of.
pub(super) fn past_height(arguments: &[FunctionArg]) -> Option<&Expr> {
    match arguments {
        [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(mark))),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(height)),
        ] if mark.quote_style == Some('"') && mark.value == PAST_MARK => Some(height),
        _ => None,
    }
}

/// Binds a table that is read as it was. Its columns are those that it has now: a table that gets others gets another number,
/// and is not found at heights before that.
///
/// # Errors
/// Unknown names; anything but a table; a height that is no number.
pub(super) fn bind_past(
    query: QueryScope<'_>,
    names: &mut Relations,
    name: &ObjectName,
    height: &Expr,
    alias: Option<&TableAlias>,
) -> Result<LogicalPlan, SqlError> {
    let located = |error| query.variables.located(error, name.span());
    query.variables.note_past().map_err(located)?;
    let called = table_name(name)?;
    let is_query =
        query.common(&called).is_some() || query.tables.view(&query.tables.find(&called)).is_some();
    if is_query || query.variables.transition_table(&called).is_some() {
        let error = SqlError::unsupported("AS OF HEIGHT of anything but a table");
        return Err(located(error.hint("Write out the query, with AS OF HEIGHT behind each of its tables.")));
    }
    let called = query.tables.find(&called);
    query.variables.note_relation(&called, name.span());
    query.variables.note_use(&called, Privileges::SELECT);
    let table = find_table(query.tables, query.variables, name)?;
    let height = bind_height(query, height)?;
    let columns = table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let first = names.width();
    add_relation(query, names, &table.name, alias, columns)?;
    let row_type = query.tables.routines().types().named(&called).map(|known| known.data_type());
    set_row_type(names, row_type);
    set_table(names, table);
    let scan = Scan { past: Some(height), ..Scan::of(Arc::new(table.without_indexes())) };
    seen(query.tables, query.variables, (scan, first), false)
}

fn bind_height(query: QueryScope<'_>, height: &Expr) -> Result<Expression, SqlError> {
    const CLAUSE: &str = "AS OF HEIGHT";
    let binder = Binder::new(query.variables, Source::Nothing);
    let bound = binder.in_clause(Some(CLAUSE)).bind(height)?;
    let found = bound.data_type;
    binder.assign_to_column(bound, CLAUSE, DataType::BigInt).map_err(|error| {
        let error = match error.state {
            SqlState::DATATYPE_MISMATCH => {
                let message =
                    format!("argument of {CLAUSE} must be type bigint, not type {}", found.family());
                SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            }
            _ => error,
        };
        query.variables.located(error, height.span())
    })
}

/// Whether a function in FROM is `entente.history`.
pub(super) fn is_history(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("entente.history")
}

/// Binds `entente.history('table', key, …)`.
///
/// # Errors
/// Unknown tables; a key that does not fit.
pub(super) fn bind_history(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    (name, arguments): (&ObjectName, &[FunctionArg]),
    alias: Option<&TableAlias>,
) -> Result<LogicalPlan, SqlError> {
    const HINT: &str =
        "For example, entente.history('accounts', 7): a table, then the values of its primary key.";
    let located = |error: SqlError| query.variables.located(error, name.span());
    query.variables.note_history().map_err(located)?;
    let arguments = plain_arguments(arguments)?;
    let table_of = |first: &&Expr| match first {
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let Some((called, key)) = arguments.split_first().and_then(|(first, key)| Some((table_of(first)?, key)))
    else {
        let message = "entente.history takes the name of a table as a literal, and a key";
        return Err(located(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(HINT)));
    };
    let called = query.tables.find(&called);
    let table = query.tables.get(&called).map_err(located)?.clone();
    query.variables.note_use(&called, Privileges::SELECT);
    table
        .columns
        .iter()
        .for_each(|column| query.variables.note_column(&called, &column.name, Privileges::SELECT));
    if table.id.is_temporary() {
        return Err(located(SqlError::unsupported("the history of a temporary table")));
    }
    if table.key.is_empty() {
        let error = SqlError::unsupported(format_args!(
            "the history of rows of table \"{called}\", which has no primary key"
        ));
        return Err(located(error));
    }
    if key.len() != table.key.len() {
        let (found, expected) = (key.len(), table.key.len());
        let message =
            format!("the primary key of table \"{called}\" has {expected} columns, {found} values are given");
        return Err(located(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(HINT)));
    }
    let visible = names.between(0);
    let binder = query.binder(level, Source::Relations(&visible));
    binder.in_clause(Some("functions in FROM"));
    let mut bound = Vec::with_capacity(key.len());
    for (value, ordinal) in key.iter().zip(&table.key) {
        let column = &table.columns[usize::from(*ordinal)];
        let value = binder.bind(value)?;
        bound.push(binder.assign_to_column(value, &column.name, column.data_type).map_err(located)?);
    }
    let columns = HISTORY_COLUMNS.iter().map(|(name, data_type)| (name.to_string(), *data_type));
    let values = table.columns.iter().map(|column| (column.name.clone(), column.data_type));
    let columns: Vec<(String, DataType)> = columns.chain(values).collect();
    let types = columns.iter().map(|(_, data_type)| *data_type).collect();
    add_relation(query, names, "history", alias, columns)?;
    let function = Box::new(RowFunction { rows: RowKind::History(table), with_ordinality: false });
    Ok(LogicalPlan::Function { function, arguments: bound, types })
}
