//! The settings that there are, and the values that each can have.
//!
//! `settings.txt` lists them: PostgreSQL's as far as they say something true here or change no answer, and our own. What
//! it does not list there is not. A line behind the head of its category has
//!
//! ```text
//! name effect context type unit reported range = default -- description
//! ```

use crate::limits::SETTING_BYTES_MAX;
use std::collections::HashMap;
use std::sync::LazyLock;
use types::{SqlError, SqlState};

/// `55P02` a setting that cannot be changed now.
pub(super) const CANT_CHANGE_RUNTIME_PARAM: SqlState = SqlState(*b"55P02");

/// The version that drivers see; they decide by the number in front what they may ask.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (Entente ", env!("CARGO_PKG_VERSION"), ")");

const SETTINGS: &str = include_str!("settings.txt");
/// Settings that SHOW ALL and `pg_settings` leave out, as PostgreSQL's do.
const NOT_LISTED: [&str; 3] = ["is_superuser", "role", "session_authorization"];
/// What a setting does that has no description of its own.
const WITHOUT_EFFECT: &str = "Taken and without effect: no answer depends on it.";
const ONE_VALUE: &str = "Has no other value here.";

/// What comes of setting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The session does what it says.
    Acts,
    /// It is taken, and no answer depends on it.
    Kept,
    /// Values that ask for something else are refused.
    Only,
    /// It says how the server was made.
    Fixed,
    /// It says how the node was started.
    Server,
}

/// Which values it has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// On and off.
    Switch,
    /// A whole number.
    Number { least: i64, most: i64 },
    /// Any number.
    Real { least: f64, most: f64 },
    /// One of these, in any case.
    Choice(Vec<&'static str>),
    /// One of these, or any text where there are none.
    Text(Vec<&'static str>),
}

/// A setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    /// When PostgreSQL lets it be changed.
    pub(super) context: &'static str,
    pub(super) kind: Kind,
    /// What its numbers count.
    pub(super) unit: Option<&'static str>,
    /// Whether clients are told its value at the start and when it changes.
    pub(super) reported: bool,
    pub(super) default: &'static str,
    pub(super) category: &'static str,
    pub(super) about: &'static str,
}

/// In the order of their names without regard to case, as SHOW ALL shows them.
static ALL: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let (mut all, mut category) = (Vec::new(), "");
    for line in SETTINGS.lines() {
        match line.strip_prefix("# ") {
            Some(head) => category = head,
            None => all.extend(Setting::parse(line, category)),
        }
    }
    all.sort_by_cached_key(|setting: &Setting| setting.name.to_ascii_lowercase());
    all
});

static BY_NAME: LazyLock<HashMap<String, usize>> = LazyLock::new(|| {
    ALL.iter().enumerate().map(|(at, setting)| (setting.name.to_ascii_lowercase(), at)).collect()
});

/// All settings that are no application's.
pub(super) fn all() -> &'static [Setting] {
    &ALL
}

/// The setting of this name, in any case.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    let lower;
    let name = if name.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b' ') {
        lower = name.to_ascii_lowercase();
        lower.as_str()
    } else {
        name
    };
    let name = match name {
        "transaction isolation level" => "transaction_isolation",
        "time zone" => "timezone",
        "names" => "client_encoding",
        other => other,
    };
    BY_NAME.get(name).and_then(|at| ALL.get(*at))
}

impl Setting {
    fn parse(line: &'static str, category: &'static str) -> Option<Setting> {
        let (facts, rest) = line.split_once(" = ")?;
        let (default, about) = rest.split_once(" -- ").unwrap_or((rest, ""));
        let mut words = facts.splitn(7, ' ');
        let name = words.next()?;
        let (effect, context, kind, unit, reported, range) =
            (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
        let effect = match effect {
            "acts" => Effect::Acts,
            "kept" => Effect::Kept,
            "only" => Effect::Only,
            "fixed" => Effect::Fixed,
            _ => Effect::Server,
        };
        let bounds = || range.split_once("..");
        let choices = || match range {
            "-" => Vec::new(),
            range => range.split(',').map(plain).collect(),
        };
        let kind = match kind {
            "bool" => Kind::Switch,
            "integer" => {
                let (least, most) = bounds()?;
                Kind::Number { least: least.parse().ok()?, most: most.parse().ok()? }
            }
            "real" => {
                let (least, most) = bounds()?;
                Kind::Real { least: least.parse().ok()?, most: most.parse().ok()? }
            }
            "enum" => Kind::Choice(choices()),
            _ => Kind::Text(choices()),
        };
        let about = match (about, effect) {
            ("", Effect::Kept) => WITHOUT_EFFECT,
            ("", Effect::Only) => ONE_VALUE,
            (about, _) => about,
        };
        let default = if name == "server_version" { SERVER_VERSION } else { plain(default) };
        let (unit, reported) = ((unit != "-").then_some(unit), reported == "*");
        Some(Setting { name, effect, context, kind, unit, reported, default, category, about })
    }

    /// Whether SHOW ALL and `pg_settings` have it.
    pub(super) fn is_listed(&self) -> bool {
        !NOT_LISTED.contains(&self.name)
    }

    /// PostgreSQL's word for its kind.
    pub(super) fn vartype(&self) -> &'static str {
        match self.kind {
            Kind::Switch => "bool",
            Kind::Number { .. } => "integer",
            Kind::Real { .. } => "real",
            Kind::Choice(_) => "enum",
            Kind::Text(_) => "string",
        }
    }

