//! Scalar functions.

mod array;
mod bytes;
mod length;
mod number;
mod number_format;
mod number_parse;
mod of_text;
mod regular;
mod regular_syntax;
mod resolve;
mod signature;
mod template;
mod text;
mod time;
mod to_char;

use crate::functions::length::check_length;
use crate::{broken, quote, work};
pub use array::ArrayFunction;
pub use bytes::BytesFunction;
pub use number::NumberFunction;
pub use regular::RegularFunction;
pub use resolve::{refused, resolve};
pub use signature::Signature;
pub use time::TimeFunction;
use types::{Numeric, SqlError, SqlState, Value, absolute, format_value};

/// A function that is NULL where an argument is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `abs(number)`
    Abs,
    /// `ceil(number)`
    Ceil,
    /// `floor(number)`
    Floor,
    /// `round(number [, digits])`
    Round,
    /// `trunc(number [, digits])`
    Trunc,
    /// `sign(number)`
    Sign,
    /// `length(text)`, in characters
    Length,
    /// `octet_length(text)`
    OctetLength,
    /// `lower(text)`, ASCII letters only, as in the C collation
    Lower,
    /// `upper(text)`
    Upper,
    /// `substr(text, from [, count])`
    Substring,
    /// `btrim(text [, characters])`
    TrimBoth,
    /// `ltrim(text [, characters])`
    TrimLeft,
    /// `rtrim(text [, characters])`
    TrimRight,
    /// `replace(text, from, to)`
    Replace,
    /// `strpos(text, part)`, from 1; 0 where it is not in it
    Position,
    /// `left(text, count)`
    Left,
    /// `right(text, count)`
    Right,
    /// `repeat(text, count)`
    Repeat,
    /// `reverse(text)`
    Reverse,
    /// `quote_ident(text)`
    QuoteIdent,
    /// `quote_literal(text)`
    QuoteLiteral,
    /// `initcap(text)`, ASCII letters only
    InitialCapitals,
    /// `lpad(text, length [, fill])`
    PadLeft,
    /// `rpad(text, length [, fill])`
    PadRight,
    /// `split_part(text, delimiter, field)`
    SplitPart,
    /// `translate(text, from, to)`
    Translate,
    /// `ascii(text)`
    Ascii,
    /// `chr(code point)`
    Character,
    /// `starts_with(text, prefix)`
    StartsWith,
    /// `to_hex(number)`
    ToHex,
    /// `bit_length(text)`
    BitLength,
    /// `gcd(number, number)`
    GreatestDivisor,
    /// `lcm(number, number)`
    LeastMultiple,
    /// `sqrt(number)`, which IEEE 754 rounds the same everywhere
    SquareRoot,
    /// `concat(values)`, NULL as the empty text
    Concatenate,
    /// `concat_ws(separator, values)`, without those that are NULL
    Join,
    /// Of dates, times and intervals
    Time(TimeFunction),
    /// Of `bytea`
    Bytes(BytesFunction),
    /// Of arrays
    Array(ArrayFunction),
    /// Of numbers
    Number(NumberFunction),
    /// Of regular expressions
    Regular(RegularFunction),
    /// `concat(VARIADIC values)`
    ConcatenateArray,
    /// `concat_ws(separator, VARIADIC values)`
    JoinArray,
    /// `format(format, VARIADIC values)`
    FormatArray,
    /// `overlay(text PLACING replacement FROM start [FOR count])`
    Overlay,
}

