//! The settings of a session.

use super::options::settings_of;
use super::planner_settings::PLANNER_SETTINGS;
use super::transaction_command::Modes;
use crate::limits::{IDLE_IN_TRANSACTION_MAX, SETTING_BYTES_MAX};
use std::collections::BTreeMap;
use std::time::Duration;
use types::session_format::{DateStyle, SessionFormat};
use types::time_zone::TimeZone;
use types::{
    AnswerAt, Catalog, DataType, ExecutionVersion, OutputColumn, SearchPath, SqlError, SqlState,
    StatementResult, Value, parse_search_path,
};

/// `42704` no such setting.
const UNDEFINED_OBJECT: SqlState = SqlState(*b"42704");
/// `01000` a warning.
pub(super) const WARNING: SqlState = SqlState(*b"01000");
/// `55P02` a setting that cannot be changed now.
const CANT_CHANGE_RUNTIME_PARAM: SqlState = SqlState(*b"55P02");

/// The version that drivers see; they decide by the number in front what they may ask.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (Entente ", env!("CARGO_PKG_VERSION"), ")");

/// Where names are looked for where nobody says it.
const SEARCH_PATH: &str = "\"$user\", public";

/// The height of the session's last commit; clients are told it after every commit.
pub(super) const LAST_HEIGHT: &str = "entente.last_height";
/// When a commit is answered: when a quorum attests what it came to, or when it is recorded here.
const ANSWER_AT: &str = "entente.answer_at";
/// Reads wait until the node has applied this height.
const MIN_HEIGHT: &str = "entente.min_height";

/// Whether transactions may only read that do not say it themselves.
pub(super) const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";
/// Whether the transaction may only read: shown for the next one outside of a block.
pub(super) const TRANSACTION_READ_ONLY: &str = "transaction_read_only";

/// How a setting may be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// To any text.
    Any,
    /// Never: it says how the server is.
    Fixed,
    /// Only to what it is already; other values are accepted with a warning and have no effect.
    Ignored,
    /// To a number of milliseconds, with or without a unit.
    Duration,
    /// To a height of the ledger.
    Height,
    /// To a moment at which commits are answered.
    Moment,
    /// To a part of [`SessionFormat`]; only to what it is at the beginning where the database knows no others.
    Format,
    /// On or off.
    Switch,
    /// To a number, with or without a unit.
    Number,
    /// On or off, for the open transaction block alone: [`Settings::set_in_block`].
    OfBlock,
}

#[derive(Clone, Copy)]
struct Known {
    name: &'static str,
    default: &'static str,
    change: Change,
    /// Whether clients are told its value at the start and when it changes.
    reported: bool,
}

const fn known(name: &'static str, default: &'static str, change: Change, reported: bool) -> Known {
    Known { name, default, change, reported }
}

