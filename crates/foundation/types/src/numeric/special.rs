//! NaN and the infinities among [`Numeric`]s: what PostgreSQL's operators and functions give for them.

use super::rounding::field_overflow;
use super::{Form, SPECIAL};
use crate::{Numeric, SqlError, SqlState};

/// The infinity of a sign; of none NaN.
fn infinity(sign: i32) -> Numeric {
    match sign.signum() {
        1 => Numeric::INFINITY,
        -1 => Numeric::NEGATIVE_INFINITY,
        _ => Numeric::NAN,
    }
}

// Each is asked only where one of both is special.
impl Numeric {
    /// The place among -Infinity, all finite numbers, Infinity and NaN.
    pub(super) fn special_rank(&self) -> i128 {
        match &self.0 {
            Form::Small { mantissa, scale: SPECIAL } => i128::from_le_bytes(*mantissa),
            _ => 0,
        }
    }

    pub(super) fn special_sum(&self, other: &Numeric) -> Numeric {
        match (self.is_special(), other.is_special()) {
            (true, true) if self.is_identical(other) => self.clone(),
            (true, true) => Numeric::NAN,
            (true, false) => self.clone(),
            _ => other.clone(),
        }
    }

    pub(super) fn special_product(&self, other: &Numeric) -> Numeric {
        if self.is_nan() || other.is_nan() {
            return Numeric::NAN;
        }
        infinity(self.signum() * other.signum())
    }

    /// By what is not zero.
    pub(super) fn special_quotient(&self, divisor: &Numeric) -> Numeric {
        if divisor.is_nan() || (self.is_special() && divisor.is_special()) {
            Numeric::NAN
        } else if self.is_special() {
            infinity(self.signum() * divisor.signum())
        } else {
            Numeric::ZERO
        }
    }

    pub(super) fn special_field(&self, precision: u16, scale: i16) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self.clone());
        }
        let detail =
            format!("A field with precision {precision}, scale {scale} cannot hold an infinite value.");
        Err(SqlError { detail: Some(detail), ..field_overflow(precision, scale) })
    }

    #[cold]
    pub(super) fn no_integer(&self, target: &str) -> SqlError {
        let what = if self.is_nan() { "NaN" } else { "infinity" };
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to {target}"))
    }

    /// This number to a power, as POSIX's `pow`; what is an error of finite numbers has been found.
    pub(super) fn special_power(&self, exponent: &Numeric, odd: bool) -> Numeric {
        let one = Numeric::from(1);
        if exponent.is_zero() || *self == one {
            return one;
        }
        if self.is_nan() || exponent.is_nan() {
            return Numeric::NAN;
        }
        let grows = !exponent.is_negative();
        if exponent.is_special() {
            let magnitude = self.abs();
            return if magnitude == one {
                one
            } else if (magnitude > one) == grows {
                Numeric::INFINITY
            } else {
                Numeric::ZERO
            };
        }
        match grows {
            false => Numeric::ZERO,
            true if self.is_negative() && odd => Numeric::NEGATIVE_INFINITY,
            true => Numeric::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_sorts_around_the_numbers() {
        let ordered = ["-Infinity", "-1e131071", "-1e37", "0", "1e37", "1e131071", "Infinity", "NaN"];
        let ordered = ordered.map(|text| Numeric::parse(text).expect("a numeric value"));
        assert!(ordered.is_sorted());
        for value in &ordered {
            assert!(ordered.iter().filter(|other| *other == value).count() == 1);
        }
    }

    #[test]
    fn fields_hold_nan_and_no_infinity() {
        assert!(Numeric::NAN.coerce(3, 1).is_ok_and(|value| value.is_nan()));
        let error = Numeric::INFINITY.coerce(3, 1).expect_err("infinite");
        assert_eq!(error.message, "numeric field overflow");
        let detail = "A field with precision 3, scale 1 cannot hold an infinite value.";
        assert_eq!(error.detail.as_deref(), Some(detail));
    }
}
