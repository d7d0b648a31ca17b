//! CREATE AGGREGATE and DROP AGGREGATE.

use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::parts::parse_data_type_tokens;
use crate::parse::routine::is_name_before_type;
use crate::parse::tokens::tokenize;
use crate::parse::words::expect_token;
use sqlparser::ast::{DataType, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use types::{SqlError, SqlState};

/// `CREATE [OR REPLACE] AGGREGATE`.
#[derive(Clone, Debug)]
pub struct CreateAggregate {
    /// OR REPLACE.
    pub or_replace: bool,
    /// Its name.
    pub name: ObjectName,
    /// The types of the arguments, `"any"` among them.
    pub arguments: Vec<DataType>,
    /// SFUNC
    pub transition: ObjectName,
    /// STYPE
    pub state: DataType,
    /// INITCOND
    pub initial: Option<String>,
    /// FINALFUNC
    pub result: Option<ObjectName>,
    /// FINALFUNC_EXTRA
    pub result_takes_arguments: bool,
}

/// `DROP AGGREGATE`.
#[derive(Clone, Debug)]
pub struct DropAggregate {
    /// IF EXISTS.
    pub if_exists: bool,
    /// With the types of the arguments.
    pub names: Vec<(ObjectName, Vec<DataType>)>,
    /// CASCADE
    pub cascade: bool,
}

/// The options that say what an aggregate gives.
#[derive(Default)]
struct Options {
    base: Option<Option<DataType>>,
    transition: Option<ObjectName>,
    state: Option<DataType>,
    initial: Option<String>,
    result: Option<ObjectName>,
    result_takes_arguments: bool,
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(*b"42P13"), message)
}

/// Whether a statement that begins with these words is about an aggregate.
pub fn is_about_aggregates(words: &[&Token]) -> bool {
    let is = |at: usize, wanted: &str| match words.get(at) {
        Some(Token::Word(word)) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        _ => false,
    };
    let at = if is(1, "or") && is(2, "replace") { 3 } else { 1 };
    (is(0, "create") && is(at, "aggregate")) || ((is(0, "drop") || is(0, "alter")) && is(1, "aggregate"))
}

/// Reads the whole of CREATE AGGREGATE, in the form with the arguments in front and in the old one with BASETYPE.
///
/// # Errors
/// `42601` with the position; `42P13` where a part is missing; `0A000` names what is not supported.
pub fn parse_create_aggregate(parser: &mut Parser<'_>, sql: &str) -> Result<CreateAggregate, SqlError> {
    parser.next_token();
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    parser.next_token();
    let name = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    let is_old = matches!(parser.peek_nth_token(1).token, Token::Word(_))
        && parser.peek_nth_token(2).token == Token::Eq;
    let arguments = if is_old { None } else { Some(parse_arguments(parser, sql)?) };
    let options = parse_options(parser, sql)?;
    expect_end(parser, sql)?;
    let (Some(state), transition) = (options.state, options.transition) else {
        return Err(invalid("aggregate stype must be specified"));
    };
    let Some(transition) = transition else { return Err(invalid("aggregate sfunc must be specified")) };
    let arguments = match (arguments, options.base) {
        (Some(_), Some(_)) => {
            return Err(invalid("basetype is redundant with aggregate input type specification"));
        }
        (Some(arguments), None) => arguments,
        (None, Some(base)) => base.into_iter().collect(),
        (None, None) => return Err(invalid("aggregate input type must be specified")),
    };
    let Options { initial, result, result_takes_arguments, .. } = options;
    Ok(CreateAggregate {
        or_replace,
        name,
        arguments,
        transition,
        state,
        initial,
        result,
        result_takes_arguments,
    })
}

/// `(*)` or `([IN] [name] type, …)`
fn parse_arguments(parser: &mut Parser<'_>, sql: &str) -> Result<Vec<DataType>, SqlError> {
    expect_token(parser, &Token::LParen, sql)?;
    let mut arguments = Vec::new();
    if parser.consume_token(&Token::Mul) {
        expect_token(parser, &Token::RParen, sql)?;
        return Ok(arguments);
    }
    loop {
        let token = parser.peek_token();
        let word = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
            _ => String::new(),
        };
        let refused = match word.as_str() {
            "variadic" => Some("VARIADIC in an aggregate"),
            "order" => Some("an ordered-set aggregate of the ledger"),
            _ => None,
        };
        if let Some(what) = refused {
            return Err(located(SqlError::unsupported(what), sql, token.span.start));
        }
        if word == "in" {
            parser.next_token();
        }
        arguments.push(parse_argument(parser, sql)?);
        if parser.consume_token(&Token::RParen) {
            return Ok(arguments);
        }
        if matches!(&parser.peek_token().token, Token::Word(word) if word.keyword == Keyword::ORDER) {
            let at = parser.peek_token().span.start;
            return Err(located(SqlError::unsupported("an ordered-set aggregate of the ledger"), sql, at));
        }
        expect_token(parser, &Token::Comma, sql)?;
    }
}

/// A type, behind a name where two words stand side by side that are not one type together.
fn parse_argument(parser: &mut Parser<'_>, sql: &str) -> Result<DataType, SqlError> {
    let (first, second) = (parser.peek_token(), parser.peek_nth_token(1));
    let is_order = matches!(&second.token, Token::Word(word) if word.keyword == Keyword::ORDER);
    if !is_order && is_name_before_type(&first.token, &second.token) {
        parser.next_token();
    }
    parser.parse_data_type().map_err(|error| parser_error(error, parser, sql))
}

