//! How a session reads and writes values: its time zone, the form of dates and of intervals, the digits of doubles. Whoever binds or
//! evaluates something for a session does that within its format; everything else is in UTC and in the forms that a session begins
//! with. What a transaction is read in stands in what its client has signed, so all nodes have the same.

mod styles;

pub use styles::{DateForm, DateOrder, DateStyle, FloatDigits, IntervalStyle};

use crate::text_search::Configuration;
use crate::time_zone::TimeZone;
use crate::{SqlError, SqlState, ValueLimits};
use std::cell::Cell;

/// Settings of a session that change what values a text means, and how they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFormat {
    /// `TimeZone`: of instants.
    pub zone: TimeZone,
    /// `DateStyle`
    pub dates: DateStyle,
    /// `IntervalStyle`
    pub intervals: IntervalStyle,
    /// `extra_float_digits`
    pub float_digits: FloatDigits,
    /// `default_text_search_config`: what texts are read with where nothing is said. Since execution version 15.
    pub text_search: Configuration,
}

/// The setting of what texts are read with.
pub(crate) const TEXT_SEARCH: &str = "default_text_search_config";

/// The configuration that a setting names.
fn of_setting(name: &str) -> Result<Configuration, SqlError> {
    Configuration::named(name).map_err(|error| {
        let shown: String = name.chars().take(64).collect();
        let message = format!("invalid value for parameter \"{TEXT_SEARCH}\": \"{shown}\"");
        SqlError { state: SqlState::INVALID_PARAMETER_VALUE, message, ..error }
    })
}

impl SessionFormat {
    /// Whether it is the one that sessions begin with.
    pub fn is_default(&self) -> bool {
        *self == SessionFormat::default()
    }

    /// Statements that set what is not as at the beginning of a session, for the front of a script.
    pub(crate) fn statements(&self) -> String {
        let mut statements = String::new();
        if self.zone != TimeZone::UTC {
            statements.push_str(&format!("SET TIME ZONE '{}';", self.zone.name()));
        }
        if self.dates != DateStyle::default() {
            statements.push_str(&format!("SET DateStyle TO '{}';", self.dates));
        }
        if self.intervals != IntervalStyle::default() {
            statements.push_str(&format!("SET IntervalStyle TO '{}';", self.intervals.name()));
        }
        if self.float_digits != FloatDigits::default() {
            statements.push_str(&format!("SET extra_float_digits TO '{}';", self.float_digits.number()));
        }
        if self.text_search != Configuration::default() {
            statements.push_str(&format!("SET {TEXT_SEARCH} TO '{}';", self.text_search.name()));
        }
        statements
    }

    /// The same with a setting that is said to be this; `None` for a setting of something else.
    ///
    /// # Errors
    /// `22023` for a value that it cannot have.
    pub fn changed_by(self, name: &str, value: &str) -> Result<Option<SessionFormat>, SqlError> {
        Ok(Some(match name.to_ascii_lowercase().as_str() {
            "timezone" => SessionFormat { zone: TimeZone::of_setting(value)?, ..self },
            "datestyle" => SessionFormat { dates: self.dates.changed_by(value)?, ..self },
            "intervalstyle" => SessionFormat { intervals: IntervalStyle::of_setting(value)?, ..self },
            "extra_float_digits" => SessionFormat { float_digits: FloatDigits::of_setting(value)?, ..self },
            TEXT_SEARCH => SessionFormat { text_search: of_setting(value)?, ..self },
            _ => return Ok(None),
        }))
    }

    /// The value of one of these settings, as SHOW shows it.
    pub fn setting(&self, name: &str) -> Option<String> {
        Some(match name.to_ascii_lowercase().as_str() {
            "timezone" => self.zone.name(),
            "datestyle" => self.dates.to_string(),
            "intervalstyle" => self.intervals.name().to_string(),
            "extra_float_digits" => self.float_digits.number().to_string(),
            TEXT_SEARCH => format!("pg_catalog.{}", self.text_search.name()),
            _ => return None,
        })
    }
}

thread_local! {
    /// Of what is running on this thread.
    static FORMAT: Cell<SessionFormat> = const {
        Cell::new(SessionFormat {
            zone: TimeZone::UTC,
            dates: DateStyle { form: DateForm::Iso, order: DateOrder::MonthDayYear },
            intervals: IntervalStyle::Postgres,
            float_digits: FloatDigits::SHORTEST,
            text_search: Configuration::English,
        })
    };
}

