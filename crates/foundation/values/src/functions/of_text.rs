//! `to_date` and `to_timestamp` of texts.

use crate::functions::template::{Case, DAYS, Field, MONTHS, Piece, parse};
use types::datetime::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, make_date};
use types::{SqlError, SqlState};

/// The fields that a text gives.
struct Read {
    year: i64,
    before_christ: bool,
    month: i64,
    day: i64,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    twelve_hours: bool,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    seconds_of_day: Option<i64>,
    microseconds: i64,
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message)
}

fn out_of_range(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// Days since 2000-01-01 and microseconds of the day.
///
/// # Errors
/// `22007` where the text does not have this form, `22008` where there is no such day or time; refuses the fields of
/// weeks by name.
pub(super) fn read(text: &str, template: &str) -> Result<(i32, i64), SqlError> {
    let pieces = parse(template)?;
    let mut fields = Read {
        year: 1,
        before_christ: false,
        month: 1,
        day: 1,
        day_of_year: None,
        julian: None,
        hour: 0,
        twelve_hours: false,
        afternoon: None,
        minute: 0,
        second: 0,
        seconds_of_day: None,
        microseconds: 0,
    };
    let mut year_given = false;
    let mut rest = text;
    for (position, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Quoted(_) => rest = skip_one(rest),
            Piece::Literal(character) if character.is_ascii_alphanumeric() => rest = skip_one(rest),
            // Separators and spaces stand for as many of them as there are.
            Piece::Literal(_) => rest = rest.trim_start_matches(is_separator),
            Piece::Field { field, case, plain, ordinal } => {
                rest = rest.trim_start_matches([' ', '\t', '\n']);
                if rest.is_empty() {
                    break;
                }
                // All digits where something else than a number follows.
                let open = *plain
                    || match pieces.get(position + 1) {
                        None => true,
                        Some(Piece::Literal(character) | Piece::Quoted(character)) => {
                            !character.is_ascii_digit()
                        }
                        Some(Piece::Field { field, .. }) => !is_number(*field),
                    };
                year_given |= matches!(field, Field::Year(_) | Field::YearWithComma);
                fields.read(*field, *case, &mut rest, open)?;
                if ordinal.is_some() {
                    rest = rest.get(2..).unwrap_or("");
                }
            }
        }
    }
    fields.finish(text, year_given)
}

