//! Functions and operators of `bit(n)` and `bit varying(n)`.

use crate::functions::entry::Argument::{self, From, To};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Computed, Function, code, free};
use DataType::{BigInt, Integer, SmallInt, Unknown};
use std::sync::Arc;
use types::{BitString, DataType, ExecutionVersion, SqlError, SqlState, Value};

const BIT: DataType = DataType::Bit(None);
const VARBIT: DataType = DataType::VarBit(None);
const V10: ExecutionVersion = ExecutionVersion::V10;

/// As PostgreSQL casts them for functions of `bit`.
const BITS: Argument = From(&[BIT, VARBIT], BIT);
/// Bits, or a literal beside others.
const MORE_BITS: Argument = From(&[BIT, VARBIT, Unknown], BIT);
const PLACES: Argument = From(&[SmallInt, Integer, Unknown], Integer);

fn holds_bits(types: &[DataType]) -> bool {
    types.iter().any(|data_type| matches!(data_type, DataType::Bit(_) | DataType::VarBit(_)))
}

/// Of two strings of bits of one length.
const fn bitwise(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[MORE_BITS, MORE_BITS], Is(BIT), code).when(holds_bits).since(V10)
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        &["||"],
        &[From(&[BIT, VARBIT, Unknown], VARBIT), From(&[BIT, VARBIT, Unknown], VARBIT)],
        Is(VARBIT),
        code!(
            [Value::VarBit(a), Value::VarBit(b)] => {
                a.followed_by(b).map(|bits| Value::VarBit(Arc::new(bits)))
            }
        ),
    )
    .when(holds_bits)
    .since(V10),
    bitwise(&["&"], code!([Value::Bit(a), Value::Bit(b)] => bits_and(a, b))),
    bitwise(&["|"], code!([Value::Bit(a), Value::Bit(b)] => bits_or(a, b))),
    bitwise(&["#"], code!([Value::Bit(a), Value::Bit(b)] => bits_xor(a, b))),
    Function::new(
        &["~"],
        &[BITS],
        Is(BIT),
        code!(
            [Value::Bit(bits)] => of_bytes(bits.length(), bits.bytes().iter().map(|byte| !byte).collect()),
        ),
    )
    .since(V10),
    // A negative number moves them to the other side.
    Function::new(
        &["<<"],
        &[BITS, PLACES],
        Is(BIT),
        code!(
            [Value::Bit(bits), Value::Integer(places)] => moved_left(bits, i64::from(*places)),
        ),
    )
    .since(V10),
    Function::new(
        &[">>"],
        &[BITS, PLACES],
        Is(BIT),
        code!(
            [Value::Bit(bits), Value::Integer(places)] => moved_left(bits, -i64::from(*places)),
        ),
    )
    .since(V10),
    Function::new(
        &["length", "bit_length"],
        &[BITS],
        Is(Integer),
        code!(
            [Value::Bit(bits)] => Ok(Value::Integer(bits.length() as i32)),
        ),
    )
    .costs(free)
    .never_fails()
    .since(V10),
    Function::new(
        &["octet_length"],
        &[BITS],
        Is(Integer),
        code!(
            [Value::Bit(bits)] => Ok(Value::Integer(bits.bytes().len() as i32)),
        ),
    )
    .costs(free)
    .never_fails()
    .since(V10),
    Function::new(
        &["bit_count"],
        &[BITS],
        Is(BigInt),
        code!(
            [Value::Bit(bits)] => {
                Ok(Value::BigInt(bits.bytes().iter().map(|byte| i64::from(byte.count_ones())).sum()))
            }
        ),
    )
    .never_fails()
    .since(V10),
    // Bits, place from 0.
    Function::new(
        &["get_bit"],
        &[BITS, To(Integer)],
        Is(Integer),
        code!(
            [Value::Bit(bits), Value::Integer(at)] => {
                let bit = place(bits, *at).map(|at| bits.get(at) == Some(true));
                bit.map(|bit| Value::Integer(i32::from(bit)))
            }
        ),
    )
    .costs(free)
    .since(V10),
    Function::new(
        &["set_bit"],
        &[BITS, To(Integer), To(Integer)],
        Is(BIT),
        code!(
            [Value::Bit(bits), Value::Integer(at), Value::Integer(bit)] => {
                let at = place(bits, *at)?;
                if !matches!(bit, 0 | 1) {
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"));
                }
                Ok(of_bits(BitString::clone(bits).with(at, *bit == 1)))
            }
        ),
    )
    .since(V10),
    // Bits, place from 1, length.
    Function::new(
        &["substring"],
        &[BITS, To(Integer), To(Integer)],
        Is(BIT),
        code!(
            [Value::Bit(bits), Value::Integer(from)] => Ok(of_bits(part(bits, *from, None)?)),
            [Value::Bit(bits), Value::Integer(from), Value::Integer(count)] => {
                Ok(of_bits(part(bits, *from, Some(*count))?))
            }
        ),
    )
    .optional(1)
    .since(V10),
    // Bits, others, place from 1, length.
    Function::new(
        &["overlay"],
        &[BITS, MORE_BITS, To(Integer), To(Integer)],
        Is(BIT),
        code!(
            [Value::Bit(bits), Value::Bit(others), Value::Integer(from)] => {
                replaced(bits, others, *from, others.length() as i32)
            },
            [Value::Bit(bits), Value::Bit(others), Value::Integer(from), Value::Integer(count)] => {
                replaced(bits, others, *from, *count)
            }
        ),
    )
    .optional(1)
    .since(V10),
    // Bits, part: `position(part IN bits)`.
    Function::new(
        &["strpos"],
        &[BITS, MORE_BITS],
        Is(Integer),
        code!(
            [Value::Bit(bits), Value::Bit(part)] => Ok(Value::Integer(position(bits, part))),
        ),
    )
    .costs(every_bit)
    .never_fails()
    .shown_as("position")
    .since(V10),
];

