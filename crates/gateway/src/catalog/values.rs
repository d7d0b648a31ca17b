//! Between Arrow and the values of Entente.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as Arrow, Decimal128Type, Field, Float64Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use std::sync::Arc;
use types::{DataType, Numeric, Value, format_value};

/// Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time starts.
const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// The type that clients see for a column of Arrow's type.
pub(super) fn data_type(arrow: &Arrow) -> DataType {
    match arrow {
        Arrow::Boolean => DataType::Boolean,
        Arrow::Int8 | Arrow::Int16 | Arrow::Int32 | Arrow::UInt8 | Arrow::UInt16 => DataType::Integer,
        Arrow::Int64 | Arrow::UInt32 | Arrow::UInt64 => DataType::BigInt,
        Arrow::Float16 | Arrow::Float32 | Arrow::Float64 => DataType::Double,
        Arrow::Decimal128(_, scale) if *scale >= 0 => DataType::Numeric(None),
        Arrow::Timestamp(_, _) => DataType::TimestampTz,
        _ => DataType::Text(None),
    }
}

/// The type that Arrow has for a column of a user's table.
pub(super) fn arrow_type(data_type: DataType) -> Arrow {
    match data_type {
        DataType::Boolean => Arrow::Boolean,
        DataType::Integer => Arrow::Int32,
        DataType::BigInt => Arrow::Int64,
        DataType::Numeric(Some((precision, scale)))
            if precision <= 38 && (0..=precision.cast_signed()).contains(&scale) =>
        {
            Arrow::Decimal128(precision as u8, scale as i8)
        }
        DataType::Numeric(_) => Arrow::Decimal128(38, 10),
        DataType::Double => Arrow::Float64,
        DataType::SmallInt => Arrow::Int16,
        DataType::Real => Arrow::Float32,
        DataType::Date => Arrow::Date32,
        DataType::Timestamp => Arrow::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time => Arrow::Time64(TimeUnit::Microsecond),
        DataType::Bytea => Arrow::Binary,
        // What Arrow has no type for that means the same.
        DataType::Text(_)
        | DataType::Unknown
        | DataType::Char(_)
        | DataType::Interval
        | DataType::Uuid
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Record
        | DataType::RefCursor
        | DataType::Polymorphic(_) => Arrow::Utf8,
        DataType::TimestampTz => Arrow::Timestamp(TimeUnit::Microsecond, Some(Arc::from("+00:00"))),
    }
}

/// A column of a user's table in Arrow.
pub(super) fn arrow_field(name: &str, data_type: DataType, not_null: bool) -> Field {
    Field::new(name, arrow_type(data_type), !not_null)
}

/// The rows of a batch as values.
pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<Vec<Value>>, ArrowError> {
    let columns = batch.columns().iter().map(column).collect::<Result<Vec<Vec<Value>>, ArrowError>>()?;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let row = |_| columns.iter_mut().map(|column| column.next().unwrap_or(Value::Null)).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}

