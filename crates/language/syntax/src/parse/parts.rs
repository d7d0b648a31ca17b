//! What is a whole text without being a script: one query, one expression, one type, one statement within a routine.

use crate::parse::errors::{expect_end, parser_error};
use crate::parse::tokens::{check_depth, parser, tokenize_by};
use sqlparser::ast::{DataType, Expr, Query, Statement};
use sqlparser::tokenizer::TokenWithSpan;
use types::{ExecutionVersion, SqlError};

/// One query that is the whole text.
///
/// # Errors
/// As [`parse_script`](crate::parse::parse_script).
pub fn parse_query(sql: &str, version: ExecutionVersion) -> Result<Query, SqlError> {
    let mut parser = parser(tokenize_by(sql, version)?, version);
    let query = parser.parse_query().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(*query)
}

/// One expression that is the whole text.
///
/// # Errors
/// As [`parse_script`](crate::parse::parse_script).
pub fn parse_expression(sql: &str, version: ExecutionVersion) -> Result<Expr, SqlError> {
    let mut parser = parser(tokenize_by(sql, version)?, version);
    let expression = parser.parse_expr().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(expression)
}

/// One expression that is all of these tokens; `sql` is the text they come from.
///
/// # Errors
/// As [`parse_script`](crate::parse::parse_script).
pub fn parse_expression_tokens(
    tokens: Vec<TokenWithSpan>,
    sql: &str,
    version: ExecutionVersion,
) -> Result<Expr, SqlError> {
    check_depth(&tokens, sql)?;
    let mut parser = parser(tokens, version);
    let expression = parser.parse_expr().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(expression)
}

/// One statement that is all of these tokens, without a semicolon; `sql` is the text they come from.
///
/// # Errors
/// As [`parse_script`](crate::parse::parse_script).
pub fn parse_embedded_statement(
    tokens: Vec<TokenWithSpan>,
    sql: &str,
    version: ExecutionVersion,
) -> Result<Statement, SqlError> {
    check_depth(&tokens, sql)?;
    let mut parser = parser(tokens, version);
    let statement = parser.parse_statement().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(statement)
}

/// A type that is all of these tokens.
///
/// # Errors
/// As [`parse_script`](crate::parse::parse_script).
pub fn parse_data_type_tokens(tokens: Vec<TokenWithSpan>, sql: &str) -> Result<DataType, SqlError> {
    let mut parser = parser(tokens, ExecutionVersion::NEWEST);
    let data_type = parser.parse_data_type().map_err(|error| parser_error(error, &parser, sql))?;
    expect_end(&parser, sql)?;
    Ok(data_type)
}
