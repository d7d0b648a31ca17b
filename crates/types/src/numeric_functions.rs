//! Roots, powers and logarithms of [`Numeric`], with the scale that PostgreSQL's `numeric.c` chooses for each, and exact to
//! its last digit. Everything is computed with integers, so that it is the same on every machine.

use crate::{Numeric, SqlError, SqlState};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// Significant digits that PostgreSQL's results have at least.
const SIGNIFICANT_DIGITS_MIN: i32 = 16;

/// Digits after the point in the numbers of this file: those of the longest result, of its argument and some to spare.
const FIXED_SCALE: u32 = 160;

/// Above this exponent `e^x` has more digits than any numeric value.
const EXPONENT_MAX: i32 = 200;

/// `log10(e)`, as `numeric.c` has it, times 10^15.
const LOG10_E: i64 = 434_294_481_903_252;

fn ten_to(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

fn one() -> BigInt {
    ten_to(FIXED_SCALE)
}

/// `dividend / divisor`, rounded half away from zero.
fn rounded_quotient(dividend: &BigInt, divisor: &BigInt) -> BigInt {
    let doubled: BigInt = (dividend.abs() * 2 + divisor.abs()) / (divisor.abs() * 2);
    if dividend.is_negative() == divisor.is_negative() { doubled } else { -doubled }
}

/// A product of two fixed numbers.
fn product(a: &BigInt, b: &BigInt) -> BigInt {
    a * b / one()
}

fn error(state: &[u8; 5], message: &str) -> SqlError {
    SqlError::new(SqlState(*state), message)
}

/// The part before the point of `log10(|value|)` of a fixed number, towards zero.
fn decimal_weight(value: &BigInt) -> i32 {
    let magnitude = value.abs();
    if magnitude.is_zero() {
        return 0;
    }
    let digits = magnitude.to_string().len() as i32;
    let scale = FIXED_SCALE as i32;
    if magnitude >= one() {
        return digits - 1 - scale;
    }
    // Below one: −log10 is at least k where the value is at most 10^−k.
    let floor = digits - 1 - scale;
    if magnitude == ten_to((digits - 1).unsigned_abs()) { floor } else { floor + 1 }
}

/// `e^x` of a fixed number of at most [`EXPONENT_MAX`].
fn exponential(x: &BigInt) -> BigInt {
    let mut reduced = x.clone();
    let mut halvings = 0;
    let small = ten_to(FIXED_SCALE - 2);
    while reduced.abs() > small {
        reduced /= 2;
        halvings += 1;
    }
    let mut sum = one();
    let mut term = one();
    for count in 1.. {
        term = product(&term, &reduced) / count;
        if term.is_zero() {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        sum = product(&sum, &sum);
    }
    sum
}

/// `ln(x)` of a positive fixed number.
fn logarithm(x: &BigInt) -> BigInt {
    let mut reduced = x.clone();
    let mut roots = 0;
    let near = ten_to(FIXED_SCALE - 1);
    while (&reduced - one()).abs() > near {
        reduced = (reduced * one()).sqrt();
        roots += 1;
    }
    // ln(x) = 2 × (z + z³/3 + z⁵/5 + …), z = (x − 1) / (x + 1)
    let z = (&reduced - one()) * one() / (&reduced + one());
    let square = product(&z, &z);
    let (mut sum, mut power) = (BigInt::zero(), z);
    for count in 0.. {
        let term: BigInt = &power / (2 * count + 1);
        if term.is_zero() {
            break;
        }
        sum += term;
        power = product(&power, &square);
    }
    sum << (roots + 1)
}

/// The fixed number with as many digits after the point as `scale` says.
fn rounded(value: &BigInt, scale: i32) -> Result<Numeric, SqlError> {
    let scale = scale.max(0).unsigned_abs();
    match FIXED_SCALE.checked_sub(scale) {
        Some(dropped) => Numeric::from_big(&rounded_quotient(value, &ten_to(dropped)), scale),
        None => Numeric::from_big(&BigInt::zero(), scale),
    }
}

impl Numeric {
    fn fixed(self) -> BigInt {
        BigInt::from(self.mantissa()) * ten_to(FIXED_SCALE - u32::from(self.scale()))
    }

    fn is_integral(self) -> bool {
        self.minimal_scale() == 0
    }

    fn is_negative(self) -> bool {
        self.mantissa() < 0
    }

    /// The square root with the scale that PostgreSQL's `sqrt` chooses: at least 16 significant digits and the argument's
    /// scale.
    ///
    /// # Errors
    /// `2201F` of a negative number.
    pub fn sqrt(self) -> Result<Numeric, SqlError> {
        if self.is_negative() {
            return Err(error(b"2201F", "cannot take square root of a negative number"));
        }
        if self.is_special() {
            return Ok(self);
        }
        let weight = self.leading_digit().0;
        let root_weight = (weight + 1) * 4 / 2 - 1;
        let scale = (SIGNIFICANT_DIGITS_MIN - root_weight).max(i32::from(self.scale())).max(0).unsigned_abs();
        self.square_root(u8::try_from(scale).expect("at most that of the smallest number"))
    }

    /// `e` to this power.
    ///
    /// # Errors
    /// `22003` where the result has too many digits.
    pub fn exponential(self) -> Result<Numeric, SqlError> {
        if self.is_special() {
            return Ok(if self.is_negative() { Numeric::ZERO } else { self });
        }
        let scale = self.exponential_scale()?.max(i32::from(self.scale()));
        rounded(&exponential(&self.fixed()), scale)
    }

    /// The scale of e to this power, and that it is not out of range.
    fn exponential_scale(self) -> Result<i32, SqlError> {
        exponential_scale(&self.fixed())
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// `2201E` where there is none.
    pub fn natural_logarithm(self) -> Result<Numeric, SqlError> {
        self.check_logarithm()?;
        if self.is_special() {
            return Ok(self);
        }
        let logarithm = logarithm(&self.fixed());
        let scale = SIGNIFICANT_DIGITS_MIN - self.logarithm_weight(&logarithm);
        rounded(&logarithm, scale.max(i32::from(self.scale())))
    }

    /// The logarithm to a base.
    ///
    /// # Errors
    /// `2201E` where there is none, `22012` for base one.
    pub fn logarithm(self, base: Numeric) -> Result<Numeric, SqlError> {
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
            (false, true) => return Ok(self),
            _ => {}
        }
        let (of_base, of_self) = (logarithm(&base.fixed()), logarithm(&self.fixed()));
        if of_base.is_zero() {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        let weight = self.logarithm_weight(&of_self) - base.logarithm_weight(&of_base);
        let scale = SIGNIFICANT_DIGITS_MIN - weight;
        let scale = scale.max(i32::from(self.scale())).max(i32::from(base.scale()));
        rounded(&rounded_quotient(&(of_self * one()), &of_base), scale)
    }

    fn check_logarithm(self) -> Result<(), SqlError> {
        match self.cmp(&Numeric::ZERO) {
            Ordering::Less => Err(error(b"2201E", "cannot take logarithm of a negative number")),
            Ordering::Equal => Err(error(b"2201E", "cannot take logarithm of zero")),
            Ordering::Greater => Ok(()),
        }
    }

    /// What `estimate_ln_dweight` in `numeric.c` estimates: near one by the distance from it.
    fn logarithm_weight(self, logarithm: &BigInt) -> i32 {
        let distance = self.fixed() - one();
        if distance.is_zero() || distance.abs() > ten_to(FIXED_SCALE - 1) {
            return decimal_weight(logarithm);
        }
        distance.abs().to_string().len() as i32 - 1 - FIXED_SCALE as i32
    }

    /// This number to a power.
    ///
    /// # Errors
    /// `2201F` where there is none, `22003` where the result has too many digits.
    pub fn power(self, exponent: Numeric) -> Result<Numeric, SqlError> {
        if self.is_zero() && exponent.is_negative() {
            return Err(error(b"2201F", "zero raised to a negative power is undefined"));
        }
        let special = self.is_special() || exponent.is_special();
        let complex = self.is_negative() && !exponent.is_nan() && !exponent.is_integral();
        if special && !complex {
            let odd =
                !exponent.is_special() && exponent.checked_rem(Numeric::from(2))?.abs() == Numeric::from(1);
            return Ok(self.special_power(exponent, odd));
        }
        if exponent.is_integral()
            && let Ok(exponent) = exponent.to_i32()
        {
            return self.whole_power(exponent);
        }
        if self.is_zero() {
            return Ok(Numeric::new(0, SIGNIFICANT_DIGITS_MIN as u8));
        }
        if complex {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(error(b"2201F", message));
        }
        let odd = exponent.is_integral() && exponent.trunc(0)?.mantissa() % 2 != 0;
        let logarithm = product(&logarithm(&self.abs().fixed()), &exponent.fixed());
        let scale = exponential_scale(&logarithm)?;
        let scale = scale.max(i32::from(self.scale())).max(i32::from(exponent.scale()));
        let power = rounded(&exponential(&logarithm), scale)?;
        Ok(if odd && self.is_negative() { power.negated() } else { power })
    }

    fn whole_power(self, exponent: i32) -> Result<Numeric, SqlError> {
        let scale = SIGNIFICANT_DIGITS_MIN.max(i32::from(self.scale()));
        if self.is_zero() {
            return rounded(&if exponent == 0 { one() } else { BigInt::zero() }, scale);
        }
        // Far above what a numeric value can hold.
        let end = ten_to(FIXED_SCALE + 80);
        let mut square = match exponent < 0 {
            true => rounded_quotient(&(one() * one()), &self.fixed()),
            false => self.fixed(),
        };
        let mut power = one();
        let mut bits = exponent.unsigned_abs();
        while bits > 0 && !power.is_zero() {
            if bits & 1 == 1 {
                power = product(&power, &square);
            }
            bits >>= 1;
            if power.abs() > end || (bits > 0 && square.abs() > end) {
                return Err(error(b"22003", "value overflows numeric format"));
            }
            square = product(&square, &square);
        }
        rounded(&power, scale)
    }

    /// The whole part of the quotient, towards zero.
    ///
    /// # Errors
    /// `22012` where `divisor` is zero, `22003` where the quotient has too many digits.
    pub fn whole_quotient(self, divisor: Numeric) -> Result<Numeric, SqlError> {
        if self.is_nan() {
            return Ok(self);
        }
        if divisor.is_zero() {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        if self.is_special() || divisor.is_special() {
            return Ok(self.special_quotient(divisor));
        }
        Numeric::from_big(&(self.fixed() / divisor.fixed()), 0)
    }

    /// The product of all whole numbers up to `number`.
    ///
    /// # Errors
    /// `22003` of a negative number, or where the result has too many digits.
    pub fn factorial(number: i64) -> Result<Numeric, SqlError> {
        if number < 0 {
            return Err(error(b"22003", "factorial of a negative number is undefined"));
        }
        (2..=number).try_fold(Numeric::from(1), |product, factor| product.checked_mul(Numeric::from(factor)))
    }

    /// The greatest number that divides both without a rest.
    ///
    /// # Errors
    /// `22003` where it has too many digits at the larger scale of both.
    pub fn greatest_divisor(self, other: Numeric) -> Result<Numeric, SqlError> {
        if self.is_special() || other.is_special() {
            return Ok(Numeric::NAN);
        }
        let scale = u32::from(self.scale().max(other.scale()));
        let divisor = fixed_divisor(self.fixed(), other.fixed());
        Numeric::from_big(&(divisor / ten_to(FIXED_SCALE - scale)), scale)
    }

    /// The least number that both divide.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn least_multiple(self, other: Numeric) -> Result<Numeric, SqlError> {
        if self.is_special() || other.is_special() {
            return Ok(Numeric::NAN);
        }
        let scale = u32::from(self.scale().max(other.scale()));
        let divisor = fixed_divisor(self.fixed(), other.fixed());
        if divisor.is_zero() {
            return Numeric::checked_new(0, scale);
        }
        let multiple = (self.fixed() / divisor * other.fixed()).abs();
        Numeric::from_big(&(multiple / ten_to(FIXED_SCALE - scale)), scale)
    }

    /// The smallest scale that loses no digit.
    pub fn minimal_scale(self) -> u8 {
        let (mut mantissa, mut scale) = (self.mantissa(), self.scale());
        if mantissa == 0 || self.is_special() {
            return 0;
        }
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        scale
    }

    /// The number of the equal bucket between two bounds that it falls into: 0 below the first, `count + 1` above the last.
    ///
    /// # Errors
    /// `2201G` of no buckets or equal bounds, `22003` of too many buckets.
    pub fn bucket(self, low: Numeric, high: Numeric, count: i32) -> Result<i32, SqlError> {
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
        if self.is_special() {
            return match (low.cmp(&high), self.is_negative()) {
                (Ordering::Equal, _) => Err(error(b"2201G", "lower bound cannot equal upper bound")),
                (Ordering::Less, true) | (Ordering::Greater, false) => Ok(0),
                _ => beyond(),
            };
        }
        let (value, low, high) = (self.fixed(), low.fixed(), high.fixed());
        let (from_low, width) = match low.cmp(&high) {
            Ordering::Equal => return Err(error(b"2201G", "lower bound cannot equal upper bound")),
            Ordering::Less => (&value - &low, &high - &low),
            Ordering::Greater => (&low - &value, &low - &high),
        };
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

/// The scale of `e^x` for a fixed number, and that it is not out of range.
fn exponential_scale(x: &BigInt) -> Result<i32, SqlError> {
    let weight: BigInt = x * LOG10_E / ten_to(FIXED_SCALE + 15);
    let overflow = || error(b"22003", "value overflows numeric format");
    let weight = weight.to_i32().ok_or_else(overflow)?;
    if !(-EXPONENT_MAX..EXPONENT_MAX / 3).contains(&weight) {
        return Err(overflow());
    }
    Ok((SIGNIFICANT_DIGITS_MIN - weight).max(0))
}

fn fixed_divisor(a: BigInt, b: BigInt) -> BigInt {
    let (mut a, mut b) = (a.abs(), b.abs());
    while !b.is_zero() {
        (a, b) = (b.clone(), a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Numeric {
        Numeric::parse(text).expect("a numeric value")
    }

    /// PostgreSQL's answers.
    #[test]
    fn roots_powers_and_logarithms_are_postgres() {
        let shown = |value: Result<Numeric, SqlError>| {
            value.map_or_else(|error| error.message, |value| value.to_string())
        };
        for (value, root) in [
            ("2", "1.414213562373095"),
            ("0", "0.000000000000000"),
            ("1.000000000000003", "1.000000000000001"),
        ] {
            assert_eq!(shown(numeric(value).sqrt()), root, "{value}");
        }
        assert_eq!(shown(numeric("1").exponential()), "2.7182818284590452");
        assert_eq!(shown(numeric("-5.5").exponential()), "0.004086771438464067");
        assert_eq!(shown(numeric("10").natural_logarithm()), "2.3025850929940457");
        assert_eq!(shown(numeric("1.1").natural_logarithm()), "0.09531017980432486");
        assert_eq!(shown(numeric("100").logarithm(numeric("10"))), "2.0000000000000000");
        assert_eq!(shown(numeric("2").power(numeric("0.5"))), "1.4142135623730950");
        assert_eq!(shown(numeric("2").power(numeric("-3"))), "0.1250000000000000");
        assert_eq!(shown(numeric("-2").power(numeric("3"))), "-8.0000000000000000");
        assert_eq!(shown(numeric("1e37").exponential()), "value overflows numeric format");
    }
}
