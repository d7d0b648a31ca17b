//! What must hold after binding.

use types::{SqlError, SqlState};

/// An error that cannot be: something that binding has checked does not hold.
#[cold]
pub fn broken(what: &str) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("an invariant of the SQL executor is broken: {what}"))
}
