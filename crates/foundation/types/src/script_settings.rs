//! What a script means depends on settings of its session: a script may begin with `SET search_path TO …;` and, from execution version
//! 9 on, with `SET TIME ZONE '…';` and the other settings of [`SessionFormat`], which count for all of it. From version 14 on it may say whose
//! advisory locks it takes and gives back: `SET entente.advisory_session TO '…';`.
//!
//! A gateway puts the settings of its session in front of what it sends, so that a transaction carries them under its signature.

use crate::session_format::{SessionFormat, TEXT_SEARCH};
use crate::{AdvisorySession, ExecutionVersion, SearchPath, SqlError, SqlState, limits};
use std::borrow::Cow;

/// What says whose advisory locks a script takes and gives back.
const ADVISORY: &str = "entente.advisory_session";

/// Settings of a session that change what its scripts mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptSettings {
    /// Where names without a schema are looked for.
    pub search_path: SearchPath,
    /// In which values are read and written.
    pub format: SessionFormat,
    /// Whose advisory locks it takes and gives back.
    pub advisory: Option<AdvisorySession>,
}

impl ScriptSettings {
    /// The script with these settings in front of it.
    pub fn in_front_of<'s>(&self, script: &'s str) -> Cow<'s, str> {
        if *self == ScriptSettings::default() {
            return Cow::Borrowed(script);
        }
        let path = match self.search_path.is_default() {
            true => String::new(),
            false => format!("SET search_path TO {};", self.search_path),
        };
        let advisory =
            self.advisory.map_or_else(String::new, |session| format!("SET {ADVISORY} TO '{session}';"));
        Cow::Owned([&path, &self.format.statements(), &advisory, script].concat())
    }
}

/// The settings that a script begins with by these rules, and the rest of the script.
///
/// # Errors
/// `42601` for a list of schemas that is none; a name that cannot be; `22023` for a time zone that there is not, and its kind.
pub fn split_settings(sql: &str, version: ExecutionVersion) -> Result<(ScriptSettings, &str), SqlError> {
    let (mut settings, mut rest) = (ScriptSettings::default(), sql);
    loop {
        rest = if let Some((path, behind)) = search_path_of(rest)? {
            settings.search_path = path;
            behind
        } else if version >= ExecutionVersion::V9
            && let Some((format, behind)) = format_of(settings.format, rest, version)?
        {
            settings.format = format;
            behind
        } else if version >= ExecutionVersion::V14
            && let Some((session, behind)) = advisory_of(rest)?
        {
            settings.advisory = Some(session);
            behind
        } else {
            return Ok((settings, rest));
        };
        // Before, one path was all.
        if version < ExecutionVersion::V9 {
            return Ok((settings, rest));
        }
    }
}

/// The path that a script begins with, and what is behind it.
fn search_path_of(sql: &str) -> Result<Option<(SearchPath, &str)>, SqlError> {
    let mut reader = Reader { rest: sql };
    if !reader.accept_set() || !reader.accept_word("search_path") || !reader.accept_to() {
        return Ok(None);
    }
    let path = SearchPath::new(reader.names()?)?;
    match reader.accept(";") || reader.rest.trim_start().is_empty() {
        true => Ok(Some((path, reader.rest))),
        false => Err(reader.unexpected()),
    }
}

/// The format as the setting changes it that a script begins with, and what is behind that.
fn format_of(
    format: SessionFormat,
    sql: &str,
    version: ExecutionVersion,
) -> Result<Option<(SessionFormat, &str)>, SqlError> {
    let mut reader = Reader { rest: sql };
    if !reader.accept_set() {
        return Ok(None);
    }
    let name = match reader.accept_word("time") && reader.accept_word("zone") {
        true => "timezone",
        false => {
            let length = reader.word();
            let name = &reader.rest[..length];
            reader.rest = &reader.rest[length..];
            if !reader.accept_to() {
                return Ok(None);
            }
            name
        }
    };
    let Some(value) = reader.text() else { return Ok(None) };
    let is_known = version >= ExecutionVersion::V15 || !name.eq_ignore_ascii_case(TEXT_SEARCH);
    if !reader.accept(";") || !is_known {
        return Ok(None);
    }
    Ok(format.changed_by(name, &value)?.map(|format| (format, reader.rest)))
}

