//! PostgreSQL's `numeric`.

mod arithmetic;
mod decimal;
mod encoding;
mod functions;
mod power;
mod rounding;
mod series;
mod special;
mod sum;
mod text;

pub(crate) use encoding::push_key_of_digits;
pub use sum::{NumericDeviations, NumericSum};

use crate::{SqlError, SqlState, limits};
use decimal::{Decimal, count_digits};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// An exact decimal number, `mantissa × 10^−scale`, NaN or an infinity. The scale is what PostgreSQL calls the display scale:
/// `1.0` and `1.00` are equal and print differently.
///
/// Every operation gives PostgreSQL's result with PostgreSQL's display scale. A value has at most
/// [`limits::NUMERIC_WHOLE_DIGITS_MAX`] digits before the point and [`limits::NUMERIC_SCALE_MAX`] after it; what would need
/// more ends with `22003`.
///
/// Values of the usual size are computed with machine integers and need no memory of their own. A value that has the
/// small form is always in it, so that every value has one form and one encoding.
#[derive(Clone, Debug)]
pub struct Numeric(Form);

#[derive(Clone, Debug)]
enum Form {
    /// At most [`SMALL_DIGITS_MAX`] digits and a scale of at most [`SMALL_SCALE_MAX`]; [`SPECIAL`] for a scale where it is not
    /// finite.
    Small {
        /// Little-endian, as bytes: with an alignment of one they fit in a [`crate::Value`] beside both tags.
        mantissa: [u8; 16],
        scale: u8,
    },
    /// What is longer.
    Large(Arc<Decimal>),
}

/// Digits of the small form.
const SMALL_DIGITS_MAX: u32 = 38;

/// The scale of the small form: the product of two values of 38 digits after the point has it.
const SMALL_SCALE_MAX: u8 = 76;

/// The scale of what is no number or infinite; the mantissa tells which, in the order of SQL.
const SPECIAL: u8 = u8::MAX;

/// `10^0 … 10^38`.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut exponent = 1;
    while exponent < 39 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// The smallest mantissa that is too large for the small form.
const MANTISSA_END: i128 = POWERS_OF_TEN[SMALL_DIGITS_MAX as usize];

/// `10^exponent` where it fits.
fn power_of_ten(exponent: u32) -> Option<i128> {
    POWERS_OF_TEN.get(exponent as usize).copied()
}

#[cold]
fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

#[cold]
fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

impl Numeric {
    /// `0`
    pub const ZERO: Numeric = Numeric::of_parts(0, 0);

    /// Equal to itself and greater than all numbers.
    pub const NAN: Numeric = Numeric::of_parts(2, SPECIAL);

    /// Greater than all other numbers.
    pub const INFINITY: Numeric = Numeric::of_parts(1, SPECIAL);

    /// Less than all other numbers.
    pub const NEGATIVE_INFINITY: Numeric = Numeric::of_parts(-1, SPECIAL);

    #[inline]
    const fn of_parts(mantissa: i128, scale: u8) -> Numeric {
        Numeric(Form::Small { mantissa: mantissa.to_le_bytes(), scale })
    }

    /// `mantissa × 10^−scale`
    pub fn new(mantissa: i128, scale: u8) -> Numeric {
        if scale <= SMALL_SCALE_MAX && -MANTISSA_END < mantissa && mantissa < MANTISSA_END {
            return Numeric::of_parts(mantissa, scale);
        }
        Numeric(Form::Large(Arc::new(Decimal::new(BigInt::from(mantissa), u32::from(scale)))))
    }

    /// The same where it has the small form.
    #[inline]
    fn new_small(mantissa: i128, scale: u32) -> Option<Numeric> {
        let fits = scale <= u32::from(SMALL_SCALE_MAX) && -MANTISSA_END < mantissa && mantissa < MANTISSA_END;
        fits.then(|| Numeric::of_parts(mantissa, scale as u8))
    }

    /// In its one form.
    ///
    /// # Errors
    /// `22003` where there are more digits than a numeric value has.
    fn of_decimal(decimal: Decimal) -> Result<Numeric, SqlError> {
        if let Some(mantissa) = decimal.mantissa.to_i128()
            && let Some(small) = Numeric::new_small(mantissa, decimal.scale)
        {
            return Ok(small);
        }
        if decimal.scale > u32::from(limits::NUMERIC_SCALE_MAX)
            || has_more_digits(&decimal.mantissa, limits::NUMERIC_WHOLE_DIGITS_MAX + decimal.scale)
        {
            return Err(overflow());
        }
        Ok(Numeric(Form::Large(Arc::new(decimal))))
    }

    /// The mantissa and the scale of what is finite and small.
    #[inline]
    fn small(&self) -> Option<(i128, u8)> {
        match &self.0 {
            Form::Small { mantissa, scale } if *scale != SPECIAL => {
                Some((i128::from_le_bytes(*mantissa), *scale))
            }
            _ => None,
        }
    }

