//! Values of SQL as scalars of Arrow, and arrays as values of SQL.

use crate::reason::OnRows;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Decimal128Array, new_empty_array};
use arrow_schema::DataType as ArrowType;
use datafusion_common::ScalarValue;
use std::sync::Arc;
use types::{DataType, Numeric, Value};

/// Digits behind the point of numeric values of several scales.
const ANY_SCALE: u8 = 20;

/// Arrays of numeric values of several scales. Such a value has its own only for as long as nobody asks how many digits it shows.
pub(crate) const ANY_NUMERIC: ArrowType = ArrowType::Decimal128(38, ANY_SCALE as i8);

/// A value as a scalar, of the type that arrays of its SQL type have.
pub(crate) fn scalar_of(value: &Value, data_type: DataType) -> Result<ScalarValue, OnRows> {
    Ok(match value {
        Value::Null => match state::column_type(data_type) {
            Some(arrow) => ScalarValue::try_from(&arrow)?,
            None if matches!(data_type, DataType::Numeric(_)) => ScalarValue::Decimal128(None, 1, 0),
            None => return Err(OnRows::because(format_args!("NULL of type {data_type}"))),
        },
        Value::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Value::SmallInt(value) => ScalarValue::Int16(Some(*value)),
        Value::Integer(value) | Value::Date(value) => ScalarValue::Int32(Some(*value)),
        Value::BigInt(value) | Value::Time(value) | Value::Timestamp(value) | Value::TimestampTz(value) => {
            ScalarValue::Int64(Some(*value))
        }
        Value::Text(text) | Value::Char(text) => ScalarValue::Utf8View(Some(text.to_string())),
        Value::Numeric(number) => decimal_of(number)?,
        Value::Real(number) => ScalarValue::Float32(Some(*number)),
        Value::Double(number) => ScalarValue::Float64(Some(*number)),
        _ => return Err(OnRows::because(format_args!("a value of type {data_type}"))),
    })
}

/// A number with the scale that it has, and as many digits as it needs.
fn decimal_of(number: &Numeric) -> Result<ScalarValue, OnRows> {
    let refused = || OnRows::because("a numeric value of more than 38 digits");
    let mantissa = number.small_mantissa().ok_or_else(refused)?;
    let digits = mantissa.unsigned_abs().checked_ilog10().map_or(1, |digits| digits + 1);
    let (scale, precision) = (u32::from(number.scale()), digits.max(u32::from(number.scale())).max(1));
    if precision > 38 {
        return Err(refused());
    }
    Ok(ScalarValue::Decimal128(Some(mantissa), precision as u8, scale as i8))
}

/// A decimal scalar in another type of the same or a larger scale; `None`: it does not fit.
pub(crate) fn rescaled(scalar: &ScalarValue, wanted: &ArrowType) -> Option<ScalarValue> {
    let (ScalarValue::Decimal128(value, _, scale), ArrowType::Decimal128(precision, wanted)) =
        (scalar, wanted)
    else {
        return None;
    };
    let more = u32::try_from(wanted.checked_sub(*scale)?).ok()?;
    let value = match value {
        Some(value) => Some(value.checked_mul(10_i128.checked_pow(more)?)?),
        None => None,
    };
    let digits =
        value.and_then(|value: i128| value.unsigned_abs().checked_ilog10()).map_or(1, |digits| digits + 1);
    (digits <= u32::from(*precision)).then_some(ScalarValue::Decimal128(value, *precision, *wanted))
}

/// The value at a position of an array of [`state::column_type`].
pub(crate) fn value_at(array: &ArrayRef, row: usize, data_type: DataType) -> Result<Value, OnRows> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    let refused = || OnRows::because(format_args!("{data_type} in an array of {}", array.data_type()));
    let long = || match array.data_type() {
        ArrowType::Int16 => Ok(i64::from(array.as_primitive::<Int16Type>().value(row))),
        ArrowType::Int32 => Ok(i64::from(array.as_primitive::<Int32Type>().value(row))),
        ArrowType::Int64 => Ok(array.as_primitive::<Int64Type>().value(row)),
        _ => Err(refused()),
    };
    let text = || array.as_string_view_opt().map(|texts| texts.value(row)).ok_or_else(refused);
    Ok(match data_type.family() {
        DataType::Boolean => Value::Boolean(array.as_boolean_opt().ok_or_else(refused)?.value(row)),
        DataType::SmallInt => Value::SmallInt(i16::try_from(long()?).map_err(|_| refused())?),
        DataType::Integer => Value::Integer(i32::try_from(long()?).map_err(|_| refused())?),
        DataType::Date => Value::Date(i32::try_from(long()?).map_err(|_| refused())?),
        DataType::BigInt => Value::BigInt(long()?),
        DataType::Time => Value::Time(long()?),
        DataType::Timestamp => Value::Timestamp(long()?),
        DataType::TimestampTz => Value::TimestampTz(long()?),
        DataType::Numeric(_) => Value::Numeric(numeric_at(array, row)?),
        DataType::Text(_) => Value::text(text()?),
        DataType::Char(_) => Value::Char(text()?.into()),
        DataType::Real => {
            Value::Real(array.as_primitive_opt::<Float32Type>().ok_or_else(refused)?.value(row))
        }
        DataType::Double => {
            Value::Double(array.as_primitive_opt::<Float64Type>().ok_or_else(refused)?.value(row))
        }
        _ => return Err(refused()),
    })
}

