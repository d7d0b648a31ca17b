//! Bounds of ranges, and what multiranges consist of.

use super::{ELEMENT, Kind, MULTIRANGE, RANGE, V10, single, truth};
use crate::functions::entry::{Computed, Function, Types, free, misplaced};
use std::sync::Arc;
use types::{Array, Bound, DataType, Spans, Value};

pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    of_either(&["lower"], |given| either(given, ELEMENT), |values| value(values, lower)),
    of_either(&["upper"], |given| either(given, ELEMENT), |values| value(values, upper)),
    of_either(
        &["isempty"],
        |given| either(given, truth),
        |values| Ok(Value::Boolean(spans(values)?.is_empty())),
    ),
    of_either(&["lower_inc"], |given| either(given, truth), |values| is_included(values, lower)),
    of_either(&["upper_inc"], |given| either(given, truth), |values| is_included(values, upper)),
    of_either(&["lower_inf"], |given| either(given, truth), |values| is_missing(values, lower)),
    of_either(&["upper_inf"], |given| either(given, truth), |values| is_missing(values, upper)),
];

/// The ranges of a multirange in an array: what `unnest(multirange)` gives the rows of
pub static RANGES_OF_MULTIRANGE: Function =
    Function::array_form(&["[ranges]"], |values, element| match values {
        [Value::Multirange(ranges)] => {
            let each = ranges.to_ranges().map(|range| Value::Range(Arc::new(range)));
            Ok(Value::Array(Arc::new(Array::new(element, each.collect())?)))
        }
        _ => Err(misplaced(values)),
    })
    .shown_as("ranges")
    .since(V10);

/// A bound: `None` where nothing is in the range, `Some(None)` where it goes on for ever.
type Find = for<'a> fn(Spans<'a>) -> Option<Option<&'a Bound>>;

/// Of a range or a multirange; it looks at the first or last bound.
const fn of_either(
    names: &'static [&'static str],
    types: fn(&[DataType]) -> Option<Types>,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::worked(names, types, code).never_fails().costs(free).since(V10)
}

fn either(given: &[DataType], result: Kind) -> Option<Types> {
    single(given, RANGE, result).or_else(|| single(given, MULTIRANGE, result))
}

fn spans(values: &[Value]) -> Result<Spans<'_>, types::SqlError> {
    match values {
        [value] => Spans::of(value).ok_or_else(|| misplaced(values)),
        _ => Err(misplaced(values)),
    }
}

fn lower(spans: Spans<'_>) -> Option<Option<&Bound>> {
    spans.lower()
}

fn upper(spans: Spans<'_>) -> Option<Option<&Bound>> {
    spans.upper()
}

fn value(values: &[Value], find: Find) -> Computed {
    let bound = find(spans(values)?).flatten();
    Ok(bound.map_or(Value::Null, |bound| bound.value.clone()))
}

fn is_included(values: &[Value], find: Find) -> Computed {
    let bound = find(spans(values)?).flatten();
    Ok(Value::Boolean(bound.is_some_and(|bound| bound.is_included)))
}

fn is_missing(values: &[Value], find: Find) -> Computed {
    Ok(Value::Boolean(find(spans(values)?) == Some(None)))
}
