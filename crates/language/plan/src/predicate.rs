//! Conditions as scans register them.

use crate::condition::Condition;
use crate::expression::{Capture, Environment, Expression};
use smallvec::SmallVec;
use state::{KeyRange, RowPredicate};
use std::sync::Arc;
use types::session_format::Surroundings;
use types::{Index, Key, SqlError, Value};

impl Condition {
    /// The condition with the values of what it captures.
    ///
    /// # Errors
    /// What subqueries raise.
    pub fn with_values(&self, environment: &Environment<'_>) -> Result<CapturedCondition, SqlError> {
        let values = self.capture.values(environment).collect::<Result<_, _>>()?;
        let (expression, now, around) = (self.expression.clone(), environment.now, Surroundings::here());
        Ok(CapturedCondition { expression, values, now, around })
    }

    /// Whether the condition is true for the environment's row, without keeping the captured values.
    ///
    /// # Errors
    /// As evaluation.
    pub fn is_true_in(&self, environment: &Environment<'_>) -> Result<bool, SqlError> {
        let values = self.capture.values(environment).collect::<Result<SmallVec<[Value; 4]>, SqlError>>()?;
        self.expression.is_true(&Environment::new(environment.row, &values, environment.now))
    }
}

impl Capture {
    /// The values to carry.
    ///
    /// # Errors
    /// What subqueries raise.
    pub fn values<'a>(
        &'a self,
        environment: &'a Environment<'a>,
    ) -> impl Iterator<Item = Result<Value, SqlError>> + 'a {
        self.sources.iter().map(|source| source.evaluate(environment))
    }
}

/// A condition with the values of its variables.
pub struct CapturedCondition {
    expression: Arc<Expression>,
    values: Vec<Value>,
    now: i64,
    around: Surroundings,
}

impl CapturedCondition {
    /// Whether the condition is true for this row.
    ///
    /// # Errors
    /// As evaluation.
    pub fn is_true(&self, row: &[Value]) -> Result<bool, SqlError> {
        self.around.within(|| self.expression.is_true(&Environment::new(row, &self.values, self.now)))
    }
}

impl RowPredicate for CapturedCondition {
    fn may_match(&self, known: &[Option<Value>]) -> bool {
        let truths = || self.expression.possible_truths(known, &self.values, self.now);
        self.around.within(truths).may_be_true()
    }
}

/// The entry of a row lies in an interval of an index, and the condition is true for it.
pub struct EntryPredicate {
    /// Which index.
    pub index: Arc<Index>,
    /// The interval that was really examined.
    pub entries: KeyRange,
    /// The condition.
    pub filter: Option<CapturedCondition>,
}

impl RowPredicate for EntryPredicate {
    fn may_match(&self, known: &[Option<Value>]) -> bool {
        let columns = self.index.columns.iter();
        let values = columns.map_while(|ordinal| known.get(usize::from(*ordinal))?.as_ref());
        let entries = KeyRange::prefix(Key::index_prefix(values).cut_to_index());
        self.entries.meets(&entries) && self.filter.as_ref().is_none_or(|filter| filter.may_match(known))
    }
}
