//! What SET, SHOW, RESET and DISCARD do: the settings of a session, answered without the database.

use super::script::{Kind, Lexeme, Statement};
use crate::limits::SETTING_BYTES_MAX;
use std::collections::BTreeMap;
use types::{DataType, OutputColumn, SqlError, SqlState, StatementResult, Value};

/// `42704` no such setting.
const UNDEFINED_OBJECT: SqlState = SqlState(*b"42704");
/// `01000` a warning.
pub(super) const WARNING: SqlState = SqlState(*b"01000");
/// `55P02` a setting that cannot be changed now.
const CANT_CHANGE_RUNTIME_PARAM: SqlState = SqlState(*b"55P02");

/// The version that drivers see; they decide by the number in front what they may ask.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (Entente ", env!("CARGO_PKG_VERSION"), ")");

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
}

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
    known("DateStyle", "ISO, MDY", Change::Ignored, true),
    known("default_table_access_method", "heap", Change::Any, false),
    known("default_tablespace", "", Change::Any, false),
    known("default_transaction_deferrable", "off", Change::Any, false),
    known("default_transaction_isolation", "serializable", Change::Any, false),
    known("default_transaction_read_only", "off", Change::Ignored, true),
    known("extra_float_digits", "1", Change::Any, false),
    known("geqo", "on", Change::Any, false),
    known("idle_in_transaction_session_timeout", "0", Change::Any, false),
    known("in_hot_standby", "off", Change::Fixed, true),
    known("integer_datetimes", "on", Change::Fixed, true),
    known("IntervalStyle", "postgres", Change::Ignored, true),
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
    known("search_path", "\"$user\", public", Change::Any, false),
    known("server_encoding", "UTF8", Change::Fixed, true),
    known("server_version", SERVER_VERSION, Change::Fixed, true),
    known("server_version_num", "150000", Change::Fixed, false),
    known("session_authorization", "", Change::Ignored, true),
    known("ssl", "off", Change::Fixed, false),
    known("standard_conforming_strings", "on", Change::Ignored, true),
    known("statement_timeout", "0", Change::Duration, false),
    known("synchronize_seqscans", "on", Change::Any, false),
    known("synchronous_commit", "on", Change::Any, false),
    known("TimeZone", "UTC", Change::Ignored, true),
    known("transaction_deferrable", "off", Change::Any, false),
    known("transaction_isolation", "serializable", Change::Any, false),
    known("transaction_read_only", "off", Change::Ignored, false),
    known("work_mem", "4MB", Change::Any, false),
    known("xmloption", "content", Change::Any, false),
];

fn find(name: &str) -> Option<&'static Known> {
    let name = match name.to_ascii_lowercase().as_str() {
        "transaction isolation level" => "transaction_isolation".to_string(),
        "time zone" => "timezone".to_string(),
        "names" => "client_encoding".to_string(),
        other => other.to_string(),
    };
    KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(&name))
}

