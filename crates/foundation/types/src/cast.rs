use crate::arithmetic::{number_rank, out_of_range};
use crate::array::values_with_room;
use crate::bit_string::check_fits;
use crate::datetime::{
    date_of_timestamp, is_finite_timestamp, round_time, time_of_timestamp, timestamp_of_date,
};
use crate::session_format::{session_instant_of, session_local_of};
use crate::text::{
    check_text_length, fit_char, fit_length, format_value, pad_to, parse_value, truncate, unpadded,
};
use crate::{
    BitString, DataType, ElementType, Hstore, Interval, JsonView, Jsonb, Multirange, Numeric, RangeType,
    SqlError, SqlState, TimeTz, Value,
};
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
/// time, between `char(n)` and text, from `citext` to text, from integers to `oid`, and a literal of unknown type to anything.
pub fn can_cast_implicitly(from: DataType, to: DataType) -> bool {
    let (from, to) = (from.family(), to.family());
    if from == to || from == DataType::Unknown {
        return true;
    }
    use DataType::{
        Bit, Char, Cidr, Citext, Date, Inet, Interval, Text, Time, TimeTz, Timestamp, TimestampTz, VarBit,
    };
    matches!((number_rank(from), number_rank(to)), (Some(from), Some(to)) if from < to)
        || matches!(
            (from, to),
            (Date, Timestamp | TimestampTz)
                | (Timestamp, TimestampTz)
                | (Time, Interval)
                | (Text(_), Char(_))
                | (Char(_), Text(_))
                | (Time, TimeTz)
                | (Cidr, Inet)
                | (Bit(_), VarBit(_))
                | (VarBit(_), Bit(_))
                | (Citext, Text(_))
        )
        || (from.is_integer() && to == DataType::Oid)
        // Whether the fields fit is told where the cast is bound.
        || matches!((from, to), (DataType::Composite(_), DataType::Record) | (DataType::Record, DataType::Composite(_)))
        || matches!((from.element(), to.element()), (Some(from), Some(to)) if can_cast_implicitly(from, to))
}

/// True where PostgreSQL casts by itself when a value is stored in a column or variable: between all numbers, from a
/// point in time to its date or time, between `json` and `jsonb`, and anything to text.
pub fn can_cast_in_assignment(from: DataType, to: DataType) -> bool {
    use DataType::{Char, Cidr, Date, Inet, Interval, Text, Time, TimeTz, Timestamp, TimestampTz};
    let to = to.unrounded();
    can_cast_implicitly(from, to)
        || matches!(to, Text(_) | Char(_) | DataType::Citext)
        || (number_rank(from).is_some() && number_rank(to).is_some())
        || matches!(
            (from, to),
            (TimestampTz, Timestamp | Date | Time | TimeTz)
                | (Timestamp, Date | Time)
                | (Interval, Time)
                | (TimeTz, Time)
                | (Inet, Cidr)
                | (DataType::Json, DataType::Jsonb)
                | (DataType::Jsonb, DataType::Json)
                | (DataType::Oid, DataType::Integer | DataType::BigInt)
        )
        || matches!((from.element(), to.element()), (Some(from), Some(to)) if can_cast_in_assignment(from, to))
}

/// True where PostgreSQL has a cast that has to be written: text to anything, between `hstore` and what it is made of and shown as, between boolean and integer, between `bit(n)` and
/// integers, from `jsonb` to boolean and numbers, and from ranges to multiranges of them.
pub fn can_cast_explicitly(from: DataType, to: DataType) -> bool {
    can_cast_in_assignment(from, to)
        || matches!(from, DataType::Text(_) | DataType::Char(_) | DataType::Citext)
        || matches!(
            (from, to),
            (DataType::Boolean, DataType::Integer)
                | (DataType::Integer, DataType::Boolean)
                | (DataType::Bit(_), DataType::Integer | DataType::BigInt)
                | (DataType::Integer | DataType::BigInt, DataType::Bit(_))
        )
        || (from == DataType::Hstore && matches!(to, DataType::Json | DataType::Jsonb))
        || (to == DataType::Hstore && from.family() == DataType::Array(ElementType::TEXT))
        || (from == DataType::Jsonb && (to == DataType::Boolean || number_rank(to).is_some()))
        || matches!((from, to), (DataType::Range(from), DataType::Multirange(to)) if from == to)
        || matches!((from.element(), to.element()), (Some(from), Some(to)) if can_cast_explicitly(from, to))
}

