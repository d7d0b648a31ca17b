use crate::arithmetic::{number_rank, out_of_range};
use crate::text::{check_text_length, fit_length, format_value, parse_value, truncate};
use crate::{DataType, Numeric, SqlError, SqlState, Value};
use std::sync::Arc;

/// What asks for a cast.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// `CAST(… AS …)` or `::`
    Explicit,
    /// INSERT, UPDATE, a variable
    Assignment,
}

/// True where PostgreSQL casts by itself anywhere in an expression: towards the wider number, and a literal of unknown
/// type to anything.
pub fn can_cast_implicitly(from: DataType, to: DataType) -> bool {
    let (from, to) = (from.family(), to.family());
    if from == to || from == DataType::Unknown {
        return true;
    }
    matches!((number_rank(from), number_rank(to)), (Some(from), Some(to)) if from < to)
}

/// True where PostgreSQL casts by itself when a value is stored in a column or variable: between all numbers, and
/// anything to text.
pub fn can_cast_in_assignment(from: DataType, to: DataType) -> bool {
    can_cast_implicitly(from, to)
        || matches!(to, DataType::Text(_))
        || (number_rank(from).is_some() && number_rank(to).is_some())
}

/// True where PostgreSQL has a cast that has to be written: text to anything, and between boolean and integer.
pub fn can_cast_explicitly(from: DataType, to: DataType) -> bool {
    can_cast_in_assignment(from, to)
        || matches!(from, DataType::Text(_))
        || matches!(
            (from, to),
            (DataType::Boolean, DataType::Integer) | (DataType::Integer, DataType::Boolean)
        )
}

/// The type that values of these types have together in CASE, COALESCE, IN, VALUES, UNION and comparisons, by
/// PostgreSQL's rules; `None` where they have none.
///
/// Literals of unknown type take the type of the others, and are text among themselves. Length, precision and scale
/// stay where all types agree on them.
pub fn common_type(types: impl IntoIterator<Item = DataType>) -> Option<DataType> {
    let (mut common, mut unknown) = (None, false);
    for next in types {
        if next == DataType::Unknown {
            unknown = true;
            continue;
        }
        common = Some(match common {
            None => next,
            Some(known) if known == next => known,
            Some(known) if can_cast_implicitly(next, known) => known.family(),
            Some(known) if can_cast_implicitly(known, next) => next.family(),
            Some(_) => return None,
        });
    }
    match common {
        None => unknown.then_some(DataType::Text(None)),
        Some(known) => Some(if unknown { known.family() } else { known }),
    }
}

/// `CAST(value AS target)`: a text too long for `varchar(n)` is cut off.
///
/// # Errors
/// `42846` where there is no such cast, `22003` (`22008`) where the value is out of range, `22P02` (`22007`) where a
/// text is no such value.
#[inline]
pub fn cast(value: Value, target: DataType) -> Result<Value, SqlError> {
    convert(value, target, Context::Explicit)
}

/// The value as it is stored in a column, parameter or variable of type `target`: a text too long for `varchar(n)` is
/// an error unless only spaces are cut off.
///
/// A text is read as [`parse_value`] reads it, because a value does not tell a literal of unknown type from a text.
/// Whether PostgreSQL allows the assignment is told by the types: [`can_cast_in_assignment`].
///
/// # Errors
/// As [`cast`]; `22001` where a text is too long; `42804` where there is no such cast in an assignment.
#[inline]
pub fn assign(value: Value, target: DataType) -> Result<Value, SqlError> {
    convert(value, target, Context::Assignment)
}

#[inline]
fn convert(value: Value, target: DataType, context: Context) -> Result<Value, SqlError> {
    match (&value, target) {
        (Value::Null, _)
        | (_, DataType::Unknown)
        | (Value::BigInt(_), DataType::BigInt)
        | (Value::Integer(_), DataType::Integer)
        | (Value::Boolean(_), DataType::Boolean)
        | (Value::Numeric(_), DataType::Numeric(None))
        | (Value::Double(_), DataType::Double)
        | (Value::Text(_), DataType::Text(None))
        | (Value::TimestampTz(_), DataType::TimestampTz) => Ok(value),
        (Value::Integer(number), DataType::BigInt) => Ok(Value::BigInt(i64::from(*number))),
        _ => convert_between(value, target, context),
    }
}

