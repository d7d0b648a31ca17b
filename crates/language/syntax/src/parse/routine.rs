//! CREATE PROCEDURE and CREATE FUNCTION.

use crate::names::name_of;
use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::trigger::EVENT_TRIGGER_HINT;
use crate::parse::words::expect_token;
use sqlparser::ast::{DataType, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use types::{Language, ParameterMode, SearchPath, SqlError, SqlState, Volatility};

/// `CREATE [OR REPLACE] {PROCEDURE | FUNCTION}`.
#[derive(Clone, Debug)]
pub struct CreateRoutine {
    /// OR REPLACE.
    pub or_replace: bool,
    /// The parts of its name.
    pub name: Vec<Ident>,
    /// In order; the columns of RETURNS TABLE come last.
    pub parameters: Vec<ParsedParameter>,
    /// What makes a function of it.
    pub function: Option<ParsedFunction>,
    /// The language of the body.
    pub language: Language,
    /// The text of the body.
    pub body: String,
    /// What `SET entente.endorsement` says.
    pub endorsement: Option<String>,
    /// SECURITY DEFINER.
    pub security_definer: bool,
    /// What `SET search_path` says.
    pub search_path: Option<SearchPath>,
    /// What `SET check_function_bodies` says, as PostgreSQL's dumps say it of a session: without it the body may name what
    /// comes later.
    pub checks_body: bool,
}

/// What is said of functions only.
#[derive(Clone, Debug, Default)]
pub struct ParsedFunction {
    /// RETURNS.
    pub returns: Option<ParsedReturns>,
    /// IMMUTABLE, STABLE, VOLATILE.
    pub volatility: Option<Volatility>,
    /// STRICT and its long forms.
    pub is_strict: Option<bool>,
}

/// RETURNS.
#[derive(Clone, Debug)]
pub struct ParsedReturns {
    /// SETOF or TABLE.
    pub is_set: bool,
    /// What is returned, once or many times.
    pub result: ParsedResult,
}

/// What a function returns.
#[derive(Clone, Debug)]
pub enum ParsedResult {
    /// `void`
    Void,
    /// `record`
    Record,
    /// `trigger`
    Trigger,
    /// `TABLE (…)`, whose columns are parameters.
    Table,
    /// A type, or a table whose rows it returns.
    Named(DataType),
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct ParsedParameter {
    /// How it travels.
    pub mode: ParameterMode,
    /// Its name.
    pub name: Option<Ident>,
    /// Its type.
    pub data_type: DataType,
    /// DEFAULT, as SQL.
    pub default: Option<String>,
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `42P13` where a part is missing; `0A000` names what is not supported.
pub fn parse_create_routine(parser: &mut Parser<'_>, sql: &str) -> Result<CreateRoutine, SqlError> {
    parser.next_token();
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let mut function = match parser.parse_keyword(Keyword::FUNCTION) {
        true => Some(ParsedFunction::default()),
        false => None,
    };
    if function.is_none() && !parser.parse_keyword(Keyword::PROCEDURE) {
        return Err(unexpected(&parser.peek_token(), sql));
    }
    let name = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    let name = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
    let mut parameters = parse_parameters(parser, sql)?;
    let mut options = Options::default();
    while parser.peek_token().token != Token::EOF {
        parse_option(parser, sql, &mut options, &mut function, &mut parameters)?;
    }
    expect_end(parser, sql)?;
    let language = match options.language.as_deref() {
        Some("plpgsql") => Language::PlPgSql,
        Some("sql") => Language::Sql,
        Some(other) => {
            return Err(SqlError::unsupported(format_args!("LANGUAGE {other}")).hint("Use LANGUAGE plpgsql."));
        }
        None => return Err(SqlError::new(SqlState(*b"42P13"), "no language specified")),
    };
    let Some(body) = options.body else {
        return Err(SqlError::new(SqlState(*b"42P13"), "no function body specified"));
    };
    Ok(CreateRoutine {
        or_replace,
        name,
        parameters,
        function,
        language,
        body,
        endorsement: options.endorsement,
        security_definer: options.security_definer.unwrap_or(false),
        search_path: options.search_path,
        checks_body: options.checks_body.unwrap_or(true),
    })
}

/// What is said behind the parameters, in any order, of procedures and functions.
#[derive(Default)]
struct Options {
    language: Option<String>,
    body: Option<String>,
    endorsement: Option<String>,
    security_definer: Option<bool>,
    search_path: Option<SearchPath>,
    checks_body: Option<bool>,
}

/// What ALTER says of a procedure or function; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub struct RoutineOptions {
    /// IMMUTABLE, STABLE, VOLATILE
    pub volatility: Option<Volatility>,
    /// STRICT, CALLED ON NULL INPUT
    pub is_strict: Option<bool>,
    /// SECURITY DEFINER, SECURITY INVOKER
    pub security_definer: Option<bool>,
    /// SET search_path
    pub search_path: Option<SearchPath>,
    /// SET endorsement
    pub endorsement: Option<String>,
}

/// The options of ALTER FUNCTION and its kin, at least one.
///
/// # Errors
/// `42601` with the position; `0A000` for an option that is not supported.
pub fn parse_changed_options(parser: &mut Parser<'_>, sql: &str) -> Result<RoutineOptions, SqlError> {
    let (mut options, mut function) = (Options::default(), Some(ParsedFunction::default()));
    loop {
        let first = word_ahead(parser, 0);
        if matches!(first.as_str(), "language" | "as") || first == "returns" && !is_null_input(parser) {
            return Err(unexpected(&parser.peek_token(), sql));
        }
        if matches!(first.as_str(), "reset" | "depends" | "no") {
            let what = format!("{} in ALTER FUNCTION", first.to_ascii_uppercase());
            return Err(SqlError::unsupported(what));
        }
        parse_option(parser, sql, &mut options, &mut function, &mut Vec::new())?;
        if parser.peek_token().token == Token::EOF || word_ahead(parser, 0) == "restrict" {
            break;
        }
    }
    if word_ahead(parser, 0) == "restrict" {
        parser.next_token();
    }
    let function = function.unwrap_or_default();
    Ok(RoutineOptions {
        volatility: function.volatility,
        is_strict: function.is_strict,
        security_definer: options.security_definer,
        search_path: options.search_path,
        endorsement: options.endorsement,
    })
}

/// Reads the next option; `function` is there in CREATE FUNCTION.
fn parse_option(
    parser: &mut Parser<'_>,
    sql: &str,
    options: &mut Options,
    function: &mut Option<ParsedFunction>,
    parameters: &mut Vec<ParsedParameter>,
) -> Result<(), SqlError> {
    let token = parser.peek_token();
    let Token::Word(word) = &token.token else { return Err(unexpected(&token, sql)) };
    let option = word.value.to_ascii_lowercase();
    match (option.as_str(), function) {
        ("language", _) if options.language.is_none() => {
            parser.next_token();
            options.language = Some(parse_language(parser, sql)?);
        }
        ("as", _) if options.body.is_none() => {
            parser.next_token();
            options.body = Some(parse_body(parser, sql)?);
        }
        ("security" | "external", _) => {
            skip_words(parser, usize::from(option == "external") + 1);
            let definer = match word_ahead(parser, 0).as_str() {
                "definer" => true,
                "invoker" => false,
                _ => return Err(unexpected(&parser.peek_token(), sql)),
            };
            parser.next_token();
            set_once(&mut options.security_definer, definer)?;
        }
        ("set", _) if word_ahead(parser, 1) == "search_path" => {
            skip_words(parser, 2);
            options.search_path = Some(parse_names_of_path(parser, sql)?);
        }
        ("set", _) if word_ahead(parser, 1) == CHECK_BODIES => {
            skip_words(parser, 2);
            set_once(&mut options.checks_body, parse_switch(parser, sql)?)?;
        }
        ("set", _) if options.endorsement.is_none() => {
            parser.next_token();
            options.endorsement = Some(parse_endorsement(parser, sql)?);
        }
        ("returns", Some(function)) if function.returns.is_none() || is_null_input(parser) => {
            parser.next_token();
            match is_null_input_behind_returns(parser) {
                true => {
                    skip_words(parser, 4);
                    set_once(&mut function.is_strict, true)?;
                }
                false => function.returns = Some(parse_returns(parser, sql, parameters)?),
            }
        }
        (_, Some(function)) => {
            if !parse_function_option(parser, &option, function)? {
                let what = format!("{} in CREATE FUNCTION", option.to_ascii_uppercase());
                return Err(located(SqlError::unsupported(what), sql, token.span.start));
            }
        }
        (_, None) => {
            let what = format!("{} in CREATE PROCEDURE", option.to_ascii_uppercase());
            return Err(located(SqlError::unsupported(what), sql, token.span.start));
        }
    }
    Ok(())
}

/// `{TO | =} schema, …` behind SET search_path; `FROM CURRENT` is what happens anyway.
fn parse_names_of_path(parser: &mut Parser<'_>, sql: &str) -> Result<SearchPath, SqlError> {
    if !parser.parse_keyword(Keyword::TO) {
        expect_token(parser, &Token::Eq, sql)?;
    }
    let mut names = Vec::new();
    loop {
        let token = parser.next_token();
        match token.token {
            Token::Word(word) => names.push(name_of(&word.into_ident(token.span))?),
            Token::SingleQuotedString(name) => names.push(name),
            _ => return Err(unexpected(&token, sql)),
        }
        if !parser.consume_token(&Token::Comma) {
            return SearchPath::new(names);
        }
    }
}

/// The setting that says whether bodies are checked when they are created.
const CHECK_BODIES: &str = "check_function_bodies";

/// `TO on`, `= off`
fn parse_switch(parser: &mut Parser<'_>, sql: &str) -> Result<bool, SqlError> {
    if !parser.consume_token(&Token::Eq) {
        match word_ahead(parser, 0).as_str() {
            "to" => skip_words(parser, 1),
            _ => return Err(unexpected(&parser.peek_token(), sql)),
        }
    }
    let token = parser.peek_token();
    let switch = match word_ahead(parser, 0).as_str() {
        "on" | "true" => true,
        "off" | "false" => false,
        _ => return Err(unexpected(&token, sql)),
    };
    skip_words(parser, 1);
    Ok(switch)
}

/// `DO [LANGUAGE plpgsql] 'block'`, in any order. Gives the block.
///
/// # Errors
/// As [`parse_create_routine`].
pub fn parse_do(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    parser.next_token();
    let (mut language, mut body) = (None, None);
    while parser.peek_token().token != Token::EOF {
        let repeated = if parser.parse_keyword(Keyword::LANGUAGE) {
            language.replace(parse_language(parser, sql)?).is_some()
        } else {
            body.replace(parse_body(parser, sql)?).is_some()
        };
        if repeated {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options"));
        }
    }
    if let Some(language) = language.filter(|language| language != "plpgsql") {
        return Err(
            SqlError::unsupported(format_args!("DO in LANGUAGE {language}")).hint("Use LANGUAGE plpgsql.")
        );
    }
    body.ok_or_else(|| SqlError::new(SqlState::SYNTAX_ERROR, "no inline code specified"))
}

/// What a function promises, and what only other systems need to know. False where it is none of these.
fn parse_function_option(
    parser: &mut Parser<'_>,
    option: &str,
    function: &mut ParsedFunction,
) -> Result<bool, SqlError> {
    let second = word_ahead(parser, 1);
    match (option, second.as_str()) {
        ("immutable", _) => set_once(&mut function.volatility, Volatility::Immutable)?,
        ("stable", _) => set_once(&mut function.volatility, Volatility::Stable)?,
        ("volatile", _) => set_once(&mut function.volatility, Volatility::Volatile)?,
        ("strict", _) => set_once(&mut function.is_strict, true)?,
        ("called", "on") => {
            set_once(&mut function.is_strict, false)?;
            skip_words(parser, 3);
        }
        // They change how PostgreSQL plans a call, not what it gives.
        ("leakproof", _) => {}
        ("not", "leakproof") | ("parallel", _) => skip_words(parser, 1),
        ("cost" | "rows", _) => skip_words(parser, 1),
        _ => return Ok(false),
    }
    parser.next_token();
    Ok(true)
}

fn set_once<T>(option: &mut Option<T>, value: T) -> Result<(), SqlError> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")),
    }
}

