//! What `+ - * /` mean for dates, times and intervals, and what is computed from two of them.

use super::calendar::{check_date, days_in_month, time_of_timestamp};
use super::{
    CalendarTime, Interval, MICROSECONDS_PER_DAY, check_timestamp, is_finite_date, is_finite_timestamp,
    timestamp_of_date,
};
use crate::session_format::session_zone;
use crate::time_zone::TimeZone;
use crate::{SqlError, SqlState, Value};

const DAYS_PER_MONTH: i64 = 30;

#[cold]
pub(super) fn interval_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// The timestamp so much later: first the months, within the end of the month, then days, then microseconds.
fn later(timestamp: i64, interval: Interval) -> Result<i64, SqlError> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let mut timestamp = timestamp;
    if interval.months != 0 {
        let mut at = CalendarTime::of_timestamp(timestamp);
        let months = at.year * 12 + at.month - 1 + i64::from(interval.months);
        (at.year, at.month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        at.day = at.day.min(days_in_month(at.year, at.month));
        timestamp = at.timestamp()?;
    }
    if interval.days != 0 {
        let days = i64::from(interval.days) * MICROSECONDS_PER_DAY;
        timestamp = check_timestamp(timestamp.checked_add(days))?;
    }
    check_timestamp(timestamp.checked_add(interval.microseconds))
}

/// The instant so much later as clocks of the session's zone show it: a month or a day later they show the same time, and an hour
/// later is an hour later.
fn instant_later(instant: i64, interval: Interval) -> Result<i64, SqlError> {
    let zone = session_zone();
    if zone == TimeZone::UTC || !is_finite_timestamp(instant) {
        return later(instant, interval);
    }
    let Interval { months, days, microseconds } = interval;
    let mut instant = instant;
    for part in [Interval { months, ..Interval::default() }, Interval { days, ..Interval::default() }] {
        if part != Interval::default() {
            instant = zone.instant_of(later(zone.local_of(instant)?, part)?)?;
        }
    }
    check_timestamp(instant.checked_add(microseconds))
}

fn days_later(date: i32, days: i64) -> Result<i32, SqlError> {
    if is_finite_date(date) { check_date(Some(i64::from(date) + days)) } else { Ok(date) }
}

#[cold]
fn no_difference(of: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("cannot subtract infinite {of}"))
}

fn opposite(interval: Interval) -> Result<Interval, SqlError> {
    interval.checked_neg().ok_or_else(interval_out_of_range)
}

/// The time of day so much later, around midnight.
fn time_later(time: i64, microseconds: i64) -> i64 {
    // A remainder first: the sum of two that are less than a day cannot overflow.
    time_of_timestamp(time + microseconds % MICROSECONDS_PER_DAY)
}

/// `left + right`; `None` where it is no sum of these types.
pub(crate) fn plus(left: &Value, right: &Value) -> Option<Result<Value, SqlError>> {
    Some(match (left, right) {
        (Value::Date(date), Value::Integer(days)) | (Value::Integer(days), Value::Date(date)) => {
            days_later(*date, i64::from(*days)).map(Value::Date)
        }
        (Value::Date(date), Value::Time(time)) | (Value::Time(time), Value::Date(date)) => {
            timestamp_of_date(*date)
                .and_then(|midnight| later(midnight, Interval { microseconds: *time, ..Interval::default() }))
                .map(Value::Timestamp)
        }
        (Value::Date(date), Value::Interval(interval)) | (Value::Interval(interval), Value::Date(date)) => {
            timestamp_of_date(*date).and_then(|midnight| later(midnight, *interval)).map(Value::Timestamp)
        }
        (Value::Timestamp(timestamp), Value::Interval(interval))
        | (Value::Interval(interval), Value::Timestamp(timestamp)) => {
            later(*timestamp, *interval).map(Value::Timestamp)
        }
        (Value::TimestampTz(timestamp), Value::Interval(interval))
        | (Value::Interval(interval), Value::TimestampTz(timestamp)) => {
            instant_later(*timestamp, *interval).map(Value::TimestampTz)
        }
        (Value::Time(time), Value::Interval(interval)) | (Value::Interval(interval), Value::Time(time)) => {
            Ok(Value::Time(time_later(*time, interval.microseconds)))
        }
        (Value::Interval(a), Value::Interval(b)) => {
            a.checked_add(*b).map(Value::Interval).ok_or_else(interval_out_of_range)
        }
        _ => return None,
    })
}

