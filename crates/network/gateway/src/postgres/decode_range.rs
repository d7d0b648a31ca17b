//! Addresses, strings of bits, times with zones and ranges as the Postgres protocol brings them in binary.

use super::encode::range_flag;
use bytes::Buf;
use std::sync::Arc;
use types::datetime::MICROSECONDS_PER_DAY;
use types::{
    BitString, Bound, DataType, Multirange, NetworkAddress, Range, RangeType, SqlError, TimeTz, Value,
};

/// What reads the value of an element: its bytes, and its type's object identifier.
type ReadElement<'a> = &'a dyn Fn(&[u8], u32) -> Result<Value, SqlError>;

/// A value of one of these types; `None` where its bytes are none.
///
/// # Errors
/// What is wrong in it.
pub(super) fn decode(
    bytes: &[u8],
    data_type: DataType,
    read: ReadElement<'_>,
) -> Result<Option<Value>, SqlError> {
    Ok(match data_type {
        DataType::Inet => address(bytes, false).map(Value::Inet),
        DataType::Cidr => address(bytes, true).map(Value::Cidr),
        DataType::MacAddr => bytes.try_into().ok().map(Value::MacAddr),
        DataType::Bit(_) => bits(bytes)?.map(|bits| Value::Bit(Arc::new(bits))),
        DataType::VarBit(_) => bits(bytes)?.map(|bits| Value::VarBit(Arc::new(bits))),
        DataType::TimeTz => time(bytes)?,
        DataType::Range(of) => range(bytes, of, read)?.map(|range| Value::Range(Arc::new(range))),
        DataType::Multirange(of) => {
            multirange(bytes, of, read)?.map(|ranges| Value::Multirange(Arc::new(ranges)))
        }
        _ => None,
    })
}

/// PostgreSQL's `network_recv`: family, length of the prefix, whether it is a network, number of bytes, bytes.
fn address(bytes: &[u8], is_network: bool) -> Option<NetworkAddress> {
    let [family, prefix, _, length, address @ ..] = bytes else { return None };
    let is_v6 = match (family, length) {
        (2, 4) => false,
        (3, 16) => true,
        _ => return None,
    };
    if address.len() != usize::from(*length) {
        return None;
    }
    let number = address.iter().fold(0u128, |number, byte| (number << 8) | u128::from(*byte));
    let known = NetworkAddress::of_number(is_v6, *prefix, number);
    // A network has no bits behind its prefix.
    (known.prefix <= known.bits() && (!is_network || known.network() == known)).then_some(known)
}

/// PostgreSQL's `bit_recv`: how many bits, and their bytes.
fn bits(bytes: &[u8]) -> Result<Option<BitString>, SqlError> {
    let Some((length, bytes)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length);
    if bytes.len() as u64 != u64::from(length).div_ceil(8) {
        return Ok(None);
    }
    BitString::new(u64::from(length), bytes.to_vec()).map(Some)
}

/// PostgreSQL's `timetz_recv`: microseconds since midnight, seconds west of Greenwich.
fn time(bytes: &[u8]) -> Result<Option<Value>, SqlError> {
    let mut rest = bytes;
    if rest.len() != 12 {
        return Ok(None);
    }
    let (microseconds, west) = (rest.get_i64(), rest.get_i32());
    if !(0..=MICROSECONDS_PER_DAY).contains(&microseconds) {
        return Ok(None);
    }
    TimeTz::new(microseconds, -i64::from(west)).map(|time| Some(Value::TimeTz(time)))
}

/// So many bytes behind their length.
fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    let (bytes, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

/// PostgreSQL's `range_recv`: what there is of the range, then its bounds with their lengths in front.
fn range(bytes: &[u8], of: RangeType, read: ReadElement<'_>) -> Result<Option<Range>, SqlError> {
    let Some((flags, mut rest)) = bytes.split_first() else { return Ok(None) };
    let has = |flag: u8| flags & flag != 0;
    if has(range_flag::EMPTY) {
        return Ok(rest.is_empty().then(|| Range::empty(of)));
    }
    let mut bound = |infinite: u8, included: u8| -> Result<Option<Option<Bound>>, SqlError> {
        if has(infinite) {
            return Ok(Some(None));
        }
        let Some(bytes) = counted(&mut rest) else { return Ok(None) };
        let value = read(bytes, of.element().oid())?;
        Ok(Some(Some(Bound { value, is_included: has(included) })))
    };
    let lower = bound(range_flag::LOWER_INFINITE, range_flag::LOWER_INCLUDED)?;
    let upper = bound(range_flag::UPPER_INFINITE, range_flag::UPPER_INCLUDED)?;
    match (lower, upper) {
        (Some(lower), Some(upper)) if rest.is_empty() => Range::new(of, lower, upper).map(Some),
        _ => Ok(None),
    }
}

/// PostgreSQL's `multirange_recv`: how many ranges, and these with their lengths in front.
fn multirange(bytes: &[u8], of: RangeType, read: ReadElement<'_>) -> Result<Option<Multirange>, SqlError> {
    let Some((count, mut rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let mut ranges = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let Some(bytes) = counted(&mut rest) else { return Ok(None) };
        let Some(range) = range(bytes, of, read)? else { return Ok(None) };
        ranges.push(range);
    }
    match rest.is_empty() {
        true => Multirange::new(of, &ranges).map(Some),
        false => Ok(None),
    }
}
