use crate::array::{format_array, parse_array};
use crate::bit_string::{format_bits, parse_bits};
use crate::bytes::{format_bytea, format_uuid, parse_bytea, parse_uuid};
use crate::composite_text::format_composite;
use crate::datetime::{
    format_date, format_instant, format_interval, format_time, format_time_tz, format_timestamp, parse_date,
    parse_interval, parse_time, parse_time_tz, parse_timestamp, round_time,
};
use crate::hstore::{format_hstore, parse_hstore};
use crate::json::check_json;
use crate::network_address::{format_macaddr, parse_cidr, parse_inet, parse_macaddr};
use crate::range::{format_multirange, format_range, parse_multirange, parse_range};
use crate::real::{format_real, parse_real};
use crate::session_format::session_format;
use crate::text_search::{format_query, format_vector, parse_tsquery, parse_tsvector};
use crate::{DataType, Jsonb, Numeric, SqlError, SqlState, Value};
use std::sync::Arc;

/// Reads `text` as a value of `data_type`, as PostgreSQL's input functions do; [`DataType::Unknown`] reads text.
///
/// The time zone is UTC. What depends on the clock (`'now'`, `'today'`) is refused, because every node must read the
/// same value.
///
/// # Errors
/// `22P02` (`22007` for timestamps) where the text is no such value, `22003` (`22008`) where it is out of range,
/// `22001` where it is too long for `varchar(n)`, `54000` where it is longer than [`crate::limits::TEXT_BYTES_MAX`],
/// `0A000` for what PostgreSQL reads and Entente does not.
pub fn parse_value(text: &str, data_type: DataType) -> Result<Value, SqlError> {
    Ok(match data_type {
        DataType::Boolean => Value::Boolean(parse_boolean(text)?),
        DataType::Integer => Value::Integer(
            parse_integer(text, "integer", i64::from(i32::MIN), i64::from(i32::MAX))?
                .try_into()
                .expect("the range was checked"),
        ),
        DataType::BigInt => Value::BigInt(parse_integer(text, "bigint", i64::MIN, i64::MAX)?),
        DataType::Numeric(None) => Value::Numeric(Numeric::parse(text)?),
        DataType::Numeric(Some((precision, scale))) => {
            Value::Numeric(Numeric::parse_coerced(text, precision, scale)?)
        }
        DataType::Double => Value::Double(parse_double(text)?),
        DataType::Text(length) => {
            check_text(text)?;
            Value::text(match length {
                Some(length) => fit_length(text, length)?,
                None => text,
            })
        }
        DataType::TimestampTz => Value::TimestampTz(parse_timestamp(text, data_type)?),
        DataType::SmallInt => Value::SmallInt(
            parse_integer(text, "smallint", i64::from(i16::MIN), i64::from(i16::MAX))?
                .try_into()
                .expect("the range was checked"),
        ),
        DataType::Real => Value::Real(parse_real(text)?),
        DataType::Date => Value::Date(parse_date(text)?),
        DataType::Timestamp => Value::Timestamp(parse_timestamp(text, data_type)?),
        DataType::Time => Value::Time(parse_time(text)?),
        DataType::Interval => Value::Interval(parse_interval(text)?),
        DataType::Char(length) => {
            check_text(text)?;
            Value::Char(Arc::from(pad_to(fit_char(text, length)?, length)?))
        }
        DataType::Bytea => Value::Bytea(parse_bytea(text)?),
        DataType::Uuid => Value::Uuid(parse_uuid(text)?),
        DataType::Array(element) => Value::Array(Arc::new(parse_array(text, element)?)),
        DataType::Json => {
            check_json(text)?;
            Value::Json(Arc::from(text))
        }
        DataType::Jsonb => Value::Jsonb(Jsonb::parse(text)?),
        DataType::Inet => Value::Inet(parse_inet(text)?),
        DataType::Cidr => Value::Cidr(parse_cidr(text)?),
        DataType::MacAddr => Value::MacAddr(parse_macaddr(text)?),
        DataType::Bit(length) => Value::Bit(Arc::new(parse_bits(text, length, false)?)),
        DataType::VarBit(length) => Value::VarBit(Arc::new(parse_bits(text, length, true)?)),
        DataType::TimeTz => Value::TimeTz(parse_time_tz(text)?),
        DataType::Rounded(of, digits) => round_time(parse_value(text, of.data_type())?, digits),
        DataType::Range(range_type) => Value::Range(Arc::new(parse_range(text, range_type)?)),
        DataType::Multirange(range_type) => Value::Multirange(Arc::new(parse_multirange(text, range_type)?)),
        DataType::TsVector => Value::TsVector(parse_tsvector(text)?),
        DataType::TsQuery => Value::TsQuery(parse_tsquery(text)?),
        DataType::Hstore => Value::Hstore(parse_hstore(text)?),
        DataType::Oid => Value::Oid(parse_oid(text)?),
        DataType::Citext => {
            check_text(text)?;
            Value::Citext(Arc::from(text))
        }
        // No value is of such a type.
        DataType::Polymorphic(polymorphic) => {
            let message = format!("cannot accept a value of type {polymorphic}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        DataType::Unknown | DataType::RefCursor => {
            check_text(text)?;
            Value::text(text)
        }
        DataType::Record => {
            let message = "input of anonymous composite types is not implemented";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        // Who reads these knows the type's fields or labels: `CompositeTypes`.
        DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => {
            return Err(SqlError::unsupported(format_args!("a text as a value of {data_type} here")));
        }
    })
}

/// Writes a value as PostgreSQL's output functions do; `None` for NULL.
///
/// A boolean is `t` or `f`; a cast to text gives `true` or `false` instead.
pub fn format_value(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Boolean(true) => "t".to_string(),
        Value::Boolean(false) => "f".to_string(),
        Value::Integer(value) => value.to_string(),
        Value::BigInt(value) => value.to_string(),
        Value::Numeric(value) => value.to_string(),
        Value::Double(value) => format_double(*value),
        Value::Text(text) => text.to_string(),
        Value::TimestampTz(microseconds) => format_instant(*microseconds),
        Value::SmallInt(value) => value.to_string(),
        Value::Real(value) => format_real(*value),
        Value::Date(days) => format_date(*days),
        Value::Timestamp(microseconds) => format_timestamp(*microseconds, ""),
        Value::Time(microseconds) => format_time(*microseconds),
        Value::Interval(interval) => format_interval(*interval),
        Value::Char(text) => text.to_string(),
        Value::Bytea(bytes) => format_bytea(bytes),
        Value::Uuid(bytes) => format_uuid(bytes),
        Value::Array(array) => format_array(array),
        Value::Composite(row) => format_composite(row),
        Value::Json(text) => text.to_string(),
        Value::Jsonb(value) => value.to_text(),
        Value::Enum(value) => value.label.to_string(),
        Value::Inet(address) => address.abbreviated_host(),
        Value::Cidr(address) => address.prefixed_text(),
        Value::MacAddr(bytes) => format_macaddr(bytes),
        Value::Bit(bits) | Value::VarBit(bits) => format_bits(bits),
        Value::TimeTz(time) => format_time_tz(*time),
        Value::Range(range) => format_range(range),
        Value::Multirange(ranges) => format_multirange(ranges),
        Value::TsVector(vector) => format_vector(vector),
        Value::TsQuery(query) => format_query(query),
        Value::Hstore(hstore) => format_hstore(hstore),
        Value::Citext(text) => text.to_string(),
        Value::Oid(number) => number.to_string(),
    })
}

