//! Arrays as elements of another one, which has a dimension more.

use std::sync::Arc;
use types::{Array, Dimension, Dimensions, ElementType, SqlError, SqlState, Value, check_array_elements};

/// Refuses an array that does not go together with the first one of those that `array_agg` puts side by side.
///
/// # Errors
/// `22004` for NULL, `2202E` for one without elements or with other dimensions.
pub fn check_accumulated(first: Option<&Value>, array: &Value) -> Result<(), SqlError> {
    let Value::Array(array) = array else {
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays"));
    };
    let wrong = |message: &str| Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    if array.values().is_empty() {
        return wrong("cannot accumulate empty arrays");
    }
    types::check_dimensions(array.dimensions().len() + 1)?;
    match first {
        Some(Value::Array(first)) if first.dimensions() != array.dimensions() => {
            wrong("cannot accumulate arrays of different dimensionality")
        }
        _ => Ok(()),
    }
}

/// These arrays side by side, as `array_agg` has them.
///
/// # Errors
/// As [`check_accumulated`]; `54000` where it becomes too large.
pub fn accumulated(element: ElementType, arrays: &[Value]) -> Result<Value, SqlError> {
    arrays.iter().try_for_each(|array| check_accumulated(arrays.first(), array))?;
    nested(element, arrays)
}

/// Arrays of the same dimensions as elements of another one; NULL counts as one without elements.
///
/// # Errors
/// `2202E` where their dimensions differ, `54000` where it becomes too large.
pub fn nested(element: ElementType, arrays: &[Value]) -> Result<Value, SqlError> {
    let mut inner: Option<Dimensions> = None;
    let mut values = Vec::new();
    for array in arrays {
        let (dimensions, elements) = match array {
            Value::Array(array) => (array.dimensions(), array.values()),
            _ => (Dimensions::new(), &[][..]),
        };
        if *inner.get_or_insert(dimensions.clone()) != dimensions {
            let message = "multidimensional arrays must have array expressions with matching dimensions";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        }
        check_array_elements(values.len() + elements.len())?;
        values.extend_from_slice(elements);
    }
    let inner = inner.filter(|inner| !inner.is_empty());
    let dimensions: Dimensions = match inner {
        Some(inner) => std::iter::once(Dimension::of(arrays.len())).chain(inner).collect(),
        None => Dimensions::new(),
    };
    Ok(Value::Array(Arc::new(Array::shaped(element, &dimensions, values)?)))
}