    /// A value as it is kept: numbers in the setting's unit, words as they are listed.
    ///
    /// # Errors
    /// `22023` for what is no value of it.
    pub(super) fn read(&self, value: &str) -> Result<String, SqlError> {
        check_length(self.name, value)?;
        match &self.kind {
            Kind::Switch => Ok(if parse_switch(self.name, value)? { "on" } else { "off" }.to_string()),
            Kind::Number { least, most } => self.read_number(value, *least, *most),
            Kind::Real { least, most } => {
                let number = self.number(value)?;
                match (*least..=*most).contains(&number) {
                    true => Ok(number.to_string()),
                    false => Err(self.out_of_range(&number)),
                }
            }
            Kind::Choice(choices) => choice(choices, value).map(str::to_string).ok_or_else(|| {
                self.invalid(value).hint(format!("Available values: {}.", choices.join(", ")))
            }),
            Kind::Text(choices) if choices.is_empty() || choices.contains(&value) => Ok(value.to_string()),
            Kind::Text(choices) => {
                let shown = choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>();
                Err(self.invalid(value).hint(format!("Available values: {}.", shown.join(", "))))
            }
        }
    }

    fn read_number(&self, value: &str, least: i64, most: i64) -> Result<String, SqlError> {
        let number = match value.trim().parse::<i64>() {
            Ok(number) => number,
            Err(_) => {
                let number = self.number(value)?.round();
                // What is beyond has no neighbours among numbers of 64 bits any more.
                if number.abs() > i64::MAX as f64 / 2.0 || (number > most as f64 && self.unit.is_some()) {
                    return Err(self.invalid(value).hint("Value exceeds integer range."));
                }
                number as i64
            }
        };
        match (least..=most).contains(&number) {
            true => Ok(number.to_string()),
            false => Err(self.out_of_range(&number)),
        }
    }

    fn out_of_range(&self, number: &dyn std::fmt::Display) -> SqlError {
        let (least, most) = self.bounds();
        let unit = self.unit.map(|unit| format!(" {unit}")).unwrap_or_default();
        let name = self.name;
        let message =
            format!("{number}{unit} is outside the valid range for parameter \"{name}\" ({least} .. {most})");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    }

    /// A number in the setting's unit.
    fn number(&self, value: &str) -> Result<f64, SqlError> {
        let text = value.trim();
        // An exponent belongs to the number only where digits follow.
        let number_end = (0..=text.len())
            .rev()
            .filter(|end| text.is_char_boundary(*end))
            .find(|end| text[..*end].parse::<f64>().is_ok_and(f64::is_finite) && is_numeric(&text[..*end]));
        let Some(end) = number_end else { return Err(self.invalid(value)) };
        let number: f64 = text[..end].parse().map_err(|_| self.invalid(value))?;
        let unit = text[end..].trim();
        if unit.is_empty() {
            return Ok(number);
        }
        let Some(base) = self.unit else { return Err(self.invalid(value)) };
        let units = units_of(base);
        match (units.iter().find(|(name, _)| *name == unit), size_of(base)) {
            (Some((_, size)), Some(base)) => Ok(number * size / base),
            _ => {
                let hint = match is_time(base) {
                    true => {
                        "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."
                    }
                    false => "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
                };
                Err(self.invalid(value).hint(hint))
            }
        }
    }

    /// A value that is kept, as SHOW shows it: in the largest unit that leaves it whole.
    pub(super) fn shown(&self, kept: &str) -> String {
        let (Some(base), Ok(number)) = (self.unit, kept.parse::<f64>()) else { return kept.to_string() };
        let Some(size) = size_of(base).filter(|_| number > 0.0) else { return kept.to_string() };
        let total = number * size;
        let whole = units_of(base).iter().rev().find(|(_, size)| total % size == 0.0);
        match whole {
            Some((unit, size)) => format!("{}{unit}", total / size),
            None => format!("{kept}{base}"),
        }
    }

