//! Numbers as `numeric` writes them, from their digits alone: reading and comparing them takes time with their length, not
//! with its square.

use crate::limits::{NUMERIC_SCALE_MAX, NUMERIC_WHOLE_DIGITS_MAX};
use std::cmp::Ordering;

/// A number of JSON as `numeric` writes it; `None` where it has more digits than one may have.
pub(super) fn canonical_number(token: &str) -> Option<String> {
    let mut written = Vec::new();
    CanonicalNumber::of(token)?.write(&mut written);
    String::from_utf8(written).ok()
}

/// What `numeric` writes of a number, before it is written: a number of a few characters may have a hundred thousand digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct CanonicalNumber<'a> {
    is_negative: bool,
    /// What the digits are, one after the other: so many zeros, two pieces of the token, so many zeros.
    zeros_before: usize,
    whole: &'a str,
    fraction: &'a str,
    zeros_behind: usize,
    /// How many of these digits stand behind the point.
    scale: usize,
    /// How many at the beginning are zeros that are not written.
    skipped: usize,
}

impl<'a> CanonicalNumber<'a> {
    /// Reads a number of JSON; `None` where it has more digits than a number may have.
    pub(super) fn of(token: &'a str) -> Option<CanonicalNumber<'a>> {
        let (is_negative, unsigned) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (decimal, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((decimal, exponent)) => (decimal, exponent.parse::<i64>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let given = whole.len() + fraction.len();
        let digits = || whole.bytes().chain(fraction.bytes());
        if given == 0 || !digits().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let scale = (fraction.len() as i64).checked_sub(exponent)?;
        let leading = digits().take_while(|byte| *byte == b'0').count();
        let is_zero = leading == given;
        if scale > i64::from(NUMERIC_SCALE_MAX) {
            return None;
        }
        let (scale, zeros_behind) = match usize::try_from(scale) {
            Ok(scale) => (scale, 0),
            Err(_) if is_zero => (0, 0),
            Err(_) => (0, usize::try_from(scale.unsigned_abs()).ok()?),
        };
        if zeros_behind > NUMERIC_WHOLE_DIGITS_MAX as usize {
            return None;
        }
        let zeros_before = (scale + 1).saturating_sub(given);
        let whole_digits = zeros_before + given + zeros_behind - scale;
        let skipped = whole_digits.min(zeros_before + leading);
        if whole_digits - skipped > NUMERIC_WHOLE_DIGITS_MAX as usize {
            return None;
        }
        let is_negative = is_negative && !is_zero;
        Some(CanonicalNumber { is_negative, zeros_before, whole, fraction, zeros_behind, scale, skipped })
    }

    /// Digits in front of the point, with those that are not written.
    fn whole_digits(&self) -> usize {
        self.zeros_before + self.whole.len() + self.fraction.len() + self.zeros_behind - self.scale
    }

    /// Bytes of what is written.
    pub(super) fn bytes(&self) -> usize {
        let fraction = if self.scale > 0 { 1 + self.scale } else { 0 };
        usize::from(self.is_negative) + (self.whole_digits() - self.skipped).max(1) + fraction
    }

    /// Writes it.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        if self.is_negative {
            bytes.push(b'-');
        }
        let whole = self.whole_digits();
        if whole == self.skipped {
            bytes.push(b'0');
        }
        self.write_digits(bytes, self.skipped, whole);
        if self.scale > 0 {
            bytes.push(b'.');
            self.write_digits(bytes, whole, whole + self.scale);
        }
    }

    /// Writes the digits from one place to another.
    fn write_digits(&self, bytes: &mut Vec<u8>, from: usize, to: usize) {
        let mut start = 0;
        let pieces = [(self.zeros_before, ""), (0, self.whole), (0, self.fraction), (self.zeros_behind, "")];
        for (zeros, piece) in pieces {
            let length = zeros + piece.len();
            let (first, last) = (from.clamp(start, start + length), to.clamp(start, start + length));
            match piece.get(first - start..last - start) {
                Some(digits) if zeros == 0 => bytes.extend_from_slice(digits.as_bytes()),
                _ => bytes.resize(bytes.len() + last - first, b'0'),
            }
            start += length;
        }
    }
}

/// The order of two numbers that are written so.
pub(super) fn compare_numbers(left: &str, right: &str) -> Ordering {
    match (left.strip_prefix('-'), right.strip_prefix('-')) {
        (None, None) => compare_unsigned(left, right),
        (Some(left), Some(right)) => compare_unsigned(right, left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    }
}

fn compare_unsigned(left: &str, right: &str) -> Ordering {
    let parts = |number: &'_ str| -> (usize, usize) {
        let whole = number.find('.').unwrap_or(number.len());
        // Zeros at the end of a fraction do not count.
        let end = if whole < number.len() { number.trim_end_matches('0').len() } else { whole };
        (whole, end)
    };
    let ((left_whole, left_end), (right_whole, right_end)) = (parts(left), parts(right));
    let whole = left_whole.cmp(&right_whole).then_with(|| left[..left_whole].cmp(&right[..right_whole]));
    // A point with nothing behind it is none.
    let left_fraction = left[left_whole..left_end].trim_start_matches('.');
    let right_fraction = right[right_whole..right_end].trim_start_matches('.');
    whole.then_with(|| left_fraction.cmp(right_fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Numeric;
    use proptest::prelude::*;

    #[test]
    fn numbers_with_too_many_digits_are_left_to_who_refuses_them() {
        for token in ["1e131072", "1e-16384", "1e999999999999999999999", "-1e9223372036854775807"] {
            assert_eq!(canonical_number(token), None, "{token}");
        }
        assert_eq!(canonical_number("0e999999999").as_deref(), Some("0"));
        assert_eq!(canonical_number("1e131071").map(|digits| digits.len()), Some(131_072));
        assert_eq!(CanonicalNumber::of("-1.5e131071").map(|number| number.bytes()), Some(131_073));
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_numeric_writes_them(
            token in "-?(0|[1-9][0-9]{0,4})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        ) {
            let number = Numeric::parse(&token).expect("a number");
            let written = canonical_number(&token).expect("a number");
            prop_assert_eq!(&written, &number.to_string());
            prop_assert_eq!(canonical_number(&written), Some(written.clone()));
            prop_assert_eq!(CanonicalNumber::of(&token).map(|number| number.bytes()), Some(written.len()));
        }

        #[test]
        fn numbers_compare_as_numeric_does(
            left in "-?(0|[1-9][0-9]{0,2})(\\.[0-2]{1,3})?",
            right in "-?(0|[1-9][0-9]{0,2})(\\.[0-2]{1,3})?",
        ) {
            let (left, right) = (canonical_number(&left).expect("one"), canonical_number(&right).expect("one"));
            let numbers = [&left, &right].map(|digits| Numeric::parse(digits).expect("a number"));
            prop_assert_eq!(compare_numbers(&left, &right), numbers[0].cmp(&numbers[1]), "{} {}", left, right);
        }
    }
}
