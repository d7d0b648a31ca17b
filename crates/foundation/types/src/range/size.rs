//! What ranges take in memory and in an encoding.

use super::{Bounds, Multirange, Range};
use crate::{VALUE_BYTES, Value};

impl Range {
    /// Bytes in memory, or a few more; no encoding of it is longer.
    pub fn bytes(&self) -> usize {
        VALUE_BYTES as usize + self.bounds().map_or(0, bytes_of)
    }
}

impl Multirange {
    /// Bytes in memory, or a few more; no encoding of it is longer.
    pub fn bytes(&self) -> usize {
        VALUE_BYTES as usize + self.ranges().iter().map(bytes_of).sum::<usize>()
    }
}

fn bytes_of(bounds: &Bounds) -> usize {
    let ends = [&bounds.lower, &bounds.upper].into_iter().flatten();
    let long = ends.map(|end| match &end.value {
        Value::Numeric(number) => number.stored_bytes(),
        _ => 0,
    });
    size_of::<Bounds>() + long.sum::<usize>()
}
