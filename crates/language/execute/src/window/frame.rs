//! The frames of window functions.

use plan::expression::Environment;
use plan::window::{Bound, Frame, FrameUnits};
use types::{SqlError, SqlState};

/// A frame whose offsets are numbers: rows from the current one, before it negative; `None` is without bound.
pub(super) struct ResolvedFrame {
    pub units: FrameUnits,
    pub start: Option<i64>,
    pub end: Option<i64>,
}

/// Evaluates the offsets.
pub(super) fn resolved(frame: &Frame, environment: &Environment<'_>) -> Result<ResolvedFrame, SqlError> {
    let offset = |bound: &Bound, which: &str| {
        let (expression, before) = match bound {
            Bound::First | Bound::Last => return Ok(None),
            Bound::Current => return Ok(Some(0)),
            Bound::Before(offset) => (offset, true),
            Bound::After(offset) => (offset, false),
        };
        let offset = expression.evaluate(environment)?;
        let Some(offset) = offset.as_integer() else {
            let message = format!("frame {which} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        if offset < 0 {
            let message = format!("frame {which} offset must not be negative");
            return Err(SqlError::new(SqlState(*b"22013"), message));
        }
        Ok(Some(if before { -offset } else { offset }))
    };
    Ok(ResolvedFrame {
        units: frame.units,
        start: offset(&frame.start, "starting")?,
        end: offset(&frame.end, "ending")?,
    })
}
