//! Dates, times and intervals: the proleptic Gregorian calendar as PostgreSQL reckons with it, instants in the zone of
//! the session.
//!
//! A date is a number of days since 2000-01-01, a timestamp a number of microseconds since that midnight, a time one
//! since any midnight, an interval months, days and microseconds. The largest and the smallest integers are the
//! infinities of dates and timestamps; intervals have none.

mod arithmetic;
mod calendar;
mod decode;
mod decode_date;
mod decode_fields;
mod decode_number;
mod decode_time_tz;
mod fields;
mod format;
mod format_interval;
mod interval;
mod make;
mod parse;
mod parse_interval;
mod rounded;
mod time_tz;

pub use arithmetic::{age, justify_days, justify_hours, justify_interval};
pub use calendar::{
    CalendarTime, check_timestamp, date_of_timestamp, iso_week, julian_day, time_of_timestamp,
    timestamp_of_date, weekday,
};
pub use fields::{extract, truncate, truncate_instant};
pub use interval::Interval;
pub use make::{make_date, make_interval, make_time, make_timestamp, timestamp_of_epoch};

pub(crate) use arithmetic::{divide_interval, minus, multiply_interval, plus};
pub(crate) use decode_time_tz::parse_time_tz;
pub(crate) use format::{format_date, format_instant, format_time, format_timestamp};
pub use format_interval::format_interval;
pub(crate) use parse::{parse_date, parse_time, parse_timestamp};
pub(crate) use parse_interval::parse_interval;
pub(crate) use rounded::read_digits;
pub use rounded::{TimeType, round_time};
pub use time_tz::TimeTz;
pub(crate) use time_tz::format_time_tz;

/// The date after all dates.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The date before all dates.
pub const DATE_NEGATIVE_INFINITY: i32 = i32::MIN;
/// The timestamp after all timestamps.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// The timestamp before all timestamps.
pub const TIMESTAMP_NEGATIVE_INFINITY: i64 = i64::MIN;

/// False for the infinities among dates.
pub fn is_finite_date(date: i32) -> bool {
    !matches!(date, DATE_INFINITY | DATE_NEGATIVE_INFINITY)
}

/// False for the infinities among timestamps.
pub fn is_finite_timestamp(timestamp: i64) -> bool {
    !matches!(timestamp, TIMESTAMP_INFINITY | TIMESTAMP_NEGATIVE_INFINITY)
}

/// Microseconds of a second.
pub const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
/// Seconds of a day.
const SECONDS_PER_DAY: i64 = 86_400;
/// Microseconds of an hour.
const MICROSECONDS_PER_HOUR: i64 = 3_600 * MICROSECONDS_PER_SECOND;
/// Microseconds of a day.
pub const MICROSECONDS_PER_DAY: i64 = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND;
/// 1970-01-01 in days since 2000-01-01.
const UNIX_EPOCH_DAYS: i64 = -10_957;
/// 1970-01-01 00:00 in microseconds since 2000-01-01 00:00.
const UNIX_EPOCH: i64 = UNIX_EPOCH_DAYS * MICROSECONDS_PER_DAY;
/// 2000-01-01 as a Julian day.
const EPOCH_JULIAN: i64 = 2_451_545;
/// 4714-11-24 00:00 BC, PostgreSQL's first instant.
const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// 294277-01-01 00:00, the first instant after PostgreSQL's last.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// 4714-11-24 BC, PostgreSQL's first date.
const DATE_MIN: i64 = -EPOCH_JULIAN;
/// 5874898-01-01, the first date after PostgreSQL's last.
const DATE_END: i64 = 2_147_483_494 - EPOCH_JULIAN;
