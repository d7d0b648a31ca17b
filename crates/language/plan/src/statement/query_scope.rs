//! What names in a query stand for besides columns, and the WITH queries among them.

use crate::expression::Binder;
use crate::scope::VariableScope;
use crate::tables::Tables;
use sqlparser::ast::{Cte, Query};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use syntax::names::name_of;
use types::{ExecutionVersion, OutputColumn, SqlError, SqlState};

/// Queries that one statement may consist of, each use of a WITH query counted.
const QUERIES_MAX: usize = 256;

/// What the names in a query stand for besides columns.
#[derive(Clone, Copy)]
pub struct QueryScope<'a> {
    /// Tables.
    pub tables: &'a Tables,
    /// Variables and parameters.
    pub variables: &'a VariableScope,
    /// WITH queries, the innermost first.
    pub(super) common: Option<&'a CommonTable<'a>>,
    /// Queries bound so far.
    pub(super) queries: &'a Cell<usize>,
    /// Numbers of the WITH queries whose rows were named that are kept while the statement runs.
    pub(super) kept: &'a RefCell<Vec<usize>>,
}

/// A WITH query.
pub(super) struct CommonTable<'a> {
    /// What it is called.
    pub name: String,
    /// The names that WITH gives its columns.
    pub columns: Vec<String>,
    /// Where its rows come from.
    pub source: CommonSource<'a>,
    /// Those before it.
    pub scope: QueryScope<'a>,
    /// Binds the expressions of the query around the one that it stands in front of, whose columns it may name; `None`: there is none.
    pub around: Option<&'a Binder<'a>>,
}

/// Where the rows of a WITH query come from.
#[derive(Clone, Copy)]
pub(super) enum CommonSource<'a> {
    /// A query, bound where it is used, every time. The flag: it may name itself.
    Query(&'a Query, bool),
    /// They are kept while the statement runs, under this number: those that a recursive query has found last, inside of
    /// it, and those that a change of rows returns. Their columns; none where it returns none.
    Kept(usize, Option<&'a [OutputColumn]>),
}

impl<'a> QueryScope<'a> {
    /// A number that no other query of the statement has.
    pub(super) fn next_number(self) -> usize {
        self.queries.set(self.queries.get() + 1);
        self.queries.get()
    }

    /// Counts a query of the statement.
    ///
    /// # Errors
    /// `54001` where they become too many.
    pub(super) fn count_query(self) -> Result<(), SqlError> {
        if self.next_number() > QUERIES_MAX {
            let message = format!("a statement consists of more than {QUERIES_MAX} queries (QUERIES_MAX)");
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        Ok(())
    }

    /// Numbers of the WITH queries whose rows were named since this was asked last.
    pub(super) fn take_kept(self) -> Vec<usize> {
        self.kept.take()
    }

    /// The WITH query of this name.
    pub(super) fn common(self, name: &str) -> Option<&'a CommonTable<'a>> {
        let mut next = self.common;
        while let Some(common) = next {
            if common.name == name {
                return Some(common);
            }
            next = common.scope.common;
        }
        None
    }
}

impl<'a> CommonTable<'a> {
    /// A query of WITH, after those that `scope` knows.
    pub fn new(cte: &'a Cte, recursive: bool, scope: QueryScope<'a>) -> Result<CommonTable<'a>, SqlError> {
        let Cte { alias, query, from: None, materialized: _, closing_paren_token: _ } = cte else {
            return Err(SqlError::unsupported("this form of WITH"));
        };
        let name = name_of(&alias.name)?;
        let columns = alias.columns.iter().map(|column| name_of(&column.name)).collect::<Result<_, _>>()?;
        Ok(CommonTable { name, columns, source: CommonSource::Query(query, recursive), scope, around: None })
    }

    /// The same in front of a query that stands inside of another one. Before version 13 it could not name columns of that.
    pub fn inside(self, around: Option<&'a Binder<'a>>) -> CommonTable<'a> {
        let knows_it = self.scope.tables.version() >= ExecutionVersion::V13;
        CommonTable { around: around.filter(|_| knows_it), ..self }
    }

    /// The same, whose rows are kept.
    pub fn kept<'k>(&self, number: usize, columns: Option<&'k [OutputColumn]>) -> CommonTable<'k>
    where
        'a: 'k,
    {
        let (name, scope) = (self.name.clone(), self.scope);
        let source = CommonSource::Kept(number, columns);
        CommonTable { name, columns: Vec::new(), source, scope, around: None }
    }

    /// What is bound behind it, and knows it.
    pub fn behind(&'a self) -> QueryScope<'a> {
        QueryScope { common: Some(self), ..self.scope }
    }

    /// The number and the columns of rows that are kept; `None`: the query is bound for each use.
    ///
    /// # Errors
    /// `0A000` where it returns none.
    pub fn kept_rows(&self) -> Result<Option<(usize, &'a [OutputColumn])>, SqlError> {
        match self.source {
            CommonSource::Query(..) => Ok(None),
            CommonSource::Kept(number, Some(columns)) => {
                self.scope.kept.borrow_mut().push(number);
                Ok(Some((number, columns)))
            }
            CommonSource::Kept(_, None) => {
                let message = format!("WITH query \"{}\" does not have a RETURNING clause", self.name);
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    /// Whether something that was bound behind it has named its rows, which are kept.
    pub fn is_named(&self) -> bool {
        matches!(self.source, CommonSource::Kept(number, _) if self.scope.kept.borrow().contains(&number))
    }

    /// Its columns, with the names that WITH gives them.
    ///
    /// # Errors
    /// `42P10` where there are more names.
    pub fn renamed(&self, columns: &[OutputColumn]) -> Result<Arc<[OutputColumn]>, SqlError> {
        if self.columns.len() > columns.len() {
            let message = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                self.name,
                columns.len(),
                self.columns.len()
            );
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        let mut columns = columns.to_vec();
        for (column, name) in columns.iter_mut().zip(&self.columns) {
            column.name.clone_from(name);
        }
        Ok(columns.into())
    }
}
