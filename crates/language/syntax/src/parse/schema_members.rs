//! `CREATE SCHEMA … MEMBERS (…)` and `ALTER SCHEMA … ADD MEMBER …`, which no other database has.

use crate::parse::errors::{expect_end, parser_error};
use crate::parse::tokens::is_word;
use crate::parse::words::{accept, expect_word, list, name};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

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

/// Whether the tokens of a statement that begins with ALTER SCHEMA are this one.
pub fn changes_members(tokens: &[TokenWithSpan]) -> bool {
    matches!(tokens.get(3..5), Some([what, member])
        if (is_word(&what.token, "add") || is_word(&what.token, "drop")) && is_word(&member.token, "member"))
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

/// Whether the tokens of a statement that begins with CREATE SCHEMA are this one: the word stands behind the schema's name.
pub fn has_members(tokens: &[TokenWithSpan]) -> bool {
    tokens.windows(2).skip(3).any(|pair| is_word(&pair[0].token, "members") && pair[1].token == Token::LParen)
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
