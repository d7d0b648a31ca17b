//! Time zones: which displacement from UTC a place has had when. The IANA database is compiled in, so that every node answers
//! alike; a release with other rules is another execution version.

mod database;

use crate::datetime::{MICROSECONDS_PER_SECOND, check_timestamp, is_finite_timestamp};
use crate::{SqlError, SqlState};

/// How many seconds east of UTC.
pub type Displacement = i64;

/// Seconds of an hour.
const HOUR: i64 = 3_600;
/// What a displacement may be at most: 167 hours, as in POSIX.
const POSIX_HOURS_MAX: i64 = 167;
/// What PostgreSQL reads in front of a time at most.
const ISO_HOURS_MAX: i64 = 15;

/// A time zone.
#[derive(Clone, Copy, Debug)]
pub enum TimeZone {
    /// Always the same displacement.
    Fixed(Displacement),
    /// A place with a history of displacements.
    Named(&'static database::Zone),
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        match (self, other) {
            (TimeZone::Fixed(own), TimeZone::Fixed(other)) => own == other,
            // Each stands once in the database.
            (TimeZone::Named(own), TimeZone::Named(other)) => std::ptr::eq(*own, *other),
            _ => false,
        }
    }
}

impl Eq for TimeZone {}

impl Default for TimeZone {
    fn default() -> TimeZone {
        TimeZone::UTC
    }
}

impl TimeZone {
    /// Coordinated Universal Time.
    pub const UTC: TimeZone = TimeZone::Fixed(0);

    /// The zone that a session's setting names: hours to the east, `2` and `-3.5`, an interval as SET writes one, a name of the IANA
    /// database in any case, or a POSIX displacement.
    ///
    /// # Errors
    /// `22023` for none.
    pub fn of_setting(text: &str) -> Result<TimeZone, SqlError> {
        let invalid = || {
            let shown: String = text.chars().take(64).collect();
            let message = format!("invalid value for parameter \"TimeZone\": \"{shown}\"");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .hint("Write a name of the IANA database, such as 'Europe/Berlin', or the hours to the east.")
        };
        let is_number = |character: char| character.is_ascii_digit() || matches!(character, '+' | '-' | '.');
        if !text.is_empty() && text.chars().all(is_number) {
            let hours: f64 = text.parse().map_err(|_| invalid())?;
            let seconds = (hours * HOUR as f64).round();
            let is_displacement = seconds.abs() <= (POSIX_HOURS_MAX * HOUR) as f64;
            return is_displacement.then_some(TimeZone::Fixed(seconds as i64)).ok_or_else(invalid);
        }
        // `INTERVAL '-08:00' HOUR TO MINUTE`, whose quotes have gone.
        if let Some(interval) = text.get(..9).filter(|word| word.eq_ignore_ascii_case("INTERVAL ")) {
            let is_part = |next: char| next.is_ascii_digit() || matches!(next, '+' | '-' | ':');
            let hours = text[interval.len()..].trim_start();
            let hours = &hours[..hours.find(|next| !is_part(next)).unwrap_or(hours.len())];
            let east = signed_displacement(hours).or_else(|| displacement(hours)).ok_or_else(invalid)?;
            return (east.abs() <= POSIX_HOURS_MAX * HOUR)
                .then_some(TimeZone::Fixed(east))
                .ok_or_else(invalid);
        }
        if text.eq_ignore_ascii_case("UTC") {
            return Ok(TimeZone::UTC);
        }
        let zone = database::zone(text).map(TimeZone::Named);
        zone.or_else(|| posix_displacement(text).map(TimeZone::Fixed)).ok_or_else(invalid)
    }

    /// Whether it is UTC by one of its names.
    pub fn is_always_utc(&self) -> bool {
        const NAMES: [&str; 8] =
            ["GMT", "Etc/GMT", "Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Greenwich"];
        *self == TimeZone::UTC || NAMES.contains(&self.name().as_str())
    }

