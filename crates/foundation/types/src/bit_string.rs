//! Strings of bits: values of `bit(n)` and `bit varying(n)`.

use crate::unknown_types::check_known;
use crate::{ExecutionVersion, SqlError, SqlState};
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

/// What the encodings of values of `bit` and `bit varying` begin with.
const BIT_TAG: u8 = 25;
const VARBIT_TAG: u8 = 26;

/// A string of bits, at most as many as a text has bytes: [`crate::limits::TEXT_BYTES_MAX`].
#[derive(Clone, PartialEq, Eq, Debug, Hash, BorshSerialize)]
pub struct BitString {
    /// How many bits.
    length: u32,
    /// The bits from the left, eight in a byte; the last byte is filled up with zeros.
    bytes: Box<[u8]>,
}

impl BitString {
    /// So many bits, of bytes that are cut off or filled up with zeros.
    ///
    /// # Errors
    /// `54000` where they are more than [`crate::limits::TEXT_BYTES_MAX`].
    pub fn new(length: u64, mut bytes: Vec<u8>) -> Result<BitString, SqlError> {
        let length = checked_length(length)?;
        bytes.resize(bytes_of(length), 0);
        if let Some(last) = bytes.last_mut() {
            *last &= !unused(length);
        }
        Ok(BitString { length, bytes: bytes.into() })
    }

    /// The lowest bits of a number of `bits` bits; in front of them its sign, where there are more of them.
    ///
    /// # Errors
    /// As [`BitString::new`].
    pub fn of_integer(number: i64, bits: u32, length: u32) -> Result<BitString, SqlError> {
        let length = checked_length(u64::from(length))?;
        // The number in as many bits, the first of which are its sign.
        let shown = length.min(bits);
        let digits = number.to_be_bytes();
        let start = BitString { length: 64, bytes: digits.into() }.slice(64 - shown, 64);
        let fill = if number < 0 { u8::MAX } else { 0 };
        let sign = BitString::new(u64::from(length - shown), vec![fill; bytes_of(length - shown)])?;
        sign.followed_by(&start)
    }

    /// The number that the bits are, the last one being 1; `None` where they are more than `bits`.
    pub fn to_integer(&self, bits: u32) -> Option<u64> {
        if self.length > bits {
            return None;
        }
        let number = self.bytes.iter().fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        Some(number >> unused(self.length).count_ones())
    }

    /// Compares as PostgreSQL does: bit by bit, the shorter one first where it is the longer one's beginning.
    pub fn compare(&self, other: &BitString) -> Ordering {
        self.bytes.cmp(&other.bytes).then(self.length.cmp(&other.length))
    }

    /// How many bits.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The bits from the left, eight in a byte; the last byte is filled up with zeros.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bit at a place, counted from 0; `None` behind the end.
    pub fn get(&self, at: u32) -> Option<bool> {
        (at < self.length).then(|| self.bytes[at as usize / 8] & mask(at) != 0)
    }

    /// The same with another bit at a place, which must be within it.
    #[must_use]
    pub fn with(mut self, at: u32, bit: bool) -> BitString {
        match bit {
            true => self.bytes[at as usize / 8] |= mask(at),
            false => self.bytes[at as usize / 8] &= !mask(at),
        }
        self
    }

    /// The bits from one place to in front of another, which must be within it.
    #[must_use]
    pub fn slice(&self, from: u32, to: u32) -> BitString {
        let length = to.saturating_sub(from);
        let (start, shift) = (from as usize / 8, from % 8);
        let byte = |at: usize| u16::from(self.bytes.get(at).copied().unwrap_or(0));
        let shifted = |at: usize| ((byte(at) << 8 | byte(at + 1)) << shift >> 8) as u8;
        let mut bytes: Box<[u8]> = (start..start + bytes_of(length)).map(shifted).collect();
        if let Some(last) = bytes.last_mut() {
            *last &= !unused(length);
        }
        BitString { length, bytes }
    }

