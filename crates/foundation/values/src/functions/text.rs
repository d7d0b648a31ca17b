//! Functions on texts that take more than a line.

use crate::functions::length::check_length;
use types::{SqlError, SqlState, Value};

/// The first letter of every word large, the others small; words are letters and digits in a row.
pub(super) fn initial_capitals(text: &str) -> String {
    let mut inside = false;
    let each = |character: char| {
        let shown = if inside { character.to_ascii_lowercase() } else { character.to_ascii_uppercase() };
        inside = character.is_alphanumeric();
        shown
    };
    text.chars().map(each).collect()
}

/// As many characters as asked for: filled up on one side, or cut off at the end.
///
/// # Errors
/// A text that is too long.
pub(super) fn pad(text: &str, length: i32, fill: &str, on_the_left: bool) -> Result<Value, SqlError> {
    let length = usize::try_from(length).unwrap_or(0);
    let count = text.chars().count();
    if length <= count || fill.is_empty() {
        return Ok(Value::text(text.chars().take(length).collect::<String>()));
    }
    let missing = length - count;
    check_length(missing.saturating_mul(fill.len().min(4)).saturating_add(text.len()))?;
    let filling: String = fill.chars().cycle().take(missing).collect();
    Ok(Value::text(if on_the_left { filling + text } else { text.to_string() + &filling }))
}

/// The field of this number, counted from the end where it is negative; empty where there is none.
///
/// # Errors
/// `22023` for field 0.
pub(super) fn split_part(text: &str, delimiter: &str, field: i32) -> Result<Value, SqlError> {
    if field == 0 {
        let message = "field position must not be zero";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let number = field.unsigned_abs() as usize - 1;
    let found = match (delimiter.is_empty(), field > 0) {
        (true, _) => (number == 0 && !text.is_empty()).then_some(text),
        (false, true) => text.split(delimiter).nth(number),
        (false, false) => text.rsplit(delimiter).nth(number),
    };
    Ok(Value::text(found.unwrap_or_default()))
}

/// Every character of `from` becomes the one at its place in `to`, or nothing.
pub(super) fn translate(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    let each = |character: char| match from.chars().position(|known| known == character) {
        Some(position) => to.get(position).copied(),
        None => Some(character),
    };
    text.chars().filter_map(each).collect()
}

/// The character of a code point.
///
/// # Errors
/// There is none.
pub(super) fn character(code: i32) -> Result<Value, SqlError> {
    if code < 0 {
        let message = "character number must be positive";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if code == 0 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    match char::from_u32(code as u32) {
        Some(character) => Ok(Value::text(character.to_string())),
        None if code > 0x10_ffff => {
            let message = format!("requested character too large for encoding: {code}");
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        }
        None => {
            let message = format!("requested character not valid for encoding: {code}");
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
        }
    }
}
