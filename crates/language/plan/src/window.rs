//! Window functions, bound.

use crate::aggregate::{Aggregate, AggregateOrder};
use crate::expression::Expression;
pub use syntax::parse::Exclusion;
use types::DataType;

/// A window function of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// What it computes.
    pub function: WindowFunction,
    /// PARTITION BY
    pub partition: Vec<Expression>,
    /// ORDER BY
    pub order: Vec<AggregateOrder>,
    /// Which rows of the partition count.
    pub frame: Frame,
    /// Type of the result.
    pub data_type: DataType,
}

/// What a window function computes.
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumulativeShare,
    /// `ntile(buckets)`
    Buckets(Expression),
    /// `lag` and `lead`
    Shifted {
        /// Of the other row.
        value: Expression,
        /// How many rows away.
        offset: Expression,
        /// Where there is none.
        default: Expression,
        /// `lag`
        back: bool,
    },
    /// `first_value(value)`
    First(Expression),
    /// `last_value(value)`
    Last(Expression),
    /// `nth_value(value, number)`
    Nth(Expression, Expression),
    /// An aggregate of the frame.
    Aggregate(Box<Aggregate>),
}

/// Which rows of the partition count for a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// What the bounds count.
    pub units: FrameUnits,
    /// The first row.
    pub start: Bound,
    /// The last row.
    pub end: Bound,
    /// What of that does not count.
    pub exclusion: Option<Exclusion>,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// Rows that are equal in ORDER BY are one; with offsets, values by which they are sorted.
    Range,
    /// Groups of rows that are equal in ORDER BY.
    Groups,
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// UNBOUNDED PRECEDING
    First,
    /// `n PRECEDING`
    Before(Expression),
    /// CURRENT ROW
    Current,
    /// `n FOLLOWING`
    After(Expression),
    /// UNBOUNDED FOLLOWING
    Last,
}

impl Default for Frame {
    fn default() -> Frame {
        Frame { units: FrameUnits::Range, start: Bound::First, end: Bound::Current, exclusion: None }
    }
}

impl WindowCall {
    /// Its expressions, over the rows of the query.
    pub fn expressions(&self) -> Vec<&Expression> {
        let mut expressions: Vec<&Expression> = self.partition.iter().collect();
        expressions.extend(self.order.iter().map(|key| &key.expression));
        for bound in [&self.frame.start, &self.frame.end] {
            if let Bound::Before(offset) | Bound::After(offset) = bound {
                expressions.push(offset);
            }
        }
        match &self.function {
            WindowFunction::Buckets(value) | WindowFunction::First(value) | WindowFunction::Last(value) => {
                expressions.push(value);
            }
            WindowFunction::Nth(value, number) => expressions.extend([value, number]),
            WindowFunction::Shifted { value, offset, default, .. } => {
                expressions.extend([value, offset, default]);
            }
            WindowFunction::Aggregate(aggregate) => expressions.extend(aggregate.expressions()),
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumulativeShare => {}
        }
        expressions
    }

    /// The same, to be changed.
    pub fn expressions_mut(&mut self) -> Vec<&mut Expression> {
        let mut expressions: Vec<&mut Expression> = self.partition.iter_mut().collect();
        expressions.extend(self.order.iter_mut().map(|key| &mut key.expression));
        for bound in [&mut self.frame.start, &mut self.frame.end] {
            if let Bound::Before(offset) | Bound::After(offset) = bound {
                expressions.push(offset);
            }
        }
        match &mut self.function {
            WindowFunction::Buckets(value) | WindowFunction::First(value) | WindowFunction::Last(value) => {
                expressions.push(value);
            }
            WindowFunction::Nth(value, number) => expressions.extend([value, number]),
            WindowFunction::Shifted { value, offset, default, .. } => {
                expressions.extend([value, offset, default]);
            }
            WindowFunction::Aggregate(aggregate) => expressions.extend(aggregate.expressions_mut()),
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumulativeShare => {}
        }
        expressions
    }
}