fn skip_one(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

fn is_separator(character: char) -> bool {
    character.is_ascii_punctuation() || character.is_ascii_whitespace()
}

fn is_number(field: Field) -> bool {
    !matches!(
        field,
        Field::MonthName
            | Field::MonthAbbreviation
            | Field::DayName
            | Field::DayAbbreviation
            | Field::HalfDay(_)
            | Field::Era(_)
            | Field::Zone
    )
}

/// A number of at most so many digits, or of all where `open`; gives how many there were.
fn number(rest: &mut &str, width: usize, open: bool, field: &str) -> Result<(i64, usize), SqlError> {
    let (negative, digits) = match rest.strip_prefix('-') {
        Some(after) => (true, after),
        None => (false, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let available = digits.bytes().take_while(u8::is_ascii_digit).count();
    let count = if open { available } else { available.min(width) };
    if count == 0 {
        let shown: String = rest.chars().take(width).collect();
        return Err(
            invalid(format!("invalid value \"{shown}\" for \"{field}\"")).detail("Value must be an integer.")
        );
    }
    let value: i64 =
        digits[..count].parse().ok().filter(|value| *value <= i64::from(i32::MAX)).ok_or_else(|| {
            let message = format!("value for \"{field}\" in source string is out of range");
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
        })?;
    *rest = &digits[count..];
    Ok((if negative { -value } else { value }, count))
}

/// The position of the name that the text begins with.
fn name(rest: &mut &str, names: &[&str], shortened: bool, field: &str) -> Result<i64, SqlError> {
    let found = names.iter().position(|name| {
        let name = if shortened { &name[..3] } else { name };
        rest.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name))
    });
    match found {
        Some(index) => {
            *rest = &rest[if shortened { 3 } else { names[index].len() }..];
            Ok(index as i64)
        }
        None => {
            let shown: String = rest.chars().take_while(|character| !character.is_whitespace()).collect();
            Err(invalid(format!("invalid value \"{shown}\" for \"{field}\""))
                .detail("The given value did not match any of the allowed values for this field."))
        }
    }
}

impl Read {
    fn read(&mut self, field: Field, case: Case, rest: &mut &str, open: bool) -> Result<(), SqlError> {
        match field {
            Field::Year(4) => self.year = number(rest, 4, open, "YYYY")?.0,
            Field::Year(digits) => {
                let (year, given) = number(rest, usize::from(digits), open, "YY")?;
                // Of few digits it is the one next to 2020.
                self.year = match given {
                    1..=2 if digits < 3 && year < 70 => year + 2_000,
                    1..=2 if digits < 3 => year + 1_900,
                    3 if year < 520 => year + 2_000,
                    3 => year + 1_000,
                    1..=2 if year < 70 => year + 2_000,
                    1..=2 => year + 1_900,
                    _ => year,
                };
            }
            Field::YearWithComma => {
                let (thousands, _) = number(rest, 4, true, "Y,YYY")?;
                *rest = rest.strip_prefix(',').unwrap_or(rest);
                self.year = thousands * 1_000 + number(rest, 3, false, "Y,YYY")?.0;
            }
            Field::Month => self.month = number(rest, 2, open, "MM")?.0,
            Field::MonthName => self.month = name(rest, &MONTHS, false, &case.of("Month"))? + 1,
            Field::MonthAbbreviation => self.month = name(rest, &MONTHS, true, &case.of("Mon"))? + 1,
            Field::Day => self.day = number(rest, 2, open, "DD")?.0,
            Field::DayOfYear => self.day_of_year = Some(number(rest, 3, open, "DDD")?.0),
            Field::Julian => self.julian = Some(number(rest, 9, true, "J")?.0),
            // Which day of the week it is follows from the rest.
            Field::DayName => drop(name(rest, &DAYS, false, &case.of("Day"))?),
            Field::DayAbbreviation => drop(name(rest, &DAYS, true, &case.of("Dy"))?),
            Field::DayOfWeek => drop(number(rest, 1, open, "D")?),
            Field::Quarter => drop(number(rest, 1, open, "Q")?),
            Field::Hour24 => self.hour = number(rest, 2, open, "HH24")?.0,
            Field::Hour12 => {
                self.hour = number(rest, 2, open, "HH12")?.0;
                self.twelve_hours = true;
            }
            Field::Minute => self.minute = number(rest, 2, open, "MI")?.0,
            Field::Second => self.second = number(rest, 2, open, "SS")?.0,
            Field::SecondsOfDay => self.seconds_of_day = Some(number(rest, 5, open, "SSSS")?.0),
            Field::Millisecond => self.fraction(rest, 3, open, "MS")?,
            Field::Microsecond => self.fraction(rest, 6, open, "US")?,
            Field::Fraction(digits) => self.fraction(rest, usize::from(digits), open, "FF")?,
            Field::HalfDay(points) => {
                let names: &[&str] = if points { &["a.m.", "p.m."] } else { &["am", "pm"] };
                self.afternoon = Some(name(rest, names, false, &case.of("Am"))? == 1);
                self.twelve_hours = true;
            }
            Field::Era(points) => {
                let names: &[&str] = if points { &["a.d.", "b.c."] } else { &["ad", "bc"] };
                self.before_christ = name(rest, names, false, &case.of("Bc"))? == 1;
            }
            other => {
                let what = format_args!("the field {other:?} in the template of to_date or to_timestamp");
                return Err(SqlError::unsupported(what).hint("Use YYYY, MM and DD, or YYYY and DDD."));
            }
        }
        Ok(())
    }

    /// `5` is half a second whatever its unit.
    fn fraction(&mut self, rest: &mut &str, digits: usize, open: bool, field: &str) -> Result<(), SqlError> {
        let (value, given) = number(rest, digits, open && digits == 6, field)?;
        let scale = 6_u32.saturating_sub(given.min(6) as u32);
        self.microseconds = value * 10_i64.pow(scale);
        Ok(())
    }

    fn finish(mut self, text: &str, year_given: bool) -> Result<(i32, i64), SqlError> {
        if self.twelve_hours {
            if !(1..=12).contains(&self.hour) {
                let message = format!("hour \"{}\" is invalid for the 12-hour clock", self.hour);
                return Err(invalid(message).hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            self.hour = self.hour % 12 + if self.afternoon == Some(true) { 12 } else { 0 };
        }
        if let Some(seconds) = self.seconds_of_day {
            (self.hour, self.minute, self.second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        }
        let clock =
            (0..24).contains(&self.hour) && (0..60).contains(&self.minute) && (0..60).contains(&self.second);
        if !clock || !(0..MICROSECONDS_PER_SECOND).contains(&self.microseconds) {
            return Err(out_of_range(text));
        }
        let time =
            ((self.hour * 60 + self.minute) * 60 + self.second) * MICROSECONDS_PER_SECOND + self.microseconds;
        debug_assert!(time < MICROSECONDS_PER_DAY);
        if let Some(julian) = self.julian {
            let date = i32::try_from(julian - 2_451_545).map_err(|_| out_of_range(text))?;
            return Ok((date, time));
        }
        // Without a year it is 1 BC, as in PostgreSQL.
        let year = match (year_given, self.before_christ) {
            (false, _) => -1,
            (true, true) => -self.year,
            (true, false) => self.year,
        };
        let narrow = |number: i64| i32::try_from(number).map_err(|_| out_of_range(text));
        let year = narrow(year)?;
        let date = match self.day_of_year {
            Some(day) if year_given => {
                let first = make_date(year, 1, 1).map_err(|_| out_of_range(text))?;
                let last = make_date(year, 12, 31).map_err(|_| out_of_range(text))?;
                let date = first.checked_add(narrow(day - 1)?);
                date.filter(|date| day >= 1 && *date <= last).ok_or_else(|| out_of_range(text))?
            }
            Some(_) => {
                return Err(invalid("cannot calculate day of year without year information".to_string()));
            }
            None => {
                make_date(year, narrow(self.month)?, narrow(self.day)?).map_err(|_| out_of_range(text))?
            }
        };
        Ok((date, time))
    }
}
