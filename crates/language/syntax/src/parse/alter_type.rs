//! ALTER TYPE, of which sqlparser reads a part.

use crate::parse::errors::{expect_end, unexpected};
use crate::parse::words::{accept, expect_word, name, relation};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// `ALTER TYPE …`
#[derive(Clone, Debug)]
pub struct AlterType {
    /// The type.
    pub name: String,
    /// What becomes of it.
    pub change: TypeChange,
}

/// What becomes of a type.
#[derive(Clone, Debug)]
pub enum TypeChange {
    /// ADD VALUE
    AddValue {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The new label.
        label: String,
        /// Where it goes; without it behind all others.
        place: Option<LabelPlace>,
    },
    /// RENAME VALUE
    RenameValue {
        /// As it is.
        from: String,
        /// As it will be.
        to: String,
    },
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    SetSchema(String),
}

/// Beside which label another one goes.
#[derive(Clone, Debug)]
pub enum LabelPlace {
    /// BEFORE
    Before(String),
    /// AFTER
    After(String),
}

/// Whether the tokens of a statement are one of these changes of a type; others are refused by name.
pub fn alters_type(tokens: &[TokenWithSpan]) -> bool {
    let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    if word(0) != "alter" || word(1) != "type" {
        return false;
    }
    // Behind the name, which may have a schema in front.
    let at = if matches!(tokens.get(3).map(|token| &token.token), Some(Token::Period)) { 5 } else { 3 };
    matches!(
        (word(at).as_str(), word(at + 1).as_str()),
        ("add", "value") | ("rename", "value" | "to") | ("set", "schema")
    )
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_alter_type(parser: &mut Parser<'_>, sql: &str) -> Result<AlterType, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "type", sql)?;
    let of = relation(parser, sql)?;
    let change = if accept(parser, "add") {
        expect_word(parser, "value", sql)?;
        let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let label = label(parser, sql)?;
        TypeChange::AddValue { if_not_exists, label, place: place(parser, sql)? }
    } else if accept(parser, "rename") {
        match accept(parser, "value") {
            true => {
                let from = label(parser, sql)?;
                expect_word(parser, "to", sql)?;
                TypeChange::RenameValue { from, to: label(parser, sql)? }
            }
            false => {
                expect_word(parser, "to", sql)?;
                TypeChange::Rename(name(parser, sql)?)
            }
        }
    } else {
        expect_word(parser, "set", sql)?;
        expect_word(parser, "schema", sql)?;
        TypeChange::SetSchema(name(parser, sql)?)
    };
    expect_end(parser, sql)?;
    Ok(AlterType { name: of, change })
}

fn place(parser: &mut Parser<'_>, sql: &str) -> Result<Option<LabelPlace>, SqlError> {
    Ok(if accept(parser, "before") {
        Some(LabelPlace::Before(label(parser, sql)?))
    } else if accept(parser, "after") {
        Some(LabelPlace::After(label(parser, sql)?))
    } else {
        None
    })
}

fn label(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
        Token::DollarQuotedString(text) => Ok(text.value),
        _ => Err(unexpected(&token, sql)),
    }
}