/// Sorted by name without regard to case, as SHOW ALL shows them.
const KNOWN: &[Known] = &[
    known("application_name", "", Change::Any, true),
    known("bytea_output", "hex", Change::Any, false),
    known("check_function_bodies", "on", Change::Any, false),
    known("client_encoding", "UTF8", Change::Any, true),
    known("client_min_messages", "notice", Change::Any, false),
    known("DateStyle", "ISO, MDY", Change::Format, true),
    known("default_table_access_method", "heap", Change::Any, false),
    known("default_tablespace", "", Change::Any, false),
    known("default_transaction_deferrable", "off", Change::Switch, false),
    known("default_transaction_isolation", "serializable", Change::Any, false),
    known(DEFAULT_READ_ONLY, "off", Change::Switch, true),
    known(ANSWER_AT, "attested", Change::Moment, false),
    known(LAST_HEIGHT, "0", Change::Fixed, false),
    known(MIN_HEIGHT, "0", Change::Height, false),
    known("extra_float_digits", "1", Change::Format, false),
    known("geqo", "on", Change::Any, false),
    known("idle_in_transaction_session_timeout", "10min", Change::Duration, false),
    known("in_hot_standby", "off", Change::Fixed, true),
    known("integer_datetimes", "on", Change::Fixed, true),
    known("IntervalStyle", "postgres", Change::Format, true),
    known("is_superuser", "on", Change::Fixed, true),
    known("jit", "off", Change::Any, false),
    known("lc_collate", "C", Change::Fixed, false),
    known("lc_ctype", "C.UTF-8", Change::Fixed, false),
    known("lc_messages", "C", Change::Any, false),
    known("lc_monetary", "C", Change::Any, false),
    known("lc_numeric", "C", Change::Any, false),
    known("lc_time", "C", Change::Any, false),
    known("lock_timeout", "0", Change::Any, false),
    known("max_identifier_length", "63", Change::Fixed, false),
    known("max_index_keys", "32", Change::Fixed, false),
    known("row_security", "on", Change::Any, false),
    known("search_path", SEARCH_PATH, Change::Any, false),
    known("server_encoding", "UTF8", Change::Fixed, true),
    known("server_version", SERVER_VERSION, Change::Fixed, true),
    known("server_version_num", "150000", Change::Fixed, false),
    known("session_authorization", "", Change::Ignored, true),
    known("ssl", "off", Change::Fixed, false),
    known("standard_conforming_strings", "on", Change::Ignored, true),
    known("statement_timeout", "0", Change::Duration, false),
    known("synchronize_seqscans", "on", Change::Any, false),
    known("synchronous_commit", "on", Change::Any, false),
    known("TimeZone", "UTC", Change::Format, true),
    known("transaction_deferrable", "off", Change::OfBlock, false),
    known("transaction_isolation", "serializable", Change::Any, false),
    known(TRANSACTION_READ_ONLY, "off", Change::OfBlock, false),
    known("work_mem", "4MB", Change::Any, false),
    known("xmloption", "content", Change::Any, false),
];

/// Columns of SHOW ALL.
pub(super) const ALL_COLUMNS: [&str; 3] = ["name", "setting", "description"];

/// A setting's name as SHOW shows it.
pub(super) fn shown_name(name: &str) -> &str {
    find(name).map_or(name, |known| known.name)
}

/// All settings that are no application's.
fn all_known() -> impl Iterator<Item = Known> {
    let planner = PLANNER_SETTINGS.iter();
    let change = |default: &str| match default {
        "on" | "off" => Change::Switch,
        number if number.starts_with(|first: char| first.is_ascii_digit()) => Change::Number,
        _ => Change::Any,
    };
    KNOWN
        .iter()
        .copied()
        .chain(planner.map(move |(name, default)| known(name, default, change(default), false)))
}

fn find(name: &str) -> Option<Known> {
    let name = match name.to_ascii_lowercase().as_str() {
        "transaction isolation level" => "transaction_isolation".to_string(),
        "time zone" => "timezone".to_string(),
        "names" => "client_encoding".to_string(),
        other => other.to_string(),
    };
    all_known().find(|known| known.name.eq_ignore_ascii_case(&name))
}

/// What changing a setting means for the client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Name and new value of a setting that clients are told about.
    pub(super) report: Option<(&'static str, String)>,
    /// A warning: the value was accepted and has no effect.
    pub(super) warning: Option<String>,
}

/// The settings of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    changed: BTreeMap<String, String>,
    /// What RESET goes back to: what the startup message said.
    initial: BTreeMap<String, String>,
    /// Height of the session's last commit.
    last_height: u64,
    /// Whether the database knows other formats than the one that sessions begin with.
    has_formats: bool,
    format: SessionFormat,
    /// The database that the client has asked for, where it has another name than the user: clients that are told of no database ask for
    /// the one with the user's name.
    database: Option<String>,
}

