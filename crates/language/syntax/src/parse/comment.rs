//! COMMENT ON, which sqlparser reads without the arguments of functions.

use crate::names::name_of;
use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::grant::{NamedRoutine, routine};
use crate::parse::words::{accept, expect_word, name, next_word, relation};
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use types::{ExecutionVersion, SqlError};

/// `COMMENT ON … IS …`
#[derive(Clone, Debug)]
pub struct CommentOn {
    /// What it is about.
    pub object: CommentedObject,
    /// What it says; `None`: nothing any more.
    pub text: Option<String>,
}

/// What a comment is about, as a statement names it.
#[derive(Clone, Debug)]
pub enum CommentedObject {
    /// A relation, and of what kind it must be: `table`, `view`, `materialized view`, `sequence` or `index`.
    Relation(String, String),
    /// A column: its relation and its name.
    Column(String, String),
    /// A function, a procedure or an aggregate, and which of them.
    Routine(String, NamedRoutine),
    /// A composite type.
    Type(String),
    /// A schema.
    Schema(String),
    /// A constraint: its table and its name.
    Constraint(String, String),
    /// A trigger: its table and its name.
    Trigger(String, String),
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` for an object that has no comments.
pub fn parse_comment(
    parser: &mut Parser<'_>,
    sql: &str,
    version: ExecutionVersion,
) -> Result<CommentOn, SqlError> {
    expect_word(parser, "comment", sql)?;
    expect_word(parser, "on", sql)?;
    let token = parser.peek_token();
    let mut kind = next_word(parser, sql)?;
    if version >= ExecutionVersion::V11 && kind == "materialized" && accept(parser, "view") {
        kind.push_str(" view");
    }
    let object = match kind.as_str() {
        "table" | "view" | "materialized view" | "sequence" | "index" => {
            CommentedObject::Relation(kind, relation(parser, sql)?)
        }
        "column" => {
            let (relation, column) = column(parser, sql)?;
            CommentedObject::Column(relation, column)
        }
        "function" | "procedure" | "routine" | "aggregate" => {
            CommentedObject::Routine(kind, commented_routine(parser, sql)?)
        }
        "type" => CommentedObject::Type(relation(parser, sql)?),
        "domain" if version >= ExecutionVersion::V7 => CommentedObject::Type(relation(parser, sql)?),
        "schema" => CommentedObject::Schema(name(parser, sql)?),
        "constraint" | "trigger" => {
            let of_table = name(parser, sql)?;
            expect_word(parser, "on", sql)?;
            let table = relation(parser, sql)?;
            match kind.as_str() {
                "constraint" => CommentedObject::Constraint(table, of_table),
                _ => CommentedObject::Trigger(table, of_table),
            }
        }
        _ => {
            let what = format!("COMMENT ON {}", kind.to_ascii_uppercase());
            return Err(located(SqlError::unsupported(what), sql, token.span.start));
        }
    };
    expect_word(parser, "is", sql)?;
    let text = match accept(parser, "null") {
        true => None,
        false => {
            let token = parser.next_token();
            match token.token {
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Some(text),
                Token::DollarQuotedString(text) => Some(text.value),
                _ => return Err(unexpected(&token, sql)),
            }
        }
    };
    expect_end(parser, sql)?;
    // PostgreSQL takes an empty comment for none.
    Ok(CommentOn { object, text: text.filter(|text| !text.is_empty()) })
}

/// A routine; an aggregate may have `(*)` behind its name.
fn commented_routine(parser: &mut Parser<'_>, sql: &str) -> Result<NamedRoutine, SqlError> {
    let any = parser.peek_nth_token(2).token == Token::Mul || parser.peek_nth_token(4).token == Token::Mul;
    if !any {
        return routine(parser, sql);
    }
    let name = relation(parser, sql)?;
    for expected in [Token::LParen, Token::Mul, Token::RParen] {
        if !parser.consume_token(&expected) {
            return Err(unexpected(&parser.peek_token(), sql));
        }
    }
    Ok(NamedRoutine { name, types: None })
}

/// `relation.column`
fn column(parser: &mut Parser<'_>, sql: &str) -> Result<(String, String), SqlError> {
    let path = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    let mut parts: Vec<Ident> = path.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    match parts.pop() {
        Some(column) if !parts.is_empty() => {
            Ok((crate::names::table_name(&ObjectName::from(parts))?, name_of(&column)?))
        }
        _ => Err(SqlError::new(types::SqlState::SYNTAX_ERROR, "column name must be qualified")),
    }
}