    /// The words that it has the choice of.
    pub(super) fn choices(&self) -> &[&'static str] {
        match &self.kind {
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// The smallest and the greatest number.
    pub(super) fn bounds(&self) -> (String, String) {
        match self.kind {
            Kind::Number { least, most } => (least.to_string(), most.to_string()),
            Kind::Real { least, most } => (shown_bound(least), shown_bound(most)),
            _ => Default::default(),
        }
    }

    /// Whether the value is one of several that ask for the same.
    pub(super) fn has_listed(&self, value: &str) -> bool {
        matches!(&self.kind, Kind::Text(choices) if choices.contains(&value))
    }

    /// It has no such value.
    pub(super) fn invalid(&self, value: &str) -> SqlError {
        let message = format!("invalid value for parameter \"{}\": \"{value}\"", self.name);
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    }

    /// It cannot be changed by a session.
    pub(super) fn cannot_be_changed(&self) -> SqlError {
        let how = match self.context {
            "postmaster" => "cannot be changed without restarting the server",
            "sighup" => "cannot be changed now",
            _ => "cannot be changed",
        };
        SqlError::new(CANT_CHANGE_RUNTIME_PARAM, format!("parameter \"{}\" {how}", self.name))
    }

    /// It has other values in PostgreSQL, which ask for what there is not.
    pub(super) fn has_only(&self, shown: &str, value: &str) -> SqlError {
        let name = self.name;
        SqlError::unsupported(format_args!("the value \"{value}\" of the setting \"{name}\""))
            .hint(format!("It is \"{shown}\" here, always."))
    }
}

/// What two quotes stand for: an empty word.
fn plain(word: &'static str) -> &'static str {
    if word == "\"\"" { "" } else { word }
}

/// `1.79769e+308` as PostgreSQL writes the greatest number.
fn shown_bound(bound: f64) -> String {
    if bound > 1e300 { "1.79769e+308".to_string() } else { bound.to_string() }
}

/// Whether a text has nothing of a number but digits, signs, a point and an exponent: no `inf`, no `nan`.
fn is_numeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

fn is_time(unit: &str) -> bool {
    matches!(unit, "ms" | "s" | "min")
}

/// Units and how much each is, from the smallest up: microseconds, or bytes.
fn units_of(base: &str) -> &'static [(&'static str, f64)] {
    const TIMES: &[(&str, f64)] =
        &[("us", 1.0), ("ms", 1e3), ("s", 1e6), ("min", 6e7), ("h", 3.6e9), ("d", 8.64e10)];
    const SIZES: &[(&str, f64)] = &[
        ("B", 1.0),
        ("kB", 1_024.0),
        ("MB", 1_048_576.0),
        ("GB", 1_073_741_824.0),
        ("TB", 1_099_511_627_776.0),
    ];
    if is_time(base) { TIMES } else { SIZES }
}

/// How much the unit of a setting is.
fn size_of(base: &str) -> Option<f64> {
    if base == "8kB" {
        return Some(8_192.0);
    }
    units_of(base).iter().find(|(name, _)| *name == base).map(|(_, size)| *size)
}

/// The word of a list that a value means, in any case. Where there is `on` or `off`, what else means that is taken, too.
fn choice(choices: &[&'static str], value: &str) -> Option<&'static str> {
    let value = value.trim();
    let found = choices.iter().find(|choice| choice.eq_ignore_ascii_case(value)).copied();
    found.or_else(|| {
        let word = if switch(value)? { "on" } else { "off" };
        choices.iter().find(|choice| **choice == word).copied()
    })
}

/// Whether a text means on or off: beginnings of the words count, as far as they tell them apart.
fn switch(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || text == "1" {
        return Some(true);
    }
    (begins("false", 1) || begins("no", 1) || begins("off", 2) || text == "0").then_some(false)
}

/// The value of a setting that is on or off.
///
/// # Errors
/// `22023`
pub(super) fn parse_switch(name: &str, value: &str) -> Result<bool, SqlError> {
    switch(value).ok_or_else(|| {
        let message = format!("parameter \"{name}\" requires a Boolean value");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

/// # Errors
/// `54000` where a name or a value is too long.
pub(super) fn check_length(name: &str, value: &str) -> Result<(), SqlError> {
    if value.len() > SETTING_BYTES_MAX || name.len() > SETTING_BYTES_MAX {
        let message = format!("a setting has at most {SETTING_BYTES_MAX} bytes (SETTING_BYTES_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str) -> &'static Setting {
        find(name).unwrap_or_else(|| panic!("{name} is listed"))
    }

    #[test]
    fn every_line_is_a_setting_whose_default_is_a_value_of_it() {
        let lines = SETTINGS.lines().filter(|line| !line.starts_with("# ")).count();
        assert_eq!(all().len(), lines);
        for setting in all() {
            // What the session says of itself is set when it starts.
            if matches!(setting.name, "server_version" | "max_connections") {
                continue;
            }
            assert_eq!(setting.read(setting.default).as_deref(), Ok(setting.default), "{}", setting.name);
            assert_eq!(find(&setting.name.to_ascii_uppercase()), Some(setting));
        }
    }

    /// Each with what PostgreSQL 15 shows behind SET, or says.
    #[test]
    fn values_are_read_and_shown_as_in_postgresql() {
        for (name, value, shown) in [
            ("statement_timeout", "1.5s", "1500ms"),
            ("statement_timeout", "90000", "90s"),
            ("statement_timeout", " 1 h ", "1h"),
            ("statement_timeout", "60000", "1min"),
            ("statement_timeout", "7200001", "7200001ms"),
            ("statement_timeout", "0", "0"),
            ("statement_timeout", "2d", "2d"),
            ("work_mem", "3GB", "3GB"),
            ("work_mem", "100", "100kB"),
            ("work_mem", "1023", "1023kB"),
            ("temp_buffers", "1024", "8MB"),
            ("effective_cache_size", "16384", "128MB"),
            ("vacuum_cost_delay", "10", "10ms"),
            ("vacuum_cost_delay", "1us", "1us"),
            ("random_page_cost", "1.10", "1.1"),
            ("random_page_cost", "1e3", "1000"),
            ("cpu_tuple_cost", "0.0", "0"),
            ("geqo_seed", "0.50", "0.5"),
            ("enable_seqscan", "tr", "on"),
            ("synchronous_commit", "yes", "on"),
            ("client_min_messages", "WARNING", "warning"),
            ("default_transaction_isolation", "READ UNCOMMITTED", "read uncommitted"),
            ("synchronous_commit", "remote_apply", "remote_apply"),
        ] {
            let kept = setting(name).read(value).unwrap_or_else(|error| panic!("{name} = {value}: {error}"));
            assert_eq!(setting(name).shown(&kept), shown, "{name} = {value}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused_in_postgresqls_words() {
        let times = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
        let sizes = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";
        for (name, value, message, hint) in [
            (
                "statement_timeout",
                "-1",
                "-1 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)",
                "",
            ),
            ("statement_timeout", "1x", "invalid value for parameter \"statement_timeout\": \"1x\"", times),
            ("statement_timeout", "abc", "invalid value for parameter \"statement_timeout\": \"abc\"", ""),
            ("statement_timeout", "inf", "invalid value for parameter \"statement_timeout\": \"inf\"", ""),
            (
                "work_mem",
                "1",
                "1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)",
                "",
            ),
            ("work_mem", "1 xb", "invalid value for parameter \"work_mem\": \"1 xb\"", sizes),
            (
                "work_mem",
                "5000TB",
                "invalid value for parameter \"work_mem\": \"5000TB\"",
                "Value exceeds integer range.",
            ),
            (
                "random_page_cost",
                "-1",
                "-1 is outside the valid range for parameter \"random_page_cost\" (0 .. 1.79769e+308)",
                "",
            ),
            (
                "geqo_effort",
                "11",
                "11 is outside the valid range for parameter \"geqo_effort\" (1 .. 10)",
                "",
            ),
            ("geqo_effort", "1ms", "invalid value for parameter \"geqo_effort\": \"1ms\"", ""),
            ("enable_seqscan", "o", "parameter \"enable_seqscan\" requires a Boolean value", ""),
            (
                "transaction_isolation",
                "x",
                "invalid value for parameter \"transaction_isolation\": \"x\"",
                "Available values: serializable, repeatable read, read committed, read uncommitted.",
            ),
            (
                "client_min_messages",
                "loud",
                "invalid value for parameter \"client_min_messages\": \"loud\"",
                "Available values: debug5, debug4, debug3, debug2, debug1, log, notice, warning, error.",
            ),
        ] {
            let error = setting(name).read(value).expect_err(value);
            let found = (error.state, error.message.as_str(), error.hint.as_deref().unwrap_or_default());
            assert_eq!(found, (SqlState::INVALID_PARAMETER_VALUE, message, hint), "{name} = {value}");
        }
    }
}
