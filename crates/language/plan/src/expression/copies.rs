//! What binding one operand several times may come to.

use crate::expression::{Binder, Expression};
use types::{SqlError, SqlState};

/// Nodes of expressions that a statement or a routine may have because operands are bound several times.
const COPIES_MAX: usize = 1 << 18;

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
}

#[cold]
fn too_many_copies() -> SqlError {
    let message =
        format!("operands that are compared several times have more than {COPIES_MAX} copies (COPIES_MAX)");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .hint("Compute the operand in a query in FROM, and compare its column.")
}
