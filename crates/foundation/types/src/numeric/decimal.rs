//! Decimal numbers of any length: what [`Numeric`](crate::Numeric) computes with where its small form does not do.
//!
//! Nothing here is bounded. Who makes a [`Decimal`] a numeric value checks it, and who hands one in is one.

use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, Zero};
use std::cmp::Ordering;

/// Decimal digits in one digit of PostgreSQL's representation, which the scale of a quotient depends on.
const POSTGRES_DIGITS: i64 = 4;

/// Significant digits that PostgreSQL's results have at least.
pub(super) const SIGNIFICANT_DIGITS_MIN: i64 = 16;

/// Digits after the point that a result has at most whose scale is chosen.
pub(super) const CHOSEN_SCALE_MAX: i64 = 1_000;

/// `mantissa × 10^−scale`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub mantissa: BigInt,
    pub scale: u32,
}

/// How digits are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the nearest, halves away from zero.
    Half,
    /// Towards zero.
    Truncate,
    /// Towards positive infinity.
    Up,
    /// Towards negative infinity.
    Down,
}

/// `10^exponent`
pub(super) fn ten_to(exponent: u32) -> BigInt {
    BigInt::from(5).pow(exponent) << exponent
}

/// How many decimal digits an integer has; none of zero.
pub(super) fn count_digits(magnitude: &BigUint) -> u32 {
    /// log10(2) × 2^32, rounded down.
    const LOG10_2: u64 = 1_292_913_986;
    if magnitude.is_zero() {
        return 0;
    }
    // 10^least ≤ 2^(bits − 1) ≤ magnitude < 2^bits < 10^(least + 2)
    let least = (((magnitude.bits() - 1) * LOG10_2) >> 32) as u32;
    if *magnitude < *ten_to(least + 1).magnitude() { least + 1 } else { least + 2 }
}

/// `dividend / divisor` as an integer.
pub(super) fn divide(dividend: &BigInt, divisor: &BigInt, rounding: Rounding) -> BigInt {
    let quotient = dividend / divisor;
    let remainder = dividend - &quotient * divisor;
    if remainder.is_zero() {
        return quotient;
    }
    let positive = dividend.is_negative() == divisor.is_negative();
    let away = match rounding {
        Rounding::Half => remainder.magnitude() << 1u8 >= *divisor.magnitude(),
        Rounding::Truncate => false,
        Rounding::Up => positive,
        Rounding::Down => !positive,
    };
    match (away, positive) {
        (false, _) => quotient,
        (true, true) => quotient + 1,
        (true, false) => quotient - 1,
    }
}

impl Decimal {
    pub fn new(mantissa: BigInt, scale: u32) -> Decimal {
        Decimal { mantissa, scale }
    }

    /// The mantissa at a scale that is no smaller.
    fn at_scale(&self, scale: u32) -> BigInt {
        if scale == self.scale { self.mantissa.clone() } else { &self.mantissa * ten_to(scale - self.scale) }
    }

    /// Both mantissas at the larger scale, and that.
    pub fn align(&self, other: &Decimal) -> (BigInt, BigInt, u32) {
        let scale = self.scale.max(other.scale);
        (self.at_scale(scale), other.at_scale(scale), scale)
    }

    pub fn plus(&self, other: &Decimal) -> Decimal {
        let (a, b, scale) = self.align(other);
        Decimal::new(a + b, scale)
    }

    pub fn minus(&self, other: &Decimal) -> Decimal {
        let (a, b, scale) = self.align(other);
        Decimal::new(a - b, scale)
    }

    pub fn times(&self, other: &Decimal) -> Decimal {
        Decimal::new(&self.mantissa * &other.mantissa, self.scale + other.scale)
    }