/// The type in which values of two types compare, by PostgreSQL's operators; `None` where there is none.
pub fn comparison_type(left: DataType, right: DataType) -> Option<DataType> {
    use DataType::{Bit, Char, Citext, Double, Interval, Real, Text, Time, VarBit};
    match (left, right) {
        // There is no operator that compares them.
        (left, right) if left.is_unordered() || right.is_unordered() => None,
        (DataType::RefCursor, _) | (_, DataType::RefCursor) => None,
        (Real, Real) => Some(Real),
        // There are operators of real among themselves and with double precision, and the latter is preferred.
        (Real, other) | (other, Real) if number_rank(other).is_some() => Some(Double),
        // There are operators of text and of bpchar; what varchar is compared with decides.
        (Char(_), Text(Some(_))) | (Text(Some(_)), Char(_)) => Some(Char(None)),
        (Char(_), Text(_) | Citext) | (Text(_) | Citext, Char(_)) => Some(Text(None)),
        (Time, Interval) | (Interval, Time) => Some(Interval),
        (Bit(_), VarBit(_)) | (VarBit(_), Bit(_)) => Some(VarBit(None)),
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
        DataType::Citext if !matches!(value, Value::Citext(_)) => return text_of(value).map(Value::Citext),
        DataType::RefCursor => return to_text(value, None, context),
        DataType::Rounded(of, digits) => {
            return Ok(round_time(convert(value, of.data_type(), context)?, digits));
        }
        _ => {}
    }
    let converted = match &value {
        Value::Text(text) | Value::Char(text) | Value::Citext(text) if target != DataType::Citext => {
            match target {
                // A cast cuts off or fills up what was written with another length.
                _ if context == Context::Explicit && is_of_bits(target) && target != target.family() => {
                    return convert(parse_value(text, target.family())?, target, context);
                }
                _ => return parse_value(text, target),
            }
        }
        Value::Hstore(hstore) if target.is_json() && context == Context::Explicit => {
            return Ok(match target {
                DataType::Json => Value::Json(Arc::from(hstore.to_json(false)?)),
                _ => Value::Jsonb(Jsonb::parse(&hstore.to_json(false)?)?),
            });
        }
        Value::Array(array) if target == DataType::Hstore && context == Context::Explicit => {
            Some(Value::Hstore(Hstore::of_array(array)?))
        }
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
            DataType::Multirange(range_type) if context == Context::Explicit => {
                to_multirange(&value, range_type)?
            }
            DataType::Bit(length) => to_bits(&value, length, false, context)?,
            DataType::VarBit(length) => to_bits(&value, length, true, context)?,
            DataType::TimeTz => to_time_tz(&value)?,
            DataType::Inet | DataType::Cidr => to_address(&value, target),
            DataType::Oid => to_oid(&value)?,
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
        Value::Oid(number) => match target {
            // The bits are those of the number.
            DataType::Integer => Some(i64::from(number.cast_signed())),
            DataType::BigInt => Some(i64::from(*number)),
            _ => None,
        },
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
        Value::Bit(bits) if context == Context::Explicit => match target {
            // The bits are those of the number, also its sign.
            DataType::Integer => Some(i64::from(number_of(bits, 32, target)? as i32)),
            DataType::BigInt => Some(number_of(bits, 64, target)? as i64),
            _ => None,
        },
        _ => None,
    };
    let narrowed = |number: i64| match target {
        DataType::SmallInt => i16::try_from(number).map(Value::SmallInt),
        DataType::Integer => i32::try_from(number).map(Value::Integer),
        _ => Ok(Value::BigInt(number)),
    };
    number.map(|number| narrowed(number).map_err(|_| out_of_range(&target.to_string()))).transpose()
}

fn number_of(bits: &BitString, most: u32, target: DataType) -> Result<u64, SqlError> {
    bits.to_integer(most).ok_or_else(|| out_of_range(&target.to_string()))
}

/// Whether it is a string of bits, or an array of them.
fn is_of_bits(data_type: DataType) -> bool {
    matches!(data_type.element().unwrap_or(data_type), DataType::Bit(_) | DataType::VarBit(_))
}

/// Bits of a `bit(n)`, a `bit varying(n)`, an integer or a bigint. What is cast is cut off or filled up with zeros on the right, and
/// integers on the left.
fn to_bits(
    value: &Value,
    length: Option<u32>,
    is_varying: bool,
    context: Context,
) -> Result<Option<Value>, SqlError> {
    let is_explicit = context == Context::Explicit;
    // Without a length it is one bit.
    let of_number = |number, bits| BitString::of_integer(number, bits, length.unwrap_or(1)).map(Arc::new);
    let bits = match value {
        Value::Integer(number) if is_explicit && !is_varying => of_number(i64::from(*number), 32)?,
        Value::BigInt(number) if is_explicit && !is_varying => of_number(*number, 64)?,
        Value::Bit(bits) | Value::VarBit(bits) => match check_fits(bits, length, is_varying) {
            Ok(()) => bits.clone(),
            Err(error) => match length {
                Some(length) if is_explicit => Arc::new(bits.resized(length)?),
                _ => return Err(error),
            },
        },
        _ => return Ok(None),
    };
    Ok(Some(if is_varying { Value::VarBit(bits) } else { Value::Bit(bits) }))
}

