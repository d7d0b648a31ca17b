//! From text to syntax trees: sqlparser's PostgreSQL grammar behind our limits, and CREATE PROCEDURE.

use crate::expression::{OPERATORS_MAX, too_deep};
use crate::scope::position_in;
use sqlparser::ast::{DataType, Expr, Ident, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};
use types::{ParameterMode, SqlError, SqlState, limits};

/// How deep sqlparser may nest; one level of parentheses takes up to two of its own.
const PARSER_DEPTH_MAX: usize = 2 * limits::NESTING_MAX;

/// Bytes of a script: more than a transaction can carry.
const SCRIPT_BYTES_MAX: usize = limits::TRANSACTION_BYTES_MAX;

static DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// A statement of a script.
#[derive(Debug)]
pub(crate) enum ParsedStatement {
    /// What sqlparser reads.
    Sql(Box<Statement>),
    /// CREATE PROCEDURE, which it does not read in PostgreSQL's form.
    CreateProcedure(CreateProcedure),
}

/// `CREATE [OR REPLACE] PROCEDURE`.
#[derive(Debug)]
pub(crate) struct CreateProcedure {
    /// OR REPLACE.
    pub or_replace: bool,
    /// The parts of its name.
    pub name: Vec<Ident>,
    /// In order.
    pub parameters: Vec<ParsedParameter>,
    /// The text of the body.
    pub body: String,
    /// What `SET entente.endorsement` says.
    pub endorsement: Option<String>,
}

/// A parameter of CREATE PROCEDURE.
#[derive(Debug)]
pub(crate) struct ParsedParameter {
    /// How it travels.
    pub mode: ParameterMode,
    /// Its name.
    pub name: Option<Ident>,
    /// Its type.
    pub data_type: DataType,
}

/// The tokens of a text, without white space and comments.
///
/// # Errors
/// `42601` with the position; `54000` and `54001` where the text is too long or nested too deeply.
pub(crate) fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>, SqlError> {
    if sql.len() > SCRIPT_BYTES_MAX {
        let message = format!(
            "the script has {} bytes, the limit is {SCRIPT_BYTES_MAX} (TRANSACTION_BYTES_MAX)",
            sql.len()
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("Split it."));
    }
    let mut tokens = Vec::new();
    if let Err(error) = Tokenizer::new(&DIALECT, sql).tokenize_with_location_into_buf(&mut tokens) {
        return Err(located(syntax_error(&error.message), sql, error.location));
    }
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    check_depth(&tokens, sql)?;
    Ok(tokens)
}

fn located(error: SqlError, sql: &str, location: Location) -> SqlError {
    match position_in(sql, location) {
        Some(position) => error.at(position),
        None => error,
    }
}

fn syntax_error(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error: {message}"))
}

/// The error of a token that cannot stand where it stands.
pub(crate) fn unexpected(token: &TokenWithSpan, sql: &str) -> SqlError {
    match &token.token {
        Token::EOF => {
            let end = sql.chars().count() as u32 + 1;
            SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input").at(end)
        }
        other => {
            let message = format!("syntax error at or near \"{other}\"");
            located(SqlError::new(SqlState::SYNTAX_ERROR, message), sql, token.span.start)
        }
    }
}

/// Trees are as deep as chains of operators are long: what is built must also be walked and dropped.
fn check_depth(tokens: &[TokenWithSpan], sql: &str) -> Result<(), SqlError> {
    // Operators since the last comma, per open parenthesis; their sum bounds the depth.
    let mut open = vec![0usize];
    let mut total = 0usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => open.push(0),
            Token::RParen | Token::RBracket if open.len() > 1 => total -= open.pop().unwrap_or(0),
            Token::Comma | Token::SemiColon => {
                if let Some(count) = open.last_mut() {
                    total -= std::mem::take(count);
                }
            }
            other if is_operator(other) => {
                if let Some(count) = open.last_mut() {
                    *count += 1;
                    total += 1;
                }
            }
            _ => {}
        }
        if total + open.len() > OPERATORS_MAX {
            return Err(located(too_deep(), sql, token.span.start));
        }
    }
    Ok(())
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(Word { keyword, .. }) => matches!(
            keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::CASE
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
                | Keyword::SELECT
                | Keyword::INTERVAL
                | Keyword::ARRAY
        ),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::Placeholder(_)
        | Token::Period
        | Token::RParen
        | Token::RBracket
        | Token::EOF => false,
        Token::LBrace | Token::RBrace => true,
        _ => true,
    }
}

fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&DIALECT).with_recursion_limit(PARSER_DEPTH_MAX).with_tokens_with_locations(tokens)
}

/// The statements of a script.
///
/// # Errors
/// `42601` with the position.
pub(crate) fn parse_script(sql: &str) -> Result<Vec<ParsedStatement>, SqlError> {
    let mut statements = Vec::new();
    for tokens in tokenize(sql)?.split(|token| token.token == Token::SemiColon) {
        if tokens.iter().all(|token| token.token == Token::EOF) {
            continue;
        }
        statements.push(parse_statement_tokens(tokens.to_vec(), sql)?);
    }
    Ok(statements)
}

fn parse_statement_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<ParsedStatement, SqlError> {
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let creates_procedure = keyword(0) == Keyword::CREATE
        && (keyword(1) == Keyword::PROCEDURE
            || (keyword(1) == Keyword::OR && keyword(3) == Keyword::PROCEDURE));
    let mut parser = parser(tokens);
    let parsed = if creates_procedure {
        return parse_create_procedure(&mut parser, sql).map(ParsedStatement::CreateProcedure);
    } else {
        parser.parse_statement()
    };
    let statement = parsed.map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(ParsedStatement::Sql(Box::new(statement)))
}

fn expect_end(parser: &Parser<'_>, sql: &str) -> Result<(), SqlError> {
    let next = parser.peek_token();
    if next.token == Token::EOF { Ok(()) } else { Err(unexpected(&next, sql)) }
}

/// sqlparser's errors say where it stopped; PostgreSQL's words are about that token.
pub(crate) fn parser_error(error: ParserError, parser: &Parser<'_>, sql: &str) -> SqlError {
    match error {
        ParserError::RecursionLimitExceeded => {
            let message = format!(
                "the statement is nested more than {} levels deep (NESTING_MAX)",
                limits::NESTING_MAX
            );
            SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        }
        ParserError::TokenizerError(message) => syntax_error(&message),
        ParserError::ParserError(message) => {
            let location = message.rsplit_once(" at Line: ").and_then(|(_, place)| {
                let (line, column) = place.split_once(", Column: ")?;
                Some(Location { line: line.trim().parse().ok()?, column: column.trim().parse().ok()? })
            });
            let next = parser.peek_token();
            match location {
                Some(location) => {
                    let found = message
                        .rsplit_once("found: ")
                        .and_then(|(_, rest)| rest.rsplit_once(" at Line"))
                        .map(|(found, _)| found);
                    let error = match found {
                        Some("EOF") | None => unexpected(&next, sql),
                        Some(found) => SqlError::new(
                            SqlState::SYNTAX_ERROR,
                            format!("syntax error at or near \"{found}\""),
                        ),
                    };
                    let detail = message.rsplit_once(" at Line: ").map_or(message.as_str(), |(what, _)| what);
                    located(error, sql, location).detail(detail.to_string())
                }
                None => unexpected(&next, sql).detail(message),
            }
        }
    }
}

/// One expression that is the whole text.
///
/// # Errors
/// As [`parse_script`].
pub(crate) fn parse_expression(sql: &str) -> Result<Expr, SqlError> {
    let mut parser = parser(tokenize(sql)?);
    let expression = parser.parse_expr().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(expression)
}

/// One expression that is all of these tokens; `sql` is the text they come from.
///
/// # Errors
/// As [`parse_script`].
pub(crate) fn parse_expression_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<Expr, SqlError> {
    check_depth(&tokens, sql)?;
    let mut parser = parser(tokens);
    let expression = parser.parse_expr().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(expression)
}

