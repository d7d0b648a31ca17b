//! Forms of the grammar over arrays: constructors, subscripts and what is assigned to them, ANY and ALL, operators.

use super::common::{elements, elements_units, is_equal, made, once};
use super::side_by_side::nested;
use crate::Comparison;
use crate::functions::entry::{Computed, Function, code, free, misplaced};
use std::slice::from_ref;
use std::sync::Arc;
use types::{Array, ElementType, SliceBounds, SqlError, SqlState, Value, arrays_are_plain};

pub(in crate::functions) static FORMS: &[&[Function]] = &[
    from_ref(&CONSTRUCT),
    from_ref(&ELEMENT),
    from_ref(&SLICE),
    &ANY,
    &ALL,
    from_ref(&CONTAINS),
    from_ref(&OVERLAPS),
    from_ref(&ASSIGN),
    from_ref(&ASSIGN_SLICE),
];

/// `ARRAY[…]`
pub static CONSTRUCT: Function =
    Function::array_form(&["ARRAY"], |elements, element| made(element, elements.to_vec()))
        .sees_null()
        .costs(free)
        .shown_as("construct");

/// `ARRAY[array, …]`: the arrays as elements of the outermost dimension
pub static NEST: Function = Function::array_form(&["ARRAY"], |arrays, element| nested(element, arrays))
    .sees_null()
    .costs(once)
    .shown_as("construct");

/// `array[subscript]…`
pub static ELEMENT: Function = Function::form(
    &["[]"],
    code!(
        [Value::Array(array), Value::Integer(subscript)] => Ok(array.get(i64::from(*subscript))),
        [Value::Array(array), subscripts @ ..] => Ok(array.get_at(&numbers(subscripts)?)),
    ),
)
.costs(free)
.shown_as("element");

/// `array[lower:upper]…`: the array, then both bounds of each dimension, FALSE for one that is left out
pub static SLICE: Function = Function::form(
    &["[:]"],
    code!([Value::Array(array), bounds @ ..] => {
        Ok(Value::Array(Arc::new(array.slice(&slice_bounds(bounds)?)?)))
    }),
)
.costs(once)
.shown_as("slice");

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

/// The array with an element assigned: `array, subscript, …, value`
pub static ASSIGN: Function = Function::array_form(&["[] :="], |values, element| match values {
    [array, subscripts @ .., value] => assign(element, array, subscripts, value),
    _ => Err(misplaced(values)),
})
.sees_null()
.costs(once)
.shown_as("assign");

/// The array with a slice assigned: `array, value`, then both bounds of each dimension, FALSE for one that is left out
pub static ASSIGN_SLICE: Function = Function::array_form(&["[:] :="], |values, element| match values {
    [array, value, bounds @ ..] => assign_slice(element, array, value, bounds),
    _ => Err(misplaced(values)),
})
.sees_null()
.costs(once)
.shown_as("assign");

const fn compared(name: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::form(name, code).sees_null().costs(elements)
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

/// Subscripts that are numbers.
fn numbers(subscripts: &[Value]) -> Result<Vec<i64>, SqlError> {
    subscripts.iter().map(|subscript| subscript.as_integer().ok_or_else(|| misplaced(subscripts))).collect()
}

/// Both bounds of each dimension.
fn slice_bounds(bounds: &[Value]) -> Result<Vec<SliceBounds>, SqlError> {
    let bound = |bound: &Value| match bound {
        Value::Boolean(_) => Ok(None),
        Value::Null => Err(no_subscript()),
        given => given.as_integer().map(Some).ok_or_else(|| misplaced(bounds)),
    };
    let (pairs, _) = bounds.as_chunks::<2>();
    pairs.iter().map(|[lower, upper]| Ok((bound(lower)?, bound(upper)?))).collect()
}

#[cold]
fn no_subscript() -> SqlError {
    let message = "array subscript in assignment must not be null";
    SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
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

/// Before execution version 16 arrays begin at 1.
fn check_first(first: i64) -> Result<(), SqlError> {
    if first >= 1 || !arrays_are_plain() {
        return Ok(());
    }
    let what = format_args!("an array that begins at subscript {first}");
    Err(SqlError::unsupported(what).hint("Subscripts begin at 1."))
}

/// The array, one without elements for NULL.
fn known_array(array: &Value, element: ElementType) -> Result<Arc<Array>, SqlError> {
    match array {
        Value::Array(array) => Ok(array.clone()),
        _ => Ok(Arc::new(Array::new(element, Vec::new())?)),
    }
}

/// No value changes nothing, and of a value with too many elements the first ones are taken.
fn assign_slice(element: ElementType, array: &Value, value: &Value, bounds: &[Value]) -> Computed {
    let array = known_array(array, element)?;
    let bounds = slice_bounds(bounds)?;
    let Value::Array(value) = value else { return Ok(Value::Array(array)) };
    if let [(Some(first), last)] = bounds[..]
        && last.map_or(!array.values().is_empty(), |last| first <= last)
    {
        check_first(first)?;
    }
    Ok(Value::Array(Arc::new(array.with_slice(&bounds, value.values())?)))
}

/// `array[subscript]… := value`: what lies between the end and the subscript becomes NULL.
fn assign(element: ElementType, array: &Value, subscripts: &[Value], value: &Value) -> Computed {
    if subscripts.iter().any(Value::is_null) {
        return Err(no_subscript());
    }
    let subscripts = numbers(subscripts)?;
    if let [first] = subscripts[..] {
        check_first(first)?;
    }
    let array = known_array(array, element)?;
    Ok(Value::Array(Arc::new(array.with_element(&subscripts, value.clone())?)))
}
