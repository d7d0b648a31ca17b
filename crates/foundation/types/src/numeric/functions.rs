//! Roots, logarithms and number theory of [`Numeric`], with the scale that PostgreSQL's `numeric.c` chooses for each, and
//! exact to the last digit.

use super::decimal::{CHOSEN_SCALE_MAX, Decimal, SIGNIFICANT_DIGITS_MIN, count_digits, divide, ten_to};
use super::power::chosen_scale;
use super::series::{bits_of, logarithm};
use super::{Numeric, overflow};
use crate::{SqlError, SqlState, limits};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

fn error(state: &[u8; 5], message: &str) -> SqlError {
    SqlError::new(SqlState(*state), message)
}

impl Numeric {
    pub(super) fn is_integral(&self) -> bool {
        self.minimal_scale() == 0
    }

    /// The square root with the scale that PostgreSQL's `sqrt` chooses: at least 16 significant digits and the argument's
    /// scale.
    ///
    /// # Errors
    /// `2201F` of a negative number.
    pub fn sqrt(&self) -> Result<Numeric, SqlError> {
        if self.is_negative() {
            return Err(error(b"2201F", "cannot take square root of a negative number"));
        }
        if self.is_special() {
            return Ok(self.clone());
        }
        let number = self.decimal();
        let root_weight = (number.leading_digit().0 + 1) * 4 / 2 - 1;
        let scale = (SIGNIFICANT_DIGITS_MIN - root_weight).max(i64::from(number.scale));
        Numeric::of_decimal(number.square_root(scale.clamp(0, CHOSEN_SCALE_MAX) as u32))
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// `2201E` where there is none.
    pub fn natural_logarithm(&self) -> Result<Numeric, SqlError> {
        self.check_logarithm()?;
        if self.is_special() {
            return Ok(self.clone());
        }
        let number = self.decimal();
        let scale = chosen_scale(self.logarithm_weight(), &[&number]);
        let bits = bits_of(i64::from(scale)) + 64;
        let logarithm = logarithm(&number, bits) * ten_to(scale);
        let rounded = divide(&logarithm, &(BigInt::one() << bits), super::decimal::Rounding::Half);
        Numeric::of_decimal(Decimal::new(rounded, scale))
    }

    /// The logarithm to a base.
    ///
    /// # Errors
    /// `2201E` where there is none, `22012` for base one.
    pub fn logarithm(&self, base: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_negative() || base.is_negative() {
            return Err(error(b"2201E", "cannot take logarithm of a negative number"));
        }
        base.check_logarithm()?;
        self.check_logarithm()?;
        match (base.is_special(), self.is_special()) {
            (true, true) => return Ok(Numeric::NAN),
            (true, false) => return Ok(Numeric::ZERO),
            (false, true) => return Ok(self.clone()),
            _ => {}
        }
        if *base == Numeric::from(1) {
            return Err(super::division_by_zero());
        }
        let (weight, base_weight) = (self.logarithm_weight(), base.logarithm_weight());
        let (number, base) = (self.decimal(), base.decimal());
        let scale = chosen_scale(weight - base_weight, &[&number, &base]);
        // Both have as many significant digits as the result, and some to spare.
        let digits = (i64::from(scale) + weight - base_weight).max(0);
        let bits_for = |weight: i64| bits_of(digits - weight) + 64;
        let (bits, base_bits) = (bits_for(weight), bits_for(base_weight));
        let (of_number, of_base) = (logarithm(&number, bits), logarithm(&base, base_bits));
        let (mut dividend, mut divisor) = (of_number * ten_to(scale), of_base);
        if bits > base_bits {
            divisor <<= bits - base_bits
        } else {
            dividend <<= base_bits - bits
        }
        let quotient = divide(&dividend, &divisor, super::decimal::Rounding::Half);
        Numeric::of_decimal(Decimal::new(quotient, scale))
    }

    fn check_logarithm(&self) -> Result<(), SqlError> {
        match self.cmp(&Numeric::ZERO) {
            Ordering::Less => Err(error(b"2201E", "cannot take logarithm of a negative number")),
            Ordering::Equal => Err(error(b"2201E", "cannot take logarithm of zero")),
            Ordering::Greater => Ok(()),
        }
    }

    /// The power of ten of the logarithm as `estimate_ln_dweight` in `numeric.c` estimates it: of numbers near one by the
    /// distance from it.
    pub(super) fn logarithm_weight(&self) -> i64 {
        let number = self.decimal();
        let distance = number.minus(&Decimal::new(BigInt::one(), 0));
        let near = Decimal::new(distance.mantissa.abs(), distance.scale)
            .compare(&Decimal::new(BigInt::one(), 1))
            .is_le();
        if distance.mantissa.is_zero() {
            return 0;
        }
        if near {
            return distance.exponent();
        }
        const ROUGH_BITS: u32 = 64;
        let logarithm = logarithm(&number, ROUGH_BITS).abs();
        let whole = &logarithm >> ROUGH_BITS;
        match whole.is_zero() {
            false => i64::from(count_digits(whole.magnitude())) - 1,
            // Towards zero, where it is more than a tenth.
            true => -i64::from(logarithm * 10 < BigInt::one() << ROUGH_BITS),
        }
    }

    /// The product of all whole numbers up to `number`.
    ///
    /// # Errors
    /// `22003` of a negative number, or where the result has too many digits.
    pub fn factorial(number: i64) -> Result<Numeric, SqlError> {
        /// The last one that has a numeric value.
        const LAST: i64 = 32_177;
        if number < 0 {
            return Err(error(b"22003", "factorial of a negative number is undefined"));
        }
        if number > LAST {
            return Err(overflow());
        }
        Numeric::of_decimal(Decimal::new(BigInt::from(product(1, number.unsigned_abs())), 0))
    }

    /// The greatest number that divides both without a rest.
    ///
    /// # Errors
    /// `22003` where it has too many digits at the larger scale of both, `54000` where it takes too many divisions to find.
    pub fn greatest_divisor(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_special() || other.is_special() {
            return Ok(Numeric::NAN);
        }
        let (a, b, scale) = self.decimal().align(&other.decimal());
        Numeric::of_decimal(Decimal::new(greatest_divisor(&a, &b)?, scale))
    }

    /// The least number that both divide.
    ///
    /// # Errors
    /// As [`Numeric::greatest_divisor`].
    pub fn least_multiple(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        if self.is_special() || other.is_special() {
            return Ok(Numeric::NAN);
        }
        let (a, b, scale) = self.decimal().align(&other.decimal());
        let divisor = greatest_divisor(&a, &b)?;
        let multiple = if divisor.is_zero() { BigInt::ZERO } else { (a / divisor * b).abs() };
        Numeric::of_decimal(Decimal::new(multiple, scale))
    }

    /// The smallest scale that loses no digit.
    pub fn minimal_scale(&self) -> u16 {
        let Some((mut mantissa, mut scale)) = self.small() else {
            return if self.is_special() { 0 } else { self.decimal().minimal_scale() as u16 };
        };
        if mantissa == 0 {
            return 0;
        }
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        u16::from(scale)
    }

    /// The number of the equal bucket between two bounds that it falls into: 0 below the first, `count + 1` above the last.
    ///
    /// # Errors
    /// `2201G` of no buckets or equal bounds, `22003` of too many buckets.
    pub fn bucket(&self, low: &Numeric, high: &Numeric, count: i32) -> Result<i32, SqlError> {
        if count <= 0 {
            return Err(error(b"2201G", "count must be greater than zero"));
        }
        if self.is_nan() || low.is_nan() || high.is_nan() {
            return Err(error(b"2201G", "operand, lower bound, and upper bound cannot be NaN"));
        }
        if low.is_special() || high.is_special() {
            return Err(error(b"2201G", "lower and upper bounds must be finite"));
        }
        let beyond = || count.checked_add(1).ok_or_else(|| error(b"22003", "integer out of range"));
        let direction = low.cmp(high);
        if direction == Ordering::Equal {
            return Err(error(b"2201G", "lower bound cannot equal upper bound"));
        }
        if self.is_special() {
            return match (direction, self.is_negative()) {
                (Ordering::Less, true) | (Ordering::Greater, false) => Ok(0),
                _ => beyond(),
            };
        }
        let (value, low, high) = (self.decimal(), low.decimal(), high.decimal());
        let (from_low, width) = match direction {
            Ordering::Less => (value.minus(&low), high.minus(&low)),
            _ => (low.minus(&value), low.minus(&high)),
        };
        let (from_low, width, _) = from_low.align(&width);
        if from_low.is_negative() {
            Ok(0)
        } else if from_low >= width {
            beyond()
        } else {
            let bucket: BigInt = from_low * count / width + BigInt::one();
            Ok(bucket.to_i32().expect("at most the count"))
        }
    }
}

/// The product of the whole numbers from the first to the last: of halves, which are about as long as one another.
fn product(first: u64, last: u64) -> BigUint {
    if last.saturating_sub(first) < 16 {
        return (first..=last).fold(BigUint::one(), |product, factor| product * factor);
    }
    let middle = first + (last - first) / 2;
    product(first, middle) * product(middle + 1, last)
}

fn greatest_divisor(a: &BigInt, b: &BigInt) -> Result<BigInt, SqlError> {
    let most = limits::NUMERIC_DIVISOR_DIGITS_MAX;
    if a.magnitude().min(b.magnitude()).bits() > u64::from(bits_of(i64::from(most))) {
        let message = format!(
            "the greatest common divisor of numbers of more than {most} digits (NUMERIC_DIVISOR_DIGITS_MAX)"
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let (mut a, mut b) = (a.abs(), b.abs());
    while !b.is_zero() {
        (a, b) = (b.clone(), a % b);
    }
    Ok(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Numeric {
        Numeric::parse(text).expect("a numeric value")
    }

    fn shown(value: Result<Numeric, SqlError>) -> String {
        value.map_or_else(|error| error.message, |value| value.to_string())
    }

    /// PostgreSQL's answers.
    #[test]
    fn roots_and_logarithms_are_postgres() {
        for (value, root) in [
            ("2", "1.414213562373095"),
            ("0", "0.000000000000000"),
            ("1.000000000000003", "1.000000000000001"),
        ] {
            assert_eq!(shown(numeric(value).sqrt()), root, "{value}");
        }
        assert_eq!(shown(numeric("10").natural_logarithm()), "2.3025850929940457");
        assert_eq!(shown(numeric("1.1").natural_logarithm()), "0.09531017980432486");
        assert_eq!(shown(numeric("1").natural_logarithm()), "0.0000000000000000");
        assert_eq!(shown(numeric("100").logarithm(&numeric("10"))), "2.0000000000000000");
        assert_eq!(shown(numeric("2").logarithm(&numeric("1.0"))), "division by zero");
    }

    #[test]
    fn the_last_factorial_is_the_largest() {
        assert_eq!(shown(Numeric::factorial(0)), "1");
        assert_eq!(shown(Numeric::factorial(40)), "815915283247897734345611269596115894272000000000");
        assert!(Numeric::factorial(32_177).is_ok());
        assert!(Numeric::factorial(32_178).is_err());
    }

    #[test]
    fn divisors_of_the_longest_numbers_are_refused() {
        let (long, short) = (numeric("9e131071"), numeric("6e100"));
        assert_eq!(long.greatest_divisor(&short), Ok(numeric("6e100")));
        let error = long.greatest_divisor(&long).expect_err("too many digits");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
