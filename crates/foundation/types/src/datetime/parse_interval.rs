//! Input of intervals in all of PostgreSQL's forms.

use super::{Interval, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_SECOND};
use crate::session_format::{IntervalStyle, session_format};
use crate::{SqlError, SqlState};

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Microsecond,
    Millisecond,
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
}

impl Unit {
    fn named(name: &str) -> Option<Unit> {
        Some(match name {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds"
            | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds"
            | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "qtr" | "quarter" => Unit::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennium" | "millennia" => Unit::Millennium,
            _ => return None,
        })
    }

    /// A bit per unit: no unit may be given twice.
    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

const TIME_BITS: u32 = (1 << Unit::Hour as u32) | (1 << Unit::Minute as u32) | SECOND_BITS;
const SECOND_BITS: u32 =
    (1 << Unit::Second as u32) | (1 << Unit::Millisecond as u32) | (1 << Unit::Microsecond as u32);

/// Why a text is no interval.
enum Fault {
    Format,
    Overflow,
}

/// Reads an interval: `1 year 2 months 3 days 04:05:06`, `1-2 3 4:05:06`, `P1Y2M3DT4H5M6S`, `@ 1 minute ago`.
///
/// # Errors
/// `22007` where the text is no interval, `22015` where a number in it is too large.
pub(crate) fn parse_interval(text: &str) -> Result<Interval, SqlError> {
    let trimmed = crate::text::trim(text);
    let read = match trimmed.strip_prefix(['P', 'p']) {
        Some(rest) => read_designated(rest),
        None => read_traditional(trimmed),
    };
    read.map_err(|fault| match fault {
        Fault::Format => SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        Fault::Overflow => {
            SqlError::new(SqlState(*b"22015"), format!("interval field value out of range: \"{text}\""))
        }
    })
}

/// A piece of an interval's text.
enum Token<'a> {
    /// With its sign, digits and fraction.
    Number(&'a str),
    /// With its sign: `4:05:06.7`.
    Time(&'a str),
    /// In lower case.
    Word(String),
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    /// PostgreSQL's `MAXDATEFIELDS`.
    const TOKENS_MAX: usize = 25;
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if tokens.len() == TOKENS_MAX {
            return Err(Fault::Format);
        }
        let end = |from: usize, belongs: &dyn Fn(char) -> bool| {
            rest[from..].find(|character| !belongs(character)).map_or(rest.len(), |at| from + at)
        };
        let length = match first {
            '0'..='9' | '+' | '-' | '.' => {
                let signed = matches!(first, '+' | '-');
                // Spaces may stand behind a sign.
                let digits = if signed { end(1, &|character| character.is_ascii_whitespace()) } else { 0 };
                let length = end(digits, &|character| {
                    character.is_ascii_digit() || matches!(character, '.' | ':' | '-' | '/')
                });
                let token = &rest[..length];
                if !token.contains(|character: char| character.is_ascii_digit()) {
                    return Err(Fault::Format);
                }
                tokens.push(if token.contains(':') { Token::Time(token) } else { Token::Number(token) });
                length
            }
            'a'..='z' | 'A'..='Z' => {
                let length = end(0, &|character| character.is_ascii_alphabetic());
                tokens.push(Token::Word(rest[..length].to_ascii_lowercase()));
                length
            }
            // As PostgreSQL does: @ and other punctuation say nothing.
            ' ' | '\t'..='\r' | '!'..='/' | ':'..='@' | '['..='`' | '{'..='~' => 1,
            _ => return Err(Fault::Format),
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// Parts while they are summed up.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    microseconds: i64,
}

impl Sum {
    fn add_microseconds(&mut self, number: i64, fraction: f64, unit: i64) -> Result<(), Fault> {
        let whole = number.checked_mul(unit).ok_or(Fault::Overflow)?;
        self.microseconds = self.microseconds.checked_add(whole).ok_or(Fault::Overflow)?;
        self.add_fraction(fraction, unit)
    }

    /// A fraction of a unit of so many microseconds, rounded to whole ones.
    fn add_fraction(&mut self, fraction: f64, unit: i64) -> Result<(), Fault> {
        let scaled = fraction * unit as f64;
        let mut whole = scaled as i64;
        let rest = scaled - whole as f64;
        if rest > 0.5 {
            whole += 1;
        } else if rest < -0.5 {
            whole -= 1;
        }
        self.microseconds = self.microseconds.checked_add(whole).ok_or(Fault::Overflow)?;
        Ok(())
    }

    fn add_days(&mut self, number: i64, unit: i64) -> Result<(), Fault> {
        let days = number.checked_mul(unit).and_then(|days| days.checked_add(self.days));
        self.days = days.filter(|days| i32::try_from(*days).is_ok()).ok_or(Fault::Overflow)?;
        Ok(())
    }

    /// A fraction of a unit of so many days.
    fn add_day_fraction(&mut self, fraction: f64, unit: f64) -> Result<(), Fault> {
        let scaled = fraction * unit;
        self.add_days(scaled as i64, 1)?;
        self.add_fraction(scaled - (scaled as i64) as f64, MICROSECONDS_PER_DAY)
    }

    fn add_months(&mut self, number: i64, unit: i64) -> Result<(), Fault> {
        let months = number.checked_mul(unit).and_then(|months| months.checked_add(self.months));
        self.months = months.filter(|months| i32::try_from(*months).is_ok()).ok_or(Fault::Overflow)?;
        Ok(())
    }

    /// A number of years, with the fraction of the unit rounded to months.
    fn add_years(&mut self, number: i64, fraction: f64, unit: i64) -> Result<(), Fault> {
        self.add_months(number, unit * 12)?;
        self.add_months((fraction * unit as f64 * 12.0).round_ties_even() as i64, 1)
    }

    fn add(&mut self, number: i64, fraction: f64, unit: Unit) -> Result<(), Fault> {
        match unit {
            Unit::Microsecond => {
                self.add_microseconds(number, 0.0, 1)?;
                self.add_microseconds(fraction.round_ties_even() as i64, 0.0, 1)
            }
            Unit::Millisecond => self.add_microseconds(number, fraction, 1_000),
            Unit::Second => self.add_microseconds(number, fraction, MICROSECONDS_PER_SECOND),
            Unit::Minute => self.add_microseconds(number, fraction, 60 * MICROSECONDS_PER_SECOND),
            Unit::Hour => self.add_microseconds(number, fraction, MICROSECONDS_PER_HOUR),
            Unit::Day => {
                self.add_days(number, 1)?;
                self.add_fraction(fraction, MICROSECONDS_PER_DAY)
            }
            Unit::Week => {
                self.add_days(number, 7)?;
                self.add_day_fraction(fraction, 7.0)
            }
            Unit::Month => {
                self.add_months(number, 1)?;
                self.add_day_fraction(fraction, 30.0)
            }
            Unit::Quarter => Err(Fault::Format),
            Unit::Year => self.add_years(number, fraction, 1),
            Unit::Decade => self.add_years(number, fraction, 10),
            Unit::Century => self.add_years(number, fraction, 100),
            Unit::Millennium => self.add_years(number, fraction, 1_000),
        }
    }

    fn finish(self, before: bool) -> Result<Interval, Fault> {
        let interval = Interval {
            months: i32::try_from(self.months).map_err(|_| Fault::Overflow)?,
            days: i32::try_from(self.days).map_err(|_| Fault::Overflow)?,
            microseconds: self.microseconds,
        };
        if before { interval.checked_neg().ok_or(Fault::Overflow) } else { Ok(interval) }
    }
}

/// From the end to the beginning, because a unit stands behind its number.
fn read_traditional(text: &str) -> Result<Interval, Fault> {
    let (mut sum, mut unit, mut seen, mut before) = (Sum::default(), None, 0, false);
    let mut see = |bits: u32| {
        let again = seen & bits != 0;
        seen |= bits;
        if again { Err(Fault::Format) } else { Ok(()) }
    };
    let tokens = tokens(text)?;
    // In the standard's form a sign in front counts for all, where there are no others.
    let is_signed = |token: &Token<'_>, signs: &[char]| match token {
        Token::Number(text) | Token::Time(text) => text.starts_with(signs),
        Token::Word(_) => false,
    };
    let all_negative = session_format().intervals == IntervalStyle::SqlStandard
        && tokens.first().is_some_and(|first| is_signed(first, &['-']))
        && !tokens[1..].iter().any(|token| is_signed(token, &['-', '+']));
    for token in tokens.iter().rev() {
        match token {
            Token::Word(word) if word == "ago" => before = true,
            Token::Word(word) => unit = Some(Unit::named(word).ok_or(Fault::Format)?),
            Token::Time(time) => {
                let time = read_time(time)?;
                sum.add_microseconds(if all_negative { -time.abs() } else { time }, 0.0, 1)?;
                see(TIME_BITS)?;
                unit = Some(Unit::Day);
            }
            Token::Number(number) => {
                let (negative, digits) = signed(number);
                let negative = negative || all_negative;
                if let Some((years, months)) = digits.split_once('-') {
                    let (years, months) = (whole_number(years)?, whole_number(months)?);
                    if !(0..12).contains(&months) {
                        return Err(Fault::Overflow);
                    }
                    let number = years.checked_mul(12).and_then(|years| years.checked_add(months));
                    let number = number.ok_or(Fault::Overflow)?;
                    sum.add_months(if negative { -number } else { number }, 1)?;
                    see(Unit::Month.bit())?;
                    unit = Some(Unit::Month);
                    continue;
                }
                let (number, fraction) = with_fraction(negative, digits)?;
                let counted = unit.unwrap_or(Unit::Second);
                sum.add(number, fraction, counted)?;
                // A fraction of a second is also given in milliseconds.
                see(match counted {
                    Unit::Second if fraction != 0.0 => SECOND_BITS,
                    _ => counted.bit(),
                })?;
            }
        }
    }
    // Words alone are no interval.
    if seen == 0 {
        return Err(Fault::Format);
    }
    sum.finish(before)
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest.trim_start()),
        None => (false, text),
    }
}