impl Function {
    /// The function's value for arguments of the types that it was resolved for.
    ///
    /// # Errors
    /// What the function raises; `57014` where it takes more work than there is left.
    pub fn call(self, values: &[Value]) -> Result<Value, SqlError> {
        work::spend(self.units(values))?;
        let grouped = match self {
            Function::Time(function) => function.of(values),
            Function::Bytes(function) => function.of(values),
            Function::Array(function) => function.of(values),
            Function::Number(function) => function.of(values),
            Function::Regular(function) => function.of(values),
            _ => None,
        };
        if let Some(value) = grouped {
            return value;
        }
        if let Some(value) = self.of_values(values)? {
            return Ok(value);
        }
        match values {
            [Value::Text(text)] => self.of_text(text),
            [Value::Text(text), Value::Integer(number)] => self.of_text_and_number(text, *number),
            [Value::Text(text), Value::Integer(from), Value::Integer(count)] => {
                substring(text, *from, Some(*count))
            }
            [Value::Text(text), Value::Text(other)] => self.of_texts(text, other),
            [Value::Text(text), Value::Text(from), Value::Text(to)] => replace(text, from, to),
            [Value::Numeric(number)] => self.of_numeric(number, 0),
            [Value::Numeric(number), Value::Integer(digits)] => self.of_numeric(number, *digits),
            [Value::Double(number)] => Ok(Value::Double(self.of_double(*number)?)),
            [number @ (Value::Integer(_) | Value::BigInt(_) | Value::SmallInt(_) | Value::Real(_))]
                if self == Function::Abs =>
            {
                absolute(number)
            }
            _ => Err(self.misplaced()),
        }
    }

    /// The work that it does for these values, beside what the result costs. Regular expressions count for themselves.
    fn units(self, values: &[Value]) -> u64 {
        let once = || values.iter().map(work::of_argument).sum();
        match (self, values) {
            (Function::Array(function), values) => function.units(values),
            (Function::Regular(_), _) => 0,
            (
                Function::Number(
                    NumberFunction::SquareRoot
                    | NumberFunction::Exponential
                    | NumberFunction::NaturalLogarithm
                    | NumberFunction::DecimalLogarithm
                    | NumberFunction::Logarithm
                    | NumberFunction::Power,
                ),
                values,
            ) => work::of_series(values).saturating_add(once()),
            (Function::Number(NumberFunction::GreatestDivisor | NumberFunction::LeastMultiple), [a, b]) => {
                // As many divisions as the shorter number has digits, each of which takes off some of the longer one.
                const DIVISIONS: u64 = 16;
                work::of_argument(a).saturating_add(work::of_argument(b)).saturating_mul(DIVISIONS)
            }
            (Function::Number(NumberFunction::ToNumber), [Value::Text(text), ..]) => {
                work::of_written_number(text.len())
            }
            // Every character is looked for among the others.
            (Function::Translate, [Value::Text(text), Value::Text(among), ..])
            | (
                Function::TrimBoth | Function::TrimLeft | Function::TrimRight,
                [Value::Text(text), Value::Text(among)],
            ) => (text.len() as u64).saturating_mul(1 + among.len() as u64),
            _ => once(),
        }
    }

    /// What EXPLAIN calls it.
    pub fn name(self) -> String {
        let shown = match self {
            Function::Time(function) => format!("{function:?}"),
            Function::Bytes(function) => format!("{function:?}"),
            Function::Array(function) => format!("{function:?}"),
            other => format!("{other:?}"),
        };
        shown.split('(').next().unwrap_or_default().to_lowercase()
    }

    /// True where the value is NULL if an argument is.
    pub fn is_strict(self) -> bool {
        match self {
            Function::Array(function) => function.is_strict(),
            Function::Concatenate | Function::Join | Function::FormatArray => false,
            _ => true,
        }
    }

    /// False where it gives no error, whatever its arguments are.
    pub fn can_fail(self) -> bool {
        !matches!(
            self,
            Function::Length
                | Function::Lower
                | Function::Upper
                | Function::Position
                | Function::Reverse
                | Function::InitialCapitals
                | Function::Translate
                | Function::Ascii
                | Function::StartsWith
                | Function::ToHex
        )
    }

