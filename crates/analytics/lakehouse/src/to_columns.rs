//! Values to columns.

use crate::kind::Kind;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, PrimitiveArray, StringArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use std::sync::Arc;
use types::{Value, format_value};

/// Days from 1970-01-01, from which columns count, to 2000-01-01, from which the ledger does.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub(crate) const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// Columns of values; a value of another type than the column's is NULL there, which never happens in a ledger.
///
/// What a column cannot say is NULL, too: NaN in a decimal, and a timestamp above the year 294246. The row itself says it
/// ([`crate::ROW_COLUMN`]).
pub(crate) fn column(kind: &Kind, values: &[&Value]) -> ArrayRef {
    match kind {
        Kind::Boolean => {
            let values = values.iter().map(|value| match value {
                Value::Boolean(value) => Some(*value),
                _ => None,
            });
            Arc::new(values.collect::<BooleanArray>())
        }
        Kind::SmallInt => primitive::<Int16Type>(values, |value| match value {
            Value::SmallInt(value) => Some(*value),
            _ => None,
        }),
        Kind::Integer => primitive::<Int32Type>(values, |value| match value {
            Value::Integer(value) => Some(*value),
            _ => None,
        }),
        Kind::BigInt => primitive::<Int64Type>(values, |value| match value {
            Value::BigInt(value) => Some(*value),
            _ => None,
        }),
        Kind::Real => primitive::<Float32Type>(values, |value| match value {
            Value::Real(value) => Some(*value),
            _ => None,
        }),
        Kind::Double => primitive::<Float64Type>(values, |value| match value {
            Value::Double(value) => Some(*value),
            _ => None,
        }),
        Kind::Date => primitive::<Date32Type>(values, |value| match value {
            Value::Date(days) => Some(date(*days)),
            _ => None,
        }),
        Kind::Decimal { .. } | Kind::TimestampTz | Kind::Timestamp => number(kind, values),
        Kind::Text => Arc::new(values.iter().map(|value| text(value)).collect::<StringArray>()),
        Kind::Bytes => {
            let values = values.iter().map(|value| match value {
                Value::Bytea(bytes) => Some(bytes.as_ref()),
                _ => None,
            });
            Arc::new(values.collect::<BinaryArray>())
        }
        Kind::Written(_) => Arc::new(values.iter().map(|value| format_value(value)).collect::<StringArray>()),
        Kind::List(element, _) => list(element, values),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[&Value],
    native: impl Fn(&Value) -> Option<T::Native>,
) -> ArrayRef {
    Arc::new(values.iter().map(|value| native(value)).collect::<PrimitiveArray<T>>())
}

/// Those numbers whose type has something beside them.
fn number(kind: &Kind, values: &[&Value]) -> ArrayRef {
    let array: ArrayRef = match kind {
        Kind::Decimal { scale, .. } => primitive::<Decimal128Type>(values, |value| match value {
            Value::Numeric(number) if i32::from(number.scale()) == i32::from(*scale) => {
                number.small_mantissa()
            }
            _ => None,
        }),
        _ => primitive::<TimestampMicrosecondType>(values, |value| match value {
            Value::TimestampTz(moment) | Value::Timestamp(moment) => timestamp(*moment),
            _ => None,
        }),
    };
    // The same numbers under the whole type.
    match array.to_data().into_builder().data_type(kind.arrow_type()).build() {
        Ok(data) => arrow_array::make_array(data),
        Err(_) => array,
    }
}

/// Infinities are the largest numbers of both signs, which DuckDB shows as such.
fn date(days: i32) -> i32 {
    match days {
        i32::MAX => i32::MAX,
        i32::MIN => -i32::MAX,
        days => days.saturating_add(EPOCH_DAYS),
    }
}

fn timestamp(moment: i64) -> Option<i64> {
    match moment {
        i64::MAX => Some(i64::MAX),
        i64::MIN => Some(-i64::MAX),
        moment => moment.checked_add(EPOCH_MICROSECONDS).filter(|moment| *moment < i64::MAX),
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Char(text) => Some(text),
        _ => None,
    }
}

fn list(element: &Kind, values: &[&Value]) -> ArrayRef {
    let elements = |value: &Value| match value {
        Value::Array(array) => Some(array.values().len()),
        _ => None,
    };
    let lengths: Vec<Option<usize>> = values.iter().map(|value| elements(value)).collect();
    let all: Vec<&Value> = values
        .iter()
        .flat_map(|value| match value {
            Value::Array(array) => array.values(),
            _ => &[],
        })
        .collect();
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let nulls: NullBuffer = lengths.iter().map(Option::is_some).collect();
    let field = Arc::new(Kind::list_field(element));
    Arc::new(ListArray::new(field, offsets, column(element, &all), Some(nulls)))
}