    /// These bits, then others.
    ///
    /// # Errors
    /// As [`BitString::new`].
    pub fn followed_by(&self, other: &BitString) -> Result<BitString, SqlError> {
        let length = u64::from(self.length) + u64::from(other.length);
        let mut bytes = Vec::with_capacity(self.bytes.len() + other.bytes.len());
        bytes.extend_from_slice(&self.bytes);
        let shift = self.length % 8;
        match bytes.last_mut() {
            Some(last) if shift != 0 => {
                let mut before = 0;
                let shifted = other.bytes.iter().map(|byte| {
                    let next = (u16::from(before) << 8 | u16::from(*byte)) >> shift;
                    before = *byte;
                    next as u8
                });
                let mut shifted: Vec<u8> = shifted.collect();
                shifted.push(before << (8 - shift));
                *last |= shifted[0];
                bytes.extend_from_slice(&shifted[1..]);
            }
            _ => bytes.extend_from_slice(&other.bytes),
        }
        BitString::new(length, bytes)
    }

    /// So many of its bits, with zeros behind them where there are not so many.
    ///
    /// # Errors
    /// As [`BitString::new`].
    pub fn resized(&self, length: u32) -> Result<BitString, SqlError> {
        // What is too long is refused before there is room for it.
        let kept = &self.bytes[..self.bytes.len().min(bytes_of(length))];
        BitString::new(u64::from(length), kept.to_vec())
    }
}

fn checked_length(found: u64) -> Result<u32, SqlError> {
    let limit = crate::text_bytes_max();
    u32::try_from(found).ok().filter(|length| *length as usize <= limit).ok_or_else(|| {
        let message = format!("the bit string has {found} bits, the limit is {limit} (TEXT_BYTES_MAX)");
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
    })
}

/// The bit in its byte.
fn mask(at: u32) -> u8 {
    0x80 >> (at % 8)
}

fn bytes_of(length: u32) -> usize {
    length.div_ceil(8) as usize
}

/// The bits of the last byte that are behind the end.
fn unused(length: u32) -> u8 {
    match length % 8 {
        0 => 0,
        used => u8::MAX >> used,
    }
}

fn read_bits<R: io::Read>(reader: &mut R) -> io::Result<Arc<BitString>> {
    let refused = || io::Error::new(io::ErrorKind::InvalidData, "expected a string of bits");
    let length = u32::deserialize_reader(reader)?;
    let count = u32::deserialize_reader(reader)? as usize;
    if length as usize > crate::text_bytes_max() || count != bytes_of(length) {
        return Err(refused());
    }
    let mut bytes = vec![0; count];
    reader.read_exact(&mut bytes)?;
    match bytes.last() {
        Some(last) if last & unused(length) != 0 => Err(refused()),
        _ => Ok(Arc::new(BitString { length, bytes: bytes.into() })),
    }
}

/// The encoded `bit(n)`.
pub(crate) fn read_bit<R: io::Read>(reader: &mut R) -> io::Result<Arc<BitString>> {
    check_known(BIT_TAG, ExecutionVersion::V10)?;
    read_bits(reader)
}

/// The encoded `bit varying(n)`.
pub(crate) fn read_varbit<R: io::Read>(reader: &mut R) -> io::Result<Arc<BitString>> {
    check_known(VARBIT_TAG, ExecutionVersion::V10)?;
    read_bits(reader)
}

