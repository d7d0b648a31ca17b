//! `extract` and `date_trunc`.

use super::calendar::{days_from_date, first_monday};
use super::{
    CalendarTime, Interval, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_SECOND, TimeTz,
    UNIX_EPOCH, UNIX_EPOCH_DAYS, is_finite_date, is_finite_timestamp, iso_week, julian_day, weekday,
};
use crate::session_format::{session_local_of, session_zone};
use crate::time_zone::TimeZone;
use crate::{Numeric, SqlError, SqlState, Value};

/// A field of a date, time or interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Epoch,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    /// Seconds of the zone's displacement to the east.
    Zone,
    /// Its whole hours.
    ZoneHour,
    /// The minutes beside those.
    ZoneMinute,
}

impl Field {
    /// By one of its names, in lower case.
    fn named(name: &str) -> Option<Field> {
        Some(match name {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds"
            | "microsecon" => Field::Microseconds,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds"
            | "millisecon" => Field::Milliseconds,
            "s" | "sec" | "secs" | "second" | "seconds" => Field::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Field::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Field::Hour,
            "d" | "day" | "days" => Field::Day,
            "w" | "week" | "weeks" => Field::Week,
            "mon" | "mons" | "month" | "months" => Field::Month,
            "qtr" | "quarter" => Field::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Field::Year,
            "dec" | "decs" | "decade" | "decades" => Field::Decade,
            "c" | "cent" | "century" | "centuries" => Field::Century,
            "mil" | "mils" | "millennium" | "millennia" => Field::Millennium,
            "epoch" => Field::Epoch,
            "dow" => Field::DayOfWeek,
            "isodow" => Field::IsoDayOfWeek,
            "doy" => Field::DayOfYear,
            "isoyear" => Field::IsoYear,
            "j" | "jd" | "julian" => Field::Julian,
            "timezone" => Field::Zone,
            "timezone_hour" | "timezone_h" => Field::ZoneHour,
            "timezone_minute" | "timezone_m" => Field::ZoneMinute,
            _ => return None,
        })
    }
}