/// The session whose advisory locks a script takes and gives back, if it begins with that, and what is behind.
fn advisory_of(sql: &str) -> Result<Option<(AdvisorySession, &str)>, SqlError> {
    let mut reader = Reader { rest: sql };
    let is_named = reader.accept_set()
        && reader.accept_word("entente")
        && reader.accept(".")
        && reader.accept_word("advisory_session")
        && reader.accept_to();
    let Some(value) = reader.text().filter(|_| is_named) else { return Ok(None) };
    if !reader.accept(";") {
        return Ok(None);
    }
    let session = AdvisorySession::parse(&value).ok_or_else(|| {
        let message = format!("invalid value for parameter \"{ADVISORY}\": \"{value}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).hint(
            "32 hexadecimal digits, a blank, and for how many milliseconds locks stay without being renewed.",
        )
    })?;
    Ok(Some((session, reader.rest)))
}

/// The schemas of a setting's value, as SET and SHOW write them: `"$user", public`.
///
/// # Errors
/// As `22023` what is no list of names.
pub fn parse_search_path(text: &str) -> Result<Vec<String>, SqlError> {
    let mut reader = Reader { rest: text };
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let invalid = |_| {
        let message = format!("invalid value for parameter \"search_path\": \"{text}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).detail("List syntax is invalid.")
    };
    let names = reader.names().map_err(invalid)?;
    match reader.rest.trim_start().is_empty() {
        true => Ok(names),
        false => Err(invalid(reader.unexpected())),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(|character: char| character.is_ascii_whitespace());
    }

    /// Bytes of the word that comes next.
    fn word(&mut self) -> usize {
        self.skip_blanks();
        let is_part = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
        };
        self.rest.find(|character| !is_part(character)).unwrap_or(self.rest.len())
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let length = self.word();
        let found = self.rest[..length].eq_ignore_ascii_case(word);
        if found {
            self.rest = &self.rest[length..];
        }
        found
    }

    fn accept_set(&mut self) -> bool {
        let is_set = self.accept_word("set");
        if is_set && !self.accept_word("local") {
            self.accept_word("session");
        }
        is_set
    }

    fn accept_to(&mut self) -> bool {
        self.accept_word("to") || self.accept("=")
    }

    /// What stands in single quotes.
    fn text(&mut self) -> Option<String> {
        self.skip_blanks();
        let (text, rest) = self.rest.strip_prefix('\'')?.split_once('\'')?;
        self.rest = rest;
        Some(text.to_string())
    }

    fn accept(&mut self, symbol: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn names(&mut self) -> Result<Vec<String>, SqlError> {
        let mut names = Vec::new();
        loop {
            names.extend(self.name()?);
            if !self.accept(",") {
                return Ok(names);
            }
        }
    }

    /// A name; `''` and `""` are none.
    fn name(&mut self) -> Result<Option<String>, SqlError> {
        let length = self.word();
        if length > 0 {
            let word = &self.rest[..length];
            self.rest = &self.rest[length..];
            let name = word.to_ascii_lowercase();
            limits::check_name_length(&name)?;
            return Ok(Some(name));
        }
        let Some(quote) = self.rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else {
            return Err(self.unexpected());
        };
        let mut name = String::new();
        let mut at = 1;
        loop {
            let Some(end) = self.rest[at..].find(quote) else { return Err(self.unexpected()) };
            name.push_str(&self.rest[at..at + end]);
            at += end + 1;
            if !self.rest[at..].starts_with(quote) {
                break;
            }
            name.push(quote);
            at += 1;
        }
        self.rest = &self.rest[at..];
        limits::check_name_length(&name)?;
        Ok((!name.is_empty()).then_some(name))
    }

    fn unexpected(&self) -> SqlError {
        let rest = self.rest.trim_start().chars().take(limits::NAME_BYTES_MAX);
        let found: String = rest.take_while(|next| !next.is_whitespace()).collect();
        let message = match found.is_empty() {
            true => "syntax error at end of input".to_string(),
            false => format!("syntax error at or near \"{found}\""),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_zone::TimeZone;

    fn split(sql: &str) -> (Vec<String>, &str) {
        let (settings, rest) = split_settings(sql, ExecutionVersion::NEWEST).expect("a list");
        (settings.search_path.schemas().to_vec(), rest)
    }

    #[test]
    fn a_script_may_begin_with_its_path() {
        for sql in
            ["SET search_path TO a, \"B\"\"c\";SELECT 1", "set  local search_path = A , 'B\"c' ;SELECT 1"]
        {
            assert_eq!(split(sql), (vec!["a".to_string(), "B\"c".to_string()], "SELECT 1"));
        }
        assert_eq!(split("SET search_path TO '';SELECT 1"), (Vec::new(), "SELECT 1"));
        assert_eq!(split("SET SESSION search_path TO é"), (vec!["é".to_string()], ""));
        let public = vec!["public".to_string()];
        for sql in
            ["", "SELECT 1", "SET x TO 1", "SETTLE", "set", "SET search_path", "-- SET search_path TO a"]
        {
            assert_eq!(split(sql), (public.clone(), sql));
        }
        for sql in ["SET search_path TO ", "SET search_path TO a b", "SET search_path = \"a"] {
            assert!(split_settings(sql, ExecutionVersion::NEWEST).is_err(), "{sql}");
        }
    }

    #[test]
    fn a_script_may_say_its_time_zone_from_version_9_on() {
        let berlin = TimeZone::of_setting("Europe/Berlin").expect("known");
        for sql in [
            "SET TIME ZONE 'Europe/Berlin';SELECT 1",
            "set local timezone = 'EUROPE/berlin' ; SELECT 1",
            "SET search_path TO public; SET SESSION timezone TO 'Europe/Berlin';SELECT 1",
            "SET DateStyle TO 'ISO, MDY';SET TIME ZONE 'Europe/Berlin';SET search_path TO public;SELECT 1",
        ] {
            let (settings, rest) = split_settings(sql, ExecutionVersion::V9).expect("settings");
            assert_eq!((settings.format.zone, rest.trim()), (berlin, "SELECT 1"));
            let (settings, rest) = split_settings(sql, ExecutionVersion::V8).expect("settings");
            assert!(settings.format.is_default() && rest.to_lowercase().contains("zone"), "{rest}");
        }
        for sql in [
            "SET TIME ZONE Berlin;",
            "SET TIME ZONE 'UTC'",
            "SET TIME ZONE 'UTC' x;",
            "SET timezone 'UTC';",
            "SET TIME ZONE 'x",
        ] {
            assert_eq!(split_settings(sql, ExecutionVersion::V9).expect("none").1, sql);
        }
        let wrong = split_settings("SET TIME ZONE 'Nowhere';SELECT 1", ExecutionVersion::V9);
        assert_eq!(wrong.err().map(|error| error.state), Some(SqlState::INVALID_PARAMETER_VALUE));
    }

    #[test]
    fn a_script_may_say_whose_locks_it_takes_from_version_14_on() {
        let sql = format!("SET entente.advisory_session TO '{} 5000';SELECT 1", "0a".repeat(16));
        let (settings, rest) = split_settings(&sql, ExecutionVersion::V14).expect("a session");
        assert_eq!(settings.advisory, Some(AdvisorySession { id: [10; 16], lease_ms: 5_000 }));
        assert_eq!(rest, "SELECT 1");
        let (settings, rest) = split_settings(&sql, ExecutionVersion::V13).expect("a statement");
        assert_eq!((settings.advisory, rest), (None, sql.as_str()));
        let wrong = split_settings("SET entente.advisory_session = 'x';SELECT 1", ExecutionVersion::V14);
        assert_eq!(wrong.err().map(|error| error.state), Some(SqlState::INVALID_PARAMETER_VALUE));
    }

    #[test]
    fn what_settings_show_is_read_again() {
        let path = SearchPath::new(["a", "B \"c\"", "é"].map(str::to_string)).expect("a short path");
        let none = SearchPath::new([]).expect("a short path");
        let zones = ["UTC", "europe/berlin", "5.5", "-3", "<+0530>-05:30", "0.0125"];
        for search_path in [path, none, SearchPath::default()] {
            for zone in zones.map(|zone| TimeZone::of_setting(zone).expect("a zone")) {
                let format = SessionFormat { zone, ..SessionFormat::default() };
                let format = format.changed_by("DateStyle", "German").expect("a style").expect("known");
                let format = format.changed_by("extra_float_digits", "-3").expect("digits").expect("known");
                let advisory = Some(AdvisorySession { id: [7; 16], lease_ms: 60_000 });
                let settings = ScriptSettings { search_path: search_path.clone(), format, advisory };
                let script = settings.in_front_of("x");
                let read = split_settings(&script, ExecutionVersion::V14).expect("settings");
                assert_eq!(read, (settings.clone(), "x"), "{script}");
            }
        }
        assert_eq!(parse_search_path("\"$user\", public").expect("a list"), ["$user", "public"]);
        assert_eq!(parse_search_path(" ").expect("a list"), Vec::<String>::new());
        assert!(parse_search_path("a b").is_err());
    }
}