    /// As SHOW shows it: [`TimeZone::of_setting`] reads it again.
    pub fn name(&self) -> String {
        match self {
            TimeZone::Fixed(0) => "UTC".to_string(),
            TimeZone::Fixed(east) => format!("<{}>{}", shown_displacement(*east), shown_displacement(-east)),
            TimeZone::Named(zone) => zone.name().to_string(),
        }
    }

    /// What its clocks are called at an instant: `CEST`.
    pub fn abbreviation_at(&self, instant: i64) -> String {
        match self {
            TimeZone::Fixed(0) => "UTC".to_string(),
            TimeZone::Fixed(east) => shown_displacement(*east),
            TimeZone::Named(zone) => zone.abbreviation_at(instant.div_euclid(MICROSECONDS_PER_SECOND)),
        }
    }

    /// The zone that a text names as `AT TIME ZONE` reads it: an abbreviation, a name of the IANA database in any case, or a POSIX
    /// displacement, which counts to the west: `UTC+3`, `-5:30`.
    ///
    /// # Errors
    /// `22023` for none; `0A000` for an abbreviation that has meant several displacements.
    pub fn named(text: &str) -> Result<TimeZone, SqlError> {
        match TimeZone::known(text)? {
            Some(zone) => Ok(zone),
            None => posix_displacement(text).map(TimeZone::Fixed).ok_or_else(|| not_recognized(text)),
        }
    }

    /// As functions that make a timestamp read it: a displacement counts to the east there: `+2`.
    ///
    /// # Errors
    /// As [`TimeZone::named`]; `22023` also for a displacement without a sign, `22009` for one that is too large.
    pub fn of_parts(text: &str) -> Result<TimeZone, SqlError> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let message = format!("invalid input syntax for type numeric time zone: \"{text}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
                .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
        }
        let Some(displacement) = signed_displacement(text) else { return TimeZone::named(text) };
        if displacement.abs() > ISO_HOURS_MAX * HOUR + HOUR - 1 {
            let message = format!("numeric time zone \"{text}\" out of range");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        Ok(TimeZone::Fixed(displacement))
    }

    /// The zone that an abbreviation stands for, or a name of the IANA database in any case.
    ///
    /// # Errors
    /// `0A000` for an abbreviation that has meant several displacements.
    pub(crate) fn known(text: &str) -> Result<Option<TimeZone>, SqlError> {
        match database::abbreviation(text) {
            Some(database::Abbreviation::Fixed(displacement)) => {
                return Ok(Some(TimeZone::Fixed(displacement)));
            }
            Some(database::Abbreviation::Changed(zone)) => {
                let what =
                    format_args!("the abbreviation \"{text}\", which has meant several displacements,");
                return Err(
                    SqlError::unsupported(what).hint(format!("Write the name of the time zone: {zone}."))
                );
            }
            None => {}
        }
        Ok(database::zone(text).map(TimeZone::Named))
    }

    /// The displacement that it has had at all times; `None` where it has had several.
    pub(crate) fn only_displacement(&self) -> Option<Displacement> {
        match self {
            TimeZone::Fixed(displacement) => Some(*displacement),
            TimeZone::Named(zone) => zone.only_displacement(),
        }
    }

    /// The displacement that it has from the year 2026 on, where it always has the same one.
    ///
    /// # Errors
    /// `0A000` where clocks are put forward and back: which displacement is meant would be for a clock to say.
    pub fn lasting_displacement(&self) -> Result<Displacement, SqlError> {
        let zone = match self {
            TimeZone::Fixed(displacement) => return Ok(*displacement),
            TimeZone::Named(zone) => zone,
        };
        zone.lasting_displacement().ok_or_else(|| {
            let name = zone.name();
            SqlError::unsupported(format_args!(
                "a time without a date in the time zone \"{name}\", whose clocks change,"
            ))
            .hint("Write the displacement: 23:01:02+01.")
        })
    }

