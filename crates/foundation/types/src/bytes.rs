//! `bytea` and `uuid` as text.

use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Reads `\x0aff`, or text in which `\\` is a backslash and `\ooo` a byte in octal.
///
/// # Errors
/// `22P02` where it is neither, `54000` where it is longer than [`crate::limits::TEXT_BYTES_MAX`].
pub(crate) fn parse_bytea(text: &str) -> Result<Arc<[u8]>, SqlError> {
    let bytes = match text.strip_prefix("\\x") {
        Some(hexadecimal) => parse_hexadecimal(hexadecimal)?,
        None => parse_escaped(text)?,
    };
    check_bytes_length(bytes.len())?;
    Ok(Arc::from(bytes))
}

/// Refuses content of too many bytes.
///
/// # Errors
/// `54000`
pub fn check_bytes_length(found: usize) -> Result<(), SqlError> {
    let limit = crate::text_bytes_max();
    if found > limit {
        let message = format!("the bytea has {found} bytes, the limit is {limit} (TEXT_BYTES_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}

/// Refuses a text of type bytea that has more than two characters for each byte, and two in front.
///
/// # Errors
/// `54000`
pub fn check_bytea_text(text: &str) -> Result<(), SqlError> {
    let limit = 2 * crate::text_bytes_max() + 2;
    if text.len() > limit {
        let message =
            format!("the text of a bytea has {} bytes, the limit is {limit} (TEXT_BYTES_MAX)", text.len());
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}

/// Bytes from pairs of hexadecimal digits; white space between pairs does not count.
///
/// # Errors
/// `22023` where it is no such text.
pub fn parse_hexadecimal(text: &str) -> Result<Vec<u8>, SqlError> {
    let wrong = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    while let Some(first) = characters.next() {
        if matches!(first, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let digit = |character: char| {
            let message = || wrong(format!("invalid hexadecimal digit: \"{character}\""));
            character.to_digit(16).ok_or_else(message)
        };
        let high = digit(first)?;
        let low = match characters.next() {
            Some(second) => digit(second)?,
            None => return Err(wrong("invalid hexadecimal data: odd number of digits".to_string())),
        };
        bytes.push((high * 16 + low) as u8);
    }
    Ok(bytes)
}

/// Bytes from text in which a backslash begins an octal number or stands for itself twice.
///
/// # Errors
/// `22P02` where a backslash stands before something else.
pub fn parse_escaped(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                after
            }
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
            (byte, after) => {
                bytes.push(*byte);
                after
            }
        };
    }
    Ok(bytes)
}

/// `0aff`
pub fn format_hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `\x0aff`
pub(crate) fn format_bytea(bytes: &[u8]) -> String {
    format!("\\x{}", format_hexadecimal(bytes))
}

/// Reads 32 hexadecimal digits, with a hyphen after any group of four, and braces around them.
///
/// # Errors
/// `22P02` where it is none.
pub(crate) fn parse_uuid(text: &str) -> Result<[u8; 16], SqlError> {
    let wrong = || crate::text::invalid_syntax("uuid", text);
    let inside = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(wrong)?,
        None => text,
    };
    let mut rest = inside.as_bytes();
    let mut uuid = [0; 16];
    for (index, byte) in uuid.iter_mut().enumerate() {
        let [high, low, after @ ..] = rest else { return Err(wrong()) };
        let digit = |character: u8| char::from(character).to_digit(16).ok_or_else(wrong);
        *byte = (digit(*high)? * 16 + digit(*low)?) as u8;
        rest = match after {
            [b'-', after @ ..] if index % 2 == 1 && index < 15 => after,
            after => after,
        };
    }
    if rest.is_empty() { Ok(uuid) } else { Err(wrong()) }
}

/// `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`
pub(crate) fn format_uuid(uuid: &[u8; 16]) -> String {
    let digits = format_hexadecimal(uuid);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