/// The error of an input function that cannot read `text`.
#[cold]
pub(crate) fn invalid_syntax(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

/// Without the white space that C's `isspace` knows.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}

/// Refuses texts that no value can be.
pub(crate) fn check_text(text: &str) -> Result<(), SqlError> {
    check_text_length(text.len())?;
    if text.as_bytes().contains(&0) {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(SqlError::new(SqlState(*b"22021"), message));
    }
    Ok(())
}

/// Refuses a text of too many bytes.
pub(crate) fn check_text_length(found: usize) -> Result<(), SqlError> {
    let limit = crate::text_bytes_max();
    if found > limit {
        let message = format!("the text has {found} bytes, the limit is {limit} (TEXT_BYTES_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}

/// The first `length` characters.
pub(crate) fn truncate(text: &str, length: u32) -> &str {
    let length = length as usize;
    if text.len() <= length {
        return text;
    }
    text.char_indices().nth(length).map_or(text, |(end, _)| &text[..end])
}

/// The text as a `varchar(length)`: spaces beyond the length are dropped, anything else is an error.
pub(crate) fn fit_length(text: &str, length: u32) -> Result<&str, SqlError> {
    let kept = truncate(text, length);
    if text[kept.len()..].bytes().all(|byte| byte == b' ') {
        return Ok(kept);
    }
    let message = format!("value too long for type character varying({length})");
    Err(SqlError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message))
}

/// The text as a `char(length)`, not yet filled up: spaces beyond the length are dropped, anything else is an error.
pub(crate) fn fit_char(text: &str, length: Option<u32>) -> Result<&str, SqlError> {
    let Some(length) = length else { return Ok(text) };
    fit_length(text, length).map_err(|error| SqlError {
        message: format!("value too long for type character({length})"),
        ..error
    })
}

/// Filled up with spaces to `length` characters.
///
/// # Errors
/// `54000` where that is longer than a text may be.
pub(crate) fn pad_to(text: &str, length: Option<u32>) -> Result<String, SqlError> {
    let missing = (length.unwrap_or(0) as usize).saturating_sub(text.chars().count());
    check_text_length(text.len() + missing)?;
    let mut padded = String::with_capacity(text.len() + missing);
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', missing));
    Ok(padded)
}

/// A `char(n)` without the spaces at its end.
pub(crate) fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Any prefix of a word that tells it from the others, in any case.
fn parse_boolean(text: &str) -> Result<bool, SqlError> {
    let word = trim(text).to_ascii_lowercase();
    let begins = |full: &str, shortest: usize| word.len() >= shortest && full.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(invalid_syntax("boolean", text))
    }
}

/// Digits are read before what follows them, so that a number too large is out of range whatever comes after it.
fn parse_integer(text: &str, type_name: &str, min: i64, max: i64) -> Result<i64, SqlError> {
    let (negative, unsigned) = match trim(text).as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut value = 0i64;
    for byte in unsigned {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return Err(invalid_syntax(type_name, text));
        }
        // Downwards, because i64::MIN has no positive counterpart.
        value = match value.checked_mul(10).and_then(|value| value.checked_sub(digit)) {
            Some(value) if value >= min && (negative || value >= -max) => value,
            _ => return Err(out_of_type(text, type_name)),
        };
    }
    if unsigned.is_empty() {
        return Err(invalid_syntax(type_name, text));
    }
    Ok(if negative { value } else { -value })
}

/// The error of a number that the type does not have.
#[cold]
fn out_of_type(text: &str, type_name: &str) -> SqlError {
    let message = format!("value \"{text}\" is out of range for type {type_name}");
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// As PostgreSQL's `oidin`, which takes negative numbers of 32 bits for what their bits say.
fn parse_oid(text: &str) -> Result<u32, SqlError> {
    let most = i64::from(u32::MAX);
    match parse_integer(text, "oid", -most, most)? {
        number if number < i64::from(i32::MIN) => Err(out_of_type(text, "oid")),
        number => Ok(number as u32),
    }
}

pub(crate) fn parse_double(text: &str) -> Result<f64, SqlError> {
    let trimmed = trim(text);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let sign = if trimmed.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned.to_ascii_lowercase().as_str() {
        "nan" => return Ok(f64::NAN),
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        _ => {}
    }
    let decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let value: f64 = match trimmed.bytes().all(decimal).then(|| trimmed.parse()) {
        Some(Ok(value)) => value,
        _ => return Err(invalid_syntax("double precision", text)),
    };
    let digits = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if value.is_infinite() || (value == 0.0 && !zero) {
        let message = format!("\"{trimmed}\" is out of range for type double precision");
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(value)
}

/// The shortest digits that read as the same double; with an exponent below 10^−4 and from 10^15.
pub(crate) fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    match session_format().float_digits.written(15) {
        None => write_decimal(sign, &shortest_digits(value.abs()), 15),
        Some(digits) => write_decimal(sign, &rounded_digits(value.abs(), digits), digits as i32),
    }
}

/// So many digits in scientific notation, without zeros behind them, as C's `%g` has them.
pub(crate) fn rounded_digits(value: f64, digits: usize) -> String {
    let behind_first = digits - 1;
    let scientific = format!("{value:.behind_first$e}");
    let (number, exponent) = split_exponent(&scientific);
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}e{exponent}")
}

/// Digits in scientific notation as PostgreSQL shows them: with an exponent below 10^−4 and from `10^exponent_from`.
pub(crate) fn write_decimal(sign: &str, scientific: &str, exponent_from: i32) -> String {
    let (digits, exponent) = split_exponent(scientific);
    if !(-4..exponent_from).contains(&exponent) {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{digits}e{exponent_sign}{:02}", exponent.abs());
    }
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    match usize::try_from(exponent) {
        Err(_) => {
            format!("{sign}0.{digits:0>width$}", width = digits.len() + exponent.unsigned_abs() as usize - 1)
        }
        Ok(exponent) if digits.len() <= exponent + 1 => {
            format!("{sign}{digits:0<width$}", width = exponent + 1)
        }
        Ok(exponent) => format!("{sign}{}.{}", &digits[..=exponent], &digits[exponent + 1..]),
    }
}

/// The digits that PostgreSQL's Ryū prints, in scientific notation: Rust's, which have the same length, except that of
/// two equally near it takes the even one, and that it takes none that lies exactly between two doubles.
fn shortest_digits(value: f64) -> String {
    let is_read_back = |scientific: &str| scientific.parse() == Ok(value) && !is_midpoint(scientific, value);
    let mut scientific = format!("{value:e}");
    let mut digits_after_first = split_exponent(&scientific).0.len().saturating_sub(2);
    if let Some(even) = even_of_two(value, digits_after_first).filter(|even| is_read_back(even)) {
        return even;
    }
    while !is_read_back(&scientific) {
        digits_after_first += 1;
        scientific = format!("{value:.digits_after_first$e}");
    }
    scientific
}

/// The smaller of the two decimals of this length next to `value`, if both are equally near and it is even.
fn even_of_two(value: f64, digits_after_first: usize) -> Option<String> {
    /// A tie needs more digits than every decimal of 15 digits and their double have in common.
    const DIGITS_MIN: usize = 14;
    /// No double is nearer to a decimal of 18 digits than 38 digits can tell, unless they are equal.
    const DIGITS_EXACT: usize = 60;
    if digits_after_first < DIGITS_MIN {
        return None;
    }
    let exact = format!("{value:.DIGITS_EXACT$e}");
    let (digits, exponent) = exact.split_once('e')?;
    // The first digit, the point, the others.
    let (kept, dropped) = digits.split_at(digits_after_first + 2);
    let tie = dropped.strip_prefix('5')?.bytes().all(|digit| digit == b'0');
    let even = matches!(kept.as_bytes().last(), Some(b'0' | b'2' | b'4' | b'6' | b'8'));
    (tie && even).then(|| format!("{kept}e{exponent}"))
}

pub(crate) fn split_exponent(scientific: &str) -> (&str, i32) {
    let (digits, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    (digits, exponent.parse().expect("an exponent is an integer"))
}

/// Whether `decimal` lies exactly between `value` and its neighbour. PostgreSQL does not print such digits (1e23),
/// because a reader that does not round to even would read the neighbour; Rust does.
fn is_midpoint(decimal: &str, value: f64) -> bool {
    let (digits, exponent) = split_exponent(decimal);
    let fraction_digits = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let exponent = exponent - fraction_digits as i32;
    // The midpoint is an odd number of 54 bits times a power of two, so it has at most 23 factors of five; a negative
    // exponent would need more digits than are printed. Zero is no midpoint.
    let Some(power) = u32::try_from(exponent).ok().filter(|power| *power <= 23) else {
        return false;
    };
    let digits = digits
        .bytes()
        .filter(u8::is_ascii_digit)
        .fold(0, |sum: u128, digit| sum * 10 + u128::from(digit - b'0'));
    // value = mantissa × 2^binary; it is at least 1, so it is no subnormal number.
    let bits = value.to_bits();
    let mantissa = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
    let binary = (bits >> 52 & 0x7ff) as i32 - 1075;
    // decimal = digits × 5^power × 2^power against (4 × mantissa ± 2) × 2^(binary − 2), and − 1 where the neighbour
    // below is half as far.
    let decimal = digits * 5u128.pow(power);
    let shift = binary - 2 - exponent;
    let equals = |quarters: u128| match u32::try_from(shift) {
        Ok(shift) => {
            quarters.checked_shl(shift).is_some_and(|scaled| scaled >> shift == quarters && scaled == decimal)
        }
        Err(_) => decimal.checked_shl(shift.unsigned_abs()) == Some(quarters),
    };
    equals(4 * mantissa + 2) || equals(4 * mantissa - 2) || (mantissa == 1 << 52 && equals(4 * mantissa - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn refusal(text: &str, data_type: DataType) -> SqlError {
        parse_value(text, data_type).expect_err(text)
    }

    #[test]
    fn what_depends_on_the_clock_is_refused_by_name() {
        for text in ["now", " Today ", "tomorrow", "yesterday 12:00"] {
            let error = refusal(text, DataType::TimestampTz);
            assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED, "{text}");
            assert_eq!(error.hint.as_deref(), Some("Use now(), the time of the block."));
        }
        let named = refusal("2026-11-20 12:00 Europe/Paris", DataType::TimestampTz);
        assert_eq!(named.state, SqlState::FEATURE_NOT_SUPPORTED);
        assert!(named.hint.is_some_and(|hint| hint.contains("2026-11-20 23:01:02+01")));
    }

    #[test]
    fn texts_that_no_value_can_be_are_refused() {
        assert_eq!(refusal("a\0b", DataType::Text(None)).state, SqlState(*b"22021"));
        let long = "a".repeat(limits::TEXT_BYTES_MAX + 1);
        assert_eq!(refusal(&long, DataType::Text(None)).state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(parse_value(&long[1..], DataType::Unknown).is_ok());
    }

    #[test]
    fn doubles_print_as_postgresql_and_not_as_rust_where_they_differ() {
        assert_eq!(format_double(1e23), "9.999999999999999e+22", "1e23 lies between two doubles");
        assert_eq!(
            format_double(1.0 / 33_554_432.0),
            "2.9802322387695312e-08",
            "of two equally near the even one"
        );
        assert_eq!(format_double(123_456_789_012_345.0 + 0.125), "123456789012345.12");
        assert_eq!(format_double(-0.0), "-0");
    }

    #[test]
    fn every_timestamp_prints() {
        assert_eq!(format_value(&Value::TimestampTz(i64::MIN)).as_deref(), Some("-infinity"));
        for microseconds in [i64::MIN + 1, i64::MAX - 1, -1, 0, 1] {
            assert!(format_value(&Value::TimestampTz(microseconds)).is_some());
        }
    }
}
