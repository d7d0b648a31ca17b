//! CREATE, ALTER and DROP TRIGGER, of which sqlparser does not read all forms.

use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::words::{accept, expect_token, expect_word, list, name, next_word, relation};
use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use std::sync::Arc;
use types::{SqlError, SqlState, TriggerEvent, TriggerEvents, TriggerTime};

/// What to do instead of an event trigger.
pub const EVENT_TRIGGER_HINT: &str = "Triggers fire at changes of rows, not of the schema.";

/// A statement about triggers.
#[derive(Clone, Debug)]
pub enum TriggerStatement {
    /// CREATE TRIGGER.
    Create(Box<CreateTrigger>),
    /// DROP TRIGGER.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// Its name.
        name: String,
        /// Its table.
        table: String,
    },
    /// ALTER TRIGGER … RENAME TO.
    Rename {
        /// Its name.
        name: String,
        /// Its table.
        table: String,
        /// The new name.
        to: String,
    },
}

/// `CREATE [OR REPLACE] TRIGGER`
#[derive(Clone, Debug)]
pub struct CreateTrigger {
    /// OR REPLACE.
    pub or_replace: bool,
    /// Its name.
    pub name: String,
    /// When it fires; `None`: INSTEAD OF.
    pub time: Option<TriggerTime>,
    /// What it fires at.
    pub events: TriggerEvents,
    /// UPDATE OF.
    pub columns: Vec<String>,
    /// Its table.
    pub table: String,
    /// Names of OLD TABLE.
    pub old_tables: Vec<String>,
    /// Names of NEW TABLE.
    pub new_tables: Vec<String>,
    /// FOR EACH ROW.
    pub per_row: bool,
    /// WHEN.
    pub condition: Option<Expr>,
    /// The function.
    pub function: String,
    /// What it is given.
    pub arguments: Vec<String>,
    /// The text that the condition's positions point into.
    pub source: Arc<str>,
}

