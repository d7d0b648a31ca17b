//! Input of dates and timestamps in all forms that PostgreSQL reads, with `DateStyle` MDY: the text is cut into fields, and
//! what a number means depends on what has been found before it.

use super::calendar::{date_from_days, days_from_date, days_in_month};
use super::{EPOCH_JULIAN, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND};
use crate::{SqlError, SqlState};

/// PostgreSQL's limits on a text and its fields.
const TEXT_BYTES_MAX: usize = 128;
const FIELDS_MAX: usize = 25;

/// The largest time zone displacement that PostgreSQL reads is 15:59:59.
const ZONE_HOURS_MAX: i64 = 15;

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// Days since 2000-01-01, microseconds since midnight, and seconds east of UTC.
    At { days: i64, time: i64, zone: i64 },
    /// `epoch`
    Epoch,
    /// `infinity`
    Infinity,
    /// `-infinity`
    NegativeInfinity,
}

/// Why a text is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Format,
    Field,
    Zone,
    /// A word that stands for a moment of the clock.
    Clock(&'static str),
    /// A time zone with a name.
    NamedZone,
    /// A word where a time zone could be, which is none.
    UnknownZone,
}

/// Reads a date, perhaps with a time and a zone; `type_name` is for errors.
///
/// # Errors
/// `22007` where it is none, `22008` where a field is out of range, `22009` of a zone, `0A000` of `now` and its kind.
pub(super) fn decode(text: &str, type_name: &str) -> Result<Decoded, SqlError> {
    let lower = text.to_ascii_lowercase();
    fields(&lower)
        .and_then(|fields| Decoder::default().decode(&fields))
        .map_err(|fault| error(fault, text, type_name))
}

#[cold]
fn error(fault: Fault, text: &str, type_name: &str) -> SqlError {
    let (state, message) = match fault {
        Fault::Format => (
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        ),
        Fault::Field => {
            (SqlState::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""))
        }
        Fault::UnknownZone => {
            (SqlState::INVALID_PARAMETER_VALUE, format!("time zone not recognized in \"{text}\""))
        }
        Fault::Zone => (SqlState(*b"22009"), format!("time zone displacement out of range: \"{text}\"")),
        Fault::Clock(word) => {
            return SqlError::unsupported(format_args!("'{word}' as a value of type {type_name}"))
                .hint("Use now(), the time of the block.");
        }
        Fault::NamedZone => {
            return SqlError::unsupported("a time zone other than UTC by its name")
                .hint("Write its displacement: 2026-11-20 23:01:02+01.");
        }
    };
    let error = SqlError::new(state, message);
    match (fault, type_name) {
        (Fault::Format, "date") => error.hint("Write it as 2026-11-20."),
        (Fault::Format, "timestamp") => error.hint("Write it as 2026-11-20 23:01:02.123456."),
        (Fault::Format, _) => {
            error.hint("Write it as 2026-11-20 23:01:02.123456+00, in UTC where there is no zone.")
        }
        _ => error,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Digits, perhaps with a point.
    Number,
    /// Parts with separators between.
    Date,
    /// Digits with colons.
    Time,
    /// Letters.
    Word,
    /// A sign and digits.
    Zone,
    /// A sign and letters.
    SignedWord,
}

/// A part of the text; a sign that has blanks behind it stands alone in `sign`.
#[derive(Clone, Copy, Debug)]
struct Field<'a> {
    form: Form,
    negative: bool,
    text: &'a str,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Cuts a text in lower case into its fields.
