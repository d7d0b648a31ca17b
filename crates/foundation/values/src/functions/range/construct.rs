//! Ranges of bounds, and multiranges of ranges.

use super::{V10, multirange, range};
use crate::functions::entry::Argument::To;
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Argument, Computed, Function, Types, misplaced};
use DataType::Unknown;
use types::{Bound, DataType, Multirange, Range, RangeType, SqlError, SqlState, Value};

/// Lower bound, upper bound, and which of both are in the range.
macro_rules! bounds {
    ($name:literal, $range_type:ident, $element:expr) => {{
        const LIST: &[Argument] = &[To($element), To($element), To(DataType::Text(None))];
        const RANGE: DataType = DataType::Range(RangeType::$range_type);
        Function::new(&[$name], LIST, Is(RANGE), |values| of_bounds(RangeType::$range_type, values))
            .optional(1)
            .sees_null()
            .since(V10)
    }};
}

/// Any number of ranges.
macro_rules! ranges {
    ($name:literal, $range_type:ident) => {
        Function::worked(
            &[$name],
            |given| any_number(RangeType::$range_type, given),
            |values| of_ranges(RangeType::$range_type, values),
        )
        .sees_null()
        .since(V10)
    };
}

pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    bounds!("int4range", Int4, DataType::Integer),
    bounds!("int8range", Int8, DataType::BigInt),
    bounds!("numrange", Num, DataType::Numeric(None)),
    bounds!("daterange", Date, DataType::Date),
    bounds!("tsrange", Ts, DataType::Timestamp),
    bounds!("tstzrange", TsTz, DataType::TimestampTz),
    ranges!("int4multirange", Int4),
    ranges!("int8multirange", Int8),
    ranges!("nummultirange", Num),
    ranges!("datemultirange", Date),
    ranges!("tsmultirange", Ts),
    ranges!("tstzmultirange", TsTz),
];

/// The multirange of the ranges in an array: `int4multirange(VARIADIC array)` and its kind
pub static MULTIRANGE_OF_ARRAY: Function = Function::form(&["multirange"], |values| match values {
    [Value::Array(array)] => match array.element().data_type() {
        DataType::Range(range_type) => all_of(range_type, array.values()),
        _ => Err(misplaced(values)),
    },
    _ => Err(misplaced(values)),
})
.costs(elements)
.since(V10);

/// Goes over the ranges in an array.
fn elements(values: &[Value]) -> u64 {
    match values {
        [Value::Array(array)] => ranges(array.values()),
        _ => 0,
    }
}

/// The work of putting ranges in order.
pub(super) fn ranges(values: &[Value]) -> u64 {
    /// As of a range in a multirange.
    const UNITS_PER_RANGE: u64 = 32;
    let each = values.iter().map(|value| crate::work::of_value(value).max(UNITS_PER_RANGE));
    each.fold(0, u64::saturating_add)
}

/// A bound that is NULL is missing.
fn of_bounds(range_type: RangeType, values: &[Value]) -> Computed {
    let [lower, upper, flags @ ..] = values else { return Err(misplaced(values)) };
    let (lower_included, upper_included) = match flags {
        [] => (true, false),
        [Value::Text(flags)] => included(flags)?,
        _ => {
            let message = "range constructor flags argument must not be null";
            return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
        }
    };
    let bound =
        |value: &Value, is_included| (!value.is_null()).then(|| Bound { value: value.clone(), is_included });
    range(Range::new(range_type, bound(lower, lower_included), bound(upper, upper_included)))
}

/// Which bounds are in the range.
fn included(flags: &str) -> Result<(bool, bool), SqlError> {
    match flags {
        "[]" => Ok((true, true)),
        "[)" => Ok((true, false)),
        "(]" => Ok((false, true)),
        "()" => Ok((false, false)),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid range bound flags")
            .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")),
    }
}

/// Ranges, or literals of them. A single literal is one of the multirange, as in a call that casts.
fn any_number(range_type: RangeType, given: &[DataType]) -> Option<Types> {
    let (range, multirange) = (DataType::Range(range_type), DataType::Multirange(range_type));
    if *given == [Unknown] {
        return Some((vec![multirange], multirange));
    }
    let are_ranges = given.iter().all(|found| *found == range || *found == Unknown);
    are_ranges.then(|| (vec![range; given.len()], multirange))
}

fn of_ranges(range_type: RangeType, values: &[Value]) -> Computed {
    match values {
        [Value::Null] => Ok(Value::Null),
        [Value::Multirange(_)] => Ok(values[0].clone()),
        _ => all_of(range_type, values),
    }
}

/// The multirange of all these ranges, none of which may be NULL.
fn all_of(range_type: RangeType, values: &[Value]) -> Computed {
    let each = values.iter().map(|value| match value {
        Value::Range(range) => Ok(&**range),
        Value::Null => {
            let message = "multirange values cannot contain null members";
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
        }
        _ => Err(misplaced(values)),
    });
    multirange(Multirange::new(range_type, each.collect::<Result<Vec<_>, _>>()?))
}
