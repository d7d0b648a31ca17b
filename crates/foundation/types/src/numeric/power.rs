//! Powers of [`Numeric`], with the scale that PostgreSQL's `numeric.c` chooses for each.

use super::decimal::{CHOSEN_SCALE_MAX, Decimal, Rounding, SIGNIFICANT_DIGITS_MIN, ten_to};
use super::series::{bits_of, exponential, logarithm, rounded_quotient};
use super::{Numeric, overflow};
use crate::{SqlError, SqlState, limits};
use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, ToPrimitive, Zero};

/// From this exponent on `e^x` is out of range, and `e^−x` is zero.
const EXPONENT_END: i64 = 6_000;

/// `log10(e)`, as `numeric.c` has it, times 10^15.
const LOG10_E: i64 = 434_294_481_903_252;

/// The fixed-point number of a decimal one.
fn fixed(number: &Decimal, bits: u32) -> BigInt {
    (&number.mantissa << bits) / ten_to(number.scale)
}

/// `log10(e^x)` of a fixed-point number, towards zero.
fn decimal_weight(x: &BigInt, bits: u32) -> i64 {
    let weight: BigInt = x * LOG10_E / (ten_to(15) << bits);
    weight.to_i64().expect("a number that was compared with the largest exponent")
}

/// The scale of a result of this weight that has these arguments.
pub(super) fn chosen_scale(weight: i64, arguments: &[&Decimal]) -> u32 {
    let of_arguments = arguments.iter().map(|argument| i64::from(argument.scale)).max().unwrap_or(0);
    (SIGNIFICANT_DIGITS_MIN - weight).max(of_arguments).clamp(0, CHOSEN_SCALE_MAX) as u32
}

/// Whether e to this power is a number: `None` where it is out of range, and false where it is zero.
fn has_exponential(x: &Decimal) -> Option<bool> {
    let end = Decimal::new(BigInt::from(EXPONENT_END), 0);
    let magnitude = Decimal::new(x.mantissa.abs(), x.scale);
    match magnitude.compare(&end).is_lt() {
        true => Some(true),
        false if x.mantissa.is_negative() => Some(false),
        false => None,
    }
}

/// `base^exponent` as `mantissa × 2^shift`, with the first `bits` bits.
fn binary_power(base: &BigUint, exponent: u64, bits: u64) -> (BigUint, i64) {
    let (mut mantissa, mut shift) = (BigUint::from(1u32), 0);
    let cut = |number: BigUint, shift: i64| {
        let excess = number.bits().saturating_sub(bits);
        (number >> excess, shift + excess as i64)
    };
    for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
        (mantissa, shift) = cut(&mantissa * &mantissa, 2 * shift);
        if exponent >> bit & 1 == 1 {
            (mantissa, shift) = cut(mantissa * base, shift);
        }
    }
    (mantissa, shift)
}

impl Numeric {
    /// `e` to this power.
    ///
    /// # Errors
    /// `22003` where the result has too many digits.
    pub fn exponential(&self) -> Result<Numeric, SqlError> {
        if self.is_special() {
            return Ok(if self.is_negative() { Numeric::ZERO } else { self.clone() });
        }
        let x = self.decimal();
        match has_exponential(&x) {
            None => Err(overflow()),
            Some(false) => Numeric::of_decimal(Decimal::new(BigInt::ZERO, CHOSEN_SCALE_MAX as u32)),
            Some(true) => {
                const ROUGH_BITS: u32 = 64;
                let weight = decimal_weight(&fixed(&x, ROUGH_BITS), ROUGH_BITS);
                let scale = chosen_scale(weight, &[&x]);
                let bits = bits_of(i64::from(scale) + weight) + 64;
                Numeric::of_decimal(Decimal::new(exponential(&fixed(&x, bits), bits, scale), scale))
            }
        }
    }

