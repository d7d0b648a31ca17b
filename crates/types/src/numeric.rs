use crate::{SqlError, SqlState, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use std::cmp::Ordering;
use std::io;

/// An exact decimal number of at most 38 digits: `mantissa × 10^−scale`. The scale is what PostgreSQL calls the display
/// scale: `1.0` and `1.00` are equal and print differently.
///
/// Every operation gives PostgreSQL's result with PostgreSQL's display scale, or an error: PostgreSQL's numeric holds
/// 131,072 digits before the point and 16,383 after it, ours 38 significant digits and a scale of
/// [`Numeric::SCALE_MAX`]. What would need more ends with `22003` and never with a rounded value. NaN and the infinities
/// have `SPECIAL` for a scale.
#[derive(Clone, Copy, Debug, BorshSerialize)]
pub struct Numeric {
    /// Little-endian, as bytes: with an alignment of one a [`crate::Value`] has 24 bytes instead of 32.
    mantissa: [u8; 16],
    scale: u8,
}

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

/// The smallest mantissa that is too large.
const MANTISSA_END: i128 = POWERS_OF_TEN[limits::NUMERIC_PRECISION_MAX as usize];

/// Decimal digits in one digit of PostgreSQL's representation, which the scale of a quotient depends on.
const POSTGRES_DIGITS: i32 = 4;

/// Significant digits that PostgreSQL's division gives at least.
const QUOTIENT_DIGITS_MIN: i32 = 16;

/// `10^exponent` where it fits.
fn power_of_ten(exponent: u32) -> Option<i128> {
    POWERS_OF_TEN.get(exponent as usize).copied()
}

#[cold]
pub(crate) fn too_many_digits() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format").detail(format!(
        "A numeric value has at most {} digits, and at most {} of them after the decimal point.",
        limits::NUMERIC_PRECISION_MAX,
        Numeric::SCALE_MAX
    ))
}

#[cold]
pub(crate) fn field_overflow(precision: u8, scale: i8) -> SqlError {
    if precision > limits::NUMERIC_PRECISION_MAX {
        return too_many_digits();
    }
    let whole_digits = i32::from(precision) - i32::from(scale);
    let bound = if whole_digits == 0 { "1".to_string() } else { format!("10^{whole_digits}") };
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
    ))
}

/// The scale of what is no number or infinite; the mantissa tells which, in the order of SQL.
const SPECIAL: u8 = u8::MAX;

/// How digits are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    /// To the nearest, halves away from zero.
    Half,
    /// Towards zero.
    Truncate,
    /// Towards positive infinity.
    Up,
    /// Towards negative infinity.
    Down,
}