/// Units of looking at every bit by itself.
fn every_bit(values: &[Value]) -> u64 {
    let length = |value: &Value| match value {
        Value::Bit(bits) | Value::VarBit(bits) => u64::from(bits.length()),
        _ => 0,
    };
    values.iter().map(length).sum()
}

fn of_bits(bits: BitString) -> Value {
    Value::Bit(Arc::new(bits))
}

fn of_bytes(length: u32, bytes: Vec<u8>) -> Computed {
    BitString::new(u64::from(length), bytes).map(of_bits)
}

/// Ones where both have them.
///
/// # Errors
/// `22026` where one is longer.
pub fn bits_and(a: &BitString, b: &BitString) -> Result<Value, SqlError> {
    joined("AND", a, b, |a, b| a & b)
}

/// Ones where one of both has them.
///
/// # Errors
/// As [`bits_and`].
pub fn bits_or(a: &BitString, b: &BitString) -> Result<Value, SqlError> {
    joined("OR", a, b, |a, b| a | b)
}

/// Ones where one alone has them.
///
/// # Errors
/// As [`bits_and`].
pub fn bits_xor(a: &BitString, b: &BitString) -> Result<Value, SqlError> {
    joined("XOR", a, b, |a, b| a ^ b)
}

fn joined(operator: &str, a: &BitString, b: &BitString, join: fn(u8, u8) -> u8) -> Computed {
    if a.length() != b.length() {
        let message = format!("cannot {operator} bit strings of different sizes");
        return Err(SqlError::new(SqlState(*b"22026"), message));
    }
    of_bytes(a.length(), a.bytes().iter().zip(b.bytes()).map(|(a, b)| join(*a, *b)).collect())
}

/// As many bits, of which some have gone on one side and zeros have come on the other.
fn moved_left(bits: &BitString, places: i64) -> Computed {
    let length = bits.length();
    let gone = u32::try_from(places.unsigned_abs()).unwrap_or(u32::MAX).min(length);
    let moved = match places < 0 {
        true => BitString::new(u64::from(gone), Vec::new())?.followed_by(&bits.slice(0, length - gone))?,
        false => bits.slice(gone, length).resized(length)?,
    };
    Ok(of_bits(moved))
}

fn place(bits: &BitString, at: i32) -> Result<u32, SqlError> {
    u32::try_from(at).ok().filter(|at| *at < bits.length()).ok_or_else(|| {
        let last = i64::from(bits.length()) - 1;
        SqlError::new(SqlState(*b"2202E"), format!("bit index {at} out of valid range (0..{last})"))
    })
}

#[cold]
fn negative_length() -> SqlError {
    SqlError::new(SqlState(*b"22011"), "negative substring length not allowed")
}

/// So many bits from a place on, counted from 1; without a count all of them. Places outside count and have no bits.
fn part(bits: &BitString, from: i32, count: Option<i32>) -> Result<BitString, SqlError> {
    let end = i64::from(bits.length()) + 1;
    let to = match count {
        None => end,
        Some(..0) => return Err(negative_length()),
        Some(count) => (i64::from(from) + i64::from(count)).min(end),
    };
    let from = i64::from(from.max(1));
    match from < to {
        true => Ok(bits.slice(from as u32 - 1, to as u32 - 1)),
        false => Ok(bits.slice(0, 0)),
    }
}

/// Other bits in the place of so many from a place on.
fn replaced(bits: &BitString, others: &BitString, from: i32, count: i32) -> Computed {
    if from <= 0 {
        return Err(negative_length());
    }
    let behind = from
        .checked_add(count)
        .ok_or_else(|| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?;
    let start = part(bits, 1, Some(from - 1))?;
    start.followed_by(others)?.followed_by(&part(bits, behind, None)?).map(of_bits)
}

/// Where a part begins, counted from 1; 0 where it is not there. Goes over both once: for each beginning of the part it knows how much
/// of its end is another beginning.
fn position(bits: &BitString, part: &BitString) -> i32 {
    if bits.length() == 0 || part.length() > bits.length() {
        return 0;
    }
    let bit = |bits: &BitString, at: usize| bits.get(at as u32) == Some(true);
    let length = part.length() as usize;
    let mut shorter = vec![0usize; length];
    let longest = |known: &[usize], mut found: usize, next: bool| {
        while found > 0 && (found == length || bit(part, found) != next) {
            found = known[found - 1];
        }
        if length > 0 && bit(part, found) == next { found + 1 } else { found }
    };
    for at in 1..length {
        shorter[at] = longest(&shorter, shorter[at - 1], bit(part, at));
    }
    let mut found = 0;
    for at in 0..bits.length() as usize {
        if found == length {
            break;
        }
        found = longest(&shorter, found, bit(bits, at));
        if found == length {
            return (at + 1 - length) as i32 + 1;
        }
    }
    // Nothing is at the beginning.
    i32::from(length == 0)
}