/// Puts back the format around it, also where something panics.
struct Around(SessionFormat);

impl Drop for Around {
    fn drop(&mut self) {
        FORMAT.set(self.0);
    }
}

/// Runs something within a format.
#[inline]
pub fn within_format<R>(format: SessionFormat, run: impl FnOnce() -> R) -> R {
    let _around = Around(FORMAT.replace(format));
    run()
}

/// All that an expression is evaluated within: what goes on later, at its place in the order, goes on within the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    format: SessionFormat,
    limits: ValueLimits,
}

impl Surroundings {
    /// Those of what is running.
    #[inline]
    pub fn here() -> Surroundings {
        Surroundings { format: session_format(), limits: ValueLimits::here() }
    }

    /// Runs something within them.
    #[inline]
    pub fn within<R>(self, run: impl FnOnce() -> R) -> R {
        self.limits.within(|| within_format(self.format, run))
    }
}

/// The format of what is running.
#[inline]
pub fn session_format() -> SessionFormat {
    FORMAT.get()
}

/// The time zone of what is running.
#[inline]
pub fn session_zone() -> TimeZone {
    FORMAT.get().zone
}

/// What clocks of the session's zone show at an instant.
///
/// # Errors
/// `22008` where it is out of range.
#[inline]
pub fn session_local_of(instant: i64) -> Result<i64, SqlError> {
    match session_zone() {
        TimeZone::Fixed(0) => Ok(instant),
        zone => zone.local_of(instant),
    }
}

/// When clocks of the session's zone show that.
///
/// # Errors
/// `22008` where it is out of range.
#[inline]
pub fn session_instant_of(local: i64) -> Result<i64, SqlError> {
    match session_zone() {
        TimeZone::Fixed(0) => Ok(local),
        zone => zone.instant_of(local),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_format_holds_for_what_runs_within_it() {
        let zone = TimeZone::of_setting("europe/berlin").expect("known");
        let berlin = SessionFormat { zone, ..SessionFormat::default() };
        assert!(session_format().is_default());
        within_format(berlin, || {
            assert_eq!(session_zone(), zone);
            within_format(SessionFormat::default(), || assert_eq!(session_zone(), TimeZone::UTC));
            let failed = catch_unwind(AssertUnwindSafe(|| {
                within_format(SessionFormat::default(), || panic!("on purpose"))
            }));
            assert!(failed.is_err());
            assert_eq!(session_format(), berlin);
        });
        assert!(session_format().is_default());
    }

    #[test]
    fn what_settings_show_is_read_again() {
        for (name, values) in [
            ("IntervalStyle", &["postgres", "postgres_verbose", "sql_standard", "iso_8601"][..]),
            ("extra_float_digits", &["1", "0", "-15"]),
            ("DateStyle", &["ISO, MDY", "Postgres, YMD", "German, DMY", "SQL, DMY"]),
            ("TimeZone", &["UTC", "Europe/Berlin", "<-03:30>+03:30"]),
            ("default_text_search_config", &["pg_catalog.english", "pg_catalog.simple"]),
        ] {
            for value in values {
                let format =
                    SessionFormat::default().changed_by(name, value).expect("a value").expect("known");
                assert_eq!(format.setting(name).as_deref(), Some(*value));
            }
        }
        for (text, east) in
            [("INTERVAL +05:30hour to minute", 19_800), ("interval -3 hour", -10_800), ("Interval 2", 7_200)]
        {
            assert_eq!(TimeZone::of_setting(text), Ok(TimeZone::Fixed(east)), "{text}");
        }
        for (name, value) in [
            ("TimeZone", "interval "),
            ("TimeZone", "interval x"),
            ("TimeZone", "interval 1000"),
            ("TimeZone", ""),
            ("TimeZone", "é"),
            ("TimeZone", "-"),
            ("TimeZone", "1e9"),
            ("TimeZone", "Europe/Berlin; DROP"),
            ("IntervalStyle", "x"),
            ("extra_float_digits", "4"),
            ("extra_float_digits", "-16"),
            ("extra_float_digits", "x"),
            ("default_text_search_config", "klingon"),
        ] {
            assert!(SessionFormat::default().changed_by(name, value).is_err(), "{name} {value}");
        }
        assert_eq!(SessionFormat::default().changed_by("work_mem", "1"), Ok(None));
    }
}
