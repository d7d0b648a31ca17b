//! From text to syntax trees: sqlparser's PostgreSQL grammar behind our limits.

pub mod aggregate;
pub mod comment;
pub mod create_as;
mod dialect;
pub mod governance;
pub mod refused;
pub mod role;
pub mod routine;
pub mod sequence;
pub mod set_schema;
pub mod trigger;

use crate::names::position_in;
use crate::parse::aggregate::{
    CreateAggregate, DropAggregate, is_about_aggregates, parse_create_aggregate, parse_drop_aggregate,
};
use crate::parse::comment::{CommentOn, parse_comment};
use crate::parse::create_as::{CreateTableAs, creates_table_as, parse_create_table_as, select_into};
use crate::parse::dialect::Grammar;
use crate::parse::governance::{GovernanceCall, governance_function, parse_governance};
use crate::parse::refused::refused;
use crate::parse::role::{RoleStatement, changes_owner, is_about_roles, parse_role};
use crate::parse::routine::{CreateRoutine, parse_create_routine, parse_do};
use crate::parse::sequence::{SequenceStatement, is_about_sequences, parse_sequence};
use crate::parse::set_schema::{SetSchema, parse_set_schema, sets_schema};
use crate::parse::trigger::{TriggerStatement, is_about_triggers, parse_trigger};
use crate::rewrite::rewrite;
use sqlparser::ast::{DataType, Expr, Query, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};
use types::{SqlError, SqlState, limits};

/// How deep sqlparser may nest; one level of parentheses takes up to two of its own.
const PARSER_DEPTH_MAX: usize = 2 * limits::NESTING_MAX;

/// Bytes of a script: more than a transaction can carry.
const SCRIPT_BYTES_MAX: usize = limits::TRANSACTION_BYTES_MAX;

static DIALECT: Grammar = Grammar(PostgreSqlDialect {});

/// A statement of a script.
#[derive(Clone, Debug)]
pub enum ParsedStatement {
    /// What sqlparser reads.
    Sql(Box<Statement>),
    /// CREATE PROCEDURE and CREATE FUNCTION, which it does not read in PostgreSQL's form.
    CreateRoutine(Box<CreateRoutine>),
    /// CREATE AGGREGATE.
    CreateAggregate(Box<CreateAggregate>),
    /// DROP AGGREGATE.
    DropAggregate(Box<DropAggregate>),
    /// CREATE TABLE … AS and SELECT … INTO.
    CreateTableAs(Box<CreateTableAs>),
    /// CREATE ROLE, GRANT and their kind.
    Role(Box<RoleStatement>),
    /// CREATE and ALTER SEQUENCE, and identity columns of tables that exist.
    Sequence(Box<SequenceStatement>),
    /// CREATE, ALTER and DROP TRIGGER.
    Trigger(Box<TriggerStatement>),
    /// COMMENT ON.
    Comment(Box<CommentOn>),
    /// CHECKPOINT.
    Checkpoint,
    /// ALTER TABLE … SET SCHEMA.
    SetSchema(SetSchema),
    /// `SELECT entente.approve(…)` and its kind.
    Governance(Box<GovernanceCall>),
    /// DO: the text of its block.
    Do(String),
}

/// The tokens of a text, without white space and comments.
///
/// # Errors
/// `42601` with the position; `54000` and `54001` where the text is too long or nested too deeply.
pub fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>, SqlError> {
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
    rewrite(&mut tokens, sql)?;
    check_depth(&tokens, sql)?;
    Ok(tokens)
}

/// The error with the position of its cause in the text.
pub fn located(error: SqlError, sql: &str, location: Location) -> SqlError {
    match position_in(sql, location) {
        Some(position) => error.at(position),
        None => error,
    }
}

fn syntax_error(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error: {message}"))
}