fn fields(text: &str) -> Result<Vec<Field<'_>>, Fault> {
    let bytes = text.as_bytes();
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(Fault::Format);
    }
    let run = |from: usize, belongs: &dyn Fn(u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| belongs(**byte)).count()
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    let letter = |byte: u8| byte.is_ascii_alphabetic();
    let at_is = |at: usize, expected: &[u8]| bytes.get(at).is_some_and(|byte| expected.contains(byte));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if is_space(byte) {
            at += 1;
            continue;
        }
        let (mut start, mut negative) = (at, false);
        let (form, end) = match byte {
            b'0'..=b'9' => {
                let end = run(at, &digit);
                match bytes.get(end).copied() {
                    Some(b':') => (Form::Time, run(end, &|byte| digit(byte) || matches!(byte, b':' | b'.'))),
                    Some(separator @ (b'-' | b'/' | b'.')) => {
                        if bytes.get(end + 1).copied().is_some_and(digit) {
                            let second = run(end + 1, &digit);
                            match bytes.get(second).copied() == Some(separator) {
                                true => (Form::Date, run(second, &|byte| digit(byte) || byte == separator)),
                                false if separator == b'.' => (Form::Number, second),
                                false => (Form::Date, second),
                            }
                        } else {
                            let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == separator;
                            (Form::Date, run(end + 1, &rest))
                        }
                    }
                    _ => (Form::Number, end),
                }
            }
            b'.' => (Form::Number, run(at + 1, &digit)),
            b'a'..=b'z' => {
                let end = run(at, &letter);
                let followed = at_is(end, b"-/.")
                    || ((at_is(end, b"+") || bytes.get(end).copied().is_some_and(digit))
                        && Word::named(&text[at..end]).is_none());
                let rest = |byte: u8| byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte);
                if followed { (Form::Date, run(end, &rest)) } else { (Form::Word, end) }
            }
            b'+' | b'-' => {
                negative = byte == b'-';
                start = run(at + 1, &is_space);
                match bytes.get(start).copied() {
                    Some(next) if digit(next) => {
                        (Form::Zone, run(start, &|byte| digit(byte) || matches!(byte, b':' | b'.' | b'-')))
                    }
                    Some(next) if letter(next) => (Form::SignedWord, run(start, &letter)),
                    _ => return Err(Fault::Format),
                }
            }
            _ if byte.is_ascii_punctuation() => {
                at += 1;
                continue;
            }
            _ => return Err(Fault::Format),
        };
        if found.len() == FIELDS_MAX {
            return Err(Fault::Format);
        }
        found.push(Field { form, negative, text: &text[start..end] });
        at = end;
    }
    Ok(found)
}

/// What a word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Month(i64),
    Weekday,
    Afternoon(bool),
    BeforeChrist(bool),
    /// The number behind it is this.
    Unit(Unit),
    /// A time follows.
    Time,
    /// Says nothing.
    Filler,
    /// A moment of the clock.
    Clock(&'static str),
    Midnight,
    Epoch,
    Infinity,
    Utc,
    /// Reads as a unit, which no date has.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    Time,
}

impl Word {
    fn named(word: &str) -> Option<Word> {
        // PostgreSQL compares the first ten letters.
        Some(match word.get(..10).unwrap_or(word) {
            "jan" | "january" => Word::Month(1),
            "feb" | "february" => Word::Month(2),
            "mar" | "march" => Word::Month(3),
            "apr" | "april" => Word::Month(4),
            "may" => Word::Month(5),
            "jun" | "june" => Word::Month(6),
            "jul" | "july" => Word::Month(7),
            "aug" | "august" => Word::Month(8),
            "sep" | "sept" | "september" => Word::Month(9),
            "oct" | "october" => Word::Month(10),
            "nov" | "november" => Word::Month(11),
            "dec" | "december" => Word::Month(12),
            "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds"
            | "wednesday" | "thu" | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat" | "saturday" => {
                Word::Weekday
            }
            "am" => Word::Afternoon(false),
            "pm" => Word::Afternoon(true),
            "ad" => Word::BeforeChrist(false),
            "bc" => Word::BeforeChrist(true),
            "y" => Word::Unit(Unit::Year),
            "m" => Word::Unit(Unit::Month),
            "d" => Word::Unit(Unit::Day),
            "h" => Word::Unit(Unit::Hour),
            "mm" => Word::Unit(Unit::Minute),
            "s" => Word::Unit(Unit::Second),
            "j" | "jd" | "julian" => Word::Unit(Unit::Julian),
            "t" => Word::Time,
            "at" | "on" => Word::Filler,
            "now" => Word::Clock("now"),
            "today" => Word::Clock("today"),
            "tomorrow" => Word::Clock("tomorrow"),
            "yesterday" => Word::Clock("yesterday"),
            "allballs" => Word::Midnight,
            "epoch" => Word::Epoch,
            "infinity" => Word::Infinity,
            "z" | "utc" | "gmt" | "ut" | "zulu" | "uct" => Word::Utc,
            "dow" | "doy" | "isodow" | "isoyear" | "dst" => Word::Other,
            _ => return None,
        })
    }
}

