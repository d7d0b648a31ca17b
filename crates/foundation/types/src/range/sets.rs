//! Unions, intersections and differences.

use super::{Bound, Bounds, Multirange, Range, Spans};
use crate::{SqlError, SqlState};

#[cold]
fn not_contiguous(what: &str) -> SqlError {
    SqlError::new(SqlState::DATA_EXCEPTION, format!("result of range {what} would not be contiguous"))
}

impl Range {
    /// All that is in one of both.
    ///
    /// # Errors
    /// `22000` where something lies between them, `54000` where it is too long as a text.
    pub fn union(&self, other: &Range) -> Result<Range, SqlError> {
        if let (Some(left), Some(right)) = (&self.bounds, &other.bounds)
            && !left.touches(right)
        {
            return Err(not_contiguous("union"));
        }
        self.hull(other)
    }

    /// The same with what lies between them.
    ///
    /// # Errors
    /// `54000` where it is too long as a text.
    pub fn hull(&self, other: &Range) -> Result<Range, SqlError> {
        match (&self.bounds, &other.bounds) {
            (None, _) => Ok(other.clone()),
            (_, None) => Ok(self.clone()),
            (Some(left), Some(right)) => Range::of_bounds(self.range_type, Some(left.hull(right))),
        }
    }

    /// What is in both.
    ///
    /// # Errors
    /// `54000` where it is too long as a text.
    pub fn intersection(&self, other: &Range) -> Result<Range, SqlError> {
        let both = self.bounds.as_ref().zip(other.bounds.as_ref());
        Range::of_bounds(self.range_type, both.and_then(|(left, right)| left.intersection(right)))
    }

    /// What is in it and not in the other one.
    ///
    /// # Errors
    /// `22000` where that is two ranges, `54000` where it is too long as a text.
    pub fn minus(&self, other: &Range) -> Result<Range, SqlError> {
        let (Some(left), Some(right)) = (&self.bounds, &other.bounds) else { return Ok(self.clone()) };
        match left.minus(right) {
            (Some(_), Some(_)) => Err(not_contiguous("difference")),
            (front, back) => Range::of_bounds(self.range_type, front.or(back)),
        }
    }
}

impl Multirange {
    /// The range from its beginning to its end.
    ///
    /// # Errors
    /// `54000` where that is too long as a text.
    pub fn hull(&self) -> Result<Range, SqlError> {
        let ends = self.ranges.first().zip(self.ranges.last());
        let hull = ends.map(|(first, last)| Bounds { lower: first.lower.clone(), upper: last.upper.clone() });
        Range::of_bounds(self.range_type, hull)
    }

    /// All that is in one of both.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn union(&self, other: &Multirange) -> Result<Multirange, SqlError> {
        Multirange::of_bounds(self.range_type, self.ranges.iter().chain(&other.ranges))
    }

    /// What is in both.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn intersection(&self, other: &Multirange) -> Result<Multirange, SqlError> {
        Multirange::of_bounds(self.range_type, &self.spans().common(other.spans()))
    }

    /// What is in it and not in the other one.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn minus(&self, other: &Multirange) -> Result<Multirange, SqlError> {
        Multirange::of_bounds(self.range_type, &self.spans().remaining(other.spans()))
    }
}

impl Spans<'_> {
    /// What is in both, in the order of these.
    fn common(self, other: Spans<'_>) -> Vec<Bounds> {
        let mut others = other.bounds();
        let mut found = Vec::new();
        for bounds in self.bounds() {
            others = behind(others, bounds);
            // The last one may go on into what follows.
            let reaching = others.iter().take_while(|other| bounds.overlaps(other));
            found.extend(reaching.filter_map(|other| bounds.intersection(other)));
        }
        found
    }

    /// What is left of these without the others.
    fn remaining(self, other: Spans<'_>) -> Vec<Bounds> {
        let mut others = other.bounds();
        let mut found = Vec::new();
        for bounds in self.bounds() {
            others = behind(others, bounds);
            let mut rest = Some(bounds.clone());
            for taken in others {
                let Some(bounds) = rest.take_if(|bounds| bounds.overlaps(taken)) else { break };
                let (front, back) = bounds.minus(taken);
                found.extend(front);
                rest = back;
            }
            found.extend(rest);
        }
        found
    }
}

/// Without those that lie in front.
fn behind<'a>(others: &'a [Bounds], bounds: &Bounds) -> &'a [Bounds] {
    let first = others.iter().position(|other| !other.is_before(bounds));
    &others[first.unwrap_or(others.len())..]
}

impl Bounds {
    pub(super) fn is_before(&self, other: &Bounds) -> bool {
        self.upper_edge().compare(other.lower_edge()).is_lt()
    }

    pub(super) fn overlaps(&self, other: &Bounds) -> bool {
        !self.is_before(other) && !other.is_before(self)
    }

    /// Whether both have something in common, or nothing between them.
    pub(super) fn touches(&self, other: &Bounds) -> bool {
        self.overlaps(other)
            || self.upper_edge().meets(other.lower_edge())
            || other.upper_edge().meets(self.lower_edge())
    }

    /// From the first beginning to the last end.
    pub(super) fn hull(&self, other: &Bounds) -> Bounds {
        let is_first = self.lower_edge().compare(other.lower_edge()).is_lt();
        let is_last = self.upper_edge().compare(other.upper_edge()).is_gt();
        Bounds {
            lower: if is_first { &self.lower } else { &other.lower }.clone(),
            upper: if is_last { &self.upper } else { &other.upper }.clone(),
        }
    }

    fn intersection(&self, other: &Bounds) -> Option<Bounds> {
        let begins = self.lower_edge().compare(other.lower_edge()).is_ge();
        let ends = self.upper_edge().compare(other.upper_edge()).is_le();
        self.overlaps(other).then(|| Bounds {
            lower: if begins { &self.lower } else { &other.lower }.clone(),
            upper: if ends { &self.upper } else { &other.upper }.clone(),
        })
    }

    /// What lies in front of the other one, and what lies behind it.
    fn minus(&self, other: &Bounds) -> (Option<Bounds>, Option<Bounds>) {
        if !self.overlaps(other) {
            return match self.is_before(other) {
                true => (Some(self.clone()), None),
                false => (None, Some(self.clone())),
            };
        }
        // The value of a bound is in one of what lies on both sides of it.
        let beyond = |bound: &Option<Bound>| {
            bound.clone().map(|bound| Bound { is_included: !bound.is_included, ..bound })
        };
        let front = self.lower_edge().compare(other.lower_edge()).is_lt();
        let back = self.upper_edge().compare(other.upper_edge()).is_gt();
        (
            front.then(|| Bounds { lower: self.lower.clone(), upper: beyond(&other.lower) }),
            back.then(|| Bounds { lower: beyond(&other.upper), upper: self.upper.clone() }),
        )
    }
}
