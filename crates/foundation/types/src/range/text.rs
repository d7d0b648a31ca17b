//! Ranges as texts: `[1,5)`, `empty`, `["2020-01-01 00:00:00",)`; multiranges as `{[1,3),[5,9)}`.

use super::{Bound, Bounds, Multirange, Range, RangeType};
use crate::quoted_field::{is_space, push_field, take_field};
use crate::{SqlError, SqlState, Value, format_value, parse_value};

const EMPTY: &str = "empty";

/// Reads a range as PostgreSQL does.
///
/// # Errors
/// `22P02` where it is malformed, and what its bounds raise.
pub(crate) fn parse_range(text: &str, range_type: RangeType) -> Result<Range, SqlError> {
    let malformed = |detail: &str| malformed("range", text, detail);
    let begin = text.trim_start_matches(is_space);
    if let Some(rest) = without_empty(begin) {
        return match rest.trim_start_matches(is_space).is_empty() {
            true => Ok(Range::empty(range_type)),
            false => Err(malformed("Junk after \"empty\" key word.")),
        };
    }
    let lower_included = begin.starts_with('[');
    let Some(rest) = begin.strip_prefix(['[', '(']) else {
        return Err(malformed("Missing left parenthesis or bracket."));
    };
    let end = || malformed("Unexpected end of input.");
    let (lower, rest) = take_bound(rest).ok_or_else(end)?;
    let Some(rest) = rest.strip_prefix(',') else {
        return Err(malformed("Missing comma after lower bound."));
    };
    let (upper, rest) = take_bound(rest).ok_or_else(end)?;
    let upper_included = rest.starts_with(']');
    let Some(rest) = rest.strip_prefix([']', ')']) else {
        return Err(malformed("Too many commas."));
    };
    if !rest.trim_start_matches(is_space).is_empty() {
        return Err(malformed("Junk after right parenthesis or bracket."));
    }
    let bound = |written: Option<String>, is_included| {
        let value = written.map(|written| parse_value(&written, range_type.element())).transpose()?;
        Ok::<_, SqlError>(value.map(|value| Bound { value, is_included }))
    };
    Range::new(range_type, bound(lower, lower_included)?, bound(upper, upper_included)?)
}

/// What follows the word for an empty range, in upper or lower case.
fn without_empty(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(EMPTY.len())?;
    word.eq_ignore_ascii_case(EMPTY).then_some(rest)
}

/// A bound that may be missing, and what follows it.
fn take_bound(text: &str) -> Option<(Option<String>, &str)> {
    const ENDS: [char; 3] = [',', ')', ']'];
    match text.starts_with(ENDS) {
        true => Some((None, text)),
        false => take_field(text, &ENDS).map(|(bound, rest)| (Some(bound), rest)),
    }
}

/// Writes a range as PostgreSQL does.
pub(crate) fn format_range(range: &Range) -> String {
    let mut text = String::new();
    match range.bounds() {
        Some(bounds) => push_bounds(&mut text, bounds),
        None => text.push_str(EMPTY),
    }
    text
}

fn push_bounds(text: &mut String, bounds: &Bounds) {
    let is_included = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| bound.is_included);
    let push = |text: &mut String, bound: &Option<Bound>| {
        if let Some(written) = bound.as_ref().and_then(|bound| format_value(&bound.value)) {
            push_field(text, &written, &['(', ')', '[', ']', ',']);
        }
    };
    text.push(if is_included(&bounds.lower) { '[' } else { '(' });
    push(text, &bounds.lower);
    text.push(',');
    push(text, &bounds.upper);
    text.push(if is_included(&bounds.upper) { ']' } else { ')' });
}

/// Reads a multirange as PostgreSQL does.
///
/// # Errors
/// `22P02` where it or a range is malformed, and what their bounds raise.
pub(crate) fn parse_multirange(text: &str, range_type: RangeType) -> Result<Multirange, SqlError> {
    let malformed = |detail: &str| malformed("multirange", text, detail);
    let Some(mut rest) = text.trim_start_matches(is_space).strip_prefix('{') else {
        return Err(malformed("Missing left brace."));
    };
    let mut ranges = Vec::new();
    let mut is_first = true;
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return Err(malformed("Unexpected end of input."));
        }
        if is_first && let Some(behind) = rest.strip_prefix('}') {
            rest = behind;
            break;
        }
        if rest.starts_with(['[', '(']) {
            let end = range_end(rest).ok_or_else(|| malformed("Unexpected end of input."))?;
            let (range, behind) = rest.split_at(end);
            ranges.push(parse_range(range, range_type)?);
            rest = behind;
        } else if let Some(behind) = without_empty(rest) {
            rest = behind;
        } else {
            return Err(malformed("Expected range start."));
        }
        is_first = false;
        rest = rest.trim_start_matches(is_space);
        let Some(separator) = rest.chars().next() else {
            return Err(malformed("Unexpected end of input."));
        };
        rest = &rest[separator.len_utf8()..];
        match separator {
            ',' => {}
            '}' => break,
            _ => return Err(malformed("Expected comma or end of multirange.")),
        }
    }
    match rest.trim_start_matches(is_space).is_empty() {
        true => Multirange::new(range_type, &ranges),
        false => Err(malformed("Junk after closing right brace.")),
    }
}

/// Bytes of the range that a text begins with: up to a bracket or parenthesis that is neither in quotes nor behind a backslash. As in
/// PostgreSQL, white space behind a backslash does not count.
fn range_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    let mut characters = text.char_indices().filter(|(_, character)| !is_space(*character));
    while let Some((at, character)) = characters.next() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // Two quotes in quotes are one, and both stand side by side.
            '"' if quoted && text[at + 1..].starts_with('"') => {
                characters.next();
            }
            '"' => quoted = !quoted,
            ']' | ')' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Writes a multirange as PostgreSQL does.
pub(crate) fn format_multirange(multirange: &Multirange) -> String {
    let mut text = String::from("{");
    for (position, bounds) in multirange.ranges().iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        push_bounds(&mut text, bounds);
    }
    text.push('}');
    text
}

#[cold]
fn malformed(what: &str, text: &str, detail: &str) -> SqlError {
    let message = format!("malformed {what} literal: \"{text}\"");
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).detail(detail)
}

/// Bytes of a range as a text and of a comma behind it, or a few more: how dates and timestamps are written is the session's.
pub(crate) fn text_bytes(bounds: &Bounds) -> usize {
    const AROUND: usize = 4;
    let bytes = |bound: &Bound| match &bound.value {
        Value::Integer(number) => decimal_bytes(i64::from(*number)),
        Value::BigInt(number) => decimal_bytes(*number),
        // A byte holds less than three digits.
        Value::Numeric(number) => {
            number.stored_bytes().saturating_mul(3).saturating_add(usize::from(number.scale()) + 4)
        }
        Value::Date(_) => 16,
        _ => 48,
    };
    let ends = [&bounds.lower, &bounds.upper].into_iter().flatten();
    ends.fold(AROUND, |sum, end| sum.saturating_add(bytes(end)))
}

fn decimal_bytes(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(number < 0)
}

/// How many quotes there may be in that text.
pub(crate) fn quotes(bounds: &Bounds) -> usize {
    let is_quoted =
        |bound: &&Bound| matches!(bound.value, Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_));
    2 * [&bounds.lower, &bounds.upper].into_iter().flatten().filter(is_quoted).count()
}
