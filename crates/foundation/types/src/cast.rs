use crate::arithmetic::{number_rank, out_of_range};
use crate::array::values_with_room;
use crate::datetime::{date_of_timestamp, is_finite_timestamp, time_of_timestamp, timestamp_of_date};
use crate::session_format::{session_instant_of, session_local_of};
use crate::text::{
    check_text_length, fit_char, fit_length, format_value, pad_to, parse_value, truncate, unpadded,
};
use crate::{Array, DataType, ElementType, Interval, JsonView, Jsonb, Numeric, SqlError, SqlState, Value};
use std::sync::Arc;

/// What asks for a cast.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// `CAST(… AS …)` or `::`
    Explicit,
    /// INSERT, UPDATE, a variable
    Assignment,
}

/// True where PostgreSQL casts by itself anywhere in an expression: towards the wider number and the more exact point in
/// time, between `char(n)` and text, and a literal of unknown type to anything.
pub fn can_cast_implicitly(from: DataType, to: DataType) -> bool {
    let (from, to) = (from.family(), to.family());
    if from == to || from == DataType::Unknown {
        return true;
    }
    use DataType::{Char, Date, Interval, Text, Time, Timestamp, TimestampTz};
    matches!((number_rank(from), number_rank(to)), (Some(from), Some(to)) if from < to)
        || matches!(
            (from, to),
            (Date, Timestamp | TimestampTz)
                | (Timestamp, TimestampTz)
                | (Time, Interval)
                | (Text(_), Char(_))
                | (Char(_), Text(_))
        )
        // Whether the fields fit is told where the cast is bound.
        || matches!((from, to), (DataType::Composite(_), DataType::Record) | (DataType::Record, DataType::Composite(_)))
        || matches!((from.element(), to.element()), (Some(from), Some(to)) if can_cast_implicitly(from, to))
}

/// True where PostgreSQL casts by itself when a value is stored in a column or variable: between all numbers, from a
/// point in time to its date or time, between `json` and `jsonb`, and anything to text.
pub fn can_cast_in_assignment(from: DataType, to: DataType) -> bool {
    use DataType::{Char, Date, Interval, Text, Time, Timestamp, TimestampTz};
    can_cast_implicitly(from, to)
        || matches!(to, Text(_) | Char(_))
        || (number_rank(from).is_some() && number_rank(to).is_some())
        || matches!(
            (from, to),
            (TimestampTz, Timestamp | Date | Time)
                | (Timestamp, Date | Time)
                | (Interval, Time)
                | (DataType::Json, DataType::Jsonb)
                | (DataType::Jsonb, DataType::Json)
        )
        || matches!((from.element(), to.element()), (Some(from), Some(to)) if can_cast_in_assignment(from, to))
}

/// True where PostgreSQL has a cast that has to be written: text to anything, between boolean and integer, and from `jsonb`
/// to boolean and numbers.
pub fn can_cast_explicitly(from: DataType, to: DataType) -> bool {
    can_cast_in_assignment(from, to)
        || matches!(from, DataType::Text(_) | DataType::Char(_))
        || matches!(
            (from, to),
            (DataType::Boolean, DataType::Integer) | (DataType::Integer, DataType::Boolean)
        )
        || (from == DataType::Jsonb && (to == DataType::Boolean || number_rank(to).is_some()))
        || matches!((from.element(), to.element()), (Some(from), Some(to)) if can_cast_explicitly(from, to))
}

/// The type in which values of two types compare, by PostgreSQL's operators; `None` where there is none.
pub fn comparison_type(left: DataType, right: DataType) -> Option<DataType> {
    use DataType::{Char, Double, Interval, Real, Text, Time};
    match (left, right) {
        // There is no operator that compares them.
        (left, right) if left.is_unordered() || right.is_unordered() => None,
        (DataType::RefCursor, _) | (_, DataType::RefCursor) => None,
        (Real, Real) => Some(Real),
        // There are operators of real among themselves and with double precision, and the latter is preferred.
        (Real, other) | (other, Real) if number_rank(other).is_some() => Some(Double),
        // There are operators of text and of bpchar; what varchar is compared with decides.
        (Char(_), Text(Some(_))) | (Text(Some(_)), Char(_)) => Some(Char(None)),
        (Char(_), Text(_)) | (Text(_), Char(_)) => Some(Text(None)),
        (Time, Interval) | (Interval, Time) => Some(Interval),
        _ => common_type([left, right]),
    }
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
            // There is a cast, but these are of different kinds.
            Some(DataType::Time) if next == DataType::Interval => return None,
            Some(DataType::Interval) if next == DataType::Time => return None,
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

/// `CAST(value AS target)`: a text too long for `varchar(n)` or `char(n)` is cut off.
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
        | (Value::Text(_), DataType::Text(None) | DataType::VARCHAR)
        | (Value::TimestampTz(_), DataType::TimestampTz) => Ok(value),
        (Value::Integer(number), DataType::BigInt) => Ok(Value::BigInt(i64::from(*number))),
        _ => convert_between(value, target, context),
    }
}

