//! Output of intervals in the form of the session.

use super::format::fraction_text;
use super::{Interval, MICROSECONDS_PER_SECOND};
use crate::session_format::{IntervalStyle, session_format};

/// As the session's `IntervalStyle` says.
pub fn format_interval(interval: Interval) -> String {
    match session_format().intervals {
        IntervalStyle::Postgres => traditional(interval),
        IntervalStyle::PostgresVerbose => verbose(interval),
        IntervalStyle::SqlStandard => sql_standard(interval),
        IntervalStyle::Iso8601 => designated(interval),
    }
}

/// An interval's parts: years, months, days, hours, minutes, and the microseconds below a minute. All of the time have its sign.
fn parts(interval: Interval) -> [i64; 6] {
    let (months, time) = (i64::from(interval.months), interval.microseconds);
    let minutes = time / (60 * MICROSECONDS_PER_SECOND);
    [
        months / 12,
        months % 12,
        i64::from(interval.days),
        minutes / 60,
        minutes % 60,
        time % (60 * MICROSECONDS_PER_SECOND),
    ]
}

/// `6.789`; `width`: of the whole seconds. Without a sign.
fn seconds_text(microseconds: i64, width: usize) -> String {
    let microseconds = microseconds.abs();
    let (seconds, fraction) =
        (microseconds / MICROSECONDS_PER_SECOND, microseconds % MICROSECONDS_PER_SECOND);
    format!("{seconds:0width$}{}", fraction_text(fraction))
}

/// `@ 1 year 2 mons 3 days 4 hours 5 mins 6.789 secs ago`
fn verbose(interval: Interval) -> String {
    let [years, months, days, hours, minutes, below] = parts(interval);
    let (mut text, mut before) = ("@".to_string(), None);
    let named = [(years, "year"), (months, "mon"), (days, "day"), (hours, "hour"), (minutes, "min")];
    for (number, unit) in named.into_iter().filter(|(number, _)| *number != 0) {
        // The first one says whether all are ago.
        let is_before = *before.get_or_insert(number < 0);
        let number = if is_before { -number } else { number };
        let plural = if number == 1 { "" } else { "s" };
        text.push_str(&format!(" {number} {unit}{plural}"));
    }
    if below != 0 {
        let is_before = *before.get_or_insert(below < 0);
        let sign = if (below < 0) == is_before { "" } else { "-" };
        let plural = if below.abs() == MICROSECONDS_PER_SECOND { "" } else { "s" };
        text.push_str(&format!(" {sign}{} sec{plural}", seconds_text(below, 1)));
    }
    match before {
        None => text + " 0",
        Some(true) => text + " ago",
        Some(false) => text,
    }
}

/// `1-2`, `3 4:05:06.789`; with all parts and their signs where the standard has no such interval.
fn sql_standard(interval: Interval) -> String {
    let mut parts = parts(interval);
    let (negative, positive) = (parts.iter().any(|part| *part < 0), parts.iter().any(|part| *part > 0));
    if !negative && !positive {
        return "0".to_string();
    }
    let (has_months, has_time) = (parts[..2] != [0; 2], parts[2..] != [0; 4]);
    if (negative && positive) || (has_months && has_time) {
        let sign = |parts: &[i64]| if parts.iter().any(|part| *part < 0) { '-' } else { '+' };
        let signs = [sign(&parts[..2]), sign(&parts[2..3]), sign(&parts[3..])];
        let [years, months, days, hours, minutes, below] = parts.map(i64::abs);
        let seconds = seconds_text(below, 2);
        let [of_months, of_days, of_time] = signs;
        return format!(
            "{of_months}{years}-{months} {of_days}{days} {of_time}{hours}:{minutes:02}:{seconds}"
        );
    }
    let sign = if negative { "-" } else { "" };
    parts = parts.map(i64::abs);
    let [years, months, days, hours, minutes, below] = parts;
    let time = format!("{hours}:{minutes:02}:{}", seconds_text(below, 2));
    match (has_months, days) {
        (true, _) => format!("{sign}{years}-{months}"),
        (false, 0) => format!("{sign}{time}"),
        (false, days) => format!("{sign}{days} {time}"),
    }
}

/// `P1Y2M3DT4H5M6.789S`
fn designated(interval: Interval) -> String {
    let [years, months, days, hours, minutes, below] = parts(interval);
    let part = |number: i64, unit: char| if number == 0 { String::new() } else { format!("{number}{unit}") };
    let date = part(years, 'Y') + &part(months, 'M') + &part(days, 'D');
    let sign = if below < 0 { "-" } else { "" };
    let seconds = if below == 0 { String::new() } else { format!("{sign}{}S", seconds_text(below, 1)) };
    let time = part(hours, 'H') + &part(minutes, 'M') + &seconds;
    match (date.as_str(), time.as_str()) {
        ("", "") => "PT0S".to_string(),
        (date, "") => format!("P{date}"),
        (date, time) => format!("P{date}T{time}"),
    }
}

/// `1 year 2 mons -3 days +04:05:06.789`
fn traditional(interval: Interval) -> String {
    let parts = [
        (i64::from(interval.months / 12), "year"),
        (i64::from(interval.months % 12), "mon"),
        (i64::from(interval.days), "day"),
    ];
    let (mut text, mut after_negative) = (String::new(), false);
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number != 0) {
        let space = if text.is_empty() { "" } else { " " };
        let plus = if after_negative && number > 0 { "+" } else { "" };
        let plural = if number == 1 { "" } else { "s" };
        text.push_str(&format!("{space}{plus}{number} {unit}{plural}"));
        after_negative = number < 0;
    }
    let time = interval.microseconds;
    if time != 0 || text.is_empty() {
        let space = if text.is_empty() { "" } else { " " };
        let sign = match time < 0 {
            true => "-",
            false if after_negative => "+",
            false => "",
        };
        let time = time.unsigned_abs();
        let second = MICROSECONDS_PER_SECOND.unsigned_abs();
        let (seconds, fraction) = (time / second, (time % second) as i64);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        text.push_str(&format!("{space}{sign}{hour:02}:{minute:02}:{second:02}{}", fraction_text(fraction)));
    }
    text
}