fn field(name: &str, value: &Value) -> Result<Field, SqlError> {
    Field::named(&name.to_ascii_lowercase()).ok_or_else(|| {
        let message =
            format!("unit \"{}\" not recognized for type {}", name.to_ascii_lowercase(), value.data_type());
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

#[cold]
fn unsupported(name: &str, value: &Value) -> SqlError {
    let message =
        format!("unit \"{}\" not supported for type {}", name.to_ascii_lowercase(), value.data_type());
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// A field of a date, timestamp, time, time with time zone or interval, with PostgreSQL's number of decimals; `None` of what comes again and
/// again where the value is infinite.
///
/// # Errors
/// `22023` where there is no such field, `0A000` where it is none of this type.
pub fn extract(name: &str, value: &Value) -> Result<Option<Numeric>, SqlError> {
    let field = field(name, value)?;
    let late = match value {
        Value::Date(date) if !is_finite_date(*date) => Some(*date > 0),
        Value::Timestamp(at) | Value::TimestampTz(at) if !is_finite_timestamp(*at) => Some(*at > 0),
        _ => None,
    };
    if let Some(late) = late {
        return of_infinity(field, late, value).ok_or_else(|| unsupported(name, value));
    }
    let found = match value {
        Value::Date(date) => match field {
            Field::Epoch => Some(Ok(Numeric::from(
                (i64::from(*date) - UNIX_EPOCH_DAYS) * (MICROSECONDS_PER_DAY / 1_000_000),
            ))),
            Field::Julian => Some(Ok(Numeric::from(julian_day(i64::from(*date))))),
            _ => of_calendar(
                field,
                CalendarTime::of_timestamp(i64::from(*date).saturating_mul(MICROSECONDS_PER_DAY)),
                i64::from(*date),
            )
            .map(Ok),
        },
        Value::Timestamp(at) => of_timestamp(field, *at),
        Value::TimestampTz(at) => of_instant(field, *at),
        Value::Time(time) => match field {
            Field::Epoch => Some(Ok(Numeric::new(i128::from(*time), 6))),
            _ => of_clock(field, *time),
        },
        Value::TimeTz(time) => of_time_tz(field, *time),
        Value::Interval(interval) => of_interval(field, *interval),
        _ => None,
    };
    found.unwrap_or_else(|| Err(unsupported(name, value))).map(Some)
}

/// What grows all the time is infinite; `None` where the type has no such field.
fn of_infinity(field: Field, late: bool, value: &Value) -> Option<Option<Numeric>> {
    let of_zone = matches!(field, Field::Zone | Field::ZoneHour | Field::ZoneMinute);
    let of_time = of_zone || of_clock(field, 0).is_some();
    if of_time && matches!(value, Value::Date(_)) {
        return None;
    }
    let grows = matches!(
        field,
        Field::Year
            | Field::Decade
            | Field::Century
            | Field::Millennium
            | Field::Julian
            | Field::IsoYear
            | Field::Epoch
    );
    Some(grows.then_some(if late { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY }))
}

/// Of an instant: what clocks of the session's zone show.
fn of_instant(field: Field, at: i64) -> Option<Result<Numeric, SqlError>> {
    let zone = session_zone();
    let displacement = zone.displacement_at(at);
    match field {
        Field::Epoch => of_timestamp(field, at),
        Field::Zone | Field::ZoneHour | Field::ZoneMinute => of_displacement(field, displacement).map(Ok),
        _ => session_local_of(at).map_or_else(|error| Some(Err(error)), |local| of_timestamp(field, local)),
    }
}

fn of_displacement(field: Field, east: i64) -> Option<Numeric> {
    Some(Numeric::from(match field {
        Field::Zone => east,
        Field::ZoneHour => east / 3_600,
        Field::ZoneMinute => east / 60 % 60,
        _ => return None,
    }))
}

fn of_time_tz(field: Field, time: TimeTz) -> Option<Result<Numeric, SqlError>> {
    match field {
        Field::Epoch => Some(Ok(Numeric::new(i128::from(time.utc()), 6))),
        _ => of_clock(field, time.microseconds)
            .or_else(|| of_displacement(field, -i64::from(time.west)).map(Ok)),
    }
}

fn of_timestamp(field: Field, at: i64) -> Option<Result<Numeric, SqlError>> {
    let calendar = CalendarTime::of_timestamp(at);
    match field {
        Field::Epoch => Some(Ok(Numeric::new(i128::from(at) - i128::from(UNIX_EPOCH), 6))),
        Field::Julian => {
            let day = Numeric::from(julian_day(calendar.days()));
            let part = Numeric::from(calendar.time).checked_div(&Numeric::from(MICROSECONDS_PER_DAY));
            Some(part.and_then(|part| day.checked_add(&part)))
        }
        _ => of_clock(field, calendar.time).or_else(|| of_calendar(field, calendar, calendar.days()).map(Ok)),
    }
}

fn of_clock(field: Field, time: i64) -> Option<Result<Numeric, SqlError>> {
    let seconds = i128::from(time % (60 * MICROSECONDS_PER_SECOND));
    Some(match field {
        Field::Microseconds => Ok(Numeric::new(seconds, 0)),
        Field::Milliseconds => Ok(Numeric::new(seconds, 3)),
        Field::Second => Ok(Numeric::new(seconds, 6)),
        Field::Minute => Ok(Numeric::from(time / (60 * MICROSECONDS_PER_SECOND) % 60)),
        Field::Hour => Ok(Numeric::from(time / MICROSECONDS_PER_HOUR)),
        _ => return None,
    })
}

fn of_calendar(field: Field, at: CalendarTime, days: i64) -> Option<Numeric> {
    let year = at.year;
    // Before year 1 comes 1 BC, which is counted as −1.
    let number = match field {
        Field::Day => at.day,
        Field::Week => iso_week(days).1,
        Field::Month => at.month,
        Field::Quarter => (at.month - 1) / 3 + 1,
        Field::Year => {
            if year > 0 {
                year
            } else {
                year - 1
            }
        }
        Field::Decade => year.div_euclid(10),
        Field::Century => periods(year, 100),
        Field::Millennium => periods(year, 1_000),
        Field::IsoYear => match iso_week(days).0 {
            year if year > 0 => year,
            year => year - 1,
        },
        Field::DayOfWeek => weekday(days),
        Field::IsoDayOfWeek => (weekday(days) + 6) % 7 + 1,
        Field::DayOfYear => at.day_of_year(),
        _ => return None,
    };
    Some(Numeric::from(number))
}

/// The century or millennium of a year: the first begins with the year 1, and before it comes the first BC, −1.
fn periods(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
}

fn of_interval(field: Field, interval: Interval) -> Option<Result<Numeric, SqlError>> {
    let (months, microseconds) = (i64::from(interval.months), interval.microseconds);
    let number = match field {
        Field::Microseconds | Field::Milliseconds | Field::Second | Field::Minute | Field::Hour => {
            return of_clock(field, microseconds);
        }
        Field::Day => i64::from(interval.days),
        Field::Month => months % 12,
        Field::Quarter => months % 12 / 3 + 1,
        Field::Year => months / 12,
        Field::Decade => months / 120,
        Field::Century => months / 1_200,
        Field::Millennium => months / 12_000,
        Field::Epoch => {
            // A year has 365.25 days, a month that is none of a year 30.
            let quarter_days = 1_461 * (months / 12) + 120 * (months % 12) + 4 * i64::from(interval.days);
            let seconds = i128::from(quarter_days) * 21_600;
            return Some(Ok(Numeric::new(seconds * 1_000_000 + i128::from(microseconds), 6)));
        }
        _ => return None,
    };
    Some(Ok(Numeric::from(number)))
}

/// A timestamp, or an interval, with what is smaller than the field set to its beginning.
///
/// # Errors
/// `22023` where there is no such field, `0A000` where it cannot be truncated to.
pub fn truncate(name: &str, value: &Value) -> Result<Value, SqlError> {
    match value {
        Value::Timestamp(at) | Value::TimestampTz(at) if !is_finite_timestamp(*at) => {
            return Ok(value.clone());
        }
        _ => {}
    }
    let field = field(name, value)?;
    match value {
        Value::Timestamp(at) => match begin(field, *at) {
            Some(begin) => begin.map(Value::Timestamp),
            None => Err(unsupported(name, value)),
        },
        Value::TimestampTz(at) => {
            let begin = match session_zone() {
                TimeZone::Fixed(0) => begin(field, *at).unwrap_or_else(|| Err(unsupported(name, value))),
                zone => truncate_instant(name, *at, zone),
            };
            begin.map(Value::TimestampTz)
        }
        Value::Interval(interval) => match (field, whole(field, *interval)) {
            (_, Some(interval)) => Ok(Value::Interval(interval)),
            (Field::Week, None) => {
                Err(unsupported(name, value).detail("Months usually have fractional weeks."))
            }
            _ => Err(unsupported(name, value)),
        },
        _ => Err(unsupported(name, value)),
    }
}

/// An instant with what is smaller than the field set to its beginning, as clocks of a zone show it.
///
/// # Errors
/// As [`truncate`]; `22008` where the beginning is out of range.
pub fn truncate_instant(name: &str, at: i64, zone: TimeZone) -> Result<i64, SqlError> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    let value = Value::TimestampTz(at);
    let field = field(name, &value)?;
    let begin = |local| begin(field, local).unwrap_or_else(|| Err(unsupported(name, &value)));
    zone.truncated(at, clock_unit(field).is_some(), begin)
}

fn clock_unit(field: Field) -> Option<i64> {
    Some(match field {
        Field::Microseconds => 1,
        Field::Milliseconds => 1_000,
        Field::Second => MICROSECONDS_PER_SECOND,
        Field::Minute => 60 * MICROSECONDS_PER_SECOND,
        Field::Hour => MICROSECONDS_PER_HOUR,
        _ => return None,
    })
}

fn begin(field: Field, at: i64) -> Option<Result<i64, SqlError>> {
    if let Some(unit) = clock_unit(field) {
        return Some(Ok(at.div_euclid(unit) * unit));
    }
    let CalendarTime { year, month, .. } = CalendarTime::of_timestamp(at);
    let days = at.div_euclid(MICROSECONDS_PER_DAY);
    let days = match field {
        Field::Day => days,
        Field::Week => {
            let (year, week) = iso_week(days);
            first_monday(year) + (week - 1) * 7
        }
        Field::Month => days_from_date(year, month, 1),
        Field::Quarter => days_from_date(year, (month - 1) / 3 * 3 + 1, 1),
        Field::Year => days_from_date(year, 1, 1),
        Field::Decade => days_from_date(year.div_euclid(10) * 10, 1, 1),
        Field::Century => days_from_date(first_year(year, 100), 1, 1),
        Field::Millennium => days_from_date(first_year(year, 1_000), 1, 1),
        _ => return None,
    };
    Some(super::check_timestamp(days.checked_mul(MICROSECONDS_PER_DAY)))
}

/// The first year of a year's century or millennium.
fn first_year(year: i64, length: i64) -> i64 {
    (year - 1).div_euclid(length) * length + 1
}

fn whole(field: Field, interval: Interval) -> Option<Interval> {
    if let Some(unit) = clock_unit(field) {
        return Some(Interval { microseconds: interval.microseconds / unit * unit, ..interval });
    }
    let months = match field {
        Field::Day => return Some(Interval { microseconds: 0, ..interval }),
        Field::Month => 1,
        Field::Quarter => 3,
        Field::Year => 12,
        Field::Decade => 120,
        Field::Century => 1_200,
        Field::Millennium => 12_000,
        _ => return None,
    };
    Some(Interval { months: interval.months / months * months, ..Interval::default() })
}
