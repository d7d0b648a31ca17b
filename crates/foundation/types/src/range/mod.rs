//! Ranges and multiranges of numbers, dates and timestamps.
//!
//! A range is everything between two bounds, or nothing. A multirange is ranges of one type in order, with something between any two
//! of them. Both are kept in one form for each set of values, so that equal sets are equal states: a range of whole numbers or dates is
//! `[lower,upper)`, and what touches in a multirange is one range. Only numbers that are written in several ways (`1.0`, `1.00`) differ
//! as states and compare as equal.

mod edge;
mod encoding;
mod key;
mod range_type;
mod sets;
mod size;
mod spans;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use key::push_range_key;
pub use range_type::RangeType;
pub use spans::Spans;
pub(crate) use text::{format_multirange, format_range, parse_multirange, parse_range, quotes, text_bytes};

use crate::{SqlError, SqlState, Value, add, array_elements_max};
use borsh::BorshSerialize;
use edge::Edge;
use std::cmp::Ordering;

/// A range: everything between two bounds, or nothing. One of whole numbers or dates has an included lower and an excluded upper bound.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize)]
pub struct Range {
    range_type: RangeType,
    /// `None`: empty.
    bounds: Option<Bounds>,
}

/// Where a range that is not empty begins and ends.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize)]
pub struct Bounds {
    /// `None`: it has no lower bound.
    pub lower: Option<Bound>,
    /// `None`: it has no upper bound.
    pub upper: Option<Bound>,
}

/// One end of a range.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize)]
pub struct Bound {
    /// A value of the range's element type, not NULL.
    pub value: Value,
    /// Whether the value is in the range.
    pub is_included: bool,
}

/// Ranges of one type in order, none of them empty, none touching the next. At most [`crate::limits::ARRAY_ELEMENTS_MAX`].
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize)]
pub struct Multirange {
    range_type: RangeType,
    ranges: Vec<Bounds>,
}

impl Range {
    /// The range between two bounds of the type's elements; `None`: it goes on for ever.
    ///
    /// # Errors
    /// `22000` where the lower bound is greater than the upper one, `22003` and `22008` where a bound has no next value, `54000` where it
    /// is too long as a text.
    pub fn new(range_type: RangeType, lower: Option<Bound>, upper: Option<Bound>) -> Result<Range, SqlError> {
        Range::of_bounds(range_type, Bounds::new(range_type, lower, upper)?)
    }

    /// The empty range.
    pub fn empty(range_type: RangeType) -> Range {
        Range { range_type, bounds: None }
    }

    /// The range of bounds that other ranges had.
    fn of_bounds(range_type: RangeType, bounds: Option<Bounds>) -> Result<Range, SqlError> {
        check_length("range", bounds.iter().map(text_bytes).sum())?;
        Ok(Range { range_type, bounds })
    }

    /// Its type.
    pub fn range_type(&self) -> RangeType {
        self.range_type
    }

    /// Where it begins and ends; `None` where it is empty.
    pub fn bounds(&self) -> Option<&Bounds> {
        self.bounds.as_ref()
    }

    /// What it consists of.
    pub fn spans(&self) -> Spans<'_> {
        Spans::new(self.bounds.as_slice())
    }

    /// Compares as PostgreSQL does: the empty range first, then by the lower and by the upper bound.
    pub fn compare(&self, other: &Range) -> Ordering {
        match (&self.bounds, &other.bounds) {
            (Some(left), Some(right)) => left.compare(right),
            (left, right) => left.is_some().cmp(&right.is_some()),
        }
    }
}

