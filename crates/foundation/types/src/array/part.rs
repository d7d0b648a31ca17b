//! Elements and slices of arrays, and arrays with others assigned to them, as PostgreSQL's `arrayfuncs.c` and `arraysubs.c` have them.

use super::dimensions::{Dimension, Dimensions, Span, elements_in, place_of, places_within};
use super::value::{Array, check_array_elements};
use crate::value_limits::{array_elements_max, arrays_are_plain};
use crate::{SqlError, SqlState, Value};
use smallvec::SmallVec;

/// What `[lower:upper]` says of one dimension; `None` where a bound is left out.
pub type SliceBounds = (Option<i64>, Option<i64>);

fn wrong(message: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

#[cold]
fn upper_is_less() -> SqlError {
    wrong("upper bound cannot be less than lower bound")
}

/// Refuses more elements than an array may have that grows; before execution version 16 the error counts one more than there may be.
fn check_grown(found: i64) -> Result<usize, SqlError> {
    let most = if arrays_are_plain() { array_elements_max() + 1 } else { usize::MAX };
    let found = usize::try_from(found).unwrap_or(usize::MAX).min(most);
    check_array_elements(found).map(|()| found)
}

impl Array {
    /// The element with these subscripts, one for each dimension; NULL where there is none.
    pub fn get_at(&self, subscripts: &[i64]) -> Value {
        let place = place_of(&self.dimensions(), subscripts);
        place.and_then(|place| self.values().get(place)).cloned().unwrap_or_default()
    }

    /// The elements within these bounds of the first dimensions, in as many dimensions from 1; no elements where a bound leaves none, or
    /// where there are more bounds than dimensions.
    ///
    /// # Errors
    /// None that the array does not have.
    pub fn slice(&self, bounds: &[SliceBounds]) -> Result<Array, SqlError> {
        let known = self.dimensions();
        let mut spans: SmallVec<[Span; 2]> = known.iter().map(|dimension| dimension.span()).collect();
        let has_all = bounds.len() <= known.len();
        for (span, (lower, upper)) in spans.iter_mut().zip(bounds) {
            let first = lower.unwrap_or(*span.start()).max(*span.start());
            let last = upper.unwrap_or(*span.end()).min(*span.end());
            *span = first..=last;
        }
        if !has_all || spans.iter().any(Span::is_empty) {
            return Array::new(self.element(), Vec::new());
        }
        let places = places_within(&known, &spans);
        let values = places.into_iter().map(|place| self.values()[place].clone()).collect();
        let lengths = spans.iter().map(|span| Dimension::of((span.end() - span.start() + 1) as usize));
        Array::shaped(self.element(), &lengths.collect::<Dimensions>(), values)
    }

    /// With a value at these subscripts. An array of one dimension grows as far as they are away, with NULLs between; one without
    /// elements gets as many dimensions as there are subscripts, which begin with them. Before execution version 16 it begins at 1.
    ///
    /// # Errors
    /// `2202E` where the subscripts are not as many as the dimensions, or outside of several; `54000` where it becomes too large.
    pub fn with_element(&self, subscripts: &[i64], value: Value) -> Result<Array, SqlError> {
        let spans: Vec<Span> = subscripts.iter().map(|subscript| *subscript..=*subscript).collect();
        self.replaced(&spans, std::slice::from_ref(&value))
    }

    /// With the elements of another array within these bounds, row by row, whatever dimensions that has; what it has more is left out.
    ///
    /// # Errors
    /// `2202E` where the bounds leave nothing, are outside of several dimensions, or are too few for an array without elements, and where
    /// there are too few elements for them; `54000` where it becomes too large.
    pub fn with_slice(&self, bounds: &[SliceBounds], source: &[Value]) -> Result<Array, SqlError> {
        let known = self.dimensions();
        let mut spans = Vec::with_capacity(bounds.len().max(known.len()));
        for (number, (lower, upper)) in bounds.iter().enumerate() {
            let within = known.get(number).copied();
            let span = match (within, lower, upper) {
                (_, Some(lower), Some(upper)) => *lower..=*upper,
                (Some(dimension), lower, upper) => {
                    lower.unwrap_or(i64::from(dimension.lower))..=upper.unwrap_or(dimension.upper())
                }
                (None, ..) if known.is_empty() => {
                    return Err(wrong("array slice subscript must provide both boundaries").detail(
                        "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                    ));
                }
                (None, ..) => return Err(wrong("wrong number of array subscripts")),
            };
            spans.push(span);
        }
        // Dimensions of which nothing is said are meant as a whole.
        spans.extend(known.iter().skip(bounds.len()).map(|dimension| dimension.span()));
        self.replaced(&spans, source)
    }

    /// With the first of these values at the places within the spans, one for each dimension.
    fn replaced(&self, spans: &[Span], source: &[Value]) -> Result<Array, SqlError> {
        let mut dimensions = self.dimensions();
        if dimensions.is_empty() && arrays_are_plain() {
            dimensions.push(Dimension::of(0));
        }
        if dimensions.is_empty() {
            return self.made_by_assignment(spans, source);
        }
        if dimensions.len() != spans.len() {
            return Err(wrong("wrong number of array subscripts"));
        }
        if spans.iter().any(Span::is_empty) {
            return Err(upper_is_less());
        }
        let mut values = self.values().to_vec();
        match (dimensions.as_mut_slice(), spans) {
            ([dimension], [span]) => {
                if span.end() - span.start() >= source.len() as i64 {
                    return Err(wrong("source array too small"));
                }
                let lower = i64::from(dimension.lower);
                let grown = lower.min(*span.start())..=dimension.upper().max(*span.end());
                let length = check_grown(grown.end() - grown.start() + 1)?;
                *dimension = Dimension::spanning(&grown)?;
                values.splice(..0, std::iter::repeat_n(Value::Null, (lower - grown.start()) as usize));
                values.resize(length, Value::Null);
            }
            (dimensions, spans) => {
                let is_outside = |(dimension, span): (&Dimension, &Span)| {
                    *span.start() < i64::from(dimension.lower) || *span.end() > dimension.upper()
                };
                if dimensions.iter().zip(spans).any(is_outside) {
                    return Err(wrong("array subscript out of range"));
                }
            }
        }
        let places = places_within(&dimensions, spans);
        if places.len() > source.len() {
            return Err(wrong("source array too small"));
        }
        for (place, value) in places.into_iter().zip(source) {
            values[place] = value.clone();
        }
        Array::shaped(self.element(), &dimensions, values)
    }

    /// The same for an array without elements, which gets these spans as its dimensions.
    fn made_by_assignment(&self, spans: &[Span], source: &[Value]) -> Result<Array, SqlError> {
        let lengths = spans.iter().map(|span| span.end() - span.start() + 1);
        if lengths.clone().any(|length| length < 0) {
            return Err(upper_is_less());
        }
        let length = lengths.fold(1, i64::saturating_mul);
        let is_enough = usize::try_from(length).is_ok_and(|length| length <= source.len());
        if !is_enough {
            return Err(wrong("source array too small"));
        }
        check_grown(length)?;
        let made = spans.iter().map(Dimension::spanning).collect::<Result<Dimensions, _>>()?;
        Array::shaped(self.element(), &made, source[..length as usize].to_vec())
    }

    /// The elements of both in one: two of as many dimensions one behind the other, one of a dimension less as an element of the other.
    ///
    /// # Errors
    /// `2202E` where their dimensions do not go together; `54000` where it becomes too large.
    pub fn joined(&self, other: &Array) -> Result<Array, SqlError> {
        let (left, right) = (self.dimensions(), other.dimensions());
        if left.is_empty() {
            return Ok(other.clone());
        }
        if right.is_empty() {
            return Ok(self.clone());
        }
        let incompatible =
            |detail: String| Err(wrong("cannot concatenate incompatible arrays").detail(detail));
        let (mut dimensions, outer, inner, more) = match left.len() as i64 - right.len() as i64 {
            0 => (left.clone(), &left[1..], &right[1..], right[0].length),
            -1 => (right.clone(), &right[1..], &left[..], 1),
            1 => (left.clone(), &left[1..], &right[..], 1),
            _ => {
                return incompatible(format!(
                    "Arrays of {} and {} dimensions are not compatible for concatenation.",
                    left.len(),
                    right.len()
                ));
            }
        };
        if outer != inner {
            let what = if left.len() == right.len() {
                "differing element dimensions"
            } else {
                "differing dimensions"
            };
            return incompatible(format!("Arrays with {what} are not compatible for concatenation."));
        }
        let first = i64::from(dimensions[0].lower);
        dimensions[0] = Dimension::spanning(&(first..=dimensions[0].upper() + i64::from(more)))?;
        check_array_elements(elements_in(&dimensions))?;
        Array::shaped(self.element(), &dimensions, [self.values(), other.values()].concat())
    }
}
