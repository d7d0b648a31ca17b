//! `nextval`, `setval`, `currval` and `lastval`, and what a sequence in FROM shows: functions that run in the execution of their
//! statement.

use sqlparser::tokenizer::{Span, Token};
use syntax::names::name_of;
use syntax::parse::tokenize;
use types::{
    ExecutionVersion, Key, SqlError, SqlState, catalog_name, quoted_catalog_name, split_catalog_name,
};

/// The name under which a call of nextval() stands; no function of the ledger has it.
pub const NEXT_VALUE: &str = "pg_catalog.nextval";
/// The same of setval().
pub const SET_VALUE: &str = "pg_catalog.setval";
/// The same of currval().
pub const CURRENT_VALUE: &str = "pg_catalog.currval";
pub(crate) const LAST_VALUE: &str = "pg_catalog.lastval";
/// The same of pg_get_serial_sequence(), which draws nothing.
pub const SERIAL_SEQUENCE: &str = "pg_catalog.pg_get_serial_sequence";

/// The name under which a call of what gives the last value of a sequence stands.
pub const STANDING_VALUE: &str = "pg_catalog.standing_value";
/// The same of what says whether that has been drawn.
pub const STANDING_IS_DRAWN: &str = "pg_catalog.standing_is_drawn";

/// Whether a call of this name looks at where a sequence stands.
pub fn looks_at_sequence(name: &str) -> bool {
    matches!(name, STANDING_VALUE | STANDING_IS_DRAWN)
}

/// The query of the row that a sequence in FROM is. `name`: that in the catalog.
pub(crate) fn row_of_sequence(name: &str) -> String {
    let text = format!("'{}'", quoted_catalog_name(name).replace('\'', "''"));
    format!(
        "SELECT \"{STANDING_VALUE}\"({text}) AS last_value, 0::bigint AS log_cnt, \"{STANDING_IS_DRAWN}\"({text}) AS is_called"
    )
}

/// Whether a call of this name is one of these functions.
pub fn is_sequence_function(name: &str) -> bool {
    matches!(name, NEXT_VALUE | SET_VALUE | CURRENT_VALUE | LAST_VALUE)
}

/// Whether SQL asks by this name for the sequence of a column. Before version 13 only queries of the catalog did.
pub(crate) fn asks_for_sequence(name: &str, version: ExecutionVersion) -> bool {
    version >= ExecutionVersion::V13 && name == "pg_get_serial_sequence"
}

/// Whether a function of this name looks at a sequence.
pub fn draws_value(name: &str) -> bool {
    matches!(name, "nextval" | "setval" | "currval" | "lastval")
}

/// The name in the catalog of the sequence, or of another relation, that a text names where no search path is at hand.
///
/// # Errors
/// As [`sequence_name`].
pub fn stored_sequence_name(text: &str) -> Result<String, SqlError> {
    let name = sequence_name(text)?;
    Ok(match split_catalog_name(&name) {
        (schema, object) if name.contains('.') => catalog_name(schema, object),
        _ => name,
    })
}

/// The sequence, or other relation, that a text names: an identifier, as in SQL, with a schema in front or without.
///
/// # Errors
/// `42602` for what is no name.
pub fn sequence_name(text: &str) -> Result<String, SqlError> {
    let invalid = || SqlError::new(SqlState(*b"42602"), "invalid name syntax");
    let tokens = tokenize(text).map_err(|_| invalid())?;
    let mut words = Vec::new();
    for token in tokens.iter().filter(|token| token.token != Token::EOF) {
        match &token.token {
            Token::Word(word) => words.push(name_of(&word.clone().into_ident(Span::empty()))?),
            Token::Period if words.len() == 1 => {}
            _ => return Err(invalid()),
        }
    }
    match words.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] => Ok(format!("{schema}.{name}")),
        _ => Err(invalid()),
    }
}

/// `42P01`: there is no sequence of this name.
pub fn no_sequence(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

/// The refusal of what only a sequence that counts can do.
pub fn does_not_count(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} of a sequence that does not count")).hint(
        "Its values are made of the block's height and the place in it, so that nobody waits for anybody. One that is created with START, INCREMENT or AS integer counts.",
    )
}

/// The key of the only row of a counter.
pub fn counter_key() -> Key {
    Key::from_bytes(&[0])
}