    /// This number to a power.
    ///
    /// # Errors
    /// `2201F` where there is none, `22003` where the result has too many digits.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        let error = |message: &str| Err(SqlError::new(SqlState(*b"2201F"), message));
        if self.is_zero() && exponent.is_negative() {
            return error("zero raised to a negative power is undefined");
        }
        let special = self.is_special() || exponent.is_special();
        let complex = self.is_negative() && !exponent.is_nan() && !exponent.is_integral();
        let odd =
            !exponent.is_special() && exponent.checked_rem(&Numeric::from(2))?.abs() == Numeric::from(1);
        if special && !complex {
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
            return error("a negative number raised to a non-integer power yields a complex result");
        }
        let power = self.abs().any_power(exponent)?;
        Ok(if odd && self.is_negative() { power.negated() } else { power })
    }

    /// Of a positive number: e to the product of its logarithm and the exponent.
    fn any_power(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        const ROUGH_BITS: u32 = 96;
        let (base, exponent) = (self.decimal(), exponent.decimal());
        let weight = self.logarithm_weight();
        let rough_bits = ROUGH_BITS + bits_of(-weight);
        let rough = logarithm(&base, rough_bits);
        let zero = || Numeric::of_decimal(Decimal::new(BigInt::ZERO, CHOSEN_SCALE_MAX as u32));
        // The product is far out of range where the digits alone say so.
        if !rough.is_zero() && exponent.exponent() + weight > 8 {
            let shrinks = rough.is_negative() != exponent.mantissa.is_negative();
            return if shrinks { zero() } else { Err(overflow()) };
        }
        let product = |logarithm: BigInt| logarithm * &exponent.mantissa / ten_to(exponent.scale);
        let rough = product(rough);
        if rough.abs() >= BigInt::from(EXPONENT_END) << rough_bits {
            return if rough.is_negative() { zero() } else { Err(overflow()) };
        }
        let weight = decimal_weight(&rough, rough_bits);
        let scale = chosen_scale(weight, &[&base, &exponent]);
        let bits = bits_of(i64::from(scale) + weight) + 64;
        // What the exponent multiplies has as many more bits.
        let more = bits_of(exponent.exponent() + 1);
        let logarithm = product(logarithm(&base, bits + more)) >> more;
        Numeric::of_decimal(Decimal::new(exponential(&logarithm, bits, scale), scale))
    }

    fn whole_power(&self, exponent: i32) -> Result<Numeric, SqlError> {
        const ROUGH_BITS: u32 = 128;
        let base = self.decimal();
        let scale = SIGNIFICANT_DIGITS_MIN.max(i64::from(base.scale)).min(CHOSEN_SCALE_MAX);
        let at_scale = |whole: i32| {
            Numeric::of_decimal(Decimal::new(BigInt::from(whole), 0).rescale(scale, Rounding::Truncate))
        };
        if exponent == 0 || base.mantissa.is_zero() {
            return at_scale(i32::from(exponent == 0));
        }
        let magnitude = Decimal::new(base.mantissa.abs(), base.scale);
        let weight = decimal_weight(&(logarithm(&magnitude, ROUGH_BITS) * exponent), ROUGH_BITS);
        if weight > i64::from(limits::NUMERIC_WHOLE_DIGITS_MAX) {
            return Err(overflow());
        }
        if weight + 1 < -scale {
            return at_scale(0);
        }
        // Without its zeros, so that powers of ten are short. The scale may be negative then.
        let digits = magnitude.mantissa.to_string();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let mantissa = magnitude.mantissa.magnitude() / ten_to(zeros as u32).magnitude();
        let base_scale = i64::from(base.scale) - zeros as i64;

        // The result × 10^scale is mantissa^exponent × 10^tens. The bits are enough for every result that ends before the
        // digits do, so that halves are known; the others lose less than the last 64 bits.
        let times = i64::from(exponent);
        let tens = scale - base_scale * times;
        let bits = u64::from(bits_of(scale + weight.abs() + 8)) * if times < 0 { 3 } else { 1 } + 128;
        let (power, mut shift) = binary_power(&mantissa, times.unsigned_abs(), bits);
        let (fives, fives_shift) = binary_power(&BigUint::from(5u32), tens.unsigned_abs(), bits);
        let one = BigUint::from(1u32);
        let (mut dividend, mut divisor) = if times < 0 {
            shift = -shift;
            (one, power)
        } else {
            (power, one)
        };
        shift += tens;
        if tens < 0 {
            shift -= fives_shift;
            divisor *= fives;
        } else {
            shift += fives_shift;
            dividend *= fives;
        }
        if shift < 0 {
            divisor <<= shift.unsigned_abs()
        } else {
            dividend <<= shift.unsigned_abs()
        }
        let result = BigInt::from(rounded_quotient(&dividend, &divisor));
        let negative = self.is_negative() && exponent % 2 != 0;
        Numeric::of_decimal(Decimal::new(if negative { -result } else { result }, scale as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: Result<Numeric, SqlError>) -> String {
        value.map_or_else(|error| error.message, |value| value.to_string())
    }

    fn numeric(text: &str) -> Numeric {
        Numeric::parse(text).expect("a numeric value")
    }

    /// PostgreSQL's answers.
    #[test]
    fn powers_are_postgres() {
        assert_eq!(shown(numeric("1").exponential()), "2.7182818284590452");
        assert_eq!(shown(numeric("-5.5").exponential()), "0.004086771438464067");
        let answer = "413294435277809344957685441227343146614594393746575438.725";
        assert_eq!(shown(numeric("123.456").exponential()), answer);
        assert_eq!(shown(numeric("1e37").exponential()), "value overflows numeric format");
        assert!(numeric("-1e37").exponential().is_ok_and(|zero| zero.is_zero() && zero.scale() == 1000));
        for (base, exponent, answer) in [
            ("2", "0.5", "1.4142135623730950"),
            ("2", "-3", "0.1250000000000000"),
            ("-2", "3", "-8.0000000000000000"),
            ("1.5", "17", "985.2612533569335938"),
            ("0.5", "17", "0.0000076293945313"),
            ("2", "-17", "0.0000076293945313"),
            ("0.12", "-25", "104825960103961013959336.4983657883169110"),
            ("10", "-30", "0.0000000000000000"),
            ("12.3", "45.6", "50081010321492803393171165777624533697036806969694.9"),
            ("0.9999999999", "70000000000000", "0"),
            ("10", "131072", "value overflows numeric format"),
            ("10", "2147483647", "value overflows numeric format"),
            ("1.0000000000000001", "1e131071", "value overflows numeric format"),
        ] {
            let found = numeric(base).power(&numeric(exponent));
            if answer == "0" {
                assert!(found.is_ok_and(|zero| zero.is_zero()));
                continue;
            }
            assert_eq!(shown(found), answer, "{base} {exponent}");
        }
        assert!(numeric("10").power(&numeric("131071")).is_ok_and(|power| power == numeric("1e131071")));
    }
}
