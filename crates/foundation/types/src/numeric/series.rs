//! Logarithms and powers of e as binary fixed-point numbers: integers that stand for so many `2^−bits`. Everything is
//! computed with integers, so that it is the same on every machine.

use super::decimal::{Decimal, ten_to};
use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, Zero};

/// Bits that hold so many decimal digits.
pub(super) fn bits_of(digits: i64) -> u32 {
    (digits.max(0) * 3402 / 1024 + 1) as u32
}

/// `dividend / divisor`, rounded half up.
pub(super) fn rounded_quotient(dividend: &BigUint, divisor: &BigUint) -> BigUint {
    (dividend * 2u32 + divisor) / (divisor * 2u32)
}

/// `atanh(1 / number)`
fn area_tangent(number: u32, bits: u32) -> BigUint {
    let mut power = (BigUint::from(1u32) << bits) / number;
    let mut sum = BigUint::ZERO;
    for count in 0u32.. {
        sum += &power / (2 * count + 1);
        power /= number * number;
        if power.is_zero() {
            break;
        }
    }
    sum
}

/// `ln(2)`, with a few wrong bits at the end.
fn logarithm_of_two(bits: u32) -> BigInt {
    let [first, second, third] = [26, 4801, 8749].map(|number| BigInt::from(area_tangent(number, bits)));
    first * 18 - second * 2 + third * 8
}

/// `ln(x)` of what is positive.
pub(super) fn logarithm(x: &Decimal, bits: u32) -> BigInt {
    // Each root halves the logarithm, and makes the series shorter; more of them would cost more than they save.
    let nearness = (bits.isqrt() / 2).max(3);
    let inner = bits + 64 + nearness;
    let one = BigInt::from(1) << inner;
    // x = reduced × 2^exponent, reduced between 3/4 and 3/2, so that the logarithm of what is near one is near zero.
    let divisor = ten_to(x.scale);
    let mut exponent = x.mantissa.bits() as i64 - divisor.bits() as i64;
    let shift = i64::from(inner) - exponent;
    let mut reduced = match u64::try_from(shift) {
        Ok(shift) => (&x.mantissa << shift) / divisor,
        Err(_) => &x.mantissa / (divisor << shift.unsigned_abs()),
    };
    if &reduced * 2 >= &one * 3 {
        reduced >>= 1;
        exponent += 1;
    } else if &reduced * 4 < &one * 3 {
        reduced <<= 1;
        exponent -= 1;
    }
    let mut roots = 0;
    while (&reduced - &one).bits() > u64::from(inner - nearness) {
        reduced = (reduced << inner).sqrt();
        roots += 1;
    }
    // ln(x) = 2 × (z + z³/3 + z⁵/5 + …), z = (x − 1) / (x + 1)
    let distance = &reduced - &one;
    let z = (distance.magnitude() << inner) / (&reduced + &one).magnitude();
    let square = (&z * &z) >> inner;
    let (mut sum, mut power) = (BigUint::ZERO, z);
    for count in 0u32.. {
        sum += &power / (2 * count + 1);
        power = (power * &square) >> inner;
        if power.is_zero() {
            break;
        }
    }
    let sum = BigInt::from(sum << (roots + 1));
    let sum = if distance.is_negative() { -sum } else { sum };
    let whole = if exponent == 0 { sum } else { sum + logarithm_of_two(inner) * exponent };
    whole >> (inner - bits)
}

/// `e^x` of a fixed-point number as one with so many decimal digits after the point, rounded half up.
pub(super) fn exponential(x: &BigInt, bits: u32, scale: u32) -> BigInt {
    // Each halving makes the series shorter; more of them would cost more than they save.
    let halvings = (bits.isqrt() / 2).max(3);
    let inner = bits + 2 * halvings + 32;
    let of_two = logarithm_of_two(inner);
    let x = x << (inner - bits);
    // x = exponent × ln(2) + rest, the rest between zero and ln(2).
    let mut exponent = &x / &of_two;
    let mut rest = &x - &exponent * &of_two;
    if rest.is_negative() {
        exponent -= 1;
        rest += &of_two;
    }
    let rest = rest.magnitude() >> halvings;
    let one = BigUint::from(1u32) << inner;
    let (mut sum, mut term) = (one.clone(), one);
    for count in 1u32.. {
        term = ((term * &rest) >> inner) / count;
        if term.is_zero() {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> inner;
    }
    let shift = i64::try_from(exponent).expect("a power within a numeric value's range") - i64::from(inner);
    let scaled = sum * ten_to(scale).magnitude();
    BigInt::from(match u64::try_from(shift) {
        Ok(shift) => scaled << shift,
        Err(_) => rounded_quotient(&scaled, &(BigUint::from(1u32) << shift.unsigned_abs())),
    })
}