/// Which fields have been found, as bits.
type Mask = u32;
const YEAR: Mask = 1;
const MONTH: Mask = 1 << 1;
const DAY: Mask = 1 << 2;
const DATE: Mask = YEAR | MONTH | DAY;
const DAY_OF_YEAR: Mask = 1 << 3;
const HOUR: Mask = 1 << 4;
const MINUTE: Mask = 1 << 5;
const SECOND: Mask = 1 << 6;
const TIME: Mask = HOUR | MINUTE | SECOND;
const ZONE: Mask = 1 << 7;
const ERA: Mask = 1 << 8;
const HALF: Mask = 1 << 9;
const WEEKDAY: Mask = 1 << 10;
const SPECIAL: Mask = 1 << 11;

/// What has been found.
#[derive(Default)]
struct Decoder {
    mask: Mask,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    microsecond: i64,
    zone: i64,
    afternoon: Option<bool>,
    before_christ: bool,
    /// The year was written with one or two digits.
    short_year: bool,
    julian: bool,
    text_month: bool,
    /// What the number that follows is.
    unit: Option<Unit>,
    special: Option<Decoded>,
}

impl Decoder {
    fn decode(mut self, fields: &[Field<'_>]) -> Result<Decoded, Fault> {
        for (position, field) in fields.iter().enumerate() {
            let found = match field.form {
                Form::Date => self.date_field(field.text)?,
                Form::Time => {
                    if self.unit.take().is_some_and(|unit| unit != Unit::Time) {
                        return Err(Fault::Format);
                    }
                    self.clock(field.text)?
                }
                Form::Zone => {
                    self.zone = zone(field.negative, field.text)?;
                    ZONE
                }
                Form::Number => self.number_field(field.text)?,
                Form::SignedWord => match Word::named(field.text) {
                    Some(Word::Infinity) if field.negative => {
                        self.special = Some(Decoded::NegativeInfinity);
                        SPECIAL
                    }
                    _ => return Err(Fault::Format),
                },
                Form::Word => match self.word(field.text, fields.get(position + 1))? {
                    Some(found) => found,
                    None => continue,
                },
            };
            if found & self.mask != 0 {
                return Err(Fault::Format);
            }
            self.mask |= found;
        }
        self.finish()
    }

    fn word(&mut self, word: &str, next: Option<&Field<'_>>) -> Result<Option<Mask>, Fault> {
        Ok(Some(match Word::named(word) {
            None => return Err(Fault::Format),
            Some(Word::Filler) => return Ok(None),
            Some(Word::Clock(word)) => return Err(Fault::Clock(word)),
            Some(Word::Epoch) => {
                self.special = Some(Decoded::Epoch);
                SPECIAL
            }
            Some(Word::Infinity) => {
                self.special = Some(Decoded::Infinity);
                SPECIAL
            }
            Some(Word::Midnight) => TIME | ZONE,
            Some(Word::Month(month)) => {
                // A number in front of it was the day.
                let number = self.mask & MONTH != 0 && !self.text_month && self.mask & DAY == 0;
                let found = if number && (1..=31).contains(&self.month) {
                    self.day = self.month;
                    DAY
                } else {
                    MONTH
                };
                self.text_month = true;
                self.month = month;
                found
            }
            Some(Word::Weekday) => WEEKDAY,
            Some(Word::Afternoon(afternoon)) => {
                self.afternoon = Some(afternoon);
                HALF
            }
            Some(Word::BeforeChrist(before_christ)) => {
                self.before_christ = before_christ;
                ERA
            }
            Some(Word::Unit(unit)) => {
                self.unit = Some(unit);
                0
            }
            Some(Word::Other) => {
                // The number behind it would be of no date.
                return Err(Fault::Format);
            }
            Some(Word::Time) => {
                let follows =
                    next.is_some_and(|next| matches!(next.form, Form::Number | Form::Time | Form::Date));
                if self.mask & DATE != DATE || !follows {
                    return Err(Fault::Format);
                }
                self.unit = Some(Unit::Time);
                0
            }
            Some(Word::Utc) => {
                self.zone = 0;
                ZONE
            }
        }))
    }

    /// A field with separators: a date, or behind one a time with its zone, or the name of a zone.
    fn date_field(&mut self, text: &str) -> Result<Mask, Fault> {
        if self.unit == Some(Unit::Julian) {
            self.unit = None;
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let (day, rest) = text.split_at(end);
            self.set_julian(integer(day)?)?;
            let (negative, displacement) = signed(rest)?;
            self.zone = zone(negative, displacement)?;
            return Ok(DATE | TIME | ZONE);
        }
        if self.unit.is_none() && self.mask & (MONTH | DAY) != MONTH | DAY {
            return self.separated(text);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) && self.unit.is_none() {
            return Err(if text.contains('/') { Fault::NamedZone } else { Fault::UnknownZone });
        }
        if self.unit.take().is_some_and(|unit| unit != Unit::Time) || self.mask & TIME == TIME {
            return Err(Fault::Format);
        }
        let at = text.find('-').ok_or(Fault::Format)?;
        let (negative, displacement) = signed(&text[at..])?;
        self.zone = zone(negative, displacement)?;
        Ok(self.concatenated(&text[..at], self.mask)? | ZONE)
    }

    /// Year, month and day in one field.
    fn separated(&mut self, text: &str) -> Result<Mask, Fault> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            let Some(first) = rest.chars().next() else { return Err(Fault::Format) };
            let digits = first.is_ascii_digit();
            let end = rest
                .find(|c: char| if digits { !c.is_ascii_digit() } else { !c.is_ascii_alphabetic() })
                .unwrap_or(rest.len());
            parts.push(&rest[..end]);
            // Whatever stands behind a part separates it.
            rest = rest.get(end + 1..).unwrap_or("");
        }
        let (mut mask, mut found, mut text_month) = (self.mask, 0, false);
        let mut add = |more: Mask, mask: &mut Mask| {
            if *mask & more != 0 {
                return Err(Fault::Format);
            }
            *mask |= more;
            found |= more;
            Ok(())
        };
        for part in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic())) {
            match Word::named(part) {
                Some(Word::Filler) => {}
                Some(Word::Month(month)) => {
                    self.month = month;
                    text_month = true;
                    add(MONTH, &mut mask)?;
                }
                _ => return Err(Fault::Format),
            }
        }
        for part in parts.iter().filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
            let more = self.number(part, text_month, mask)?;
            add(more, &mut mask)?;
        }
        if mask & !(DAY_OF_YEAR | ZONE) != DATE { Err(Fault::Format) } else { Ok(found) }
    }

    fn number_field(&mut self, text: &str) -> Result<Mask, Fault> {
        let (whole, fraction) = match text.find('.') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        if let Some(unit) = self.unit.take() {
            return self.labelled(unit, text, whole, fraction);
        }
        if fraction.is_some() && self.mask & DATE == 0 {
            return self.separated(text);
        }
        if fraction.is_some() && whole.len() > 2 {
            return self.concatenated(text, self.mask);
        }
        if text.len() >= 6 && (self.mask & DATE == 0 || self.mask & TIME == 0) {
            return self.concatenated(text, self.mask);
        }
        self.number(text, self.text_month, self.mask)
    }

    /// A number with a letter in front that says what it is.
    fn labelled(
        &mut self,
        unit: Unit,
        text: &str,
        whole: &str,
        fraction: Option<&str>,
    ) -> Result<Mask, Fault> {
        let number = if whole.is_empty() { 0 } else { integer(whole)? };
        if fraction.is_some() && !matches!(unit, Unit::Julian | Unit::Time | Unit::Second) {
            return Err(Fault::Format);
        }
        Ok(match unit {
            Unit::Year => {
                self.year = number;
                YEAR
            }
            Unit::Month if self.mask & MONTH != 0 && self.mask & HOUR != 0 => {
                self.minute = number;
                MINUTE
            }
            Unit::Month => {
                self.month = number;
                MONTH
            }
            Unit::Day => {
                self.day = number;
                DAY
            }
            Unit::Hour => {
                self.hour = number;
                HOUR
            }
            Unit::Minute => {
                self.minute = number;
                MINUTE
            }
            Unit::Second => {
                self.second = number;
                if let Some(fraction) = fraction {
                    self.microsecond = microseconds(fraction)?;
                }
                SECOND
            }
            Unit::Julian => {
                self.set_julian(number)?;
                match fraction {
                    None => DATE,
                    Some(fraction) => {
                        let day: f64 = format!("0{fraction}0").parse().map_err(|_| Fault::Format)?;
                        let time = (day * MICROSECONDS_PER_DAY as f64) as i64;
                        let seconds = time / MICROSECONDS_PER_SECOND;
                        (self.hour, self.minute) = (seconds / 3_600, seconds / 60 % 60);
                        (self.second, self.microsecond) = (seconds % 60, time % MICROSECONDS_PER_SECOND);
                        DATE | TIME
                    }
                }
            }
            Unit::Time => match self.concatenated(text, self.mask | DATE)? {
                TIME => TIME,
                _ => return Err(Fault::Format),
            },
        })
    }

    fn set_julian(&mut self, day: i64) -> Result<(), Fault> {
        if day < 0 {
            return Err(Fault::Field);
        }
        (self.year, self.month, self.day) = date_from_days(day - EPOCH_JULIAN);
        self.julian = true;
        Ok(())
    }

    /// A number alone: what it is depends on what is there.
    fn number(&mut self, text: &str, text_month: bool, mask: Mask) -> Result<Mask, Fault> {
        let (whole, fraction) = match text.find('.') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        if whole.is_empty() {
            return Err(Fault::Format);
        }
        let value = integer(whole)?;
        if let Some(fraction) = fraction {
            if whole.len() > 2 {
                return self.concatenated(text, mask | DATE);
            }
            self.microsecond = microseconds(fraction)?;
        }
        if text.len() == 3 && mask & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let long = text.len() >= 3;
        let found = match mask & DATE {
            0 if long => YEAR,
            0 => MONTH,
            YEAR => MONTH,
            MONTH if text_month && long => YEAR,
            MONTH => DAY,
            found if found == YEAR | MONTH => {
                if text_month && long && self.short_year {
                    // The first number was the day.
                    (self.day, self.year, self.short_year) = (self.year, value, false);
                    return Ok(DAY);
                }
                DAY
            }
            DAY => MONTH,
            found if found == MONTH | DAY => YEAR,
            DATE => return self.concatenated(text, mask),
            _ => return Err(Fault::Format),
        };
        match found {
            YEAR => {
                self.year = value;
                self.short_year = text.len() <= 2;
            }
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(found)
    }

    /// `20260131` or `235959`.
    fn concatenated(&mut self, text: &str, mask: Mask) -> Result<Mask, Fault> {
        let digits = match text.find('.') {
            Some(at) => {
                self.microsecond = microseconds(&text[at..])?;
                &text[..at]
            }
            None if mask & DATE != DATE && text.len() >= 6 => {
                let (year, rest) = text.split_at(text.len() - 4);
                (self.year, self.month) = (integer(year)?, integer(&rest[..2])?);
                self.day = integer(&rest[2..])?;
                self.short_year |= year.len() == 2;
                return Ok(DATE);
            }
            None => text,
        };
        if mask & TIME == TIME || !matches!(digits.len(), 4 | 6) {
            return Err(Fault::Format);
        }
        (self.hour, self.minute) = (integer(&digits[..2])?, integer(&digits[2..4])?);
        self.second = if digits.len() == 6 { integer(&digits[4..])? } else { 0 };
        Ok(TIME)
    }

    /// Hours, minutes and perhaps seconds with colons between.
    fn clock(&mut self, text: &str) -> Result<Mask, Fault> {
        let (whole, fraction) = match text.find('.') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        let mut parts = whole.split(':').map(|part| if part.is_empty() { Ok(0) } else { integer(part) });
        let mut next = || parts.next().transpose();
        let (first, second, third, more) = (next()?, next()?, next()?, next()?);
        self.microsecond = fraction.map_or(Ok(0), microseconds)?;
        (self.hour, self.minute, self.second) = match (first, second, third, fraction, more) {
            (Some(hour), Some(minute), Some(second), _, None) => (hour, minute, second),
            // With a fraction and one colon these are minutes and seconds.
            (Some(minute), Some(second), None, Some(_), _) => (0, minute, second),
            (Some(hour), Some(minute), None, None, _) => (hour, minute, 0),
            _ => return Err(Fault::Format),
        };
        if self.minute > 59 || self.second > 60 || self.time() > MICROSECONDS_PER_DAY || self.hour > 24 {
            return Err(Fault::Field);
        }
        Ok(TIME)
    }

    fn time(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * MICROSECONDS_PER_SECOND + self.microsecond
    }

    fn finish(mut self) -> Result<Decoded, Fault> {
        self.check_date()?;
        match self.afternoon {
            Some(_) if self.hour > 12 => return Err(Fault::Field),
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        if let Some(special) = self.special {
            return Ok(special);
        }
        if self.mask & DATE != DATE {
            return Err(Fault::Format);
        }
        let days = days_from_date(self.year, self.month, self.day);
        Ok(Decoded::At { days, time: self.time(), zone: self.zone })
    }

    fn check_date(&mut self) -> Result<(), Fault> {
        if self.mask & YEAR != 0 && !self.julian {
            if self.before_christ {
                if self.year <= 0 {
                    return Err(Fault::Field);
                }
                self.year = 1 - self.year;
            } else if self.short_year {
                self.year += match self.year {
                    ..70 => 2000,
                    70..100 => 1900,
                    _ => 0,
                };
            } else if self.year <= 0 {
                return Err(Fault::Field);
            }
        }
        if self.mask & DAY_OF_YEAR != 0 {
            let days = days_from_date(self.year, 1, 1) + self.day_of_year - 1;
            (self.year, self.month, self.day) = date_from_days(days);
        }
        let wrong_month = self.mask & MONTH != 0 && !(1..=12).contains(&self.month);
        let wrong_day = self.mask & DAY != 0 && !(1..=31).contains(&self.day);
        let none =
            self.mask & DATE == DATE && !wrong_month && self.day > days_in_month(self.year, self.month);
        if wrong_month || wrong_day || none { Err(Fault::Field) } else { Ok(()) }
    }
}

/// Digits as PostgreSQL's 32 bits hold them.
fn integer(digits: &str) -> Result<i64, Fault> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    digits.parse::<i32>().map(i64::from).map_err(|_| Fault::Field)
}

