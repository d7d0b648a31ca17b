use super::edge::Edge;
use super::{Bound, Bounds};
use crate::Value;
use std::cmp::Ordering;

/// What a range or a multirange consists of: ranges in order, none of them empty, none touching the next. An empty one has none.
#[derive(Clone, Copy, Debug)]
pub struct Spans<'a>(&'a [Bounds]);

impl<'a> Spans<'a> {
    pub(super) fn new(bounds: &'a [Bounds]) -> Spans<'a> {
        Spans(bounds)
    }

    /// Those of a range or multirange; `None` of another value.
    pub fn of(value: &'a Value) -> Option<Spans<'a>> {
        match value {
            Value::Range(range) => Some(range.spans()),
            Value::Multirange(ranges) => Some(ranges.spans()),
            _ => None,
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The lower bound of the whole. `None` where nothing is in it, `Some(None)` where it has none.
    pub fn lower(self) -> Option<Option<&'a Bound>> {
        self.lower_edge().map(Edge::bound)
    }

    /// The same of the upper bound.
    pub fn upper(self) -> Option<Option<&'a Bound>> {
        self.upper_edge().map(Edge::bound)
    }

    /// Whether a value is in it.
    pub fn contains_value(self, value: &Value) -> bool {
        let is_below = |bounds: &Bounds| {
            bounds.upper.as_ref().is_some_and(|upper| match upper.value.sort_compare(value) {
                Ordering::Less => true,
                Ordering::Equal => !upper.is_included,
                Ordering::Greater => false,
            })
        };
        // The first one that ends behind the value.
        let found = self.0.get(self.0.partition_point(is_below));
        found.is_some_and(|bounds| {
            bounds.lower.as_ref().is_none_or(|lower| match lower.value.sort_compare(value) {
                Ordering::Less => true,
                Ordering::Equal => lower.is_included,
                Ordering::Greater => false,
            })
        })
    }

    /// Whether all of another one is in it.
    pub fn contains(self, other: Spans<'_>) -> bool {
        let is_within = |wanted: &Bounds| {
            let ends_before = |known: &Bounds| known.upper_edge().compare(wanted.upper_edge()).is_lt();
            let found = self.0.get(self.0.partition_point(ends_before));
            found.is_some_and(|known| known.lower_edge().compare(wanted.lower_edge()).is_le())
        };
        other.0.iter().all(is_within)
    }

    /// Whether both have something in common.
    pub fn overlaps(self, other: Spans<'_>) -> bool {
        other.0.iter().any(|wanted| {
            let found = self.0.get(self.0.partition_point(|known| known.is_before(wanted)));
            found.is_some_and(|known| known.overlaps(wanted))
        })
    }

    /// Whether all of it lies in front of all of the other one.
    pub fn is_before(self, other: Spans<'_>) -> bool {
        matches!((self.upper_edge(), other.lower_edge()), (Some(end), Some(begin)) if end.compare(begin).is_lt())
    }

    /// Whether nothing of it lies behind all of the other one.
    pub fn ends_within(self, other: Spans<'_>) -> bool {
        matches!((self.upper_edge(), other.upper_edge()), (Some(end), Some(last)) if end.compare(last).is_le())
    }

    /// Whether nothing of it lies in front of all of the other one.
    pub fn begins_within(self, other: Spans<'_>) -> bool {
        matches!((self.lower_edge(), other.lower_edge()), (Some(begin), Some(first)) if begin.compare(first).is_ge())
    }

    /// Whether one begins where the other one ends.
    pub fn is_adjacent(self, other: Spans<'_>) -> bool {
        let meets = |left: Spans<'_>, right: Spans<'_>| matches!((left.upper_edge(), right.lower_edge()), (Some(end), Some(begin)) if end.meets(begin));
        meets(self, other) || meets(other, self)
    }

    /// The ranges.
    pub fn bounds(self) -> &'a [Bounds] {
        self.0
    }

    fn lower_edge(self) -> Option<Edge<'a>> {
        self.0.first().map(Bounds::lower_edge)
    }

    fn upper_edge(self) -> Option<Edge<'a>> {
        self.0.last().map(Bounds::upper_edge)
    }
}
