//! What `range_agg` and `range_intersect_agg` come to.

use super::construct::ranges;
use super::{multirange, range};
use crate::functions::entry::{Computed, misplaced};
use crate::work;
use types::{Multirange, Range, RangeType, SqlError, Value};

/// The multirange of all that is in these ranges or multiranges, which are of one type: `range_agg`. NULLs do not count; NULL where there
/// is nothing else.
///
/// # Errors
/// `54000` where it is too long, `57014` where it takes more work than there is left.
pub fn range_union_all(values: &[Value]) -> Result<Value, SqlError> {
    work::spend(ranges(values))?;
    let mut found: Option<RangeType> = None;
    let mut each: Vec<Range> = Vec::new();
    for value in values {
        match value {
            Value::Null => {}
            Value::Range(range) => {
                found = Some(range.range_type());
                each.push(Range::clone(range));
            }
            Value::Multirange(ranges) => {
                found = Some(ranges.range_type());
                each.extend(ranges.to_ranges());
            }
            _ => return Err(misplaced(values)),
        }
    }
    found.map_or(Ok(Value::Null), |range_type| multirange(Multirange::new(range_type, &each)))
}

/// What is in all of these ranges or multiranges, which are of one type: `range_intersect_agg`. NULLs do not count; NULL where there is
/// nothing else.
///
/// # Errors
/// `54000` where it is too long, `57014` where it takes more work than there is left.
pub fn range_intersect_all(values: &[Value]) -> Result<Value, SqlError> {
    let mut common = Value::Null;
    for value in values.iter().filter(|value| !value.is_null()) {
        common = intersection(&common, value)?;
    }
    Ok(common)
}

fn intersection(common: &Value, value: &Value) -> Computed {
    work::spend(ranges(&[common.clone(), value.clone()]))?;
    match (common, value) {
        (Value::Null, Value::Range(_) | Value::Multirange(_)) => Ok(value.clone()),
        (Value::Range(left), Value::Range(right)) => range(left.intersection(right)),
        (Value::Multirange(left), Value::Multirange(right)) => multirange(left.intersection(right)),
        _ => Err(misplaced(&[common.clone(), value.clone()])),
    }
}
