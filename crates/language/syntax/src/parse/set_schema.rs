//! `ALTER TABLE … SET SCHEMA`, which sqlparser does not read.

use crate::parse::words::{accept, expect_word, name, relation};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// `ALTER TABLE … SET SCHEMA …`
#[derive(Clone, Debug)]
pub struct SetSchema {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The table.
    pub table: String,
    /// Where it goes.
    pub schema: String,
}

/// Whether the tokens of a statement that begins with ALTER TABLE are this one.
pub fn sets_schema(tokens: &[TokenWithSpan]) -> bool {
    let is_word = |token: &TokenWithSpan, keyword| match &token.token {
        Token::Word(word) => word.keyword == keyword,
        _ => false,
    };
    let end = tokens.iter().position(|token| token.token == Token::EOF).unwrap_or(tokens.len());
    matches!(
        &tokens[..end],
        [.., set, schema, last] if is_word(set, Keyword::SET)
            && is_word(schema, Keyword::SCHEMA)
            && matches!(last.token, Token::Word(_))
    )
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_set_schema(parser: &mut Parser<'_>, sql: &str) -> Result<SetSchema, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "table", sql)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    accept(parser, "only");
    let table = relation(parser, sql)?;
    expect_word(parser, "set", sql)?;
    expect_word(parser, "schema", sql)?;
    let schema = name(parser, sql)?;
    crate::parse::errors::expect_end(parser, sql)?;
    Ok(SetSchema { if_exists, table, schema })
}
