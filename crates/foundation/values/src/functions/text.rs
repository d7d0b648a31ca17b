//! Functions of texts.

use crate::functions::entry::Argument::{OneOf, To};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Computed, Function, code, once, out_of_range};
use crate::length::check_length;
use crate::quote;
use DataType::{BigInt, Boolean, Integer};
use std::slice::from_ref;
use types::{DataType, SqlError, SqlState, Value, format_value};

const TEXT: DataType = DataType::Text(None);

/// What is trimmed where nothing is said.
const SPACE: &[char] = &[' '];

pub(super) static FUNCTIONS: &[Function] = &[
    // In characters.
    Function::new(&["length", "char_length", "character_length"], &[To(TEXT)], Is(Integer), code!(
        [Value::Text(text)] => Ok(Value::Integer(text.chars().count() as i32)),
    ))
    .never_fails(),
    Function::new(&["octet_length"], &[To(TEXT)], Is(Integer), code!(
        [Value::Text(text)] => Ok(Value::Integer(text.len() as i32)),
    )),
    Function::new(&["bit_length"], &[To(TEXT)], Is(Integer), code!(
        [Value::Text(text)] => Ok(Value::Integer(text.len() as i32 * 8)),
    )),
    // ASCII letters only, as in the C collation.
    Function::new(&["lower"], &[To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(text.to_ascii_lowercase())),
    ))
    .never_fails(),
    Function::new(&["upper"], &[To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(text.to_ascii_uppercase())),
    ))
    .never_fails(),
    Function::new(&["initcap"], &[To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(initial_capitals(text))),
    ))
    .never_fails()
    .shown_as("initialcapitals"),
    Function::new(&["substring", "substr"], &[To(TEXT), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(from)] => substring(text, *from, None),
    ))
    // With two texts it is a regular expression or nothing.
    .when(|types| types[1].family() != TEXT),
    Function::new(&["substring", "substr"], &[To(TEXT), To(Integer), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(from), Value::Integer(count)] => substring(text, *from, Some(*count)),
    )),
    Function::new(&["btrim"], &[To(TEXT), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(text.trim_matches(SPACE))),
        [Value::Text(text), Value::Text(among)] => Ok(Value::text(text.trim_matches(|c| among.contains(c)))),
    ))
    .optional(1)
    .costs(looked_for)
    .shown_as("trimboth"),
    Function::new(&["ltrim"], &[To(TEXT), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(text.trim_start_matches(SPACE))),
        [Value::Text(text), Value::Text(among)] => {
            Ok(Value::text(text.trim_start_matches(|c| among.contains(c))))
        }
    ))
    .optional(1)
    .costs(looked_for)
    .shown_as("trimleft"),
    Function::new(&["rtrim"], &[To(TEXT), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(text.trim_end_matches(SPACE))),
        [Value::Text(text), Value::Text(among)] => {
            Ok(Value::text(text.trim_end_matches(|c| among.contains(c))))
        }
    ))
    .optional(1)
    .costs(looked_for)
    .shown_as("trimright"),
    Function::new(&["replace"], &[To(TEXT), To(TEXT), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text), Value::Text(from), Value::Text(to)] => replace(text, from, to),
    )),
    // From 1; 0 where it is not in it.
    Function::new(&["strpos"], &[To(TEXT), To(TEXT)], Is(Integer), code!(
        [Value::Text(text), Value::Text(part)] => {
            let found = text.find(&**part).map_or(0, |at| text[..at].chars().count() + 1);
            Ok(Value::Integer(found as i32))
        }
    ))
    .never_fails()
    .shown_as("position"),
    Function::new(&["left"], &[To(TEXT), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(count)] => {
            Ok(Value::text(&text[..byte_of(text, counted(text, *count))]))
        }
    )),
    Function::new(&["right"], &[To(TEXT), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(count)] => {
            let skipped = text.chars().count().saturating_sub(counted(text, *count));
            Ok(Value::text(&text[byte_of(text, skipped)..]))
        }
    )),
    Function::new(&["repeat"], &[To(TEXT), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(times)] => repeat(text, *times),
    )),
    Function::new(&["reverse"], &[To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(text.chars().rev().collect::<String>())),
    ))
    .never_fails(),
    Function::new(&["quote_ident"], &[To(TEXT)], Is(TEXT), code!(
        [Value::Text(text)] => Ok(Value::text(quote::quote_ident(text))),
    )),
    Function::new(&["lpad"], &[To(TEXT), To(Integer), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(length), Value::Text(fill)] => pad(text, *length, fill, true),
    ))
    .shown_as("padleft"),
    Function::new(&["rpad"], &[To(TEXT), To(Integer), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text), Value::Integer(length), Value::Text(fill)] => pad(text, *length, fill, false),
    ))
    .shown_as("padright"),
    Function::new(&["split_part"], &[To(TEXT), To(TEXT), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Text(delimiter), Value::Integer(field)] => {
            split_part(text, delimiter, *field)
        }
    )),
    Function::new(&["translate"], &[To(TEXT), To(TEXT), To(TEXT)], Is(TEXT), code!(
        [Value::Text(text), Value::Text(from), Value::Text(to)] => Ok(Value::text(translate(text, from, to))),
    ))
    .never_fails()
    .costs(looked_for),
    Function::new(&["ascii"], &[To(TEXT)], Is(Integer), code!(
        [Value::Text(text)] => Ok(Value::Integer(text.chars().next().map_or(0, |first| first as i32))),
    ))
    .never_fails(),
    Function::new(&["chr"], &[To(Integer)], Is(TEXT), code!(
        [Value::Integer(code)] => character(*code),
    ))
    .shown_as("character"),
    Function::new(&["overlay"], &[To(TEXT), To(TEXT), To(Integer), To(Integer)], Is(TEXT), code!(
        [Value::Text(text), Value::Text(with), Value::Integer(start)] => {
            overlay(text, with, *start, with.chars().count() as i32)
        },
        [Value::Text(text), Value::Text(with), Value::Integer(start), Value::Integer(count)] => {
            overlay(text, with, *start, *count)
        }
    ))
    .optional(1),
    Function::new(&["starts_with"], &[To(TEXT), To(TEXT)], Is(Boolean), code!(
        [Value::Text(text), Value::Text(prefix)] => Ok(Value::Boolean(text.starts_with(&**prefix))),
    ))
    .never_fails(),
    Function::new(&["to_hex"], &[OneOf(&[BigInt])], Is(TEXT), code!(
        [Value::BigInt(number)] => Ok(Value::text(format!("{number:x}"))),
    ))
    .never_fails(),
    Function::new(&["to_hex"], &[To(Integer)], Is(TEXT), code!(
        [Value::Integer(number)] => Ok(Value::text(format!("{number:x}"))),
    ))
    .never_fails(),
];

