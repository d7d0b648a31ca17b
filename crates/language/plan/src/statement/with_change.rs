//! What of a query changes rows.

use crate::statement::query_scope::QueryScope;
use sqlparser::ast::{Cte, Query, SetExpr, Statement};
use types::{ExecutionVersion, SqlError, SqlState};

/// Whether a query does more than query: it has WITH queries that change rows. In version 1 there is none that does.
pub fn changes_rows(query: &Query, version: ExecutionVersion) -> bool {
    version >= ExecutionVersion::V2 && has_changes(query)
}

/// The same, whatever the version makes of them.
pub(super) fn has_changes(query: &Query) -> bool {
    let query = without_parentheses(query);
    let queries = query.with.as_ref().map_or(&[][..], |with| &with.cte_tables);
    change_of(query).is_some() || queries.iter().any(|cte| change_of(&cte.query).is_some())
}

/// Refuses a WITH query that changes rows where it is not one of the whole statement.
pub(super) fn refuse_change(scope: QueryScope<'_>, cte: &Cte) -> Result<(), SqlError> {
    if change_of(&cte.query).is_none() || scope.tables.version() < ExecutionVersion::V2 {
        return Ok(());
    }
    let message = "WITH clause containing a data-modifying statement must be at the top level";
    let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    Err(scope.variables.located(error, cte.alias.name.span))
}

/// The query inside of parentheses.
pub(super) fn without_parentheses(query: &Query) -> &Query {
    match query.body.as_ref() {
        SetExpr::Query(inner) if query.with.is_none() && is_bare(query) => without_parentheses(inner),
        _ => query,
    }
}

/// Whether nothing stands behind the body of a query.
pub(super) fn is_bare(query: &Query) -> bool {
    query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty()
}

/// The INSERT, UPDATE or DELETE that stands where a query may stand.
pub(super) fn change_of(query: &Query) -> Option<&Statement> {
    match query.body.as_ref() {
        SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement) => Some(statement),
        _ => None,
    }
}