/// One statement that is all of these tokens, without a semicolon; `sql` is the text they come from.
///
/// # Errors
/// As [`parse_script`].
pub(crate) fn parse_embedded_statement(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<Statement, SqlError> {
    check_depth(&tokens, sql)?;
    let mut parser = parser(tokens);
    let statement = parser.parse_statement().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(statement)
}

/// A type that is all of these tokens.
///
/// # Errors
/// As [`parse_script`].
pub(crate) fn parse_data_type_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<DataType, SqlError> {
    let mut parser = parser(tokens);
    let data_type = parser.parse_data_type().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(data_type)
}

/// True where a script begins a statement that changes the schema, which runs alone. Says nothing about whether the
/// script is right otherwise.
pub(crate) fn is_schema_change(sql: &str) -> bool {
    // Nearly every script is told by its letters alone, which is much quicker than by its tokens.
    let contains =
        |word: &[u8]| sql.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    if ![b"create".as_slice(), b"drop", b"alter", b"truncate"].into_iter().any(contains) {
        return false;
    }
    let mut begins = true;
    let mut tokens = Vec::new();
    // What does not even tokenize is no schema change; running it gives the error.
    if Tokenizer::new(&DIALECT, sql).tokenize_with_location_into_buf(&mut tokens).is_err() {
        return false;
    }
    tokens.iter().any(|token| match &token.token {
        Token::Whitespace(_) => false,
        Token::SemiColon => {
            begins = true;
            false
        }
        Token::Word(word) => {
            let first = std::mem::replace(&mut begins, false);
            first
                && matches!(
                    word.keyword,
                    Keyword::CREATE | Keyword::DROP | Keyword::ALTER | Keyword::TRUNCATE
                )
        }
        _ => {
            begins = false;
            false
        }
    })
}

fn parse_create_procedure(parser: &mut Parser<'_>, sql: &str) -> Result<CreateProcedure, SqlError> {
    let created = parse_procedure_parts(parser, sql)?;
    expect_end(parser, sql)?;
    Ok(created)
}

fn parse_procedure_parts(parser: &mut Parser<'_>, sql: &str) -> Result<CreateProcedure, SqlError> {
    parser.next_token();
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    if !parser.parse_keyword(Keyword::PROCEDURE) {
        return Err(unexpected(&parser.peek_token(), sql));
    }
    let name = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    let name = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    expect(parser, &Token::LParen, sql)?;
    let mut parameters = Vec::new();
    if !parser.consume_token(&Token::RParen) {
        loop {
            parameters.push(parse_parameter(parser, sql)?);
            if parser.consume_token(&Token::RParen) {
                break;
            }
            expect(parser, &Token::Comma, sql)?;
        }
    }
    let (mut language, mut body, mut endorsement) = (None, None, None);
    loop {
        let token = parser.peek_token();
        match &token.token {
            Token::EOF => break,
            Token::Word(word) if word.keyword == Keyword::LANGUAGE && language.is_none() => {
                parser.next_token();
                language = Some(parse_language(parser, sql)?);
            }
            Token::Word(word) if word.keyword == Keyword::AS && body.is_none() => {
                parser.next_token();
                body = Some(parse_body(parser, sql)?);
            }
            Token::Word(word) if word.keyword == Keyword::SET && endorsement.is_none() => {
                parser.next_token();
                endorsement = Some(parse_endorsement(parser, sql)?);
            }
            Token::Word(word) => {
                let what = format!("{} in CREATE PROCEDURE", word.value.to_ascii_uppercase());
                return Err(located(SqlError::unsupported(what), sql, token.span.start));
            }
            _ => return Err(unexpected(&token, sql)),
        }
    }
    match language.as_deref() {
        Some("plpgsql") => {}
        Some(other) => {
            return Err(SqlError::unsupported(format_args!("LANGUAGE {other}")).hint("Use LANGUAGE plpgsql."));
        }
        None => return Err(SqlError::new(SqlState(*b"42P13"), "no language specified")),
    }
    let Some(body) = body else {
        return Err(SqlError::new(SqlState(*b"42P13"), "no function body specified"));
    };
    Ok(CreateProcedure { or_replace, name, parameters, body, endorsement })
}

/// `entente.endorsement {TO | =} 'policy'`, behind SET.
fn parse_endorsement(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let at = parser.peek_token();
    let name = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    if !name.to_string().eq_ignore_ascii_case("entente.endorsement") {
        let error = SqlError::unsupported(format_args!("SET {name} in CREATE PROCEDURE"));
        let error = error.hint("SET entente.endorsement = 'policy' says who must endorse its calls.");
        return Err(located(error, sql, at.span.start));
    }
    if !parser.parse_keyword(Keyword::TO) {
        expect(parser, &Token::Eq, sql)?;
    }
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(policy) => Ok(policy),
        _ => Err(unexpected(&token, sql)),
    }
}

