//! Reading what SET, SHOW, RESET and DISCARD ask for, which the session answers without the database; and VACUUM and
//! ANALYZE, which have nothing to do here.

use super::script::{Kind, Lexeme, SLEEP, Statement, syntax_error};
use super::settings::{ALL_COLUMNS, shown_name};
use super::transaction_command::Modes;
use super::words::Words;
use crate::notifier::ListenCommand;
use std::time::Duration;
use types::limits::NAME_BYTES_MAX;
use types::{DataType, OutputColumn, SqlError, SqlState, StatementResult, Value};

/// What a session statement does beside changing settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionStatement {
    /// Sets one setting; `None`: to its default. `local`: until the end of the transaction block.
    Set { name: String, value: Option<String>, local: bool },
    /// What transactions are that do not say it themselves: SET SESSION CHARACTERISTICS.
    SetDefaults(Modes),
    /// Shows one setting.
    Show { name: String },
    /// Shows all.
    ShowAll,
    /// Sets every setting to its default.
    ResetAll,
    /// Forgets everything: settings, prepared statements, portals.
    DiscardAll,
    /// Drops the temporary tables.
    DiscardTemporary,
    /// Forgets a part that a session of Entente does not have (plans, sequences).
    DiscardNothing(&'static str),
    /// Forgets one prepared statement, or all.
    Deallocate(Option<String>),
    /// Begins or ends listening.
    Listen(ListenCommand),
    /// Waits: `SELECT pg_sleep(seconds)`. Contracts cannot, and nobody but the session does.
    Sleep(Duration),
    /// Does nothing, successfully.
    Nothing(&'static str),
}

impl SessionStatement {
    /// Columns of the rows that it returns.
    pub(super) fn columns(&self) -> Vec<OutputColumn> {
        let text = |name: &str| OutputColumn { name: name.to_string(), data_type: DataType::Text(None) };
        match self {
            SessionStatement::Show { name } => {
                vec![text(shown_name(name))]
            }
            SessionStatement::Sleep(_) => vec![text(SLEEP)],
            SessionStatement::ShowAll => ALL_COLUMNS.map(text).to_vec(),
            _ => Vec::new(),
        }
    }
}

/// Reads a statement of the class `Session`.
pub(super) fn parse(statement: &Statement<'_>) -> Result<SessionStatement, SqlError> {
    let words: Vec<String> = statement.lexemes.iter().map(Lexeme::value).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let error = |index: usize| syntax_error(statement, statement.lexemes.get(index));
    let one = |name: &str| name.to_string();
    Ok(match words.as_slice() {
        ["show", "all"] => SessionStatement::ShowAll,
        ["show", rest @ ..] if !rest.is_empty() => SessionStatement::Show { name: joined_name(rest) },
        ["reset", "all"] => SessionStatement::ResetAll,
        ["reset", rest @ ..] if !rest.is_empty() => {
            SessionStatement::Set { name: joined_name(rest), value: None, local: false }
        }
        ["discard", "all"] => SessionStatement::DiscardAll,
        ["discard", "plans"] => SessionStatement::DiscardNothing("DISCARD PLANS"),
        ["discard", "sequences"] => SessionStatement::DiscardNothing("DISCARD SEQUENCES"),
        ["discard", "temp" | "temporary"] => SessionStatement::DiscardTemporary,
        ["deallocate", "all"] | ["deallocate", "prepare", "all"] => SessionStatement::Deallocate(None),
        ["deallocate", "prepare", name] | ["deallocate", name] => {
            SessionStatement::Deallocate(Some(one(name)))
        }
        ["listen" | "unlisten", ..] => SessionStatement::Listen(parse_listen(statement)?),
        // There are no dead rows to be swept, and no statistics: what tools send in passing is taken.
        ["vacuum", ..] => SessionStatement::Nothing("VACUUM"),
        ["analyze" | "analyse", ..] => SessionStatement::Nothing("ANALYZE"),
        ["select", .., time, ")"] => SessionStatement::Sleep(seconds(time)?),
        ["set", ..] => return parse_set(statement, &words),
        _ => return Err(error(1)),
    })
}

/// `LISTEN channel`, `UNLISTEN channel` and `UNLISTEN *`.
fn parse_listen(statement: &Statement<'_>) -> Result<ListenCommand, SqlError> {
    let mut words = Words::of(statement);
    let listens = words.take("listen");
    if !listens {
        words.expect("unlisten")?;
        if words.take("*") {
            return words.end(ListenCommand::UnlistenAll);
        }
    }
    let mut channel = words.name()?;
    // As of every name its first bytes count.
    channel.truncate(channel.floor_char_boundary(NAME_BYTES_MAX));
    words.end(if listens { ListenCommand::Listen(channel) } else { ListenCommand::Unlisten(channel) })
}

/// What a statement that has waited gives: nothing, in one row.
pub(super) fn slept() -> StatementResult {
    let columns = SessionStatement::Sleep(Duration::ZERO).columns();
    StatementResult {
        tag: "SELECT 1".to_string(),
        columns,
        rows: vec![vec![Value::text("")]],
        notices: Vec::new(),
    }
}

fn seconds(time: &str) -> Result<Duration, SqlError> {
    let wrong = || {
        let message = format!("invalid input syntax for type double precision: \"{time}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    };
    let seconds: f64 = time.trim().parse().map_err(|_| wrong())?;
    // Nothing waits for longer than a client does.
    Ok(Duration::try_from_secs_f64(seconds.clamp(0.0, 1e9)).unwrap_or_default())
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
            let mut words = Words { statement, at: 5 };
            return match words.peek() {
                None => Err(words.error()),
                Some(_) => words.modes().map(SessionStatement::SetDefaults),
            };
        }
        // On a ledger of a version that has no constraints which can be deferred.
        [_, "constraints", ..] => return Ok(SessionStatement::Nothing("SET CONSTRAINTS")),
        [_, "session" | "local", ..] => 2,
        _ => 1,
    };
    let local = words.get(1) == Some(&"local");
    let (name, value) = match &words[skip..] {
        ["time", "zone", ..] => ("timezone".to_string(), skip + 2),
        ["authorization", ..] if skip == 2 => ("session_authorization".to_string(), skip + 1),
        ["session", "authorization", ..] => ("session_authorization".to_string(), skip + 2),
        ["role", next, ..] if !["to", "="].contains(next) => ("role".to_string(), skip + 1),
        ["names", ..] => ("client_encoding".to_string(), skip + 1),
        [prefix, ".", name, "to" | "=", ..] => (format!("{prefix}.{name}"), skip + 4),
        [name, "to" | "=", ..] => (name.to_string(), skip + 2),
        _ => return Err(syntax_error(statement, statement.lexemes.get(skip + 1))),
    };
    let lexemes = &statement.lexemes[value.min(statement.lexemes.len())..];
    if lexemes.is_empty() {
        return Err(syntax_error(statement, None));
    }
    if let [only] = lexemes
        && (only.is("default") || (only.is("local") && name == "timezone"))
    {
        return Ok(SessionStatement::Set { name, value: None, local });
    }
    let value = match name.as_str() {
        "search_path" => join_names(statement, lexemes)?,
        "role" | "session_authorization" if lexemes.len() == 1 => lexemes[0].value(),
        _ => join_values(lexemes),
    };
    Ok(SessionStatement::Set { name, value: Some(value), local })
}

/// A list of names as PostgreSQL stores it: in quotes where they need them.
fn join_names(statement: &Statement<'_>, lexemes: &[Lexeme<'_>]) -> Result<String, SqlError> {
    let mut names = Vec::new();
    for (index, lexeme) in lexemes.iter().enumerate() {
        let is_name = matches!(lexeme.kind, Kind::Word | Kind::Quoted);
        if is_name != (index % 2 == 0) || (!is_name && !lexeme.is(",")) {
            return Err(syntax_error(statement, Some(lexeme)));
        }
        if is_name {
            names.push(quoted_name(&lexeme.value()));
        }
    }
    Ok(names.join(", "))
}

