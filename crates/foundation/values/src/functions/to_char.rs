//! `to_char` of dates, times and intervals.

use crate::broken;
use crate::functions::template::{Case, DAYS, Field, MONTHS, Piece, parse};
use crate::length::check_length;
use types::datetime::{
    CalendarTime, MICROSECONDS_PER_SECOND, is_finite_timestamp, iso_week, julian_day, weekday,
};
use types::session_format::{session_local_of, session_zone};
use types::time_zone::TimeZone;
use types::{Interval, SqlError, SqlState, Value};

/// What is written: an instant, or an interval by its parts.
struct Shown {
    year: i64,
    month: i64,
    day: i64,
    /// Microseconds of the day; of an interval there may be more than a day has, or less than none.
    time: i64,
    /// Days since 2000-01-01; an interval has none.
    date: Option<i64>,
    /// The instant, and the zone in which it is shown; a timestamp without a zone and an interval have none.
    zoned: Option<(TimeZone, i64)>,
}

/// The value in this form.
///
/// # Errors
/// `22007` for fields that an interval does not have; a text that is too long.
pub(super) fn to_char(value: &Value, template: &str) -> Result<Value, SqlError> {
    let moment = |local: i64, zoned| {
        let CalendarTime { year, month, day, time } = CalendarTime::of_timestamp(local);
        let date = CalendarTime::of_timestamp(local).days();
        Shown { year, month, day, time, date: Some(date), zoned }
    };
    let shown = match value {
        Value::Timestamp(at) | Value::TimestampTz(at) if !is_finite_timestamp(*at) => {
            return Ok(Value::Null);
        }
        Value::Timestamp(at) => moment(*at, None),
        Value::TimestampTz(at) => moment(session_local_of(*at)?, Some((session_zone(), *at))),
        Value::Interval(Interval { months, days, microseconds }) => Shown {
            year: i64::from(months / 12),
            month: i64::from(months % 12),
            day: i64::from(*days),
            time: *microseconds,
            date: None,
            zoned: None,
        },
        _ => return Err(broken("to_char was bound for another type")),
    };
    written(&shown, template)
}

fn written(shown: &Shown, template: &str) -> Result<Value, SqlError> {
    // As PostgreSQL does.
    if template.is_empty() {
        return Ok(Value::Null);
    }
    let mut text = String::new();
    for piece in parse(template)? {
        match piece {
            Piece::Literal(character) | Piece::Quoted(character) => text.push(character),
            Piece::Field { field, case, plain, ordinal } => {
                let start = text.len();
                shown.field(&mut text, field, case, plain)?;
                if let Some(case) = ordinal {
                    text.push_str(&case.of(ordinal_ending(&text[start..])));
                }
            }
        }
        check_length(text.len())?;
    }
    Ok(Value::text(text))
}

/// What follows a number that is counted: `st`, `nd`, `rd` or `th`; nothing behind letters.
fn ordinal_ending(number: &str) -> &'static str {
    let digits: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).collect();
    match digits.as_slice() {
        [] => "",
        [.., b'1', _] => "Th",
        [.., b'1'] => "St",
        [.., b'2'] => "Nd",
        [.., b'3'] => "Rd",
        _ => "Th",
    }
}

impl Shown {
    fn date(&self) -> Result<i64, SqlError> {
        self.date.ok_or_else(|| {
            let message = "invalid format specification for an interval value";
            SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
                .hint("Intervals are not tied to specific calendar dates.")
        })
    }