fn convert_between(value: Value, target: DataType, context: Context) -> Result<Value, SqlError> {
    match target {
        DataType::Text(length) => return to_text(value, length, context),
        DataType::Char(length) => return to_char(value, length, context),
        DataType::RefCursor => return to_text(value, None, context),
        _ => {}
    }
    let converted = match &value {
        Value::Text(text) | Value::Char(text) => return parse_value(text, target),
        Value::Jsonb(value) if target != DataType::Jsonb => return from_jsonb(value, target, context),
        Value::Json(text) if target == DataType::Jsonb => Some(Value::Jsonb(Jsonb::parse(text)?)),
        _ if target.integer_range().is_some() => to_integer(&value, target, context)?,
        _ => match target {
            DataType::Numeric(modifier) => return to_numeric(&value, modifier, target, context),
            DataType::Double => to_double(&value)?,
            DataType::Real => to_real(&value)?,
            DataType::Boolean => match &value {
                Value::Integer(number) if context == Context::Explicit => Some(Value::Boolean(*number != 0)),
                _ => None,
            },
            DataType::Array(element) => to_array(&value, element, context)?,
            DataType::Record => matches!(value, Value::Composite(_)).then(|| value.clone()),
            _ => to_point_in_time(&value, target)?,
        },
    };
    match converted {
        Some(converted) => Ok(converted),
        None if value.data_type() == target => Ok(value),
        None => Err(no_cast(&value, target, context)),
    }
}

/// The scalar that a `jsonb` is, as a boolean or a number, or the whole as `json`.
fn from_jsonb(value: &Jsonb, target: DataType, context: Context) -> Result<Value, SqlError> {
    if target == DataType::Json {
        return Ok(Value::Json(Arc::from(value.to_text())));
    }
    let is_number = number_rank(target.family()).is_some();
    if context != Context::Explicit || !(is_number || target == DataType::Boolean) {
        return Err(no_cast(&Value::Jsonb(value.clone()), target, context));
    }
    let found = match value.node().view() {
        JsonView::Boolean(truth) if target == DataType::Boolean => return Ok(Value::Boolean(truth)),
        JsonView::Number(digits) if is_number => {
            return convert(Value::Numeric(Numeric::parse(digits)?), target, context);
        }
        JsonView::Null => "null",
        JsonView::Boolean(_) => "boolean",
        JsonView::Number(_) => "numeric",
        JsonView::String(_) => "string",
        JsonView::Array(_) => "array",
        JsonView::Object(_) => "object",
    };
    let message = format!("cannot cast jsonb {found} to type {}", target.family());
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

fn to_integer(value: &Value, target: DataType, context: Context) -> Result<Option<Value>, SqlError> {
    let number = match value {
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) => value.as_integer(),
        Value::Numeric(number) => Some(match target {
            DataType::SmallInt => number.to_i16()?.into(),
            DataType::Integer => number.to_i32()?.into(),
            _ => number.to_i64()?,
        }),
        Value::Double(number) => Some(double_to_i64(*number, target)?),
        Value::Real(number) => Some(double_to_i64(f64::from(*number), target)?),
        Value::Boolean(truth) if context == Context::Explicit && target == DataType::Integer => {
            Some(i64::from(*truth))
        }
        _ => None,
    };
    let narrowed = |number: i64| match target {
        DataType::SmallInt => i16::try_from(number).map(Value::SmallInt),
        DataType::Integer => i32::try_from(number).map(Value::Integer),
        _ => Ok(Value::BigInt(number)),
    };
    number.map(|number| narrowed(number).map_err(|_| out_of_range(&target.to_string()))).transpose()
}

fn to_double(value: &Value) -> Result<Option<Value>, SqlError> {
    Ok(Some(Value::Double(match value {
        Value::SmallInt(number) => f64::from(*number),
        Value::Integer(number) => f64::from(*number),
        Value::BigInt(number) => *number as f64,
        Value::Numeric(number) => number.to_f64()?,
        Value::Real(number) => f64::from(*number),
        _ => return Ok(None),
    })))
}

fn to_real(value: &Value) -> Result<Option<Value>, SqlError> {
    Ok(Some(match value {
        Value::SmallInt(number) => Value::Real(f32::from(*number)),
        Value::Integer(number) => Value::Real(*number as f32),
        Value::BigInt(number) => Value::Real(*number as f32),
        Value::Numeric(number) => Value::Real(crate::real::parse_real(&number.to_string())?),
        Value::Double(number) => Value::Real(crate::real::narrow(*number)?),
        _ => return Ok(None),
    }))
}

