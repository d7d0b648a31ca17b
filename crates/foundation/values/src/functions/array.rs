//! Functions of arrays.

use crate::functions::Function;
use crate::functions::length::check_length;
use crate::functions::signature::Signature;
use crate::{Comparison, work};
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Array, DataType, ElementType, SqlError, SqlState, Value, format_value};

/// A function of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayFunction {
    /// `ARRAY[…]`
    Construct(ElementType),
    /// `array[subscript]`
    Element,
    /// `array[lower:upper]`; the flags say which of them follow the array.
    Slice(bool, bool),
    /// `value op ANY (array)`
    Any(Comparison),
    /// `value op ALL (array)`
    All(Comparison),
    /// `array_length(array, dimension)` and `array_upper`
    Length,
    /// `array_lower(array, dimension)`
    Lower,
    /// `cardinality(array)`
    Cardinality,
    /// `array_ndims(array)`
    Dimensions,
    /// `array_dims(array)`
    Bounds,
    /// `array_append(array, element)`
    Append(ElementType),
    /// `array_prepend(element, array)`
    Prepend(ElementType),
    /// `array_cat(array, array)`
    Concatenate,
    /// `array_to_string(array, delimiter [, null])`
    ToText,
    /// `string_to_array(text, delimiter [, null])`
    OfText,
    /// `array_position(array, element [, from])`
    Position,
    /// `array_positions(array, element)`
    Positions,
    /// `array_remove(array, element)`
    Remove,
    /// `array_replace(array, from, to)`
    Replace,
    /// `trim_array(array, count)`
    Trim,
    /// `array_fill(value, array of lengths)`
    Fill(ElementType),
    /// `array @> array`
    Contains,
    /// `array && array`
    Overlaps,
    /// The array with an element assigned: `array, subscript, value`
    Assign(ElementType),
}

impl ArrayFunction {
    /// True where the result is NULL if an argument is NULL.
    pub fn is_strict(self) -> bool {
        matches!(
            self,
            ArrayFunction::Element
                | ArrayFunction::Slice(..)
                | ArrayFunction::Length
                | ArrayFunction::Lower
                | ArrayFunction::Cardinality
                | ArrayFunction::Dimensions
                | ArrayFunction::Bounds
                | ArrayFunction::Trim
                | ArrayFunction::Contains
                | ArrayFunction::Overlaps
        )
    }

    /// The work that it does for these values.
    pub(super) fn units(self, values: &[Value]) -> u64 {
        use ArrayFunction as F;
        let once = || values.iter().map(work::of_value).sum();
        match (self, values) {
            // They look at one element, or at none.
            (
                F::Element
                | F::Length
                | F::Lower
                | F::Cardinality
                | F::Dimensions
                | F::Bounds
                | F::Construct(_),
                _,
            ) => 0,
            // Each element of one is compared with those of the other.
            (F::Contains | F::Overlaps, [Value::Array(left), Value::Array(right)]) => {
                const UNITS_PER_PAIR: u64 = 6;
                let length = |array: &Array| array.values().len() as u64;
                let pairs = length(left).saturating_mul(length(right)).saturating_mul(UNITS_PER_PAIR);
                let compared =
                    |of: &Array, with: &Array| elements_units(of.values()).saturating_mul(length(with));
                pairs.saturating_add(compared(left, right).min(compared(right, left)))
            }
            (
                F::Any(_) | F::All(_) | F::Position | F::Positions | F::Remove | F::Replace | F::ToText,
                values,
            ) => {
                let elements = values.iter().map(|value| elements_units(elements_of(value))).sum::<u64>();
                elements.saturating_add(once())
            }
            _ => once(),
        }
    }

