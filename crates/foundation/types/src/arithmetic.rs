use crate::{DataType, SqlError, SqlState, Value, cast, datetime, real, text};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A binary operator on numbers, dates, times and intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl fmt::Display for ArithmeticOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArithmeticOperator::Add => "+",
            ArithmeticOperator::Subtract => "-",
            ArithmeticOperator::Multiply => "*",
            ArithmeticOperator::Divide => "/",
            ArithmeticOperator::Remainder => "%",
        })
    }
}

/// What an operator takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperatorTypes {
    /// What the left operand is cast to. Integers of all widths may stay as they are.
    pub left: DataType,
    /// What the right operand is cast to.
    pub right: DataType,
    /// The result.
    pub result: DataType,
}

/// The operator that PostgreSQL calls for `left op right`; `None` where it has none, or cannot choose among several.
///
/// Of two numbers it is that of the wider type in the order smallint, integer, bigint, numeric, double precision; real
/// stays real among itself only. An operand of type [`DataType::Unknown`] takes the type of the other side where there
/// is such an operator.
pub fn operator_types(op: ArithmeticOperator, left: DataType, right: DataType) -> Option<OperatorTypes> {
    use ArithmeticOperator::{Add, Divide, Multiply, Remainder, Subtract};
    use DataType::{Date, Double, Integer, Interval, Real, SmallInt, Time, Timestamp, TimestampTz, Unknown};
    let with = |known: DataType| match (known, op) {
        (Date | Time, Subtract) => Some(known),
        (Timestamp | TimestampTz, Add) => Some(Interval),
        (Timestamp | TimestampTz, Subtract) => Some(known),
        (Interval, Add | Subtract) => Some(Interval),
        (Interval, Multiply | Divide) => Some(Double),
        _ => number_rank(known).map(|_| known),
    };
    let (left, right) = match (left.family(), right.family()) {
        (Unknown, Unknown) => return None,
        (Unknown, right) => (with(right)?, right),
        (left, Unknown) => (left, with(left)?),
        both => both,
    };
    let of = |left, right, result| Some(OperatorTypes { left, right, result });
    if let (Some(left_rank), Some(right_rank)) = (number_rank(left), number_rank(right)) {
        let widest = match (left, right) {
            (Real, Real) => Real,
            (Real, _) | (_, Real) => Double,
            _ if left_rank >= right_rank => left,
            _ => right,
        };
        let exists = op != Remainder || !matches!(widest, Real | Double);
        return exists.then_some(OperatorTypes { left: widest, right: widest, result: widest });
    }
    match (left, op, right) {
        (Date, Add | Subtract, SmallInt | Integer) => of(Date, Integer, Date),
        (SmallInt | Integer, Add, Date) => of(Integer, Date, Date),
        (Date, Subtract, Date) => of(Date, Date, Integer),
        (Date, Add, Time) | (Time, Add, Date) => of(left, right, Timestamp),
        (Date, Add | Subtract, Interval) | (Interval, Add, Date) => of(left, right, Timestamp),
        (Date, Subtract, Time) => of(left, Interval, Timestamp),
        (Timestamp | TimestampTz, Add | Subtract, Interval) => of(left, right, left),
        (Interval, Add, Timestamp | TimestampTz) => of(left, right, right),
        (Timestamp, Subtract, Timestamp) => of(left, right, Interval),
        (TimestampTz, Subtract, TimestampTz) => of(left, right, Interval),
        (Date | Timestamp, Subtract, Date | Timestamp) => of(Timestamp, Timestamp, Interval),
        (Date | Timestamp | TimestampTz, Subtract, Date | Timestamp | TimestampTz) => {
            of(TimestampTz, TimestampTz, Interval)
        }
        (Time, Add | Subtract, Interval) => of(left, right, Time),
        (Interval, Add, Time) => of(left, right, Time),
        (Time, Subtract, Time) => of(left, right, Interval),
        (Interval, Add | Subtract, Interval) => of(left, right, Interval),
        // Elsewhere a time counts as an interval.
        (Timestamp | TimestampTz, Add | Subtract, Time) => of(left, Interval, left),
        (Time, Add, Timestamp | TimestampTz) => of(Interval, right, right),
        (Interval, Subtract, Time) => of(Interval, Interval, Interval),
        (Interval | Time, Multiply | Divide, number) if number_rank(number).is_some() => {
            of(Interval, Double, Interval)
        }
        (number, Multiply, Interval | Time) if number_rank(number).is_some() => {
            of(Double, Interval, Interval)
        }
        _ => None,
    }
}

