//! Rounding of [`Numeric`], to digits, to what a column may hold and to other types of numbers.

use super::arithmetic::divide_integers;
use super::decimal::Rounding;
use super::{Numeric, has_more_digits, power_of_ten};
use crate::{SqlError, SqlState, limits};

#[cold]
pub(super) fn field_overflow(precision: u16, scale: i16) -> SqlError {
    let whole_digits = i32::from(precision) - i32::from(scale);
    let bound = if whole_digits == 0 { "1".to_string() } else { format!("10^{whole_digits}") };
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
    ))
}

impl Numeric {
    /// PostgreSQL's `round(value, digits)`: half away from zero; negative `digits` round before the point.
    ///
    /// # Errors
    /// `22003` where the result has too many digits.
    pub fn round(&self, digits: i32) -> Result<Numeric, SqlError> {
        self.rescale(digits, Rounding::Half)
    }

    /// PostgreSQL's `trunc(value, digits)`: towards zero.
    ///
    /// # Errors
    /// `22003` where the result has too many digits.
    pub fn trunc(&self, digits: i32) -> Result<Numeric, SqlError> {
        self.rescale(digits, Rounding::Truncate)
    }

    /// The smallest integer that is not less.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn ceil(&self) -> Result<Numeric, SqlError> {
        self.rescale(0, Rounding::Up)
    }

    /// The largest integer that is not greater.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn floor(&self) -> Result<Numeric, SqlError> {
        self.rescale(0, Rounding::Down)
    }

    pub(super) fn rescale(&self, digits: i32, rounding: Rounding) -> Result<Numeric, SqlError> {
        if self.is_special() {
            return Ok(self.clone());
        }
        // One digit more than there are before the point may round up to a value.
        let digits = digits
            .clamp(-(limits::NUMERIC_WHOLE_DIGITS_MAX as i32) - 1, i32::from(limits::NUMERIC_SCALE_MAX));
        match self.small().and_then(|(mantissa, scale)| rescale_small(mantissa, scale, digits, rounding)) {
            Some(rescaled) => Ok(rescaled),
            None => Numeric::of_decimal(self.decimal().rescale(i64::from(digits), rounding)),
        }
    }

    /// The value as a `numeric(precision, scale)`: rounded half away from zero to `scale`, then checked. NaN fits into
    /// all, an infinity into none.
    ///
    /// # Errors
    /// `22003` "numeric field overflow".
    pub fn coerce(&self, precision: u16, scale: i16) -> Result<Numeric, SqlError> {
        if self.is_special() {
            return self.special_field(precision, scale);
        }
        let rounded =
            self.rescale(i32::from(scale), Rounding::Half).map_err(|_| field_overflow(precision, scale))?;
        // Rounded before the point, the digits that are left begin there.
        let digits = u32::from(precision) + scale.min(0).unsigned_abs() as u32;
        let fits = match rounded.small() {
            Some((mantissa, _)) => power_of_ten(digits).is_none_or(|end| mantissa.abs() < end),
            None => !has_more_digits(&rounded.decimal().mantissa, digits),
        };
        if fits { Ok(rounded) } else { Err(field_overflow(precision, scale)) }
    }

    /// The value as `smallint`, rounded half away from zero.
    ///
    /// # Errors
    /// `22003` "smallint out of range"; `0A000` of what is not finite.
    pub fn to_i16(&self) -> Result<i16, SqlError> {
        self.to_integer("smallint")
    }

    /// The value as `integer`, rounded half away from zero.
    ///
    /// # Errors
    /// `22003` "integer out of range"; `0A000` of what is not finite.
    pub fn to_i32(&self) -> Result<i32, SqlError> {
        self.to_integer("integer")
    }

    /// The value as `bigint`, rounded half away from zero.
    ///
    /// # Errors
    /// `22003` "bigint out of range"; `0A000` of what is not finite.
    pub fn to_i64(&self) -> Result<i64, SqlError> {
        self.to_integer("bigint")
    }

    fn to_integer<T: TryFrom<i128>>(&self, name: &str) -> Result<T, SqlError> {
        if self.is_special() {
            return Err(self.no_integer(name));
        }
        let rounded = self.rescale(0, Rounding::Half).ok().and_then(|rounded| rounded.small_mantissa());
        let integer = rounded.and_then(|mantissa| T::try_from(mantissa).ok());
        integer.ok_or_else(|| crate::arithmetic::out_of_range(name))
    }

    /// The nearest `double precision`.
    ///
    /// # Errors
    /// `22003` where there is none but zero or an infinity.
    pub fn to_f64(&self) -> Result<f64, SqlError> {
        crate::text::parse_double(&self.to_string())
    }
}

/// `None` where it needs more than machine integers.
fn rescale_small(mantissa: i128, scale: u8, digits: i32, rounding: Rounding) -> Option<Numeric> {
    let missing = digits - i32::from(scale);
    if missing >= 0 {
        let mantissa = match power_of_ten(missing.unsigned_abs()) {
            Some(factor) => mantissa.checked_mul(factor)?,
            None if mantissa == 0 => 0,
            None => return None,
        };
        return Numeric::new_small(mantissa, digits.unsigned_abs());
    }
    // A mantissa has 38 digits, so that a unit of 10^39 and more is more than twice the value.
    let rounded = match power_of_ten(missing.unsigned_abs()) {
        Some(factor) => divide_integers(mantissa, factor, rounding)?,
        None => match rounding {
            Rounding::Up if mantissa > 0 => 1,
            Rounding::Down if mantissa < 0 => -1,
            _ => 0,
        },
    };
    if digits >= 0 || rounded == 0 {
        return Numeric::new_small(rounded, digits.max(0).unsigned_abs());
    }
    Numeric::new_small(rounded.checked_mul(power_of_ten(digits.unsigned_abs())?)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Numeric {
        Numeric::parse(text).expect("a numeric value")
    }

    #[test]
    fn field_overflow_says_what_fits() {
        let error = numeric("1000").coerce(5, 2).expect_err("too large");
        assert_eq!(error.message, "numeric field overflow");
        let detail = "A field with precision 5, scale 2 must round to an absolute value less than 10^3.";
        assert_eq!(error.detail.as_deref(), Some(detail));
        let detail = numeric("1").coerce(2, 2).expect_err("too large").detail.expect("a detail");
        assert!(detail.ends_with("less than 1."), "{detail}");
        assert!(numeric("9.9e999").coerce(1000, 0).is_ok());
        assert!(numeric("1e1000").coerce(1000, 0).is_err());
        assert!(numeric("123456").coerce(2, -4).is_ok_and(|rounded| rounded == numeric("120000")));
        assert!(numeric("1e1002").coerce(3, -1000).is_ok(), "three digits before a thousand");
        assert!(numeric("1e1003").coerce(3, -1000).is_err());
    }

    #[test]
    fn doubles_end_before_numerics_do() {
        assert_eq!(numeric("1e308").to_f64(), Ok(1e308));
        for text in ["1e309", "-1e131071", "1e-400"] {
            let error = numeric(text).to_f64().expect_err("out of range");
            assert_eq!(error.state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        }
    }
}
