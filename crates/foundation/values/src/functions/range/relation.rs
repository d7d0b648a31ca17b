//! Whether something is in a range, and how two of them lie.

use super::{ELEMENT, MULTIRANGE, RANGE, V10, pair, truth};
use crate::functions::entry::{Computed, Function, misplaced};
use types::{Spans, Value};

/// Ranges and elements. A literal beside a range is a range, so these come behind the others of their name.
pub(in crate::functions) static ELEMENTS: [Function; 4] = [
    Function::worked(
        &["range_contains_elem", "@>"],
        |given| pair(given, RANGE, ELEMENT, truth),
        |values| has(values.first(), values.get(1), values),
    )
    .never_fails()
    .since(V10),
    Function::worked(
        &["multirange_contains_elem", "@>"],
        |given| pair(given, MULTIRANGE, ELEMENT, truth),
        |values| has(values.first(), values.get(1), values),
    )
    .never_fails()
    .since(V10),
    Function::worked(
        &["elem_contained_by_range", "<@"],
        |given| pair(given, ELEMENT, RANGE, truth),
        |values| has(values.get(1), values.first(), values),
    )
    .never_fails()
    .since(V10),
    Function::worked(
        &["elem_contained_by_multirange", "<@"],
        |given| pair(given, ELEMENT, MULTIRANGE, truth),
        |values| has(values.get(1), values.first(), values),
    )
    .never_fails()
    .since(V10),
];

pub(in crate::functions) static CONTAINS: [Function; 4] = relations(
    [
        &["range_contains", "@>"],
        &["multirange_contains_multirange", "@>"],
        &["range_contains_multirange", "@>"],
        &["multirange_contains_range", "@>"],
    ],
    |values| holds(values, |left, right| left.contains(right)),
);

pub(in crate::functions) static CONTAINED: [Function; 4] = relations(
    [
        &["range_contained_by", "<@"],
        &["multirange_contained_by_multirange", "<@"],
        &["range_contained_by_multirange", "<@"],
        &["multirange_contained_by_range", "<@"],
    ],
    |values| holds(values, |left, right| right.contains(left)),
);

pub(in crate::functions) static OVERLAPS: [Function; 4] = relations(
    [
        &["range_overlaps", "&&"],
        &["multirange_overlaps_multirange", "&&"],
        &["range_overlaps_multirange", "&&"],
        &["multirange_overlaps_range", "&&"],
    ],
    |values| holds(values, |left, right| left.overlaps(right)),
);

pub(in crate::functions) static BEFORE: [Function; 4] = relations(
    [
        &["range_before", "<<"],
        &["multirange_before_multirange", "<<"],
        &["range_before_multirange", "<<"],
        &["multirange_before_range", "<<"],
    ],
    |values| holds(values, |left, right| left.is_before(right)),
);

pub(in crate::functions) static AFTER: [Function; 4] = relations(
    [
        &["range_after", ">>"],
        &["multirange_after_multirange", ">>"],
        &["range_after_multirange", ">>"],
        &["multirange_after_range", ">>"],
    ],
    |values| holds(values, |left, right| right.is_before(left)),
);

pub(in crate::functions) static NOT_RIGHT: [Function; 4] = relations(
    [
        &["range_overleft", "&<"],
        &["multirange_overleft_multirange", "&<"],
        &["range_overleft_multirange", "&<"],
        &["multirange_overleft_range", "&<"],
    ],
    |values| holds(values, |left, right| left.ends_within(right)),
);

pub(in crate::functions) static NOT_LEFT: [Function; 4] = relations(
    [
        &["range_overright", "&>"],
        &["multirange_overright_multirange", "&>"],
        &["range_overright_multirange", "&>"],
        &["multirange_overright_range", "&>"],
    ],
    |values| holds(values, |left, right| left.begins_within(right)),
);

pub(in crate::functions) static ADJACENT: [Function; 4] = relations(
    [
        &["range_adjacent", "-|-"],
        &["multirange_adjacent_multirange", "-|-"],
        &["range_adjacent_multirange", "-|-"],
        &["multirange_adjacent_range", "-|-"],
    ],
    |values| holds(values, |left, right| left.is_adjacent(right)),
);

/// The entries of an operator: of two ranges, two multiranges, and one of each. A literal beside one of them is another one, so these
/// of one kind come first.
const fn relations(names: [&'static [&'static str]; 4], code: fn(&[Value]) -> Computed) -> [Function; 4] {
    let [ranges, multiranges, range_first, multirange_first] = names;
    [
        Function::worked(ranges, |given| pair(given, RANGE, RANGE, truth), code).never_fails().since(V10),
        Function::worked(multiranges, |given| pair(given, MULTIRANGE, MULTIRANGE, truth), code)
            .never_fails()
            .since(V10),
        Function::worked(range_first, |given| pair(given, RANGE, MULTIRANGE, truth), code)
            .never_fails()
            .since(V10),
        Function::worked(multirange_first, |given| pair(given, MULTIRANGE, RANGE, truth), code)
            .never_fails()
            .since(V10),
    ]
}

fn holds(values: &[Value], relation: fn(Spans<'_>, Spans<'_>) -> bool) -> Computed {
    let [left, right] = values else { return Err(misplaced(values)) };
    match (Spans::of(left), Spans::of(right)) {
        (Some(left), Some(right)) => Ok(Value::Boolean(relation(left, right))),
        _ => Err(misplaced(values)),
    }
}

fn has(ranges: Option<&Value>, value: Option<&Value>, values: &[Value]) -> Computed {
    match (ranges.and_then(Spans::of), value) {
        (Some(ranges), Some(value)) => Ok(Value::Boolean(ranges.contains_value(value))),
        _ => Err(misplaced(values)),
    }
}