/// The type of `left op right`; as [`operator_types`].
pub fn arithmetic_result(op: ArithmeticOperator, left: DataType, right: DataType) -> Option<DataType> {
    operator_types(op, left, right).map(|types| types.result)
}

/// The position of a type among the numbers, widest last.
pub(crate) fn number_rank(data_type: DataType) -> Option<u8> {
    match data_type {
        DataType::SmallInt => Some(0),
        DataType::Integer => Some(1),
        DataType::BigInt => Some(2),
        DataType::Numeric(_) => Some(3),
        DataType::Real => Some(4),
        DataType::Double => Some(5),
        _ => None,
    }
}

#[cold]
pub(crate) fn out_of_range(type_name: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{type_name} out of range"))
}

#[cold]
fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[cold]
fn no_operator(op: impl fmt::Display, left: &Value, right: &Value) -> SqlError {
    let message = format!("operator does not exist: {} {op} {}", left.data_type(), right.data_type());
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

#[inline]
fn integer(result: Option<i32>) -> Result<Value, SqlError> {
    result.map(Value::Integer).ok_or_else(|| out_of_range("integer"))
}

#[inline]
fn bigint(result: Option<i64>) -> Result<Value, SqlError> {
    result.map(Value::BigInt).ok_or_else(|| out_of_range("bigint"))
}

/// The types that came later, out of the way of the common ones, and operands of different types, which are cast to
/// those of the operator.
#[cold]
fn others(op: ArithmeticOperator, left: &Value, right: &Value) -> Result<Value, SqlError> {
    let done = match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return Ok(Value::Null),
        (Value::SmallInt(a), Value::SmallInt(b)) => Some(smallints(op, *a, *b)),
        (Value::Real(a), Value::Real(b)) => reals(op, *a, *b),
        _ => match op {
            ArithmeticOperator::Add => datetime::plus(left, right),
            ArithmeticOperator::Subtract => datetime::minus(left, right),
            _ => scaled_interval(op, left, right),
        },
    };
    if let Some(done) = done {
        return done;
    }
    match operator_types(op, left.data_type(), right.data_type()) {
        Some(types) if types.left != left.data_type() || types.right != right.data_type() => {
            arithmetic(op, &cast(left.clone(), types.left)?, &cast(right.clone(), types.right)?)
        }
        _ => Err(no_operator(op, left, right)),
    }
}

fn smallints(op: ArithmeticOperator, a: i16, b: i16) -> Result<Value, SqlError> {
    let result = match op {
        ArithmeticOperator::Add => a.checked_add(b),
        ArithmeticOperator::Subtract => a.checked_sub(b),
        ArithmeticOperator::Multiply => a.checked_mul(b),
        ArithmeticOperator::Divide | ArithmeticOperator::Remainder if b == 0 => {
            return Err(division_by_zero());
        }
        ArithmeticOperator::Divide => a.checked_div(b),
        // As of the wider integers.
        ArithmeticOperator::Remainder => Some(a.wrapping_rem(b)),
    };
    result.map(Value::SmallInt).ok_or_else(|| out_of_range("smallint"))
}

fn reals(op: ArithmeticOperator, a: f32, b: f32) -> Option<Result<Value, SqlError>> {
    let infinite = a.is_infinite() || b.is_infinite();
    let result = match op {
        ArithmeticOperator::Add => real::check(a + b, infinite, true),
        ArithmeticOperator::Subtract => real::check(a - b, infinite, true),
        ArithmeticOperator::Multiply => real::check(a * b, infinite, a == 0.0 || b == 0.0),
        ArithmeticOperator::Divide if b == 0.0 && !a.is_nan() => Err(division_by_zero()),
        ArithmeticOperator::Divide => real::check(a / b, a.is_infinite(), a == 0.0 || b.is_infinite()),
        ArithmeticOperator::Remainder => return None,
    };
    Some(result.map(Value::Real))
}