impl Settings {
    /// The settings that a startup message asks for, and what the client is to be warned of. `answer_at` is the node's
    /// default; `has_formats` as [`crate::Database::has_formats`]. Those of `options` are set as SET does; the message's own parameters come behind them. Where one of these
    /// has a value that cannot be, the setting stays at its default, which ParameterStatus tells the client: a driver that
    /// names its time zone must still be able to connect.
    ///
    /// # Errors
    /// `42704` for a setting that there is not; what SET says to those of `options`, and `42601` where they cannot be read.
    pub(super) fn new(
        user: &str,
        parameters: &[(String, String)],
        (answer_at, has_formats): (AnswerAt, bool),
    ) -> Result<(Settings, Vec<String>), SqlError> {
        let (mut settings, mut warnings) = (Settings { has_formats, ..Settings::default() }, Vec::new());
        settings.changed.insert(ANSWER_AT.to_string(), answer_at.name().to_string());
        settings.changed.insert("session_authorization".to_string(), user.to_string());
        for (_, options) in parameters.iter().filter(|(name, _)| name == "options") {
            for (name, value) in settings_of(options)? {
                warnings.extend(settings.set(&name, Some(&value))?.warning);
            }
        }
        for (name, value) in parameters {
            if is_of_the_protocol(name) {
                continue;
            }
            match find(name) {
                Some(known) => {
                    let _ = settings.set(known.name, Some(value));
                }
                None => drop(settings.set_custom(name, Some(value))?),
            }
        }
        let database = parameters.iter().find(|(name, _)| name == "database");
        settings.database =
            database.map(|(_, database)| database.clone()).filter(|database| database != user);
        settings.initial = settings.changed.clone();
        Ok((settings, warnings))
    }