    /// The function's value; `None` where it was bound for other types.
    pub fn of(self, values: &[Value]) -> Option<Result<Value, SqlError>> {
        use ArrayFunction as F;
        Some(match (self, values) {
            (F::Construct(element), elements) => made(element, elements.to_vec()),
            (F::Element, [Value::Array(array), Value::Integer(subscript)]) => {
                Ok(array.get(i64::from(*subscript)))
            }
            (F::Slice(lower, upper), [Value::Array(array), bounds @ ..]) => {
                slice(array, lower, upper, bounds)
            }
            (F::Any(comparison), [value, array]) => Ok(quantified(value, array, comparison, true)),
            (F::All(comparison), [value, array]) => Ok(quantified(value, array, comparison, false)),
            (F::Length, [Value::Array(array), Value::Integer(dimension)]) => {
                let length = array.values().len() as i32;
                Ok(if *dimension == 1 && length > 0 { Value::Integer(length) } else { Value::Null })
            }
            (F::Lower, [Value::Array(array), Value::Integer(dimension)]) => {
                let exists = *dimension == 1 && !array.values().is_empty();
                Ok(if exists { Value::Integer(1) } else { Value::Null })
            }
            (F::Cardinality, [Value::Array(array)]) => Ok(Value::Integer(array.values().len() as i32)),
            (F::Dimensions, [Value::Array(array)]) => {
                Ok(if array.values().is_empty() { Value::Null } else { Value::Integer(1) })
            }
            (F::Bounds, [Value::Array(array)]) => Ok(match array.values().len() {
                0 => Value::Null,
                length => Value::text(format!("[1:{length}]")),
            }),
            (F::Append(element), [array, value]) => joined(element, array, std::slice::from_ref(value)),
            (F::Prepend(element), [value, array]) => {
                let elements = [value.clone()].into_iter().chain(elements_of(array).iter().cloned());
                made(element, elements.collect())
            }
            (F::Concatenate, [Value::Null, other]) | (F::Concatenate, [other, Value::Null]) => {
                Ok(other.clone())
            }
            (F::Concatenate, [left @ Value::Array(array), right]) => {
                joined(array.element(), left, elements_of(right))
            }
            (F::ToText, [Value::Array(array), Value::Text(delimiter), rest @ ..]) => {
                to_text(array, delimiter, rest.first())
            }
            (F::ToText, [Value::Null, ..] | [_, Value::Null, ..]) => Ok(Value::Null),
            (F::OfText, [Value::Null, ..]) => Ok(Value::Null),
            (F::OfText, [Value::Text(text), delimiter, rest @ ..]) => of_text(text, delimiter, rest.first()),
            (F::Position, [Value::Null, ..]) => Ok(Value::Null),
            (F::Position, [Value::Array(array), value, rest @ ..]) => position(array, value, rest.first()),
            (F::Positions, [Value::Null, _]) => Ok(Value::Null),
            (F::Positions, [Value::Array(array), value]) => {
                let found = (1..).zip(array.values()).filter(|(_, known)| is_same(known, value));
                let integers = ElementType::new(DataType::Integer)?;
                made(integers, found.map(|(number, _)| Value::Integer(number)).collect())
            }
            (F::Remove | F::Replace, [Value::Null, ..]) => Ok(Value::Null),
            (F::Remove, [Value::Array(array), value]) => {
                let kept = array.values().iter().filter(|known| !is_same(known, value));
                made(array.element(), kept.cloned().collect())
            }
            (F::Replace, [Value::Array(array), from, to]) => {
                let each = |known: &Value| if is_same(known, from) { to.clone() } else { known.clone() };
                made(array.element(), array.values().iter().map(each).collect())
            }
            (F::Trim, [Value::Array(array), Value::Integer(count)]) => {
                let length = array.values().len();
                match usize::try_from(*count).ok().filter(|count| *count <= length) {
                    Some(count) => made(array.element(), array.values()[..length - count].to_vec()),
                    None => Err(SqlError::new(
                        SqlState(*b"2202E"),
                        format!("number of elements to trim must be between 0 and {length}"),
                    )),
                }
            }
            (F::Fill(element), [value, lengths]) => fill(element, value, lengths),
            (F::Contains, [Value::Array(array), Value::Array(part)]) => {
                let within = |wanted: &Value| array.values().iter().any(|known| is_equal(known, wanted));
                Ok(Value::Boolean(part.values().iter().all(within)))
            }
            (F::Overlaps, [Value::Array(left), Value::Array(right)]) => {
                let within = |wanted: &Value| left.values().iter().any(|known| is_equal(known, wanted));
                Ok(Value::Boolean(right.values().iter().any(within)))
            }
            (F::Assign(element), [array, subscript, value]) => assign(element, array, subscript, value),
            _ => return None,
        })
    }
}