impl Multirange {
    /// All that is in these ranges, which are of this type.
    ///
    /// # Errors
    /// `54000` where they are too many, or too long as a text.
    pub fn new<'a>(
        range_type: RangeType,
        ranges: impl IntoIterator<Item = &'a Range>,
    ) -> Result<Multirange, SqlError> {
        let ranges = ranges.into_iter().inspect(|range| debug_assert_eq!(range.range_type, range_type));
        Multirange::of_bounds(range_type, ranges.filter_map(|range| range.bounds.as_ref()))
    }

    /// The same of bounds that ranges of the type have. Only those that come to be in it are copied.
    ///
    /// # Errors
    /// As [`Multirange::new`].
    pub fn of_bounds<'a>(
        range_type: RangeType,
        ranges: impl IntoIterator<Item = &'a Bounds>,
    ) -> Result<Multirange, SqlError> {
        let mut ranges: Vec<&Bounds> = ranges.into_iter().collect();
        ranges.sort_by(|left, right| left.compare(right));
        let mut merged: Vec<Bounds> = Vec::new();
        for bounds in ranges {
            match merged.last_mut() {
                Some(last) if last.touches(bounds) => *last = last.hull(bounds),
                _ => merged.push(bounds.clone()),
            }
        }
        let (count, limit) = (merged.len(), array_elements_max());
        if count > limit {
            let message =
                format!("the multirange has {count} ranges, the limit is {limit} (ARRAY_ELEMENTS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        check_length("multirange", merged.iter().map(text_bytes).sum())?;
        Ok(Multirange { range_type, ranges: merged })
    }

    /// The type of its ranges.
    pub fn range_type(&self) -> RangeType {
        self.range_type
    }

    /// Its ranges, in order.
    pub fn ranges(&self) -> &[Bounds] {
        &self.ranges
    }

    /// Its ranges as values of their own, in order.
    pub fn to_ranges(&self) -> impl Iterator<Item = Range> + use<'_> {
        let range_type = self.range_type;
        self.ranges.iter().map(move |bounds| Range { range_type, bounds: Some(bounds.clone()) })
    }

    /// What it consists of.
    pub fn spans(&self) -> Spans<'_> {
        Spans::new(&self.ranges)
    }

    /// Compares as PostgreSQL does: range by range; one that the other begins with comes first.
    pub fn compare(&self, other: &Multirange) -> Ordering {
        let pairs = self.ranges.iter().zip(&other.ranges);
        pairs
            .map(|(left, right)| left.compare(right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.ranges.len().cmp(&other.ranges.len()))
    }
}

impl Bounds {
    /// Those of the range between two bounds, in the form that the type has; `None` where it is empty.
    fn new(
        range_type: RangeType,
        lower: Option<Bound>,
        upper: Option<Bound>,
    ) -> Result<Option<Bounds>, SqlError> {
        let mut bounds = Bounds { lower, upper };
        debug_assert!(
            [&bounds.lower, &bounds.upper]
                .into_iter()
                .flatten()
                .all(|bound| bound.value.data_type() == range_type.element()),
            "{range_type:?} {bounds:?}"
        );
        if bounds.order().is_gt() {
            let message = "range lower bound must be less than or equal to range upper bound";
            return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
        }
        if bounds.is_empty() {
            return Ok(None);
        }
        if range_type.is_discrete() {
            bounds.lower = bounds.lower.map(|bound| bound.moved_to(true)).transpose()?;
            bounds.upper = bounds.upper.map(|bound| bound.moved_to(false)).transpose()?;
        }
        Ok((!bounds.is_empty()).then_some(bounds))
    }

    /// How the lower bound compares with the upper one.
    fn order(&self) -> Ordering {
        self.lower_edge().compare_values(self.upper_edge())
    }

    fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) if lower.is_included && upper.is_included => self.order().is_gt(),
            _ => self.order().is_ge(),
        }
    }

    /// Whether bounds are those of a range of the type, in the form that it has.
    fn is_canonical(&self, range_type: RangeType) -> bool {
        let is_at = |bound: &Option<Bound>, is_included: bool| {
            bound.as_ref().is_none_or(|bound| bound.is_included == is_included || bound.is_infinite_date())
        };
        let has_form = !range_type.is_discrete() || (is_at(&self.lower, true) && is_at(&self.upper, false));
        has_form && !self.is_empty()
    }

    fn lower_edge(&self) -> Edge<'_> {
        Edge::new(self.lower.as_ref(), true)
    }

    fn upper_edge(&self) -> Edge<'_> {
        Edge::new(self.upper.as_ref(), false)
    }

    fn compare(&self, other: &Bounds) -> Ordering {
        self.lower_edge()
            .compare(other.lower_edge())
            .then_with(|| self.upper_edge().compare(other.upper_edge()))
    }
}

impl Bound {
    /// The same end of a range of whole numbers or dates, with the value in it or not. An infinite date stays as it is.
    fn moved_to(self, is_included: bool) -> Result<Bound, SqlError> {
        if self.is_included == is_included || self.is_infinite_date() {
            return Ok(self);
        }
        Ok(Bound { value: add(&self.value, &Value::Integer(1))?, is_included })
    }

    /// Whether it is a date that no other one follows.
    fn is_infinite_date(&self) -> bool {
        matches!(self.value, Value::Date(date) if !crate::datetime::is_finite_date(date))
    }
}

fn check_length(what: &str, bytes: usize) -> Result<(), SqlError> {
    let limit = crate::text_bytes_max();
    if bytes > limit {
        let message =
            format!("the {what} has {bytes} bytes as a text, the limit is {limit} (TEXT_BYTES_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}
