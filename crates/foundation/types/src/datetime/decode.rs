//! Input of dates and timestamps in all forms that PostgreSQL reads, in the order of the session's `DateStyle`: the text is cut into fields, and
//! what a number means depends on what has been found before it.

use super::calendar::{date_from_days, days_from_date, days_in_month};
use super::decode_fields::{Field, Form, Unit, Word, fields};
use super::decode_number::{integer, microseconds, zone};
use super::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND};
use crate::session_format::session_zone;
use crate::time_zone::TimeZone;
use crate::{SqlError, SqlState};

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// Days since 2000-01-01, microseconds since midnight, and seconds east of UTC, where it says that.
    At { days: i64, time: i64, zone: Option<i64> },
    /// `epoch`
    Epoch,
    /// `infinity`
    Infinity,
    /// `-infinity`
    NegativeInfinity,
}

/// Why a text is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
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
pub(super) fn error(fault: Fault, text: &str, type_name: &str) -> SqlError {
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
        (Fault::Format, "time with time zone") => error.hint("Write it as 23:01:02.123456+00."),
        (Fault::Format, "timestamp") => error.hint("Write it as 2026-11-20 23:01:02.123456."),
        (Fault::Format, _) if session_zone() == TimeZone::UTC => {
            error.hint("Write it as 2026-11-20 23:01:02.123456+00, in UTC where there is no zone.")
        }
        (Fault::Format, _) => error
            .hint("Write it as 2026-11-20 23:01:02.123456+00, in the session's zone where there is none."),
        _ => error,
    }
}

/// Which fields have been found, as bits.
pub(super) type Mask = u32;
pub(super) const YEAR: Mask = 1;
pub(super) const MONTH: Mask = 1 << 1;
pub(super) const DAY: Mask = 1 << 2;
pub(super) const DATE: Mask = YEAR | MONTH | DAY;
pub(super) const DAY_OF_YEAR: Mask = 1 << 3;
pub(super) const HOUR: Mask = 1 << 4;
pub(super) const MINUTE: Mask = 1 << 5;
pub(super) const SECOND: Mask = 1 << 6;
pub(super) const TIME: Mask = HOUR | MINUTE | SECOND;
pub(super) const ZONE: Mask = 1 << 7;
pub(super) const ERA: Mask = 1 << 8;
pub(super) const HALF: Mask = 1 << 9;
const WEEKDAY: Mask = 1 << 10;
const SPECIAL: Mask = 1 << 11;

/// What has been found.
#[derive(Default)]
pub(super) struct Decoder {
    pub(super) mask: Mask,
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) day_of_year: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) microsecond: i64,
    pub(super) zone: i64,
    pub(super) afternoon: Option<bool>,
    pub(super) before_christ: bool,
    /// The year was written with one or two digits.
    pub(super) short_year: bool,
    pub(super) julian: bool,
    pub(super) text_month: bool,
    /// What the number that follows is.
    pub(super) unit: Option<Unit>,
    pub(super) special: Option<Decoded>,
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

    fn clock(&mut self, text: &str) -> Result<Mask, Fault> {
        let found = self.clock_of_any_hour(text)?;
        match self.time() > MICROSECONDS_PER_DAY || self.hour > 24 {
            true => Err(Fault::Field),
            false => Ok(found),
        }
    }

    /// Hours, minutes and perhaps seconds with colons between.
    pub(super) fn clock_of_any_hour(&mut self, text: &str) -> Result<Mask, Fault> {
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
        if self.minute > 59 || self.second > 60 {
            return Err(Fault::Field);
        }
        Ok(TIME)
    }

    /// Microseconds since midnight.
    pub(super) fn time(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * MICROSECONDS_PER_SECOND + self.microsecond
    }

    fn finish(mut self) -> Result<Decoded, Fault> {
        self.check_date()?;
        self.count_hours_to_24()?;
        if let Some(special) = self.special {
            return Ok(special);
        }
        if self.mask & DATE != DATE {
            return Err(Fault::Format);
        }
        let days = days_from_date(self.year, self.month, self.day);
        let zone = (self.mask & ZONE != 0).then_some(self.zone);
        Ok(Decoded::At { days, time: self.time(), zone })
    }

    /// Takes `am` and `pm` into the hour.
    pub(super) fn count_hours_to_24(&mut self) -> Result<(), Fault> {
        match self.afternoon {
            Some(_) if self.hour > 12 => return Err(Fault::Field),
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn check_date(&mut self) -> Result<(), Fault> {
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
