//! `extract` and `date_trunc`, in UTC.

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveDateTime, Timelike, Utc};
use types::{Numeric, SqlError, SqlState};

/// 2000-01-01 in microseconds since 1970-01-01.
const EPOCH: i64 = 946_684_800_000_000;

fn calendar(instant: i64) -> Result<NaiveDateTime, SqlError> {
    let microseconds = instant.checked_add(EPOCH).ok_or_else(out_of_range)?;
    DateTime::<Utc>::from_timestamp_micros(microseconds).map(|time| time.naive_utc()).ok_or_else(out_of_range)
}

#[cold]
fn out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

#[cold]
fn unknown_field(field: &str) -> SqlError {
    let message = format!("unit \"{field}\" not recognized for type timestamp with time zone");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The field of an instant, with PostgreSQL's number of decimals.
///
/// # Errors
/// `22023` where there is no such field.
pub(super) fn extract(field: &str, instant: i64) -> Result<Numeric, SqlError> {
    let time = calendar(instant)?;
    let whole = |number: i64| Ok(Numeric::from(number));
    let microseconds = i64::from(time.second()) * 1_000_000 + i64::from(time.nanosecond() / 1000);
    // Before year 1 comes 1 BC, which PostgreSQL counts as −1.
    let year = i64::from(if time.year() > 0 { time.year() } else { time.year() - 1 });
    match field.to_ascii_lowercase().as_str() {
        "epoch" => Numeric::checked_new(i128::from(instant) + i128::from(EPOCH), 6),
        "year" | "years" => whole(year),
        "quarter" => whole(i64::from((time.month() - 1) / 3 + 1)),
        "month" | "months" => whole(time.month().into()),
        "day" | "days" => whole(time.day().into()),
        "hour" | "hours" => whole(time.hour().into()),
        "minute" | "minutes" => whole(time.minute().into()),
        "second" | "seconds" => Numeric::checked_new(microseconds.into(), 6),
        "millisecond" | "milliseconds" => Numeric::checked_new(microseconds.into(), 3),
        "microsecond" | "microseconds" => whole(microseconds),
        "dow" => whole(time.weekday().num_days_from_sunday().into()),
        "isodow" => whole(time.weekday().number_from_monday().into()),
        "doy" => whole(time.ordinal().into()),
        "week" => whole(time.iso_week().week().into()),
        "isoyear" => whole(time.iso_week().year().into()),
        "timezone" | "timezone_hour" | "timezone_minute" => whole(0),
        _ => Err(unknown_field(field)),
    }
}

/// The instant at which the field of an instant began.
///
/// # Errors
/// `22023` where there is no such field.
pub(super) fn truncate(field: &str, instant: i64) -> Result<i64, SqlError> {
    const SECOND: i64 = 1_000_000;
    let floor = |unit: i64| Ok(instant.div_euclid(unit) * unit);
    let time = calendar(instant)?;
    let first_of = |year: i32, month: u32| NaiveDate::from_ymd_opt(year, month, 1);
    let date = match field.to_ascii_lowercase().as_str() {
        "microseconds" | "microsecond" => return Ok(instant),
        "milliseconds" | "millisecond" => return floor(1000),
        "second" | "seconds" => return floor(SECOND),
        "minute" | "minutes" => return floor(60 * SECOND),
        "hour" | "hours" => return floor(3600 * SECOND),
        "day" | "days" => return floor(86_400 * SECOND),
        "week" | "weeks" => {
            let back = u64::from(time.weekday().num_days_from_monday());
            time.date().checked_sub_days(chrono::Days::new(back))
        }
        "month" | "months" => first_of(time.year(), time.month()),
        "quarter" => first_of(time.year(), time.month())
            .and_then(|date| date.checked_sub_months(Months::new((time.month() - 1) % 3))),
        "year" | "years" => first_of(time.year(), 1),
        "decade" | "century" | "millennium" => {
            return Err(SqlError::unsupported(format_args!("date_trunc with \"{field}\"")));
        }
        _ => return Err(unknown_field(field)),
    };
    let start = date.and_then(|date| date.and_hms_opt(0, 0, 0)).ok_or_else(out_of_range)?;
    start.and_utc().timestamp_micros().checked_sub(EPOCH).ok_or_else(out_of_range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{DataType, Value, format_value, parse_value};

    fn instant(text: &str) -> i64 {
        match parse_value(text, DataType::TimestampTz) {
            Ok(Value::TimestampTz(instant)) => instant,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn fields_and_their_beginnings_are_postgresqls() {
        let at = instant("2024-02-29 13:14:15.678901+00");
        let field = |name: &str| extract(name, at).expect("a field").to_string();
        assert_eq!(field("epoch"), "1709212455.678901");
        assert_eq!(field("second"), "15.678901");
        assert_eq!((field("doy"), field("dow"), field("quarter")), ("60".into(), "4".into(), "1".into()));
        let begin = |name: &str| {
            format_value(&Value::TimestampTz(truncate(name, at).expect("a field"))).expect("not NULL")
        };
        assert_eq!(begin("month"), "2024-02-01 00:00:00+00");
        assert_eq!(begin("week"), "2024-02-26 00:00:00+00");
        assert_eq!(begin("quarter"), "2024-01-01 00:00:00+00");
        assert_eq!(begin("hour"), "2024-02-29 13:00:00+00");
        assert!(extract("fortnight", at).is_err() && truncate("fortnight", at).is_err());
    }
}
