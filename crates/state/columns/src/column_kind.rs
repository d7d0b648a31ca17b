//! What columns of each type are kept as, and about how much memory their values take.

use crate::booleans::Booleans;
use crate::fixed::FixedValues;
use crate::texts::Texts;
use crate::values::Values;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use state::column_type;
use types::{DataType, Value};

/// About how long texts are that nobody has seen yet.
const TEXT_BYTES_GUESSED: u64 = 16;

/// The values of a column of this type in a chunk that has no rows yet; nothing where such columns are not kept.
pub(crate) fn no_values(data_type: DataType) -> Option<Box<dyn Values>> {
    let arrow_type = column_type(data_type)?;
    macro_rules! fixed {
        ($arrow:ty, $variant:ident) => {
            Box::new(FixedValues::<$arrow, _>::new(arrow_type, |value: &Value| match value {
                Value::$variant(value) => Some(*value),
                _ => None,
            }))
        };
    }
    Some(match data_type.unrounded() {
        DataType::Boolean => Box::new(Booleans::new()),
        DataType::SmallInt => fixed!(Int16Type, SmallInt),
        DataType::Integer => fixed!(Int32Type, Integer),
        DataType::Date => fixed!(Int32Type, Date),
        DataType::BigInt => fixed!(Int64Type, BigInt),
        DataType::Time => fixed!(Int64Type, Time),
        DataType::Timestamp => fixed!(Int64Type, Timestamp),
        DataType::TimestampTz => fixed!(Int64Type, TimestampTz),
        DataType::Real => fixed!(Float32Type, Real),
        DataType::Double => fixed!(Float64Type, Double),
        DataType::Numeric(Some((precision, scale))) => {
            let end = 10u128.checked_pow(u32::from(precision))?;
            let mantissa = move |value: &Value| match value {
                Value::Numeric(number) if i32::from(number.scale()) == i32::from(scale) => {
                    number.small_mantissa().filter(|mantissa| mantissa.unsigned_abs() < end)
                }
                _ => None,
            };
            Box::new(FixedValues::<Decimal128Type, _>::new(arrow_type, mantissa))
        }
        DataType::Text(_) => Box::new(Texts::new(false)),
        DataType::Char(_) => Box::new(Texts::new(true)),
        _ => return None,
    })
}

/// About how many bytes one value takes; nothing where such columns are not kept.
pub(crate) fn value_bytes(data_type: DataType) -> Option<u64> {
    column_type(data_type)?;
    Some(match data_type.unrounded() {
        DataType::Boolean => 1,
        DataType::SmallInt => 2,
        DataType::Integer | DataType::Date | DataType::Real => 4,
        DataType::Numeric(_) => 16,
        DataType::Text(_) | DataType::Char(_) => 16 + TEXT_BYTES_GUESSED,
        _ => 8,
    })
}