    /// Those that are not grouped by the types of their arguments.
    fn of_values(self, values: &[Value]) -> Result<Option<Value>, SqlError> {
        Ok(Some(match (self, values) {
            (Function::Concatenate, values) => join("", values)?,
            (Function::Join, [Value::Text(separator), values @ ..]) => join(separator, values)?,
            (Function::Join, _) => Value::Null,
            (Function::ConcatenateArray, [Value::Array(values)]) => join("", values.values())?,
            (Function::JoinArray, [Value::Text(separator), Value::Array(values)]) => {
                join(separator, values.values())?
            }
            (Function::FormatArray, [Value::Text(format), values]) => {
                let values = match values {
                    Value::Array(values) => values.values(),
                    _ => &[],
                };
                let texts: Vec<Option<String>> = values.iter().map(format_value).collect();
                Value::text(quote::format_text(format, &texts)?)
            }
            (Function::FormatArray, _) => Value::Null,
            (Function::Overlay, [Value::Text(text), Value::Text(with), Value::Integer(start)]) => {
                overlay(text, with, *start, with.chars().count() as i32)?
            }
            (
                Function::Overlay,
                [Value::Text(text), Value::Text(with), Value::Integer(start), Value::Integer(count)],
            ) => overlay(text, with, *start, *count)?,
            (Function::Reverse, [Value::Text(text)]) => Value::text(text.chars().rev().collect::<String>()),
            (Function::QuoteIdent, [Value::Text(text)]) => Value::text(quote::quote_ident(text)),
            (Function::QuoteLiteral, [Value::Text(text)]) => Value::text(quote::quote_literal(text)),
            (Function::InitialCapitals, [Value::Text(text)]) => Value::text(text::initial_capitals(text)),
            (Function::PadLeft, [Value::Text(text), Value::Integer(length), Value::Text(fill)]) => {
                text::pad(text, *length, fill, true)?
            }
            (Function::PadRight, [Value::Text(text), Value::Integer(length), Value::Text(fill)]) => {
                text::pad(text, *length, fill, false)?
            }
            (Function::SplitPart, [Value::Text(text), Value::Text(delimiter), Value::Integer(field)]) => {
                text::split_part(text, delimiter, *field)?
            }
            (Function::Translate, [Value::Text(text), Value::Text(from), Value::Text(to)]) => {
                Value::text(text::translate(text, from, to))
            }
            (Function::Ascii, [Value::Text(text)]) => {
                Value::Integer(text.chars().next().map_or(0, |first| first as i32))
            }
            (Function::Character, [Value::Integer(code)]) => text::character(*code)?,
            (Function::StartsWith, [Value::Text(text), Value::Text(prefix)]) => {
                Value::Boolean(text.starts_with(&**prefix))
            }
            (Function::ToHex, [Value::Integer(number)]) => Value::text(format!("{number:x}")),
            (Function::ToHex, [Value::BigInt(number)]) => Value::text(format!("{number:x}")),
            (Function::BitLength, [Value::Text(text)]) => Value::Integer(text.len() as i32 * 8),
            (Function::GreatestDivisor, [Value::Integer(a), Value::Integer(b)]) => {
                let divisor = i32::try_from(greatest_divisor(i64::from(*a), i64::from(*b)));
                Value::Integer(divisor.map_err(|_| out_of_range("integer"))?)
            }
            (Function::GreatestDivisor, [Value::BigInt(a), Value::BigInt(b)]) => {
                let divisor = i64::try_from(greatest_divisor(*a, *b));
                Value::BigInt(divisor.map_err(|_| out_of_range("bigint"))?)
            }
            (Function::LeastMultiple, [Value::Integer(a), Value::Integer(b)]) => {
                let multiple = i32::try_from(least_multiple(i64::from(*a), i64::from(*b)));
                Value::Integer(multiple.map_err(|_| out_of_range("integer"))?)
            }
            (Function::LeastMultiple, [Value::BigInt(a), Value::BigInt(b)]) => {
                let multiple = i64::try_from(least_multiple(*a, *b));
                Value::BigInt(multiple.map_err(|_| out_of_range("bigint"))?)
            }
            (Function::SquareRoot, [Value::Double(number)]) if *number < 0.0 => {
                let message = "cannot take square root of a negative number";
                return Err(SqlError::new(SqlState(*b"2201F"), message));
            }
            (Function::SquareRoot, [Value::Double(number)]) => Value::Double(number.sqrt()),
            _ => return Ok(None),
        }))
    }

