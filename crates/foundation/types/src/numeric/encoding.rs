//! The stored form of [`Numeric`], and what keys have of it.

use super::decimal::Decimal;
use super::{Form, Numeric, SMALL_DIGITS_MAX, SPECIAL};
use crate::limits;
use borsh::{BorshDeserialize, BorshSerialize};
use num_bigint::{BigInt, Sign};
use smallvec::SmallVec;
use std::io;

/// In the place of the scale: what stands before it is the head of a large value.
const LARGE: u8 = SPECIAL - 1;

/// Bytes of the mantissa of the longest value: eight digits take less than 27 bits.
const MAGNITUDE_BYTES_MAX: u32 =
    (limits::NUMERIC_WHOLE_DIGITS_MAX + limits::NUMERIC_SCALE_MAX as u32) / 8 * 27 / 8 + 8;

/// Bytes of the small form.
const SMALL_BYTES: usize = 17;

/// The small form is its mantissa, 16 bytes, and its scale. The large one has as many bytes before its digits: the length of
/// the magnitude in four, the scale in two, one for the sign, nine of zero, and `LARGE`; then the magnitude.
impl BorshSerialize for Numeric {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        match &self.0 {
            Form::Small { mantissa, scale } => {
                let mut bytes = [0; SMALL_BYTES];
                bytes[..16].copy_from_slice(mantissa);
                bytes[16] = *scale;
                writer.write_all(&bytes)
            }
            Form::Large(decimal) => {
                let (sign, magnitude) = decimal.mantissa.to_bytes_le();
                let magnitude = if sign == Sign::NoSign { &[][..] } else { &magnitude };
                let mut bytes = [0; SMALL_BYTES];
                bytes[..4].copy_from_slice(&(magnitude.len() as u32).to_le_bytes());
                bytes[4..6].copy_from_slice(&(decimal.scale as u16).to_le_bytes());
                bytes[6] = u8::from(sign == Sign::Minus);
                bytes[16] = LARGE;
                writer.write_all(&bytes)?;
                writer.write_all(magnitude)
            }
        }
    }
}

impl BorshDeserialize for Numeric {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Numeric> {
        let (head, scale) = <([u8; 16], u8)>::deserialize_reader(reader)?;
        let refused = || io::Error::new(io::ErrorKind::InvalidData, "expected a numeric value");
        let mantissa = i128::from_le_bytes(head);
        match scale {
            SPECIAL if matches!(mantissa, -1 | 1 | 2) => Ok(Numeric::of_parts(mantissa, SPECIAL)),
            SPECIAL => Err(refused()),
            LARGE => read_large(&head, reader)?.ok_or_else(refused),
            _ => Numeric::new_small(mantissa, u32::from(scale)).ok_or_else(refused),
        }
    }
}

/// `None` where the bytes are not what a value is written as.
fn read_large<R: io::Read>(head: &[u8; 16], reader: &mut R) -> io::Result<Option<Numeric>> {
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let scale = u16::from_le_bytes([head[4], head[5]]);
    if length > MAGNITUDE_BYTES_MAX || head[6] > 1 || head[7..].iter().any(|byte| *byte != 0) {
        return Ok(None);
    }
    let mut magnitude = vec![0; length as usize];
    reader.read_exact(&mut magnitude)?;
    let negative = head[6] == 1;
    if magnitude.last().map_or(negative, |last| *last == 0) {
        return Ok(None);
    }
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    let decimal = Decimal::new(BigInt::from_bytes_le(sign, &magnitude), u32::from(scale));
    let read = Numeric::of_decimal(decimal).ok();
    Ok(read.filter(|read| matches!(read.0, Form::Large(_))))
}

/// Exponents that have one byte in keys are those of the small form.
const KEY_EXPONENTS: std::ops::RangeInclusive<i32> = -75..=38;
const KEY_BIAS: i32 = 76;
const KEY_ZERO: u8 = 0x80;
/// The first byte of the smallest exponent that has one byte. Behind it stands the first pair of digits, which is at least
/// 10, or [`KEY_TINY`] and a smaller exponent in two bytes.
const KEY_SMALLEST: u8 = 0x81;
const KEY_TINY: u8 = 0x01;
/// The first byte of larger exponents, which follow in four bytes.
const KEY_HUGE: u8 = 0xf3;

impl Numeric {
    /// Bytes of the stored form.
    pub fn stored_bytes(&self) -> usize {
        match &self.0 {
            Form::Small { .. } => SMALL_BYTES,
            Form::Large(decimal) => SMALL_BYTES + decimal.mantissa.bits().div_ceil(8) as usize,
        }
    }

