//! `ALTER TABLE … ALTER COLUMN … DROP EXPRESSION`, which sqlparser does not read.

use crate::parse::errors::expect_end;
use crate::parse::words::{accept, expect_word, name, relation};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// `ALTER TABLE … ALTER COLUMN … DROP EXPRESSION`
#[derive(Clone, Debug)]
pub struct DropExpression {
    /// IF EXISTS behind ALTER TABLE.
    pub table_if_exists: bool,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// IF EXISTS at the end.
    pub if_exists: bool,
}

/// Whether the tokens of a statement that begins with ALTER TABLE are this one.
pub fn drops_expression(tokens: &[TokenWithSpan]) -> bool {
    let is_word = |token: &TokenWithSpan, expected: &str| match &token.token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected),
        _ => false,
    };
    tokens.windows(2).any(|pair| is_word(&pair[0], "drop") && is_word(&pair[1], "expression"))
        && tokens.iter().any(|token| is_word(token, "alter"))
        && !tokens.iter().any(|token| token.token == Token::Comma)
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_drop_expression(parser: &mut Parser<'_>, sql: &str) -> Result<DropExpression, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "table", sql)?;
    let table_if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    accept(parser, "only");
    let table = relation(parser, sql)?;
    expect_word(parser, "alter", sql)?;
    accept(parser, "column");
    let column = name(parser, sql)?;
    expect_word(parser, "drop", sql)?;
    expect_word(parser, "expression", sql)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    expect_end(parser, sql)?;
    Ok(DropExpression { table_if_exists, table, column, if_exists })
}
