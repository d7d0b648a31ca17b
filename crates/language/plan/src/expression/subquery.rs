//! Queries inside of expressions.

use crate::expression::Expression;
use crate::logical::LogicalPlan;
use crate::statement::BoundSelect;
use std::sync::Arc;
use types::{DataType, ElementType};
use values::Comparison;

/// A query inside of an expression. It is run when its value is asked for, so what is not reached costs nothing.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// The query.
    pub query: Arc<BoundSelect>,
    /// What the query asks for, as it was bound.
    pub logical: Arc<LogicalPlan>,
    /// What it is handed of the rows around it, in the order of its [`Kind::Argument`](crate::expression::Kind::Argument)s.
    pub arguments: Vec<Expression>,
    /// What its rows are compared with, one per column; empty for the forms that compare nothing.
    pub operands: Vec<Expression>,
    /// What the values of each column are cast to before they are compared; `None`: they compare as they are.
    pub compared_as: Vec<Option<DataType>>,
    /// What is asked of it.
    pub form: SubqueryForm,
}

/// What is asked of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryForm {
    /// The value of its only row, NULL where there is none.
    Scalar,
    /// The values of its only column, in an array of this type.
    Array(ElementType),
    /// Whether it has a row.
    Exists,
    /// Whether the comparison is true for its only row; NULL where there is none.
    Row(Comparison),
    /// Whether the comparison is true for one of its rows: `IN`, `= ANY`.
    Any(Comparison),
    /// Whether the comparison is true for all of its rows.
    All(Comparison),
}

/// Two are the same where they are the same piece of a statement.
impl PartialEq for Subquery {
    fn eq(&self, other: &Subquery) -> bool {
        Arc::ptr_eq(&self.query, &other.query)
            && self.form == other.form
            && self.arguments == other.arguments
            && self.operands == other.operands
            && self.compared_as == other.compared_as
    }
}
