use crate::{DataType, SqlError, SqlState, Value, cast, text};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A binary operator on numbers.
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

/// The type of `left op right`; `None` where PostgreSQL has no such operator.
///
/// The wider of both types in the order integer, bigint, numeric, double precision. An operand of type
/// [`DataType::Unknown`] takes the type of the other side.
pub fn arithmetic_result(op: ArithmeticOperator, left: DataType, right: DataType) -> Option<DataType> {
    let (left, right) = match (left.family(), right.family()) {
        (DataType::Unknown, right) => (right, right),
        (left, DataType::Unknown) => (left, left),
        both => both,
    };
    let result = if number_rank(left)? >= number_rank(right)? { left } else { right };
    let exists = op != ArithmeticOperator::Remainder || result != DataType::Double;
    exists.then_some(result)
}

/// The position of a type among the numbers, widest last.
pub(crate) fn number_rank(data_type: DataType) -> Option<u8> {
    match data_type {
        DataType::Integer => Some(0),
        DataType::BigInt => Some(1),
        DataType::Numeric(_) => Some(2),
        DataType::Double => Some(3),
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

/// Operands of different types, widened to the type of the result, go through `operation` again.
#[cold]
fn widened(
    op: ArithmeticOperator,
    left: &Value,
    right: &Value,
    operation: fn(&Value, &Value) -> Result<Value, SqlError>,
) -> Result<Value, SqlError> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    match arithmetic_result(op, left.data_type(), right.data_type()) {
        Some(target) if left.data_type() != right.data_type() => {
            operation(&cast(left.clone(), target)?, &cast(right.clone(), target)?)
        }
        _ => Err(no_operator(op, left, right)),
    }
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
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_add(*b)?)),
        (Value::Double(a), Value::Double(b)) => double(a + b, a.is_infinite() || b.is_infinite(), true),
        _ => widened(ArithmeticOperator::Add, left, right, add),
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
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_sub(*b)?)),
        (Value::Double(a), Value::Double(b)) => double(a - b, a.is_infinite() || b.is_infinite(), true),
        _ => widened(ArithmeticOperator::Subtract, left, right, subtract),
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
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_mul(*b)?)),
        (Value::Double(a), Value::Double(b)) => {
            double(a * b, a.is_infinite() || b.is_infinite(), *a == 0.0 || *b == 0.0)
        }
        _ => widened(ArithmeticOperator::Multiply, left, right, multiply),
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
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_div(*b)?)),
        (Value::Double(a), Value::Double(b)) if *b == 0.0 && !a.is_nan() => Err(division_by_zero()),
        (Value::Double(a), Value::Double(b)) => double(a / b, a.is_infinite(), *a == 0.0 || b.is_infinite()),
        _ => widened(ArithmeticOperator::Divide, left, right, divide),
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
        (Value::Numeric(a), Value::Numeric(b)) => Ok(Value::Numeric(a.checked_rem(*b)?)),
        _ => widened(ArithmeticOperator::Remainder, left, right, remainder),
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
        other => {
            let message = format!("function abs({}) does not exist", other.data_type());
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
    }
}

/// `left || right`: values that are not text are cast to it; NULL where either is NULL.
///
/// # Errors
/// `54000` where the text is longer than [`crate::limits::TEXT_BYTES_MAX`].
pub fn concatenate(left: &Value, right: &Value) -> Result<Value, SqlError> {
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
        Value::Boolean(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
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
