//! Rows that an operator gives, and the columns that expressions over them look at.

use crate::fields::Fields;
use datafusion_physical_plan::ExecutionPlan;
use plan::expression::{Expression, Kind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rows that an operator gives.
pub(crate) struct Rows {
    pub(crate) operator: Arc<dyn ExecutionPlan>,
    pub(crate) fields: Fields,
    /// About how many.
    pub(crate) about: u64,
}

/// The columns that an expression looks at.
pub(crate) fn columns_of(expression: &Expression) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    expression.any(&mut |inner| {
        if let Kind::Column(ordinal) = inner.kind {
            columns.insert(usize::from(ordinal));
        }
        false
    });
    columns
}

/// Whether it looks at a column in front of this one.
pub(crate) fn looks_left(expression: &Expression, first: usize) -> bool {
    columns_of(expression).first().is_some_and(|column| *column < first)
}
