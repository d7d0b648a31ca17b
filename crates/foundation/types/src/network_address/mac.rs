//! Values of `macaddr` as text.

use crate::text::invalid_syntax;
use crate::unknown_types::check_known;
use crate::{ExecutionVersion, SqlError, SqlState};
use borsh::BorshDeserialize;
use std::io;

/// What the encoding of a value begins with.
const MACADDR_TAG: u8 = 24;

/// How a number of a form is written, and what stands behind each of its six numbers but the last: the form is tried in this order.
const FORMS: [(Option<usize>, [&[u8]; 5]); 7] = [
    (None, [b":", b":", b":", b":", b":"]),
    (None, [b"-", b"-", b"-", b"-", b"-"]),
    (Some(2), [b"", b"", b":", b"", b""]),
    (Some(2), [b"", b"", b"-", b"", b""]),
    (Some(2), [b"", b".", b"", b".", b""]),
    (Some(2), [b"", b"-", b"", b"-", b""]),
    (Some(2), [b"", b"", b"", b"", b""]),
];

/// Reads a `macaddr` in one of PostgreSQL's seven forms, `08:00:2b:01:02:03` and `08002b:010203` among them.
///
/// # Errors
/// `22P02` where it is none, `22003` where a number is too large.
pub(crate) fn parse_macaddr(text: &str) -> Result<[u8; 6], SqlError> {
    let numbers = FORMS.iter().find_map(|(digits, separators)| numbers(text.as_bytes(), *digits, separators));
    let numbers = numbers.ok_or_else(|| invalid_syntax("macaddr", text))?;
    let mut bytes = [0; 6];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte = u8::try_from(number).map_err(|_| {
            let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
        })?;
    }
    Ok(bytes)
}

/// Six numbers with separators between; blanks may stand in front of each of them and behind the last.
fn numbers(text: &[u8], digits: Option<usize>, separators: &[&[u8]; 5]) -> Option<[i32; 6]> {
    let mut rest = text;
    let mut numbers = [0; 6];
    for (place, number) in numbers.iter_mut().enumerate() {
        (*number, rest) = hexadecimal(rest, digits)?;
        rest = rest.strip_prefix(separators.get(place).copied().unwrap_or_default())?;
    }
    without_blanks(rest).is_empty().then_some(numbers)
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    &text[blanks..]
}

/// A number as C's `scanf` reads it: blanks, a sign and `0x` may be in front of its digits. Sign, `0x` and digits count for the width.
fn hexadecimal(text: &[u8], width: Option<usize>) -> Option<(i32, &[u8])> {
    let text = without_blanks(text);
    let window = &text[..width.unwrap_or(text.len()).min(text.len())];
    let unsigned = window.strip_prefix(b"-").or_else(|| window.strip_prefix(b"+")).unwrap_or(window);
    let unmarked = unsigned.strip_prefix(b"0x").or_else(|| unsigned.strip_prefix(b"0X"));
    let digits = unmarked.unwrap_or(unsigned);
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if count == 0 && unmarked.is_none() {
        return None;
    }
    let mut values = digits[..count].iter().map(|digit| char::from(*digit).to_digit(16).unwrap_or(0));
    let number = values.try_fold(0u64, |sum, digit| sum.checked_mul(16)?.checked_add(u64::from(digit)));
    // C keeps the lowest 32 bits, and has all ones for what is too large.
    let number = match number {
        Some(number) if window.starts_with(b"-") => number.wrapping_neg(),
        Some(number) => number,
        None => u64::MAX,
    };
    Some((number as u32 as i32, &text[window.len() - (digits.len() - count)..]))
}

/// Writes a `macaddr`.
pub(crate) fn format_macaddr([a, b, c, d, e, f]: &[u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// The encoded value.
pub(crate) fn read_macaddr<R: io::Read>(reader: &mut R) -> io::Result<[u8; 6]> {
    check_known(MACADDR_TAG, ExecutionVersion::V10)?;
    <[u8; 6]>::deserialize_reader(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PostgreSQL 15 answers.
    #[test]
    fn seven_forms_are_one_address() {
        for text in [
            "08:00:2b:01:02:03",
            "08-00-2b-01-02-03",
            "08002b:010203",
            "08002B-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002b010203",
            "  8:0:2b:1:2:3  ",
            "0x8:+0: 2b:1:2:100000003",
        ] {
            assert_eq!(parse_macaddr(text), Ok([8, 0, 0x2b, 1, 2, 3]), "{text}");
        }
        assert_eq!(format_macaddr(&[8, 0, 0x2b, 1, 2, 3]), "08:00:2b:01:02:03");
    }

    #[test]
    fn what_is_none_is_an_error() {
        for text in
            ["", "08:00:2b:01:02", "08:00:2b:01:02:03:04", "08:00:2b:01:02:0g", "08:00-2b:01:02:03", "é"]
        {
            let error = parse_macaddr(text).expect_err(text);
            assert_eq!(error.message, format!("invalid input syntax for type macaddr: \"{text}\""));
            assert_eq!(error.state, SqlState::INVALID_TEXT_REPRESENTATION);
        }
        for text in ["100:00:2b:01:02:03", "08:00:-1:01:02:03", "ffffffffffffffffffff:0:0:0:0:0"] {
            let error = parse_macaddr(text).expect_err(text);
            assert_eq!(error.message, format!("invalid octet value in \"macaddr\" value: \"{text}\""));
            assert_eq!(error.state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        }
    }
}