    fn field(&self, text: &mut String, field: Field, case: Case, plain: bool) -> Result<(), SqlError> {
        let number = |value: i64, width: usize| {
            let width = if plain { 0 } else { width + usize::from(value < 0) };
            format!("{value:0width$}")
        };
        let word = |word: &str, width: usize| {
            let width = if plain { 0 } else { width };
            format!("{:width$}", case.of(word))
        };
        let seconds = self.time / MICROSECONDS_PER_SECOND;
        let hour = seconds / 3_600;
        let fraction = self.time % MICROSECONDS_PER_SECOND;
        let last_digits = |year: i64, digits: u8| match digits {
            4 => number(year, 4),
            digits => number(year % 10_i64.pow(u32::from(digits)), usize::from(digits)),
        };
        let written = match field {
            Field::Hour12 => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            Field::Hour24 => number(hour, 2),
            Field::Minute => number(seconds / 60 % 60, 2),
            Field::Second => number(seconds % 60, 2),
            Field::Millisecond => format!("{:03}", fraction / 1_000),
            Field::Microsecond => format!("{fraction:06}"),
            Field::Fraction(digits) => {
                let width = usize::from(digits);
                format!("{:0width$}", fraction / 10_i64.pow(6 - u32::from(digits)))
            }
            Field::SecondsOfDay => seconds.to_string(),
            Field::HalfDay(points) => {
                let half = if hour.rem_euclid(24) >= 12 { "P" } else { "A" };
                case_of_pair(case, half, "M", points)
            }
            Field::Era(points) => {
                self.date()?;
                let (first, second) = if self.year <= 0 { ("B", "C") } else { ("A", "D") };
                case_of_pair(case, first, second, points)
            }
            Field::Year(digits) => last_digits(self.era_year(), digits),
            Field::YearWithComma => format!("{},{:03}", self.era_year() / 1_000, self.era_year() % 1_000),
            Field::IsoYear(digits) => last_digits(self.iso_year()?, digits),
            Field::MonthName => word(self.month_name()?, 9),
            Field::MonthAbbreviation => case.of(&self.month_name()?[..3]),
            Field::Month => number(self.month, 2),
            Field::MonthRoman => word(self.roman_month()?, 4),
            Field::DayName => word(DAYS[weekday(self.date()?) as usize], 9),
            Field::DayAbbreviation => case.of(&DAYS[weekday(self.date()?) as usize][..3]),
            Field::DayOfYear => number(self.day_of_year()?, 3),
            Field::IsoDayOfYear => {
                let date = self.date()?;
                number((iso_week(date).1 - 1) * 7 + (weekday(date) + 6) % 7 + 1, 3)
            }
            Field::Day => number(self.day, 2),
            Field::DayOfWeek => (weekday(self.date()?) + 1).to_string(),
            Field::IsoDayOfWeek => ((weekday(self.date()?) + 6) % 7 + 1).to_string(),
            Field::WeekOfMonth => ((self.day - 1) / 7 + 1).to_string(),
            Field::Week => number((self.day_of_year()? - 1) / 7 + 1, 2),
            Field::IsoWeek => number(iso_week(self.date()?).1, 2),
            Field::Century => number(self.century(), 2),
            Field::Julian => julian_day(self.date()?).to_string(),
            Field::Quarter => match self.month {
                0 => String::new(),
                month => ((month - 1) / 3 + 1).to_string(),
            },
            Field::Zone | Field::ZoneHour | Field::ZoneOffset | Field::ZoneMinute => {
                self.date()?;
                self.zone_field(field, case)
            }
        };
        text.push_str(&written);
        Ok(())
    }

    /// The name of the zone, or how far it is to the east.
    fn zone_field(&self, field: Field, case: Case) -> String {
        let name = self.zoned.map_or_else(String::new, |(zone, instant)| zone.abbreviation_at(instant));
        let east = self.zoned.map_or(0, |(zone, instant)| zone.displacement_at(instant));
        let sign = if east < 0 { '-' } else { '+' };
        let (hour, minute) = (east.abs() / 3_600, east.abs() / 60 % 60);
        match field {
            Field::ZoneHour => format!("{sign}{hour:02}"),
            Field::ZoneMinute => format!("{minute:02}"),
            Field::ZoneOffset if minute == 0 => format!("{sign}{hour:02}"),
            Field::ZoneOffset => format!("{sign}{hour:02}:{minute:02}"),
            _ if case == Case::Lower => name.to_lowercase(),
            _ => name,
        }
    }

    /// Before the year 1 comes 1 BC.
    fn era_year(&self) -> i64 {
        match self.date {
            Some(_) if self.year <= 0 => 1 - self.year,
            _ => self.year,
        }
    }

    fn iso_year(&self) -> Result<i64, SqlError> {
        let (year, _) = iso_week(self.date()?);
        Ok(if year <= 0 { 1 - year } else { year })
    }

    fn century(&self) -> i64 {
        match self.date {
            None => self.year / 100,
            Some(_) if self.year > 0 => (self.year - 1) / 100 + 1,
            Some(_) => self.year / 100 - 1,
        }
    }

    fn day_of_year(&self) -> Result<i64, SqlError> {
        self.date()?;
        Ok(CalendarTime { year: self.year, month: self.month, day: self.day, time: 0 }.day_of_year())
    }

    fn roman_month(&self) -> Result<&'static str, SqlError> {
        const ROMAN: [&str; 12] = ["I", "Ii", "Iii", "Iv", "V", "Vi", "Vii", "Viii", "Ix", "X", "Xi", "Xii"];
        self.date()?;
        Ok(ROMAN[(self.month - 1) as usize])
    }

    fn month_name(&self) -> Result<&'static str, SqlError> {
        self.date()?;
        Ok(MONTHS[(self.month - 1) as usize])
    }
}

fn case_of_pair(case: Case, first: &str, second: &str, points: bool) -> String {
    let pair = if points { format!("{first}.{second}.") } else { format!("{first}{second}") };
    if case == Case::Lower { pair.to_lowercase() } else { pair }
}
