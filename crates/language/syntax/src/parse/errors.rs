//! Errors that say where a text is wrong: with the position, and PostgreSQL's words about the token that stands there.

use crate::names::position_in;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use types::{SqlError, SqlState, limits};

/// The error with the position of its cause in the text.
pub fn located(error: SqlError, sql: &str, location: Location) -> SqlError {
    match position_in(sql, location) {
        Some(position) => error.at(position),
        None => error,
    }
}

pub(super) fn syntax_error(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error: {message}"))
}

/// The error of a token that cannot stand where it stands.
pub fn unexpected(token: &TokenWithSpan, sql: &str) -> SqlError {
    match &token.token {
        Token::EOF => {
            let end = sql.chars().count() as u32 + 1;
            SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input").at(end)
        }
        other => {
            let message = format!("syntax error at or near \"{other}\"");
            located(SqlError::new(SqlState::SYNTAX_ERROR, message), sql, token.span.start)
        }
    }
}

/// Refuses anything behind a statement but its semicolon.
///
/// # Errors
/// `42601` with the position of what stands there.
pub fn expect_end(parser: &Parser<'_>, sql: &str) -> Result<(), SqlError> {
    let next = parser.peek_token();
    if next.token == Token::EOF { Ok(()) } else { Err(unexpected(&next, sql)) }
}

/// sqlparser's errors say where it stopped; PostgreSQL's words are about that token.
pub fn parser_error(error: ParserError, parser: &Parser<'_>, sql: &str) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = format!(
                "the statement is nested more than {} levels deep (NESTING_MAX)",
                limits::NESTING_MAX
            );
            SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        }
        ParserError::TokenizerError(message) => syntax_error(&message),
        ParserError::ParserError(message) => {
            let location = message.rsplit_once(" at Line: ").and_then(|(_, place)| {
                let (line, column) = place.split_once(", Column: ")?;
                Some(Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
            });
            let next = parser.peek_token();
            match location {
                Some(location) => {
                    let found = message
                        .rsplit_once("found: ")
                        .and_then(|(_, rest)| rest.rsplit_once(" at Line"))
                        .map(|(found, _)| found);
                    let error = match found {
                        Some("EOF") | None => unexpected(&next, sql),
                        Some(found) => SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            format!("syntax error at or near \"{found}\""),
                        ),
                    };
                    let detail = message.rsplit_once(" at Line: ").map_or(message.as_str(), |(what, _)| what);
                    located(error, sql, location).detail(detail.to_string())
                }
                None => unexpected(&next, sql).detail(message),
            }
        }
    }
}
