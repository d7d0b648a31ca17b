//! What a query inside of an expression comes to.

use crate::expression::{Environment, Subquery, SubqueryForm};
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Array, ElementType, SqlError, SqlState, Value, cast};
use values::{Comparison, broken, functions};

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
            _ => Err(more_than_one_row()),
        }
    }

    /// The values of its only column; where these are arrays, the array that has them side by side.
    ///
    /// # Errors
    /// `54000` where there are too many; `2202E` and `22004` for arrays that do not go together.
    pub fn array(&self, element: ElementType, environment: &Environment<'_>) -> Result<Value, SqlError> {
        let rows = self.rows(environment, None)?;
        let values: Vec<Value> = rows.iter().map(|row| row.first().cloned().unwrap_or_default()).collect();
        match self.query.columns.first().is_some_and(|column| column.data_type.element().is_some()) {
            true => functions::accumulated(element, &values),
            false => Ok(Value::Array(Arc::new(Array::new(element, values)?))),
        }
    }

    /// The answer of the other forms.
    ///
    /// # Errors
    /// What the query and its operands raise.
    pub fn truth(&self, environment: &Environment<'_>) -> Result<Option<bool>, SqlError> {
        let (comparison, all) = match self.form {
            SubqueryForm::Exists => return Ok(Some(!self.rows(environment, Some(1))?.is_empty())),
            SubqueryForm::Row(comparison) => {
                let operands = self.operands.iter().map(|operand| operand.evaluate(environment));
                let operands = operands.collect::<Result<Vec<Value>, SqlError>>()?;
                return match self.rows(environment, Some(2))?.as_slice() {
                    [] => Ok(None),
                    [row] => self.compare_row(comparison, &operands, row),
                    _ => Err(more_than_one_row()),
                };
            }
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
            match self.compare_row(comparison, &operands, row)? {
                Some(truth) if truth != all => return Ok(Some(!all)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Compares as rows do: `=` is true if all columns are equal, `<>` if one differs; other comparisons look at the first
    /// columns that differ.
    fn compare_row(
        &self,
        comparison: Comparison,
        operands: &[Value],
        row: &[Value],
    ) -> Result<Option<bool>, SqlError> {
        let by_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let mut unknown = false;
        for ((operand, value), compared_as) in operands.iter().zip(row).zip(&self.compared_as) {
            let order = match compared_as {
                Some(data_type) => operand.compare(&cast(value.clone(), *data_type)?),
                None => operand.compare(value),
            };
            match order {
                Some(Ordering::Equal) => {}
                Some(order) => return Ok(Some(comparison.holds(order))),
                None if by_equality => unknown = true,
                None => return Ok(None),
            }
        }
        Ok(if unknown { None } else { Some(comparison.holds(Ordering::Equal)) })
    }
}

#[cold]
fn more_than_one_row() -> SqlError {
    let message = "more than one row returned by a subquery used as an expression";
    SqlError::new(SqlState(*b"21000"), message)
}
