//! `WITH CHECK OPTION` behind CREATE VIEW, and `ALTER VIEW … SET` and `RESET`, which sqlparser does not read.

use crate::parse::errors::{expect_end, parser_error};
use crate::parse::tokens::{behind_name, word_at};
use crate::parse::words::{expect_word, in_parentheses, name, relation};
use sqlparser::ast::{CreateTableOptions, Expr, Ident, SqlOption, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// `ALTER VIEW … SET (…)` and `RESET (…)`
#[derive(Clone, Debug)]
pub struct AlterView {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The view.
    pub name: String,
    /// What becomes of its options.
    pub change: ViewChange,
}

/// What becomes of the options of a view.
#[derive(Clone, Debug)]
pub enum ViewChange {
    /// SET
    Set(Vec<SqlOption>),
    /// RESET
    Reset(Vec<String>),
}

/// Takes `WITH [LOCAL | CASCADED] CHECK OPTION` from the end of CREATE VIEW. Gives the value that the option `check_option` has then.
pub fn take_check_option(tokens: &mut Vec<TokenWithSpan>) -> Option<Ident> {
    let end = tokens.len() - usize::from(tokens.last().is_some_and(|token| token.token == Token::EOF));
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    let creates_view = is(0, "create") && (1..5).any(|at| is(at, "view"));
    if !creates_view || end < 7 || !is(end - 2, "check") || !is(end - 1, "option") {
        return None;
    }
    let (begin, value) = match () {
        () if is(end - 3, "with") => (end - 3, "cascaded"),
        () if is(end - 4, "with") && is(end - 3, "cascaded") => (end - 4, "cascaded"),
        () if is(end - 4, "with") && is(end - 3, "local") => (end - 4, "local"),
        () => return None,
    };
    tokens.drain(begin..end);
    Some(Ident::new(value))
}

/// Puts a check option among the options of CREATE VIEW.
pub fn add_check_option(statement: &mut Statement, value: Ident) {
    let Statement::CreateView(create) = statement else { return };
    let option = SqlOption::KeyValue { key: Ident::new("check_option"), value: Expr::Identifier(value) };
    match &mut create.options {
        CreateTableOptions::With(options) => options.push(option),
        options => *options = CreateTableOptions::With(vec![option]),
    }
}

/// Whether a statement is ALTER VIEW with SET or RESET behind the name.
pub fn alters_view(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    if !is(0, "alter") || !is(1, "view") {
        return false;
    }
    let behind = behind_name(tokens, 2);
    let opens = tokens.get(behind + 1).is_some_and(|token| token.token == Token::LParen);
    opens && (is(behind, "set") || is(behind, "reset"))
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub fn parse_alter_view(parser: &mut Parser<'_>, sql: &str) -> Result<AlterView, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "view", sql)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let view = relation(parser, sql)?;
    let set = parser.parse_options(Keyword::SET).map_err(|error| parser_error(error, parser, sql))?;
    let change = if set.is_empty() {
        expect_word(parser, "reset", sql)?;
        ViewChange::Reset(in_parentheses(parser, sql, name)?)
    } else {
        ViewChange::Set(set)
    };
    expect_end(parser, sql)?;
    Ok(AlterView { if_exists, name: view, change })
}
