//! `NOTIFY`.

use crate::parse::errors::{expect_end, unexpected};
use crate::parse::tokens::word_at;
use crate::parse::words::{expect_word, name};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// `NOTIFY channel [, 'payload']`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyStatement {
    /// The channel.
    pub channel: String,
    /// What is said; empty where nothing is.
    pub payload: String,
}

/// Whether these tokens notify.
pub fn notifies(tokens: &[TokenWithSpan]) -> bool {
    word_at(tokens, 0, "notify")
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_notify(parser: &mut Parser<'_>, sql: &str) -> Result<NotifyStatement, SqlError> {
    expect_word(parser, "notify", sql)?;
    // sqlparser takes a literal for a name.
    let next = parser.peek_token();
    let Token::Word(_) = next.token else { return Err(unexpected(&next, sql)) };
    let channel = name(parser, sql)?;
    let payload = match parser.consume_token(&Token::Comma) {
        false => String::new(),
        true => {
            let token = parser.next_token();
            said(&token.token).ok_or_else(|| unexpected(&token, sql))?
        }
    };
    expect_end(parser, sql)?;
    Ok(NotifyStatement { channel, payload })
}

/// What a literal says.
pub(crate) fn said(token: &Token) -> Option<String> {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Some(text.clone()),
        Token::DollarQuotedString(text) => Some(text.value.clone()),
        _ => None,
    }
}