fn scaled_interval(op: ArithmeticOperator, left: &Value, right: &Value) -> Option<Result<Value, SqlError>> {
    let scaled = match (op, left, right) {
        (ArithmeticOperator::Multiply, Value::Interval(interval), Value::Double(factor))
        | (ArithmeticOperator::Multiply, Value::Double(factor), Value::Interval(interval)) => {
            datetime::multiply_interval(*interval, *factor)
        }
        (ArithmeticOperator::Divide, Value::Interval(interval), Value::Double(divisor)) => {
            datetime::divide_interval(*interval, *divisor)
        }
        _ => return None,
    };
    Some(scaled.map(Value::Interval))
}

/// `left op right`; NULL where either is NULL.
///
/// # Errors
/// As the function of the operator.
#[inline]
pub fn arithmetic(op: ArithmeticOperator, left: &Value, right: &Value) -> Result<Value, SqlError> {
    match op {
        ArithmeticOperator::Add => add(left, right),
        ArithmeticOperator::Subtract => subtract(left, right),
        ArithmeticOperator::Multiply => multiply(left, right),
        ArithmeticOperator::Divide => divide(left, right),
        ArithmeticOperator::Remainder => remainder(left, right),
    }
}

/// `left + right`; NULL where either is NULL.
///
/// # Errors
/// `22003` where the result is out of the range of its type, `42883` where the operands are no numbers.
#[inline]
pub fn add(left: &Value, right: &Value) -> Result<Value, SqlError> {
    match (left, right) {
        (Value::BigInt(a), Value::BigInt(b)) => bigint(a.checked_add(*b)),
        (Value::Integer(a), Value::Integer(b)) => integer(a.checked_add(*b)),
        (Value::BigInt(a), Value::Integer(b)) => bigint(a.checked_add(i64::from(*b))),
        (Value::Integer(a), Value::BigInt(b)) => bigint(i64::from(*a).checked_add(*b)),
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_add(b)?)),
        (Value::Double(a), Value::Double(b)) => double(a + b, a.is_infinite() || b.is_infinite(), true),
        _ => others(ArithmeticOperator::Add, left, right),
    }
}

/// `left - right`; NULL where either is NULL.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn subtract(left: &Value, right: &Value) -> Result<Value, SqlError> {
    match (left, right) {
        (Value::BigInt(a), Value::BigInt(b)) => bigint(a.checked_sub(*b)),
        (Value::Integer(a), Value::Integer(b)) => integer(a.checked_sub(*b)),
        (Value::BigInt(a), Value::Integer(b)) => bigint(a.checked_sub(i64::from(*b))),
        (Value::Integer(a), Value::BigInt(b)) => bigint(i64::from(*a).checked_sub(*b)),
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_sub(b)?)),
        (Value::Double(a), Value::Double(b)) => double(a - b, a.is_infinite() || b.is_infinite(), true),
        _ => others(ArithmeticOperator::Subtract, left, right),
    }
}

/// `left * right`; NULL where either is NULL.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn multiply(left: &Value, right: &Value) -> Result<Value, SqlError> {
    match (left, right) {
        (Value::BigInt(a), Value::BigInt(b)) => bigint(a.checked_mul(*b)),
        (Value::Integer(a), Value::Integer(b)) => integer(a.checked_mul(*b)),
        (Value::BigInt(a), Value::Integer(b)) => bigint(a.checked_mul(i64::from(*b))),
        (Value::Integer(a), Value::BigInt(b)) => bigint(i64::from(*a).checked_mul(*b)),
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_mul(b)?)),
        (Value::Double(a), Value::Double(b)) => {
            double(a * b, a.is_infinite() || b.is_infinite(), *a == 0.0 || *b == 0.0)
        }
        _ => others(ArithmeticOperator::Multiply, left, right),
    }
}