pub(super) static FORMS: &[&[Function]] = &[
    from_ref(&QUOTE_LITERAL),
    from_ref(&CONCATENATE),
    from_ref(&JOIN),
    from_ref(&CONCATENATE_ARRAY),
    from_ref(&JOIN_ARRAY),
    from_ref(&FORMAT_ARRAY),
];

/// `quote_literal(value)`, once the value is a text
pub static QUOTE_LITERAL: Function = Function::form(
    &["quote_literal"],
    code!(
        [Value::Text(text)] => Ok(Value::text(quote::quote_literal(text))),
    ),
);

/// `concat(values)`, NULL as the empty text
pub static CONCATENATE: Function =
    Function::form(&["concat"], |values| join("", values)).stable().sees_null().shown_as("concatenate");

/// `concat_ws(separator, values)`, without those that are NULL
pub static JOIN: Function = Function::form(&["concat_ws"], |values| match values {
    [Value::Text(separator), values @ ..] => join(separator, values),
    _ => Ok(Value::Null),
})
.stable()
.sees_null()
.shown_as("join");

/// `concat(VARIADIC values)`
pub static CONCATENATE_ARRAY: Function = Function::form(
    &["concat"],
    code!(
        [Value::Array(values)] => join("", values.values()),
    ),
)
.stable()
.shown_as("concatenatearray");

