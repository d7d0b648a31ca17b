use crate::{SqlError, SqlState};

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROSECONDS_PER_DAY: i64 = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND;

/// 1970-01-01 00:00 UTC in microseconds since 2000-01-01 00:00 UTC.
const UNIX_EPOCH: i64 = -10_957 * MICROSECONDS_PER_DAY;

/// 4714-11-24 00:00 BC, PostgreSQL's first instant.
const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// 294277-01-01 00:00, the first instant after PostgreSQL's last.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// The largest time zone displacement that PostgreSQL reads is 15:59:59.
const ZONE_HOURS_MAX: i64 = 15;

/// Days from 2000-01-01 to this day of the proleptic Gregorian calendar; year 0 is 1 BC.
///
/// Years begin in March, so that the leap day is the last of a year; 400 years are 146,097 days.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 2000-01-01 is 306 days after 1999-03-01, which is day 730,119 from 0000-03-01.
    era * 146_097 + day_of_era - 730_425
}

/// The inverse of [`days_from_date`].
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 730_425;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Writes microseconds since 2000-01-01 00:00 UTC as PostgreSQL does with `DateStyle` ISO in UTC:
/// `2026-11-20 23:01:02.123456+00`, without zeros at the end of the fraction.
pub(crate) fn format_timestamp(microseconds: i64) -> String {
    match microseconds {
        i64::MIN => return "-infinity".to_string(),
        i64::MAX => return "infinity".to_string(),
        _ => {}
    }
    let (days, time) =
        (microseconds.div_euclid(MICROSECONDS_PER_DAY), microseconds.rem_euclid(MICROSECONDS_PER_DAY));
    let (year, month, day) = date_from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    let (seconds, fraction) = (time / MICROSECONDS_PER_SECOND, time % MICROSECONDS_PER_SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    if fraction != 0 {
        let digits = format!(".{fraction:06}");
        text.push_str(digits.trim_end_matches('0'));
    }
    text + "+00" + era
}

/// Reads an ISO 8601 date with an optional time and zone, in UTC where there is no zone.
pub(crate) fn parse_timestamp(text: &str) -> Result<i64, SqlError> {
    let mut reader = Reader { text, rest: crate::text::trim(text).as_bytes() };
    match reader.word().as_str() {
        "" => {}
        "epoch" if reader.rest.len() == "epoch".len() => return Ok(UNIX_EPOCH),
        word @ ("now" | "today" | "tomorrow" | "yesterday" | "allballs") => {
            let what = format_args!("'{word}' as a value of type timestamp with time zone");
            return Err(SqlError::unsupported(what).hint("Use now(), the time of the block."));
        }
        "infinity" | "inf" => return Err(reader.infinity()),
        _ => return Err(reader.invalid()),
    }
    if text.contains("infinity") {
        return Err(reader.infinity());
    }
    let date = reader.date()?;
    let time = reader.time()?;
    let zone = reader.zone()?;
    let days = reader.days(date)?;
    let microseconds = days
        .checked_mul(MICROSECONDS_PER_DAY)
        .and_then(|start| start.checked_add(time - zone * MICROSECONDS_PER_SECOND));
    match microseconds {
        Some(microseconds) if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&microseconds) => Ok(microseconds),
        _ => Err(reader.out_of_range("timestamp out of range")),
    }
}

/// What is left of a timestamp's text.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl Reader<'_> {
    #[cold]
    fn invalid(&self) -> SqlError {
        let message = format!("invalid input syntax for type timestamp with time zone: \"{}\"", self.text);
        SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
            .hint("Write it as 2026-11-20 23:01:02.123456+00, in UTC where there is no zone.")
    }

    #[cold]
    fn infinity(&self) -> SqlError {
        SqlError::unsupported("infinity as a value of type timestamp with time zone")
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
        let (year, digits) = self.number(6)?;
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
        let (hour, _) = self.number(2)?;
        if !self.skip(b':') {
            return Err(self.invalid());
        }
        let (minute, _) = self.number(2)?;
        let second = if self.skip(b':') { self.number(2)?.0 } else { 0 };
        let fraction = self.fraction()?;
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
