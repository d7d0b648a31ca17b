//! Comparisons of rows that are values.

use crate::expression::build::{all_of, any_of, boolean};
use crate::expression::row::RowOperation;
use crate::expression::{Binder, Expression, Kind};
use types::{DataType, SqlError, SqlState, Value};
use values::Comparison;

impl Binder<'_> {
    /// A comparison of rows; `None` where neither operand is one.
    pub(super) fn compare_composites(
        &self,
        comparison: RowComparison,
        left: &Expression,
        right: &Expression,
    ) -> Result<Option<Expression>, SqlError> {
        if !left.data_type.is_composite() && !right.data_type.is_composite() {
            return Ok(None);
        }
        let (left, right) = match (left.data_type, right.data_type) {
            // All rows compare as records, and a text cannot be one.
            (DataType::Unknown, _) => (self.cast_to(left.clone(), DataType::Record)?, right.clone()),
            (_, DataType::Unknown) => (left.clone(), self.cast_to(right.clone(), DataType::Record)?),
            (from, to) if from.is_composite() && to.is_composite() => (left.clone(), right.clone()),
            (from, to) => {
                let symbol = comparison.symbol();
                let (from, to) = (self.types().name_of(from.family()), self.types().name_of(to.family()));
                return Err(crate::expression::refusals::no_operator(&format!("{from} {symbol} {to}")));
            }
        };
        if let (Some((first, left)), Some((second, right))) = (left.as_row(), right.as_row())
            && first.is_constructor
            && second.is_constructor
        {
            return match comparison {
                RowComparison::Operator(comparison) => {
                    self.compare_bound_rows(comparison, left.to_vec(), right.to_vec()).map(Some)
                }
                RowComparison::Distinct(distinct) => {
                    self.distinct_rows(distinct, left.to_vec(), right.to_vec()).map(Some)
                }
            };
        }
        let known = |row: Expression| match row.as_row() {
            Some(_) => self.known_fields(row),
            None => Ok(row),
        };
        let operands = vec![known(left)?, known(right)?];
        let by = match comparison {
            RowComparison::Operator(comparison) => comparison,
            RowComparison::Distinct(_) => Comparison::Equal,
        };
        operands.iter().try_for_each(|row| self.check_compared_row(row, by))?;
        let operation = match comparison {
            RowComparison::Operator(comparison) => RowOperation::Compare(comparison),
            RowComparison::Distinct(distinct) => RowOperation::Distinct(distinct),
        };
        Ok(Some(Expression::row(operation, operands, DataType::Boolean)))
    }

    /// Two rows that are written out: distinct where a field is.
    fn distinct_rows(
        &self,
        distinct: bool,
        left: Vec<Expression>,
        right: Vec<Expression>,
    ) -> Result<Expression, SqlError> {
        if left.len() != right.len() {
            let message = "unequal number of entries in row expressions";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let mut found: Option<Expression> = None;
        for (left, right) in left.into_iter().zip(right) {
            let differs = self.distinct(distinct, left, right)?;
            found = Some(match found {
                None => differs,
                Some(before) if distinct => any_of(before, differs),
                Some(before) => all_of(before, differs),
            });
        }
        Ok(found.unwrap_or_else(|| Expression::constant(Value::Boolean(!distinct), DataType::Boolean)))
    }

    /// `row IN (row, …)` of values that are rows.
    pub(super) fn row_in_list(
        &self,
        operand: &Expression,
        list: Vec<Expression>,
        negated: bool,
    ) -> Result<Expression, SqlError> {
        let mut found: Option<Expression> = None;
        for element in list {
            let equal = self.compare(Comparison::Equal, self.again(operand)?, element)?;
            found = Some(match found {
                None => equal,
                Some(before) => any_of(before, equal),
            });
        }
        let found = found.ok_or_else(|| SqlError::unsupported("IN without a list"))?;
        Ok(if negated { boolean(Kind::Not(Box::new(found))) } else { found })
    }
}

/// How two rows are compared.
#[derive(Clone, Copy)]
pub(super) enum RowComparison {
    Operator(Comparison),
    /// `IS [NOT] DISTINCT FROM`
    Distinct(bool),
}

impl RowComparison {
    fn symbol(self) -> &'static str {
        match self {
            RowComparison::Operator(comparison) => comparison.symbol(),
            RowComparison::Distinct(_) => "=",
        }
    }
}
