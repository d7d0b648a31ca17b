//! Input of dates, times and timestamps.

use super::calendar::{check_date, days_from_date, days_in_month};
use super::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, TIMESTAMP_END, TIMESTAMP_MIN, UNIX_EPOCH,
    time_of_timestamp,
};
use crate::{DataType, SqlError, SqlState};

/// The largest time zone displacement that PostgreSQL reads is 15:59:59.
const ZONE_HOURS_MAX: i64 = 15;

/// Reads an ISO 8601 date with an optional time and zone. Of a timestamp with time zone that is UTC where there is no
/// zone; otherwise the zone does not count.
pub(crate) fn parse_timestamp(text: &str, data_type: DataType) -> Result<i64, SqlError> {
    let mut reader = Reader::new(text, data_type);
    if reader.special()? {
        return Ok(UNIX_EPOCH);
    }
    let date = reader.date()?;
    let time = reader.time()?;
    let zone = if data_type == DataType::TimestampTz { reader.zone()? } else { reader.zone().map(|_| 0)? };
    let days = reader.days(date)?;
    let microseconds = days
        .checked_mul(MICROSECONDS_PER_DAY)
        .and_then(|start| start.checked_add(time - zone * MICROSECONDS_PER_SECOND));
    match microseconds {
        Some(microseconds) if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&microseconds) => Ok(microseconds),
        _ => Err(reader.out_of_range("timestamp out of range")),
    }
}

/// Reads an ISO 8601 date; a time and a zone behind it do not count.
pub(crate) fn parse_date(text: &str) -> Result<i32, SqlError> {
    let mut reader = Reader::new(text, DataType::Date);
    if reader.special()? {
        return check_date(Some(super::UNIX_EPOCH_DAYS));
    }
    let date = reader.date()?;
    reader.time()?;
    reader.zone()?;
    let days = reader.days(date)?;
    check_date(Some(days)).map_err(|_| reader.out_of_range("date out of range"))
}

/// Reads a time of day; a date in front of it and a zone behind it do not count.
pub(crate) fn parse_time(text: &str) -> Result<i64, SqlError> {
    let mut reader = Reader::new(text, DataType::Time);
    if reader.special()? {
        return Err(reader.invalid());
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

/// What is left of a timestamp's text.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [u8],
    /// What it is read as, for errors.
    data_type: DataType,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, data_type: DataType) -> Reader<'a> {
        Reader { text, rest: crate::text::trim(text).as_bytes(), data_type }
    }

    /// True for `epoch`.
    ///
    /// # Errors
    /// Refuses the other words that PostgreSQL knows, and those that it does not know.
    fn special(&mut self) -> Result<bool, SqlError> {
        match self.word().as_str() {
            "" => {}
            "epoch" if self.rest.len() == "epoch".len() => return Ok(true),
            word @ ("now" | "today" | "tomorrow" | "yesterday" | "allballs") => {
                let what = format_args!("'{word}' as a value of type {}", self.data_type);
                return Err(SqlError::unsupported(what).hint("Use now(), the time of the block."));
            }
            "infinity" | "inf" => return Err(self.infinity()),
            _ => return Err(self.invalid()),
        }
        if self.text.contains("infinity") {
            return Err(self.infinity());
        }
        Ok(false)
    }

    #[cold]
    fn invalid(&self) -> SqlError {
        let message = format!("invalid input syntax for type {}: \"{}\"", self.type_name(), self.text);
        let error = SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message);
        error.hint(match self.data_type {
            DataType::Date => "Write it as 2026-11-20.",
            DataType::Time => "Write it as 23:01:02.123456.",
            DataType::Timestamp => "Write it as 2026-11-20 23:01:02.123456.",
            _ => "Write it as 2026-11-20 23:01:02.123456+00, in UTC where there is no zone.",
        })
    }

    /// The name in PostgreSQL's errors of input.
    fn type_name(&self) -> &'static str {
        match self.data_type {
            DataType::Date => "date",
            DataType::Time => "time",
            DataType::Timestamp => "timestamp",
            _ => "timestamp with time zone",
        }
    }

    #[cold]
    fn infinity(&self) -> SqlError {
        SqlError::unsupported(format_args!("infinity as a value of type {}", self.data_type))
    }

    #[cold]
    fn out_of_range(&self, what: &str) -> SqlError {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{what}: \"{}\"", self.text))
    }

    #[cold]
    fn field_out_of_range(&self) -> SqlError {
        self.out_of_range("date/time field value out of range")
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