/// Dates, times and timestamps of one another, instants in the zone of the session.
fn to_point_in_time(value: &Value, target: DataType) -> Result<Option<Value>, SqlError> {
    Ok(Some(match (value, target) {
        (Value::Date(date), DataType::Timestamp) => Value::Timestamp(timestamp_of_date(*date)?),
        (Value::Date(date), DataType::TimestampTz) => {
            Value::TimestampTz(session_instant_of(timestamp_of_date(*date)?)?)
        }
        (Value::Timestamp(at), DataType::TimestampTz) => Value::TimestampTz(session_instant_of(*at)?),
        (Value::TimestampTz(at), DataType::Timestamp) => Value::Timestamp(session_local_of(*at)?),
        (Value::Timestamp(at), DataType::Date) => Value::Date(date_of_timestamp(*at)?),
        (Value::TimestampTz(at), DataType::Date) => Value::Date(date_of_timestamp(session_local_of(*at)?)?),
        // As in PostgreSQL, where there is no time of day.
        (Value::Timestamp(at) | Value::TimestampTz(at), DataType::Time) if !is_finite_timestamp(*at) => {
            Value::Null
        }
        (Value::Timestamp(at), DataType::Time) => Value::Time(time_of_timestamp(*at)),
        (Value::TimestampTz(at), DataType::Time) => Value::Time(time_of_timestamp(session_local_of(*at)?)),
        (Value::Time(time), DataType::Interval) => {
            Value::Interval(Interval { microseconds: *time, ..Interval::default() })
        }
        (Value::Interval(interval), DataType::Time) => Value::Time(time_of_timestamp(interval.microseconds)),
        _ => return Ok(None),
    }))
}

fn to_array(value: &Value, element: ElementType, context: Context) -> Result<Option<Value>, SqlError> {
    let Value::Array(array) = value else { return Ok(None) };
    let target = element.data_type();
    if array.element() == element {
        return Ok(Some(value.clone()));
    }
    let elements = array.values().iter().map(|value| convert(value.clone(), target, context));
    let array = Array::new(element, values_with_room(elements)?)?;
    Ok(Some(Value::Array(Arc::new(array))))
}

fn to_numeric(
    value: &Value,
    modifier: Option<(u16, i16)>,
    target: DataType,
    context: Context,
) -> Result<Value, SqlError> {
    let numeric = match (value, modifier) {
        (Value::SmallInt(number), _) => Numeric::from(i32::from(*number)),
        (Value::Integer(number), _) => Numeric::from(*number),
        (Value::BigInt(number), _) => Numeric::from(*number),
        (Value::Real(number), _) => Numeric::from_f32(*number)?,
        (Value::Numeric(number), _) => number.clone(),
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
    let text = text_of(value)?;
    let Some(length) = length else {
        return Ok(Value::Text(text));
    };
    let kept = match context {
        Context::Explicit => truncate(&text, length),
        Context::Assignment => fit_length(&text, length)?,
    };
    Ok(Value::Text(if kept.len() == text.len() { text } else { Arc::from(kept) }))
}

/// The cast to text of any length.
fn text_of(value: Value) -> Result<Arc<str>, SqlError> {
    let text: Arc<str> = match value {
        Value::Text(text) => text,
        Value::Char(text) => Arc::from(unpadded(&text)),
        Value::Boolean(truth) => Arc::from(if truth { "true" } else { "false" }),
        other => Arc::from(format_value(&other).unwrap_or_default()),
    };
    check_text_length(text.len())?;
    Ok(text)
}

fn to_char(value: Value, length: Option<u32>, context: Context) -> Result<Value, SqlError> {
    let text = match value {
        Value::Char(text) => text,
        other => text_of(other)?,
    };
    let kept = match (context, length) {
        (Context::Explicit, Some(length)) => truncate(&text, length),
        _ => fit_char(&text, length)?,
    };
    let missing = length.is_some_and(|length| kept.chars().count() < length as usize);
    Ok(Value::Char(match missing {
        false if kept.len() == text.len() => text,
        _ => Arc::from(pad_to(kept, length)?),
    }))
}

/// Rounds halves to even as PostgreSQL does.
fn double_to_i64(value: f64, target: DataType) -> Result<i64, SqlError> {
    let bits = match target {
        DataType::SmallInt => 15,
        DataType::Integer => 31,
        _ => 63,
    };
    let rounded = value.round_ties_even();
    // A power of two is exact as a double.
    let end = (1u64 << bits) as f64;
    // NaN is in no range.
    if (-end..end).contains(&rounded) { Ok(rounded as i64) } else { Err(out_of_range(&target.to_string())) }
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
