//! Numbers as `numeric` writes them, from their digits alone: reading and comparing them takes time with their length, not
//! with its square.

use crate::limits::{NUMERIC_SCALE_MAX, NUMERIC_WHOLE_DIGITS_MAX};
use std::cmp::Ordering;

/// A number of JSON as `numeric` writes it; `None` where it has more digits than one may have.
pub(super) fn canonical_number(token: &str) -> Option<String> {
    let (is_negative, unsigned) = match token.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let (decimal, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((decimal, exponent)) => (decimal, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let mut digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = (fraction.len() as i64).checked_sub(exponent)?;
    let is_zero = digits.bytes().all(|byte| byte == b'0');
    if scale > i64::from(NUMERIC_SCALE_MAX) {
        return None;
    }
    let scale = match usize::try_from(scale) {
        Ok(scale) => scale,
        Err(_) if is_zero => 0,
        Err(_) => {
            let zeros = usize::try_from(scale.unsigned_abs()).ok()?;
            if zeros > NUMERIC_WHOLE_DIGITS_MAX as usize {
                return None;
            }
            digits.extend(std::iter::repeat_n('0', zeros));
            0
        }
    };
    let missing = (scale + 1).saturating_sub(digits.len());
    digits.insert_str(0, &"0".repeat(missing));
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = whole.trim_start_matches('0');
    if whole.len() > NUMERIC_WHOLE_DIGITS_MAX as usize {
        return None;
    }
    let sign = if is_negative && !is_zero { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{}{point}{fraction}", if whole.is_empty() { "0" } else { whole }))
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
