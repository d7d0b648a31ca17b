//! The dimensions of an array: how many elements stand beside each other in each, and from which subscript on they count.

use crate::{SqlError, SqlState, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::{SmallVec, smallvec};
use std::ops::RangeInclusive;

/// One dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Dimension {
    /// The subscript of its first element.
    pub lower: i32,
    /// How many elements it has.
    pub length: u32,
}

/// All of an array, the outermost first; none of an empty one.
pub type Dimensions = SmallVec<[Dimension; 2]>;

/// What subscripts say of one dimension, both ends included.
pub type Span = RangeInclusive<i64>;

impl Dimension {
    /// So many elements, of which the first one has the subscript 1.
    pub fn of(length: usize) -> Dimension {
        Dimension { lower: 1, length: length as u32 }
    }

    /// The subscript of its last element.
    pub fn upper(self) -> i64 {
        i64::from(self.lower) + i64::from(self.length) - 1
    }

    /// All of its subscripts.
    pub fn span(self) -> Span {
        i64::from(self.lower)..=self.upper()
    }

    /// Those from one subscript to another one.
    ///
    /// # Errors
    /// `54000` where they do not end in front of the largest subscript.
    pub fn spanning(span: &Span) -> Result<Dimension, SqlError> {
        let length = (span.end() - span.start() + 1).max(0);
        let known = i32::try_from(*span.start()).ok().zip(u32::try_from(length).ok());
        match known {
            Some((lower, length)) if *span.end() < i64::from(i32::MAX) => Ok(Dimension { lower, length }),
            _ => {
                let message = format!("array lower bound is too large: {}", span.start());
                Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
            }
        }
    }
}

/// Refuses more dimensions than there may be.
///
/// # Errors
/// `54000`
pub fn check_dimensions(count: usize) -> Result<(), SqlError> {
    let limit = limits::ARRAY_DIMENSIONS_MAX;
    if count <= limit {
        return Ok(());
    }
    let message = format!("number of array dimensions ({count}) exceeds the maximum allowed ({limit})");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

/// How many elements there are in all.
pub fn elements_in(dimensions: &[Dimension]) -> usize {
    dimensions
        .iter()
        .map(|dimension| dimension.length as usize)
        .fold(usize::from(!dimensions.is_empty()), usize::saturating_mul)
}

/// The place of the element with these subscripts among the elements, which stand row by row; `None` where there is none.
pub(super) fn place_of(dimensions: &[Dimension], subscripts: &[i64]) -> Option<usize> {
    if dimensions.len() != subscripts.len() {
        return None;
    }
    dimensions.iter().zip(subscripts).try_fold(0, |place: usize, (dimension, subscript)| {
        let within = dimension.span().contains(subscript).then(|| subscript - i64::from(dimension.lower))?;
        Some(place * dimension.length as usize + within as usize)
    })
}

/// The places of the elements within these spans, in their order. Each span lies within its dimension.
pub(super) fn places_within(dimensions: &[Dimension], spans: &[Span]) -> Vec<usize> {
    let mut places = vec![0];
    for (dimension, span) in dimensions.iter().zip(spans) {
        let of_span = |place: &usize| {
            let first = *place * dimension.length as usize;
            let lower = i64::from(dimension.lower);
            span.clone().map(move |subscript| first + (subscript - lower) as usize)
        };
        places = places.iter().flat_map(of_span).collect();
    }
    places
}

/// Of one dimension from 1, as most arrays are; none of an array without elements.
pub(super) fn plain(length: usize) -> Dimensions {
    match length {
        0 => Dimensions::new(),
        length => smallvec![Dimension::of(length)],
    }
}