    /// The quotient by what is not zero, rounded half away from zero at the scale that PostgreSQL chooses
    /// (`select_div_scale` in its `numeric.c`): at least 16 significant digits and no less than either operand's scale, as
    /// long as that is no more than a chosen scale may be.
    pub fn divided_by(&self, divisor: &Decimal) -> Decimal {
        let ((weight, digit), (divisor_weight, divisor_digit)) =
            (self.leading_digit(), divisor.leading_digit());
        let quotient_weight = weight - divisor_weight - i64::from(digit <= divisor_digit);
        let scale = SIGNIFICANT_DIGITS_MIN - quotient_weight * POSTGRES_DIGITS;
        let scale = scale.max(i64::from(self.scale)).max(i64::from(divisor.scale));
        let scale = scale.clamp(0, CHOSEN_SCALE_MAX);
        let shift = scale + i64::from(divisor.scale) - i64::from(self.scale);
        let factor = ten_to(shift.unsigned_abs() as u32);
        let mantissa = match shift >= 0 {
            true => divide(&(&self.mantissa * factor), &divisor.mantissa, Rounding::Half),
            false => divide(&self.mantissa, &(&divisor.mantissa * factor), Rounding::Half),
        };
        Decimal::new(mantissa, scale as u32)
    }

    /// The first digit in base 10,000 and its weight, a power of 10,000.
    pub fn leading_digit(&self) -> (i64, u16) {
        let magnitude = self.mantissa.magnitude();
        if magnitude.is_zero() {
            return (0, 0);
        }
        let weight = self.exponent().div_euclid(POSTGRES_DIGITS);
        // mantissa × 10^(−scale) / 10^(4 × weight)
        let shift = -i64::from(self.scale) - POSTGRES_DIGITS * weight;
        let factor = ten_to(shift.unsigned_abs() as u32);
        let digit = if shift >= 0 { magnitude * factor.magnitude() } else { magnitude / factor.magnitude() };
        (
            weight,
            u16::try_from(digit).expect("less than 10,000, because the weight is that of the first digit"),
        )
    }

    /// The power of ten of the first digit of what is not zero.
    pub fn exponent(&self) -> i64 {
        i64::from(count_digits(self.mantissa.magnitude())) - 1 - i64::from(self.scale)
    }

    /// As many digits after the point; negative `digits` round before it.
    pub fn rescale(&self, digits: i64, rounding: Rounding) -> Decimal {
        let missing = digits - i64::from(self.scale);
        let scale = digits.max(0) as u32;
        if missing >= 0 {
            return Decimal::new(self.at_scale(scale), scale);
        }
        let dropped = missing.unsigned_abs() as u32;
        // A unit that is more than twice the value needs no division by it.
        let rounded = match dropped > count_digits(self.mantissa.magnitude()) + 1 {
            false => divide(&self.mantissa, &ten_to(dropped), rounding),
            true => match rounding {
                Rounding::Up if self.mantissa.is_positive() => BigInt::from(1),
                Rounding::Down if self.mantissa.is_negative() => BigInt::from(-1),
                _ => BigInt::ZERO,
            },
        };
        let zeros = digits.min(0).unsigned_abs() as u32;
        Decimal::new(if zeros == 0 || rounded.is_zero() { rounded } else { rounded * ten_to(zeros) }, scale)
    }

    pub fn compare(&self, other: &Decimal) -> Ordering {
        let signs = self.mantissa.sign().cmp(&other.mantissa.sign());
        if signs.is_ne() || self.mantissa.is_zero() {
            return signs;
        }
        if self.scale != other.scale {
            let exponents = self.exponent().cmp(&other.exponent());
            if exponents.is_ne() {
                return if self.mantissa.is_negative() { exponents.reverse() } else { exponents };
            }
        }
        let (a, b, _) = self.align(other);
        a.cmp(&b)
    }

    /// Without zeros at the end of the digits after the point, and how many digits are left there.
    pub fn minimal_scale(&self) -> u32 {
        if self.mantissa.is_zero() {
            return 0;
        }
        let digits = self.mantissa.magnitude().to_string();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        self.scale.saturating_sub(zeros as u32)
    }
}