fn expect(parser: &mut Parser<'_>, token: &Token, sql: &str) -> Result<(), SqlError> {
    if parser.consume_token(token) { Ok(()) } else { Err(unexpected(&parser.peek_token(), sql)) }
}

fn parse_language(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let token = parser.next_token();
    match &token.token {
        Token::Word(word) => Ok(word.value.to_ascii_lowercase()),
        Token::SingleQuotedString(name) => Ok(name.to_ascii_lowercase()),
        _ => Err(unexpected(&token, sql)),
    }
}

fn parse_body(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let token = parser.next_token();
    match token.token {
        Token::DollarQuotedString(body) => Ok(body.value),
        Token::SingleQuotedString(body) | Token::EscapedStringLiteral(body) => Ok(body),
        _ => Err(unexpected(&token, sql)),
    }
}

/// `[mode] [name] type`, or `name mode type`.
fn parse_parameter(parser: &mut Parser<'_>, sql: &str) -> Result<ParsedParameter, SqlError> {
    let mut mode = parse_mode(parser, sql)?;
    let token = parser.peek_token();
    // One word before the comma is a type; with another word after it, it is the name.
    let next = parser.peek_nth_token(1);
    let named = matches!(next.token, Token::Word(_)) && !begins_type(&token.token, &next.token);
    let name = match (&token.token, named) {
        (Token::Word(word), true) => {
            parser.next_token();
            Some(Ident { value: word.value.clone(), quote_style: word.quote_style, span: token.span })
        }
        _ => None,
    };
    if mode.is_none() && name.is_some() {
        mode = parse_mode(parser, sql)?;
    }
    let data_type = parser.parse_data_type().map_err(|error| parser_error(error, parser, sql))?;
    let token = parser.peek_token();
    let defaults = match &token.token {
        Token::Word(word) => word.keyword == Keyword::DEFAULT,
        Token::Eq | Token::Assignment => true,
        _ => false,
    };
    if defaults {
        let error = SqlError::unsupported("a default value of a parameter").hint("Pass every argument.");
        return Err(located(error, sql, token.span.start));
    }
    Ok(ParsedParameter { mode: mode.unwrap_or(ParameterMode::In), name, data_type })
}

/// Types of several words that a parameter without a name may begin with.
fn begins_type(first: &Token, second: &Token) -> bool {
    let word = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    matches!(
        (word(first).as_str(), word(second).as_str()),
        ("double", "precision") | ("character", "varying") | ("timestamp" | "time", "with" | "without")
    )
}

fn parse_mode(parser: &mut Parser<'_>, sql: &str) -> Result<Option<ParameterMode>, SqlError> {
    let token = parser.peek_token();
    let Token::Word(word) = &token.token else { return Ok(None) };
    let mode = match (word.quote_style, word.value.to_ascii_lowercase().as_str()) {
        (None, "in") => ParameterMode::In,
        (None, "out") => ParameterMode::Out,
        (None, "inout") => ParameterMode::InOut,
        (None, "variadic") => {
            return Err(located(SqlError::unsupported("VARIADIC"), sql, token.span.start));
        }
        _ => return Ok(None),
    };
    // `in` and `out` may be one mode: IN OUT.
    parser.next_token();
    if mode == ParameterMode::In
        && matches!(&parser.peek_token().token, Token::Word(word) if word.value.eq_ignore_ascii_case("out"))
    {
        parser.next_token();
        return Ok(Some(ParameterMode::InOut));
    }
    Ok(Some(mode))
}
