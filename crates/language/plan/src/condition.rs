//! Conditions of statements, with what they need besides the row gathered.

use crate::expression::{Capture, Expression, Kind};
use std::sync::Arc;
use types::DataType;

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
}
