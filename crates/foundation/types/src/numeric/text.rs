//! Texts and binary floating point numbers as [`Numeric`], and its text.

use super::decimal::{Decimal, ten_to};
use super::{SMALL_DIGITS_MAX, SMALL_SCALE_MAX, overflow};
use crate::{Numeric, SqlError, limits};
use num_bigint::{BigInt, Sign};
use std::fmt;

impl Numeric {
    /// A `double precision` as PostgreSQL makes it a numeric: its first 15 significant digits.
    ///
    /// # Errors
    /// `22003` where there are too many digits.
    pub fn from_f64(value: f64) -> Result<Numeric, SqlError> {
        Numeric::read_f64(value, None)
    }

    /// A `real` as PostgreSQL makes it a numeric: its first 6 significant digits.
    ///
    /// # Errors
    /// As [`Numeric::from_f64`].
    pub fn from_f32(value: f32) -> Result<Numeric, SqlError> {
        let rounded = match value.is_finite() {
            true => format!("{value:.5e}").parse().expect("Rust's scientific notation is a double's text"),
            false => f64::from(value),
        };
        Numeric::read_f64(rounded, None)
    }

    /// [`Numeric::from_f64`] followed by [`Numeric::coerce`], for values with too many digits in between as well.
    ///
    /// # Errors
    /// As both.
    pub fn from_f64_coerced(value: f64, precision: u16, scale: i16) -> Result<Numeric, SqlError> {
        Numeric::read_f64(value, Some((precision, scale)))
    }

    fn read_f64(value: f64, modifier: Option<(u16, i16)>) -> Result<Numeric, SqlError> {
        if !value.is_finite() {
            let special = match (value.is_nan(), value > 0.0) {
                (true, _) => Numeric::NAN,
                (_, true) => Numeric::INFINITY,
                _ => Numeric::NEGATIVE_INFINITY,
            };
            return special.into_field(modifier);
        }
        let text = format!("{value:.14e}");
        let decimal = Written::read(&text).expect("Rust's scientific notation is a decimal number");
        decimal.without_trailing_zeros().into_numeric(modifier)
    }

    /// Reads PostgreSQL's text form: surrounding white space, sign, digits with a point, exponent.
    ///
    /// # Errors
    /// `22P02` where it is no number, `22003` where it has too many digits.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        Numeric::read(text, None)
    }

    /// A number with so many digits after the point, cut off there.
    ///
    /// # Errors
    /// As [`Numeric::parse`].
    pub fn parse_truncated(text: &str, scale: u16) -> Result<Numeric, SqlError> {
        let mut written = Written::read(text).ok_or_else(|| crate::text::invalid_syntax("numeric", text))?;
        let scale = i64::from(scale);
        if written.scale > scale {
            let kept = (written.digits.len() as i64 - (written.scale - scale)).max(0);
            written.digits.truncate(kept as usize);
            written.scale = scale;
        }
        written.into_numeric(None)?.round(scale as i32)
    }

    /// [`Numeric::parse`] followed by [`Numeric::coerce`], for texts with more digits than a value has as well.
    ///
    /// # Errors
    /// As both.
    pub fn parse_coerced(text: &str, precision: u16, scale: i16) -> Result<Numeric, SqlError> {
        Numeric::read(text, Some((precision, scale)))
    }

    fn read(text: &str, modifier: Option<(u16, i16)>) -> Result<Numeric, SqlError> {
        let trimmed = crate::text::trim(text);
        if let Some(decimal) = Written::read(trimmed) {
            return decimal.into_numeric(modifier);
        }
        let special = match trimmed.to_ascii_lowercase().as_str() {
            "nan" => Numeric::NAN,
            "inf" | "+inf" | "infinity" | "+infinity" => Numeric::INFINITY,
            "-inf" | "-infinity" => Numeric::NEGATIVE_INFINITY,
            _ => return Err(crate::text::invalid_syntax("numeric", text)),
        };
        special.into_field(modifier)
    }

    fn into_field(self, modifier: Option<(u16, i16)>) -> Result<Numeric, SqlError> {
        match modifier {
            Some((precision, scale)) => self.coerce(precision, scale),
            None => Ok(self),
        }
    }
}

/// A decimal number of any length, as it was written.
struct Written {
    negative: bool,
    /// 0 to 9 each, without leading zeros.
    digits: Vec<u8>,
    /// How many of the digits stand after the point; negative where zeros follow the digits.
    scale: i64,
}

impl Written {
    /// Beyond this every exponent is too large alike.
    const EXPONENT_MAX: i64 = 1_000_000;

