//! What functions and forms of arrays share.

use crate::work;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Array, ElementType, SqlError, Value};

/// Goes over all values once.
pub(super) fn once(values: &[Value]) -> u64 {
    values.iter().map(work::of_value).sum()
}

/// Goes over what the elements hold as well.
pub(super) fn elements(values: &[Value]) -> u64 {
    let held = values.iter().map(|value| elements_units(elements_of(value))).sum::<u64>();
    held.saturating_add(once(values))
}

pub(super) fn made(element: ElementType, values: Vec<Value>) -> Result<Value, SqlError> {
    Ok(Value::Array(Arc::new(Array::new(element, values)?)))
}

/// None for NULL.
pub(super) fn elements_of(array: &Value) -> &[Value] {
    match array {
        Value::Array(array) => array.values(),
        _ => &[],
    }
}

/// The work of going over what elements hold.
pub(super) fn elements_units(elements: &[Value]) -> u64 {
    elements.iter().map(work::of_value).sum()
}

pub(super) fn is_equal(left: &Value, right: &Value) -> bool {
    left.compare(right) == Some(Ordering::Equal)
}

/// Equal, or both NULL.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    left.sort_compare(right).is_eq()
}