fn column(array: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    let at = |index: usize, value: &dyn Fn(usize) -> Value| {
        if array.is_null(index) { Value::Null } else { value(index) }
    };
    let all = |value: &dyn Fn(usize) -> Value| {
        (0..array.len()).map(|index| at(index, value)).collect::<Vec<Value>>()
    };
    Ok(match data_type(array.data_type()) {
        DataType::Boolean => {
            let array = array.as_boolean();
            all(&|index| Value::Boolean(array.value(index)))
        }
        DataType::Integer => {
            let array = cast(array, &Arrow::Int32)?;
            let array = array.as_primitive::<Int32Type>();
            all(&|index| Value::Integer(array.value(index)))
        }
        DataType::BigInt => {
            let array = cast(array, &Arrow::Int64)?;
            let array = array.as_primitive::<Int64Type>();
            all(&|index| Value::BigInt(array.value(index)))
        }
        DataType::Double => {
            let array = cast(array, &Arrow::Float64)?;
            let array = array.as_primitive::<Float64Type>();
            all(&|index| Value::Double(array.value(index)))
        }
        DataType::Numeric(_) => {
            let array = array.as_primitive::<Decimal128Type>();
            let scale = u8::try_from(array.scale()).unwrap_or(0);
            all(&|index| Value::Numeric(Numeric::new(array.value(index), scale)))
        }
        DataType::TimestampTz => {
            let zone = match array.data_type() {
                Arrow::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let array = cast(array, &Arrow::Timestamp(TimeUnit::Microsecond, zone))?;
            let array = array.as_primitive::<TimestampMicrosecondType>();
            all(&|index| Value::TimestampTz(array.value(index) - EPOCH_MICROSECONDS))
        }
        _ => texts(array)?,
    })
}

fn texts(array: &ArrayRef) -> Result<Vec<Value>, ArrowError> {
    if matches!(array.data_type(), Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View) {
        let array = cast(array, &Arrow::Utf8)?;
        let text = |value: Option<&str>| value.map_or(Value::Null, Value::text);
        return Ok(array.as_string::<i32>().iter().map(text).collect());
    }
    if let Some(list) = array.as_list_opt::<i32>() {
        return list.iter().map(|items| items.map_or(Ok(Value::Null), |items| list_text(&items))).collect();
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let text = |index: usize| {
        if array.is_null(index) { Value::Null } else { Value::text(formatter.value(index).to_string()) }
    };
    Ok((0..array.len()).map(text).collect())
}

/// A list as PostgreSQL writes arrays: `{a,NULL,"b c"}`.
fn list_text(items: &ArrayRef) -> Result<Value, ArrowError> {
    let item = |value: &Value| match format_value(value) {
        None => "NULL".to_string(),
        Some(text) => {
            let plain = !text.is_empty()
                && !text.eq_ignore_ascii_case("null")
                && !text.contains(|c: char| c.is_whitespace() || "{},\"\\".contains(c));
            if plain { text } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
        }
    };
    let items: Vec<String> = column(items)?.iter().map(item).collect();
    Ok(Value::text(format!("{{{}}}", items.join(","))))
}

/// A parameter for DataFusion.
pub(super) fn scalar(value: &Value) -> ScalarValue {
    match value {
        Value::Null => ScalarValue::Null,
        Value::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Value::Integer(value) => ScalarValue::Int32(Some(*value)),
        Value::BigInt(value) => ScalarValue::Int64(Some(*value)),
        Value::Numeric(value) => match value.small_mantissa() {
            Some(mantissa) => ScalarValue::Decimal128(Some(mantissa), 38, value.scale() as i8),
            None => ScalarValue::Utf8(Some(value.to_string())),
        },
        Value::Double(value) => ScalarValue::Float64(Some(*value)),
        Value::Text(value) => ScalarValue::Utf8(Some(value.to_string())),
        Value::TimestampTz(value) => {
            ScalarValue::TimestampMicrosecond(Some(value + EPOCH_MICROSECONDS), Some(Arc::from("+00:00")))
        }
        Value::SmallInt(value) => ScalarValue::Int16(Some(*value)),
        Value::Real(value) => ScalarValue::Float32(Some(*value)),
        Value::Timestamp(value) => {
            ScalarValue::TimestampMicrosecond(Some(value.saturating_add(EPOCH_MICROSECONDS)), None)
        }
        // The catalogue has no columns of these types.
        Value::Date(_)
        | Value::Time(_)
        | Value::Interval(_)
        | Value::Char(_)
        | Value::Bytea(_)
        | Value::Uuid(_)
        | Value::Array(_)
        | Value::Composite(_) => ScalarValue::Utf8(format_value(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ListArray, StringArray};

    #[test]
    fn lists_are_written_as_postgresql_writes_arrays() {
        let items: ArrayRef =
            Arc::new(StringArray::from(vec![Some("a"), None, Some("b c"), Some(""), Some("q\"")]));
        let written = list_text(&items).expect("text");
        assert_eq!(written, Value::text("{a,NULL,\"b c\",\"\",\"q\\\"\"}"));
        let numbers = vec![Some(vec![Some(1), Some(2)]), None];
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(numbers));
        assert_eq!(column(&list).expect("texts"), [Value::text("{1,2}"), Value::Null]);
    }
}