/// Whether the statement's first words say that it is one of these.
pub fn is_about_triggers(words: [Keyword; 5]) -> bool {
    let rest = match words {
        [Keyword::CREATE, Keyword::OR, Keyword::REPLACE, third, fourth] => [third, fourth],
        [Keyword::CREATE | Keyword::ALTER | Keyword::DROP, second, third, ..] => [second, third],
        _ => return false,
    };
    matches!(rest, [Keyword::TRIGGER, _] | [Keyword::CONSTRAINT | Keyword::EVENT, Keyword::TRIGGER])
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` names what is not supported.
pub fn parse_trigger(parser: &mut Parser<'_>, sql: &str) -> Result<TriggerStatement, SqlError> {
    let first = next_word(parser, sql)?;
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let kind = parser.peek_token();
    if accept(parser, "event") {
        let error = SqlError::unsupported("an event trigger").hint(EVENT_TRIGGER_HINT);
        return Err(located(error, sql, kind.span.start));
    }
    if accept(parser, "constraint") {
        let error = SqlError::unsupported("a CONSTRAINT TRIGGER")
            .hint("Use an AFTER trigger: it fires at the end of its statement.");
        return Err(located(error, sql, kind.span.start));
    }
    expect_word(parser, "trigger", sql)?;
    let statement = match first.as_str() {
        "create" => TriggerStatement::Create(Box::new(create(parser, sql, or_replace)?)),
        "drop" => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let (name, table) = named(parser, sql)?;
            // Nothing depends on a trigger.
            if !accept(parser, "cascade") {
                accept(parser, "restrict");
            }
            TriggerStatement::Drop { if_exists, name, table }
        }
        _ => {
            let (trigger, table) = named(parser, sql)?;
            let token = parser.peek_token();
            if !accept(parser, "rename") {
                let error = SqlError::unsupported("this form of ALTER TRIGGER");
                return Err(located(error.hint("RENAME TO gives it another name."), sql, token.span.start));
            }
            expect_word(parser, "to", sql)?;
            TriggerStatement::Rename { name: trigger, table, to: name(parser, sql)? }
        }
    };
    expect_end(parser, sql)?;
    Ok(statement)
}

/// `name ON table`
fn named(parser: &mut Parser<'_>, sql: &str) -> Result<(String, String), SqlError> {
    let name = name(parser, sql)?;
    expect_word(parser, "on", sql)?;
    Ok((name, relation(parser, sql)?))
}

fn create(parser: &mut Parser<'_>, sql: &str, or_replace: bool) -> Result<CreateTrigger, SqlError> {
    let name = name(parser, sql)?;
    let token = parser.peek_token();
    let time = match next_word(parser, sql)?.as_str() {
        "before" => Some(TriggerTime::Before),
        "after" => Some(TriggerTime::After),
        "instead" => {
            expect_word(parser, "of", sql)?;
            None
        }
        _ => return Err(unexpected(&token, sql)),
    };
    let (events, columns) = events(parser, sql)?;
    expect_word(parser, "on", sql)?;
    let table = relation(parser, sql)?;
    let token = parser.peek_token();
    let deferrable = ["from", "deferrable", "initially"].into_iter().any(|word| accept(parser, word))
        || parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE]);
    if deferrable {
        let error = SqlError::unsupported("a DEFERRABLE trigger")
            .hint("Use an AFTER trigger: it fires at the end of its statement.");
        return Err(located(error, sql, token.span.start));
    }
    let (old_tables, new_tables) = transition_tables(parser, sql)?;
    let mut per_row = false;
    if accept(parser, "for") {
        accept(parser, "each");
        let token = parser.peek_token();
        per_row = match next_word(parser, sql)?.as_str() {
            "row" => true,
            "statement" => false,
            _ => return Err(unexpected(&token, sql)),
        };
    }
    let mut condition = None;
    if accept(parser, "when") {
        expect_token(parser, &Token::LParen, sql)?;
        condition = Some(parser.parse_expr().map_err(|error| parser_error(error, parser, sql))?);
        expect_token(parser, &Token::RParen, sql)?;
    }
    expect_word(parser, "execute", sql)?;
    if !accept(parser, "function") {
        expect_word(parser, "procedure", sql)?;
    }
    let function = relation(parser, sql)?;
    let arguments = arguments(parser, sql)?;
    let source = Arc::from(sql);
    Ok(CreateTrigger {
        or_replace,
        name,
        time,
        events,
        columns,
        table,
        old_tables,
        new_tables,
        per_row,
        condition,
        function,
        arguments,
        source,
    })
}

/// `INSERT OR UPDATE OF column, column OR DELETE OR TRUNCATE`
fn events(parser: &mut Parser<'_>, sql: &str) -> Result<(TriggerEvents, Vec<String>), SqlError> {
    let (mut events, mut columns) = (TriggerEvents::default(), Vec::new());
    loop {
        let token = parser.peek_token();
        let event = match next_word(parser, sql)?.as_str() {
            "insert" => TriggerEvent::Insert,
            "update" => TriggerEvent::Update,
            "delete" => TriggerEvent::Delete,
            "truncate" => TriggerEvent::Truncate,
            _ => return Err(unexpected(&token, sql)),
        };
        if events.contains(event) {
            let message = format!("duplicate trigger events specified at or near \"{}\"", token.token);
            return Err(located(SqlError::new(SqlState::SYNTAX_ERROR, message), sql, token.span.start));
        }
        events = events.with(event);
        if event == TriggerEvent::Update && accept(parser, "of") {
            columns = list(parser, sql, name)?;
        }
        if !accept(parser, "or") {
            return Ok((events, columns));
        }
    }
}

/// `REFERENCING OLD TABLE AS name NEW TABLE AS name`
fn transition_tables(parser: &mut Parser<'_>, sql: &str) -> Result<(Vec<String>, Vec<String>), SqlError> {
    let (mut old_tables, mut new_tables) = (Vec::new(), Vec::new());
    if !accept(parser, "referencing") {
        return Ok((old_tables, new_tables));
    }
    loop {
        let tables = if accept(parser, "old") {
            &mut old_tables
        } else if accept(parser, "new") {
            &mut new_tables
        } else {
            return Ok((old_tables, new_tables));
        };
        let token = parser.peek_token();
        if accept(parser, "row") {
            let error = SqlError::unsupported("ROW variable naming in the REFERENCING clause")
                .hint("Use OLD TABLE or NEW TABLE for naming transition tables.");
            return Err(located(error, sql, token.span.start));
        }
        expect_word(parser, "table", sql)?;
        accept(parser, "as");
        tables.push(name(parser, sql)?);
    }
}

/// `('text', 1, word)`: whatever it is, the function gets a text.
fn arguments(parser: &mut Parser<'_>, sql: &str) -> Result<Vec<String>, SqlError> {
    expect_token(parser, &Token::LParen, sql)?;
    let mut arguments = Vec::new();
    if parser.consume_token(&Token::RParen) {
        return Ok(arguments);
    }
    loop {
        let token = parser.next_token();
        arguments.push(match &token.token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(text) => text.value.clone(),
            // PostgreSQL reads integers as numbers: leading zeros go.
            Token::Number(digits, _) => {
                digits.parse().map_or_else(|_| digits.clone(), |number: i32| number.to_string())
            }
            Token::Word(word) if word.quote_style.is_some() => word.value.clone(),
            Token::Word(word) => word.value.to_ascii_lowercase(),
            _ => return Err(unexpected(&token, sql)),
        });
        if parser.consume_token(&Token::RParen) {
            return Ok(arguments);
        }
        expect_token(parser, &Token::Comma, sql)?;
    }
}
