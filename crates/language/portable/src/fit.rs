//! Constants as values of the types that their places ask for.

use crate::data_type::{Kind, integer_rank, kind_of, own_digits};
use crate::expression::Expression;
use crate::refusal::{COMPUTE_BEFORE, no_operator, out_of_range, refused};
use crate::written::Written;
use types::datetime::MICROSECONDS_PER_DAY;
use types::datetime::make_date;
use types::{
    DataType, Numeric, SqlError, SqlState, Value, can_cast_in_assignment, comparison_type, parse_value,
};

/// The value that a column of this type stores for a constant.
///
/// # Errors
/// `22P02`, `22007` where a text is no such value; `22001`, `22003`, `22008` where it does not fit; `42804` and `0A000` where its
/// type cannot be stored in the column.
pub(crate) fn stored(written: Written, column: &str, target: DataType) -> Result<Value, SqlError> {
    match (written.value, written.data_type) {
        (Value::Null, DataType::Unknown) => Ok(Value::Null),
        (Value::Text(text), DataType::Unknown) => parsed(&text, target),
        (value, from) => {
            let is_number = |data_type: DataType| integer_rank(data_type).is_some();
            // A constant is narrowed here, and its range looked at.
            if !(is_number(from) && is_number(target)) {
                check_assignable(from, column, target)?;
            }
            converted(value, target)
        }
    }
}

/// Whether an expression of one type can be assigned to a column of another, with the same result everywhere.
///
/// # Errors
/// `42804` where PostgreSQL refuses it, too; `0A000`.
pub(crate) fn check_assignable(from: DataType, column: &str, target: DataType) -> Result<(), SqlError> {
    let same_kind = kind_of(from).is_some() && kind_of(from) == kind_of(target);
    let hint = match (integer_rank(from), integer_rank(target)) {
        (Some(from), Some(target)) if from > target => {
            "Use a column that is as wide, or constants that are as narrow: 1::smallint."
        }
        (None, Some(_)) if same_kind => "Use a column of type numeric(p, s), or integers.",
        _ if same_kind => return Ok(()),
        _ if !can_cast_in_assignment(from, target) => {
            let message = format!(
                "column \"{column}\" is of type {target} but expression is of type {}",
                from.family()
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression."));
        }
        _ => COMPUTE_BEFORE,
    };
    let what = format!("a value of type {} for column \"{column}\" of type {target}", from.family());
    Err(refused(what).hint(hint))
}

/// A constant that meets a value of another type: in a comparison, or as one of several values of which one is chosen. It gets the
/// type of the other where that changes nothing.
///
/// # Errors
/// As [`stored`]; `42883` and `0A000` where values of these types do not meet.
pub(crate) fn meeting(written: Written, operator: &str, other: DataType) -> Result<Expression, SqlError> {
    let Written { value, data_type } = written;
    if data_type != DataType::Unknown && kind_of(data_type) != kind_of(other) {
        return Err(mismatch(other, operator, data_type));
    }
    let value = match value {
        Value::Null => return Ok(Expression::constant(Value::Null, other)),
        Value::Text(text) if data_type == DataType::Unknown => parsed(&text, other.family())?,
        value => value,
    };
    // What is compared is not rounded.
    let value = match kind_of(other) {
        Some(Kind::Number) if !matches!(value, Value::Numeric(_)) => converted(value, other.family())?,
        _ => value,
    };
    let fits = |length: u32, text: &str| text.chars().count() <= length as usize;
    let data_type = match (&value, other) {
        (Value::Numeric(number), _) => own_digits(number)?,
        (Value::Text(text), DataType::Text(Some(length))) if !fits(length, text) => DataType::Text(None),
        _ => other,
    };
    Ok(Expression::constant(value, data_type))
}

/// Why values of two types do not meet.
pub(crate) fn mismatch(left: DataType, operator: &str, right: DataType) -> SqlError {
    if comparison_type(left, right).is_none() {
        return no_operator(left, operator, right);
    }
    refused(format_args!("{} {operator} {}", left.family(), right.family()))
        .hint("Use values of one type on both sides.")
}

/// `constant::type`
///
/// # Errors
/// As [`stored`].
pub(crate) fn cast(written: Written, target: DataType) -> Result<Written, SqlError> {
    let value = stored(written, "?column?", target).map_err(|error| match error.state {
        SqlState::DATATYPE_MISMATCH | SqlState::FEATURE_NOT_SUPPORTED => {
            refused(format_args!("this cast to {target}")).hint("Write the constant in the type itself.")
        }
        _ => error,
    })?;
    let data_type = match (&value, target) {
        (Value::Numeric(number), DataType::Numeric(None)) => own_digits(number)?,
        _ => target,
    };
    Ok(Written { value, data_type })
}

/// A text as a value of a type.
fn parsed(text: &str, target: DataType) -> Result<Value, SqlError> {
    check_length(text, target)?;
    let value = parse_value(text, target)?;
    check_value(&value)?;
    Ok(value)
}

/// A value of one kind as one of a type of the same kind.
fn converted(value: Value, target: DataType) -> Result<Value, SqlError> {
    let value = match (value, target) {
        (Value::Null, _) => Value::Null,
        (Value::Text(text), _) => {
            check_length(&text, target)?;
            Value::Text(text)
        }
        (Value::Numeric(number), DataType::Numeric(Some((precision, scale)))) => {
            Value::Numeric(number.coerce(precision, scale)?)
        }
        (value, DataType::Numeric(modifier)) => match (value.as_integer().map(Numeric::from), modifier) {
            (Some(number), Some((precision, scale))) => Value::Numeric(number.coerce(precision, scale)?),
            (Some(number), None) => Value::Numeric(number),
            (None, _) => value,
        },
        (value, _) => match value.as_integer() {
            Some(number) => integer(number, target)?,
            None => value,
        },
    };
    check_value(&value)?;
    Ok(value)
}

fn integer(number: i64, target: DataType) -> Result<Value, SqlError> {
    let value = match target {
        DataType::SmallInt => i16::try_from(number).map(Value::SmallInt),
        DataType::Integer => i32::try_from(number).map(Value::Integer),
        _ => Ok(Value::BigInt(number)),
    };
    value.map_err(|_| out_of_range(target))
}

/// Spaces at the end count: the databases differ in whether they cut them off.
fn check_length(text: &str, target: DataType) -> Result<(), SqlError> {
    match target {
        DataType::Text(Some(length)) if text.chars().count() > length as usize => {
            let message = format!("value too long for type {target}");
            Err(SqlError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message))
        }
        _ => Ok(()),
    }
}

/// Refuses values that not every database can hold.
///
/// # Errors
/// `22008` for dates outside of the years 1 to 9999; `22021` and `54000` for texts; `0A000` for numbers.
pub(crate) fn check_value(value: &Value) -> Result<(), SqlError> {
    let (first, end) = (make_date(1, 1, 1)?, make_date(9999, 12, 31)? + 1);
    let midnight = |date: i32| i64::from(date) * MICROSECONDS_PER_DAY;
    let is_in_range = match value {
        Value::Date(date) => (first..end).contains(date),
        Value::Timestamp(at) | Value::TimestampTz(at) => (midnight(first)..midnight(end)).contains(at),
        Value::Text(text) => return parse_value(text, DataType::Text(None)).map(drop),
        Value::Numeric(number) => return own_digits(number).map(drop),
        _ => true,
    };
    if is_in_range {
        return Ok(());
    }
    let name = if matches!(value, Value::Date(_)) { "date" } else { "timestamp" };
    Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{name} out of range"))
        .hint("Not every database has dates outside of the years 1 to 9999."))
}
