//! The operators of [`Numeric`]: with machine integers where both operands and the result are small.

use super::decimal::{CHOSEN_SCALE_MAX, Decimal, Rounding, SIGNIFICANT_DIGITS_MIN};
use super::{Form, Numeric, align, division_by_zero, power_of_ten};
use crate::{SqlError, limits};
use num_traits::Signed;
use std::sync::Arc;

/// Decimal digits in one digit of PostgreSQL's representation, which the scale of a quotient depends on.
const POSTGRES_DIGITS: i32 = 4;

/// `dividend / divisor` as an integer; `None` where it does not fit.
pub(super) fn divide_integers(dividend: i128, divisor: i128, rounding: Rounding) -> Option<i128> {
    let quotient = dividend.checked_div(divisor)?;
    let remainder = dividend % divisor;
    if remainder == 0 {
        return Some(quotient);
    }
    let positive = (dividend < 0) == (divisor < 0);
    let away = match rounding {
        Rounding::Half => remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs(),
        Rounding::Truncate => false,
        Rounding::Up => positive,
        Rounding::Down => !positive,
    };
    let step = if positive { 1 } else { -1 };
    quotient.checked_add(if away { step } else { 0 })
}

/// The first digit in base 10,000 and its weight, a power of 10,000.
fn leading_digit(mantissa: i128, scale: u8) -> (i32, i128) {
    let mantissa = mantissa.unsigned_abs() as i128;
    let Some(log) = mantissa.checked_ilog10() else {
        return (0, 0);
    };
    let weight = (log as i32 - i32::from(scale)).div_euclid(POSTGRES_DIGITS);
    // mantissa × 10^(−scale) / 10^(4 × weight); between −log and 3, because the weight is that of the first digit.
    let shift = -i32::from(scale) - POSTGRES_DIGITS * weight;
    let factor = super::POWERS_OF_TEN[shift.unsigned_abs() as usize];
    (weight, if shift >= 0 { mantissa * factor } else { mantissa / factor })
}

/// As [`Decimal::divided_by`]; `None` where it needs more than machine integers.
fn small_quotient((a, scale): (i128, u8), (b, divisor_scale): (i128, u8)) -> Option<Numeric> {
    let ((weight, digit), (divisor_weight, divisor_digit)) =
        (leading_digit(a, scale), leading_digit(b, divisor_scale));
    let quotient_weight = weight - divisor_weight - i32::from(digit <= divisor_digit);
    let chosen = SIGNIFICANT_DIGITS_MIN as i32 - quotient_weight * POSTGRES_DIGITS;
    let chosen = chosen.max(i32::from(scale)).max(i32::from(divisor_scale)).clamp(0, CHOSEN_SCALE_MAX as i32);
    // Not negative, because the quotient's scale is at least that of the dividend.
    let shift = chosen + i32::from(divisor_scale) - i32::from(scale);
    let dividend = a.checked_mul(power_of_ten(u32::try_from(shift).ok()?)?)?;
    Numeric::new_small(divide_integers(dividend, b, Rounding::Half)?, chosen as u32)
}

impl Numeric {
    /// The sum; its scale is the larger of both.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn checked_add(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let (Some((a, scale)), Some((b, other_scale))) = (self.small(), other.small())
            && let Some((a, b)) = align(a, scale, b, other_scale)
            && let Some(sum) = a.checked_add(b)
            && let Some(sum) = Numeric::new_small(sum, u32::from(scale.max(other_scale)))
        {
            return Ok(sum);
        }
        if self.is_special() || other.is_special() {
            return Ok(self.special_sum(other));
        }
        Numeric::of_decimal(self.decimal().plus(&other.decimal()))
    }

    /// The difference; its scale is the larger of both.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn checked_sub(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        self.checked_add(&other.negated())
    }

    /// The product; its scale is the sum of both, as far as a value may have it.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn checked_mul(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if let (Some((a, scale)), Some((b, other_scale))) = (self.small(), other.small())
            && let Some(product) = a.checked_mul(b)
            && let Some(product) = Numeric::new_small(product, u32::from(scale) + u32::from(other_scale))
        {
            return Ok(product);
        }
        if self.is_special() || other.is_special() {
            return Ok(self.special_product(other));
        }
        let product = self.decimal().times(&other.decimal());
        let scale_max = u32::from(limits::NUMERIC_SCALE_MAX);
        Numeric::of_decimal(match product.scale > scale_max {
            true => product.rescale(i64::from(scale_max), Rounding::Half),
            false => product,
        })
    }

    /// The quotient, rounded half away from zero at the scale that PostgreSQL chooses (`select_div_scale` in its
    /// `numeric.c`): at least 16 significant digits and no less than either operand's scale, but never more than 1,000.
    ///
    /// # Errors
    /// `22012` where `divisor` is zero, `22003` where the quotient has too many digits.
    pub fn checked_div(&self, divisor: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self.clone());
        }
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_special() || divisor.is_special() {
            return Ok(self.special_quotient(divisor));
        }
        if let (Some(dividend), Some(divisor)) = (self.small(), divisor.small())
            && let Some(quotient) = small_quotient(dividend, divisor)
        {
            return Ok(quotient);
        }
        Numeric::of_decimal(self.decimal().divided_by(&divisor.decimal()))
    }

    /// The remainder of the truncating division, with the sign of the dividend.
    ///
    /// # Errors
    /// `22012` where `divisor` is zero.
    pub fn checked_rem(&self, divisor: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self.clone());
        }
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_special() || divisor.is_special() {
            return Ok(if self.is_special() || divisor.is_nan() { Numeric::NAN } else { self.clone() });
        }
        if let (Some((a, scale)), Some((b, divisor_scale))) = (self.small(), divisor.small())
            && let Some((a, b)) = align(a, scale, b, divisor_scale)
            && let Some(rest) = Numeric::new_small(a % b, u32::from(scale.max(divisor_scale)))
        {
            return Ok(rest);
        }
        let (a, b, scale) = self.decimal().align(&divisor.decimal());
        Numeric::of_decimal(Decimal::new(a % b, scale))
    }

    /// The whole part of the quotient, towards zero.
    ///
    /// # Errors
    /// `22012` where `divisor` is zero, `22003` where the quotient has too many digits.
    pub fn whole_quotient(&self, divisor: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self.clone());
        }
        if divisor.is_zero() {
            return Err(division_by_zero());
        }
        if self.is_special() || divisor.is_special() {
            return Ok(self.special_quotient(divisor));
        }
        let (a, b, _) = self.decimal().align(&divisor.decimal());
        Numeric::of_decimal(Decimal::new(a / b, 0))
    }

    /// The value with the other sign.
    pub fn negated(&self) -> Numeric {
        match &self.0 {
            _ if self.is_nan() => self.clone(),
            Form::Small { mantissa, scale } => Numeric::of_parts(-i128::from_le_bytes(*mantissa), *scale),
            Form::Large(decimal) => {
                Numeric(Form::Large(Arc::new(Decimal::new(-&decimal.mantissa, decimal.scale))))
            }
        }
    }

    /// The value without its sign.
    pub fn abs(&self) -> Numeric {
        match &self.0 {
            Form::Small { mantissa, scale } => {
                Numeric::of_parts(i128::from_le_bytes(*mantissa).abs(), *scale)
            }
            Form::Large(decimal) if decimal.mantissa.is_negative() => self.negated(),
            Form::Large(_) => self.clone(),
        }
    }

    /// `-1`, `0` or `1`; NaN of NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() { self.clone() } else { Numeric::from(self.signum()) }
    }
}