    /// The displacement with which clocks there show that, microseconds since 2000-01-01 00:00.
    pub(crate) fn displacement_of_local(&self, local: i64) -> Displacement {
        match self {
            TimeZone::Fixed(displacement) => *displacement,
            TimeZone::Named(zone) => zone.displacement_of_local(local.div_euclid(MICROSECONDS_PER_SECOND)),
        }
    }

    /// The displacement at an instant, microseconds since 2000-01-01 00:00 UTC.
    pub fn displacement_at(&self, instant: i64) -> Displacement {
        match self {
            TimeZone::Fixed(displacement) => *displacement,
            TimeZone::Named(zone) => zone.displacement_at(instant.div_euclid(MICROSECONDS_PER_SECOND)),
        }
    }

    /// What clocks show there at an instant, both in microseconds since 2000-01-01 00:00.
    ///
    /// # Errors
    /// `22008` where it is out of range.
    pub fn local_of(&self, instant: i64) -> Result<i64, SqlError> {
        match is_finite_timestamp(instant) {
            true => moved(instant, self.displacement_at(instant)),
            false => Ok(instant),
        }
    }

    /// When clocks show that there. What they never show, because they are put forward, is read by the displacement before; what they
    /// show twice is the second time.
    ///
    /// # Errors
    /// `22008` where it is out of range.
    pub fn instant_of(&self, local: i64) -> Result<i64, SqlError> {
        if !is_finite_timestamp(local) {
            return Ok(local);
        }
        moved(local, -self.displacement_of_local(local))
    }

    /// The begin of the hour, day, month … of an instant as clocks show it there. `truncate` gives that of what they show; what is
    /// shorter than a day keeps its displacement.
    ///
    /// # Errors
    /// `22008`, and those of `truncate`.
    pub fn truncated(
        &self,
        instant: i64,
        is_within_a_day: bool,
        truncate: impl FnOnce(i64) -> Result<i64, SqlError>,
    ) -> Result<i64, SqlError> {
        let begin = truncate(self.local_of(instant)?)?;
        match is_within_a_day {
            true => moved(begin, -self.displacement_at(instant)),
            false => self.instant_of(begin),
        }
    }
}

/// `+02`, `-05:30`, `+00:53:28`, as stands behind an instant.
pub(crate) fn shown_displacement(east: Displacement) -> String {
    let (sign, seconds) = (if east < 0 { '-' } else { '+' }, east.abs());
    let (hours, minutes, seconds) = (seconds / HOUR, seconds / 60 % 60, seconds % 60);
    match (minutes, seconds) {
        (0, 0) => format!("{sign}{hours:02}"),
        (_, 0) => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// So many seconds later.
fn moved(timestamp: i64, seconds: Displacement) -> Result<i64, SqlError> {
    check_timestamp(timestamp.checked_add(seconds * MICROSECONDS_PER_SECOND))
}

#[cold]
fn not_recognized(text: &str) -> SqlError {
    let shown: String = text.chars().take(64).collect();
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{shown}\" not recognized"))
        .hint("Write a name of the IANA database, such as 'Europe/Berlin', or a displacement as an interval.")
}

/// `UTC+3` is three hours west, and so is `+3`. With rules for summer time it is none.
fn posix_displacement(text: &str) -> Option<Displacement> {
    let rest = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()),
    };
    let signed = match rest.starts_with(|first: char| first.is_ascii_digit()) {
        true => displacement(rest)?,
        false => signed_displacement(rest)?,
    };
    (signed.abs() <= POSIX_HOURS_MAX * HOUR).then_some(-signed)
}

/// `+2`, `-05:30`, `+01:02:03`
fn signed_displacement(text: &str) -> Option<Displacement> {
    match text.as_bytes().first()? {
        b'+' => displacement(&text[1..]),
        b'-' => displacement(&text[1..]).map(|displacement| -displacement),
        _ => None,
    }
}

fn displacement(text: &str) -> Option<Displacement> {
    let mut seconds = 0;
    let mut unit = HOUR;
    for part in text.split(':') {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = is_number.then(|| part.parse().ok())??;
        if unit == 0 || (unit < HOUR && number > 59) {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    Some(seconds)
}
