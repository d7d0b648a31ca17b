use super::Bound;
use std::cmp::Ordering;

/// An end of a range, which compares with both ends of others.
#[derive(Clone, Copy)]
pub(super) struct Edge<'a> {
    bound: Option<&'a Bound>,
    is_lower: bool,
}

impl<'a> Edge<'a> {
    pub(super) fn new(bound: Option<&'a Bound>, is_lower: bool) -> Edge<'a> {
        Edge { bound, is_lower }
    }

    pub(super) fn bound(self) -> Option<&'a Bound> {
        self.bound
    }

    /// Which comes first. Two values of a range are the first and the last one of it, so an excluded lower bound lies behind its value
    /// and an excluded upper one in front of it.
    pub(super) fn compare(self, other: Edge<'_>) -> Ordering {
        self.compare_values(other).then_with(|| self.offset().cmp(&other.offset()))
    }

    /// The same, whether the values are in the ranges or not.
    pub(super) fn compare_values(self, other: Edge<'_>) -> Ordering {
        match (self.bound, other.bound) {
            (Some(left), Some(right)) => left.value.sort_compare(&right.value),
            _ => self.at_infinity().cmp(&other.at_infinity()),
        }
    }

    /// Whether a range that ends here and one that begins there have nothing in common and nothing between them. A range of whole numbers
    /// or dates ends in front of the value that the next one begins with.
    pub(super) fn meets(self, lower: Edge<'_>) -> bool {
        match (self.bound, lower.bound) {
            (Some(end), Some(begin)) => {
                end.is_included != begin.is_included && self.compare_values(lower).is_eq()
            }
            _ => false,
        }
    }

    fn offset(self) -> i8 {
        match self.bound {
            Some(Bound { is_included: false, .. }) if self.is_lower => 1,
            Some(Bound { is_included: false, .. }) => -1,
            _ => 0,
        }
    }

    fn at_infinity(self) -> i8 {
        match self.bound {
            Some(_) => 0,
            None if self.is_lower => -1,
            None => 1,
        }
    }
}