    fn read(text: &str) -> Option<Written> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mut digits, mut scale, mut any, mut point) = (Vec::with_capacity(40), 0, false, false);
        let mut at = 0;
        while let Some(byte) = unsigned.get(at) {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    scale += i64::from(point);
                    if *byte != b'0' || !digits.is_empty() {
                        digits.push(byte - b'0');
                    }
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        let exponent = match &unsigned[at..] {
            [] => 0,
            [b'e' | b'E', exponent @ ..] => read_exponent(exponent)?,
            _ => return None,
        };
        any.then_some(Written { negative, digits, scale: scale - exponent })
    }

    fn without_trailing_zeros(mut self) -> Written {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale -= 1;
        }
        if self.digits.is_empty() { Written { scale: 0, ..self } } else { self }
    }

    fn into_numeric(mut self, field: Option<(u16, i16)>) -> Result<Numeric, SqlError> {
        if self.scale > i64::from(limits::NUMERIC_SCALE_MAX) {
            return Err(overflow());
        }
        // A negative scale drops digits before the point, which come back as zeros.
        let kept = field.map_or(self.scale.max(0), |(_, scale)| i64::from(scale));
        if kept < self.scale {
            self.drop_digits((self.scale - kept).unsigned_abs());
            self.scale = kept;
        }
        let scale = kept.max(0);
        // Digits after the last one that was written.
        let zeros = if self.digits.is_empty() { 0 } else { scale - self.scale };
        let length = self.digits.len() as i64 + zeros;
        let whole_max = i64::from(limits::NUMERIC_WHOLE_DIGITS_MAX);
        if length - scale > whole_max {
            return Err(overflow());
        }
        let numeric = if length <= i64::from(SMALL_DIGITS_MAX) && scale <= i64::from(SMALL_SCALE_MAX) {
            let zeros = std::iter::repeat_n(&0, zeros as usize);
            let digits = self.digits.iter().chain(zeros);
            let magnitude = digits.fold(0, |sum: i128, digit| sum * 10 + i128::from(*digit));
            Numeric::new(if self.negative { -magnitude } else { magnitude }, scale as u8)
        } else {
            let sign = if self.negative { Sign::Minus } else { Sign::Plus };
            let written = BigInt::from_radix_be(sign, &self.digits, 10).unwrap_or_default();
            Numeric::of_decimal(Decimal::new(written * ten_to(zeros as u32), scale as u32))?
        };
        match field {
            Some((precision, scale)) => numeric.coerce(precision, scale),
            None => Ok(numeric),
        }
    }

    /// Drops the last `count` digits, rounding half away from zero.
    fn drop_digits(&mut self, count: u64) {
        let kept = (self.digits.len() as u64).checked_sub(count);
        let up = kept.is_some_and(|kept| self.digits.get(kept as usize).is_some_and(|digit| *digit >= 5));
        self.digits.truncate(kept.unwrap_or(0) as usize);
        if !up {
            return;
        }
        for digit in self.digits.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                return;
            }
        }
        self.digits.insert(0, 1);
    }
}

/// The number after `e`; `None` where there is none.
fn read_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fold = |sum: i64, digit: &u8| (sum * 10 + i64::from(digit - b'0')).min(Written::EXPONENT_MAX);
    let magnitude = digits.iter().fold(0, fold);
    Some(if negative { -magnitude } else { magnitude })
}

impl fmt::Display for Numeric {
    /// As PostgreSQL: every digit of the scale, no exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_special() {
            return f.write_str(match self.special_rank() {
                1 => "Infinity",
                -1 => "-Infinity",
                _ => "NaN",
            });
        }
        let scale = usize::from(self.scale());
        let digits = match self.small_mantissa() {
            Some(mantissa) => format!("{:0width$}", mantissa.unsigned_abs(), width = scale + 1),
            None => format!("{:0>width$}", self.digits(), width = scale + 1),
        };
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        write!(f, "{}{whole}{point}{fraction}", if self.is_negative() { "-" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_read_or_refused() {
        let digits = "9".repeat(131_072);
        assert!(Numeric::parse(&digits).is_ok_and(|read| read.to_string() == digits));
        assert!(Numeric::parse(&format!("9{digits}")).is_err());
        assert!(Numeric::parse(&format!("0.{}", &digits[..16_383])).is_ok_and(|read| read.scale() == 16_383));
        assert!(Numeric::parse(&format!("0.{digits}")).is_err());
        assert!(Numeric::parse(&format!("1e{digits}")).is_err());
        let rounded = Numeric::parse_coerced(&format!("0.{}", &digits[..16_383]), 5, 2);
        assert!(rounded.is_ok_and(|one| one.to_string() == "1.00"));
        let zero = Numeric::parse_coerced("1e-16383", 5, 2);
        assert!(zero.is_ok_and(|zero| zero.to_string() == "0.00"));
    }
}
