//! Conditions as scans register them.

use crate::expression::{Capture, Environment, Expression, Kind};
use smallvec::SmallVec;
use state::{KeyRange, RowPredicate};
use std::sync::Arc;
use types::{DataType, Index, Key, SqlError, Value};

/// The AND of all; `None` where there are none.
pub fn conjunction(mut conditions: Vec<Expression>) -> Option<Expression> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expression { kind: Kind::And(conditions), data_type: DataType::Boolean }),
    }
}

/// A condition of a statement, with what it needs besides the row gathered.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Over the table's columns and the captured values.
    pub expression: Arc<Expression>,
    /// What is the same for every row.
    pub capture: Capture,
}

impl Condition {
    /// All of these must be true; `None` where there are none.
    pub fn all(conditions: Vec<Expression>) -> Option<Condition> {
        let mut expression = conjunction(conditions)?;
        let mut capture = Capture::default();
        capture.renumber(&mut expression);
        Some(Condition { expression: Arc::new(expression), capture })
    }

    /// The condition with the values of what it captures.
    ///
    /// # Errors
    /// What subqueries raise.
    pub fn with_values(&self, environment: &Environment<'_>) -> Result<CapturedCondition, SqlError> {
        let values = self.capture.values(environment).collect::<Result<_, _>>()?;
        Ok(CapturedCondition { expression: self.expression.clone(), values, now: environment.now })
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

/// A condition with the values of its variables.
pub struct CapturedCondition {
    expression: Arc<Expression>,
    values: Vec<Value>,
    now: i64,
}

impl CapturedCondition {
    /// Whether the condition is true for this row.
    ///
    /// # Errors
    /// As evaluation.
    pub fn is_true(&self, row: &[Value]) -> Result<bool, SqlError> {
        self.expression.is_true(&Environment::new(row, &self.values, self.now))
    }
}

impl RowPredicate for CapturedCondition {
    fn may_match(&self, known: &[Option<Value>]) -> bool {
        self.expression.possible_truths(known, &self.values, self.now).may_be_true()
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
