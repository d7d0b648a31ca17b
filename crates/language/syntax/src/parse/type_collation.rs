//! `ALTER TABLE … ALTER COLUMN … TYPE … COLLATE "C"`, which sqlparser does not read: texts compare by their bytes here, which is what it says.

use crate::names::position_in;
use crate::parse::tokens::word_at;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{SqlError, SqlState};

/// Takes the collations out of the changes of types of an ALTER TABLE.
///
/// # Errors
/// `0A000` for another collation than that; `42601` where none is named.
pub(super) fn drop_type_collations(tokens: &mut Vec<TokenWithSpan>, sql: &str) -> Result<(), SqlError> {
    if !word_at(tokens, 0, "alter") || !word_at(tokens, 1, "table") {
        return Ok(());
    }
    let (mut at, mut depth, mut in_type) = (2, 0_usize, false);
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => in_type = false,
            Token::Word(_) if depth == 0 && word_at(tokens, at, "using") => in_type = false,
            // The column, and TYPE behind it or behind SET DATA.
            Token::Word(_) if depth == 0 && changes_type(tokens, at) => in_type = true,
            Token::Word(_) if in_type && depth == 0 && word_at(tokens, at, "collate") => {
                let end = collation_end(tokens, at + 1, sql)?;
                tokens.drain(at..end);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

fn changes_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    let behind = |before: usize, word: &str| at >= before && word_at(tokens, at - before, word);
    let column = if behind(1, "data") && behind(2, "set") { 3 } else { 1 };
    word_at(tokens, at, "type")
        && (behind(column + 1, "alter") || (behind(column + 1, "column") && behind(column + 2, "alter")))
}

/// The place behind a collation whose texts compare by their bytes.
fn collation_end(tokens: &[TokenWithSpan], at: usize, sql: &str) -> Result<usize, SqlError> {
    let is_schema = word_at(tokens, at, "pg_catalog")
        && tokens.get(at + 1).is_some_and(|token| token.token == Token::Period);
    let at = if is_schema { at + 2 } else { at };
    let position = tokens.get(at).and_then(|token| position_in(sql, token.span.start));
    let located = |error: SqlError| match position {
        Some(position) => error.at(position),
        None => error,
    };
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word))
            if matches!(word.value.as_str(), "C" | "POSIX") && word.quote_style.is_some() =>
        {
            Ok(at + 1)
        }
        Some(Token::Word(_)) => {
            Err(located(SqlError::unsupported("COLLATE").hint("Text compares by bytes: COLLATE \"C\".")))
        }
        _ => Err(located(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "the name of a collation is expected behind COLLATE",
        ))),
    }
}
