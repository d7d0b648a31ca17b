//! What says when constraints are held, and sqlparser does not read: `SET CONSTRAINTS`, `ALTER TABLE … ALTER CONSTRAINT`, and
//! DEFERRABLE where it must not be.

use crate::parse::errors::{expect_end, located};
use crate::parse::tokens::{is_word, word_at};
use crate::parse::words::{accept, expect_word, list, name, relation};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{Deferral, ExecutionVersion, SqlError, SqlState};

/// `SET CONSTRAINTS {ALL | name, …} {DEFERRED | IMMEDIATE}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConstraints {
    /// Their names, with a schema in front or not; `None`: all that can be deferred.
    pub names: Option<Vec<String>>,
    /// Whether they wait for the end of the transaction from now on.
    pub deferred: bool,
}

/// `ALTER TABLE … ALTER CONSTRAINT … [NOT] DEFERRABLE [INITIALLY …]`
#[derive(Clone, Debug)]
pub struct AlterConstraint {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The table.
    pub table: String,
    /// The constraint.
    pub name: String,
    /// When it is held from now on.
    pub deferral: Deferral,
}

/// Whether these tokens set constraints.
pub fn sets_constraints(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    is(0, "set") && is(1, "constraints")
}

/// Whether the tokens of a statement that begins with ALTER TABLE alter a constraint.
pub fn alters_constraint(tokens: &[TokenWithSpan]) -> bool {
    (2..tokens.len()).any(|at| word_at(tokens, at, "alter") && word_at(tokens, at + 1, "constraint"))
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_set_constraints(parser: &mut Parser<'_>, sql: &str) -> Result<SetConstraints, SqlError> {
    expect_word(parser, "set", sql)?;
    expect_word(parser, "constraints", sql)?;
    let names = if accept(parser, "all") { None } else { Some(list(parser, sql, relation)?) };
    let deferred = accept(parser, "deferred");
    if !deferred {
        expect_word(parser, "immediate", sql)?;
    }
    expect_end(parser, sql)?;
    Ok(SetConstraints { names, deferred })
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_alter_constraint(parser: &mut Parser<'_>, sql: &str) -> Result<AlterConstraint, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "table", sql)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    accept(parser, "only");
    let table = relation(parser, sql)?;
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "constraint", sql)?;
    let name = name(parser, sql)?;
    let (mut deferrable, mut initially) = (None, None);
    loop {
        if parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE]) {
            deferrable = Some(false);
        } else if accept(parser, "deferrable") {
            deferrable = Some(true);
        } else if accept(parser, "initially") {
            let deferred = accept(parser, "deferred");
            if !deferred {
                expect_word(parser, "immediate", sql)?;
            }
            initially = Some(deferred);
        } else {
            break;
        }
    }
    expect_end(parser, sql)?;
    Ok(AlterConstraint { if_exists, table, name, deferral: deferral(deferrable, initially)? })
}

/// What `[NOT] DEFERRABLE` and `INITIALLY {DEFERRED | IMMEDIATE}` say together.
///
/// # Errors
/// `42601` where they say the contrary of one another.
pub fn deferral(deferrable: Option<bool>, initially_deferred: Option<bool>) -> Result<Deferral, SqlError> {
    match (deferrable, initially_deferred) {
        (Some(false), Some(true)) => {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        (_, Some(true)) => Ok(Deferral::InitiallyDeferred),
        (Some(true), _) => Ok(Deferral::InitiallyImmediate),
        (None | Some(false), _) => Ok(Deferral::Never),
    }
}

/// The refusal of DEFERRABLE and its kind behind CHECK and NOT NULL of a table; `None` where there is none.
pub fn misplaced_deferral(
    tokens: &[TokenWithSpan],
    sql: &str,
    version: ExecutionVersion,
) -> Option<SqlError> {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    let defines_table = is(1, "table") && (is(0, "create") || is(0, "alter"));
    if version < ExecutionVersion::V8 || !defines_table {
        return None;
    }
    for at in 1..tokens.len() {
        let clause = match () {
            () if is(at, "not") && is(at + 1, "deferrable") => "NOT DEFERRABLE",
            () if is(at, "deferrable") && !is(at - 1, "not") => "DEFERRABLE",
            () if is(at, "initially") && is(at + 1, "deferred") => "INITIALLY DEFERRED",
            () if is(at, "initially") && is(at + 1, "immediate") => "INITIALLY IMMEDIATE",
            () => continue,
        };
        let misplaced = || {
            let message = format!("misplaced {clause} clause");
            located(SqlError::new(SqlState::SYNTAX_ERROR, message), sql, tokens[at].span.start)
        };
        if at > 1 && is(at - 2, "not") && is(at - 1, "null") {
            return Some(misplaced());
        }
        let Some(check) = check_that_ends_at(tokens, at - 1) else { continue };
        let first = if check > 1 && is(check - 2, "constraint") { check - 2 } else { check };
        let of_table = match first.checked_sub(1).map(|before| &tokens[before].token) {
            Some(Token::Comma | Token::LParen) => true,
            Some(word) => is_word(word, "add"),
            None => false,
        };
        return match (of_table, clause) {
            // It goes without saying.
            (true, "NOT DEFERRABLE" | "INITIALLY IMMEDIATE") => continue,
            (true, _) => {
                let message = "CHECK constraints cannot be marked DEFERRABLE";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                Some(located(error, sql, tokens[at].span.start))
            }
            (false, _) => Some(misplaced()),
        };
    }
    None
}

/// Where the word CHECK is whose condition ends at this parenthesis.
fn check_that_ends_at(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    if tokens[end].token != Token::RParen {
        return None;
    }
    let mut depth = 0_usize;
    for at in (0..=end).rev() {
        match tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at.checked_sub(1).filter(|check| is_word(&tokens[*check].token, "check"));
        }
    }
    None
}