/// `concat_ws(separator, VARIADIC values)`
pub static JOIN_ARRAY: Function = Function::form(
    &["concat_ws"],
    code!(
        [Value::Text(separator), Value::Array(values)] => join(separator, values.values()),
    ),
)
.stable()
.shown_as("joinarray");

/// `format(format, VARIADIC values)`
pub static FORMAT_ARRAY: Function = Function::form(&["format"], |values| match values {
    [Value::Text(format), values] => {
        let values = match values {
            Value::Array(values) => values.values(),
            _ => &[],
        };
        let texts: Vec<Option<String>> = values.iter().map(format_value).collect();
        quote::format_text(format, &texts).map(Value::text)
    }
    _ => Ok(Value::Null),
})
.stable()
.sees_null()
.shown_as("formatarray");

/// Every character is looked for among the others.
fn looked_for(values: &[Value]) -> u64 {
    match values {
        [Value::Text(text), Value::Text(among), ..] => {
            (text.len() as u64).saturating_mul(1 + among.len() as u64)
        }
        _ => once(values),
    }
}

/// So many characters of a text; all but so many where the number is negative.
fn counted(text: &str, number: i32) -> usize {
    if number >= 0 {
        number as usize
    } else {
        text.chars().count().saturating_sub(number.unsigned_abs() as usize)
    }
}

/// Where the character behind so many others begins.
fn byte_of(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

fn repeat(text: &str, times: i32) -> Computed {
    let times = usize::try_from(times).unwrap_or(0);
    check_length(text.len().saturating_mul(times))?;
    Ok(Value::text(text.repeat(times)))
}

/// The values as a client sees them, one after the other, without those that are NULL.
fn join(separator: &str, values: &[Value]) -> Result<Value, SqlError> {
    let mut joined = String::new();
    for (number, text) in values.iter().filter_map(format_value).enumerate() {
        if number > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text);
        check_length(joined.len())?;
    }
    Ok(Value::text(joined))
}

/// Characters from position `from` (1 is the first); what lies before the text counts as well.
fn substring(text: &str, from: i32, count: Option<i32>) -> Result<Value, SqlError> {
    let start = i64::from(from) - 1;
    let end = match count {
        Some(count) if count < 0 => {
            return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
        }
        Some(count) => start + i64::from(count),
        None => i64::MAX,
    };
    let characters = text.chars().skip(start.max(0) as usize);
    Ok(Value::text(characters.take((end - start.max(0)).max(0) as usize).collect::<String>()))
}

/// The text with so many characters from a position on replaced.
fn overlay(text: &str, with: &str, start: i32, count: i32) -> Result<Value, SqlError> {
    if start <= 0 {
        return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
    }
    let rest = start.checked_add(count).ok_or_else(|| out_of_range("integer"))?;
    let head: String = text.chars().take(start as usize - 1).collect();
    let tail: String = text.chars().skip(rest.max(1) as usize - 1).collect();
    check_length(head.len() + with.len() + tail.len())?;
    Ok(Value::text(format!("{head}{with}{tail}")))
}

fn replace(text: &str, from: &str, to: &str) -> Result<Value, SqlError> {
    if from.is_empty() {
        return Ok(Value::text(text));
    }
    let found = text.matches(from).count();
    check_length((text.len() - found * from.len()).saturating_add(found.saturating_mul(to.len())))?;
    Ok(Value::text(text.replace(from, to)))
}

/// The first letter of every word large, the others small; words are letters and digits in a row.
fn initial_capitals(text: &str) -> String {
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
fn pad(text: &str, length: i32, fill: &str, on_the_left: bool) -> Result<Value, SqlError> {
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
fn split_part(text: &str, delimiter: &str, field: i32) -> Result<Value, SqlError> {
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
fn character(code: i32) -> Result<Value, SqlError> {
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
