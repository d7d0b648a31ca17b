//! Input of times with time zones, in all forms that PostgreSQL reads. A date in front of the time says which offset a zone has then.

use super::calendar::days_from_date;
use super::decode::{DATE, Decoder, ERA, Fault, HALF, MONTH, Mask, TIME, ZONE, error};
use super::decode_fields::{Field, Form, Unit, Word, fields_with};
use super::decode_number::{integer, signed, zone};
use super::{MICROSECONDS_PER_DAY, TimeTz};
use crate::SqlError;
use crate::session_format::session_zone;
use crate::time_zone::TimeZone;

const TYPE_NAME: &str = "time with time zone";
/// Seconds that `dst` behind a zone adds.
const SUMMER: i64 = 3_600;

/// Reads a `time with time zone`; without a zone in that of the session.
///
/// # Errors
/// `22007` where it is none, `22008` where a field is out of range, `22009` of a zone, `22023` where there is no such zone, `0A000` of
/// `now`, and where only a clock could say which offset a zone has.
pub(crate) fn parse_time_tz(text: &str) -> Result<TimeTz, SqlError> {
    let lower = text.to_ascii_lowercase();
    // Where a name of UTC has a digit behind it, that is its offset.
    let is_word = |word: &str| Word::named(word).is_some_and(|word| word != Word::Utc);
    let found = fields_with(&lower, is_word).map_err(Refusal::Fault);
    let found = found.and_then(|fields| Reader::default().read(&fields));
    found.map_err(|refusal| match refusal {
        Refusal::Fault(fault) => error(fault, text, TYPE_NAME),
        Refusal::Other(error) => error,
    })
}

/// Why a text is none.
enum Refusal {
    Fault(Fault),
    Other(SqlError),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal::Fault(fault)
    }
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Refusal {
        Refusal::Other(error)
    }
}

#[derive(Default)]
struct Reader {
    decoder: Decoder,
    /// The zone that is named.
    zone: Option<TimeZone>,
    /// By an abbreviation.
    is_abbreviated: bool,
    /// `dst` stands there.
    is_summer: bool,
    /// What it adds to the zone in front of it.
    summer: i64,
}

