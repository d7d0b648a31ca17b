//! The words and names that every parser of ours reads its statement by.

use crate::names::{name_of, table_name};
use crate::parse::errors::{parser_error, unexpected};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use types::SqlError;

/// The next word, lower-case.
pub fn next_word(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let token = parser.next_token();
    match &token.token {
        Token::Word(word) => Ok(word.value.to_ascii_lowercase()),
        _ => Err(unexpected(&token, sql)),
    }
}

/// Whether the next word is this one, which is then read.
pub fn accept(parser: &mut Parser<'_>, expected: &str) -> bool {
    let found = match &parser.peek_token().token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected),
        _ => false,
    };
    if found {
        parser.next_token();
    }
    found
}

/// Takes a word that must stand here.
///
/// # Errors
/// `42601` for anything else.
pub fn expect_word(parser: &mut Parser<'_>, expected: &str, sql: &str) -> Result<(), SqlError> {
    if accept(parser, expected) { Ok(()) } else { Err(unexpected(&parser.peek_token(), sql)) }
}

/// Takes a sign that must stand here.
///
/// # Errors
/// `42601` for anything else.
pub fn expect_token(parser: &mut Parser<'_>, token: &Token, sql: &str) -> Result<(), SqlError> {
    if parser.consume_token(token) { Ok(()) } else { Err(unexpected(&parser.peek_token(), sql)) }
}

/// Takes a name.
///
/// # Errors
/// `42601` for anything else.
pub fn name(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let ident = parser.parse_identifier().map_err(|error| parser_error(error, parser, sql))?;
    name_of(&ident)
}

/// A name, with a schema in front or not.
pub fn relation(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let parts = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    table_name(&parts)
}

/// One or more, separated by commas and in parentheses.
///
/// # Errors
/// `42601` where one of these is missing, and those of the items.
pub fn in_parentheses<T>(
    parser: &mut Parser<'_>,
    sql: &str,
    item: impl FnMut(&mut Parser<'_>, &str) -> Result<T, SqlError>,
) -> Result<Vec<T>, SqlError> {
    expect_token(parser, &Token::LParen, sql)?;
    let items = list(parser, sql, item)?;
    expect_token(parser, &Token::RParen, sql)?;
    Ok(items)
}

/// One or more, separated by commas.
pub fn list<T>(
    parser: &mut Parser<'_>,
    sql: &str,
    mut item: impl FnMut(&mut Parser<'_>, &str) -> Result<T, SqlError>,
) -> Result<Vec<T>, SqlError> {
    let mut items = vec![item(parser, sql)?];
    while parser.consume_token(&Token::Comma) {
        items.push(item(parser, sql)?);
    }
    Ok(items)
}