/// `left - right`; `None` where it is no difference of these types.
pub(crate) fn minus(left: &Value, right: &Value) -> Option<Result<Value, SqlError>> {
    Some(match (left, right) {
        (Value::Date(date), Value::Integer(days)) => days_later(*date, -i64::from(*days)).map(Value::Date),
        (Value::Date(a), Value::Date(b)) if !is_finite_date(*a) || !is_finite_date(*b) => {
            Err(no_difference("dates"))
        }
        // All dates are less than 2^31 apart.
        (Value::Date(a), Value::Date(b)) => Ok(Value::Integer(a.wrapping_sub(*b))),
        (Value::Date(date), Value::Interval(interval)) => timestamp_of_date(*date)
            .and_then(|midnight| later(midnight, opposite(*interval)?))
            .map(Value::Timestamp),
        (Value::Timestamp(timestamp), Value::Interval(interval)) => {
            opposite(*interval).and_then(|interval| later(*timestamp, interval)).map(Value::Timestamp)
        }
        (Value::TimestampTz(timestamp), Value::Interval(interval)) => opposite(*interval)
            .and_then(|interval| instant_later(*timestamp, interval))
            .map(Value::TimestampTz),
        (Value::Timestamp(a), Value::Timestamp(b)) | (Value::TimestampTz(a), Value::TimestampTz(b)) => {
            if !is_finite_timestamp(*a) || !is_finite_timestamp(*b) {
                return Some(Err(no_difference("timestamps")));
            }
            match a.checked_sub(*b) {
                Some(microseconds) => {
                    justify_hours(Interval { microseconds, ..Interval::default() }).map(Value::Interval)
                }
                None => Err(interval_out_of_range()),
            }
        }
        (Value::Time(a), Value::Time(b)) => {
            Ok(Value::Interval(Interval { microseconds: a - b, ..Interval::default() }))
        }
        (Value::Time(time), Value::Interval(interval)) => {
            Ok(Value::Time(time_later(*time, -(interval.microseconds % MICROSECONDS_PER_DAY))))
        }
        (Value::Interval(a), Value::Interval(b)) => {
            a.checked_sub(*b).map(Value::Interval).ok_or_else(interval_out_of_range)
        }
        _ => return None,
    })
}

/// `interval * factor`; what months and days have behind the point goes to the smaller units.
pub(crate) fn multiply_interval(interval: Interval, factor: f64) -> Result<Interval, SqlError> {
    scaled(interval, |part| part * factor)
}

/// `interval / divisor`.
pub(crate) fn divide_interval(interval: Interval, divisor: f64) -> Result<Interval, SqlError> {
    if divisor == 0.0 {
        return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    scaled(interval, |part| part / divisor)
}

/// As PostgreSQL's `interval_mul` and `interval_div`, in the same order of operations on doubles.
fn scaled(interval: Interval, scale: impl Fn(f64) -> f64) -> Result<Interval, SqlError> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let round = |seconds: f64| (seconds * 1e6).round_ties_even() / 1e6;
    let whole = |part: f64| {
        let fits = part > f64::from(i32::MIN) - 1.0 && part < f64::from(i32::MAX) + 1.0;
        if fits { Ok(part as i32) } else { Err(interval_out_of_range()) }
    };
    let (months, days) = (scale(f64::from(interval.months)), scale(f64::from(interval.days)));
    let (whole_months, whole_days) = (whole(months)?, whole(days)?);
    let month_days = round((months - f64::from(whole_months)) * DAYS_PER_MONTH as f64);
    let mut seconds =
        round((days - f64::from(whole_days) + month_days - month_days.trunc()) * SECONDS_PER_DAY);
    let mut more_days = month_days as i32;
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY) as i32;
        more_days += carried;
        seconds -= f64::from(carried) * SECONDS_PER_DAY;
    }
    let microseconds = (scale(interval.microseconds as f64) + seconds * 1e6).round_ties_even();
    // The end is 2^63, which is exact as a double. NaN is in no range.
    let end = 9_223_372_036_854_775_808.0;
    if !(-end..end).contains(&microseconds) {
        return Err(interval_out_of_range());
    }
    let days = whole_days.checked_add(more_days).ok_or_else(interval_out_of_range)?;
    Ok(Interval { months: whole_months, days, microseconds: microseconds as i64 })
}

