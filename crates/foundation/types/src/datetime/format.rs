//! Output of dates and timestamps in the form of the session.

use super::calendar::{date_from_days, weekday};
use super::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, TIMESTAMP_INFINITY,
    TIMESTAMP_NEGATIVE_INFINITY, is_finite_timestamp,
};
use crate::session_format::{DateForm, DateOrder, DateStyle, SessionFormat, session_format};
use crate::time_zone::{TimeZone, shown_displacement};

/// As the session's `DateStyle` says: `2026-11-20`, with ` BC` behind it before the year 1.
pub(crate) fn format_date(date: i32) -> String {
    match date {
        DATE_NEGATIVE_INFINITY => return "-infinity".to_string(),
        DATE_INFINITY => return "infinity".to_string(),
        _ => {}
    }
    let style = session_format().dates;
    let (year, month, day, era) = parts(i64::from(date));
    let date = match style.form {
        // A date alone has no day of the week.
        DateForm::Postgres if style.order == DateOrder::DayMonthYear => {
            format!("{day:02}-{month:02}-{year:04}")
        }
        DateForm::Postgres => format!("{month:02}-{day:02}-{year:04}"),
        _ => date_of(style, (year, month, day)),
    };
    date + era
}

/// Year, month, day and what stands behind them.
fn parts(days: i64) -> (i64, i64, i64, &'static str) {
    let (year, month, day) = date_from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (year, month, day, era)
}

/// A date in the forms that have one in front of the time.
fn date_of(style: DateStyle, (year, month, day): (i64, i64, i64)) -> String {
    match style.form {
        DateForm::German => format!("{day:02}.{month:02}.{year:04}"),
        DateForm::Sql if style.order == DateOrder::DayMonthYear => format!("{day:02}/{month:02}/{year:04}"),
        DateForm::Sql => format!("{month:02}/{day:02}/{year:04}"),
        DateForm::Iso | DateForm::Postgres => format!("{year:04}-{month:02}-{day:02}"),
    }
}

/// `23:01:02.123456`, without zeros at the end of the fraction.
pub(crate) fn format_time(time: i64) -> String {
    let (seconds, fraction) = (time / MICROSECONDS_PER_SECOND, time % MICROSECONDS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}{}", fraction_text(fraction))
}

/// `.5` for 500,000 microseconds, nothing for 0.
pub(super) fn fraction_text(microseconds: i64) -> String {
    if microseconds == 0 {
        return String::new();
    }
    format!(".{microseconds:06}").trim_end_matches('0').to_string()
}

/// As clocks of the session's zone show an instant: `2026-11-20 23:01:02.123456+01`.
pub(crate) fn format_instant(instant: i64) -> String {
    let SessionFormat { zone, dates, .. } = session_format();
    if !is_finite_timestamp(instant) || (zone == TimeZone::UTC && dates.form == DateForm::Iso) {
        return format_timestamp(instant, "+00");
    }
    let displacement = zone.displacement_at(instant);
    // The last timestamp is days away from the largest integer.
    let local = instant.saturating_add(displacement * MICROSECONDS_PER_SECOND);
    match dates.form {
        DateForm::Iso => format_timestamp(local, &shown_displacement(displacement)),
        _ => format_timestamp(local, &format!(" {}", zone.abbreviation_at(instant))),
    }
}

/// `2026-11-20 23:01:02.123456` and the zone, as the session's `DateStyle` says.
pub(crate) fn format_timestamp(timestamp: i64, zone: &str) -> String {
    match timestamp {
        TIMESTAMP_NEGATIVE_INFINITY => return "-infinity".to_string(),
        TIMESTAMP_INFINITY => return "infinity".to_string(),
        _ => {}
    }
    let (days, time) =
        (timestamp.div_euclid(MICROSECONDS_PER_DAY), timestamp.rem_euclid(MICROSECONDS_PER_DAY));
    let ((year, month, day, era), time) = (parts(days), format_time(time));
    let style = session_format().dates;
    if style.form != DateForm::Postgres {
        return format!("{} {time}{zone}{era}", date_of(style, (year, month, day)));
    }
    let weekday = WEEKDAYS[weekday(days) as usize];
    let month = MONTHS[month as usize - 1];
    match style.order {
        DateOrder::DayMonthYear => format!("{weekday} {day:02} {month} {time} {year:04}{zone}{era}"),
        _ => format!("{weekday} {month} {day:02} {time} {year:04}{zone}{era}"),
    }
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use crate::session_format::{SessionFormat, within_format};
    use crate::time_zone::TimeZone;
    use crate::{DataType, Value, cast, format_value, parse_value};

    fn of_zone(zone: TimeZone) -> SessionFormat {
        SessionFormat { zone, ..SessionFormat::default() }
    }

    fn read(text: &str) -> Value {
        parse_value(text, DataType::TimestampTz).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn instants_are_read_and_written_in_the_zone_of_the_session() {
        // PostgreSQL's answers.
        for (zone, text, shown, in_utc) in [
            ("Europe/Berlin", "2026-07-01 00:30", "2026-07-01 00:30:00+02", "2026-06-30 22:30:00+00"),
            ("Europe/Berlin", "1892-06-01 00:00", "1892-06-01 00:00:00+00:53:28", "1892-05-31 23:06:32+00"),
            ("Asia/Kathmandu", "2026-07-01 00:30", "2026-07-01 00:30:00+05:45", "2026-06-30 18:45:00+00"),
            ("-3.5", "2026-07-01 00:30", "2026-07-01 00:30:00-03:30", "2026-07-01 04:00:00+00"),
            (
                "Europe/Berlin",
                "0044-03-15 12:00 BC",
                "0044-03-15 12:00:00+00:53:28 BC",
                "0044-03-15 11:06:32+00 BC",
            ),
            ("Europe/Berlin", "2026-07-01 00:30+00", "2026-07-01 02:30:00+02", "2026-07-01 00:30:00+00"),
            ("Asia/Tokyo", "infinity", "infinity", "infinity"),
        ] {
            let zone = TimeZone::of_setting(zone).expect("a zone");
            let (value, written) = within_format(of_zone(zone), || {
                let value = read(text);
                let written = format_value(&value);
                (value, written)
            });
            assert_eq!(written.as_deref(), Some(shown));
            assert_eq!(format_value(&value).as_deref(), Some(in_utc));
            within_format(of_zone(zone), || assert_eq!(read(shown), value, "{shown}"));
        }
    }

    #[test]
    fn the_ends_of_time_are_written_and_what_is_behind_them_is_an_error() {
        let (first, last) = (
            Value::TimestampTz(super::super::TIMESTAMP_MIN),
            Value::TimestampTz(super::super::TIMESTAMP_END - 1),
        );
        for zone in ["-15", "14", "Europe/Berlin"] {
            within_format(of_zone(TimeZone::of_setting(zone).expect("a zone")), || {
                for value in [&first, &last] {
                    assert!(format_value(value).is_some());
                    for target in [DataType::Date, DataType::Timestamp, DataType::Time, DataType::Text(None)]
                    {
                        // It is a value or an error.
                        let _ = cast(value.clone(), target);
                    }
                }
                assert!(parse_value("294276-12-31 23:59:59", DataType::TimestampTz).is_ok() || zone == "-15");
                assert!(parse_value("4714-11-24 00:00 BC", DataType::TimestampTz).is_ok() || zone != "-15");
            });
        }
    }
}