/// `dividend / divisor` as an integer; `None` where it does not fit.
fn divide_integers(dividend: i128, divisor: i128, rounding: Rounding) -> Option<i128> {
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

impl Numeric {
    /// Digits after the point at most; the product of two values of 38 digits after the point has this many.
    pub const SCALE_MAX: u8 = 2 * limits::NUMERIC_PRECISION_MAX;

    /// `0`
    pub const ZERO: Numeric = Numeric { mantissa: [0; 16], scale: 0 };

    /// Equal to itself and greater than all numbers.
    pub const NAN: Numeric = Numeric { mantissa: 2_i128.to_le_bytes(), scale: SPECIAL };

    /// Greater than all other numbers.
    pub const INFINITY: Numeric = Numeric { mantissa: 1_i128.to_le_bytes(), scale: SPECIAL };

    /// Less than all other numbers.
    pub const NEGATIVE_INFINITY: Numeric = Numeric { mantissa: (-1_i128).to_le_bytes(), scale: SPECIAL };

    /// `mantissa × 10^−scale`, which the caller knows to have at most 38 digits and a scale of at most
    /// [`Numeric::SCALE_MAX`]; [`Numeric::checked_new`] checks it.
    pub fn new(mantissa: i128, scale: u8) -> Numeric {
        debug_assert!(mantissa.unsigned_abs() < MANTISSA_END.unsigned_abs() && scale <= Numeric::SCALE_MAX);
        Numeric { mantissa: mantissa.to_le_bytes(), scale }
    }

    /// `mantissa × 10^−scale`.
    ///
    /// # Errors
    /// `22003` where there are more digits than a numeric value has.
    pub fn checked_new(mantissa: i128, scale: u32) -> Result<Numeric, SqlError> {
        match u8::try_from(scale) {
            Ok(scale)
                if scale <= Numeric::SCALE_MAX && (-MANTISSA_END < mantissa && mantissa < MANTISSA_END) =>
            {
                Ok(Numeric::new(mantissa, scale))
            }
            _ => Err(too_many_digits()),
        }
    }

    pub(crate) fn from_big(mantissa: &BigInt, scale: u32) -> Result<Numeric, SqlError> {
        Numeric::checked_new(mantissa.to_i128().ok_or_else(too_many_digits)?, scale)
    }

    /// True for NaN and the infinities, which have neither digits nor a scale.
    #[inline]
    pub fn is_special(&self) -> bool {
        self.scale == SPECIAL
    }

    /// True for what is no number.
    pub fn is_nan(&self) -> bool {
        self.is_special() && self.mantissa() == Numeric::NAN.mantissa()
    }

    /// True for both infinities.
    pub fn is_infinite(&self) -> bool {
        self.is_special() && !self.is_nan()
    }

    /// The digits as an integer; of the infinities a number of their sign.
    #[inline]
    pub fn mantissa(&self) -> i128 {
        i128::from_le_bytes(self.mantissa)
    }

    /// Digits after the point, where it is finite.
    #[inline]
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Same digits and same scale; `==` ignores the scale.
    pub fn is_identical(&self, other: &Numeric) -> bool {
        self.mantissa() == other.mantissa() && self.scale == other.scale
    }

    /// True for zero of any scale.
    pub fn is_zero(&self) -> bool {
        self.mantissa() == 0
    }

    /// Both mantissas at the larger scale; `None` where one does not fit.
    fn align(self, other: Numeric) -> Option<(i128, i128)> {
        let (a, b) = (self.mantissa(), other.mantissa());
        match self.scale.cmp(&other.scale) {
            Ordering::Equal => Some((a, b)),
            Ordering::Less => {
                let factor = power_of_ten(u32::from(other.scale - self.scale))?;
                Some((a.checked_mul(factor)?, b))
            }
            Ordering::Greater => {
                let factor = power_of_ten(u32::from(self.scale - other.scale))?;
                Some((a, b.checked_mul(factor)?))
            }
        }
    }

    fn align_big(self, other: Numeric) -> (BigInt, BigInt) {
        let scale = self.scale.max(other.scale);
        let at_scale =
            |n: Numeric| BigInt::from(n.mantissa()) * BigInt::from(10).pow(u32::from(scale - n.scale));
        (at_scale(self), at_scale(other))
    }

    /// The sum; its scale is the larger of both.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn checked_add(self, other: Numeric) -> Result<Numeric, SqlError> {
        if self.is_special() || other.is_special() {
            return Ok(self.special_sum(other));
        }
        let scale = u32::from(self.scale.max(other.scale));
        if let Some((a, b)) = self.align(other)
            && let Some(sum) = a.checked_add(b)
        {
            return Numeric::checked_new(sum, scale);
        }
        let (a, b) = self.align_big(other);
        Numeric::from_big(&(a + b), scale)
    }

    /// The difference; its scale is the larger of both.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn checked_sub(self, other: Numeric) -> Result<Numeric, SqlError> {
        self.checked_add(other.negated())
    }

    /// The product; its scale is the sum of both.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn checked_mul(self, other: Numeric) -> Result<Numeric, SqlError> {
        if self.is_special() || other.is_special() {
            return Ok(self.special_product(other));
        }
        let scale = u32::from(self.scale) + u32::from(other.scale);
        match self.mantissa().checked_mul(other.mantissa()) {
            Some(product) => Numeric::checked_new(product, scale),
            None => Err(too_many_digits()),
        }
    }

    /// The quotient, rounded half away from zero at the scale that PostgreSQL chooses (`select_div_scale` in its
    /// `numeric.c`): at least 16 significant digits and no less than either operand's scale.
    ///
    /// # Errors
    /// `22012` where `divisor` is zero, `22003` where the quotient has too many digits.
    pub fn checked_div(self, divisor: Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self);
        }
        if divisor.is_zero() {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        if self.is_special() || divisor.is_special() {
            return Ok(self.special_quotient(divisor));
        }
        let scale = self.quotient_scale(divisor);
        // Not negative, because the quotient's scale is at least that of the dividend.
        let shift = scale + u32::from(divisor.scale) - u32::from(self.scale);
        let (a, b) = (self.mantissa(), divisor.mantissa());
        if let Some(dividend) = power_of_ten(shift).and_then(|factor| a.checked_mul(factor)) {
            let quotient = divide_integers(dividend, b, Rounding::Half).ok_or_else(too_many_digits)?;
            return Numeric::checked_new(quotient, scale);
        }
        let (dividend, divisor) = (BigInt::from(a) * BigInt::from(10).pow(shift), BigInt::from(b));
        let (mut quotient, remainder) = (&dividend / &divisor, &dividend % &divisor);
        if remainder.abs() * 2 >= divisor.abs() {
            quotient += if dividend.is_negative() == divisor.is_negative() { 1 } else { -1 };
        }
        Numeric::from_big(&quotient, scale)
    }

    fn quotient_scale(self, divisor: Numeric) -> u32 {
        let ((weight, digit), (divisor_weight, divisor_digit)) =
            (self.leading_digit(), divisor.leading_digit());
        let quotient_weight = weight - divisor_weight - i32::from(digit <= divisor_digit);
        let scale = QUOTIENT_DIGITS_MIN - quotient_weight * POSTGRES_DIGITS;
        scale.max(i32::from(self.scale)).max(i32::from(divisor.scale)).max(0).unsigned_abs()
    }

    /// The first digit in base 10,000 and its weight, a power of 10,000.
    pub(crate) fn leading_digit(self) -> (i32, i128) {
        let mantissa = self.mantissa().unsigned_abs() as i128;
        let Some(log) = mantissa.checked_ilog10() else {
            return (0, 0);
        };
        let weight = (log as i32 - i32::from(self.scale)).div_euclid(POSTGRES_DIGITS);
        // mantissa × 10^(−scale) / 10^(4 × weight); between −log and 3, because the weight is that of the first digit.
        let shift = -i32::from(self.scale) - POSTGRES_DIGITS * weight;
        let factor = POWERS_OF_TEN[shift.unsigned_abs() as usize];
        (weight, if shift >= 0 { mantissa * factor } else { mantissa / factor })
    }

    /// The square root of a value that is not negative, rounded half away from zero at this scale.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn square_root(self, scale: u8) -> Result<Numeric, SqlError> {
        /// Digits behind those that are kept, which say how to round: the root of a decimal number is no tie unless
        /// it ends there.
        const GUARD_DIGITS: u32 = 2;
        let digits = u32::from(scale) + GUARD_DIGITS;
        // The root of mantissa × 10^(2 × digits − scale) as an integer has this many digits behind the point.
        let shift = 2 * digits as i32 - i32::from(self.scale);
        let radicand = match u32::try_from(shift) {
            Ok(shift) => BigInt::from(self.mantissa()) * BigInt::from(10).pow(shift),
            Err(_) => BigInt::from(self.mantissa()) / BigInt::from(10).pow(shift.unsigned_abs()),
        };
        let unit = BigInt::from(10).pow(GUARD_DIGITS);
        let rounded = (radicand.sqrt() + &unit / 2) / unit;
        Numeric::from_big(&rounded, u32::from(scale))
    }

    /// The remainder of the truncating division, with the sign of the dividend.
    ///
    /// # Errors
    /// `22012` where `divisor` is zero, `22003` where the remainder has too many digits.
    pub fn checked_rem(self, divisor: Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self);
        }
        if divisor.is_zero() {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        if self.is_special() || divisor.is_special() {
            return Ok(if self.is_special() || divisor.is_nan() { Numeric::NAN } else { self });
        }
        let scale = u32::from(self.scale.max(divisor.scale));
        match self.align(divisor) {
            Some((a, b)) => Numeric::checked_new(a % b, scale),
            None => {
                let (a, b) = self.align_big(divisor);
                Numeric::from_big(&(a % b), scale)
            }
        }
    }

    /// The value with the other sign.
    pub fn negated(self) -> Numeric {
        if self.is_nan() {
            return self;
        }
        Numeric { mantissa: (-self.mantissa()).to_le_bytes(), scale: self.scale }
    }

    /// The value without its sign.
    pub fn abs(self) -> Numeric {
        Numeric { mantissa: self.mantissa().abs().to_le_bytes(), scale: self.scale }
    }

    /// `-1`, `0` or `1`; NaN of NaN.
    pub fn sign(self) -> Numeric {
        if self.is_nan() {
            return self;
        }
        Numeric::new(self.mantissa().signum(), 0)
    }

    /// PostgreSQL's `round(value, digits)`: half away from zero; negative `digits` round before the point.
    ///
    /// # Errors
    /// `22003` where the result has too many digits.
    pub fn round(self, digits: i32) -> Result<Numeric, SqlError> {
        self.rescale(digits, Rounding::Half)
    }

    /// PostgreSQL's `trunc(value, digits)`: towards zero.
    ///
    /// # Errors
    /// `22003` where the result has too many digits.
    pub fn trunc(self, digits: i32) -> Result<Numeric, SqlError> {
        self.rescale(digits, Rounding::Truncate)
    }

    /// The smallest integer that is not less.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn ceil(self) -> Result<Numeric, SqlError> {
        self.rescale(0, Rounding::Up)
    }

    /// The largest integer that is not greater.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn floor(self) -> Result<Numeric, SqlError> {
        self.rescale(0, Rounding::Down)
    }

    fn rescale(self, digits: i32, rounding: Rounding) -> Result<Numeric, SqlError> {
        if self.is_special() {
            return Ok(self);
        }
        let missing = i64::from(digits) - i64::from(self.scale);
        let mantissa = self.mantissa();
        if missing >= 0 {
            let mantissa = match u32::try_from(missing).ok().and_then(power_of_ten) {
                Some(factor) => mantissa.checked_mul(factor).ok_or_else(too_many_digits)?,
                None if mantissa == 0 => 0,
                None => return Err(too_many_digits()),
            };
            return Numeric::checked_new(mantissa, digits.unsigned_abs());
        }
        // A mantissa has 38 digits, so that a unit of 10^39 and more is more than twice the value.
        let rounded = match u32::try_from(-missing).ok().and_then(power_of_ten) {
            Some(factor) => divide_integers(mantissa, factor, rounding).ok_or_else(too_many_digits)?,
            None => match rounding {
                Rounding::Up if mantissa > 0 => 1,
                Rounding::Down if mantissa < 0 => -1,
                _ => 0,
            },
        };
        if digits >= 0 || rounded == 0 {
            return Numeric::checked_new(rounded, digits.max(0).unsigned_abs());
        }
        let factor = power_of_ten(digits.unsigned_abs()).ok_or_else(too_many_digits)?;
        Numeric::checked_new(rounded.checked_mul(factor).ok_or_else(too_many_digits)?, 0)
    }

    /// The value as a `numeric(precision, scale)`: rounded half away from zero to `scale`, then checked. NaN fits into
    /// all, an infinity into none.
    ///
    /// # Errors
    /// `22003` "numeric field overflow".
    pub fn coerce(self, precision: u8, scale: i8) -> Result<Numeric, SqlError> {
        if self.is_special() {
            return self.special_field(precision, scale);
        }
        let rounded =
            self.rescale(i32::from(scale), Rounding::Half).map_err(|_| field_overflow(precision, scale))?;
        // Rounded before the point, the digits that are left begin there.
        let digits = i32::from(precision) - i32::from(scale.min(0));
        match power_of_ten(digits.unsigned_abs()) {
            Some(end) if rounded.mantissa().abs() >= end => Err(field_overflow(precision, scale)),
            _ => Ok(rounded),
        }
    }

    /// The value as `smallint`, rounded half away from zero.
    ///
    /// # Errors
    /// `22003` "smallint out of range"; `0A000` of what is not finite.
    pub fn to_i16(self) -> Result<i16, SqlError> {
        self.to_integer("smallint")
    }

    /// The value as `integer`, rounded half away from zero.
    ///
    /// # Errors
    /// `22003` "integer out of range"; `0A000` of what is not finite.
    pub fn to_i32(self) -> Result<i32, SqlError> {
        self.to_integer("integer")
    }

    /// The value as `bigint`, rounded half away from zero.
    ///
    /// # Errors
    /// `22003` "bigint out of range"; `0A000` of what is not finite.
    pub fn to_i64(self) -> Result<i64, SqlError> {
        self.to_integer("bigint")
    }

    fn to_integer<T: TryFrom<i128>>(self, name: &str) -> Result<T, SqlError> {
        if self.is_special() {
            return Err(self.no_integer(name));
        }
        let integer =
            self.rescale(0, Rounding::Half).ok().and_then(|rounded| T::try_from(rounded.mantissa()).ok());
        integer.ok_or_else(|| crate::arithmetic::out_of_range(name))
    }

    /// The nearest `double precision`.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().expect("a decimal number is a double's text")
    }
}

