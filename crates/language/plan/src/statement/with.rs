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
use crate::statement::level::in_statement;
use crate::statement::query::{bind_body, bind_nested, bind_query};
use crate::statement::query_scope::{CommonTable, QueryScope};
use crate::statement::update::bind_update;
use crate::statement::with_change::{change_of, has_changes, is_bare, refuse_change, without_parentheses};
use crate::tables::Tables;
use sqlparser::ast::{Cte, Query, Spanned, Statement};
use types::SqlError;

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
        if !has_changes(query) {
            return bind_nested(scope, query, None)
                .map(|(bound, _)| BoundStatement::Select(bound.operators()));
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

/// The same in execution version 1, which knew no changes in WITH: one that nothing names is left out without a word, and
/// one that is named is refused there.
///
/// # Errors
/// As [`super::bind_statement`].
pub(super) fn bind_whole_of_version_1(
    tables: &Tables,
    variables: &VariableScope,
    query: &Query,
) -> Result<BoundStatement, SqlError> {
    bind_query(tables, variables, query).map(BoundStatement::Select)
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
    changes.push(WithChange { name: common.name.clone(), number, statement, reads });
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
        return scope
            .beside(|scope, level| bind_body(scope, level, query))
            .map(|bound| BoundStatement::Select(bound.operators()));
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
