//! Where in a body something stands.

use types::SqlError;

/// The error at this position, unless it has one.
pub(super) fn or_at(error: SqlError, position: u32) -> SqlError {
    if error.position.is_some() { error } else { error.at(position) }
}

/// Positions of the ends of lines, in characters from 1.
pub(crate) fn line_ends(body: &str) -> Vec<u32> {
    (1..)
        .zip(body.chars())
        .filter(|(_, character)| *character == '\n')
        .map(|(position, _)| position)
        .collect()
}