fn whole_number(digits: &str) -> Result<i64, Fault> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    digits.parse().map_err(|_| Fault::Overflow)
}

/// The number before the point, and what stands behind it; both with the sign.
fn with_fraction(negative: bool, digits: &str) -> Result<(i64, f64), Fault> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(Fault::Format);
    }
    let number = if whole.is_empty() { 0 } else { whole_number(whole)? };
    let fraction: f64 = format!("0.{fraction}0").parse().map_err(|_| Fault::Format)?;
    Ok(if negative { (-number, -fraction) } else { (number, fraction) })
}

/// `[±]hours:minutes[:seconds[.fraction]]` in microseconds; `minutes:seconds.fraction` where there is a fraction.
fn read_time(text: &str) -> Result<i64, Fault> {
    let (negative, text) = signed(text);
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] if seconds.contains('.') => ("0", *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return Err(Fault::Format),
    };
    let (hours, minutes) = (whole_number(hours)?, whole_number(minutes)?);
    let (seconds, fraction) = with_fraction(false, seconds)?;
    if minutes > 59 || seconds > 60 {
        return Err(Fault::Overflow);
    }
    let fraction = (fraction * 1e6).round_ties_even() as i64;
    let below = (minutes * 60 + seconds) * MICROSECONDS_PER_SECOND + fraction;
    let time = hours.checked_mul(MICROSECONDS_PER_HOUR).and_then(|hours| hours.checked_add(below));
    let time = time.ok_or(Fault::Overflow)?;
    Ok(if negative { -time } else { time })
}

/// ISO 8601 with designators, behind the `P`.
fn read_designated(text: &str) -> Result<Interval, Fault> {
    let (mut sum, mut in_time, mut any) = (Sum::default(), false, false);
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            if in_time {
                return Err(Fault::Format);
            }
            (in_time, any, rest) = (true, true, after);
            continue;
        }
        let end = rest.find(|character: char| character.is_ascii_alphabetic()).ok_or(Fault::Format)?;
        let (negative, digits) = signed(&rest[..end]);
        let (number, fraction) = with_fraction(negative, digits)?;
        let unit = match (&rest[end..=end], in_time) {
            ("Y", false) => Unit::Year,
            ("M", false) => Unit::Month,
            ("W", false) => Unit::Week,
            ("D", false) => Unit::Day,
            ("H", true) => Unit::Hour,
            ("M", true) => Unit::Minute,
            ("S", true) => Unit::Second,
            _ => return Err(Fault::Format),
        };
        sum.add(number, fraction, unit)?;
        any = true;
        rest = &rest[end + 1..];
    }
    if !any {
        return Err(Fault::Format);
    }
    sum.finish(false)
}
