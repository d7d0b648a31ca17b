//! Input of dates, times and timestamps.

use super::calendar::{check_date, days_from_date, days_in_month};
use super::decode::{Decoded, decode};
use super::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, TIMESTAMP_END,
    TIMESTAMP_INFINITY, TIMESTAMP_MIN, TIMESTAMP_NEGATIVE_INFINITY, UNIX_EPOCH, time_of_timestamp,
};
use crate::session_format::session_instant_of;
use crate::{DataType, SqlError, SqlState};

/// The largest time zone displacement that PostgreSQL reads is 15:59:59.
const ZONE_HOURS_MAX: i64 = 15;

/// Reads a timestamp. Of a timestamp with time zone that is of the session's zone where there is none; otherwise the zone does not count.
pub(crate) fn parse_timestamp(text: &str, data_type: DataType) -> Result<i64, SqlError> {
    let (name, zoned) = match data_type {
        DataType::TimestampTz => ("timestamp with time zone", true),
        _ => ("timestamp", false),
    };
    let (days, time, zone) = match decode(text, name)? {
        Decoded::At { days, time, zone } => (days, time, if zoned { zone } else { Some(0) }),
        Decoded::Epoch => return Ok(UNIX_EPOCH),
        Decoded::Infinity => return Ok(TIMESTAMP_INFINITY),
        Decoded::NegativeInfinity => return Ok(TIMESTAMP_NEGATIVE_INFINITY),
    };
    let microseconds = days
        .checked_mul(MICROSECONDS_PER_DAY)
        .and_then(|start| start.checked_add(time - zone.unwrap_or(0) * MICROSECONDS_PER_SECOND));
    match microseconds {
        Some(microseconds) if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&microseconds) => match zone {
            Some(_) => Ok(microseconds),
            None => session_instant_of(microseconds).map_err(|_| out_of_range("timestamp", text)),
        },
        _ => Err(out_of_range("timestamp", text)),
    }
}

/// Reads a date; a time and a zone behind it do not count.
pub(crate) fn parse_date(text: &str) -> Result<i32, SqlError> {
    match decode(text, "date")? {
        Decoded::At { days, .. } => check_date(Some(days)).map_err(|_| out_of_range("date", text)),
        Decoded::Epoch => check_date(Some(super::UNIX_EPOCH_DAYS)),
        Decoded::Infinity => Ok(DATE_INFINITY),
        Decoded::NegativeInfinity => Ok(DATE_NEGATIVE_INFINITY),
    }
}

#[cold]
fn out_of_range(what: &str, text: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{what} out of range: \"{text}\""))
}

/// Reads a time of day; a date in front of it and a zone behind it do not count.
pub(crate) fn parse_time(text: &str) -> Result<i64, SqlError> {
    let mut reader = Reader { text, rest: crate::text::trim(text).as_bytes() };
    match reader.word().as_str() {
        "" => {}
        word @ ("now" | "today" | "tomorrow" | "yesterday" | "allballs") => {
            let what = format_args!("'{word}' as a value of type time without time zone");
            return Err(SqlError::unsupported(what).hint("Use now(), the time of the block."));
        }
        _ => return Err(reader.invalid()),
    }
    let digits = reader.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let time = match reader.rest.get(digits) {
        Some(b':') => reader.clock()?,
        _ => {
            let date = reader.date()?;
            let rest = reader.rest;
            let time = reader.time()?;
            if rest.len() == reader.rest.len() {
                return Err(reader.invalid());
            }
            let written = reader.rest;
            reader.rest = b"";
            reader.days(date)?;
            reader.rest = written;
            time_of_timestamp(time)
        }
    };
    reader.zone()?;
    reader.skip_spaces();
    if reader.rest.is_empty() { Ok(time) } else { Err(reader.invalid()) }
}

