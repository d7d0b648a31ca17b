//! Reading what is encoded. A bound is a value, of which only those of the range's elements are read, so that no bytes say how deep that
//! goes.

use super::{Bound, Bounds, Multirange, Range, RangeType};
use crate::unknown_types::{array_elements_known, check_known};
use crate::{ExecutionVersion, Value};
use borsh::BorshDeserialize;
use borsh::de::EnumExt;
use std::io;

/// What the encodings of both begin with as values.
const RANGE_TAG: u8 = 28;
const MULTIRANGE_TAG: u8 = 29;

fn refused(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What the encoding of an element begins with.
fn element_tag(range_type: RangeType) -> u8 {
    match range_type {
        RangeType::Int4 => 2,
        RangeType::Int8 => 3,
        RangeType::Num => 4,
        RangeType::Date => 10,
        RangeType::Ts => 11,
        RangeType::TsTz => 7,
    }
}

fn read_bound<R: io::Read>(reader: &mut R, range_type: RangeType) -> io::Result<Option<Bound>> {
    if !bool::deserialize_reader(reader)? {
        return Ok(None);
    }
    let tag = u8::deserialize_reader(reader)?;
    if tag != element_tag(range_type) {
        return Err(refused("expected bounds of the type of the range's elements"));
    }
    let value = Value::deserialize_variant(reader, tag)?;
    Ok(Some(Bound { value, is_included: bool::deserialize_reader(reader)? }))
}

fn read_bounds<R: io::Read>(reader: &mut R, range_type: RangeType) -> io::Result<Bounds> {
    let lower = read_bound(reader, range_type)?;
    let bounds = Bounds { lower, upper: read_bound(reader, range_type)? };
    match bounds.is_canonical(range_type) {
        true => Ok(bounds),
        false => Err(refused("expected the bounds of a range in the form of its type")),
    }
}

impl BorshDeserialize for Range {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Range> {
        check_known(RANGE_TAG, ExecutionVersion::V10)?;
        let range_type = RangeType::deserialize_reader(reader)?;
        let bounds = match bool::deserialize_reader(reader)? {
            true => Some(read_bounds(reader, range_type)?),
            false => None,
        };
        Range::of_bounds(range_type, bounds)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl BorshDeserialize for Multirange {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Multirange> {
        check_known(MULTIRANGE_TAG, ExecutionVersion::V10)?;
        let range_type = RangeType::deserialize_reader(reader)?;
        let count = u32::deserialize_reader(reader)? as usize;
        if count > array_elements_known() {
            return Err(refused("expected at most ARRAY_ELEMENTS_MAX ranges"));
        }
        let mut ranges: Vec<Bounds> = Vec::new();
        for _ in 0..count {
            let bounds = read_bounds(reader, range_type)?;
            let is_behind = |last: &Bounds| last.is_before(&bounds) && !last.touches(&bounds);
            if !ranges.last().is_none_or(is_behind) {
                return Err(refused("expected ranges in order, with something between them"));
            }
            ranges.push(bounds);
        }
        Multirange::of_bounds(range_type, &ranges)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use std::sync::Arc;

    #[test]
    fn the_tags_are_those_of_the_encoding() {
        for range_type in RangeType::ALL {
            let range = Value::Range(Arc::new(Range::empty(range_type)));
            assert_eq!(encode(&range)[0], RANGE_TAG);
            let multirange = Multirange { range_type, ranges: Vec::new() };
            assert_eq!(encode(&Value::Multirange(Arc::new(multirange)))[0], MULTIRANGE_TAG);
            let element = crate::parse_value("-infinity", range_type.element())
                .or_else(|_| crate::parse_value("0", range_type.element()));
            assert_eq!(encode(&element.expect("an element"))[0], element_tag(range_type));
        }
    }
}