    /// The value of a setting.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(known) if known.name == LAST_HEIGHT => Some(self.last_height.to_string()),
            Some(known) if known.change == Change::OfBlock && !self.changed.contains_key(known.name) => {
                self.get(&format!("default_{}", known.name))
            }
            Some(known) => {
                let value = self.changed.get(known.name);
                Some(value.cloned().unwrap_or_else(|| known.default.to_string()))
            }
            None => self.changed.get(&name.to_ascii_lowercase()).cloned(),
        }
    }

    /// Name and value of all settings.
    pub(super) fn all(&self) -> Vec<(String, String)> {
        let value = |known: Known| (known.name.to_string(), self.get(known.name).unwrap_or_default());
        let mut all: Vec<(String, String)> = all_known().map(value).collect();
        all.sort_by_cached_key(|(name, _)| name.to_ascii_lowercase());
        all
    }

    /// Name and value of the settings that a client is told at the start.
    pub(super) fn reported(&self) -> Vec<(&'static str, String)> {
        let reported = KNOWN.iter().filter(|known| known.reported);
        reported.map(|known| (known.name, self.get(known.name).unwrap_or_default())).collect()
    }

    /// In which values are read and written.
    pub(super) fn format(&self) -> SessionFormat {
        self.format
    }

    /// The time that a statement may take, where it is limited.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        self.duration("statement_timeout")
    }

    /// Whether queries are to be refused whose rows policies would restrict.
    pub(super) fn refuses_row_security(&self) -> bool {
        self.get("row_security").as_deref() == Some("off")
    }

    /// The time that a transaction block may be left without a message.
    pub(super) fn idle_in_transaction(&self) -> Duration {
        let longest = IDLE_IN_TRANSACTION_MAX;
        self.duration("idle_in_transaction_session_timeout").map_or(longest, |time| time.min(longest))
    }

    /// The schemas in which a session looks for names. `$user` stands for the one that has the user's name, where there is one. Where
    /// nothing is said, and the database that was asked for has the name of a schema, it is this one, from execution version 11 on.
    pub(super) fn search_path(&self, user: &str, catalog: &Catalog, version: ExecutionVersion) -> SearchPath {
        let is_default =
            version >= ExecutionVersion::V11 && self.get("search_path").as_deref() == Some(SEARCH_PATH);
        if is_default
            && let Some(schema) = self.database.as_ref().filter(|name| catalog.schemas.contains_key(*name))
        {
            return SearchPath::new([schema.clone()]).unwrap_or_default();
        }
        let names =
            self.get("search_path").and_then(|text| parse_search_path(&text).ok()).unwrap_or_default();
        let resolved = names.into_iter().filter_map(|name| match name.as_str() {
            "$user" => catalog.has_schema(user).then(|| user.to_string()),
            _ => Some(name),
        });
        // A list that is too long has not been accepted.
        SearchPath::new(resolved).unwrap_or_default()
    }

    fn duration(&self, name: &str) -> Option<Duration> {
        let milliseconds = self.get(name).and_then(|text| parse_milliseconds(&text))?;
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }

    /// Whether the bodies of functions are checked when they are created.
    pub(super) fn checks_bodies(&self) -> bool {
        let value = self.get("check_function_bodies").unwrap_or_default();
        !["off", "false", "no", "0"].contains(&value.to_ascii_lowercase().as_str())
    }

    /// When commits are answered.
    pub(super) fn answer_at(&self) -> AnswerAt {
        self.get(ANSWER_AT).and_then(|name| AnswerAt::from_name(&name)).unwrap_or_default()
    }

    /// The height that reads wait for.
    pub(super) fn min_height(&self) -> u64 {
        self.changed.get(MIN_HEIGHT).and_then(|height| height.parse().ok()).unwrap_or_default()
    }

    /// The session's last commit stands at this height. Gives what the client is told.
    pub(super) fn committed_at(&mut self, height: u64) -> Option<(&'static str, String)> {
        let newer = height > self.last_height;
        self.last_height = self.last_height.max(height);
        newer.then(|| (LAST_HEIGHT, height.to_string()))
    }

    /// Whether a setting that is on or off is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).as_deref() == Some("on")
    }

    /// A transaction block begins: what its mode is shows in settings of its own.
    pub(super) fn begin_block(&mut self) {
        for known in KNOWN.iter().filter(|known| known.change == Change::OfBlock) {
            self.changed.remove(known.name);
            self.set_in_block(known.name, self.is_on(known.name));
        }
    }

    /// The mode of the open block changes.
    pub(super) fn set_in_block(&mut self, name: &str, on: bool) {
        self.changed.insert(name.to_string(), if on { "on" } else { "off" }.to_string());
    }

    /// Everything back to what it was before; returns what clients must be told.
    pub(super) fn restore(&mut self, before: Settings) -> Vec<(&'static str, String)> {
        let reported = self.reported();
        *self = Settings { last_height: self.last_height, ..before };
        self.reported().into_iter().filter(|setting| !reported.contains(setting)).collect()
    }

    /// Changes a setting; `None`: to its default.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Changed, SqlError> {
        let Some(known) = find(name) else { return self.set_custom(name, value) };
        let initial = self.initial.get(known.name).cloned();
        let value = match value {
            Some(value) if known.change == Change::Format && self.has_formats => {
                check_length(known.name, value)?;
                let changed = self.format.changed_by(known.name, value)?;
                match known.name {
                    // All numbers above 0 do the same, and each is shown.
                    "extra_float_digits" => value.trim().to_string(),
                    name => changed.and_then(|format| format.setting(name)).unwrap_or_default(),
                }
            }
            Some(value) => normalise(&known, value)?,
            None => initial.unwrap_or_else(|| known.default.to_string()),
        };
        let current = self.get(known.name).unwrap_or_default();
        match known.change {
            Change::Fixed if value != current => {
                let message = format!("parameter \"{}\" cannot be changed", known.name);
                return Err(SqlError::new(CANT_CHANGE_RUNTIME_PARAM, message));
            }
            Change::Ignored if !value.eq_ignore_ascii_case(&current) => {
                let warning =
                    format!("parameter \"{}\" stays \"{current}\": Entente knows no other value", known.name);
                return Ok(Changed { report: None, warning: Some(warning) });
            }
            Change::Fixed | Change::Ignored | Change::OfBlock => return Ok(Changed::default()),
            Change::Format if self.has_formats => {
                self.format = self.format.changed_by(known.name, &value)?.unwrap_or(self.format);
                if value == current {
                    return Ok(Changed::default());
                }
            }
            // Any number has always been taken.
            Change::Format if known.name == "extra_float_digits" => {}
            Change::Format if value != current => {
                let warning = format!(
                    "parameter \"{}\" stays \"{current}\": this network's statements know no other value",
                    known.name
                );
                return Ok(Changed { report: None, warning: Some(warning) });
            }
            Change::Format => return Ok(Changed::default()),
            _ => {}
        }
        self.changed.insert(known.name.to_string(), value.clone());
        Ok(Changed { report: known.reported.then_some((known.name, value)), warning: None })
    }

    /// Settings with a dot in their name belong to applications.
    fn set_custom(&mut self, name: &str, value: Option<&str>) -> Result<Changed, SqlError> {
        let name = name.to_ascii_lowercase();
        if !name.contains('.') {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(SqlError::new(UNDEFINED_OBJECT, message));
        }
        let value = value.unwrap_or_default();
        check_length(&name, value)?;
        if !self.changed.contains_key(&name) && self.changed.len() >= 200 {
            let message = "a session has at most 200 settings".to_string();
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.changed.insert(name, value.to_string());
        Ok(Changed::default())
    }

    /// Every setting back to what it was at the start; returns what clients must be told.
    pub(super) fn reset_all(&mut self) -> Vec<(&'static str, String)> {
        let before = self.reported();
        let of_block = |(name, _): &(&String, &String)| {
            KNOWN.iter().any(|known| known.change == Change::OfBlock && known.name == name.as_str())
        };
        let kept: Vec<(String, String)> = self.changed.iter().filter(of_block).map(|(name, value)| (name.clone(), value.clone())).collect();
        self.changed = self.initial.clone();
        self.changed.extend(kept);
        self.format = self.format_as_set();
        self.reported().into_iter().filter(|setting| !before.contains(setting)).collect()
    }

    /// What the settings say of it.
    fn format_as_set(&self) -> SessionFormat {
        let parts = KNOWN.iter().filter(|known| known.change == Change::Format);
        parts.fold(SessionFormat::default(), |format, known| {
            let value = self.get(known.name).unwrap_or_default();
            format.changed_by(known.name, &value).ok().flatten().unwrap_or(format)
        })
    }

    /// The rows of SHOW.
    pub(super) fn show(&self, name: Option<&str>) -> Result<StatementResult, SqlError> {
        let text = |name: &str| OutputColumn { name: name.to_string(), data_type: DataType::Text(None) };
        let Some(name) = name else {
            let row = |(name, value): (String, String)| {
                vec![Value::text(name), Value::text(value), Value::text("")]
            };
            let rows: Vec<Vec<Value>> = self.all().into_iter().map(row).collect();
            return Ok(StatementResult {
                tag: "SHOW".into(),
                columns: ALL_COLUMNS.map(text).to_vec(),
                rows,
                notices: Vec::new(),
            });
        };
        let value = self.get(name).ok_or_else(|| {
            SqlError::new(UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
        })?;
        let columns = vec![text(shown_name(name))];
        let rows = vec![vec![Value::text(value)]];
        Ok(StatementResult { tag: "SHOW".into(), columns, rows, notices: Vec::new() })
    }
}

/// Whether a parameter of a startup message is no setting.
fn is_of_the_protocol(name: &str) -> bool {
    matches!(name, "user" | "database" | "options" | "replication") || name.starts_with("_pq_.")
}

fn check_length(name: &str, value: &str) -> Result<(), SqlError> {
    if value.len() > SETTING_BYTES_MAX || name.len() > SETTING_BYTES_MAX {
        let message = format!("a setting has at most {SETTING_BYTES_MAX} bytes (SETTING_BYTES_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}

fn parse_milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor).filter(|milliseconds| *milliseconds <= i32::MAX as u64)
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

/// What a setting says that stands for a mode of the open transaction block; `None` where it is no such setting.
///
/// # Errors
/// `22023`
pub(super) fn modes_of_setting(name: &str, value: Option<&str>) -> Result<Option<Modes>, SqlError> {
    let Some(known) = find(name).filter(|known| known.change == Change::OfBlock) else { return Ok(None) };
    let on = Some(value.map_or(Ok(false), |value| parse_switch(known.name, value))?);
    Ok(Some(match known.name {
        TRANSACTION_READ_ONLY => Modes { read_only: on, ..Modes::default() },
        _ => Modes { deferrable: on, ..Modes::default() },
    }))
}

fn shown_switch(name: &str, value: &str) -> Result<String, SqlError> {
    Ok(if parse_switch(name, value)? { "on" } else { "off" }.to_string())
}

/// The value as SHOW shows it, where a setting has several spellings of one value.
fn normalise(known: &Known, value: &str) -> Result<String, SqlError> {
    check_length(known.name, value)?;
    let invalid = || {
        let message = format!("invalid value for parameter \"{}\": \"{value}\"", known.name);
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    };
    let plain: String =
        value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    Ok(match known.name {
        "client_encoding" if matches!(plain.as_str(), "utf8" | "unicode" | "sqlascii" | "") => {
            "UTF8".to_string()
        }
        "client_encoding" => return Err(invalid().hint("clients of Entente speak UTF8")),
        "TimeZone" if TimeZone::of_setting(value).is_ok_and(|zone| zone.is_always_utc()) => {
            known.default.to_string()
        }
        "DateStyle" if DateStyle::default().changed_by(value) == Ok(DateStyle::default()) => {
            known.default.to_string()
        }
        "IntervalStyle" if value.eq_ignore_ascii_case(known.default) => known.default.to_string(),
        "row_security" | "standard_conforming_strings" => shown_switch(known.name, value)?,
        // One of PostgreSQL's values has a name of its own.
        _ if known.change == Change::Switch && known.name == "force_parallel_mode" && plain == "regress" => {
            plain
        }
        _ if matches!(known.change, Change::Switch | Change::OfBlock) => shown_switch(known.name, value)?,
        _ if known.change == Change::Number => {
            let number = value.trim().trim_end_matches(|last: char| last.is_ascii_alphabetic()).trim();
            let fits = number.parse::<f64>().is_ok_and(|number| number >= 0.0);
            fits.then(|| value.trim().to_string()).ok_or_else(invalid)?
        }
        _ if known.change == Change::Height => {
            value.trim().parse::<u64>().map_err(|_| invalid().hint("a height is a whole number"))?.to_string()
        }
        _ if known.change == Change::Moment => match AnswerAt::from_name(&value.to_ascii_lowercase()) {
            Some(moment) => moment.name().to_string(),
            None => return Err(invalid().hint("Available values: attested, recorded.")),
        },
        _ if known.change == Change::Duration => {
            parse_milliseconds(value).ok_or_else(invalid)?;
            value.to_string()
        }
        "search_path" => {
            SearchPath::new(parse_search_path(value)?)?;
            value.to_string()
        }
        _ => value.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(parameters: &[(&str, &str)]) -> Result<(Settings, Vec<String>), SqlError> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let parameters: Vec<_> = parameters.iter().map(owned).collect();
        Settings::new("ada", &parameters, (AnswerAt::Attested, true))
    }

    #[test]
    fn a_startup_message_sets_what_its_options_and_its_parameters_say() {
        let options = "-c search_path=a,b --application-name=x -c my.own=1 -c TimeZone=Asia/Tokyo";
        let parameters = [("user", "ada"), ("application_name", "y"), ("options", options), ("_pq_.z", "1")];
        let (mut settings, warnings) = started(&parameters).expect("known settings");
        assert_eq!(settings.get("search_path").as_deref(), Some("a,b"));
        assert_eq!(settings.get("my.own").as_deref(), Some("1"));
        assert_eq!(settings.get("application_name").as_deref(), Some("y"), "said outside of options");
        assert_eq!((warnings, settings.get("TimeZone").as_deref()), (Vec::new(), Some("Asia/Tokyo")));
        settings.set("search_path", Some("c")).expect("a list");
        settings.set("search_path", None).expect("back to what the startup said");
        assert_eq!(settings.get("search_path").as_deref(), Some("a,b"));
        // Values that cannot be.
        let parameters = [("TimeZone", "Nowhere"), ("client_encoding", "LATIN1")];
        assert_eq!(started(&parameters).expect("left alone").0.get("TimeZone").as_deref(), Some("UTC"));
    }

    #[test]
    fn a_session_of_a_database_finds_the_schema_of_its_name() {
        let path = |settings: &Settings, schemas: &[&str]| {
            let mut catalog = Catalog::default();
            for schema in schemas {
                let known = types::Schema { owner: None, members: None };
                catalog.schemas.insert((*schema).to_string(), known);
            }
            settings.search_path("ada", &catalog, ExecutionVersion::V11).schemas().to_vec()
        };
        let (settings, _) = started(&[("user", "ada"), ("database", "ada")]).expect("known settings");
        assert_eq!(
            path(&settings, &["ada"]),
            ["ada", "public"],
            "as libpq asks where nobody names a database"
        );
        let (mut settings, _) = started(&[("user", "ada"), ("database", "shop")]).expect("known settings");
        assert_eq!(path(&settings, &["shop", "ada"]), ["shop"]);
        assert_eq!(path(&settings, &["ada"]), ["ada", "public"], "there is no such schema");
        settings.set("search_path", Some("ada")).expect("a list");
        assert_eq!(path(&settings, &["shop", "ada"]), ["ada"]);
        settings.set("search_path", None).expect("back to the default");
        assert_eq!(path(&settings, &["shop", "ada"]), ["shop"]);
        settings.set("search_path", Some("ada")).expect("a list");
        settings.reset_all();
        assert_eq!(path(&settings, &["shop"]), ["shop"], "as poolers do between two clients");
        let mut catalog = Catalog::default();
        catalog.schemas.insert("shop".to_string(), types::Schema::default());
        assert!(settings.search_path("ada", &catalog, ExecutionVersion::V10).is_default());
    }

    #[test]
    fn a_session_has_the_format_that_is_set_where_there_are_any() {
        let (mut settings, _) = started(&[("TimeZone", "europe/berlin")]).expect("a zone");
        let berlin = TimeZone::of_setting("Europe/Berlin").expect("known");
        assert_eq!(
            (settings.format().zone, settings.get("timezone").as_deref()),
            (berlin, Some("Europe/Berlin"))
        );
        let changed = settings.set("time zone", Some("2")).expect("hours");
        assert_eq!(changed.report, Some(("TimeZone", "<+02>-02".to_string())));
        assert_eq!(settings.format().zone, TimeZone::Fixed(7_200));
        assert!(settings.set("timezone", Some("Nowhere")).is_err());
        assert_eq!(settings.format().zone, TimeZone::Fixed(7_200));
        settings.reset_all();
        assert_eq!(settings.format().zone, berlin);
        settings.set("timezone", Some("UTC")).expect("a zone");
        settings.set("timezone", None).expect("what the startup said");
        assert_eq!(settings.format().zone, berlin);
        let (mut settings, _) = Settings::new(
            "ada",
            &[("TimeZone".to_string(), "Asia/Tokyo".to_string())],
            (AnswerAt::Attested, false),
        )
        .expect("left alone");
        assert!(settings.set("timezone", Some("Asia/Tokyo")).expect("a warning").warning.is_some());
        assert_eq!(
            (settings.format().zone, settings.get("timezone").as_deref()),
            (TimeZone::UTC, Some("UTC"))
        );
        assert_eq!(settings.set("timezone", Some("utc")), Ok(Changed::default()));
    }

    #[test]
    fn settings_of_the_planner_are_known_and_have_values_of_their_kind() {
        let (mut settings, _) = started(&[("user", "ada")]).expect("known settings");
        for (name, value, shown) in [
            ("enable_seqscan", "false", Some("off")),
            ("ENABLE_SORT", "1", Some("on")),
            ("enable_seqscan", "banana", None),
            ("random_page_cost", "1.1", Some("1.1")),
            ("random_page_cost", "x", None),
            ("random_page_cost", "-1", None),
            ("maintenance_work_mem", "1 GB", Some("1 GB")),
            ("plan_cache_mode", "force_generic_plan", Some("force_generic_plan")),
        ] {
            let set = settings.set(name, Some(value));
            assert_eq!(set.is_ok(), shown.is_some(), "{name} = {value}");
            if let Some(shown) = shown {
                assert_eq!(settings.get(name).as_deref(), Some(shown), "{name} = {value}");
            }
        }
        let all = settings.all();
        assert!(all.windows(2).all(|pair| pair[0].0.to_ascii_lowercase() < pair[1].0.to_ascii_lowercase()));
    }

    #[test]
    fn a_startup_message_with_what_cannot_be_set_is_refused() {
        for (name, value, state) in [
            ("options", "-c nonsense=1", UNDEFINED_OBJECT),
            ("nonsense", "1", UNDEFINED_OBJECT),
            ("options", "-c statement_timeout=soon", SqlState::INVALID_PARAMETER_VALUE),
            ("options", "-c server_version=16", CANT_CHANGE_RUNTIME_PARAM),
            ("options", "-c search_path", SqlState::SYNTAX_ERROR),
            ("options", "-B 100", SqlState::SYNTAX_ERROR),
        ] {
            assert_eq!(started(&[(name, value)]).expect_err(value).state, state, "{value}");
        }
    }

    #[test]
    fn settings_change_warn_or_refuse() {
        let mut settings = started(&[("application_name", "psql")]).expect("a known setting").0;
        assert_eq!(settings.get("APPLICATION_NAME").as_deref(), Some("psql"));
        let changed = settings.set("application_name", Some("other")).expect("free text");
        assert_eq!(changed.report, Some(("application_name", "other".to_string())));
        settings.set("application_name", None).expect("back to what the startup said");
        assert_eq!(settings.get("application_name").as_deref(), Some("psql"));
        assert_eq!(settings.set("datestyle", Some("ISO")).expect("the same"), Changed::default());
        let changed = settings.set("datestyle", Some("DMY")).expect("an order");
        assert_eq!(changed.report, Some(("DateStyle", "ISO, DMY".to_string())));
        assert_eq!(
            settings.set("datestyle", Some("ISO, x")).expect_err("no style").state,
            SqlState::INVALID_PARAMETER_VALUE
        );
        assert!(settings.set("server_version", Some("16")).is_err());
        assert!(settings.set("client_encoding", Some("LATIN1")).is_err());
        assert_eq!(settings.set("nonsense", Some("1")).expect_err("unknown").state, UNDEFINED_OBJECT);
        settings.set("statement_timeout", Some("2min")).expect("a duration");
        assert_eq!(settings.statement_timeout(), Some(std::time::Duration::from_secs(120)));
        assert!(settings.set("statement_timeout", Some("soon")).is_err());
    }

    #[test]
    fn the_search_path_knows_the_schema_of_the_user() {
        let path = |settings: &Settings, catalog: &Catalog| {
            settings.search_path("ada", catalog, ExecutionVersion::CURRENT)
        };
        let (mut settings, mut catalog) = (Settings::default(), Catalog::default());
        assert!(path(&settings, &catalog).is_default());
        catalog.schemas.insert("ada".to_string(), types::Schema::default());
        assert_eq!(path(&settings, &catalog).schemas(), ["ada", "public"]);
        settings.set("search_path", Some("\"\"")).expect("no schema");
        assert!(path(&settings, &catalog).schemas().is_empty());
        settings.set("search_path", Some("a, \"B\"")).expect("a list");
        assert_eq!(path(&settings, &catalog).schemas(), ["a", "B"]);
        assert!(settings.set("search_path", Some("a b")).is_err());
    }

    #[test]
    fn commits_are_answered_when_the_session_or_the_node_says() {
        let (mut settings, _) = Settings::new("ada", &[], (AnswerAt::Recorded, true)).expect("no parameters");
        assert_eq!(settings.answer_at(), AnswerAt::Recorded);
        settings.set("entente.answer_at", Some("Attested")).expect("a moment");
        assert_eq!(settings.answer_at(), AnswerAt::Attested);
        let refused = settings.set("entente.answer_at", Some("soon")).expect_err("no moment");
        assert_eq!(refused.state, SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(settings.get("entente.answer_at").as_deref(), Some("attested"));
        settings.set("entente.answer_at", None).expect("the node's");
        assert_eq!(settings.answer_at(), AnswerAt::Recorded);
    }

    #[test]
    fn heights_are_numbers_and_the_last_one_stays() {
        let mut settings = Settings::default();
        assert_eq!(settings.get("entente.min_height").as_deref(), Some("0"));
        settings.set("entente.min_height", Some("17")).expect("a height");
        assert_eq!(settings.min_height(), 17);
        assert!(settings.set("entente.min_height", Some("-1")).is_err());
        assert!(settings.set("entente.last_height", Some("9")).is_err());
        let before = settings.clone();
        assert_eq!(settings.committed_at(9), Some(("entente.last_height", "9".to_string())));
        assert_eq!(settings.committed_at(8), None);
        settings.set("application_name", Some("psql")).expect("free text");
        assert_eq!(settings.restore(before), [("application_name", String::new())]);
        assert_eq!(settings.get("entente.last_height").as_deref(), Some("9"));
    }

    #[test]
    fn a_block_may_be_idle_for_an_hour_at_most() {
        let mut settings = Settings::default();
        assert_eq!(settings.idle_in_transaction(), Duration::from_secs(600));
        for (value, seconds) in [("2s", 2), ("0", 3600), ("1d", 3600)] {
            settings.set("idle_in_transaction_session_timeout", Some(value)).expect("a duration");
            assert_eq!(settings.idle_in_transaction(), Duration::from_secs(seconds), "{value}");
        }
    }
}