impl Reader {
    fn read(mut self, fields: &[Field<'_>]) -> Result<TimeTz, Refusal> {
        for place in 0..fields.len() {
            let Some(found) = self.field(fields, place)? else { continue };
            if found & self.decoder.mask != 0 {
                return Err(Fault::Format.into());
            }
            self.decoder.mask |= found;
        }
        self.finish()
    }

    /// What a field says; `None` where it says nothing.
    fn field(&mut self, fields: &[Field<'_>], place: usize) -> Result<Option<Mask>, Refusal> {
        let field = fields[place];
        let is_before_zone =
            place == 0 && fields.len() > 1 && fields.last().map(|last| last.form) == Some(Form::Date);
        Ok(Some(match field.form {
            Form::Date
                if is_before_zone
                    || (place == 0 && fields.get(1).map(|next| next.form) == Some(Form::Time)) =>
            {
                self.decoder.separated(field.text)?
            }
            Form::Date => self.zone_field(field.text)?,
            Form::Time => {
                self.decoder.unit = None;
                self.decoder.clock_of_any_hour(field.text)?
            }
            Form::Zone => {
                self.decoder.zone = zone(field.negative, field.text)?;
                ZONE
            }
            Form::Number => self.number_field(field.text, is_before_zone)?,
            Form::SignedWord => return Err(Fault::Format.into()),
            Form::Word => return self.word(field.text, fields.get(place + 1)),
        }))
    }

    /// Digits of a time and its offset, or the name of a zone.
    fn zone_field(&mut self, text: &str) -> Result<Mask, Refusal> {
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            self.zone = Some(TimeZone::named(text)?);
            return Ok(ZONE);
        }
        let at = text.find('-').filter(|_| self.decoder.mask & TIME != TIME).ok_or(Fault::Format)?;
        let (negative, displacement) = signed(&text[at..])?;
        self.decoder.zone = zone(negative, displacement)?;
        Ok(self.decoder.concatenated(&text[..at], self.decoder.mask | DATE)? | ZONE)
    }

    fn number_field(&mut self, text: &str, is_before_zone: bool) -> Result<Mask, Fault> {
        let (whole, fraction) = match text.find('.') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        let mask = self.decoder.mask | DATE;
        if let Some(unit) = self.decoder.unit.take() {
            if unit == Unit::Month && fraction.is_none() {
                // Here it never stands for minutes.
                self.decoder.month = integer(whole)?;
                return Ok(MONTH);
            }
            return self.decoder.labelled(unit, text, whole, fraction);
        }
        match fraction {
            Some(_) if is_before_zone => self.decoder.separated(text),
            Some(_) if whole.len() <= 2 => Err(Fault::Format),
            _ => self.decoder.concatenated(text, mask),
        }
    }

    fn word(&mut self, word: &str, next: Option<&Field<'_>>) -> Result<Option<Mask>, Refusal> {
        Ok(Some(match Word::named(word) {
            Some(Word::Filler) => return Ok(None),
            Some(Word::Clock(word @ "now")) => return Err(Fault::Clock(word).into()),
            Some(Word::Midnight) => TIME | ZONE,
            Some(Word::Afternoon(afternoon)) => {
                self.decoder.afternoon = Some(afternoon);
                HALF
            }
            Some(Word::BeforeChrist(before_christ)) => {
                self.decoder.before_christ = before_christ;
                ERA
            }
            Some(Word::Unit(unit)) => {
                self.decoder.unit = Some(unit);
                0
            }
            Some(Word::Time) => {
                if !next.is_some_and(|next| matches!(next.form, Form::Number | Form::Time | Form::Date)) {
                    return Err(Fault::Format.into());
                }
                self.decoder.unit = Some(Unit::Time);
                0
            }
            Some(Word::Other) if word == "dst" && !self.is_summer => {
                (self.is_summer, self.summer) = (true, SUMMER);
                0
            }
            None | Some(Word::Utc) => {
                let zone = TimeZone::known(word)?.ok_or(Fault::Format)?;
                self.is_abbreviated = matches!(zone, TimeZone::Fixed(_));
                self.zone = Some(zone);
                self.summer = 0;
                ZONE
            }
            Some(_) => return Err(Fault::Format.into()),
        }))
    }

    fn finish(mut self) -> Result<TimeTz, Refusal> {
        self.decoder.check_date()?;
        self.decoder.count_hours_to_24()?;
        let Decoder { mask, hour, minute, second, .. } = self.decoder;
        let time = self.decoder.time();
        if hour > 24 || minute > 59 || second > 60 || time > MICROSECONDS_PER_DAY {
            return Err(Fault::Field.into());
        }
        if mask & TIME != TIME {
            return Err(Fault::Format.into());
        }
        TimeTz::new(time, self.east(time)? + self.summer).map_err(|_| Fault::Zone.into())
    }

    /// Seconds east of UTC.
    fn east(&self, time: i64) -> Result<i64, Refusal> {
        let Decoder { mask, year, month, day, .. } = self.decoder;
        // Beyond all timestamps PostgreSQL takes UTC.
        let moment = || {
            let days = days_from_date(year, month, day);
            days.checked_mul(MICROSECONDS_PER_DAY)?.checked_add(time)
        };
        let displacement = |zone: TimeZone| moment().map_or(0, |local| zone.displacement_of_local(local));
        let has_date = mask & DATE == DATE;
        if mask & ZONE != 0 {
            let Some(zone) = self.zone else { return Ok(self.decoder.zone) };
            if self.is_summer && !self.is_abbreviated {
                return Err(Fault::Format.into());
            }
            let of_date = || has_date.then(|| displacement(zone));
            return Ok(zone.only_displacement().or_else(of_date).ok_or(Fault::Format)?);
        }
        match () {
            () if self.is_summer => Err(Fault::Format.into()),
            () if has_date => Ok(displacement(session_zone())),
            () if mask & DATE != 0 => Err(Fault::Format.into()),
            () => Ok(session_zone().lasting_displacement()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_format::{SessionFormat, within_format};
    use crate::{DataType, SqlState, Value, cast, format_value, parse_value};

    fn read_in(zone: &str, text: &str) -> Result<String, SqlState> {
        let zone = TimeZone::of_setting(zone).expect("a zone");
        within_format(SessionFormat { zone, ..SessionFormat::default() }, || {
            let read = parse_value(text, DataType::TimeTz).map_err(|error| error.state);
            read.map(|value| format_value(&value).expect("not NULL"))
        })
    }

    /// What PostgreSQL 15 answers, but for the zone whose clocks change: there it asks what time it is.
    #[test]
    fn a_time_without_a_zone_is_of_the_session() {
        for (zone, text, expected) in [
            ("UTC", "12:00", Ok("12:00:00+00")),
            ("Asia/Tokyo", "12:00", Ok("12:00:00+09")),
            ("-3.5", "12:00", Ok("12:00:00-03:30")),
            ("Europe/Berlin", "2026-01-05 12:00", Ok("12:00:00+01")),
            ("Europe/Berlin", "2026-07-05 12:00", Ok("12:00:00+02")),
            ("Europe/Berlin", "12:00+05", Ok("12:00:00+05")),
            ("Europe/Berlin", "12:00", Err(SqlState::FEATURE_NOT_SUPPORTED)),
            ("Europe/Moscow", "12:00", Ok("12:00:00+03")),
            ("UTC", "12:00 msk", Err(SqlState::FEATURE_NOT_SUPPORTED)),
            ("UTC", "now", Err(SqlState::FEATURE_NOT_SUPPORTED)),
            ("-100", "12:00", Err(SqlState(*b"22009"))),
        ] {
            let found = read_in(zone, text);
            assert_eq!(found.as_deref().map_err(|state| *state), expected, "{zone} {text}");
        }
    }

    #[test]
    fn times_are_cast_in_the_zone_of_the_session() {
        let zone = TimeZone::of_setting("Europe/Berlin").expect("a zone");
        within_format(SessionFormat { zone, ..SessionFormat::default() }, || {
            let instant = parse_value("2026-07-01 10:00+00", DataType::TimestampTz).expect("an instant");
            let time = cast(instant, DataType::TimeTz).expect("a time");
            assert_eq!(format_value(&time).as_deref(), Some("12:00:00+02"));
            assert_eq!(cast(time, DataType::Time), Ok(Value::Time(12 * 3_600_000_000)));
            let unknown = cast(Value::Time(0), DataType::TimeTz).expect_err("summer or winter");
            assert_eq!(unknown.state, SqlState::FEATURE_NOT_SUPPORTED);
            assert_eq!(cast(Value::TimestampTz(i64::MAX), DataType::TimeTz), Ok(Value::Null));
        });
    }
}