    /// What is finite, at any length.
    fn decimal(&self) -> Cow<'_, Decimal> {
        match &self.0 {
            Form::Small { mantissa, scale } => {
                Cow::Owned(Decimal::new(BigInt::from(i128::from_le_bytes(*mantissa)), u32::from(*scale)))
            }
            Form::Large(decimal) => Cow::Borrowed(decimal),
        }
    }

    /// True for NaN and the infinities, which have neither digits nor a scale.
    #[inline]
    pub fn is_special(&self) -> bool {
        matches!(self.0, Form::Small { scale: SPECIAL, .. })
    }

    /// True for what is no number.
    pub fn is_nan(&self) -> bool {
        self.is_special() && self.special_rank() == 2
    }

    /// True for both infinities.
    pub fn is_infinite(&self) -> bool {
        self.is_special() && !self.is_nan()
    }

    /// The mantissa of what is finite and has at most 38 digits, and at most 76 of them after the point; `None` of what is
    /// longer, NaN and the infinities.
    pub fn small_mantissa(&self) -> Option<i128> {
        self.small().map(|(mantissa, _)| mantissa)
    }

    /// The digits of what is finite as a text, without sign and point.
    pub fn digits(&self) -> String {
        match self.small() {
            Some((mantissa, _)) => mantissa.unsigned_abs().to_string(),
            None => self.decimal().mantissa.magnitude().to_string(),
        }
    }

    /// Digits after the point; none where it is not finite.
    #[inline]
    pub fn scale(&self) -> u16 {
        match &self.0 {
            Form::Small { scale: SPECIAL, .. } => 0,
            Form::Small { scale, .. } => u16::from(*scale),
            Form::Large(decimal) => decimal.scale as u16,
        }
    }

    /// Same digits and same scale; `==` ignores the scale.
    pub fn is_identical(&self, other: &Numeric) -> bool {
        match (&self.0, &other.0) {
            (Form::Small { mantissa, scale }, Form::Small { mantissa: other, scale: other_scale }) => {
                mantissa == other && scale == other_scale
            }
            (Form::Large(decimal), Form::Large(other)) => decimal == other,
            _ => false,
        }
    }

    /// True for zero of any scale.
    pub fn is_zero(&self) -> bool {
        self.signum() == 0
    }

    /// True for what is less than zero, the infinity among it.
    pub fn is_negative(&self) -> bool {
        self.signum() < 0
    }

    /// `-1`, `0` or `1`; of NaN `1`.
    fn signum(&self) -> i32 {
        match &self.0 {
            Form::Small { mantissa, .. } => i128::from_le_bytes(*mantissa).signum() as i32,
            Form::Large(decimal) => {
                i32::from(decimal.mantissa.is_positive()) - i32::from(decimal.mantissa.is_negative())
            }
        }
    }
}

/// Whether an integer has more than so many decimal digits.
fn has_more_digits(mantissa: &BigInt, digits: u32) -> bool {
    // Three bits are less than a digit: the power is needed for few numbers only.
    let bits = mantissa.bits();
    bits > u64::from(digits) * 3 && count_digits(mantissa.magnitude()) > digits
}

impl From<i32> for Numeric {
    fn from(value: i32) -> Numeric {
        Numeric::of_parts(i128::from(value), 0)
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::of_parts(i128::from(value), 0)
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let (Some((a, scale)), Some((b, other_scale))) = (self.small(), other.small())
            && let Some((a, b)) = align(a, scale, b, other_scale)
        {
            return a.cmp(&b);
        }
        if self.is_special() || other.is_special() {
            return self.special_rank().cmp(&other.special_rank());
        }
        self.decimal().compare(&other.decimal())
    }
}

/// Both mantissas at the larger scale; `None` where one does not fit.
#[inline]
fn align(a: i128, scale: u8, b: i128, other_scale: u8) -> Option<(i128, i128)> {
    match scale.cmp(&other_scale) {
        Ordering::Equal => Some((a, b)),
        Ordering::Less => Some((a.checked_mul(power_of_ten(u32::from(other_scale - scale))?)?, b)),
        Ordering::Greater => Some((a, b.checked_mul(power_of_ten(u32::from(scale - other_scale))?)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Numeric {
        Numeric::parse(text).expect("a numeric value")
    }

    #[test]
    fn values_of_far_scales_compare() {
        let texts = [
            "-1e131071",
            "-1e37",
            "-1e-16383",
            "0",
            "1e-16383",
            "1e-76",
            "1e-40",
            "0.1",
            "1",
            "1e37",
            "1e131071",
        ];
        let tiny = Numeric::new(0, 200);
        for (at, a) in texts.iter().enumerate() {
            for (other, b) in texts.iter().enumerate() {
                assert_eq!(numeric(a).cmp(&numeric(b)), at.cmp(&other), "{a} {b}");
            }
            assert_eq!(numeric(a).cmp(&tiny), at.cmp(&3), "{a}");
        }
    }

    #[test]
    fn what_has_the_small_form_is_in_it() {
        let largest = numeric("99999999999999999999999999999999999999");
        let beyond = largest.checked_add(&Numeric::from(1)).expect("in range");
        assert!(beyond.small().is_none());
        let back = beyond.checked_sub(&Numeric::from(1)).expect("in range");
        assert!(back.is_identical(&largest) && back.small().is_some());
        let tiny = numeric("1e-77");
        assert!(tiny.small().is_none() && tiny.round(76).is_ok_and(|zero| zero.small() == Some((0, 76))));
    }

    #[test]
    fn what_postgresql_does_not_hold_is_refused() {
        let (largest, smallest) = (numeric("9e131071"), numeric("1e-16383"));
        let refusals = [
            largest.checked_add(&largest),
            largest.checked_mul(&Numeric::from(2)),
            largest.checked_div(&numeric("0.5")),
            largest.round(-131_072),
            Numeric::parse("1e131072"),
            Numeric::parse("1e-16384"),
        ];
        for refusal in refusals {
            let error = refusal.expect_err("too many digits");
            assert_eq!(error.state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        }
        assert!(largest.checked_sub(&largest).is_ok_and(|zero| zero.is_zero()));
        assert!(largest.round(i32::MIN).is_ok_and(|zero| zero.is_zero()));
        // A product has no more digits after the point than a value may have, and is rounded to them.
        assert!(smallest.checked_mul(&smallest).is_ok_and(|zero| zero.is_zero() && zero.scale() == 16_383));
    }
}