    /// Appends the value so that byte order is its order, with no more than a few bytes over `most`: of a value that is
    /// longer its beginning.
    ///
    /// Zero is `80`, -Infinity `01`, Infinity `fe`, NaN `ff`. Any other value is `±0.d₁d₂d₃… × 10^exponent` with `d₁ ≠ 0` and no
    /// zero at the end. A positive one is the byte `80 + bias + exponent`, then `2d + 1` for each pair of digits `d` but
    /// the last, which is `2d`: the lowest bit says whether digits follow. A negative one is the complement of this. In
    /// the place of the exponent's byte larger exponents have `f3` and four bytes, smaller ones `81 01` and two, which a
    /// pair of digits does not begin with.
    pub(crate) fn push_key(&self, bytes: &mut SmallVec<[u8; 16]>, most: usize) {
        if self.is_special() {
            bytes.push(match self.special_rank() {
                -1 => 0x01,
                1 => 0xfe,
                _ => 0xff,
            });
            return;
        }
        if self.is_zero() {
            bytes.push(KEY_ZERO);
            return;
        }
        let (mut short, long);
        let digits = match self.small_mantissa() {
            Some(mantissa) => {
                short = [b'0'; SMALL_DIGITS_MAX as usize];
                let mut rest = mantissa.unsigned_abs();
                let length = rest.ilog10() as usize + 1;
                for digit in short[..length].iter_mut().rev() {
                    *digit = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                &short[..length]
            }
            None => {
                long = self.digits();
                long.as_bytes()
            }
        };
        // At most 131,072 and at least −16,382.
        let exponent = digits.len() as i32 - i32::from(self.scale());
        push_key_of_digits(bytes, self.is_negative(), digits, exponent, most);
    }
}

/// Appends the key of a number `±0.d₁d₂d₃… × 10^exponent` by its digits, the first of which is not zero, as
/// [`Numeric::push_key`] does.
pub(crate) fn push_key_of_digits(
    bytes: &mut SmallVec<[u8; 16]>,
    is_negative: bool,
    digits: &[u8],
    exponent: i32,
    most: usize,
) {
    let last_digit = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(0);
    let digits = &digits[..=last_digit];
    let start = bytes.len();
    if KEY_EXPONENTS.contains(&exponent) {
        bytes.push(KEY_ZERO + (KEY_BIAS + exponent) as u8);
    } else if exponent > 0 {
        bytes.push(KEY_HUGE);
        bytes.extend_from_slice(&exponent.to_be_bytes());
    } else {
        bytes.extend_from_slice(&[KEY_SMALLEST, KEY_TINY]);
        bytes.extend_from_slice(&((exponent + (1 << 15)) as u16).to_be_bytes());
    }
    let pairs = digits.chunks(2);
    let last = pairs.len() - 1;
    for (at, pair) in pairs.enumerate().take(most.saturating_add(1)) {
        let pair = (pair[0] - b'0') * 10 + pair.get(1).map_or(0, |digit| digit - b'0');
        bytes.push(2 * pair + u8::from(at < last));
    }
    if is_negative {
        bytes[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Numeric> {
        crate::decode_exactly(bytes).ok()
    }

    #[test]
    fn encodings_read_back() {
        let texts = [
            "0",
            "-1e131071",
            "9e131071",
            "1e-16383",
            "-12345678901234567890123456789012345678901",
            "0e-100",
        ];
        let long = texts.map(|text| Numeric::parse(text).expect("a numeric value"));
        let largest = Numeric::new(99_999_999_999_999_999_999_999_999_999_999_999_999, 76);
        let all =
            long.into_iter().chain([largest, Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY]);
        for value in all {
            let bytes = crate::encode(&value);
            assert_eq!(bytes.len(), value.stored_bytes());
            assert!(read(&bytes).is_some_and(|read| read.is_identical(&value)));
        }
    }

    #[test]
    fn bytes_of_no_numeric_value_are_refused() {
        let end = super::super::MANTISSA_END;
        let none =
            [(end, 0u8), (-end, 0), (i128::MIN, 3), (1, 77), (0, SPECIAL), (3, SPECIAL), (-2, SPECIAL)];
        for (mantissa, scale) in none {
            assert!(read(&crate::encode(&(mantissa.to_le_bytes(), scale))).is_none());
        }
    }

    #[test]
    fn a_second_encoding_of_a_large_value_is_refused() {
        let large = crate::encode(&Numeric::parse("-1e40").expect("a numeric value"));
        assert!(read(&large).is_some());
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = large.clone();
            change(&mut bytes);
            read(&bytes)
        };
        assert!(changed(&|bytes| bytes.truncate(bytes.len() - 1)).is_none(), "cut off");
        assert!(changed(&|bytes| bytes.push(0)).is_none(), "something behind it");
        assert!(changed(&|bytes| bytes[6] = 2).is_none(), "a sign that is none");
        assert!(changed(&|bytes| bytes[7] = 1).is_none(), "what must be zero");
        assert!(changed(&|bytes| bytes[3] = 0xff).is_none(), "longer than any");
        assert!(changed(&|bytes| (bytes[4], bytes[5]) = (0xff, 0xff)).is_none(), "too large a scale");
        assert!(
            changed(&|bytes| {
                bytes[0] += 1;
                bytes.push(0);
            })
            .is_none(),
            "a zero before the digits"
        );
        assert!(
            changed(&|bytes| {
                bytes[0] = 1;
                bytes.truncate(18);
                bytes[17] = 5;
            })
            .is_none(),
            "a small value in the large form"
        );
        assert!(
            changed(&|bytes| {
                bytes[..6].copy_from_slice(&[0, 0, 0, 0, 100, 0]);
                bytes.truncate(17);
            })
            .is_none(),
            "a negative zero"
        );
    }
}