/// `left / right`, truncated towards zero for integers; NULL where either is NULL.
///
/// # Errors
/// `22012` where `right` is zero, else as [`add`].
#[inline]
pub fn divide(left: &Value, right: &Value) -> Result<Value, SqlError> {
    match (left, right) {
        (Value::BigInt(a), Value::BigInt(b)) => divide_bigints(*a, *b),
        (Value::Integer(_), Value::Integer(0)) => Err(division_by_zero()),
        (Value::Integer(a), Value::Integer(b)) => integer(a.checked_div(*b)),
        (Value::BigInt(a), Value::Integer(b)) => divide_bigints(*a, i64::from(*b)),
        (Value::Integer(a), Value::BigInt(b)) => divide_bigints(i64::from(*a), *b),
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_div(b)?)),
        (Value::Double(a), Value::Double(b)) if *b == 0.0 && !a.is_nan() => Err(division_by_zero()),
        (Value::Double(a), Value::Double(b)) => double(a / b, a.is_infinite(), *a == 0.0 || b.is_infinite()),
        _ => others(ArithmeticOperator::Divide, left, right),
    }
}

#[inline]
fn divide_bigints(a: i64, b: i64) -> Result<Value, SqlError> {
    if b == 0 { Err(division_by_zero()) } else { bigint(a.checked_div(b)) }
}

/// `left % right` with the sign of `left`; NULL where either is NULL.
///
/// # Errors
/// `22012` where `right` is zero, `42883` for `double precision`, else as [`add`].
#[inline]
pub fn remainder(left: &Value, right: &Value) -> Result<Value, SqlError> {
    match (left, right) {
        (Value::BigInt(a), Value::BigInt(b)) => remainder_bigints(*a, *b),
        (Value::Integer(_), Value::Integer(0)) => Err(division_by_zero()),
        // The remainder of the smallest integer by −1 is 0, although the quotient is out of range.
        (Value::Integer(a), Value::Integer(b)) => Ok(Value::Integer(a.wrapping_rem(*b))),
        (Value::BigInt(a), Value::Integer(b)) => remainder_bigints(*a, i64::from(*b)),
        (Value::Integer(a), Value::BigInt(b)) => remainder_bigints(i64::from(*a), *b),
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_rem(b)?)),
        _ => others(ArithmeticOperator::Remainder, left, right),
    }
}

#[inline]
fn remainder_bigints(a: i64, b: i64) -> Result<Value, SqlError> {
    if b == 0 { Err(division_by_zero()) } else { Ok(Value::BigInt(a.wrapping_rem(b))) }
}

