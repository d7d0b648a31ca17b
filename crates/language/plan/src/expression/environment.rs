//! What an expression is evaluated in.

use crate::expression::Memory;
use crate::polymorphic::Callee;
use crate::statement::BoundSelect;
use std::rc::Rc;
use std::sync::Arc;
use types::{SqlError, Value};
use values::work;

/// What an expression is evaluated in.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The row at hand; empty where there is none.
    pub row: &'a [Value],
    /// Variables by slot.
    pub frame: &'a [Value],
    /// The block's time, microseconds since 2000-01-01 00:00 UTC.
    pub now: i64,
    /// Inside of a query.
    pub query: Option<&'a QueryEnvironment<'a>>,
}

/// What expressions of a query meet besides the row at hand.
#[derive(Clone, Copy)]
pub struct QueryEnvironment<'a> {
    /// What the enclosing query hands to this one.
    pub arguments: &'a [Value],
    /// The columns to the left of the relation that is being read.
    pub left: &'a [Value],
    /// Runs the subqueries of expressions.
    pub subqueries: &'a dyn RunSubquery,
    /// Counts what they make, and what the query holds.
    pub memory: &'a Memory,
}

/// Runs the subqueries of expressions, and the functions that they call.
pub trait RunSubquery {
    /// Rows of a query with these arguments, at most `limit`.
    ///
    /// # Errors
    /// What the query raises.
    fn rows(
        &self,
        query: &Arc<BoundSelect>,
        frame: &[Value],
        arguments: Vec<Value>,
        limit: Option<usize>,
    ) -> Result<Rc<Vec<Vec<Value>>>, SqlError>;

    /// What a function of the ledger gives for these arguments, of its parameters' types: a value, or those of a row.
    ///
    /// # Errors
    /// What the function ends with.
    fn call(&self, function: &Callee, arguments: Vec<Value>) -> Result<Vec<Value>, SqlError>;
}

impl<'a> Environment<'a> {
    /// Outside of queries, or inside of one that has no arguments and no subqueries.
    pub const fn new(row: &'a [Value], frame: &'a [Value], now: i64) -> Environment<'a> {
        Environment { row, frame, now, query: None }
    }

    pub(super) fn arguments(&self) -> &'a [Value] {
        self.query.map_or(&[], |query| query.arguments)
    }

    pub(super) fn left(&self) -> &'a [Value] {
        self.query.map_or(&[], |query| query.left)
    }

    /// The query holds so many bytes more.
    ///
    /// # Errors
    /// As [`Memory::hold`].
    #[inline]
    pub fn hold(&self, bytes: u64) -> Result<(), SqlError> {
        self.query.map_or(Ok(()), |query| query.memory.hold(bytes))
    }

    /// Takes note of a value that has been made.
    #[inline]
    pub(super) fn made(&self, value: Value) -> Result<Value, SqlError> {
        work::spend(work::of_value(&value))?;
        self.count(&value)?;
        Ok(value)
    }

    /// The memory of a value that has been made.
    #[inline]
    pub(super) fn count(&self, value: &Value) -> Result<(), SqlError> {
        match self.query {
            Some(query) => query.memory.count(value),
            None => Ok(()),
        }
    }
}