fn quoted_name(name: &str) -> String {
    let plain = |(index, byte): (usize, u8)| {
        byte.is_ascii_lowercase() || byte == b'_' || (index > 0 && byte.is_ascii_digit())
    };
    match !name.is_empty() && name.bytes().enumerate().all(plain) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::script::split;
    use types::SqlState;

    fn read(sql: &str) -> Result<SessionStatement, SqlError> {
        parse(&split(sql)[0])
    }

    fn set(name: &str, value: &str) -> Result<SessionStatement, SqlError> {
        Ok(SessionStatement::Set { name: name.into(), value: Some(value.into()), local: false })
    }

    #[test]
    fn the_usual_statements_of_drivers_are_understood() {
        assert_eq!(read("SET client_encoding TO 'UTF8'"), set("client_encoding", "UTF8"));
        assert_eq!(read("set extra_float_digits = -3"), set("extra_float_digits", "-3"));
        assert_eq!(read("SET search_path TO public, \"My\""), set("search_path", "public, \"My\""));
        assert_eq!(read("SET search_path TO \"$user\""), set("search_path", "\"$user\""));
        assert_eq!(read("SET search_path TO ''"), set("search_path", "\"\""));
        assert_eq!(read("SET search_path = 'My', B"), set("search_path", "\"My\", b"));
        assert!(read("SET search_path TO a b").is_err());
        assert_eq!(read("SET TIME ZONE 'UTC'"), set("timezone", "UTC"));
        assert_eq!(read("vacuum analyze t"), Ok(SessionStatement::Nothing("VACUUM")));
        assert_eq!(read("ANALYZE t (a, b)"), Ok(SessionStatement::Nothing("ANALYZE")));
        let local =
            SessionStatement::Set { name: "statement_timeout".into(), value: Some("5s".into()), local: true };
        assert_eq!(read("SET LOCAL statement_timeout = '5s'"), Ok(local));
        assert_eq!(read("SET my.thing = 'x'"), set("my.thing", "x"));
        assert_eq!(
            read("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
            Ok(SessionStatement::SetDefaults(Modes { isolation: Some("serializable"), ..Modes::default() }))
        );
        let show = SessionStatement::Show { name: "transaction_isolation".into() };
        assert_eq!(read("SHOW TRANSACTION ISOLATION LEVEL"), Ok(show));
        assert_eq!(read("DEALLOCATE ALL"), Ok(SessionStatement::Deallocate(None)));
        let listen = |command| Ok(SessionStatement::Listen(command));
        assert_eq!(read("LISTEN News"), listen(ListenCommand::Listen("news".into())));
        assert_eq!(read("listen \"News\""), listen(ListenCommand::Listen("News".into())));
        assert_eq!(read("UNLISTEN news"), listen(ListenCommand::Unlisten("news".into())));
        assert_eq!(read("UNLISTEN *"), listen(ListenCommand::UnlistenAll));
        for wrong in ["LISTEN", "LISTEN *", "LISTEN a b", "LISTEN 'a'", "UNLISTEN", "UNLISTEN * a"] {
            assert_eq!(read(wrong).expect_err(wrong).state, SqlState::SYNTAX_ERROR, "{wrong}");
        }
        let long = read(&format!("LISTEN {}", "c".repeat(64)));
        assert_eq!(long, listen(ListenCommand::Listen("c".repeat(63))));
        assert_eq!(read("SET a").expect_err("no value").state, SqlState::SYNTAX_ERROR);
        assert_eq!(read("SET a =").expect_err("no value").position, Some(8));
    }
}
