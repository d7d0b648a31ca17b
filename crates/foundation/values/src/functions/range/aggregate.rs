//! What `range_agg` comes to, and each step of `range_intersect_agg`.

use super::construct::ranges;
use super::{multirange, range};
use crate::functions::entry::misplaced;
use crate::work;
use types::{Bounds, Multirange, RangeType, SqlError, Value};

/// The multirange of all that is in these ranges or multiranges, which are of one type: `range_agg`. NULLs do not count; NULL where there
/// is nothing else.
///
/// # Errors
/// `54000` where it is too long, `57014` where it takes more work than there is left.
pub fn range_union_all(values: &[Value]) -> Result<Value, SqlError> {
    work::spend(ranges(values))?;
    let mut found: Option<RangeType> = None;
    let mut each: Vec<&Bounds> = Vec::new();
    for value in values {
        match value {
            Value::Null => {}
            Value::Range(range) => {
                found = Some(range.range_type());
                each.extend(range.bounds());
            }
            Value::Multirange(ranges) => {
                found = Some(ranges.range_type());
                each.extend(ranges.ranges());
            }
            _ => return Err(misplaced(values)),
        }
    }
    found.map_or(Ok(Value::Null), |range_type| multirange(Multirange::of_bounds(range_type, each)))
}

/// What is in both, which are ranges or multiranges of one type: a step of `range_intersect_agg`.
///
/// # Errors
/// `54000` where it is too long, `57014` where it takes more work than there is left.
pub fn range_intersection(left: &Value, right: &Value) -> Result<Value, SqlError> {
    work::spend(work::of_value(left).saturating_add(work::of_value(right)))?;
    match (left, right) {
        (Value::Range(left), Value::Range(right)) => range(left.intersection(right)),
        (Value::Multirange(left), Value::Multirange(right)) => multirange(left.intersection(right)),
        _ => Err(misplaced(&[left.clone(), right.clone()])),
    }
}