/// What is left of a time's text.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl Reader<'_> {
    #[cold]
    fn invalid(&self) -> SqlError {
        let message = format!("invalid input syntax for type time: \"{}\"", self.text);
        SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message).hint("Write it as 23:01:02.123456.")
    }

    #[cold]
    fn field_out_of_range(&self) -> SqlError {
        out_of_range("date/time field value", self.text)
    }

    /// The letters that come next, in lower case; they stay.
    fn word(&self) -> String {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic());
        letters.map(|byte| char::from(byte.to_ascii_lowercase())).collect()
    }

    fn skip_spaces(&mut self) {
        while let [b' ' | b'\t'..=b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn skip(&mut self, expected: u8) -> bool {
        match self.rest {
            [found, rest @ ..] if *found == expected => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// A number and how many digits it was written with.
    fn number(&mut self, digits_max: usize) -> Result<(i64, usize), SqlError> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.invalid());
        }
        if digits > digits_max {
            return Err(self.field_out_of_range());
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        Ok((number.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')), digits))
    }

    fn date(&mut self) -> Result<(i64, i64, i64), SqlError> {
        let (year, digits) = self.number(7)?;
        let separator = if self.skip(b'-') { b'-' } else { b'/' };
        // With fewer digits PostgreSQL asks its DateStyle which number is the year.
        if digits < 3 || (separator == b'/' && !self.skip(b'/')) {
            return Err(self.invalid());
        }
        let (month, _) = self.number(2)?;
        if !self.skip(separator) {
            return Err(self.invalid());
        }
        let (day, _) = self.number(2)?;
        Ok((year, month, day))
    }

    /// Days from 2000-01-01, after what may follow the zone: `BC`.
    fn days(&mut self, (year, month, day): (i64, i64, i64)) -> Result<i64, SqlError> {
        self.skip_spaces();
        let before_christ = match self.rest.to_ascii_lowercase().as_slice() {
            b"" | b"ad" => false,
            b"bc" => true,
            _ => return Err(self.invalid()),
        };
        let year_exists = year != 0;
        let year = if before_christ { 1 - year } else { year };
        let exists =
            year_exists && (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        if exists { Ok(days_from_date(year, month, day)) } else { Err(self.field_out_of_range()) }
    }

    /// Microseconds since midnight; 24:00:00 and a 60th second are read as PostgreSQL reads them.
    fn time(&mut self) -> Result<i64, SqlError> {
        let separated = matches!(self.rest, [b'T' | b't', b'0'..=b'9', ..]);
        if separated {
            self.rest = &self.rest[1..];
        }
        let spaces = self.rest.len();
        self.skip_spaces();
        if !(separated || self.rest.len() < spaces) || !matches!(self.rest, [b'0'..=b'9', ..]) {
            return Ok(0);
        }
        self.clock()
    }

    /// Hours, minutes and perhaps seconds.
    fn clock(&mut self) -> Result<i64, SqlError> {
        let (mut hour, _) = self.number(2)?;
        if !self.skip(b':') {
            return Err(self.invalid());
        }
        let (minute, _) = self.number(2)?;
        let second = if self.skip(b':') { self.number(2)?.0 } else { 0 };
        let fraction = self.fraction()?;
        let written = self.rest;
        self.skip_spaces();
        match self.word().as_str() {
            half @ ("am" | "pm") => {
                if hour > 12 {
                    return Err(self.field_out_of_range());
                }
                hour = hour % 12 + if half == "pm" { 12 } else { 0 };
                self.rest = &self.rest[half.len()..];
            }
            _ => self.rest = written,
        }
        let past_midnight = hour == 24 && (minute, second, fraction) != (0, 0, 0);
        let past_leap_second = second > 60 || (second == 60 && fraction != 0);
        if hour > 24 || minute > 59 || past_leap_second || past_midnight {
            return Err(self.field_out_of_range());
        }
        Ok(((hour * 60 + minute) * 60 + second) * MICROSECONDS_PER_SECOND + fraction)
    }

    /// Microseconds of a fraction of a second, rounded as PostgreSQL rounds: as a double, halves to even.
    fn fraction(&mut self) -> Result<i64, SqlError> {
        if !self.skip(b'.') {
            return Ok(0);
        }
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let text = format!("0.{}0", String::from_utf8_lossy(fraction));
        let seconds: f64 = text.parse().map_err(|_| self.invalid())?;
        Ok((seconds * 1e6).round_ties_even() as i64)
    }

    /// Seconds east of UTC.
    fn zone(&mut self) -> Result<i64, SqlError> {
        self.skip_spaces();
        let sign = match self.rest {
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return self.named_zone(),
        };
        self.rest = &self.rest[1..];
        let (mut hours, digits) = self.number(6)?;
        let (mut minutes, mut seconds) = (0, 0);
        if self.skip(b':') {
            minutes = self.number(2)?.0;
            if self.skip(b':') {
                seconds = self.number(2)?.0;
            }
        } else if digits > 2 {
            (hours, minutes) = (hours / 100, hours % 100);
        }
        if hours > ZONE_HOURS_MAX || minutes > 59 || seconds > 59 {
            let message = format!("time zone displacement out of range: \"{}\"", self.text);
            return Err(SqlError::new(SqlState(*b"22009"), message));
        }
        Ok(sign * ((hours * 60 + minutes) * 60 + seconds))
    }

    fn named_zone(&mut self) -> Result<i64, SqlError> {
        let word = self.word();
        match word.as_str() {
            "" | "ad" | "bc" => {}
            "z" | "utc" | "gmt" | "ut" | "zulu" => self.rest = &self.rest[word.len()..],
            _ => return Err(self.invalid()),
        }
        Ok(0)
    }
}