/// 24 hours become a day each.
///
/// # Errors
/// `22008` where there are too many days.
pub fn justify_hours(interval: Interval) -> Result<Interval, SqlError> {
    let (carried, mut microseconds) =
        (interval.microseconds / MICROSECONDS_PER_DAY, interval.microseconds % MICROSECONDS_PER_DAY);
    let mut days = i64::from(interval.days) + carried;
    if days > 0 && microseconds < 0 {
        (days, microseconds) = (days - 1, microseconds + MICROSECONDS_PER_DAY);
    } else if days < 0 && microseconds > 0 {
        (days, microseconds) = (days + 1, microseconds - MICROSECONDS_PER_DAY);
    }
    let days = i32::try_from(days).map_err(|_| interval_out_of_range())?;
    Ok(Interval { months: interval.months, days, microseconds })
}

/// 30 days become a month each.
///
/// # Errors
/// `22008` where there are too many months.
pub fn justify_days(interval: Interval) -> Result<Interval, SqlError> {
    let (months, days) = carry_days(i64::from(interval.months), i64::from(interval.days));
    let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
    Ok(Interval { months, days: days as i32, ..interval })
}

fn carry_days(months: i64, days: i64) -> (i64, i64) {
    let (mut months, mut days) = (months + days / DAYS_PER_MONTH, days % DAYS_PER_MONTH);
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + DAYS_PER_MONTH);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - DAYS_PER_MONTH);
    }
    (months, days)
}

/// Both, with one sign for all parts.
///
/// # Errors
/// `22008` where there are too many months.
pub fn justify_interval(interval: Interval) -> Result<Interval, SqlError> {
    let mut days = i64::from(interval.days) + interval.microseconds / MICROSECONDS_PER_DAY;
    let mut microseconds = interval.microseconds % MICROSECONDS_PER_DAY;
    let mut months = i64::from(interval.months) + days / DAYS_PER_MONTH;
    days %= DAYS_PER_MONTH;
    if months > 0 && (days < 0 || (days == 0 && microseconds < 0)) {
        (months, days) = (months - 1, days + DAYS_PER_MONTH);
    } else if months < 0 && (days > 0 || (days == 0 && microseconds > 0)) {
        (months, days) = (months + 1, days - DAYS_PER_MONTH);
    }
    if days > 0 && microseconds < 0 {
        (days, microseconds) = (days - 1, microseconds + MICROSECONDS_PER_DAY);
    } else if days < 0 && microseconds > 0 {
        (days, microseconds) = (days + 1, microseconds - MICROSECONDS_PER_DAY);
    }
    let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
    Ok(Interval { months, days: days as i32, microseconds })
}

/// From the second timestamp to the first in years, months, days and the time, by the calendar.
///
/// # Errors
/// `22008` where the result is out of range.
pub fn age(timestamp: i64, since: i64) -> Result<Interval, SqlError> {
    if !is_finite_timestamp(timestamp) || !is_finite_timestamp(since) {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
    }
    let (negative, late, early) =
        if timestamp < since { (true, since, timestamp) } else { (false, timestamp, since) };
    let (late, early) = (CalendarTime::of_timestamp(late), CalendarTime::of_timestamp(early));
    // The days that are borrowed are those of the second timestamp's month, or of the first's where it comes first.
    let (year, month) = (early.year, early.month);
    let mut microseconds = late.time - early.time;
    let mut days = late.day - early.day;
    let mut months = (late.year - early.year) * 12 + late.month - early.month;
    if microseconds < 0 {
        (days, microseconds) = (days - 1, microseconds + MICROSECONDS_PER_DAY);
    }
    while days < 0 {
        (months, days) = (months - 1, days + days_in_month(year, month));
    }
    let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
    let interval = Interval { months, days: days as i32, microseconds };
    if negative { opposite(interval) } else { Ok(interval) }
}
