//! Queries inside of expressions.

use crate::expression::evaluate::broken;
use crate::expression::{Comparison, Environment, Expression};
use crate::statement::BoundSelect;
use std::sync::Arc;
use types::{Array, ElementType, SqlError, SqlState, Value};

/// A query inside of an expression. It is run when its value is asked for, so what is not reached costs nothing.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// The query.
    pub query: Arc<BoundSelect>,
    /// What it is handed of the rows around it, in the order of its [`Kind::Argument`](crate::expression::Kind::Argument)s.
    pub arguments: Vec<Expression>,
    /// What its rows are compared with, one per column; empty for the forms that compare nothing.
    pub operands: Vec<Expression>,
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
    }
}

impl Subquery {
    fn rows(
        &self,
        environment: &Environment<'_>,
        limit: Option<usize>,
    ) -> Result<std::rc::Rc<Vec<Vec<Value>>>, SqlError> {
        let query = environment.query.ok_or_else(|| broken("a subquery where no query runs"))?;
        let arguments = self.arguments.iter().map(|argument| argument.evaluate(environment));
        let arguments = arguments.collect::<Result<Vec<Value>, SqlError>>()?;
        query.subqueries.rows(&self.query, environment.frame, arguments, limit)
    }

    /// The value of its only row.
    ///
    /// # Errors
    /// `21000` where there are more.
    pub fn scalar(&self, environment: &Environment<'_>) -> Result<Value, SqlError> {
        let rows = self.rows(environment, Some(2))?;
        match rows.as_slice() {
            [] => Ok(Value::Null),
            [row] => Ok(row.first().cloned().unwrap_or_default()),
            _ => {
                let message = "more than one row returned by a subquery used as an expression";
                Err(SqlError::new(SqlState(*b"21000"), message))
            }
        }
    }

    /// The values of its only column.
    ///
    /// # Errors
    /// `54000` where there are too many.
    pub fn array(&self, element: ElementType, environment: &Environment<'_>) -> Result<Value, SqlError> {
        let rows = self.rows(environment, None)?;
        let values = rows.iter().map(|row| row.first().cloned().unwrap_or_default()).collect();
        Ok(Value::Array(Arc::new(Array::new(element, values)?)))
    }

    /// The answer of the other forms.
    ///
    /// # Errors
    /// What the query and its operands raise.
    pub fn truth(&self, environment: &Environment<'_>) -> Result<Option<bool>, SqlError> {
        let (comparison, all) = match self.form {
            SubqueryForm::Exists => return Ok(Some(!self.rows(environment, Some(1))?.is_empty())),
            SubqueryForm::Any(comparison) => (comparison, false),
            SubqueryForm::All(comparison) => (comparison, true),
            SubqueryForm::Scalar | SubqueryForm::Array(_) => {
                return Err(broken("the truth of a subquery that gives values"));
            }
        };
        let rows = self.rows(environment, None)?;
        let operands = self.operands.iter().map(|operand| operand.evaluate(environment));
        let operands = operands.collect::<Result<Vec<Value>, SqlError>>()?;
        let mut result = Some(all);
        for row in rows.iter() {
            match compare_rows(comparison, &operands, row) {
                Some(truth) if truth != all => return Ok(Some(!all)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }
}

/// Compares as rows do: `=` is true if all columns are equal, `<>` if one differs; other comparisons look at the first
/// columns that differ.
fn compare_rows(comparison: Comparison, left: &[Value], right: &[Value]) -> Option<bool> {
    let mut pairs = left.iter().zip(right).map(|(left, right)| left.compare(right));
    match comparison {
        Comparison::Equal | Comparison::NotEqual => {
            let mut equal = Some(true);
            for order in pairs {
                match order {
                    Some(order) if order.is_ne() => return Some(comparison == Comparison::NotEqual),
                    Some(_) => {}
                    None => equal = None,
                }
            }
            equal.map(|equal| equal == (comparison == Comparison::Equal))
        }
        _ => {
            let order = pairs.find(|order| order.is_none_or(|order| order.is_ne()));
            order.unwrap_or(Some(std::cmp::Ordering::Equal)).map(|order| comparison.holds(order))
        }
    }
}