/// The error of a token that cannot stand where it stands.
pub fn unexpected(token: &TokenWithSpan, sql: &str) -> SqlError {
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
    // Operators since the last comma, per open parenthesis and CASE; their sum bounds the depth.
    let mut open = vec![(0usize, false)];
    let mut total = 0usize;
    let keyword = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    for token in tokens {
        match (&token.token, keyword(&token.token)) {
            (Token::LParen | Token::LBracket, _) => open.push((0, false)),
            (_, Keyword::CASE) => open.push((0, true)),
            (_, Keyword::END) if open.last().is_some_and(|(_, is_case)| *is_case) => {
                total -= open.pop().map_or(0, |(count, _)| count);
            }
            (Token::RParen | Token::RBracket, _) => {
                // A CASE that nobody has closed is closed here.
                while open.len() > 1 {
                    let (count, is_case) = open.pop().unwrap_or_default();
                    total -= count;
                    if !is_case {
                        break;
                    }
                }
            }
            (Token::Comma | Token::SemiColon, _) | (_, Keyword::WHEN | Keyword::THEN | Keyword::ELSE) => {
                if let Some((count, _)) = open.last_mut() {
                    total -= std::mem::take(count);
                }
            }
            (other, _) if is_operator(other) => {
                if let Some((count, _)) = open.last_mut() {
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
pub fn parse_script(sql: &str) -> Result<Vec<ParsedStatement>, SqlError> {
    let mut statements = Vec::new();
    for tokens in tokenize(sql)?.split(|token| token.token == Token::SemiColon) {
        if tokens.iter().all(|token| token.token == Token::EOF) {
            continue;
        }
        statements.push(parse_statement_tokens(tokens.to_vec(), sql)?);
    }
    Ok(statements)
}

/// The only statement of a text.
///
/// # Errors
/// `42601` with the position, or where there is not one statement; `0A000` where it is none that sqlparser reads.
pub fn parse_only_statement(sql: &str) -> Result<Statement, SqlError> {
    let mut statements = parse_script(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(ParsedStatement::Sql(statement)), true) => Ok(*statement),
        (Some(_), true) => Err(SqlError::unsupported("this statement here")),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "one statement is expected here")),
    }
}

fn parse_statement_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<ParsedStatement, SqlError> {
    if let Some(function) = governance_function(tokens.iter().map(|token| &token.token)) {
        let call = parse_governance(function, &tokens, sql)?;
        return Ok(ParsedStatement::Governance(Box::new(call)));
    }
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_routine = |keyword: Keyword| matches!(keyword, Keyword::PROCEDURE | Keyword::FUNCTION);
    let creates_routine = keyword(0) == Keyword::CREATE
        && (is_routine(keyword(1)) || (keyword(1) == Keyword::OR && is_routine(keyword(3))));
    let is_block = keyword(0) == Keyword::DO;
    let creates_table = keyword(0) == Keyword::CREATE && creates_table_as(&tokens);
    let about_roles = is_about_roles(keyword(0), keyword(1)) || changes_owner(&tokens);
    let about_triggers = is_about_triggers([keyword(0), keyword(1), keyword(2), keyword(3), keyword(4)]);
    if let Some(error) = refused(&tokens).filter(|_| !about_roles) {
        return Err(error);
    }
    let about_aggregates =
        is_about_aggregates(&tokens.iter().take(4).map(|token| &token.token).collect::<Vec<_>>());
    let moves_table = keyword(0) == Keyword::ALTER && keyword(1) == Keyword::TABLE && sets_schema(&tokens);
    let first = keyword(0);
    let is_checkpoint = tokens.first().is_some_and(|token| is_word(&token.token, "checkpoint"));
    let about_sequences = !about_roles && is_about_sequences(&tokens);
    let mut parser = parser(tokens);
    if about_sequences {
        return Ok(ParsedStatement::Sequence(Box::new(parse_sequence(&mut parser, sql)?)));
    }
    if about_aggregates {
        return match first {
            Keyword::CREATE => {
                let create = parse_create_aggregate(&mut parser, sql)?;
                Ok(ParsedStatement::CreateAggregate(Box::new(create)))
            }
            Keyword::DROP => {
                let drop = parse_drop_aggregate(&mut parser, sql)?;
                Ok(ParsedStatement::DropAggregate(Box::new(drop)))
            }
            _ => Err(SqlError::unsupported("ALTER AGGREGATE").hint("Drop it and create it again.")),
        };
    }
    if about_roles {
        return Ok(ParsedStatement::Role(Box::new(parse_role(&mut parser, sql)?)));
    }
    if about_triggers {
        return Ok(ParsedStatement::Trigger(Box::new(parse_trigger(&mut parser, sql)?)));
    }
    if first == Keyword::COMMENT {
        return parse_comment(&mut parser, sql).map(|comment| ParsedStatement::Comment(Box::new(comment)));
    }
    if is_checkpoint {
        let _ = parser.next_token();
        return expect_end(&parser, sql).map(|()| ParsedStatement::Checkpoint);
    }
    if moves_table {
        return parse_set_schema(&mut parser, sql).map(ParsedStatement::SetSchema);
    }
    if creates_routine {
        let create = parse_create_routine(&mut parser, sql)?;
        return Ok(ParsedStatement::CreateRoutine(Box::new(create)));
    }
    if creates_table {
        let create = parse_create_table_as(&mut parser, sql)?;
        return Ok(ParsedStatement::CreateTableAs(Box::new(create)));
    }
    if is_block {
        return parse_do(&mut parser, sql).map(ParsedStatement::Do);
    }
    let statement = parser.parse_statement().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(match select_into(statement) {
        Ok(create) => ParsedStatement::CreateTableAs(Box::new(create)),
        Err(statement) => ParsedStatement::Sql(statement),
    })
}

/// Whether a token is a word without quotes that sqlparser has no keyword for.
fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Refuses anything behind a statement but its semicolon.
///
/// # Errors
/// `42601` with the position of what stands there.
pub fn expect_end(parser: &Parser<'_>, sql: &str) -> Result<(), SqlError> {
    let next = parser.peek_token();
    if next.token == Token::EOF { Ok(()) } else { Err(unexpected(&next, sql)) }
}

/// sqlparser's errors say where it stopped; PostgreSQL's words are about that token.
pub fn parser_error(error: ParserError, parser: &Parser<'_>, sql: &str) -> SqlError {
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

/// The statements of a function in SQL.
///
/// # Errors
/// As [`parse_script`]; `0A000` for CREATE PROCEDURE and CREATE FUNCTION.
pub fn parse_plain_statements(sql: &str) -> Result<Vec<Statement>, SqlError> {
    let plain = |statement| match statement {
        ParsedStatement::Sql(statement) => Ok(*statement),
        ParsedStatement::CreateRoutine(_)
        | ParsedStatement::CreateTableAs(_)
        | ParsedStatement::CreateAggregate(_) => Err(SqlError::unsupported("CREATE in a function")),
        ParsedStatement::DropAggregate(_) => Err(SqlError::unsupported("DROP in a function")),
        ParsedStatement::Sequence(_) => {
            Err(SqlError::unsupported("a statement about sequences in a function"))
        }
        ParsedStatement::Trigger(_) => Err(SqlError::unsupported("a statement about triggers in a function")),
        ParsedStatement::Governance(call) => {
            Err(SqlError::unsupported(format_args!("entente.{} in a function", call.function)))
        }
        ParsedStatement::Role(_) => Err(SqlError::unsupported("a statement about roles in a function")),
        ParsedStatement::Comment(_) => Err(SqlError::unsupported("COMMENT ON in a function")),
        ParsedStatement::Checkpoint => Err(SqlError::unsupported("CHECKPOINT in a function")),
        ParsedStatement::SetSchema(_) => Err(SqlError::unsupported("ALTER TABLE in a function")),
        ParsedStatement::Do(_) => Err(SqlError::unsupported("DO in a function")),
    };
    parse_script(sql)?.into_iter().map(plain).collect()
}

/// One query that is the whole text.
///
/// # Errors
/// As [`parse_script`].
pub fn parse_query(sql: &str) -> Result<Query, SqlError> {
    let mut parser = parser(tokenize(sql)?);
    let query = parser.parse_query().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(*query)
}

/// One expression that is the whole text.
///
/// # Errors
/// As [`parse_script`].
pub fn parse_expression(sql: &str) -> Result<Expr, SqlError> {
    let mut parser = parser(tokenize(sql)?);
    let expression = parser.parse_expr().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(expression)
}

/// One expression that is all of these tokens; `sql` is the text they come from.
///
/// # Errors
/// As [`parse_script`].
pub fn parse_expression_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<Expr, SqlError> {
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
pub fn parse_embedded_statement(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<Statement, SqlError> {
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
pub fn parse_data_type_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<DataType, SqlError> {
    let mut parser = parser(tokens);
    let data_type = parser.parse_data_type().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(data_type)
}

/// True where a script begins a statement that changes the schema, which runs alone. Says nothing about whether the
/// script is right otherwise.
pub fn is_schema_change(sql: &str) -> bool {
    // Nearly every script is told by its letters alone, which is much quicker than by its tokens.
    let contains =
        |word: &[u8]| sql.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let selects_into = contains(b"into") && contains(b"select");
    let governs = contains(b"entente");
    let words = [
        b"create".as_slice(),
        b"drop",
        b"alter",
        b"truncate",
        b"grant",
        b"revoke",
        b"comment",
        b"checkpoint",
    ];
    if !selects_into && !governs && !words.into_iter().any(contains) {
        return false;
    }
    let mut begins = true;
    let (mut is_query, mut depth, mut before) = (false, 0usize, Keyword::NoKeyword);
    let mut tokens = Vec::new();
    // What does not even tokenize is no schema change; running it gives the error.
    if Tokenizer::new(&DIALECT, sql).tokenize_with_location_into_buf(&mut tokens).is_err() {
        return false;
    }
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut statements = tokens.split(|token| token.token == Token::SemiColon);
    if governs
        && statements.any(|tokens| governance_function(tokens.iter().map(|token| &token.token)).is_some())
    {
        return true;
    }
    tokens.iter().any(|token| match &token.token {
        Token::SemiColon => {
            begins = true;
            false
        }
        Token::Word(word) => {
            let first = std::mem::replace(&mut begins, false);
            let before = std::mem::replace(&mut before, word.keyword);
            if first {
                (is_query, depth) = (matches!(word.keyword, Keyword::SELECT | Keyword::WITH), 0);
            }
            // SELECT … INTO makes a table; what is in parentheses is no part of the first SELECT.
            (is_query && depth == 0 && word.keyword == Keyword::INTO && before != Keyword::INSERT)
                || (first
                    && matches!(
                        word.keyword,
                        Keyword::CREATE
                            | Keyword::DROP
                            | Keyword::ALTER
                            | Keyword::TRUNCATE
                            | Keyword::GRANT
                            | Keyword::REVOKE
                            | Keyword::COMMENT
                    ))
                || (first && is_word(&token.token, "checkpoint"))
        }
        other => {
            begins = false;
            match other {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            false
        }
    })
}

/// Nesting of expressions: the parser counts parentheses, this also chains of operators.
pub const OPERATORS_MAX: usize = 256;

/// The refusal of an expression whose operators are nested too deep.
pub fn too_deep() -> SqlError {
    let message = format!("an expression is nested more than {OPERATORS_MAX} operators deep (OPERATORS_MAX)");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).hint("Split it, or use a list with IN.")
}
