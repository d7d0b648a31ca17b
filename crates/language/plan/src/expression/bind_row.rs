//! Comparisons of rows, which are those of their values.

use crate::expression::build::{all_of, any_of, boolean};
use crate::expression::written::row_of;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::{Expr, Spanned};
use types::{SqlError, SqlState};
use values::Comparison;

impl Binder<'_> {
    /// `(a, b) op (c, d)`: the first values that are not equal decide.
    pub(super) fn compare_rows(
        &self,
        comparison: Comparison,
        left: &[Expr],
        right: &[Expr],
    ) -> Result<Expression, SqlError> {
        let bind = |side: &[Expr]| side.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>, _>>();
        self.compare_bound_rows(comparison, bind(left)?, bind(right)?)
    }

    /// The same of values that are bound.
    pub(super) fn compare_bound_rows(
        &self,
        comparison: Comparison,
        left: Vec<Expression>,
        right: Vec<Expression>,
    ) -> Result<Expression, SqlError> {
        if left.len() != right.len() {
            let message = "unequal number of entries in row expressions";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let mut result: Option<Expression> = None;
        for (left, right) in left.into_iter().zip(right).rev() {
            let values = |comparison| self.compare(comparison, self.again(&left)?, self.again(&right)?);
            result = Some(match (comparison, result) {
                (comparison, None) => values(comparison)?,
                (Comparison::Equal, Some(rest)) => all_of(values(Comparison::Equal)?, rest),
                (Comparison::NotEqual, Some(rest)) => any_of(values(Comparison::NotEqual)?, rest),
                (comparison, Some(rest)) => {
                    let strict = match comparison {
                        Comparison::LessOrEqual => Comparison::Less,
                        Comparison::GreaterOrEqual => Comparison::Greater,
                        other => other,
                    };
                    any_of(values(strict)?, all_of(values(Comparison::Equal)?, rest))
                }
            });
        }
        result.ok_or_else(|| {
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length")
        })
    }

    /// `(a, b) IN ((c, d), …)`
    pub(super) fn bind_row_in_list(
        &self,
        row: &[Expr],
        list: &[Expr],
        negated: bool,
    ) -> Result<Expression, SqlError> {
        if list.iter().any(|other| row_of(other).is_none()) {
            let list = list.iter().map(|other| self.bind(other)).collect::<Result<Vec<_>, _>>()?;
            return self.row_in_list(&self.bind_row_of(row)?, list, negated);
        }
        let mut found: Option<Expression> = None;
        for other in list {
            let values = row_of(other).unwrap_or_default();
            let equal = self
                .compare_rows(Comparison::Equal, row, values)
                .map_err(|error| self.at(error, other.span()))?;
            // The row was bound with each of the others.
            self.count_again(&equal)?;
            found = Some(match found {
                None => equal,
                Some(before) => any_of(before, equal),
            });
        }
        let found = found.ok_or_else(|| SqlError::unsupported("IN without a list"))?;
        Ok(if negated { boolean(Kind::Not(Box::new(found))) } else { found })
    }
}