/// Reads a `bit(length)` (`is_varying`: a `bit varying(length)`), without a length of any: zeros and ones, perhaps behind a `b`, or
/// hexadecimal digits behind an `x`.
///
/// # Errors
/// `22026` (`22001`) where it has another length, `22P02` where a digit is none, `54000` where it is longer than any may be.
pub(crate) fn parse_bits(text: &str, length: Option<u32>, is_varying: bool) -> Result<BitString, SqlError> {
    let (digits, bits_per_digit): (&str, usize) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (&text[1..], 1),
        Some(b'x' | b'X') => (&text[1..], 4),
        _ => (text, 1),
    };
    let found = digits.len() as u64 * bits_per_digit as u64;
    let mut bits = BitString::new(found, Vec::new())?;
    for (at, digit) in digits.chars().enumerate() {
        let Some(value) = digit.to_digit(1 << bits_per_digit) else {
            let name = if bits_per_digit == 1 { "binary" } else { "hexadecimal" };
            let message = format!("\"{digit}\" is not a valid {name} digit");
            return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        };
        let place = at * bits_per_digit;
        bits.bytes[place / 8] |= (value << (8 - bits_per_digit - place % 8)) as u8;
    }
    check_fits(&bits, length, is_varying)?;
    Ok(bits)
}

/// Whether bits are a `bit(length)` or, with `is_varying`, a `bit varying(length)`.
///
/// # Errors
/// `22026` (`22001`) where they are not.
pub(crate) fn check_fits(bits: &BitString, length: Option<u32>, is_varying: bool) -> Result<(), SqlError> {
    let found = bits.length;
    match length {
        Some(length) if is_varying && found > length => {
            let message = format!("bit string too long for type bit varying({length})");
            Err(SqlError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message))
        }
        Some(length) if !is_varying && found != length => {
            let message = format!("bit string length {found} does not match type bit({length})");
            Err(SqlError::new(SqlState(*b"22026"), message))
        }
        _ => Ok(()),
    }
}

