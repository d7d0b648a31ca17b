//! What the numbers of a date mean: it depends on their length and on what has been found before.

use super::calendar::date_from_days;
use super::decode::{
    DATE, DAY, DAY_OF_YEAR, Decoder, Fault, HOUR, MINUTE, MONTH, Mask, SECOND, TIME, YEAR, ZONE,
};
use super::decode_fields::{Unit, Word};
use super::decode_number::{integer, microseconds, signed, zone};
use super::{EPOCH_JULIAN, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND};
use crate::session_format::{DateOrder, session_format};

impl Decoder {
    /// A field with separators: a date, or behind one a time with its zone, or the name of a zone.
    pub(super) fn date_field(&mut self, text: &str) -> Result<Mask, Fault> {
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
    pub(super) fn separated(&mut self, text: &str) -> Result<Mask, Fault> {
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

    pub(super) fn number_field(&mut self, text: &str) -> Result<Mask, Fault> {
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
    pub(super) fn labelled(
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

    pub(super) fn set_julian(&mut self, day: i64) -> Result<(), Fault> {
        if day < 0 {
            return Err(Fault::Field);
        }
        (self.year, self.month, self.day) = date_from_days(day - EPOCH_JULIAN);
        self.julian = true;
        Ok(())
    }

    /// A number alone: what it is depends on what is there.
    pub(super) fn number(&mut self, text: &str, text_month: bool, mask: Mask) -> Result<Mask, Fault> {
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
        let (long, order) = (text.len() >= 3, session_format().dates.order);
        let found = match mask & DATE {
            0 if long || order == DateOrder::YearMonthDay => YEAR,
            0 if order == DateOrder::DayMonthYear => DAY,
            0 => MONTH,
            YEAR => MONTH,
            MONTH if text_month && (long || order == DateOrder::YearMonthDay) => YEAR,
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
    pub(super) fn concatenated(&mut self, text: &str, mask: Mask) -> Result<Mask, Fault> {
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
}