/// What a session statement does beside changing settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionStatement {
    /// Sets one setting; `None`: to its default.
    Set { name: String, value: Option<String> },
    /// Shows one setting.
    Show { name: String },
    /// Shows all.
    ShowAll,
    /// Sets every setting to its default.
    ResetAll,
    /// Forgets everything: settings, prepared statements, portals.
    DiscardAll,
    /// Forgets a part that a session of Entente does not have (plans, sequences, temporary tables).
    DiscardNothing(&'static str),
    /// Forgets one prepared statement, or all.
    Deallocate(Option<String>),
    /// Forgets all portals, or one.
    Close(Option<String>),
    /// Does nothing, successfully.
    Nothing(&'static str),
}

impl SessionStatement {
    /// Columns of the rows that it returns.
    pub(super) fn columns(&self) -> Vec<OutputColumn> {
        let text = |name: &str| OutputColumn { name: name.to_string(), data_type: DataType::Text(None) };
        match self {
            SessionStatement::Show { name } => {
                vec![text(find(name).map_or(name.as_str(), |known| known.name))]
            }
            SessionStatement::ShowAll => vec![text("name"), text("setting"), text("description")],
            _ => Vec::new(),
        }
    }
}

fn syntax(statement: &Statement<'_>, lexeme: Option<&Lexeme<'_>>) -> SqlError {
    let (message, at) = match lexeme {
        Some(lexeme) => {
            (format!("syntax error at or near \"{}\"", lexeme.text), lexeme.start - statement.start)
        }
        None => ("syntax error at end of input".to_string(), statement.text.len()),
    };
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(super::script::position(statement.text, at))
}

/// Reads a statement of the class `Session`.
pub(super) fn parse(statement: &Statement<'_>) -> Result<SessionStatement, SqlError> {
    let words: Vec<String> = statement.lexemes.iter().map(Lexeme::value).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let error = |index: usize| syntax(statement, statement.lexemes.get(index));
    let one = |name: &str| name.to_string();
    Ok(match words.as_slice() {
        ["show", "all"] => SessionStatement::ShowAll,
        ["show", rest @ ..] if !rest.is_empty() => SessionStatement::Show { name: joined_name(rest) },
        ["reset", "all"] => SessionStatement::ResetAll,
        ["reset", "session", "authorization"] => SessionStatement::Nothing("RESET"),
        ["reset", rest @ ..] if !rest.is_empty() => {
            SessionStatement::Set { name: joined_name(rest), value: None }
        }
        ["discard", "all"] => SessionStatement::DiscardAll,
        ["discard", "plans"] => SessionStatement::DiscardNothing("DISCARD PLANS"),
        ["discard", "sequences"] => SessionStatement::DiscardNothing("DISCARD SEQUENCES"),
        ["discard", "temp" | "temporary"] => SessionStatement::DiscardNothing("DISCARD TEMP"),
        ["deallocate", "all"] | ["deallocate", "prepare", "all"] => SessionStatement::Deallocate(None),
        ["deallocate", "prepare", name] | ["deallocate", name] => {
            SessionStatement::Deallocate(Some(one(name)))
        }
        ["close", "all"] => SessionStatement::Close(None),
        ["close", name] => SessionStatement::Close(Some(one(name))),
        ["unlisten", ..] => SessionStatement::Nothing("UNLISTEN"),
        ["set", ..] => return parse_set(statement, &words),
        _ => return Err(error(1)),
    })
}

fn joined_name(words: &[&str]) -> String {
    match words {
        [name, ".", rest] => format!("{name}.{rest}"),
        ["transaction", "isolation", "level"] => "transaction_isolation".to_string(),
        ["time", "zone"] => "timezone".to_string(),
        ["session", "authorization"] => "session_authorization".to_string(),
        words => words.join(" "),
    }
}

fn parse_set(statement: &Statement<'_>, words: &[&str]) -> Result<SessionStatement, SqlError> {
    let skip = match words {
        [_, "session", "characteristics", "as", "transaction", ..] => {
            return Ok(SessionStatement::Nothing("SET"));
        }
        [_, "session", "authorization", ..] | [_, "role", ..] | [_, "constraints", ..] => {
            return Ok(SessionStatement::Nothing("SET"));
        }
        [_, "transaction", ..] => return Ok(SessionStatement::Nothing("SET")),
        [_, "session" | "local", ..] => 2,
        _ => 1,
    };
    let (name, value) = match &words[skip..] {
        ["time", "zone", ..] => ("timezone".to_string(), skip + 2),
        ["names", ..] => ("client_encoding".to_string(), skip + 1),
        [prefix, ".", name, "to" | "=", ..] => (format!("{prefix}.{name}"), skip + 4),
        [name, "to" | "=", ..] => (name.to_string(), skip + 2),
        _ => return Err(syntax(statement, statement.lexemes.get(skip + 1))),
    };
    let lexemes = &statement.lexemes[value.min(statement.lexemes.len())..];
    if lexemes.is_empty() {
        return Err(syntax(statement, None));
    }
    if let [only] = lexemes
        && (only.is("default") || (only.is("local") && name == "timezone"))
    {
        return Ok(SessionStatement::Set { name, value: None });
    }
    Ok(SessionStatement::Set { name, value: Some(join_values(lexemes)) })
}

/// A list of values as PostgreSQL stores it: separated by a comma and a space, a sign joined to its number.
fn join_values(lexemes: &[Lexeme<'_>]) -> String {
    let mut text = String::new();
    for (index, lexeme) in lexemes.iter().enumerate() {
        match lexeme.kind {
            Kind::Symbol if lexeme.is(",") => text.push_str(", "),
            Kind::Symbol => text.push_str(lexeme.text),
            Kind::Quoted if lexemes.len() > 1 && lexeme.text.starts_with('"') => text.push_str(lexeme.text),
            _ => {
                let after_word = index > 0 && lexemes[index - 1].kind == Kind::Word;
                if after_word {
                    text.push(' ');
                }
                text.push_str(&if lexeme.kind == Kind::Word {
                    lexeme.text.to_string()
                } else {
                    lexeme.value()
                });
            }
        }
    }
    text
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
}

impl Settings {
    /// The settings that a startup message asks for. What cannot be is left at its default: a driver that names its
    /// time zone must still be able to connect.
    pub(super) fn new(user: &str, parameters: &[(String, String)]) -> Settings {
        let mut settings = Settings::default();
        settings.changed.insert("session_authorization".to_string(), user.to_string());
        for (name, value) in parameters {
            if let Some(known) = find(name) {
                // A refusal leaves the default in place, which ParameterStatus tells the client.
                let _ = settings.set(known.name, Some(value));
            }
        }
        settings.initial = settings.changed.clone();
        settings
    }

    /// The value of a setting.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        match find(name) {
            Some(known) => {
                let value = self.changed.get(known.name);
                Some(value.cloned().unwrap_or_else(|| known.default.to_string()))
            }
            None => self.changed.get(&name.to_ascii_lowercase()).cloned(),
        }
    }

    /// Name and value of all settings.
    pub(super) fn all(&self) -> Vec<(String, String)> {
        KNOWN.iter().map(|known| (known.name.to_string(), self.get(known.name).unwrap_or_default())).collect()
    }

    /// Name and value of the settings that a client is told at the start.
    pub(super) fn reported(&self) -> Vec<(&'static str, String)> {
        let reported = KNOWN.iter().filter(|known| known.reported);
        reported.map(|known| (known.name, self.get(known.name).unwrap_or_default())).collect()
    }

    /// The time that a statement may take, where it is limited.
    pub(super) fn statement_timeout(&self) -> Option<std::time::Duration> {
        let milliseconds = self.get("statement_timeout").and_then(|text| parse_milliseconds(&text))?;
        (milliseconds > 0).then(|| std::time::Duration::from_millis(milliseconds))
    }

    /// Changes a setting; `None`: to its default.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Changed, SqlError> {
        let Some(known) = find(name) else { return self.set_custom(name, value) };
        let initial = self.initial.get(known.name).cloned();
        let value = match value {
            Some(value) => normalise(known, value)?,
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
            Change::Fixed | Change::Ignored => return Ok(Changed::default()),
            Change::Any | Change::Duration => {}
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
        self.changed = self.initial.clone();
        self.reported().into_iter().filter(|setting| !before.contains(setting)).collect()
    }

    /// The rows of SHOW.
    pub(super) fn show(&self, name: Option<&str>) -> Result<StatementResult, SqlError> {
        let Some(name) = name else {
            let row = |(name, value): (String, String)| {
                vec![Value::text(name), Value::text(value), Value::text("")]
            };
            let rows: Vec<Vec<Value>> = self.all().into_iter().map(row).collect();
            return Ok(StatementResult {
                tag: "SHOW".into(),
                columns: SessionStatement::ShowAll.columns(),
                rows,
                notices: Vec::new(),
            });
        };
        let value = self.get(name).ok_or_else(|| {
            SqlError::new(UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
        })?;
        let columns = SessionStatement::Show { name: name.to_string() }.columns();
        let rows = vec![vec![Value::text(value)]];
        Ok(StatementResult { tag: "SHOW".into(), columns, rows, notices: Vec::new() })
    }
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
        "DateStyle" if plain.starts_with("iso") => known.default.to_string(),
        "TimeZone"
            if ["utc", "gmt", "etcutc", "uct", "zulu", "0", "00", "0000", "greenwich"]
                .contains(&plain.as_str()) =>
        {
            known.default.to_string()
        }
        "default_transaction_read_only" | "transaction_read_only" | "standard_conforming_strings" => {
            match plain.as_str() {
                "on" | "true" | "yes" | "1" => "on".to_string(),
                "off" | "false" | "no" | "0" => "off".to_string(),
                _ => return Err(invalid()),
            }
        }
        _ if known.change == Change::Duration => {
            parse_milliseconds(value).ok_or_else(invalid)?;
            value.to_string()
        }
        _ => value.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::script::split;

    fn read(sql: &str) -> Result<SessionStatement, SqlError> {
        parse(&split(sql)[0])
    }

    fn set(name: &str, value: &str) -> Result<SessionStatement, SqlError> {
        Ok(SessionStatement::Set { name: name.into(), value: Some(value.into()) })
    }

    #[test]
    fn the_usual_statements_of_drivers_are_understood() {
        assert_eq!(read("SET client_encoding TO 'UTF8'"), set("client_encoding", "UTF8"));
        assert_eq!(read("set extra_float_digits = -3"), set("extra_float_digits", "-3"));
        assert_eq!(read("SET search_path TO public, \"My\""), set("search_path", "public, \"My\""));
        assert_eq!(read("SET TIME ZONE 'UTC'"), set("timezone", "UTC"));
        assert_eq!(read("SET LOCAL statement_timeout = '5s'"), set("statement_timeout", "5s"));
        assert_eq!(read("SET my.thing = 'x'"), set("my.thing", "x"));
        assert_eq!(
            read("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
            Ok(SessionStatement::Nothing("SET"))
        );
        let show = SessionStatement::Show { name: "transaction_isolation".into() };
        assert_eq!(read("SHOW TRANSACTION ISOLATION LEVEL"), Ok(show));
        assert_eq!(read("DEALLOCATE ALL"), Ok(SessionStatement::Deallocate(None)));
        assert_eq!(read("SET a").expect_err("no value").state, SqlState::SYNTAX_ERROR);
        assert_eq!(read("SET a =").expect_err("no value").position, Some(8));
    }

    #[test]
    fn settings_change_warn_or_refuse() {
        let mut settings = Settings::new("ada", &[("application_name".into(), "psql".into())]);
        assert_eq!(settings.get("APPLICATION_NAME").as_deref(), Some("psql"));
        let changed = settings.set("application_name", Some("other")).expect("free text");
        assert_eq!(changed.report, Some(("application_name", "other".to_string())));
        settings.set("application_name", None).expect("back to what the startup said");
        assert_eq!(settings.get("application_name").as_deref(), Some("psql"));
        assert!(settings.set("timezone", Some("Europe/Paris")).expect("accepted").warning.is_some());
        assert_eq!(settings.get("TimeZone").as_deref(), Some("UTC"));
        assert_eq!(settings.set("datestyle", Some("ISO")).expect("the same"), Changed::default());
        assert!(settings.set("server_version", Some("16")).is_err());
        assert!(settings.set("client_encoding", Some("LATIN1")).is_err());
        assert_eq!(settings.set("nonsense", Some("1")).expect_err("unknown").state, UNDEFINED_OBJECT);
        settings.set("statement_timeout", Some("2min")).expect("a duration");
        assert_eq!(settings.statement_timeout(), Some(std::time::Duration::from_secs(120)));
        assert!(settings.set("statement_timeout", Some("soon")).is_err());
    }
}
