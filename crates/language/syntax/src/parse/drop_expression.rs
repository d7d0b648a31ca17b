//! `ALTER TABLE … ALTER COLUMN … DROP EXPRESSION`, which sqlparser does not read.

use crate::parse::errors::expect_end;
use crate::parse::tokens::word_at;
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

/// Whether the tokens of a statement that begins with ALTER TABLE are this one. `DROP expression` alone drops a column of
/// that name.
pub fn drops_expression(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    let skip = |at: usize, words: &[&str]| {
        let are_there = (at..).zip(words).all(|(at, word)| is(at, word));
        if are_there { at + words.len() } else { at }
    };
    let name = skip(skip(2, &["if", "exists"]), &["only"]);
    let is_dotted = tokens.get(name + 1).is_some_and(|token| token.token == Token::Period);
    let alter = name + if is_dotted { 3 } else { 1 };
    let column = skip(alter + 1, &["column"]);
    is(alter, "alter")
        && is(column + 1, "drop")
        && is(column + 2, "expression")
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
