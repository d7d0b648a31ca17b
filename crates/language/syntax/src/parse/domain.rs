//! CREATE, ALTER and DROP DOMAIN, of which sqlparser reads a part.

use crate::parse::dialect::Grammar;
use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::words::{accept, expect_token, expect_word, list, name, relation};
use sqlparser::ast::{DataType, Expr};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{ExecutionVersion, SqlError};

/// A statement about domains.
#[derive(Clone, Debug)]
pub enum DomainStatement {
    /// CREATE DOMAIN
    Create(Box<CreateDomain>),
    /// ALTER DOMAIN: its name, and what becomes of it.
    Alter(String, DomainChange),
    /// DROP DOMAIN
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The domains.
        names: Vec<String>,
    },
}

/// `CREATE DOMAIN …`
#[derive(Clone, Debug)]
pub struct CreateDomain {
    /// Its name.
    pub name: String,
    /// The type that its values are of.
    pub data_type: DataType,
    /// The expression of DEFAULT, as SQL.
    pub default: Option<String>,
    /// NOT NULL, or NULL, where it says either.
    pub not_null: Option<bool>,
    /// Names, where they have some, and conditions of its CHECKs.
    pub checks: Vec<(Option<String>, String)>,
}

/// What becomes of a domain.
#[derive(Clone, Debug)]
pub enum DomainChange {
    /// SET DEFAULT and DROP DEFAULT
    Default(Option<String>),
    /// SET NOT NULL and DROP NOT NULL
    NotNull(bool),
    /// ADD CHECK: a name, the condition, and whether values that are there are held against it.
    AddCheck(Option<String>, String, bool),
    /// DROP CONSTRAINT: a name, and IF EXISTS.
    DropCheck(String, bool),
    /// VALIDATE CONSTRAINT
    Validate(String),
    /// RENAME CONSTRAINT
    RenameCheck(String, String),
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    SetSchema(String),
}

/// Whether the tokens of a statement begin one of these.
pub fn is_about_domains(tokens: &[TokenWithSpan]) -> bool {
    let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    matches!(word(0).as_str(), "create" | "alter" | "drop") && word(1) == "domain"
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` for COLLATE.
pub fn parse_domain(parser: &mut Parser<'_>, sql: &str) -> Result<DomainStatement, SqlError> {
    let statement = if accept(parser, "create") {
        expect_word(parser, "domain", sql)?;
        DomainStatement::Create(Box::new(create(parser, sql)?))
    } else if accept(parser, "alter") {
        expect_word(parser, "domain", sql)?;
        let of = relation(parser, sql)?;
        DomainStatement::Alter(of, change(parser, sql)?)
    } else {
        expect_word(parser, "drop", sql)?;
        expect_word(parser, "domain", sql)?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let names = list(parser, sql, relation)?;
        let cascade = accept(parser, "cascade");
        if !cascade {
            accept(parser, "restrict");
        }
        DomainStatement::Drop { if_exists, cascade, names }
    };
    expect_end(parser, sql)?;
    Ok(statement)
}

fn create(parser: &mut Parser<'_>, sql: &str) -> Result<CreateDomain, SqlError> {
    let of = relation(parser, sql)?;
    accept(parser, "as");
    let data_type = parser.parse_data_type().map_err(|error| parser_error(error, parser, sql))?;
    let mut created = CreateDomain { name: of, data_type, default: None, not_null: None, checks: Vec::new() };
    loop {
        let token = parser.peek_token();
        if accept(parser, "collate") {
            let error = SqlError::unsupported("COLLATE of a domain").hint("Text compares by bytes.");
            return Err(located(error, sql, token.span.start));
        }
        let constraint = if accept(parser, "constraint") { Some(name(parser, sql)?) } else { None };
        if accept(parser, "check") {
            created.checks.push((constraint, condition(parser, sql)?));
        } else if accept(parser, "not") {
            expect_word(parser, "null", sql)?;
            conflicting(created.not_null.replace(true) == Some(false))?;
        } else if accept(parser, "null") {
            conflicting(created.not_null.replace(false) == Some(true))?;
        } else if constraint.is_none() && accept(parser, "default") {
            if created.default.replace(default(parser, sql)?).is_some() {
                return Err(SqlError::new(types::SqlState::SYNTAX_ERROR, "multiple default expressions"));
            }
        } else if constraint.is_some() {
            return Err(unexpected(&parser.peek_token(), sql));
        } else {
            return Ok(created);
        }
    }
}

fn conflicting(found: bool) -> Result<(), SqlError> {
    match found {
        true => Err(SqlError::new(types::SqlState::SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints")),
        false => Ok(()),
    }
}

fn change(parser: &mut Parser<'_>, sql: &str) -> Result<DomainChange, SqlError> {
    if accept(parser, "set") {
        if accept(parser, "schema") {
            return Ok(DomainChange::SetSchema(name(parser, sql)?));
        }
        if accept(parser, "default") {
            return Ok(DomainChange::Default(Some(expression(parser, sql)?)));
        }
        expect_word(parser, "not", sql)?;
        expect_word(parser, "null", sql)?;
        return Ok(DomainChange::NotNull(true));
    }
    if accept(parser, "drop") {
        if accept(parser, "default") {
            return Ok(DomainChange::Default(None));
        }
        if accept(parser, "not") {
            expect_word(parser, "null", sql)?;
            return Ok(DomainChange::NotNull(false));
        }
        expect_word(parser, "constraint", sql)?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let dropped = name(parser, sql)?;
        if !accept(parser, "cascade") {
            accept(parser, "restrict");
        }
        return Ok(DomainChange::DropCheck(dropped, if_exists));
    }
    if accept(parser, "add") {
        let constraint = if accept(parser, "constraint") { Some(name(parser, sql)?) } else { None };
        expect_word(parser, "check", sql)?;
        let condition = condition(parser, sql)?;
        let not_valid = accept(parser, "not");
        if not_valid {
            expect_word(parser, "valid", sql)?;
        }
        return Ok(DomainChange::AddCheck(constraint, condition, !not_valid));
    }
    if accept(parser, "validate") {
        expect_word(parser, "constraint", sql)?;
        return Ok(DomainChange::Validate(name(parser, sql)?));
    }
    expect_word(parser, "rename", sql)?;
    if accept(parser, "constraint") {
        let from = name(parser, sql)?;
        expect_word(parser, "to", sql)?;
        return Ok(DomainChange::RenameCheck(from, name(parser, sql)?));
    }
    expect_word(parser, "to", sql)?;
    Ok(DomainChange::Rename(name(parser, sql)?))
}

fn condition(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    expect_token(parser, &Token::LParen, sql)?;
    let condition = expression(parser, sql)?;
    expect_token(parser, &Token::RParen, sql)?;
    Ok(condition)
}

/// A DEFAULT, behind which NOT NULL may stand that is no part of it.
fn default(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let above_is = Grammar::of(ExecutionVersion::V7).prec_value(Precedence::Is);
    let parsed = parser.parse_subexpr(above_is).map_err(|error| parser_error(error, parser, sql))?;
    Ok(parsed.to_string())
}

fn expression(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let parsed: Expr = parser.parse_expr().map_err(|error| parser_error(error, parser, sql))?;
    Ok(parsed.to_string())
}
