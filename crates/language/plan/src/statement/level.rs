//! Queries inside of one another: what each needs of the one around it.

use crate::expression::{Binder, Expression, Kind, Source};
use crate::scope::VariableScope;
use crate::statement::query_scope::QueryScope;
use crate::tables::Tables;
use std::cell::RefCell;
use types::{ExecutionVersion, SqlError};
use values::broken;

/// One query among nested ones: what it needs of the query around it.
pub struct Level<'a> {
    /// Binds the expressions of the query around it, at its place; `None`: there is none.
    pub parent: Option<&'a Binder<'a>>,
    /// Over the columns of the query around it, by number of the argument.
    arguments: RefCell<Vec<Expression>>,
}

impl<'a> Level<'a> {
    /// A query inside of another one.
    pub(super) fn new(parent: Option<&'a Binder<'a>>) -> Level<'a> {
        Level { parent, arguments: RefCell::default() }
    }

    /// What it is to be handed.
    pub(super) fn into_arguments(self) -> Vec<Expression> {
        self.arguments.into_inner()
    }

    /// How many arguments this query and those around it have.
    pub fn handed(&self) -> Vec<usize> {
        let mut counts = vec![self.arguments.borrow().len()];
        let mut next = self.parent;
        while let Some((_, level)) = next.and_then(|binder| binder.enclosing()) {
            counts.push(level.arguments.borrow().len());
            next = level.parent;
        }
        counts
    }

    /// Forgets the arguments that came behind these.
    pub fn forget_since(&self, counts: &[usize]) {
        let Some((count, mut rest)) = counts.split_first() else { return };
        self.arguments.borrow_mut().truncate(*count);
        let mut next = self.parent;
        while let (Some((_, level)), Some((count, others))) =
            (next.and_then(|binder| binder.enclosing()), rest.split_first())
        {
            level.arguments.borrow_mut().truncate(*count);
            (next, rest) = (level.parent, others);
        }
    }

    /// A value over the row that `around` binds expressions for, as this query is handed it: by those between, each inside of
    /// the one before.
    ///
    /// # Errors
    /// None where this query stands inside of the one that `around` belongs to.
    pub fn handed_down(&self, around: &Binder<'_>, value: Expression) -> Result<Expression, SqlError> {
        let parent = self.parent.ok_or_else(|| broken("a WITH query that is used outside of its query"))?;
        if std::ptr::addr_eq(parent, around) {
            return Ok(self.argument(value));
        }
        match parent.enclosing() {
            Some((_, level)) => level.handed_down(around, value).map(|value| self.argument(value)),
            None => Err(broken("a WITH query that is used outside of its query")),
        }
    }

    /// The argument with this value.
    pub fn argument(&self, value: Expression) -> Expression {
        let mut arguments = self.arguments.borrow_mut();
        let data_type = value.data_type;
        let number = arguments.iter().position(|known| *known == value).unwrap_or_else(|| {
            arguments.push(value);
            arguments.len() - 1
        });
        Expression { kind: Kind::Argument(number as u16), data_type }
    }
}

impl<'a> QueryScope<'a> {
    /// What stands beside this one in a statement. Version 1 counted the queries of each part by itself.
    pub(super) fn beside<R>(
        self,
        bind: impl FnOnce(QueryScope<'a>, &Level<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        if self.tables.version() < ExecutionVersion::V2 {
            self.queries.set(0);
        }
        bind(self, &Level::new(None))
    }

    /// A binder for the expressions of a query.
    pub fn binder<'b>(self, level: &'b Level<'b>, source: Source<'b>) -> Binder<'b>
    where
        'a: 'b,
    {
        Binder::new(self.variables, source).in_query(self, level)
    }
}

/// Binds something that may hold queries.
///
/// # Errors
/// Those of `bind`.
pub(super) fn in_statement<R>(
    tables: &Tables,
    variables: &VariableScope,
    bind: impl FnOnce(QueryScope<'_>, &Level<'_>) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    let (queries, kept) = Default::default();
    let scope = QueryScope { tables, variables, common: None, queries: &queries, kept: &kept };
    bind(scope, &Level::new(None))
}