/// The number of an object: of an integer its bits, of a bigint the same number.
fn to_oid(value: &Value) -> Result<Option<Value>, SqlError> {
    Ok(Some(Value::Oid(match value {
        Value::SmallInt(number) => i32::from(*number).cast_unsigned(),
        Value::Integer(number) => number.cast_unsigned(),
        Value::BigInt(number) => u32::try_from(*number).map_err(|_| out_of_range("OID"))?,
        _ => return Ok(None),
    })))
}

/// A time with the zone of the session, or what its clocks show at an instant.
fn to_time_tz(value: &Value) -> Result<Option<Value>, SqlError> {
    Ok(Some(match value {
        Value::Time(time) => Value::TimeTz(TimeTz::of_session(*time)?),
        Value::TimestampTz(at) => TimeTz::of_instant(*at)?.map_or(Value::Null, Value::TimeTz),
        _ => return Ok(None),
    }))
}

/// An `inet` or `cidr` of the other one: a `cidr` has no host.
fn to_address(value: &Value, target: DataType) -> Option<Value> {
    match (value, target) {
        (Value::Cidr(address), DataType::Inet) => Some(Value::Inet(*address)),
        (Value::Inet(address), DataType::Cidr) => Some(Value::Cidr(address.network())),
        _ => None,
    }
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
        (Value::TimeTz(time), DataType::Time) => Value::Time(time.microseconds),
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
    let array = array.with_values(element, values_with_room(elements)?)?;
    Ok(Some(Value::Array(Arc::new(array))))
}

fn to_multirange(value: &Value, range_type: RangeType) -> Result<Option<Value>, SqlError> {
    match value {
        Value::Range(range) if range.range_type() == range_type => {
            let multirange = Multirange::new(range_type, [&**range])?;
            Ok(Some(Value::Multirange(Arc::new(multirange))))
        }
        _ => Ok(None),
    }
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
        Value::Text(text) | Value::Citext(text) => text,
        Value::Char(text) => Arc::from(unpadded(&text)),
        Value::Boolean(truth) => Arc::from(if truth { "true" } else { "false" }),
        // Always with its prefix.
        Value::Inet(address) => Arc::from(address.prefixed_text()),
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
    fn a_range_becomes_a_multirange_where_that_is_written() {
        let (range, multirange) = (DataType::Range(RangeType::Int4), DataType::Multirange(RangeType::Int4));
        let value = parse_value("[1,5)", range).expect("a range");
        assert_eq!(cast(value.clone(), multirange), parse_value("{[1,5)}", multirange));
        assert_eq!(cast(value.clone(), DataType::Text(None)), Ok(Value::text("[1,5)")));
        assert!(assign(value.clone(), multirange).is_err() && !can_cast_in_assignment(range, multirange));
        let error = cast(value, DataType::Range(RangeType::Int8)).expect_err("there is no such cast");
        assert_eq!(error.message, "cannot cast type int4range to int8range");
        assert!(!can_cast_explicitly(range, DataType::Multirange(RangeType::Int8)));
        assert!(!can_cast_explicitly(multirange, range));
        assert_eq!(common_type([range, DataType::Unknown]), Some(range));
        assert_eq!(common_type([range, multirange]), None);
    }

    #[test]
    fn bits_are_filled_up_by_a_cast_and_refused_by_an_assignment() {
        let bits = |text, length| parse_value(text, DataType::Bit(length)).expect("bits");
        let target = DataType::Bit(Some(4));
        assert_eq!(cast(Value::text("101"), target), Ok(bits("1010", None)));
        assert_eq!(cast(bits("10111", None), target), Ok(bits("1011", None)));
        for value in [Value::text("101"), bits("101", None)] {
            let error = assign(value, target).expect_err("too short");
            assert_eq!(error.message, "bit string length 3 does not match type bit(4)");
        }
        // As PostgreSQL casts arrays.
        let arrays = target.array().expect("a type that has arrays");
        let filled = cast(Value::text("{101,10111}"), arrays).expect("an array");
        assert_eq!(crate::format_value(&filled).as_deref(), Some("{1010,1011}"));
        assert!(assign(Value::text("{101}"), arrays).is_err());
        assert_eq!(comparison_type(target, DataType::VarBit(Some(3))), Some(DataType::VarBit(None)));
        assert_eq!(comparison_type(target, DataType::Bit(Some(3))), Some(DataType::Bit(None)));
        assert_eq!(comparison_type(DataType::Cidr, DataType::Inet), Some(DataType::Inet));
        assert_eq!(comparison_type(DataType::Time, DataType::TimeTz), Some(DataType::TimeTz));
        assert_eq!(comparison_type(DataType::Inet, DataType::Text(None)), None);
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
