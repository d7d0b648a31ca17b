//! CREATE TABLE … AS and SELECT … INTO, as one statement: sqlparser reads the first without a list of columns and without
//! WITH NO DATA, and the second as a query.

use crate::parse::errors::{expect_end, parser_error};
use sqlparser::ast::{Ident, ObjectName, Query, SetExpr, SqlOption, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// A table made of the rows of a query.
#[derive(Clone, Debug)]
pub struct CreateTableAs {
    /// Its name.
    pub name: ObjectName,
    /// TEMPORARY
    pub temporary: bool,
    /// What becomes of a temporary table when a transaction ends.
    pub on_commit: Option<Keyword>,
    /// IF NOT EXISTS
    pub if_not_exists: bool,
    /// Names that the first columns get.
    pub columns: Vec<Ident>,
    /// WITH (…)
    pub options: Vec<SqlOption>,
    /// Where the rows come from.
    pub query: Box<Query>,
    /// False: WITH NO DATA.
    pub with_data: bool,
}

/// Whether tokens that begin with CREATE are this statement: after the name, and a list of names at most, comes AS, or an
/// option that comes before it.
pub fn creates_table_as(tokens: &[TokenWithSpan]) -> bool {
    let keyword = |token: &Token| match token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut rest = tokens.iter().map(|token| &token.token).skip(1).skip_while(|token| {
        matches!(
            keyword(token),
            Keyword::TEMP | Keyword::TEMPORARY | Keyword::UNLOGGED | Keyword::GLOBAL | Keyword::LOCAL
        )
    });
    if rest.next().map(keyword) != Some(Keyword::TABLE) {
        return false;
    }
    let mut rest = rest.peekable();
    if rest.peek().is_some_and(|token| keyword(token) == Keyword::IF) {
        rest.by_ref().take(3).for_each(|_| {});
    }
    rest.next();
    while rest.peek() == Some(&&Token::Period) {
        rest.by_ref().take(2).for_each(|_| {});
    }
    if rest.peek() == Some(&&Token::LParen) {
        rest.next();
        loop {
            match (rest.next(), rest.next()) {
                (Some(Token::Word(_)), Some(Token::Comma)) => {}
                (Some(Token::Word(_)), Some(Token::RParen)) => break,
                _ => return false,
            }
        }
    }
    // Of options in parentheses none begins with AS.
    let mut depth = 0usize;
    rest.any(|token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && keyword(token) == Keyword::AS
    })
}

/// Reads CREATE TABLE … AS.
///
/// # Errors
/// `42601` with the position.
pub fn parse_create_table_as(parser: &mut Parser<'_>, sql: &str) -> Result<CreateTableAs, SqlError> {
    let create = read(parser).map_err(|error| parser_error(error, parser, sql))?;
    expect_end(parser, sql)?;
    Ok(create)
}

fn read(parser: &mut Parser<'_>) -> Result<CreateTableAs, ParserError> {
    parser.expect_keyword_is(Keyword::CREATE)?;
    let _ = parser.parse_one_of_keywords(&[Keyword::GLOBAL, Keyword::LOCAL]);
    let temporary = parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY]).is_some();
    let _ = parser.parse_keyword(Keyword::UNLOGGED);
    parser.expect_keyword_is(Keyword::TABLE)?;
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    let options = parser.parse_options(Keyword::WITH)?;
    let mut on_commit = None;
    if parser.parse_keywords(&[Keyword::ON, Keyword::COMMIT]) {
        let action = parser.expect_one_of_keywords(&[Keyword::PRESERVE, Keyword::DELETE, Keyword::DROP])?;
        if action != Keyword::DROP {
            parser.expect_keyword_is(Keyword::ROWS)?;
        }
        on_commit = Some(action);
    }
    parser.expect_keyword_is(Keyword::AS)?;
    let query = parser.parse_query()?;
    let no_data = parser.parse_keywords(&[Keyword::WITH, Keyword::NO, Keyword::DATA]);
    if !no_data {
        let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
    }
    let with_data = !no_data;
    Ok(CreateTableAs { name, temporary, on_commit, if_not_exists, columns, options, query, with_data })
}

/// SELECT … INTO as the same statement; any other one as it is.
pub fn select_into(statement: Statement) -> Result<CreateTableAs, Box<Statement>> {
    let Statement::Query(mut query) = statement else { return Err(Box::new(statement)) };
    let Some(into) = first_select(query.body.as_mut()).and_then(|select| select.into.take()) else {
        return Err(Box::new(Statement::Query(query)));
    };
    Ok(CreateTableAs {
        name: into.name,
        temporary: into.temporary,
        on_commit: None,
        if_not_exists: false,
        columns: Vec::new(),
        options: Vec::new(),
        query,
        with_data: true,
    })
}

fn first_select(body: &mut SetExpr) -> Option<&mut sqlparser::ast::Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}
