//! `CREATE SCHEMA … MEMBERS (…)` and `ALTER SCHEMA … ADD MEMBER …`, which no other database has.

use crate::parse::errors::{expect_end, parser_error};
use crate::parse::tokens::word_at;
use crate::parse::words::{accept, expect_word, list, name};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// Whether the tokens of a statement about a schema are one of these: the words stand behind the schema's name.
pub fn is_about_members(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    let opens = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::LParen);
    let creates = is(0, "create") && (3..tokens.len()).any(|at| is(at, "members") && opens(at + 1));
    creates || (is(0, "alter") && (is(3, "add") || is(3, "drop")) && is(4, "member"))
}

/// `CREATE SCHEMA [IF NOT EXISTS] … MEMBERS (…)`
#[derive(Clone, Debug)]
pub struct CreateSchemaWithMembers {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Its name.
    pub name: String,
    /// The organisations, as they were given.
    pub members: Vec<String>,
}

/// `ALTER SCHEMA … ADD MEMBER …` and `… DROP MEMBER …`
#[derive(Clone, Debug)]
pub struct AlterSchemaMember {
    /// The schema.
    pub schema: String,
    /// It comes; else it leaves.
    pub adds: bool,
    /// The organisation, as it was given.
    pub member: String,
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_schema_member(parser: &mut Parser<'_>, sql: &str) -> Result<AlterSchemaMember, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "schema", sql)?;
    let schema = name(parser, sql)?;
    let adds = accept(parser, "add");
    if !adds {
        expect_word(parser, "drop", sql)?;
    }
    expect_word(parser, "member", sql)?;
    let member = name(parser, sql)?;
    expect_end(parser, sql)?;
    Ok(AlterSchemaMember { schema, adds, member })
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_schema_with_members(
    parser: &mut Parser<'_>,
    sql: &str,
) -> Result<CreateSchemaWithMembers, SqlError> {
    expect_word(parser, "create", sql)?;
    expect_word(parser, "schema", sql)?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let schema = name(parser, sql)?;
    expect_word(parser, "members", sql)?;
    parser.expect_token(&Token::LParen).map_err(|error| parser_error(error, parser, sql))?;
    let members = list(parser, sql, name)?;
    parser.expect_token(&Token::RParen).map_err(|error| parser_error(error, parser, sql))?;
    expect_end(parser, sql)?;
    Ok(CreateSchemaWithMembers { if_not_exists, name: schema, members })
}
