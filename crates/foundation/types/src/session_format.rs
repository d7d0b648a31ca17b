//! How a session reads and writes values: its time zone, the form of dates and of intervals, the digits of doubles. Whoever binds or
//! evaluates something for a session does that within its format; everything else is in UTC and in the forms that a session begins
//! with. What a transaction is read in stands in what its client has signed, so all nodes have the same.

use crate::time_zone::TimeZone;
use crate::{SqlError, SqlState};
use std::cell::Cell;
use std::fmt;

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
}

/// How dates are written, and in which order their numbers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateStyle {
    /// How they are written.
    pub form: DateForm,
    /// How they are read.
    pub order: DateOrder,
}

/// How dates are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateForm {
    /// `1997-12-17 07:37:16+00`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16 UTC`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 UTC`
    Postgres,
    /// `17.12.1997 07:37:16 UTC`
    German,
}

/// In which order the numbers of a date are read, where none of them can only be the year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// `MDY`
    #[default]
    MonthDayYear,
    /// `DMY`
    DayMonthYear,
    /// `YMD`
    YearMonthDay,
}

/// How intervals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 year 2 mons -3 days +04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 -3 +4:05:06`; a sign in front counts for all that is read behind it.
    SqlStandard,
    /// `P1Y2M-3DT4H5M6S`
    Iso8601,
}

/// How many digits doubles have, from −15 to 3: above 0 the shortest that are read back as the same, otherwise 15, or 6 of a `real`, and
/// so many more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatDigits(i8);

impl Default for FloatDigits {
    fn default() -> FloatDigits {
        FloatDigits(1)
    }
}

#[cold]
fn invalid(parameter: &str, text: &str) -> SqlError {
    let shown: String = text.chars().take(64).collect();
    let message = format!("invalid value for parameter \"{parameter}\": \"{shown}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl DateStyle {
    /// What a setting makes of this one: words that name a form, an order, or both.
    ///
    /// # Errors
    /// `22023` for another word, and for two of one kind.
    pub fn changed_by(self, text: &str) -> Result<DateStyle, SqlError> {
        let (mut form, mut order, mut style) = (None, None, self);
        for word in text.split(',') {
            let word = word.trim().to_ascii_uppercase();
            let mut has_form = |named| form.replace(named).is_none_or(|known| known == named);
            let mut has_order = |named| order.replace(named).is_none_or(|known| known == named);
            let agrees = match word.as_str() {
                "ISO" => has_form(DateForm::Iso),
                "SQL" => has_form(DateForm::Sql),
                "GERMAN" => has_form(DateForm::German),
                word if word.starts_with("POSTGRES") => has_form(DateForm::Postgres),
                "YMD" => has_order(DateOrder::YearMonthDay),
                "DMY" => has_order(DateOrder::DayMonthYear),
                "MDY" | "US" => has_order(DateOrder::MonthDayYear),
                word if word.starts_with("EURO") => has_order(DateOrder::DayMonthYear),
                word if word.starts_with("NONEURO") => has_order(DateOrder::MonthDayYear),
                "DEFAULT" => {
                    style = DateStyle::default();
                    true
                }
                other => {
                    let detail = format!("Unrecognized key word: \"{}\".", other.to_ascii_lowercase());
                    return Err(invalid("DateStyle", text).detail(detail));
                }
            };
            if !agrees {
                return Err(invalid("DateStyle", text).detail("Conflicting \"datestyle\" specifications."));
            }
        }
        let german = (form == Some(DateForm::German)).then_some(DateOrder::DayMonthYear);
        Ok(DateStyle { form: form.unwrap_or(style.form), order: order.or(german).unwrap_or(style.order) })
    }
}

impl fmt::Display for DateStyle {
    /// As SHOW shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            DateForm::Iso => "ISO",
            DateForm::Sql => "SQL",
            DateForm::Postgres => "Postgres",
            DateForm::German => "German",
        };
        let order = match self.order {
            DateOrder::MonthDayYear => "MDY",
            DateOrder::DayMonthYear => "DMY",
            DateOrder::YearMonthDay => "YMD",
        };
        write!(f, "{form}, {order}")
    }
}

