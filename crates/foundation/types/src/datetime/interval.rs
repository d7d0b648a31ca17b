use super::MICROSECONDS_PER_DAY;
use borsh::{BorshDeserialize, BorshSerialize};

/// A span of time. A month has no fixed number of days, nor a day of hours, so the three are kept apart.
///
/// `==` is identity; SQL compares [`Interval::normalised`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct Interval {
    /// Months, 12 of which are a year.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub microseconds: i64,
}

impl Interval {
    /// Microseconds with months of 30 days and days of 24 hours, by which intervals compare.
    pub fn normalised(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(MICROSECONDS_PER_DAY) + i128::from(self.microseconds)
    }

    /// The opposite; `None` where it overflows.
    pub fn checked_neg(self) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            microseconds: self.microseconds.checked_neg()?,
        })
    }

    /// The sum, part by part; `None` where it overflows.
    pub fn checked_add(self, other: Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            microseconds: self.microseconds.checked_add(other.microseconds)?,
        })
    }

    /// The difference, part by part; `None` where it overflows.
    pub fn checked_sub(self, other: Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_sub(other.months)?,
            days: self.days.checked_sub(other.days)?,
            microseconds: self.microseconds.checked_sub(other.microseconds)?,
        })
    }
}