fn made(element: ElementType, values: Vec<Value>) -> Result<Value, SqlError> {
    Ok(Value::Array(Arc::new(Array::new(element, values)?)))
}

/// None for NULL.
fn elements_of(array: &Value) -> &[Value] {
    match array {
        Value::Array(array) => array.values(),
        _ => &[],
    }
}

/// The work of going over what elements hold.
fn elements_units(elements: &[Value]) -> u64 {
    elements.iter().map(work::of_value).sum()
}

fn joined(element: ElementType, array: &Value, more: &[Value]) -> Result<Value, SqlError> {
    made(element, [elements_of(array), more].concat())
}

fn is_equal(left: &Value, right: &Value) -> bool {
    left.compare(right) == Some(Ordering::Equal)
}

/// Equal, or both NULL.
fn is_same(left: &Value, right: &Value) -> bool {
    left.sort_compare(right).is_eq()
}

fn slice(array: &Array, lower: bool, upper: bool, bounds: &[Value]) -> Result<Value, SqlError> {
    let mut bounds = bounds.iter().map(|bound| bound.as_integer().unwrap_or_default());
    let length = array.values().len();
    let first = if lower { bounds.next().unwrap_or(1).max(1) } else { 1 };
    let last = if upper { bounds.next().unwrap_or_default().min(length as i64) } else { length as i64 };
    let kept = match (usize::try_from(first - 1), usize::try_from(last)) {
        (Ok(first), Ok(last)) if first < last => &array.values()[first..last],
        _ => &[],
    };
    made(array.element(), kept.to_vec())
}

/// True (false: `any` is false) as soon as an element says so; NULL where a NULL might have.
fn quantified(value: &Value, array: &Value, comparison: Comparison, any: bool) -> Value {
    let Value::Array(array) = array else { return Value::Null };
    let mut unknown = false;
    for element in array.values() {
        match value.compare(element) {
            Some(order) if comparison.holds(order) == any => return Value::Boolean(any),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { Value::Null } else { Value::Boolean(!any) }
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
    let first = match from {
        None => 1,
        Some(Value::Integer(from)) => (*from).max(1),
        Some(_) => {
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "initial position must not be null"));
        }
    };
    let mut numbered = (1..).zip(array.values()).skip(first as usize - 1);
    let found = numbered.find(|(_, known)| is_same(known, value));
    Ok(found.map_or(Value::Null, |(number, _)| Value::Integer(number)))
}

fn fill(element: ElementType, value: &Value, lengths: &Value) -> Result<Value, SqlError> {
    let Value::Array(lengths) = lengths else {
        let message = "dimension array or low bound array cannot be null";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    };
    match lengths.values() {
        [] => made(element, Vec::new()),
        [Value::Integer(length)] => {
            let length = usize::try_from(*length).unwrap_or(0);
            // One more than there may be says so.
            made(element, vec![value.clone(); length.min(types::limits::ARRAY_ELEMENTS_MAX + 1)])
        }
        [_] => Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null")),
        _ => Err(SqlError::unsupported("an array of more than one dimension")),
    }
}

/// `array[subscript] := value`: what lies between the end and the subscript becomes NULL.
fn assign(element: ElementType, array: &Value, subscript: &Value, value: &Value) -> Result<Value, SqlError> {
    let Value::Integer(subscript) = subscript else {
        let message = "array subscript in assignment must not be null";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    };
    let Some(index) = usize::try_from(*subscript).ok().and_then(|subscript| subscript.checked_sub(1)) else {
        let what = format_args!("an array that begins at subscript {subscript}");
        return Err(SqlError::unsupported(what).hint("Subscripts begin at 1."));
    };
    let mut values = elements_of(array).to_vec();
    if index >= values.len() {
        // One more than there may be says so.
        values.resize((index + 1).min(types::limits::ARRAY_ELEMENTS_MAX + 1), Value::Null);
    }
    if let Some(place) = values.get_mut(index) {
        *place = value.clone();
    }
    made(element, values)
}