impl IntervalStyle {
    const ALL: [IntervalStyle; 4] = [
        IntervalStyle::Postgres,
        IntervalStyle::PostgresVerbose,
        IntervalStyle::SqlStandard,
        IntervalStyle::Iso8601,
    ];

    /// The style that a setting names.
    ///
    /// # Errors
    /// `22023` for none.
    pub fn of_setting(text: &str) -> Result<IntervalStyle, SqlError> {
        let found =
            IntervalStyle::ALL.into_iter().find(|style| style.name().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| {
            let names = IntervalStyle::ALL.map(IntervalStyle::name).join(", ");
            invalid("IntervalStyle", text).hint(format!("Available values: {names}."))
        })
    }

    /// As SHOW shows it.
    pub fn name(self) -> &'static str {
        match self {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::PostgresVerbose => "postgres_verbose",
            IntervalStyle::SqlStandard => "sql_standard",
            IntervalStyle::Iso8601 => "iso_8601",
        }
    }
}

impl FloatDigits {
    /// What a setting says.
    ///
    /// # Errors
    /// `22023` for what is no number from −15 to 3.
    pub fn of_setting(text: &str) -> Result<FloatDigits, SqlError> {
        let number: i64 = text.trim().parse().map_err(|_| invalid("extra_float_digits", text))?;
        match number {
            // All of them are read back as the same.
            1..=3 => Ok(FloatDigits(1)),
            -15..=0 => Ok(FloatDigits(number as i8)),
            _ => {
                let message = format!(
                    "{number} is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)"
                );
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        }
    }

    /// The digits of a number that has so many for certain; `None`: as many as it takes.
    pub(crate) fn of(self, certain: i8) -> Option<usize> {
        (self.0 <= 0).then(|| usize::try_from(certain + self.0).unwrap_or(0).max(1))
    }
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
            statements.push_str(&format!("SET extra_float_digits TO '{}';", self.float_digits.0));
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
            _ => return Ok(None),
        }))
    }

    /// The value of one of these settings, as SHOW shows it.
    pub fn setting(&self, name: &str) -> Option<String> {
        Some(match name.to_ascii_lowercase().as_str() {
            "timezone" => self.zone.name(),
            "datestyle" => self.dates.to_string(),
            "intervalstyle" => self.intervals.name().to_string(),
            "extra_float_digits" => self.float_digits.0.to_string(),
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
            float_digits: FloatDigits(1),
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
    fn a_date_style_is_named_by_its_form_and_its_order() {
        let style = |text: &str| DateStyle::default().changed_by(text).map(|style| style.to_string());
        for (text, shown) in [
            ("ISO", "ISO, MDY"),
            ("iso, dmy", "ISO, DMY"),
            ("German", "German, DMY"),
            ("german, ymd", "German, YMD"),
            ("postgresql", "Postgres, MDY"),
            ("SQL, European", "SQL, DMY"),
            ("US", "ISO, MDY"),
            ("default", "ISO, MDY"),
        ] {
            assert_eq!(style(text).as_deref(), Ok(shown), "{text}");
        }
        for text in ["", "ISO, SQL", "DMY, MDY", "x", "ISO DMY"] {
            assert_eq!(
                style(text).map_err(|error| error.state),
                Err(SqlState::INVALID_PARAMETER_VALUE),
                "{text}"
            );
        }
        let german = DateStyle::default().changed_by("German").expect("a style");
        assert_eq!(german.changed_by("YMD").expect("an order").to_string(), "German, YMD");
    }

    #[test]
    fn what_settings_show_is_read_again() {
        for (name, values) in [
            ("IntervalStyle", &["postgres", "postgres_verbose", "sql_standard", "iso_8601"][..]),
            ("extra_float_digits", &["1", "0", "-15"]),
            ("DateStyle", &["ISO, MDY", "Postgres, YMD", "German, DMY", "SQL, DMY"]),
            ("TimeZone", &["UTC", "Europe/Berlin", "<-03:30>+03:30"]),
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
        ] {
            assert!(SessionFormat::default().changed_by(name, value).is_err(), "{name} {value}");
        }
        assert_eq!(SessionFormat::default().changed_by("work_mem", "1"), Ok(None));
    }
}
