//! Days, months and years.

use super::{
    DATE_END, DATE_INFINITY, DATE_MIN, DATE_NEGATIVE_INFINITY, EPOCH_JULIAN, MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND, TIMESTAMP_END, TIMESTAMP_INFINITY, TIMESTAMP_MIN, TIMESTAMP_NEGATIVE_INFINITY,
};
use crate::{SqlError, SqlState};

/// Days from 2000-01-01 to this day of the proleptic Gregorian calendar; year 0 is 1 BC.
///
/// Years begin in March, so that the leap day is the last of a year; 400 years are 146,097 days.
pub(super) fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 2000-01-01 is 306 days after 1999-03-01, which is day 730,119 from 0000-03-01.
    era * 146_097 + day_of_era - 730_425
}

/// The inverse of [`days_from_date`].
pub(super) fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 730_425;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

pub(super) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// An instant by the calendar and the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    /// 0 is 1 BC.
    pub year: i64,
    /// 1 to 12
    pub month: i64,
    /// 1 to 31
    pub day: i64,
    /// Microseconds since midnight.
    pub time: i64,
}

impl CalendarTime {
    /// The instant of a timestamp.
    pub fn of_timestamp(timestamp: i64) -> CalendarTime {
        let (days, time) =
            (timestamp.div_euclid(MICROSECONDS_PER_DAY), timestamp.rem_euclid(MICROSECONDS_PER_DAY));
        let (year, month, day) = date_from_days(days);
        CalendarTime { year, month, day, time }
    }

    /// The timestamp of the instant.
    ///
    /// # Errors
    /// `22008` "timestamp out of range".
    pub fn timestamp(self) -> Result<i64, SqlError> {
        let start = days_from_date(self.year, self.month, self.day).checked_mul(MICROSECONDS_PER_DAY);
        check_timestamp(start.and_then(|start| start.checked_add(self.time)))
    }

    /// Days since 2000-01-01.
    pub fn days(self) -> i64 {
        days_from_date(self.year, self.month, self.day)
    }

    /// 1 to 366
    pub fn day_of_year(self) -> i64 {
        self.days() - days_from_date(self.year, 1, 1) + 1
    }

    /// 0 to 24
    pub fn hour(self) -> i64 {
        self.time / (3_600 * MICROSECONDS_PER_SECOND)
    }

    /// 0 to 59
    pub fn minute(self) -> i64 {
        self.time / (60 * MICROSECONDS_PER_SECOND) % 60
    }

    /// 0 to 59
    pub fn second(self) -> i64 {
        self.time / MICROSECONDS_PER_SECOND % 60
    }

    /// 0 to 999,999
    pub fn microsecond(self) -> i64 {
        self.time % MICROSECONDS_PER_SECOND
    }
}

/// 0 is Sunday.
pub fn weekday(days: i64) -> i64 {
    // 2000-01-01 was a Saturday.
    (days + 6).rem_euclid(7)
}

/// The Julian day of a date.
pub fn julian_day(days: i64) -> i64 {
    days + EPOCH_JULIAN
}

/// Year and week by ISO 8601: week 1 holds the year's first Thursday.
pub fn iso_week(days: i64) -> (i64, i64) {
    let monday = days - (weekday(days) + 6) % 7;
    let (year, _, _) = date_from_days(monday + 3);
    let first = first_monday(year);
    (year, (monday - first) / 7 + 1)
}

/// The Monday with which the ISO year begins, in days since 2000-01-01.
pub(super) fn first_monday(year: i64) -> i64 {
    let fourth = days_from_date(year, 1, 4);
    fourth - (weekday(fourth) + 6) % 7
}

/// The date of a timestamp; of an infinite one the infinity.
///
/// # Errors
/// `22008` where it is no date: never for a timestamp that was read or computed.
pub fn date_of_timestamp(timestamp: i64) -> Result<i32, SqlError> {
    match timestamp {
        TIMESTAMP_INFINITY => return Ok(DATE_INFINITY),
        TIMESTAMP_NEGATIVE_INFINITY => return Ok(DATE_NEGATIVE_INFINITY),
        _ => {}
    }
    check_date(Some(timestamp.div_euclid(MICROSECONDS_PER_DAY)))
}

/// The time of day of a timestamp.
pub fn time_of_timestamp(timestamp: i64) -> i64 {
    timestamp.rem_euclid(MICROSECONDS_PER_DAY)
}

/// Midnight of a date; of an infinite one the infinity.
///
/// # Errors
/// `22008` where it is beyond the last timestamp.
pub fn timestamp_of_date(date: i32) -> Result<i64, SqlError> {
    match date {
        DATE_INFINITY => return Ok(TIMESTAMP_INFINITY),
        DATE_NEGATIVE_INFINITY => return Ok(TIMESTAMP_NEGATIVE_INFINITY),
        _ => {}
    }
    check_timestamp(i64::from(date).checked_mul(MICROSECONDS_PER_DAY))
        .map_err(|_| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp"))
}

/// A computed timestamp; `None` where it overflowed.
///
/// # Errors
/// `22008` where it is out of range.
pub fn check_timestamp(timestamp: Option<i64>) -> Result<i64, SqlError> {
    timestamp
        .filter(|timestamp| (TIMESTAMP_MIN..TIMESTAMP_END).contains(timestamp))
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

/// A computed date; `None` where it overflowed.
pub(super) fn check_date(days: Option<i64>) -> Result<i32, SqlError> {
    days.filter(|days| (DATE_MIN..DATE_END).contains(days))
        .and_then(|days| i32::try_from(days).ok())
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        let week = |year, month, day| iso_week(days_from_date(year, month, day));
        assert_eq!(week(2000, 1, 1), (1999, 52));
        assert_eq!(week(2005, 1, 1), (2004, 53));
        assert_eq!(week(2008, 12, 29), (2009, 1));
        assert_eq!(week(2024, 2, 29), (2024, 9));
        assert_eq!(weekday(days_from_date(2024, 2, 29)), 4, "a Thursday");
    }
}
