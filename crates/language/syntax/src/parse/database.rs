//! CREATE DATABASE and DROP DATABASE, of whose options sqlparser reads none of PostgreSQL's.

use crate::parse::errors::{expect_end, located, unexpected};
use crate::parse::tokens::word_at;
use crate::parse::words::{accept, name, next_word};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// One of these statements.
#[derive(Clone, Debug)]
pub enum DatabaseStatement {
    /// CREATE DATABASE.
    Create {
        /// Its name.
        name: String,
        /// OWNER.
        owner: Option<String>,
    },
    /// DROP DATABASE.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// Its name.
        name: String,
    },
}

/// Whether these tokens are such a statement.
pub fn is_about_databases(tokens: &[TokenWithSpan]) -> bool {
    (word_at(tokens, 0, "create") || word_at(tokens, 0, "drop")) && word_at(tokens, 1, "database")
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` for an option that would make another database of it.
pub fn parse_database(parser: &mut Parser<'_>, sql: &str) -> Result<DatabaseStatement, SqlError> {
    let creates = next_word(parser, sql)? == "create";
    next_word(parser, sql)?;
    let if_exists = !creates && parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = name(parser, sql)?;
    let statement = match creates {
        true => DatabaseStatement::Create { name, owner: options(parser, sql)? },
        false => {
            force(parser, sql)?;
            DatabaseStatement::Drop { if_exists, name }
        }
    };
    expect_end(parser, sql)?;
    Ok(statement)
}

/// `[WITH] (FORCE)`, without which sessions keep nothing from going here either.
fn force(parser: &mut Parser<'_>, sql: &str) -> Result<(), SqlError> {
    accept(parser, "with");
    if !parser.consume_token(&Token::LParen) {
        return Ok(());
    }
    if !accept(parser, "force") || !parser.consume_token(&Token::RParen) {
        return Err(unexpected(&parser.peek_token(), sql));
    }
    Ok(())
}

/// `[WITH] option [=] value …`: gives the owner.
fn options(parser: &mut Parser<'_>, sql: &str) -> Result<Option<String>, SqlError> {
    let mut owner = None;
    accept(parser, "with");
    while parser.peek_token().token != Token::EOF {
        let token = parser.peek_token();
        let mut option = next_word(parser, sql)?;
        if option == "connection" && accept(parser, "limit") {
            option.push_str(" limit");
        }
        let _ = parser.consume_token(&Token::Eq);
        let value = value(parser, sql)?;
        let lower = value.to_ascii_lowercase();
        let is_known = match option.as_str() {
            "owner" => {
                owner = Some(value.clone()).filter(|_| lower != "default");
                true
            }
            "template" => matches!(lower.as_str(), "template0" | "template1" | "default"),
            "encoding" => matches!(lower.as_str(), "utf8" | "utf-8" | "unicode" | "6" | "default"),
            "lc_collate" | "lc_ctype" | "locale" => {
                matches!(lower.as_str(), "c" | "posix" | "c.utf-8" | "c.utf8" | "default")
            }
            "locale_provider" => matches!(lower.as_str(), "libc" | "default"),
            "tablespace" => matches!(lower.as_str(), "pg_default" | "default"),
            "strategy" => matches!(lower.as_str(), "wal_log" | "file_copy" | "default"),
            "connection limit" => matches!(lower.as_str(), "-1" | "default"),
            "allow_connections" => matches!(lower.as_str(), "true" | "default"),
            "is_template" => matches!(lower.as_str(), "false" | "default"),
            _ => return Err(unexpected(&token, sql)),
        };
        if !is_known {
            let what = format!("{} {value} of a database", option.to_ascii_uppercase());
            let error =
                SqlError::unsupported(what).hint("Leave it out: texts are UTF-8 and compare by bytes.");
            return Err(located(error, sql, token.span.start));
        }
    }
    Ok(owner)
}

/// A word, a text or a number.
fn value(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let minus = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    let token = parser.next_token();
    match token.token {
        Token::Word(word) if word.quote_style.is_none() => Ok(word.value.to_ascii_lowercase()),
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) => Ok(text),
        Token::Number(number, _) => Ok(format!("{minus}{number}")),
        _ => Err(unexpected(&token, sql)),
    }
}
