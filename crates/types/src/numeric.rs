use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;

/// An exact decimal number of at most 38 digits: `mantissa × 10^−scale`. The scale is what PostgreSQL calls the display
/// scale: `1.0` and `1.00` are equal and print differently.
#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
pub struct Numeric {
    low: u64,
    high: i64,
    scale: u8,
}

impl Numeric {
    /// `mantissa × 10^−scale`.
    pub fn new(mantissa: i128, scale: u8) -> Numeric {
        Numeric { low: mantissa as u64, high: (mantissa >> 64) as i64, scale }
    }

    /// The digits as an integer.
    pub fn mantissa(&self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Same digits and same scale; `==` ignores the scale.
    pub fn is_identical(&self, other: &Numeric) -> bool {
        self.mantissa() == other.mantissa() && self.scale == other.scale
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
        let power = |n: u8| 10i128.checked_pow(u32::from(n));
        let (a, b) = (self.mantissa(), other.mantissa());
        match self.scale.cmp(&other.scale) {
            Ordering::Equal => a.cmp(&b),
            Ordering::Less => match power(other.scale - self.scale).and_then(|p| a.checked_mul(p)) {
                Some(a) => a.cmp(&b),
                None => a.cmp(&0),
            },
            Ordering::Greater => match power(self.scale - other.scale).and_then(|p| b.checked_mul(p)) {
                Some(b) => a.cmp(&b),
                None => 0.cmp(&b),
            },
        }
    }
}
