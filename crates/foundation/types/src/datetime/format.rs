//! Output with `DateStyle` ISO.

use super::calendar::date_from_days;
use super::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, TIMESTAMP_INFINITY,
    TIMESTAMP_NEGATIVE_INFINITY,
};

/// `2026-11-20`, with ` BC` behind it before the year 1.
pub(crate) fn format_date(date: i32) -> String {
    match date {
        DATE_NEGATIVE_INFINITY => return "-infinity".to_string(),
        DATE_INFINITY => return "infinity".to_string(),
        _ => {}
    }
    let (date, era) = date_and_era(i64::from(date));
    date + era
}

fn date_and_era(days: i64) -> (String, &'static str) {
    let (year, month, day) = date_from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (format!("{year:04}-{month:02}-{day:02}"), era)
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

/// `2026-11-20 23:01:02.123456` and the zone.
pub(crate) fn format_timestamp(timestamp: i64, zone: &str) -> String {
    match timestamp {
        TIMESTAMP_NEGATIVE_INFINITY => return "-infinity".to_string(),
        TIMESTAMP_INFINITY => return "infinity".to_string(),
        _ => {}
    }
    let (days, time) =
        (timestamp.div_euclid(MICROSECONDS_PER_DAY), timestamp.rem_euclid(MICROSECONDS_PER_DAY));
    let (date, era) = date_and_era(days);
    format!("{date} {}{zone}{era}", format_time(time))
}
