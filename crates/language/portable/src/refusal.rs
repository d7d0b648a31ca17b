//! Why something is refused.

use std::fmt::Display;
use types::{DataType, SqlError, SqlState, limits};

/// `0A000`: it does not mean the same in every database, or nobody has shown that it does.
pub(crate) fn refused(what: impl Display) -> SqlError {
    SqlError::unsupported(format_args!("{what} on a ledger whose databases execute scripts"))
}

/// What to do instead of computing something in the database.
pub(crate) const COMPUTE_BEFORE: &str = "Compute the value before, and give it as a parameter.";

/// The beginning of a construct, for errors.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// `54001`: an expression is too deep.
pub(crate) fn too_deep() -> SqlError {
    let message =
        format!("the statement is nested more than {} levels deep (NESTING_MAX)", limits::NESTING_MAX);
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .hint("Split it into several statements, or use a list with IN.")
}

/// `22003`: a number does not fit its type.
pub(crate) fn out_of_range(data_type: DataType) -> SqlError {
    let message = format!("{} out of range", data_type.family());
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// `42804`: something is not boolean.
pub(crate) fn not_boolean(clause: &str, found: DataType) -> SqlError {
    let message = format!("argument of {clause} must be type boolean, not type {found}");
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// `42883`: there is no such operator.
pub(crate) fn no_operator(left: DataType, operator: &str, right: DataType) -> SqlError {
    let message = format!("operator does not exist: {} {operator} {}", left.family(), right.family());
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}
