//! `ALTER FUNCTION`, `ALTER PROCEDURE` and `ALTER ROUTINE`, but for their owner.

use crate::parse::errors::expect_end;
use crate::parse::grant::{NamedRoutine, routine};
use crate::parse::routine::{RoutineOptions, parse_changed_options};
use crate::parse::tokens::word_at;
use crate::parse::words::{accept, expect_word, name, next_word};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::TokenWithSpan;
use types::SqlError;

/// `ALTER FUNCTION name …` and its kin.
#[derive(Clone, Debug)]
pub struct AlterRoutine {
    /// Whether it says that it is a function; `None`: ALTER ROUTINE.
    pub is_function: Option<bool>,
    /// Which one.
    pub routine: NamedRoutine,
    /// What becomes of it.
    pub change: RoutineChange,
}

/// What becomes of a procedure or function.
#[derive(Clone, Debug)]
pub enum RoutineChange {
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    SetSchema(String),
    /// IMMUTABLE, STRICT, SECURITY DEFINER, SET search_path and their kin.
    Options(Box<RoutineOptions>),
}

/// Whether the tokens of a statement are this one.
pub fn alters_routine(tokens: &[TokenWithSpan]) -> bool {
    let kinds = ["function", "procedure", "routine"];
    word_at(tokens, 0, "alter") && kinds.iter().any(|kind| word_at(tokens, 1, kind))
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` for an option that is not supported.
pub fn parse_alter_routine(parser: &mut Parser<'_>, sql: &str) -> Result<AlterRoutine, SqlError> {
    expect_word(parser, "alter", sql)?;
    let is_function = match next_word(parser, sql)?.as_str() {
        "function" => Some(true),
        "procedure" => Some(false),
        _ => None,
    };
    let routine = routine(parser, sql)?;
    let change = if accept(parser, "rename") {
        expect_word(parser, "to", sql)?;
        RoutineChange::Rename(name(parser, sql)?)
    } else if parser.peek_nth_token(1).token.to_string().eq_ignore_ascii_case("schema")
        && accept(parser, "set")
    {
        expect_word(parser, "schema", sql)?;
        RoutineChange::SetSchema(name(parser, sql)?)
    } else {
        RoutineChange::Options(Box::new(parse_changed_options(parser, sql)?))
    };
    expect_end(parser, sql)?;
    Ok(AlterRoutine { is_function, routine, change })
}