    #[cold]
    fn misplaced(self) -> SqlError {
        broken(&format!("{self:?} was bound for other types"))
    }

    fn of_numeric(self, number: &Numeric, digits: i32) -> Result<Value, SqlError> {
        Ok(Value::Numeric(match self {
            Function::Abs => number.abs(),
            Function::Ceil => number.ceil()?,
            Function::Floor => number.floor()?,
            Function::Round => number.round(digits)?,
            Function::Trunc => number.trunc(digits)?,
            Function::Sign => number.sign(),
            _ => return Err(self.misplaced()),
        }))
    }

    fn of_double(self, number: f64) -> Result<f64, SqlError> {
        Ok(match self {
            Function::Abs => number.abs(),
            Function::Ceil => number.ceil(),
            Function::Floor => number.floor(),
            Function::Round => number.round_ties_even(),
            Function::Trunc => number.trunc(),
            Function::Sign if number == 0.0 || number.is_nan() => {
                if number.is_nan() {
                    f64::NAN
                } else {
                    0.0
                }
            }
            Function::Sign => number.signum(),
            _ => return Err(self.misplaced()),
        })
    }

    fn of_text(self, text: &str) -> Result<Value, SqlError> {
        const SPACE: &[char] = &[' '];
        Ok(match self {
            Function::Length => Value::Integer(text.chars().count() as i32),
            Function::OctetLength => Value::Integer(text.len() as i32),
            Function::Lower => Value::text(text.to_ascii_lowercase()),
            Function::Upper => Value::text(text.to_ascii_uppercase()),
            Function::TrimBoth => Value::text(text.trim_matches(SPACE)),
            Function::TrimLeft => Value::text(text.trim_start_matches(SPACE)),
            Function::TrimRight => Value::text(text.trim_end_matches(SPACE)),
            _ => return Err(self.misplaced()),
        })
    }

    fn of_texts(self, text: &str, other: &str) -> Result<Value, SqlError> {
        let among = |character: char| other.contains(character);
        Ok(match self {
            Function::TrimBoth => Value::text(text.trim_matches(among)),
            Function::TrimLeft => Value::text(text.trim_start_matches(among)),
            Function::TrimRight => Value::text(text.trim_end_matches(among)),
            Function::Position => {
                let found = text.find(other).map_or(0, |at| text[..at].chars().count() + 1);
                Value::Integer(found as i32)
            }
            _ => return Err(self.misplaced()),
        })
    }

    fn of_text_and_number(self, text: &str, number: i32) -> Result<Value, SqlError> {
        let count = |number: i32| {
            if number >= 0 {
                number as usize
            } else {
                text.chars().count().saturating_sub(number.unsigned_abs() as usize)
            }
        };
        let byte = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
        match self {
            Function::Substring => substring(text, number, None),
            Function::Left => Ok(Value::text(&text[..byte(count(number))])),
            Function::Right => {
                let length = text.chars().count();
                Ok(Value::text(&text[byte(length.saturating_sub(count(number)))..]))
            }
            Function::Repeat => {
                let times = usize::try_from(number).unwrap_or(0);
                check_length(text.len().saturating_mul(times))?;
                Ok(Value::text(text.repeat(times)))
            }
            _ => Err(self.misplaced()),
        }
    }
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

fn greatest_divisor(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_multiple(a: i64, b: i64) -> u128 {
    match greatest_divisor(a, b) {
        0 => 0,
        divisor => u128::from(a.unsigned_abs() / divisor) * u128::from(b.unsigned_abs()),
    }
}

fn out_of_range(data_type: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{data_type} out of range"))
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
