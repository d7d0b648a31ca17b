//! Texts and binary floating point numbers as [`Numeric`], and its text.

use super::numeric::{field_overflow, too_many_digits};
use crate::{Numeric, SqlError, limits};
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
    pub fn from_f64_coerced(value: f64, precision: u8, scale: i8) -> Result<Numeric, SqlError> {
        Numeric::read_f64(value, Some((precision, scale)))
    }

    fn read_f64(value: f64, modifier: Option<(u8, i8)>) -> Result<Numeric, SqlError> {
        if !value.is_finite() {
            let special = match (value.is_nan(), value > 0.0) {
                (true, _) => Numeric::NAN,
                (_, true) => Numeric::INFINITY,
                _ => Numeric::NEGATIVE_INFINITY,
            };
            return special.into_field(modifier);
        }
        let text = format!("{value:.14e}");
        let decimal = Decimal::read(&text).expect("Rust's scientific notation is a decimal number");
        decimal.without_trailing_zeros().into_numeric(modifier)
    }

    /// Reads PostgreSQL's text form: surrounding white space, sign, digits with a point, exponent.
    ///
    /// # Errors
    /// `22P02` where it is no number, `22003` where it has too many digits.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        Numeric::read(text, None)
    }

    /// [`Numeric::parse`] followed by [`Numeric::coerce`], for texts with more than 38 digits as well.
    ///
    /// # Errors
    /// As both.
    pub fn parse_coerced(text: &str, precision: u8, scale: i8) -> Result<Numeric, SqlError> {
        Numeric::read(text, Some((precision, scale)))
    }

    fn read(text: &str, modifier: Option<(u8, i8)>) -> Result<Numeric, SqlError> {
        let trimmed = crate::text::trim(text);
        if let Some(decimal) = Decimal::read(trimmed) {
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

    fn into_field(self, modifier: Option<(u8, i8)>) -> Result<Numeric, SqlError> {
        match modifier {
            Some((precision, scale)) => self.coerce(precision, scale),
            None => Ok(self),
        }
    }
}

/// A decimal number of any length, as it was written.
struct Decimal {
    negative: bool,
    /// 0 to 9 each, without leading zeros.
    digits: Vec<u8>,
    /// How many of the digits stand after the point; negative where zeros follow the digits.
    scale: i64,
}

impl Decimal {
    /// Beyond this every exponent is too large alike.
    const EXPONENT_MAX: i64 = 1_000_000;

    fn read(text: &str) -> Option<Decimal> {
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
        any.then_some(Decimal { negative, digits, scale: scale - exponent })
    }

    fn without_trailing_zeros(mut self) -> Decimal {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale -= 1;
        }
        if self.digits.is_empty() { Decimal { scale: 0, ..self } } else { self }
    }

    fn into_numeric(mut self, modifier: Option<(u8, i8)>) -> Result<Numeric, SqlError> {
        let overflow =
            || modifier.map_or_else(too_many_digits, |(precision, scale)| field_overflow(precision, scale));
        let scale = match modifier {
            Some((_, scale)) => i64::from(scale),
            None => self.scale.max(0),
        };
        // A negative scale drops digits before the point, which come back as zeros.
        let dropped = scale.min(0);
        let missing = scale - self.scale;
        if missing < 0 {
            self.drop_digits(missing.unsigned_abs());
        } else if !self.digits.is_empty() {
            if missing + self.digits.len() as i64 > i64::from(limits::NUMERIC_PRECISION_MAX) {
                return Err(overflow());
            }
            self.digits.resize(self.digits.len() + missing as usize, 0);
        }
        if !self.digits.is_empty() {
            self.digits.resize(self.digits.len() + dropped.unsigned_abs() as usize, 0);
        }
        let scale = scale.max(0);
        if self.digits.len() > usize::from(limits::NUMERIC_PRECISION_MAX) {
            return Err(overflow());
        }
        let magnitude = self.digits.iter().fold(0, |sum: i128, digit| sum * 10 + i128::from(*digit));
        let mantissa = if self.negative { -magnitude } else { magnitude };
        let numeric = Numeric::checked_new(mantissa, u32::try_from(scale).map_err(|_| overflow())?)?;
        match modifier {
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
    let fold = |sum: i64, digit: &u8| (sum * 10 + i64::from(digit - b'0')).min(Decimal::EXPONENT_MAX);
    let magnitude = digits.iter().fold(0, fold);
    Some(if negative { -magnitude } else { magnitude })
}

impl fmt::Display for Numeric {
    /// As PostgreSQL: every digit of the scale, no exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_special() {
            return f.write_str(match self.mantissa() {
                1 => "Infinity",
                -1 => "-Infinity",
                _ => "NaN",
            });
        }
        let mantissa = self.mantissa();
        let scale = usize::from(self.scale());
        let digits = format!("{:0width$}", mantissa.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        write!(f, "{}{whole}{point}{fraction}", if mantissa < 0 { "-" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_read_or_refused() {
        let digits = "9".repeat(100_000);
        assert!(Numeric::parse(&digits).is_err());
        assert!(Numeric::parse(&format!("0.{digits}")).is_err());
        assert!(Numeric::parse(&format!("1e{digits}")).is_err());
        let rounded = Numeric::parse_coerced(&format!("0.{digits}"), 5, 2);
        assert!(rounded.is_ok_and(|one| one.to_string() == "1.00"));
        let zero = Numeric::parse_coerced(&format!("1e-{digits}"), 5, 2);
        assert!(zero.is_ok_and(|zero| zero.to_string() == "0.00"));
    }
}
