//! Expressions of a SELECT over the rows of its grouping, and over the values of its window functions.

use crate::expression::{Expression, Kind, Relations};
use types::{SqlError, SqlState};

/// The values of window functions are the columns behind so many others.
pub(super) fn place_windows(expression: &mut Expression, width: usize) {
    match expression.kind {
        Kind::Window(number) => expression.kind = Kind::Column((width + usize::from(number)) as u16),
        _ => expression.operands_mut().into_iter().for_each(|operand| place_windows(operand, width)),
    }
}

/// From the table's rows to the rows of the grouping.
pub(super) struct Regroup<'b> {
    /// GROUP BY.
    pub keys: &'b [Expression],
    /// What the columns are called.
    pub names: &'b Relations,
}

impl Regroup<'_> {
    /// Says of a row of the grouping what is said of a row of FROM.
    ///
    /// # Errors
    /// `42803` for a column that is no key.
    pub fn apply(&self, expression: &mut Expression) -> Result<(), SqlError> {
        if let Some(position) = self.keys.iter().position(|key| key == expression) {
            expression.kind = Kind::Column(position as u16);
            return Ok(());
        }
        match &mut expression.kind {
            Kind::Subquery(subquery) => {
                for argument in &mut subquery.arguments {
                    self.apply(argument).map_err(|error| in_subquery(error, argument, self.names))?;
                }
                subquery.operands.iter_mut().try_for_each(|operand| self.apply(operand))
            }
            Kind::Aggregate(number) => {
                expression.kind = Kind::Column(self.keys.len() as u16 + *number);
                Ok(())
            }
            Kind::Column(ordinal) => Err(self.ungrouped(*ordinal)),
            _ => expression.operands_mut().into_iter().try_for_each(|operand| self.apply(operand)),
        }
    }

    fn ungrouped(&self, ordinal: u16) -> SqlError {
        let name = self.names.name_of(ordinal).unwrap_or_default();
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        SqlError::new(SqlState::GROUPING_ERROR, message)
    }
}

fn in_subquery(error: SqlError, argument: &Expression, names: &Relations) -> SqlError {
    match argument.kind {
        Kind::Column(ordinal) if error.state == SqlState::GROUPING_ERROR => {
            let name = names.name_of(ordinal).unwrap_or_default();
            let message = format!("subquery uses ungrouped column \"{name}\" from outer query");
            SqlError::new(SqlState::GROUPING_ERROR, message)
        }
        _ => error,
    }
}