/// `(NAME = value, …)`
fn parse_options(parser: &mut Parser<'_>, sql: &str) -> Result<Options, SqlError> {
    expect_token(parser, &Token::LParen, sql)?;
    let mut options = Options::default();
    loop {
        let token = parser.next_token();
        let Token::Word(word) = &token.token else { return Err(unexpected(&token, sql)) };
        let name = match word.quote_style {
            Some(_) => word.value.clone(),
            None => word.value.to_ascii_lowercase(),
        };
        let has_value = parser.consume_token(&Token::Eq);
        match (name.as_str(), has_value) {
            ("sfunc" | "sfunc1", true) => options.transition = Some(parse_function(parser, sql)?),
            ("finalfunc", true) => options.result = Some(parse_function(parser, sql)?),
            ("stype" | "stype1", true) => options.state = Some(parse_type(parser, sql)?),
            ("basetype", true) => {
                let base = parse_type(parser, sql)?;
                // 'ANY' stands for no argument at all.
                let none = matches!(&base, DataType::Custom(name, _)
                    if name.to_string().trim_matches('"').eq_ignore_ascii_case("any"));
                options.base = Some((!none).then_some(base));
            }
            ("initcond" | "initcond1", true) => options.initial = Some(parse_text(parser, sql)?),
            ("finalfunc_extra", _) => {
                options.result_takes_arguments = !has_value || parse_truth(parser, sql)?
            }
            ("hypothetical", _) => {
                let error = SqlError::unsupported("an ordered-set aggregate of the ledger");
                return Err(located(error, sql, token.span.start));
            }
            ("parallel", true) => {
                let value = parse_text(parser, sql)?;
                if !matches!(value.to_ascii_lowercase().as_str(), "safe" | "restricted" | "unsafe") {
                    let message = "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
            }
            // They change how PostgreSQL comes to the result, not which it is.
            (
                "sspace" | "sortop" | "combinefunc" | "serialfunc" | "deserialfunc" | "finalfunc_modify"
                | "msfunc" | "minvfunc" | "mstype" | "msspace" | "mfinalfunc" | "mfinalfunc_extra"
                | "mfinalfunc_modify" | "minitcond",
                _,
            ) => skip_value(parser, sql)?,
            _ => {
                let error = SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("aggregate attribute \"{name}\" not recognized"),
                );
                return Err(located(error, sql, token.span.start));
            }
        }
        if parser.consume_token(&Token::RParen) {
            return Ok(options);
        }
        expect_token(parser, &Token::Comma, sql)?;
    }
}

/// A name, with or without the types of the arguments, which its place says.
fn parse_function(parser: &mut Parser<'_>, sql: &str) -> Result<ObjectName, SqlError> {
    let token = parser.peek_token();
    let name = match token.token {
        Token::SingleQuotedString(name) => {
            parser.next_token();
            ObjectName::from(vec![Ident::new(name)])
        }
        _ => parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?,
    };
    if parser.peek_token().token == Token::LParen {
        skip_value(parser, sql)?;
    }
    Ok(name)
}

fn parse_type(parser: &mut Parser<'_>, sql: &str) -> Result<DataType, SqlError> {
    let token = parser.peek_token();
    if let Token::SingleQuotedString(name) = token.token {
        parser.next_token();
        if name.eq_ignore_ascii_case("any") {
            return Ok(DataType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new()));
        }
        return parse_data_type_tokens(tokenize(&name)?, &name);
    }
    parser.parse_data_type().map_err(|error| parser_error(error, parser, sql))
}

fn parse_text(parser: &mut Parser<'_>, sql: &str) -> Result<String, SqlError> {
    let negative = parser.consume_token(&Token::Minus);
    let token = parser.next_token();
    match token.token {
        Token::Number(number, _) if negative => Ok(format!("-{number}")),
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) | Token::Number(text, _) => {
            Ok(text)
        }
        Token::Word(word) => Ok(word.value),
        _ => Err(unexpected(&token, sql)),
    }
}

fn parse_truth(parser: &mut Parser<'_>, sql: &str) -> Result<bool, SqlError> {
    let value = parse_text(parser, sql)?;
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "finalfunc_extra requires a Boolean value")),
    }
}

/// Everything up to the comma or the parenthesis that ends a value.
fn skip_value(parser: &mut Parser<'_>, sql: &str) -> Result<(), SqlError> {
    let mut open = 0usize;
    loop {
        let token = parser.peek_token();
        match token.token {
            Token::EOF => return Err(unexpected(&token, sql)),
            Token::Comma | Token::RParen if open == 0 => return Ok(()),
            Token::LParen => open += 1,
            Token::RParen => open -= 1,
            _ => {}
        }
        parser.next_token();
    }
}

/// Reads the whole of `DROP AGGREGATE [IF EXISTS] name (type, …) [, …] [CASCADE | RESTRICT]`.
///
/// # Errors
/// As [`parse_create_aggregate`].
pub fn parse_drop_aggregate(parser: &mut Parser<'_>, sql: &str) -> Result<DropAggregate, SqlError> {
    parser.next_token();
    parser.next_token();
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let mut names = Vec::new();
    loop {
        let name = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
        names.push((name, parse_arguments(parser, sql)?));
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    let cascade = parser.parse_keyword(Keyword::CASCADE);
    if !cascade {
        let _ = parser.parse_keyword(Keyword::RESTRICT);
    }
    expect_end(parser, sql)?;
    Ok(DropAggregate { if_exists, names, cascade })
}
