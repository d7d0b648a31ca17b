//! Sums of many [`Numeric`]s, which may be out of range on the way and in range at the end.

use super::Numeric;
use super::decimal::{Decimal, divide};
use crate::SqlError;
use num_bigint::BigInt;
use num_traits::{Signed, Zero};

/// A sum.
#[derive(Clone, Debug)]
pub struct NumericSum {
    sum: Numeric,
    /// The sum once it has been out of range.
    beyond: Option<Decimal>,
}

impl NumericSum {
    /// Of one number.
    pub fn new(first: Numeric) -> NumericSum {
        NumericSum { sum: first, beyond: None }
    }

    /// Adds a number.
    pub fn add(&mut self, number: &Numeric) {
        if let Some(beyond) = &self.beyond
            && !number.is_special()
        {
            self.beyond = Some(beyond.plus(&number.decimal()));
            return;
        }
        // What is not finite decides alone from now on.
        self.beyond = None;
        match self.sum.checked_add(number) {
            Ok(sum) => self.sum = sum,
            Err(_) => self.beyond = Some(self.sum.decimal().plus(&number.decimal())),
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn sum(&self) -> Result<Numeric, SqlError> {
        match &self.beyond {
            Some(beyond) => Numeric::of_decimal(beyond.clone()),
            None => Ok(self.sum.clone()),
        }
    }
}

/// What variances and standard deviations are computed from: the sum of the numbers and that of their squares, exactly.
#[derive(Clone, Debug)]
pub struct NumericDeviations {
    count: i64,
    sum: Decimal,
    squares: Decimal,
    special: bool,
}

impl Default for NumericDeviations {
    fn default() -> NumericDeviations {
        let zero = Decimal::new(BigInt::ZERO, 0);
        NumericDeviations { count: 0, sum: zero.clone(), squares: zero, special: false }
    }
}

impl NumericDeviations {
    /// Adds a number.
    pub fn add(&mut self, number: &Numeric) {
        self.count += 1;
        if number.is_special() {
            self.special = true;
            return;
        }
        let number = number.decimal();
        self.sum = self.sum.plus(&number);
        self.squares = self.squares.plus(&number.times(&number));
    }

    /// The variance of the numbers as a sample or as all there are, or its root; `None` of too few.
    ///
    /// # Errors
    /// `22003` where it has too many digits.
    pub fn result(&self, sample: bool, root: bool) -> Result<Option<Numeric>, SqlError> {
        let divisor = if sample { self.count - 1 } else { self.count };
        if divisor < 1 {
            return Ok(None);
        }
        if self.special {
            return Ok(Some(Numeric::NAN));
        }
        let count = Decimal::new(BigInt::from(self.count), 0);
        let numerator = self.squares.times(&count).minus(&self.sum.times(&self.sum));
        if numerator.mantissa.is_zero() {
            return Ok(Some(Numeric::ZERO));
        }
        let variance = numerator.divided_by(&count.times(&Decimal::new(BigInt::from(divisor), 0)));
        let variance = if root { variance.square_root(variance.scale) } else { variance };
        Numeric::of_decimal(variance).map(Some)
    }
}

impl Decimal {
    /// The square root of what is not negative, rounded half away from zero at this scale.
    pub(super) fn square_root(&self, scale: u32) -> Decimal {
        /// Digits behind those that are kept, which say how to round: the root of a decimal number is no tie unless
        /// it ends there.
        const GUARD_DIGITS: u32 = 2;
        // The root of mantissa × 10^(2 × digits − scale) as an integer has this many digits behind the point.
        let digits = i64::from(scale + GUARD_DIGITS);
        let radicand = self.rescale(2 * digits, super::decimal::Rounding::Truncate).mantissa;
        let unit = super::decimal::ten_to(GUARD_DIGITS);
        let root = divide(&radicand.abs().sqrt(), &unit, super::decimal::Rounding::Half);
        Decimal::new(root, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Numeric {
        Numeric::parse(text).expect("a numeric value")
    }

    #[test]
    fn a_sum_may_be_out_of_range_on_the_way() {
        let mut sum = NumericSum::new(numeric("9e131071"));
        sum.add(&numeric("9e131071"));
        assert!(sum.sum().is_err());
        sum.add(&numeric("-9e131071"));
        assert_eq!(sum.sum(), Ok(numeric("9e131071")));
        sum.add(&numeric("9e131071"));
        sum.add(&Numeric::INFINITY);
        assert_eq!(sum.sum(), Ok(Numeric::INFINITY));
        sum.add(&Numeric::NEGATIVE_INFINITY);
        assert_eq!(sum.sum(), Ok(Numeric::NAN));
    }

    #[test]
    fn deviations_of_the_largest_numbers_are_exact() {
        let mut deviations = NumericDeviations::default();
        assert_eq!(deviations.result(true, false), Ok(None));
        for number in 1..=5 {
            deviations.add(&numeric("9e131071").checked_add(&Numeric::from(number)).expect("in range"));
        }
        assert_eq!(deviations.result(true, false), Ok(Some(numeric("2.5"))));
        deviations.add(&Numeric::NAN);
        assert_eq!(deviations.result(false, true), Ok(Some(Numeric::NAN)));
    }
}
