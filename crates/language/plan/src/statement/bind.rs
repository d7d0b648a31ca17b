//! Binding of statements.

use crate::scope::VariableScope;
use crate::statement::BoundStatement;
use crate::statement::call::bind_call;
use crate::statement::delete::bind_delete;
use crate::statement::insert::bind_insert;
use crate::statement::level::in_statement;
use crate::statement::truncate::bind_truncate;
use crate::statement::update::bind_update;
use crate::statement::with::{bind_whole, bind_whole_of_version_1};
use crate::tables::Tables;
use sqlparser::ast::Statement;
use types::{ExecutionVersion, SqlError};

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
        Statement::Query(query) if tables.version() < ExecutionVersion::V2 => {
            bind_whole_of_version_1(tables, scope, query)
        }
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