/// Writes zeros and ones.
pub(crate) fn format_bits(bits: &BitString) -> String {
    (0..bits.length).map(|at| if bits.get(at) == Some(true) { '1' } else { '0' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use crate::{DataType, Key, Value, parse_value, with_types_of};
    use proptest::prelude::*;

    fn bits(text: &str) -> BitString {
        parse_bits(text, None, true).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn bits_are_read_as_postgresql_reads_them() {
        for (text, length, written) in [
            ("", None, ""),
            ("b", None, ""),
            ("101", Some(3), "101"),
            ("B1011000011110", None, "1011000011110"),
            ("x1F", Some(8), "00011111"),
            ("XaBc", None, "101010111100"),
        ] {
            let read = parse_bits(text, length, false);
            assert_eq!(read.as_ref().map(format_bits).as_deref(), Ok(written), "{text}");
            assert_eq!(bits(written), read.expect("bits"));
        }
        assert_eq!(parse_bits("101", Some(5), true), Ok(bits("101")));
    }

    #[test]
    fn errors_are_those_of_postgresql() {
        let many = "1".repeat(limits::TEXT_BYTES_MAX + 1);
        for (text, length, is_varying, state, message) in [
            ("101", Some(4), false, b"22026", "bit string length 3 does not match type bit(4)"),
            ("", Some(3), false, b"22026", "bit string length 0 does not match type bit(3)"),
            ("x1", Some(1), false, b"22026", "bit string length 4 does not match type bit(1)"),
            ("1010", Some(3), true, b"22001", "bit string too long for type bit varying(3)"),
            ("102", None, false, b"22P02", "\"2\" is not a valid binary digit"),
            (" 1", None, true, b"22P02", "\" \" is not a valid binary digit"),
            ("1é", None, true, b"22P02", "\"é\" is not a valid binary digit"),
            ("x1g", None, true, b"22P02", "\"g\" is not a valid hexadecimal digit"),
            (
                &many,
                None,
                true,
                b"54000",
                "the bit string has 1048577 bits, the limit is 1048576 (TEXT_BYTES_MAX)",
            ),
        ] {
            let error = parse_bits(text, length, is_varying).expect_err(message);
            assert_eq!((error.state, error.message.as_str()), (SqlState(*state), message));
        }
    }

    #[test]
    fn only_canonical_bits_are_decoded() {
        for (length, bytes, is_canonical) in [
            (0, vec![], true),
            (0, vec![0], false),
            (3, vec![0b1010_0000], true),
            (3, vec![0b1011_0000], false),
            (3, vec![], false),
            (3, vec![0b1010_0000, 0], false),
            (8, vec![1], true),
            (limits::TEXT_BYTES_MAX as u32, vec![0; limits::TEXT_BYTES_MAX / 8], true),
            (limits::TEXT_BYTES_MAX as u32 + 8, vec![0; limits::TEXT_BYTES_MAX / 8 + 1], false),
            (u32::MAX, vec![0], false),
        ] {
            let bits = Arc::new(BitString { length, bytes: bytes.into() });
            for value in [Value::Bit(bits.clone()), Value::VarBit(bits.clone())] {
                let encoded = borsh::to_vec(&value).expect("a value");
                let read = Value::try_from_slice(&encoded);
                assert_eq!(read.ok() == Some(value.clone()), is_canonical, "{length}");
                let before = with_types_of(ExecutionVersion::V9, || Value::try_from_slice(&encoded));
                let expected = format!("Unexpected variant tag: {}", encoded[0]);
                assert_eq!(before.map_err(|error| error.to_string()), Err(expected));
            }
        }
    }

    #[test]
    fn numbers_are_the_lowest_bits() {
        for (number, source, length, written) in [
            (5, 32, 8, "00000101"),
            (5, 32, 2, "01"),
            (-1, 32, 40, "1111111111111111111111111111111111111111"),
            (-2, 32, 3, "110"),
            (i64::from(i32::MIN), 32, 34, "1110000000000000000000000000000000"),
            (i64::MAX, 64, 66, "000111111111111111111111111111111111111111111111111111111111111111"),
            (7, 64, 0, ""),
        ] {
            let made = BitString::of_integer(number, source, length).expect("short");
            assert_eq!(format_bits(&made), written, "{number}");
        }
        assert_eq!(bits("101").to_integer(32), Some(5));
        assert_eq!(bits(&"1".repeat(32)).to_integer(32), Some(u64::from(u32::MAX)));
        assert_eq!(bits(&"1".repeat(64)).to_integer(64), Some(u64::MAX));
        assert_eq!(bits(&"1".repeat(33)).to_integer(32), None);
        assert_eq!(bits("").to_integer(32), Some(0));
        assert!(BitString::of_integer(1, 32, u32::MAX).is_err());
        assert!(bits("1").resized(u32::MAX).is_err());
    }

    proptest! {
        #[test]
        fn bits_behave_as_their_texts(
            a in "[01]{0,40}",
            b in "[01]{0,40}",
            ends in any::<(u32, u32)>(),
            bit in any::<bool>(),
        ) {
            let (left, right) = (bits(&a), bits(&b));
            let both = left.followed_by(&right).expect("short");
            prop_assert_eq!(format_bits(&both), format!("{a}{b}"));
            let length = both.length();
            let (from, to) = (ends.0 % (length + 1), ends.1 % (length + 1));
            let slice = both.slice(from.min(to), from.max(to));
            let text = format!("{a}{b}")[from.min(to) as usize..from.max(to) as usize].to_string();
            prop_assert_eq!(&slice, &bits(&text));
            let filled = format!("{a}{b}{:0>50}", 0);
            prop_assert_eq!(format_bits(&both.resized(50).expect("short")), &filled[..50]);
            prop_assert_eq!(left.compare(&right), a.cmp(&b));
            if from < length {
                let changed = both.clone().with(from, bit);
                prop_assert_eq!(changed.get(from), Some(bit));
                prop_assert_eq!(changed.with(from, both.get(from) == Some(true)), both);
            }
            let of = |bits| Value::VarBit(Arc::new(bits));
            let (left, right) = (of(left), of(right));
            let key = |value: &Value| Key::encode([value]).expect("short");
            prop_assert_eq!(key(&left).cmp(&key(&right)), a.cmp(&b));
            prop_assert_eq!(parse_value(&a, DataType::VarBit(None)), Ok(left));
        }
    }
}
