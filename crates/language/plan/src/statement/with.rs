//! Statements with WITH queries that change rows.
//!
//! ```text
//! WITH a AS (DELETE FROM old RETURNING *),   a change: runs once, what it returns is kept
//!      b AS (SELECT * FROM a WHERE …)        a query: bound where it is used
//! INSERT INTO new SELECT * FROM b            the main statement
//! ```
//!
//! Each change runs once, whether its rows are read or not, and all of them and the main statement see the rows that
//! were there when the statement began. PostgreSQL runs a change when its rows are asked for first, and what nobody has
//! asked for when the main statement has ended, the last one first: [`BoundWith::order`] is that order.

use crate::scope::VariableScope;
use crate::statement::BoundStatement;
use crate::statement::delete::bind_delete;
use crate::statement::insert::bind_insert;
use crate::statement::query::{CommonTable, QueryScope, bind_body, bind_nested, in_statement};
use crate::statement::update::bind_update;
use crate::tables::Tables;
use sqlparser::ast::{Cte, Query, SetExpr, Spanned, Statement};
use types::{SqlError, SqlState};

/// A statement with WITH queries that change rows.
#[derive(Debug)]
pub struct BoundWith {
    /// The changes, as they are written.
    pub changes: Vec<WithChange>,
    /// SELECT, INSERT, UPDATE or DELETE.
    pub main: BoundStatement,
    /// What runs one after the other: positions in `changes`; `None` is the main statement.
    pub order: Vec<Option<usize>>,
}

/// A WITH query that changes rows.
#[derive(Debug)]
pub struct WithChange {
    /// Its name.
    pub name: String,
    /// By which the rows that it returns are known.
    pub number: usize,
    /// INSERT, UPDATE or DELETE.
    pub statement: BoundStatement,
    /// Positions of the changes whose rows it reads.
    reads: Vec<usize>,
}

impl BoundWith {
    /// Its changes and its main statement.
    pub fn statements(&self) -> impl Iterator<Item = &BoundStatement> {
        self.changes.iter().map(|change| &change.statement).chain([&self.main])
    }
}

/// Binds a statement that begins as a query does: SELECT, VALUES, or WITH in front of any statement.
///
/// # Errors
/// As [`super::bind_statement`].
pub(super) fn bind_whole(
    tables: &Tables,
    variables: &VariableScope,
    query: &Query,
) -> Result<BoundStatement, SqlError> {
    in_statement(tables, variables, |scope, _| {
        if !changes_rows(query) {
            return bind_nested(scope, query, None).map(|(select, _)| BoundStatement::Select(select));
        }
        let query = without_parentheses(query);
        let with = query.with.as_ref();
        let queries = with.map_or(&[][..], |with| &with.cte_tables);
        let recursive = with.is_some_and(|with| with.recursive);
        let mut changes = Vec::new();
        let main = behind_queries(scope, recursive, queries, &mut changes, &|scope| bind_main(scope, query))?;
        let reads = positions(&changes, scope.take_kept());
        if changes.is_empty() {
            return Ok(main);
        }
        let order = order(&changes, &reads);
        Ok(BoundStatement::With(Box::new(BoundWith { changes, main, order })))
    })
}

/// Whether a query does more than query: it has WITH queries that change rows.
pub fn changes_rows(query: &Query) -> bool {
    let query = without_parentheses(query);
    let queries = query.with.as_ref().map_or(&[][..], |with| &with.cte_tables);
    change_of(query).is_some() || queries.iter().any(|cte| change_of(&cte.query).is_some())
}

/// Refuses a WITH query that changes rows where it is not one of the whole statement.
pub(super) fn refuse_change(scope: QueryScope<'_>, cte: &Cte) -> Result<(), SqlError> {
    if change_of(&cte.query).is_none() {
        return Ok(());
    }
    let message = "WITH clause containing a data-modifying statement must be at the top level";
    let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    Err(scope.variables.located(error, cte.alias.name.span))
}