/// `-value`; NULL for NULL.
///
/// # Errors
/// `22003` for the smallest integer and bigint, `42883` where the operand is no number.
#[inline]
pub fn negate(value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::BigInt(value) => bigint(value.checked_neg()),
        Value::Integer(value) => integer(value.checked_neg()),
        Value::Numeric(value) => Ok(Value::Numeric(value.negated())),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::SmallInt(value) => {
            value.checked_neg().map(Value::SmallInt).ok_or_else(|| out_of_range("smallint"))
        }
        Value::Real(value) => Ok(Value::Real(-value)),
        Value::Interval(value) => value
            .checked_neg()
            .map(Value::Interval)
            .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")),
        other => {
            let message = format!("operator does not exist: - {}", other.data_type());
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

/// `abs(value)`; NULL for NULL.
///
/// # Errors
/// As [`negate`].
pub fn absolute(value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::BigInt(value) => bigint(value.checked_abs()),
        Value::Integer(value) => integer(value.checked_abs()),
        Value::Numeric(value) => Ok(Value::Numeric(value.abs())),
        Value::Double(value) => Ok(Value::Double(value.abs())),
        Value::SmallInt(value) => {
            value.checked_abs().map(Value::SmallInt).ok_or_else(|| out_of_range("smallint"))
        }
        Value::Real(value) => Ok(Value::Real(value.abs())),
        other => {
            let message = format!("function abs({}) does not exist", other.data_type());
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

/// `left || right`: of two `bytea` their bytes; other values that are not text are cast to it. NULL where either is NULL.
///
/// # Errors
/// `54000` where the text is longer than [`crate::limits::TEXT_BYTES_MAX`].
pub fn concatenate(left: &Value, right: &Value) -> Result<Value, SqlError> {
    if let (Value::Bytea(left), Value::Bytea(right)) = (left, right) {
        crate::check_bytes_length(left.len() + right.len())?;
        return Ok(Value::Bytea([&left[..], &right[..]].concat().into()));
    }
    let (Some(left), Some(right)) = (as_text(left), as_text(right)) else {
        return Ok(Value::Null);
    };
    text::check_text_length(left.len() + right.len())?;
    let mut joined = String::with_capacity(left.len() + right.len());
    joined.push_str(&left);
    joined.push_str(&right);
    Ok(Value::Text(Arc::from(joined)))
}

/// The cast to text, without a copy where the value is text.
fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Char(text) => Some(Cow::Borrowed(text::unpadded(text))),
        Value::Boolean(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
        Value::Inet(address) => Some(Cow::Owned(address.prefixed_text())),
        other => text::format_value(other).map(Cow::Owned),
    }
}

/// A double that became infinite without an infinite operand has overflown; one that became zero has underflown.
#[inline]
fn double(result: f64, infinite_expected: bool, zero_expected: bool) -> Result<Value, SqlError> {
    let fault = if result.is_infinite() && !infinite_expected {
        "overflow"
    } else if result == 0.0 && !zero_expected {
        "underflow"
    } else {
        return Ok(Value::Double(result));
    };
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Numeric, limits};

    const OPERATORS: [ArithmeticOperator; 5] = [
        ArithmeticOperator::Add,
        ArithmeticOperator::Subtract,
        ArithmeticOperator::Multiply,
        ArithmeticOperator::Divide,
        ArithmeticOperator::Remainder,
    ];

    #[test]
    fn null_makes_every_result_null() {
        for value in [Value::Integer(0), Value::BigInt(0), Value::Numeric(Numeric::ZERO), Value::Double(0.0)]
        {
            for op in OPERATORS {
                assert_eq!(arithmetic(op, &value, &Value::Null), Ok(Value::Null));
                assert_eq!(arithmetic(op, &Value::Null, &value), Ok(Value::Null));
            }
            assert_eq!(concatenate(&value, &Value::Null), Ok(Value::Null));
        }
        assert_eq!(negate(&Value::Null), Ok(Value::Null));
        assert_eq!(absolute(&Value::Null), Ok(Value::Null));
    }

    #[test]
    fn an_operand_of_unknown_type_takes_the_other_type() {
        use ArithmeticOperator::{Add, Remainder};
        use DataType::{Double, Integer, Numeric, Text, Unknown};
        assert_eq!(arithmetic_result(Add, Unknown, Integer), Some(Integer));
        assert_eq!(arithmetic_result(Add, Numeric(Some((5, 2))), Unknown), Some(Numeric(None)));
        assert_eq!(arithmetic_result(Add, Unknown, Unknown), None);
        assert_eq!(arithmetic_result(Add, Text(None), Integer), None);
        assert_eq!(arithmetic_result(Remainder, Double, Integer), None);
    }

    #[test]
    fn operands_that_are_no_numbers_are_refused() {
        let error = add(&Value::text("1"), &Value::Integer(1)).expect_err("text");
        assert_eq!(
            (error.state, error.message.as_str()),
            (SqlState::UNDEFINED_FUNCTION, "operator does not exist: text + integer")
        );
        assert!(remainder(&Value::Double(1.0), &Value::Double(1.0)).is_err());
        assert!(negate(&Value::Boolean(true)).is_err());
    }

    #[test]
    fn texts_do_not_grow_beyond_their_limit() {
        let half = Value::text("a".repeat(limits::TEXT_BYTES_MAX / 2));
        let whole = concatenate(&half, &half).expect("fits");
        let error = concatenate(&whole, &Value::Integer(1)).expect_err("one byte too long");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
