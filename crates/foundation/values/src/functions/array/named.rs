//! Functions of arrays that calls name.

use super::common::{elements, is_same, made, once};
use crate::functions::entry::Argument::{AnyArray, Array as AnArray, Element, To};
use crate::functions::entry::Gives::{ArrayOf, As, Is};
use crate::functions::entry::{Computed, Function, Types, code, free, misplaced, out_of_range};
use crate::length::check_length;
use DataType::{Integer, Unknown};
use std::sync::Arc;
use types::{
    Array, DataType, Dimension, Dimensions, ElementType, ExecutionVersion, SqlError, SqlState, Value,
    array_elements_max, arrays_are_plain, check_array_elements, format_value,
};

const TEXT: DataType = DataType::Text(None);

pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    // Array, dimension.
    Function::new(&["array_length"], &[AnyArray, To(Integer)], Is(Integer), code!(
        [Value::Array(array), Value::Integer(number)] => {
            Ok(dimension(array, *number).map_or(Value::Null, |found| Value::Integer(found.length as i32)))
        }
    ))
    .costs(free)
    .shown_as("length"),
    Function::new(&["array_upper"], &[AnyArray, To(Integer)], Is(Integer), code!(
        [Value::Array(array), Value::Integer(number)] => {
            Ok(dimension(array, *number).map_or(Value::Null, |found| Value::Integer(found.upper() as i32)))
        }
    ))
    .costs(free)
    .shown_as("length"),
    Function::new(&["array_lower"], &[AnyArray, To(Integer)], Is(Integer), code!(
        [Value::Array(array), Value::Integer(number)] => {
            Ok(dimension(array, *number).map_or(Value::Null, |found| Value::Integer(found.lower)))
        }
    ))
    .costs(free)
    .shown_as("lower"),
    Function::new(&["cardinality"], &[AnyArray], Is(Integer), code!(
        [Value::Array(array)] => Ok(Value::Integer(array.values().len() as i32)),
    ))
    .costs(free),
    Function::new(&["array_ndims"], &[AnyArray], Is(Integer), code!(
        [Value::Array(array)] => Ok(match array.dimensions().len() {
            0 => Value::Null,
            count => Value::Integer(count as i32),
        }),
    ))
    .costs(free)
    .shown_as("dimensions"),
    Function::new(&["array_dims"], &[AnyArray], Is(TEXT), code!(
        [Value::Array(array)] if array.values().is_empty() => Ok(Value::Null),
        [Value::Array(array)] => {
            let shown = |dimension: &Dimension| format!("[{}:{}]", dimension.lower, dimension.upper());
            Ok(Value::text(array.dimensions().iter().map(shown).collect::<String>()))
        },
    ))
    .costs(free)
    .shown_as("bounds"),
    Function::worked_array(&["array_append"], appended, |values, element| match values {
        [array, value] => appended_to(array, element, value),
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .shown_as("append"),
    Function::worked_array(&["array_prepend"], prepended, |values, element| match values {
        [value, array] => prepended_to(array, element, value),
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .shown_as("prepend"),
    Function::worked(&["array_cat"], concatenated, code!(
        [Value::Null, other] | [other, Value::Null] => Ok(other.clone()),
        [Value::Array(left), Value::Array(right)] => Ok(Value::Array(Arc::new(left.joined(right)?))),
    ))
    .sees_null()
    .costs(once)
    .shown_as("concatenate"),
    // Array, delimiter, what stands for NULL.
    Function::new(&["array_to_string"], &[AnArray, To(TEXT), To(TEXT)], Is(TEXT), code!(
        [Value::Array(array), Value::Text(delimiter), rest @ ..] => to_text(array, delimiter, rest.first()),
        [Value::Null, ..] | [_, Value::Null, ..] => Ok(Value::Null),
    )).stable()
    .optional(1)
    .sees_null()
    .costs(elements)
    .shown_as("totext"),
    // Text, delimiter, what stands for NULL.
    Function::new(&["string_to_array"], &[To(TEXT), To(TEXT), To(TEXT)], ArrayOf(TEXT), code!(
        [Value::Null, ..] => Ok(Value::Null),
        [Value::Text(text), delimiter, rest @ ..] => of_text(text, delimiter, rest.first()),
    ))
    .optional(1)
    .sees_null()
    .costs(once)
    .shown_as("oftext"),
    // Array, element, where to begin.
    Function::new(&["array_position"], &[AnArray, Element, To(Integer)], Is(Integer), code!(
        [Value::Null, ..] => Ok(Value::Null),
        [Value::Array(array), value, rest @ ..] => position(array, value, rest.first()),
    ))
    .optional(1)
    .sees_null()
    .costs(elements)
    .shown_as("position"),
    Function::new(&["array_positions"], &[AnArray, Element], ArrayOf(Integer), code!(
        [Value::Null, _] => Ok(Value::Null),
        [Value::Array(array), value] => positions(array, value),
    ))
    .sees_null()
    .costs(elements)
    .shown_as("positions"),
    Function::new(&["array_remove"], &[AnArray, Element], As(0), code!(
        [Value::Null, ..] => Ok(Value::Null),
        [Value::Array(array), value] => without(array, value),
    ))
    .sees_null()
    .costs(elements)
    .shown_as("remove"),
    Function::new(&["array_replace"], &[AnArray, Element, Element], As(0), code!(
        [Value::Null, ..] => Ok(Value::Null),
        [Value::Array(array), from, to] => {
            let each = |known: &Value| if is_same(known, from) { to.clone() } else { known.clone() };
            let values = array.values().iter().map(each).collect();
            Ok(Value::Array(Arc::new(array.with_values(array.element(), values)?)))
        }
    ))
    .sees_null()
    .costs(elements)
    .shown_as("replace"),
    Function::new(&["trim_array"], &[AnArray, To(Integer)], As(0), code!(
        [Value::Array(array), Value::Integer(count)] => trim(array, *count),
    ))
    .costs(once)
    .shown_as("trim"),
    // A value, and the lengths of the dimensions.
    Function::worked_array(&["array_fill"], filled, |values, element| match values {
        [value, lengths] => fill(element, value, lengths, None),
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .shown_as("fill"),
    // And with what subscripts they begin.
    Function::worked_array(&["array_fill"], filled_from, |values, element| match values {
        [value, lengths, lowers] => fill(element, value, lengths, Some(lowers)),
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .since(ExecutionVersion::V16)
    .shown_as("fill"),
];

/// The array that an array and a value make together: that of the array's elements, or of the value.
fn with_element(array: DataType, value: DataType) -> Option<(DataType, DataType)> {
    let array = match array {
        DataType::Array(_) => array.family(),
        Unknown if value != Unknown => value.array()?.family(),
        _ => return None,
    };
    Some((array, array.element()?))
}

fn appended(types: &[DataType]) -> Option<Types> {
    let [array, value] = types else { return None };
    let (array, element) = with_element(*array, *value)?;
    Some((vec![array, element], array))
}

fn prepended(types: &[DataType]) -> Option<Types> {
    let [value, array] = types else { return None };
    let (array, element) = with_element(*array, *value)?;
    Some((vec![element, array], array))
}

fn concatenated(types: &[DataType]) -> Option<Types> {
    let [left, right] = types else { return None };
    let array = [left, right].into_iter().find(|side| matches!(side, DataType::Array(_)))?.family();
    Some((vec![array, array], array))
}

fn filled(types: &[DataType]) -> Option<Types> {
    let [value, _] = types else { return None };
    Some((vec![value.family(), Integer.array()?], value.array()?.family()))
}

fn filled_from(types: &[DataType]) -> Option<Types> {
    let [value, lengths, _] = types else { return None };
    let (mut taken, result) = filled(&[*value, *lengths])?;
    taken.push(Integer.array()?);
    Some((taken, result))
}

/// A dimension of an array, from 1.
fn dimension(array: &Array, number: i32) -> Option<Dimension> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    array.dimensions().get(index).copied()
}

/// The subscript of the first element of an array of one dimension.
///
/// # Errors
/// `0A000` where it has several. `what`: what is not done with those.
fn first_subscript(array: &Array, what: &str) -> Result<i32, SqlError> {
    match array.dimensions().as_slice() {
        [] => Ok(1),
        [dimension] => Ok(dimension.lower),
        _ => {
            let message = format!("{what} multidimensional arrays is not supported");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

const SEARCHING: &str = "searching for elements in";

fn positions(array: &Array, value: &Value) -> Computed {
    let numbered = (first_subscript(array, SEARCHING)?..).zip(array.values());
    let found = numbered.filter(|(_, known)| is_same(known, value));
    let integers = ElementType::new(Integer).expect("integers have arrays");
    made(integers, found.map(|(number, _)| Value::Integer(number)).collect())
}

fn without(array: &Array, value: &Value) -> Computed {
    let lower = first_subscript(array, "removing elements from")?;
    let kept: Vec<Value> = array.values().iter().filter(|known| !is_same(known, value)).cloned().collect();
    let dimension = Dimension { lower, length: kept.len() as u32 };
    Ok(Value::Array(Arc::new(Array::shaped(array.element(), &[dimension], kept)?)))
}

fn trim(array: &Array, count: i32) -> Computed {
    let first = array.dimensions().first().copied().unwrap_or(Dimension::of(0));
    let length = i64::from(first.length);
    if !(0..=length).contains(&i64::from(count)) {
        let message = format!("number of elements to trim must be between 0 and {length}");
        return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    }
    Ok(Value::Array(Arc::new(array.slice(&[(None, Some(first.upper() - i64::from(count)))])?)))
}

/// The array, none where it is NULL, as one of at most one dimension.
fn of_one_dimension(array: &Value, element: ElementType) -> Result<Array, SqlError> {
    let array = match array {
        Value::Array(array) => Array::clone(array),
        _ => Array::new(element, Vec::new())?,
    };
    match array.dimensions().len() {
        0 | 1 => Ok(array),
        _ => {
            let message = "argument must be empty or one-dimensional array";
            Err(SqlError::new(SqlState::DATA_EXCEPTION, message))
        }
    }
}

fn appended_to(array: &Value, element: ElementType, value: &Value) -> Computed {
    let array = of_one_dimension(array, element)?;
    let next = array.dimensions().first().map_or(1, |dimension| dimension.upper() + 1);
    within_integers(next)?;
    Ok(Value::Array(Arc::new(array.with_element(&[next], value.clone())?)))
}

/// The first subscript stays what it was.
fn prepended_to(array: &Value, element: ElementType, value: &Value) -> Computed {
    let array = of_one_dimension(array, element)?;
    let lower = array.dimensions().first().map_or(1, |dimension| dimension.lower);
    within_integers(i64::from(lower) - 1)?;
    let values: Vec<Value> = std::iter::once(value).chain(array.values()).cloned().collect();
    let dimension = Dimension { lower, length: values.len() as u32 };
    Ok(Value::Array(Arc::new(Array::shaped(element, &[dimension], values)?)))
}

fn within_integers(subscript: i64) -> Result<(), SqlError> {
    match i32::try_from(subscript) {
        Ok(_) => Ok(()),
        Err(_) => Err(out_of_range("integer")),
    }
}

fn to_text(array: &Array, delimiter: &str, null: Option<&Value>) -> Result<Value, SqlError> {
    let (mut joined, mut is_first) = (String::new(), true);
    for value in array.values() {
        let text = format_value(value);
        let part = match (&text, null) {
            (Some(text), _) => text.as_str(),
            (None, Some(Value::Text(null))) => null,
            (None, _) => continue,
        };
        if !std::mem::take(&mut is_first) {
            joined.push_str(delimiter);
        }
        joined.push_str(part);
        check_length(joined.len())?;
    }
    Ok(Value::text(joined))
}

fn of_text(text: &str, delimiter: &Value, null: Option<&Value>) -> Result<Value, SqlError> {
    let parts: Vec<String> = match delimiter {
        _ if text.is_empty() => Vec::new(),
        Value::Text(delimiter) if delimiter.is_empty() => vec![text.to_string()],
        Value::Text(delimiter) => text.split(&**delimiter).map(str::to_string).collect(),
        _ => text.chars().map(String::from).collect(),
    };
    let element = |part: String| match null {
        Some(Value::Text(null)) if **null == *part => Value::Null,
        _ => Value::text(part),
    };
    let texts = ElementType::new(DataType::Text(None)).expect("text has arrays");
    made(texts, parts.into_iter().map(element).collect())
}

fn position(array: &Array, value: &Value, from: Option<&Value>) -> Result<Value, SqlError> {
    let lower = first_subscript(array, SEARCHING)?;
    let first = match from {
        None => lower,
        Some(Value::Integer(from)) => *from,
        Some(_) => {
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "initial position must not be null"));
        }
    };
    let mut numbered = (lower..).zip(array.values()).filter(|(number, _)| *number >= first);
    let found = numbered.find(|(_, known)| is_same(known, value));
    Ok(found.map_or(Value::Null, |(number, _)| Value::Integer(number)))
}

/// The numbers in an array that says something of each dimension.
fn of_dimensions(numbers: &Value) -> Result<Vec<i32>, SqlError> {
    let Value::Array(numbers) = numbers else {
        let message = "dimension array or low bound array cannot be null";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    };
    if numbers.dimensions().len() > 1 {
        return Err(wrong_subscripts("Dimension array must be one dimensional."));
    }
    let number = |number: &Value| match number {
        Value::Integer(number) => Ok(*number),
        _ => Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
    };
    numbers.values().iter().map(number).collect()
}

#[cold]
fn wrong_subscripts(detail: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").detail(detail)
}

fn fill(element: ElementType, value: &Value, lengths: &Value, lowers: Option<&Value>) -> Computed {
    if arrays_are_plain() {
        return fill_plain(element, value, lengths);
    }
    let lengths = of_dimensions(lengths)?;
    let lowers = match lowers {
        Some(lowers) => of_dimensions(lowers)?,
        None => vec![1; lengths.len()],
    };
    types::check_dimensions(lengths.len())?;
    if lengths.len() != lowers.len() {
        return Err(wrong_subscripts("Low bound array has different size than dimensions array."));
    }
    let mut count = usize::from(!lengths.is_empty());
    let mut dimensions = Dimensions::new();
    for (length, lower) in lengths.iter().zip(lowers) {
        let Ok(length) = u32::try_from(*length) else {
            let message = format!("a dimension of an array cannot have {length} elements");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        };
        count = count.saturating_mul(length as usize);
        dimensions.push(Dimension { lower, length });
    }
    check_array_elements(count)?;
    for dimension in &dimensions {
        Dimension::spanning(&dimension.span())?;
    }
    Ok(Value::Array(Arc::new(Array::shaped(element, &dimensions, vec![value.clone(); count])?)))
}

/// Before execution version 16, where a length below 0 is 0.
fn fill_plain(element: ElementType, value: &Value, lengths: &Value) -> Computed {
    if let Value::Array(lengths) = lengths
        && lengths.values().len() > 1
    {
        return Err(SqlError::unsupported("an array of more than one dimension"));
    }
    let lengths = of_dimensions(lengths)?;
    let length = lengths.first().map_or(0, |length| usize::try_from(*length).unwrap_or(0));
    // One more than there may be says so.
    made(element, vec![value.clone(); length.min(array_elements_max() + 1)])
}
