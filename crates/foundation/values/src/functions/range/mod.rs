//! Functions and operators of ranges and multiranges.

mod aggregate;
mod construct;
mod part;
mod relation;
mod sets;
#[cfg(test)]
mod tests;

pub use aggregate::{range_intersection, range_union_all};
pub(super) use construct::FUNCTIONS as CONSTRUCTORS;
pub use construct::MULTIRANGE_OF_ARRAY;
pub(super) use part::FUNCTIONS as PARTS;
pub use part::RANGES_OF_MULTIRANGE;
pub(super) use relation::{
    ADJACENT, AFTER, BEFORE, CONTAINED, CONTAINS, ELEMENTS, NOT_LEFT, NOT_RIGHT, OVERLAPS,
};
pub(super) use sets::FUNCTIONS as SETS;

use crate::functions::entry::{Computed, Function, Types};
use DataType::Unknown;
use std::slice::from_ref;
use std::sync::Arc;
use types::{DataType, ExecutionVersion, Multirange, Range, RangeType, SqlError, Value};

const V10: ExecutionVersion = ExecutionVersion::V10;

pub(super) static FORMS: &[&[Function]] = &[from_ref(&MULTIRANGE_OF_ARRAY), from_ref(&RANGES_OF_MULTIRANGE)];

/// A type that ranges of a type go with.
type Kind = fn(RangeType) -> DataType;

const RANGE: Kind = DataType::Range;
const MULTIRANGE: Kind = DataType::Multirange;
const ELEMENT: Kind = RangeType::element;

fn truth(_: RangeType) -> DataType {
    DataType::Boolean
}

/// The types of two arguments that go with ranges of one type, and of the result. A literal is what goes with the other argument, which
/// says of which type the ranges are.
fn pair(given: &[DataType], left: Kind, right: Kind, result: Kind) -> Option<Types> {
    let [one, other] = *given else { return None };
    let fits = |found: DataType, expected: DataType| found == Unknown || found.family() == expected;
    // Which ranges an element belongs to does not tell: there may be others.
    let tells = |found: DataType| matches!(found, DataType::Range(_) | DataType::Multirange(_));
    if !tells(one) && !tells(other) {
        return None;
    }
    let known =
        RangeType::ALL.into_iter().find(|known| fits(one, left(*known)) && fits(other, right(*known)))?;
    Some((vec![left(known), right(known)], result(known)))
}

/// The types of an argument that is such a thing, and of the result.
fn single(given: &[DataType], argument: Kind, result: Kind) -> Option<Types> {
    let [found] = *given else { return None };
    let known = RangeType::ALL.into_iter().find(|known| argument(*known) == found)?;
    Some((vec![found], result(known)))
}

fn range(range: Result<Range, SqlError>) -> Computed {
    range.map(|range| Value::Range(Arc::new(range)))
}

fn multirange(multirange: Result<Multirange, SqlError>) -> Computed {
    multirange.map(|multirange| Value::Multirange(Arc::new(multirange)))
}