/// The number at a position of an array of decimals, with the array's scale.
pub(crate) fn numeric_at(array: &ArrayRef, row: usize) -> Result<Numeric, OnRows> {
    match array.data_type() {
        ArrowType::Decimal128(_, scale) => {
            let scale = u8::try_from(*scale).map_err(|_| OnRows::because("a negative scale"))?;
            Ok(Numeric::new(array.as_primitive::<Decimal128Type>().value(row), scale))
        }
        other => Err(OnRows::because(format_args!("a number in an array of {other}"))),
    }
}

/// Values as an array of the type that arrays of their SQL type have.
pub(crate) fn array_of(values: &[Value], data_type: DataType, arrow: &ArrowType) -> Result<ArrayRef, OnRows> {
    if values.is_empty() {
        return Ok(new_empty_array(arrow));
    }
    let scalars = values.iter().map(|value| scalar_of(value, data_type));
    let scalars = scalars.collect::<Result<Vec<ScalarValue>, OnRows>>()?;
    let array = ScalarValue::iter_to_array(scalars)?;
    match array.data_type() == arrow {
        true => Ok(array),
        false => {
            Err(OnRows::because(format_args!("values of {} where {arrow} is expected", array.data_type())))
        }
    }
}

/// Numbers as an array of [`ANY_NUMERIC`].
pub(crate) fn numeric_column(numbers: impl Iterator<Item = Option<Numeric>>) -> Result<ArrayRef, OnRows> {
    let mantissa = |number: Option<Numeric>| number.map(|number| any_scale(&number)).transpose();
    let numbers = numbers.map(mantissa).collect::<Result<Vec<Option<i128>>, OnRows>>()?;
    let array = Decimal128Array::from(numbers).with_data_type(ANY_NUMERIC);
    Ok(Arc::new(array))
}

/// A number with [`ANY_SCALE`] digits behind the point, none of which is lost.
fn any_scale(number: &Numeric) -> Result<i128, OnRows> {
    let refused = || OnRows::because("a numeric value of more than 38 digits");
    let (mantissa, scale) = (number.small_mantissa().ok_or_else(refused)?, u32::from(number.scale()));
    let shifted = match u32::from(ANY_SCALE).checked_sub(scale) {
        Some(more) => 10_i128.checked_pow(more).and_then(|factor| mantissa.checked_mul(factor)),
        None => {
            let factor = 10_i128.checked_pow(scale - u32::from(ANY_SCALE));
            factor.filter(|factor| mantissa % factor == 0).map(|factor| mantissa / factor)
        }
    };
    let fits = |mantissa: &i128| mantissa.unsigned_abs() < 10_u128.pow(38);
    shifted.filter(fits).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_several_scales_keep_their_value_or_are_refused() {
        let array = numeric_column([Some(Numeric::new(15, 1)), None, Some(Numeric::new(-1, 20))].into_iter());
        let array = array.expect("they fit");
        assert_eq!(numeric_at(&array, 0).expect("a number"), Numeric::new(15, 1));
        assert!(array.is_null(1));
        assert_eq!(numeric_at(&array, 2).expect("a number"), Numeric::new(-1, 20));
        let thinner = Numeric::new(1, 21);
        assert!(numeric_column([Some(thinner)].into_iter()).is_err(), "a digit would be lost");
        assert!(numeric_column([Some(Numeric::new(10, 21))].into_iter()).is_ok());
        let larger = Numeric::new(10_i128.pow(18), 0);
        assert!(numeric_column([Some(larger)].into_iter()).is_err(), "it needs 39 digits");
    }
}