impl From<i32> for Numeric {
    fn from(value: i32) -> Numeric {
        Numeric::new(i128::from(value), 0)
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::new(i128::from(value), 0)
    }
}

impl BorshDeserialize for Numeric {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Numeric> {
        let (mantissa, scale) = BorshDeserialize::deserialize_reader(reader)?;
        let read = Numeric { mantissa, scale };
        if read.is_special() && matches!(read.mantissa(), -1 | 1 | 2) {
            return Ok(read);
        }
        Numeric::checked_new(read.mantissa(), u32::from(scale)).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "expected a numeric value of at most 38 digits")
        })
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
        if self.is_special() || other.is_special() {
            return self.special_rank().cmp(&other.special_rank());
        }
        match self.align(*other) {
            Some((a, b)) => a.cmp(&b),
            None => {
                let (a, b) = self.align_big(*other);
                a.cmp(&b)
            }
        }
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
        let texts = ["-1e37", "-1e-76", "0", "1e-76", "1e-40", "0.1", "1", "1e37"];
        let tiny = Numeric::new(0, 76);
        for (at, a) in texts.iter().enumerate() {
            for (other, b) in texts.iter().enumerate() {
                assert_eq!(numeric(a).cmp(&numeric(b)), at.cmp(&other), "{a} {b}");
            }
            assert_eq!(numeric(a).cmp(&tiny), at.cmp(&2), "{a}");
        }
    }

    #[test]
    fn what_needs_more_than_38_digits_is_refused_and_named() {
        let largest = numeric("99999999999999999999999999999999999999");
        let refusals = [
            largest.checked_add(Numeric::from(1)),
            largest.checked_add(numeric("0.1")),
            largest.checked_mul(Numeric::from(2)),
            numeric("1e-40").checked_mul(numeric("1e-40")),
            largest.checked_div(numeric("0.5")),
            largest.round(1),
            largest.round(i32::MAX),
            largest.round(-38),
        ];
        for refusal in refusals {
            let error = refusal.expect_err("too many digits");
            assert_eq!(error.state, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
            assert!(error.detail.is_some_and(|detail| detail.contains("at most 38 digits")));
        }
        assert!(largest.checked_add(numeric("-0.1")).is_err(), "39 digits");
        assert!(largest.checked_sub(largest).is_ok_and(|zero| zero.is_zero()));
        assert!(largest.round(i32::MIN).is_ok_and(|zero| zero.is_zero()));
        // The second operand has too many digits at the scale of the first, their sum has not.
        let difference = numeric("-99999999999999999999999999999999999999e-1").checked_add(numeric("18e36"));
        assert!(
            difference
                .is_ok_and(|difference| difference.to_string() == "8000000000000000000000000000000000000.1")
        );
    }

    #[test]
    fn field_overflow_says_what_fits() {
        let error = numeric("1000").coerce(5, 2).expect_err("too large");
        assert_eq!(error.message, "numeric field overflow");
        let detail = "A field with precision 5, scale 2 must round to an absolute value less than 10^3.";
        assert_eq!(error.detail.as_deref(), Some(detail));
        let detail = numeric("1").coerce(2, 2).expect_err("too large").detail.expect("a detail");
        assert!(detail.ends_with("less than 1."), "{detail}");
    }

    #[test]
    fn bytes_of_no_numeric_value_are_refused() {
        let none = [(MANTISSA_END, 0u8), (-MANTISSA_END, 0), (i128::MIN, 3), (1, 77)];
        for (mantissa, scale) in none.into_iter().chain([(0, SPECIAL), (3, SPECIAL), (-2, SPECIAL)]) {
            let bytes = crate::encode(&(mantissa as u64, (mantissa >> 64) as i64, scale));
            assert!(crate::decode_exactly::<Numeric>(&bytes).is_err());
        }
        let largest = Numeric::new(1 - MANTISSA_END, 76);
        let read: Numeric = crate::decode_exactly(&crate::encode(&largest)).expect("what encode wrote");
        assert!(read.is_identical(&largest));
        for special in [Numeric::NAN, Numeric::INFINITY, Numeric::NEGATIVE_INFINITY] {
            let read: Numeric = crate::decode_exactly(&crate::encode(&special)).expect("what encode wrote");
            assert!(read.is_identical(&special));
        }
    }
}