/// The function that PostgreSQL calls; `None` where there is none.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use ArrayFunction as F;
    use DataType::{Integer, Unknown};
    const TEXT: DataType = DataType::Text(None);
    let signature = |function, arguments: &[DataType], result: DataType| {
        Some(Signature { function: Function::Array(function), arguments: arguments.to_vec(), result })
    };
    let integers = Integer.array()?;
    let texts = TEXT.array()?;
    // The array that an array and a value make together: that of the array's elements, or of the value.
    let with_element = |array: DataType, value: DataType| match array {
        DataType::Array(_) => Some(array.family()),
        Unknown if value != Unknown => value.array().map(DataType::family),
        _ => None,
    };
    match (name, arguments) {
        ("array_length" | "array_upper", [array @ DataType::Array(_), _]) => {
            signature(F::Length, &[*array, Integer], Integer)
        }
        ("array_lower", [array @ DataType::Array(_), _]) => signature(F::Lower, &[*array, Integer], Integer),
        ("cardinality", [array @ DataType::Array(_)]) => signature(F::Cardinality, &[*array], Integer),
        ("array_ndims", [array @ DataType::Array(_)]) => signature(F::Dimensions, &[*array], Integer),
        ("array_dims", [array @ DataType::Array(_)]) => signature(F::Bounds, &[*array], TEXT),
        ("array_append", [array, value]) => {
            let array = with_element(*array, *value)?;
            let DataType::Array(element) = array else { return None };
            signature(F::Append(element), &[array, element.data_type()], array)
        }
        ("array_prepend", [value, array]) => {
            let array = with_element(*array, *value)?;
            let DataType::Array(element) = array else { return None };
            signature(F::Prepend(element), &[element.data_type(), array], array)
        }
        ("array_cat", [left, right]) => {
            let array = match (left, right) {
                (DataType::Array(_), _) => left.family(),
                (_, DataType::Array(_)) => right.family(),
                _ => return None,
            };
            signature(F::Concatenate, &[array, array], array)
        }
        ("array_to_string", [array @ DataType::Array(_), _]) => {
            signature(F::ToText, &[array.family(), TEXT], TEXT)
        }
        ("array_to_string", [array @ DataType::Array(_), _, _]) => {
            signature(F::ToText, &[array.family(), TEXT, TEXT], TEXT)
        }
        ("string_to_array", [_, _]) => signature(F::OfText, &[TEXT, TEXT], texts),
        ("string_to_array", [_, _, _]) => signature(F::OfText, &[TEXT, TEXT, TEXT], texts),
        ("array_position", [array @ DataType::Array(element), _]) => {
            signature(F::Position, &[array.family(), element.family().data_type()], Integer)
        }
        ("array_position", [array @ DataType::Array(element), _, _]) => {
            signature(F::Position, &[array.family(), element.family().data_type(), Integer], Integer)
        }
        ("array_positions", [array @ DataType::Array(element), _]) => {
            signature(F::Positions, &[array.family(), element.family().data_type()], integers)
        }
        ("array_remove", [array @ DataType::Array(element), _]) => {
            signature(F::Remove, &[array.family(), element.family().data_type()], array.family())
        }
        ("array_replace", [array @ DataType::Array(element), _, _]) => {
            let element = element.family().data_type();
            signature(F::Replace, &[array.family(), element, element], array.family())
        }
        ("trim_array", [array @ DataType::Array(_), _]) => {
            signature(F::Trim, &[array.family(), Integer], array.family())
        }
        ("array_fill", [value, _]) => {
            let array = value.array()?.family();
            let DataType::Array(element) = array else { return None };
            signature(F::Fill(element), &[value.family(), integers], array)
        }
        _ => None,
    }
}
