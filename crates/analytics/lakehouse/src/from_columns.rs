//! Columns back to values: whoever verifies an export reads what is there.

use crate::kind::Kind;
use crate::to_columns::{EPOCH_DAYS, EPOCH_MICROSECONDS};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType};
use std::sync::Arc;
use types::{DataType, ElementType, Numeric, Value, parse_value};

/// The value that a column has at `row`. The column has the kind's type: whoever reads a file compares that.
///
/// # Errors
/// No value of the ledger stands there so: what it is.
pub(crate) fn value(
    kind: &Kind,
    data_type: DataType,
    column: &dyn Array,
    row: usize,
) -> Result<Value, String> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match kind {
        Kind::Boolean => Value::Boolean(column.as_boolean().value(row)),
        Kind::SmallInt => Value::SmallInt(native::<Int16Type>(column, row)),
        Kind::Integer => Value::Integer(native::<Int32Type>(column, row)),
        Kind::BigInt => Value::BigInt(native::<Int64Type>(column, row)),
        Kind::Real => Value::Real(native::<Float32Type>(column, row)),
        Kind::Double => Value::Double(native::<Float64Type>(column, row)),
        Kind::Decimal { scale, .. } => {
            let mantissa = native::<Decimal128Type>(column, row);
            Value::Numeric(Numeric::new(mantissa, scale.unsigned_abs()))
        }
        Kind::Text => text(data_type, column.as_string::<i32>().value(row)),
        Kind::Bytes => Value::Bytea(column.as_binary::<i32>().value(row).into()),
        Kind::Date => Value::Date(match native::<Date32Type>(column, row) {
            i32::MAX => i32::MAX,
            days if days == -i32::MAX => i32::MIN,
            days => days.checked_sub(EPOCH_DAYS).ok_or_else(|| format!("day {days}"))?,
        }),
        Kind::TimestampTz => Value::TimestampTz(timestamp(column, row)?),
        Kind::Timestamp => Value::Timestamp(timestamp(column, row)?),
        Kind::Written(written) => {
            let text = column.as_string::<i32>().value(row);
            parse_value(text, *written).map_err(|error| error.message)?
        }
        Kind::List(element, element_type) => {
            let elements = column.as_list::<i32>().value(row);
            let values = (0..elements.len())
                .map(|at| value(element, *element_type, elements.as_ref(), at))
                .collect::<Result<Vec<_>, _>>()?;
            let element =
                ElementType::new(*element_type).ok_or_else(|| format!("an array of {element_type}"))?;
            Value::Array(Arc::new(types::Array::new(element, values).map_err(|error| error.message)?))
        }
    })
}

fn native<T: ArrowPrimitiveType>(column: &dyn Array, row: usize) -> T::Native {
    column.as_primitive::<T>().value(row)
}

fn timestamp(column: &dyn Array, row: usize) -> Result<i64, String> {
    match native::<TimestampMicrosecondType>(column, row) {
        i64::MAX => Ok(i64::MAX),
        moment if moment == -i64::MAX => Ok(i64::MIN),
        moment => moment.checked_sub(EPOCH_MICROSECONDS).ok_or_else(|| format!("microsecond {moment}")),
    }
}

fn text(data_type: DataType, text: &str) -> Value {
    match data_type {
        DataType::Char(_) => Value::Char(text.into()),
        _ => Value::Text(text.into()),
    }
}
