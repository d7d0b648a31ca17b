//! `real`: single precision as text, and its arithmetic.

use crate::session_format::session_format;
use crate::text::{invalid_syntax, rounded_digits, split_exponent, trim, write_decimal};
use crate::{SqlError, SqlState};

/// Reads a `real`.
///
/// # Errors
/// `22P02` where it is no number, `22003` where it is too large or too near to zero.
pub(crate) fn parse_real(text: &str) -> Result<f32, SqlError> {
    let trimmed = trim(text);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let sign = if trimmed.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned.to_ascii_lowercase().as_str() {
        "nan" => return Ok(f32::NAN),
        "inf" | "infinity" => return Ok(sign * f32::INFINITY),
        _ => {}
    }
    let decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let value: f32 = match trimmed.bytes().all(decimal).then(|| trimmed.parse()) {
        Some(Ok(value)) => value,
        _ => return Err(invalid_syntax("real", text)),
    };
    let digits = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if value.is_infinite() || (value == 0.0 && !zero) {
        let message = format!("\"{trimmed}\" is out of range for type real");
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(value)
}

/// The shortest digits that read as the same `real`; with an exponent below 10^−4 and from 10^6.
pub(crate) fn format_real(value: f32) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    match session_format().float_digits.written(6) {
        None => write_decimal(sign, &shortest_digits(value.abs()), 6),
        Some(digits) => write_decimal(sign, &rounded_digits(f64::from(value.abs()), digits), digits as i32),
    }
}

/// As of a double: Rust's digits, except that PostgreSQL prints none that lie exactly between two values.
fn shortest_digits(value: f32) -> String {
    let mut scientific = format!("{value:e}");
    let mut digits_after_first = split_exponent(&scientific).0.len().saturating_sub(2);
    while is_midpoint(&scientific, value) || scientific.parse() != Ok(value) {
        digits_after_first += 1;
        scientific = format!("{value:.digits_after_first$e}");
    }
    scientific
}

/// Whether `decimal` lies exactly between `value` and its neighbour: that point is a double.
fn is_midpoint(decimal: &str, value: f32) -> bool {
    let Ok(exact) = decimal.parse::<f64>() else { return false };
    if exact == f64::from(value) {
        return false;
    }
    let neighbour = if exact > f64::from(value) { value.next_up() } else { value.next_down() };
    if exact - f64::from(value) != f64::from(neighbour) - exact {
        return false;
    }
    // The double is the middle; is the decimal the double?
    let digits = |scientific: &str| {
        let (digits, exponent) = split_exponent(scientific);
        let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
        (digits.trim_end_matches('0').to_string(), exponent)
    };
    digits(&format!("{exact:.120e}")) == digits(decimal)
}

/// A double as a `real`.
///
/// # Errors
/// `22003` where it is too large or too near to zero.
pub(crate) fn narrow(value: f64) -> Result<f32, SqlError> {
    let narrowed = value as f32;
    check(narrowed, value.is_infinite(), value == 0.0)
}

/// A result that became infinite without an infinite operand has overflown; one that became zero has underflown.
pub(crate) fn check(result: f32, infinite_expected: bool, zero_expected: bool) -> Result<f32, SqlError> {
    let fault = if result.is_infinite() && !infinite_expected {
        "overflow"
    } else if result == 0.0 && !zero_expected {
        "underflow"
    } else {
        return Ok(result);
    };
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {fault}")))
}
