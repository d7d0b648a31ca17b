//! Functions of arrays.

use crate::functions::entry::Argument::{AnyArray, Array as AnArray, Element, To};
use crate::functions::entry::Gives::{ArrayOf, As, Is};
use crate::functions::entry::{Computed, Function, Types, code, free, misplaced};
use crate::length::check_length;
use crate::{Comparison, work};
use DataType::{Integer, Unknown};
use std::cmp::Ordering;
use std::slice::from_ref;
use std::sync::Arc;
use types::{Array, DataType, ElementType, SqlError, SqlState, Value, format_value};

const TEXT: DataType = DataType::Text(None);

pub(super) static FUNCTIONS: &[Function] = &[
    // Array, dimension.
    Function::new(&["array_length", "array_upper"], &[AnyArray, To(Integer)], Is(Integer), code!(
        [Value::Array(array), Value::Integer(dimension)] => {
            let length = array.values().len() as i32;
            Ok(if *dimension == 1 && length > 0 { Value::Integer(length) } else { Value::Null })
        }
    ))
    .costs(free)
    .shown_as("length"),
    Function::new(&["array_lower"], &[AnyArray, To(Integer)], Is(Integer), code!(
        [Value::Array(array), Value::Integer(dimension)] => {
            let exists = *dimension == 1 && !array.values().is_empty();
            Ok(if exists { Value::Integer(1) } else { Value::Null })
        }
    ))
    .costs(free)
    .shown_as("lower"),
    Function::new(&["cardinality"], &[AnyArray], Is(Integer), code!(
        [Value::Array(array)] => Ok(Value::Integer(array.values().len() as i32)),
    ))
    .costs(free),
    Function::new(&["array_ndims"], &[AnyArray], Is(Integer), code!(
        [Value::Array(array)] => Ok(if array.values().is_empty() { Value::Null } else { Value::Integer(1) }),
    ))
    .costs(free)
    .shown_as("dimensions"),
    Function::new(&["array_dims"], &[AnyArray], Is(TEXT), code!(
        [Value::Array(array)] => Ok(match array.values().len() {
            0 => Value::Null,
            length => Value::text(format!("[1:{length}]")),
        }),
    ))
    .costs(free)
    .shown_as("bounds"),
    Function::worked_array(&["array_append"], appended, |values, element| match values {
        [array, value] => joined(element, array, std::slice::from_ref(value)),
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .shown_as("append"),
    Function::worked_array(&["array_prepend"], prepended, |values, element| match values {
        [value, array] => {
            let elements = [value.clone()].into_iter().chain(elements_of(array).iter().cloned());
            made(element, elements.collect())
        }
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .shown_as("prepend"),
    Function::worked(&["array_cat"], concatenated, code!(
        [Value::Null, other] | [other, Value::Null] => Ok(other.clone()),
        [left @ Value::Array(array), right] => joined(array.element(), left, elements_of(right)),
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
        [Value::Array(array), value] => {
            let kept = array.values().iter().filter(|known| !is_same(known, value));
            made(array.element(), kept.cloned().collect())
        }
    ))
    .sees_null()
    .costs(elements)
    .shown_as("remove"),
    Function::new(&["array_replace"], &[AnArray, Element, Element], As(0), code!(
        [Value::Null, ..] => Ok(Value::Null),
        [Value::Array(array), from, to] => {
            let each = |known: &Value| if is_same(known, from) { to.clone() } else { known.clone() };
            made(array.element(), array.values().iter().map(each).collect())
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
    // A value, and an array of one length.
    Function::worked_array(&["array_fill"], filled, |values, element| match values {
        [value, lengths] => fill(element, value, lengths),
        _ => Err(misplaced(values)),
    })
    .sees_null()
    .costs(once)
    .shown_as("fill"),
];

pub(super) static FORMS: &[&[Function]] = &[
    from_ref(&CONSTRUCT),
    from_ref(&ELEMENT),
    &SLICES,
    &ANY,
    &ALL,
    from_ref(&CONTAINS),
    from_ref(&OVERLAPS),
    from_ref(&ASSIGN),
    &SLICE_ASSIGNMENTS,
];

/// `ARRAY[…]`
pub static CONSTRUCT: Function =
    Function::array_form(&["ARRAY"], |elements, element| made(element, elements.to_vec()))
        .sees_null()
        .costs(free)
        .shown_as("construct");

/// `array[subscript]`
pub static ELEMENT: Function = Function::form(
    &["[]"],
    code!(
        [Value::Array(array), Value::Integer(subscript)] => Ok(array.get(i64::from(*subscript))),
    ),
)
.costs(free)
.shown_as("element");

/// By which bounds are given.
static SLICES: [Function; 4] = [
    bounded(&["[:]"], |values| sliced(values, false, false)),
    bounded(&["[:]"], |values| sliced(values, false, true)),
    bounded(&["[:]"], |values| sliced(values, true, false)),
    bounded(&["[:]"], |values| sliced(values, true, true)),
];

/// `array[lower:upper]`, where these bounds follow the array
pub fn slice(lower: bool, upper: bool) -> &'static Function {
    &SLICES[2 * usize::from(lower) + usize::from(upper)]
}

/// In the order of the comparisons.
static ANY: [Function; 6] = [
    compared(&["ANY"], |values| quantified(values, Comparison::Equal, true)).shown_as("any"),
    compared(&["ANY"], |values| quantified(values, Comparison::NotEqual, true)).shown_as("any"),
    compared(&["ANY"], |values| quantified(values, Comparison::Less, true)).shown_as("any"),
    compared(&["ANY"], |values| quantified(values, Comparison::LessOrEqual, true)).shown_as("any"),
    compared(&["ANY"], |values| quantified(values, Comparison::Greater, true)).shown_as("any"),
    compared(&["ANY"], |values| quantified(values, Comparison::GreaterOrEqual, true)).shown_as("any"),
];

/// `value op ANY (array)`
pub fn any_element(comparison: Comparison) -> &'static Function {
    &ANY[comparison as usize]
}

/// In the order of the comparisons.
static ALL: [Function; 6] = [
    compared(&["ALL"], |values| quantified(values, Comparison::Equal, false)).shown_as("all"),
    compared(&["ALL"], |values| quantified(values, Comparison::NotEqual, false)).shown_as("all"),
    compared(&["ALL"], |values| quantified(values, Comparison::Less, false)).shown_as("all"),
    compared(&["ALL"], |values| quantified(values, Comparison::LessOrEqual, false)).shown_as("all"),
    compared(&["ALL"], |values| quantified(values, Comparison::Greater, false)).shown_as("all"),
    compared(&["ALL"], |values| quantified(values, Comparison::GreaterOrEqual, false)).shown_as("all"),
];

/// `value op ALL (array)`
pub fn all_elements(comparison: Comparison) -> &'static Function {
    &ALL[comparison as usize]
}

/// `array @> array`
pub static CONTAINS: Function = Function::form(
    &["@>"],
    code!(
        [Value::Array(array), Value::Array(part)] => {
            let within = |wanted: &Value| array.values().iter().any(|known| is_equal(known, wanted));
            Ok(Value::Boolean(part.values().iter().all(within)))
        }
    ),
)
.costs(pairs)
.shown_as("contains");

/// `array && array`
pub static OVERLAPS: Function = Function::form(
    &["&&"],
    code!(
        [Value::Array(left), Value::Array(right)] => {
            let within = |wanted: &Value| left.values().iter().any(|known| is_equal(known, wanted));
            Ok(Value::Boolean(right.values().iter().any(within)))
        }
    ),
)
.costs(pairs)
.shown_as("overlaps");

/// The array with an element assigned: `array, subscript, value`
pub static ASSIGN: Function = Function::array_form(&["[] :="], |values, element| match values {
    [array, subscript, value] => assign(element, array, subscript, value),
    _ => Err(misplaced(values)),
})
.sees_null()
.costs(once)
.shown_as("assign");

/// By which bounds are given: the lower one counts twice.
static SLICE_ASSIGNMENTS: [Function; 4] = [
    slice_assignment(|values, element| assign_slice(element, values, false, false)),
    slice_assignment(|values, element| assign_slice(element, values, false, true)),
    slice_assignment(|values, element| assign_slice(element, values, true, false)),
    slice_assignment(|values, element| assign_slice(element, values, true, true)),
];

/// The array with a slice assigned, of which these bounds are given: `array, value, from, to`
pub fn slice_assigned(lower: bool, upper: bool) -> &'static Function {
    &SLICE_ASSIGNMENTS[2 * usize::from(lower) + usize::from(upper)]
}

const fn slice_assignment(code: fn(&[Value], ElementType) -> Computed) -> Function {
    Function::array_form(&["[:] :="], code).sees_null().costs(once).shown_as("assign")
}

const fn bounded(name: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::form(name, code).costs(once).shown_as("slice")
}

const fn compared(name: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::form(name, code).sees_null().costs(elements)
}

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

/// Goes over all values once.
fn once(values: &[Value]) -> u64 {
    values.iter().map(work::of_value).sum()
}

/// Goes over what the elements hold as well.
fn elements(values: &[Value]) -> u64 {
    let held = values.iter().map(|value| elements_units(elements_of(value))).sum::<u64>();
    held.saturating_add(once(values))
}

/// Each element of one is compared with those of the other.
fn pairs(values: &[Value]) -> u64 {
    const UNITS_PER_PAIR: u64 = 6;
    let [Value::Array(left), Value::Array(right)] = values else { return once(values) };
    let length = |array: &Array| array.values().len() as u64;
    let pairs = length(left).saturating_mul(length(right)).saturating_mul(UNITS_PER_PAIR);
    let compared = |of: &Array, with: &Array| elements_units(of.values()).saturating_mul(length(with));
    pairs.saturating_add(compared(left, right).min(compared(right, left)))
}

fn positions(array: &Array, value: &Value) -> Computed {
    let found = (1..).zip(array.values()).filter(|(_, known)| is_same(known, value));
    let integers = ElementType::new(Integer).expect("integers have arrays");
    made(integers, found.map(|(number, _)| Value::Integer(number)).collect())
}

fn trim(array: &Array, count: i32) -> Computed {
    let length = array.values().len();
    match usize::try_from(count).ok().filter(|count| *count <= length) {
        Some(count) => made(array.element(), array.values()[..length - count].to_vec()),
        None => Err(SqlError::new(
            SqlState(*b"2202E"),
            format!("number of elements to trim must be between 0 and {length}"),
        )),
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

fn sliced(values: &[Value], lower: bool, upper: bool) -> Computed {
    let [Value::Array(array), bounds @ ..] = values else { return Err(misplaced(values)) };
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
fn quantified(values: &[Value], comparison: Comparison, any: bool) -> Computed {
    let [value, array] = values else { return Err(misplaced(values)) };
    let Value::Array(array) = array else { return Ok(Value::Null) };
    let mut unknown = false;
    for element in array.values() {
        match value.compare(element) {
            Some(order) if comparison.holds(order) == any => return Ok(Value::Boolean(any)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Value::Null } else { Value::Boolean(!any) })
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

/// As PostgreSQL's `array_set_slice`, for arrays that begin at 1: no value changes nothing, and of a value with too many elements the
/// first ones are taken.
fn assign_slice(element: ElementType, values: &[Value], lower: bool, upper: bool) -> Computed {
    let [array, value, bounds @ ..] = values else { return Err(misplaced(values)) };
    let wrong = |message: &str| Err(SqlError::new(SqlState(*b"2202E"), message));
    let mut known = elements_of(array).to_vec();
    let mut given = Vec::with_capacity(2);
    for bound in bounds {
        let Value::Integer(bound) = bound else {
            let message = "array subscript in assignment must not be null";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        given.push(*bound);
    }
    let Value::Array(value) = value else { return made(element, known) };
    if known.is_empty() && !(lower && upper) {
        return wrong("array slice subscript must provide both boundaries").map_err(|error: SqlError| {
            error.detail(
                "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
            )
        });
    }
    let mut given = given.into_iter();
    let first = if lower { given.next().unwrap_or(1) } else { 1 };
    let last = if upper { given.next().unwrap_or_default() } else { known.len() as i32 };
    if first > last {
        return wrong("upper bound cannot be less than lower bound");
    }
    let Some(start) = usize::try_from(first).ok().and_then(|first| first.checked_sub(1)) else {
        let what = format_args!("an array that begins at subscript {first}");
        return Err(SqlError::unsupported(what).hint("Subscripts begin at 1."));
    };
    let end = last as usize;
    let Some(new) = value.values().get(..end - start) else { return wrong("source array too small") };
    if end > known.len() {
        // One more than there may be says so.
        known.resize(end.min(types::limits::ARRAY_ELEMENTS_MAX + 1), Value::Null);
    }
    for (place, new) in known.iter_mut().skip(start).zip(new) {
        *place = new.clone();
    }
    made(element, known)
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