fn convert_between(value: Value, target: DataType, context: Context) -> Result<Value, SqlError> {
    match target {
        DataType::Text(length) => to_text(value, length, context),
        _ if matches!(value, Value::Text(_)) => match &value {
            Value::Text(text) => parse_value(text, target),
            _ => Ok(value),
        },
        DataType::Integer => match &value {
            Value::BigInt(number) => {
                i32::try_from(*number).map(Value::Integer).map_err(|_| out_of_range("integer"))
            }
            Value::Numeric(number) => number.to_i32().map(Value::Integer),
            Value::Double(number) => Ok(Value::Integer(double_to_i64(*number, 31, "integer")? as i32)),
            Value::Boolean(truth) if context == Context::Explicit => Ok(Value::Integer(i32::from(*truth))),
            _ => Err(no_cast(&value, target, context)),
        },
        DataType::BigInt => match &value {
            Value::Numeric(number) => number.to_i64().map(Value::BigInt),
            Value::Double(number) => double_to_i64(*number, 63, "bigint").map(Value::BigInt),
            _ => Err(no_cast(&value, target, context)),
        },
        DataType::Numeric(modifier) => to_numeric(&value, modifier, target, context),
        DataType::Double => match &value {
            Value::Integer(number) => Ok(Value::Double(f64::from(*number))),
            Value::BigInt(number) => Ok(Value::Double(*number as f64)),
            Value::Numeric(number) => Ok(Value::Double(number.to_f64())),
            _ => Err(no_cast(&value, target, context)),
        },
        DataType::Boolean => match &value {
            Value::Integer(number) if context == Context::Explicit => Ok(Value::Boolean(*number != 0)),
            _ => Err(no_cast(&value, target, context)),
        },
        DataType::TimestampTz | DataType::Unknown => Err(no_cast(&value, target, context)),
    }
}

fn to_numeric(
    value: &Value,
    modifier: Option<(u8, u8)>,
    target: DataType,
    context: Context,
) -> Result<Value, SqlError> {
    let numeric = match (value, modifier) {
        (Value::Integer(number), _) => Numeric::from(*number),
        (Value::BigInt(number), _) => Numeric::from(*number),
        (Value::Numeric(number), _) => *number,
        (Value::Double(number), None) => return Numeric::from_f64(*number).map(Value::Numeric),
        (Value::Double(number), Some((precision, scale))) => {
            return Numeric::from_f64_coerced(*number, precision, scale).map(Value::Numeric);
        }
        _ => return Err(no_cast(value, target, context)),
    };
    Ok(Value::Numeric(match modifier {
        Some((precision, scale)) => numeric.coerce(precision, scale)?,
        None => numeric,
    }))
}

fn to_text(value: Value, length: Option<u32>, context: Context) -> Result<Value, SqlError> {
    let text: Arc<str> = match value {
        Value::Text(text) => text,
        Value::Boolean(truth) => Arc::from(if truth { "true" } else { "false" }),
        other => Arc::from(format_value(&other).unwrap_or_default()),
    };
    check_text_length(text.len())?;
    let Some(length) = length else {
        return Ok(Value::Text(text));
    };
    let kept = match context {
        Context::Explicit => truncate(&text, length),
        Context::Assignment => fit_length(&text, length)?,
    };
    Ok(Value::Text(if kept.len() == text.len() { text } else { Arc::from(kept) }))
}

/// Rounds halves to even as PostgreSQL does; `bits` without the sign bit.
fn double_to_i64(value: f64, bits: i32, type_name: &str) -> Result<i64, SqlError> {
    let rounded = value.round_ties_even();
    // A power of two is exact as a double.
    let end = (1u64 << bits) as f64;
    // NaN is in no range.
    if (-end..end).contains(&rounded) { Ok(rounded as i64) } else { Err(out_of_range(type_name)) }
}

#[cold]
fn no_cast(value: &Value, target: DataType, context: Context) -> SqlError {
    let found = value.data_type();
    match context {
        Context::Explicit => {
            let target = target.family();
            SqlError::new(SqlState(*b"42846"), format!("cannot cast type {found} to {target}"))
        }
        Context::Assignment => {
            let message = format!("a value of type {found} cannot be assigned to type {target}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("Cast it explicitly, if there is such a cast.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_precision_and_scale_stay_where_all_types_agree() {
        let price = DataType::Numeric(Some((10, 2)));
        assert_eq!(common_type([price, price]), Some(price));
        assert_eq!(common_type([price, DataType::Unknown]), Some(DataType::Numeric(None)));
        assert_eq!(common_type([price, DataType::Integer]), Some(DataType::Numeric(None)));
        assert_eq!(
            common_type([DataType::Text(Some(3)), DataType::Text(Some(5))]),
            Some(DataType::Text(None))
        );
        assert_eq!(common_type([]), None);
    }

    #[test]
    fn varchar_is_cut_by_a_cast_and_refused_by_an_assignment() {
        let target = DataType::Text(Some(3));
        assert_eq!(cast(Value::text("naïve"), target), Ok(Value::text("naï")));
        assert_eq!(assign(Value::text("naï  "), target), Ok(Value::text("naï")));
        let error = assign(Value::text("naïve"), target).expect_err("too long");
        assert_eq!(error.message, "value too long for type character varying(3)");
        assert_eq!(assign(Value::Null, target), Ok(Value::Null));
    }

    #[test]
    fn a_text_may_be_any_assigned_value() {
        assert_eq!(assign(Value::text("42"), DataType::BigInt), Ok(Value::BigInt(42)));
        assert_eq!(
            assign(Value::Integer(1), DataType::Boolean).map_err(|error| error.state),
            Err(SqlState::DATATYPE_MISMATCH)
        );
    }
}
