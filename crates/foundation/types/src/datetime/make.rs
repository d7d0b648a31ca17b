//! Dates, times and intervals from their parts.

use super::arithmetic::interval_out_of_range;
use super::calendar::{check_date, days_from_date, days_in_month};
use super::{
    Interval, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_SECOND, SECONDS_PER_DAY,
    TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, UNIX_EPOCH_DAYS, check_timestamp,
};
use crate::{SqlError, SqlState};

#[cold]
fn out_of_range(message: String) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

fn days_of(year: i32, month: i32, day: i32) -> Result<i64, SqlError> {
    let wrong = || out_of_range(format!("date field value out of range: {year}-{month:02}-{day:02}"));
    if year == 0 {
        return Err(wrong());
    }
    let (written, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if written < 0 { written + 1 } else { written };
    let exists = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    if !exists || !(-4_713..5_874_898).contains(&year) {
        return Err(wrong());
    }
    Ok(days_from_date(year, month, day))
}

/// A date; negative years are BC.
///
/// # Errors
/// `22008` where there is no such date.
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32, SqlError> {
    let out = |_| out_of_range(format!("date out of range: {year}-{month:02}-{day:02}"));
    check_date(Some(days_of(year, month, day)?)).map_err(out)
}

/// A time of day.
///
/// # Errors
/// `22008` where there is no such time.
pub fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64, SqlError> {
    let seconds = (second * 1e6).round_ties_even();
    let exists = (0..=24).contains(&hour) && (0..=59).contains(&minute) && (0.0..=60e6).contains(&seconds);
    let time = (i64::from(hour) * 60 + i64::from(minute)) * 60 * MICROSECONDS_PER_SECOND;
    match exists.then(|| time + seconds as i64).filter(|time| *time <= MICROSECONDS_PER_DAY) {
        Some(time) => Ok(time),
        None => {
            let second = crate::text::format_double(second);
            let second = if second.split('.').next().is_some_and(|whole| whole.len() < 2) {
                format!("0{second}")
            } else {
                second
            };
            Err(out_of_range(format!("time field value out of range: {hour}:{minute:02}:{second}")))
        }
    }
}

/// A timestamp; negative years are BC.
///
/// # Errors
/// `22008` where there is no such timestamp.
pub fn make_timestamp(
    year: i32,
    month: i32,
    day: i32,
    hour: i32,
    minute: i32,
    second: f64,
) -> Result<i64, SqlError> {
    let days = days_of(year, month, day)?;
    let time = make_time(hour, minute, second)?;
    check_timestamp(days.checked_mul(MICROSECONDS_PER_DAY).and_then(|midnight| midnight.checked_add(time)))
}

/// An interval from years, months, weeks, days, hours, minutes and seconds.
///
/// # Errors
/// `22008` where it is out of range.
pub fn make_interval(whole: [i32; 6], seconds: f64) -> Result<Interval, SqlError> {
    let [years, months, weeks, days, hours, minutes] = whole.map(i64::from);
    let narrow = |number: i64| i32::try_from(number).map_err(|_| interval_out_of_range());
    let seconds = (seconds * 1e6).round_ties_even();
    if !(-9.2e18..9.2e18).contains(&seconds) {
        return Err(interval_out_of_range());
    }
    // At most 2^31 hours of 3.6 × 10^9 microseconds.
    let time = hours * MICROSECONDS_PER_HOUR + minutes * 60 * MICROSECONDS_PER_SECOND;
    Ok(Interval {
        months: narrow(years * 12 + months)?,
        days: narrow(weeks * 7 + days)?,
        microseconds: time.checked_add(seconds as i64).ok_or_else(interval_out_of_range)?,
    })
}

/// The timestamp of so many seconds since 1970-01-01 00:00 UTC.
///
/// # Errors
/// `22008` where it is out of range.
pub fn timestamp_of_epoch(seconds: f64) -> Result<i64, SqlError> {
    let since = seconds + (UNIX_EPOCH_DAYS * SECONDS_PER_DAY) as f64;
    let microseconds = (since * 1e6).round_ties_even();
    let fits = (-9.2e18..9.23e18).contains(&microseconds);
    if seconds.is_nan() {
        return Err(out_of_range("timestamp cannot be NaN".to_string()));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { TIMESTAMP_INFINITY } else { TIMESTAMP_NEGATIVE_INFINITY });
    }
    check_timestamp(fits.then_some(microseconds as i64)).map_err(|_| {
        out_of_range(format!("timestamp out of range: \"{}\"", crate::text::format_double(seconds)))
    })
}