/// `.5` as microseconds, rounded as PostgreSQL rounds: as a double, halves to even.
fn microseconds(fraction: &str) -> Result<i64, Fault> {
    let digits = fraction.get(1..).unwrap_or("");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    let seconds: f64 = format!("0.{digits}0").parse().map_err(|_| Fault::Format)?;
    Ok((seconds * 1e6).round_ties_even() as i64)
}

fn signed(text: &str) -> Result<(bool, &str), Fault> {
    match text.as_bytes() {
        [b'-', ..] => Ok((true, &text[1..])),
        [b'+', ..] => Ok((false, &text[1..])),
        _ => Err(Fault::Format),
    }
}

/// Seconds east of UTC.
fn zone(negative: bool, text: &str) -> Result<i64, Fault> {
    let overflow = |fault| if fault == Fault::Field { Fault::Zone } else { fault };
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or("");
    let digits = first.find(|c: char| !c.is_ascii_digit()).unwrap_or(first.len());
    let mut hours = integer(&first[..digits]).map_err(overflow)?;
    let (mut minutes, mut seconds) = (0, 0);
    let rest = match parts.next() {
        Some(second) if digits == first.len() => {
            minutes = integer(second).map_err(overflow)?;
            if let Some(third) = parts.next() {
                seconds = integer(third).map_err(overflow)?;
            }
            parts.next().is_some()
        }
        other => {
            if digits == first.len() && other.is_none() && digits > 2 {
                (hours, minutes) = (hours / 100, hours % 100);
            }
            digits < first.len() || other.is_some()
        }
    };
    if hours > ZONE_HOURS_MAX || minutes > 59 || seconds > 59 {
        return Err(Fault::Zone);
    }
    if rest {
        return Err(Fault::Format);
    }
    let displacement = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { -displacement } else { displacement })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(text: &str) -> Result<i64, SqlError> {
        decode(text, "date").map(|decoded| match decoded {
            Decoded::At { days, .. } => days,
            other => panic!("{text}: {other:?}"),
        })
    }

    #[test]
    fn one_day_has_many_forms() {
        let day = days_from_date(1999, 1, 8);
        for text in [
            "1999-01-08",
            "January 8, 1999",
            "1/8/1999",
            "Jan-08-1999",
            "08-Jan-99",
            "1999.008",
            "J2451187",
            "19990108",
            "990108",
            "1999 08 Jan",
            "Friday, 8 jan 1999 10:11 PM",
            "y1999m1d8",
            "1999-008",
        ] {
            assert_eq!(days(text), Ok(day), "{text}");
        }
    }

    #[test]
    fn whatever_is_no_date_is_an_error() {
        for text in [
            "",
            "1999-01-32",
            "99/13/01",
            "J",
            "-",
            "1 2 3 4 5 6 7 8 9",
            "é",
            "1999-01-08 é",
            "10:11",
            "now",
            "99999999999-01-01",
            "1999-01-01 +99999999999",
            "1999-01-01 +",
            "infinity 1999-01-01 x",
        ] {
            assert!(decode(text, "date").is_err(), "{text}");
        }
        assert!(decode(&"1 ".repeat(64), "date").is_err());
        assert!(decode(&"1".repeat(1_000), "date").is_err());
    }
}
