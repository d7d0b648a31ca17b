//! The forms of dates, intervals and doubles that a session's settings name.

use crate::{SqlError, SqlState};
use std::fmt;

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
        FloatDigits::SHORTEST
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
    /// As many as it takes to read back the same.
    pub(super) const SHORTEST: FloatDigits = FloatDigits(1);

    /// What a setting says.
    ///
    /// # Errors
    /// `22023` for what is no number from −15 to 3.
    pub fn of_setting(text: &str) -> Result<FloatDigits, SqlError> {
        let number: i64 = text.trim().parse().map_err(|_| invalid("extra_float_digits", text))?;
        match number {
            // All of them are read back as the same.
            1..=3 => Ok(FloatDigits::SHORTEST),
            -15..=0 => Ok(FloatDigits(number as i8)),
            _ => {
                let message = format!(
                    "{number} is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)"
                );
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        }
    }

    /// What SHOW shows.
    pub(super) fn number(self) -> i8 {
        self.0
    }

    /// How many digits a number is written with that has so many for certain; `None`: as many as it takes.
    pub(crate) fn written(self, certain: i8) -> Option<usize> {
        (self.0 <= 0).then(|| usize::try_from(certain + self.0).unwrap_or(0).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
