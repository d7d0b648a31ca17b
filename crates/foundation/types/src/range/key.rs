use super::{Bound, Bounds};
use crate::{SqlError, Value};
use smallvec::SmallVec;

/// Appends bytes that sort as ranges compare.
///
/// ```text
/// empty:   00
/// others:  01, or 02 and the lower bound's value, then 00 where it is in the range and 01 where it is not;
///          00, the upper bound's value, then 00 where it is not in the range and 01 where it is, or 01
/// ```
pub(crate) fn push_range_key(
    bytes: &mut SmallVec<[u8; 16]>,
    bounds: Option<&Bounds>,
    mut push: impl FnMut(&mut SmallVec<[u8; 16]>, &Value) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let Some(Bounds { lower, upper }) = bounds else {
        bytes.push(0);
        return Ok(());
    };
    match lower {
        None => bytes.push(1),
        Some(Bound { value, is_included }) => {
            bytes.push(2);
            push(bytes, value)?;
            bytes.push(u8::from(!is_included));
        }
    }
    match upper {
        None => bytes.push(1),
        Some(Bound { value, is_included }) => {
            bytes.push(0);
            push(bytes, value)?;
            bytes.push(u8::from(*is_included));
        }
    }
    Ok(())
}
