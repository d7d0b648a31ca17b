//! What binding one operand several times may come to.

use crate::expression::{Binder, Expression};
use types::{ExecutionVersion, SqlError, SqlState};

/// Nodes of expressions that a statement or a routine may have because operands are bound several times.
const COPIES_MAX: usize = 1 << 18;

/// Before execution version 12 nobody counted the copies of parts of a column. So many nodes take most of a gigabyte.
const PART_COPIES_BEFORE_V12_MAX: usize = 1 << 22;

impl Binder<'_> {
    /// An operand once more. BETWEEN, IN, CASE and rows compare an operand several times; where such comparisons stand in
    /// one another's operands, their copies multiply with every level.
    ///
    /// # Errors
    /// `54001` where there are too many copies.
    pub(super) fn again(&self, operand: &Expression) -> Result<Expression, SqlError> {
        self.count_again(operand)?;
        Ok(operand.clone())
    }

    /// Counts an operand that was bound once more.
    ///
    /// # Errors
    /// As [`Binder::again`].
    pub(super) fn count_again(&self, operand: &Expression) -> Result<(), SqlError> {
        let mut copies = self.scope.copies.get();
        let is_too_much = operand.any(&mut |_| {
            copies += 1;
            copies > COPIES_MAX
        });
        self.scope.copies.set(copies);
        if is_too_much { Err(too_many_copies()) } else { Ok(()) }
    }

    /// Counts what one more assignment inside of a column binds again: what has been assigned so far, at every step of the way to the
    /// part but the last.
    ///
    /// # Errors
    /// `54001` where there are too many copies.
    pub(crate) fn count_part(&self, so_far: &Expression, steps: usize) -> Result<(), SqlError> {
        if self.scope.version() >= ExecutionVersion::V12 {
            return (1..steps)
                .try_for_each(|_| self.count_again(so_far))
                .map_err(|_| too_many_part_copies(COPIES_MAX));
        }
        let mut copies = 0;
        let is_too_much = steps > 1
            && so_far.any(&mut |_| {
                copies += steps - 1;
                copies > PART_COPIES_BEFORE_V12_MAX
            });
        if is_too_much { Err(too_many_part_copies(PART_COPIES_BEFORE_V12_MAX)) } else { Ok(()) }
    }
}

#[cold]
fn too_many_part_copies(max: usize) -> SqlError {
    let message = format!("assignments inside of one column come to more than {max} copies of one another");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).hint(PARTS_HINT)
}

/// What to do where a statement assigns too many parts of one column.
pub(crate) const PARTS_HINT: &str = "Assign the whole column, or fewer parts with each statement.";

#[cold]
fn too_many_copies() -> SqlError {
    let message =
        format!("operands that are compared several times have more than {COPIES_MAX} copies (COPIES_MAX)");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .hint("Compute the operand in a query in FROM, and compare its column.")
}
