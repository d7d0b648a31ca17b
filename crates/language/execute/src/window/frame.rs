//! The frames of window functions.

use plan::expression::Environment;
use plan::window::{Bound, Exclusion, Frame, FrameUnits};
use types::{SqlError, SqlState, Value};

/// A frame whose offsets are values.
pub(super) struct ResolvedFrame {
    pub units: FrameUnits,
    pub start: Edge,
    pub end: Edge,
    pub exclusion: Option<Exclusion>,
}

/// Where a frame begins or ends.
pub(super) enum Edge {
    /// With the partition.
    Open,
    /// At so many rows, or groups of them, from the current one; before it negative.
    Away(i64),
    /// Where a value is that is so far from that of the current row.
    Offset { offset: Value, before: bool },
}

impl ResolvedFrame {
    /// Whether the rows that are equal to the current one make a difference.
    pub fn asks_for_peers(&self) -> bool {
        let is_open = |edge: &Edge| matches!(edge, Edge::Open);
        let by_rows = matches!(self.units, FrameUnits::Rows);
        !(by_rows || is_open(&self.start) && is_open(&self.end))
            || matches!(self.exclusion, Some(Exclusion::Group | Exclusion::Ties))
    }
}

/// Evaluates the offsets.
pub(super) fn resolved(frame: &Frame, environment: &Environment<'_>) -> Result<ResolvedFrame, SqlError> {
    let edge = |bound: &Bound, which: &str| {
        let (expression, before) = match bound {
            Bound::First | Bound::Last => return Ok(Edge::Open),
            Bound::Current => return Ok(Edge::Away(0)),
            Bound::Before(offset) => (offset, true),
            Bound::After(offset) => (offset, false),
        };
        let value = expression.evaluate(environment)?;
        if value.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        let offset = match (frame.units, value.as_integer()) {
            (FrameUnits::Rows | FrameUnits::Groups, Some(offset)) => offset,
            // Whether it is less than nothing is told when values are compared.
            _ => return Ok(Edge::Offset { offset: value, before }),
        };
        if offset < 0 {
            let message = format!("frame {which} offset must not be negative");
            return Err(SqlError::new(SqlState(*b"22013"), message));
        }
        Ok(Edge::Away(if before { -offset } else { offset }))
    };
    Ok(ResolvedFrame {
        units: frame.units,
        start: edge(&frame.start, "starting")?,
        end: edge(&frame.end, "ending")?,
        exclusion: frame.exclusion,
    })
}