fn without_parentheses(query: &Query) -> &Query {
    match query.body.as_ref() {
        SetExpr::Query(inner) if query.with.is_none() && is_bare(query) => without_parentheses(inner),
        _ => query,
    }
}

/// Whether nothing stands behind the body of a query.
fn is_bare(query: &Query) -> bool {
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
fn change_of(query: &Query) -> Option<&Statement> {
    match query.body.as_ref() {
        SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement) => Some(statement),
        _ => None,
    }
}

/// Makes WITH queries known one after the other, binds those that change rows, and then the statement behind them.
fn behind_queries<R>(
    scope: QueryScope<'_>,
    recursive: bool,
    rest: &[Cte],
    changes: &mut Vec<WithChange>,
    bind: &dyn Fn(QueryScope<'_>) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    let Some((next, rest)) = rest.split_first() else { return bind(scope) };
    let common = CommonTable::new(next, recursive, scope)?;
    if change_of(&next.query).is_none() {
        return behind_queries(common.behind(), recursive, rest, changes, bind);
    }
    scope.take_kept();
    let (number, statement) = (scope.next_number(), bind_change(scope, &next.query)?);
    let reads = positions(changes, scope.take_kept());
    let columns = match statement.returns_rows() {
        true => Some(common.renamed(statement.columns())?),
        false => None,
    };
    let columns = columns.as_deref();
    changes.push(WithChange { name: common.name().to_string(), number, statement, reads });
    let kept = common.kept(number, columns);
    behind_queries(kept.behind(), recursive, rest, changes, bind)
}

/// A WITH query that changes rows. In front of it stand queries only.
fn bind_change(scope: QueryScope<'_>, query: &Query) -> Result<BoundStatement, SqlError> {
    let with = query.with.as_ref();
    let queries = with.map_or(&[][..], |with| &with.cte_tables);
    queries.iter().try_for_each(|cte| refuse_change(scope, cte))?;
    let recursive = with.is_some_and(|with| with.recursive);
    behind_queries(scope, recursive, queries, &mut Vec::new(), &|scope| bind_main(scope, query))
}

/// The statement behind WITH.
fn bind_main(scope: QueryScope<'_>, query: &Query) -> Result<BoundStatement, SqlError> {
    let Some(statement) = change_of(query) else {
        return scope.beside(|scope, level| bind_body(scope, level, query)).map(BoundStatement::Select);
    };
    if !is_bare(query) {
        return Err(scope.variables.located(SqlError::unsupported("this form of WITH"), query.span()));
    }
    match statement {
        Statement::Insert(insert) => bind_insert(scope, insert).map(BoundStatement::Insert),
        Statement::Update(update) => bind_update(scope, update).map(BoundStatement::Update),
        Statement::Delete(delete) => bind_delete(scope, delete).map(BoundStatement::Delete),
        _ => Err(scope.variables.located(SqlError::unsupported("MERGE in WITH"), query.span())),
    }
}

/// The changes with these numbers, each once.
fn positions(changes: &[WithChange], numbers: Vec<usize>) -> Vec<usize> {
    let mut found = Vec::new();
    for number in numbers {
        if let Some(position) = changes.iter().position(|change| change.number == number)
            && !found.contains(&position)
        {
            found.push(position);
        }
    }
    found
}

/// What the main statement reads, the main statement, and the rest from its end; in front of each what it reads.
fn order(changes: &[WithChange], main_reads: &[usize]) -> Vec<Option<usize>> {
    fn run(changes: &[WithChange], position: usize, order: &mut Vec<Option<usize>>) {
        if order.contains(&Some(position)) {
            return;
        }
        changes[position].reads.iter().for_each(|read| run(changes, *read, order));
        order.push(Some(position));
    }
    let mut order = Vec::with_capacity(changes.len() + 1);
    main_reads.iter().for_each(|read| run(changes, *read, &mut order));
    order.push(None);
    (0..changes.len()).rev().for_each(|position| run(changes, position, &mut order));
    order
}