fn skip_words(parser: &mut Parser<'_>, count: usize) {
    for _ in 0..count {
        parser.next_token();
    }
}

/// The word `ahead` tokens further, lower-case; empty where there is none.
fn word_ahead(parser: &Parser<'_>, ahead: usize) -> String {
    match parser.peek_nth_token(ahead).token {
        Token::Word(word) => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// `RETURNS NULL ON NULL INPUT` comes next.
fn is_null_input(parser: &Parser<'_>) -> bool {
    word_ahead(parser, 1) == "null"
}

/// The same, RETURNS having been read.
fn is_null_input_behind_returns(parser: &Parser<'_>) -> bool {
    word_ahead(parser, 0) == "null"
}

fn parse_returns(
    parser: &mut Parser<'_>,
    sql: &str,
    parameters: &mut Vec<ParsedParameter>,
) -> Result<ParsedReturns, SqlError> {
    let is_set = word_ahead(parser, 0) == "setof";
    skip_words(parser, usize::from(is_set));
    let result = match word_ahead(parser, 0).as_str() {
        "void" => ParsedResult::Void,
        "record" => ParsedResult::Record,
        "trigger" => ParsedResult::Trigger,
        "event_trigger" => {
            let token = parser.peek_token();
            let error = SqlError::unsupported("an event trigger").hint(EVENT_TRIGGER_HINT);
            return Err(located(error, sql, token.span.start));
        }
        "table" => {
            parser.next_token();
            for mut column in parse_parameters(parser, sql)? {
                column.mode = ParameterMode::Out;
                parameters.push(column);
            }
            return Ok(ParsedReturns { is_set: true, result: ParsedResult::Table });
        }
        _ => {
            let data_type = parse_type(parser, sql)?;
            return Ok(ParsedReturns { is_set, result: ParsedResult::Named(data_type) });
        }
    };
    parser.next_token();
    Ok(ParsedReturns { is_set, result })
}

/// `entente.endorsement {TO | =} 'policy'`, behind SET.
fn parse_endorsement(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let at = parser.peek_token();
    let name = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    if !name.to_string().eq_ignore_ascii_case("entente.endorsement") {
        let error = SqlError::unsupported(format_args!("SET {name} in CREATE PROCEDURE or FUNCTION"));
        let error = error.hint("SET entente.endorsement = 'policy' says who must endorse its calls.");
        return Err(located(error, sql, at.span.start));
    }
    if !parser.parse_keyword(Keyword::TO) {
        expect_token(parser, &Token::Eq, sql)?;
    }
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(policy) => Ok(policy),
        _ => Err(unexpected(&token, sql)),
    }
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

/// `(parameter, …)`
pub fn parse_parameters(parser: &mut Parser<'_>, sql: &str) -> Result<Vec<ParsedParameter>, SqlError> {
    expect_token(parser, &Token::LParen, sql)?;
    let mut parameters = Vec::new();
    if !parser.consume_token(&Token::RParen) {
        loop {
            parameters.push(parse_parameter(parser, sql)?);
            if parser.consume_token(&Token::RParen) {
                break;
            }
            expect_token(parser, &Token::Comma, sql)?;
        }
    }
    Ok(parameters)
}

/// `[mode] [name] type [DEFAULT value]`, or `name mode type …`.
fn parse_parameter(parser: &mut Parser<'_>, sql: &str) -> Result<ParsedParameter, SqlError> {
    let mut mode = parse_mode(parser);
    let token = parser.peek_token();
    // One word before the comma is a type; with another word after it, it is the name.
    let next = parser.peek_nth_token(1);
    let named = is_name_before_type(&token.token, &next.token);
    let name = match (&token.token, named) {
        (Token::Word(word), true) => {
            parser.next_token();
            Some(Ident { value: word.value.clone(), quote_style: word.quote_style, span: token.span })
        }
        _ => None,
    };
    if mode.is_none() && name.is_some() {
        mode = parse_mode(parser);
    }
    let data_type = parse_type(parser, sql)?;
    let token = parser.peek_token();
    let has_default = match &token.token {
        Token::Word(word) => word.keyword == Keyword::DEFAULT,
        Token::Eq | Token::Assignment => true,
        _ => false,
    };
    let default = match has_default {
        true => {
            parser.next_token();
            let default = parser.parse_expr().map_err(|error| parser_error(error, parser, sql))?;
            Some(default.to_string())
        }
        false => None,
    };
    Ok(ParsedParameter { mode: mode.unwrap_or(ParameterMode::In), name, data_type, default })
}

/// What stands behind the name of a column whose type is meant.
pub const TYPE_OF_COLUMN: &str = "%TYPE";

/// A type, or `table.column%TYPE`.
fn parse_type(parser: &mut Parser<'_>, sql: &str) -> Result<DataType, SqlError> {
    let data_type = parser.parse_data_type().map_err(|error| parser_error(error, parser, sql))?;
    match data_type {
        DataType::Custom(name, modifiers)
            if modifiers.is_empty()
                && parser.peek_token().token == Token::Mod
                && word_ahead(parser, 1) == "type" =>
        {
            skip_words(parser, 2);
            Ok(DataType::Custom(name, vec![TYPE_OF_COLUMN.to_string()]))
        }
        other => Ok(other),
    }
}

/// Whether the first of two tokens is the name of a parameter whose type the second begins.
pub fn is_name_before_type(first: &Token, second: &Token) -> bool {
    matches!((first, second), (Token::Word(_), Token::Word(_))) && !begins_type(first, second)
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

fn parse_mode(parser: &mut Parser<'_>) -> Option<ParameterMode> {
    let token = parser.peek_token();
    let Token::Word(word) = &token.token else { return None };
    let mode = match (word.quote_style, word.value.to_ascii_lowercase().as_str()) {
        (None, "in") => ParameterMode::In,
        (None, "out") => ParameterMode::Out,
        (None, "inout") => ParameterMode::InOut,
        (None, "variadic") => ParameterMode::Variadic,
        _ => return None,
    };
    // `in` and `out` may be one mode: IN OUT.
    parser.next_token();
    if mode == ParameterMode::In
        && matches!(&parser.peek_token().token, Token::Word(word) if word.value.eq_ignore_ascii_case("out"))
    {
        parser.next_token();
        return Some(ParameterMode::InOut);
    }
    Some(mode)
}
