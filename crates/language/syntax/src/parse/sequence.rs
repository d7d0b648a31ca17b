//! CREATE and ALTER SEQUENCE, and ALTER TABLE … ADD GENERATED … AS IDENTITY, whose options sqlparser reads in one order only.

use crate::names::name_of;
use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::words::{accept, expect_word, name, next_word, relation};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{ExecutionVersion, Generated, SqlError, SqlState};

/// A statement about sequences.
#[derive(Clone, Debug)]
pub enum SequenceStatement {
    /// CREATE SEQUENCE.
    Create {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Its name.
        name: String,
        /// How it counts, and whose it is.
        options: CountingOptions,
    },
    /// ALTER SEQUENCE.
    Alter {
        /// IF EXISTS.
        if_exists: bool,
        /// Its name.
        name: String,
        /// What becomes of it.
        options: CountingOptions,
    },
    /// ALTER SEQUENCE … RENAME TO.
    Rename {
        /// IF EXISTS.
        if_exists: bool,
        /// Its name.
        name: String,
        /// Its new name.
        to: String,
    },
    /// ALTER TABLE … ALTER COLUMN … ADD GENERATED … AS IDENTITY.
    AddIdentity {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What it takes.
        generated: Generated,
        /// How its sequence counts.
        options: CountingOptions,
    },
}

/// How a sequence counts, as far as it is said.
#[derive(Clone, Debug, Default)]
pub struct CountingOptions {
    /// SEQUENCE NAME
    pub name: Option<String>,
    /// AS
    pub data_type: Option<ast::DataType>,
    /// START
    pub start: Option<i64>,
    /// RESTART; without a value: at START.
    pub restart: Option<Option<i64>>,
    /// INCREMENT
    pub increment: Option<i64>,
    /// MINVALUE; `None` inside: NO MINVALUE.
    pub smallest: Option<Option<i64>>,
    /// MAXVALUE; `None` inside: NO MAXVALUE.
    pub largest: Option<Option<i64>>,
    /// CYCLE
    pub cycles: Option<bool>,
    /// CACHE, as often as it is said: before version 13 nobody looked.
    pub cache: Vec<i64>,
    /// OWNED BY: table and column; `None` inside: NONE.
    pub owner: Option<Option<(String, String)>>,
}

/// Whether the statement's tokens say that it is one of these.
pub fn is_about_sequences(tokens: &[TokenWithSpan]) -> bool {
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match (keyword(0), keyword(1), keyword(2)) {
        (Keyword::CREATE | Keyword::ALTER, Keyword::SEQUENCE, _) => true,
        (Keyword::CREATE, Keyword::TEMPORARY | Keyword::TEMP, Keyword::SEQUENCE) => true,
        (Keyword::ALTER, Keyword::TABLE, _) => {
            (3..tokens.len()).any(|at| keyword(at) == Keyword::ADD && keyword(at + 1) == Keyword::GENERATED)
        }
        _ => false,
    }
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` names what is not supported.
pub fn parse_sequence(parser: &mut Parser<'_>, sql: &str) -> Result<SequenceStatement, SqlError> {
    let first = next_word(parser, sql)?;
    let kind = parser.peek_token();
    let statement = match (first.as_str(), next_word(parser, sql)?.as_str()) {
        ("create", "sequence") => {
            let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
            let name = relation(parser, sql)?;
            SequenceStatement::Create { if_not_exists, name, options: options(parser, sql)? }
        }
        ("create", _) => {
            return Err(located(SqlError::unsupported("CREATE TEMPORARY SEQUENCE"), sql, kind.span.start));
        }
        (_, "sequence") => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let sequence = relation(parser, sql)?;
            if accept(parser, "rename") {
                expect_word(parser, "to", sql)?;
                SequenceStatement::Rename { if_exists, name: sequence, to: name(parser, sql)? }
            } else {
                SequenceStatement::Alter { if_exists, name: sequence, options: options(parser, sql)? }
            }
        }
        _ => add_identity(parser, sql)?,
    };
    expect_end(parser, sql)?;
    Ok(statement)
}

/// `[ONLY] table ALTER [COLUMN] column ADD GENERATED … AS IDENTITY [(options)]`
fn add_identity(parser: &mut Parser<'_>, sql: &str) -> Result<SequenceStatement, SqlError> {
    accept(parser, "only");
    let table = relation(parser, sql)?;
    expect_word(parser, "alter", sql)?;
    accept(parser, "column");
    let column = name(parser, sql)?;
    expect_word(parser, "add", sql)?;
    expect_word(parser, "generated", sql)?;
    let generated = if accept(parser, "always") {
        Generated::Always
    } else {
        expect_word(parser, "by", sql)?;
        expect_word(parser, "default", sql)?;
        Generated::ByDefault
    };
    expect_word(parser, "as", sql)?;
    expect_word(parser, "identity", sql)?;
    let mut counting = CountingOptions::default();
    if parser.consume_token(&Token::LParen) {
        counting = options(parser, sql)?;
        if !parser.consume_token(&Token::RParen) {
            return Err(unexpected(&parser.peek_token(), sql));
        }
    }
    Ok(SequenceStatement::AddIdentity { table, column, generated, options: counting })
}

fn options(parser: &mut Parser<'_>, sql: &str) -> Result<CountingOptions, SqlError> {
    let mut options = CountingOptions::default();
    loop {
        let token = parser.peek_token();
        if matches!(token.token, Token::EOF | Token::RParen) {
            return Ok(options);
        }
        let again = match next_word(parser, sql)?.as_str() {
            "as" => {
                let data_type = parser.parse_data_type().map_err(|error| parser_error(error, parser, sql))?;
                options.data_type.replace(data_type).is_some()
            }
            "sequence" => {
                expect_word(parser, "name", sql)?;
                options.name.replace(relation(parser, sql)?).is_some()
            }
            "start" => {
                accept(parser, "with");
                options.start.replace(integer(parser, sql)?).is_some()
            }
            "restart" => {
                let with = accept(parser, "with");
                let is_number =
                    matches!(parser.peek_token().token, Token::Number(..) | Token::Minus | Token::Plus);
                let value = if with || is_number { Some(integer(parser, sql)?) } else { None };
                options.restart.replace(value).is_some()
            }
            "increment" => {
                accept(parser, "by");
                options.increment.replace(integer(parser, sql)?).is_some()
            }
            "minvalue" => options.smallest.replace(Some(integer(parser, sql)?)).is_some(),
            "maxvalue" => options.largest.replace(Some(integer(parser, sql)?)).is_some(),
            "cycle" => options.cycles.replace(true).is_some(),
            "cache" => {
                options.cache.push(integer(parser, sql)?);
                false
            }
            "no" => match next_word(parser, sql)?.as_str() {
                "minvalue" => options.smallest.replace(None).is_some(),
                "maxvalue" => options.largest.replace(None).is_some(),
                "cycle" => options.cycles.replace(false).is_some(),
                _ => return Err(unexpected(&token, sql)),
            },
            "owned" => {
                expect_word(parser, "by", sql)?;
                options.owner.replace(owner(parser, sql)?).is_some()
            }
            _ => return Err(unexpected(&token, sql)),
        };
        if again {
            let error = SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
            return Err(located(error, sql, token.span.start));
        }
    }
}

/// `table.column` or NONE.
fn owner(parser: &mut Parser<'_>, sql: &str) -> Result<Option<(String, String)>, SqlError> {
    let mut named = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    let column = named.0.pop();
    let column = column.as_ref().and_then(|part| part.as_ident());
    match column {
        Some(none) if named.0.is_empty() && none.value.eq_ignore_ascii_case("none") => Ok(None),
        Some(column) if !named.0.is_empty() => {
            Ok(Some((crate::names::table_name(&named)?, name_of(column)?)))
        }
        _ => {
            let error = SqlError::new(SqlState::SYNTAX_ERROR, "invalid OWNED BY option");
            Err(error.hint("Specify OWNED BY table.column or OWNED BY NONE."))
        }
    }
}

fn integer(parser: &mut Parser<'_>, sql: &str) -> Result<i64, SqlError> {
    let minus = parser.consume_token(&Token::Minus);
    if !minus && parser.peek_token().token == Token::Plus {
        parser.next_token();
    }
    let token = parser.next_token();
    let Token::Number(digits, false) = &token.token else { return Err(unexpected(&token, sql)) };
    let text = if minus { format!("-{digits}") } else { digits.clone() };
    text.parse().map_err(|_| {
        let message = format!("value \"{text}\" is out of range for type bigint");
        located(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message), sql, token.span.start)
    })
}

impl CountingOptions {
    /// Whether it says anything about how a sequence counts.
    pub fn count(&self) -> bool {
        self.start.is_some()
            || self.increment.is_some()
            || self.cycles.is_some()
            || matches!(self.smallest, Some(Some(_)))
            || matches!(self.largest, Some(Some(_)))
    }

    /// As sqlparser has read them, of an identity column.
    ///
    /// # Errors
    /// What is no whole number.
    pub fn of(read: &[ast::SequenceOptions], version: ExecutionVersion) -> Result<CountingOptions, SqlError> {
        let mut options = CountingOptions::default();
        for option in read {
            match option {
                ast::SequenceOptions::IncrementBy(value, _) => {
                    options.increment = Some(written_integer(value)?)
                }
                ast::SequenceOptions::StartWith(value, _) => options.start = Some(written_integer(value)?),
                ast::SequenceOptions::MinValue(value) => {
                    options.smallest = Some(value.as_ref().map(written_integer).transpose()?);
                }
                ast::SequenceOptions::MaxValue(value) => {
                    options.largest = Some(value.as_ref().map(written_integer).transpose()?);
                }
                ast::SequenceOptions::Cycle(no) => options.cycles = Some(!no),
                ast::SequenceOptions::Cache(value) if version >= ExecutionVersion::V13 => {
                    options.cache.push(written_integer(value)?);
                }
                ast::SequenceOptions::Cache(_) => {}
            }
        }
        Ok(options)
    }
}

fn written_integer(value: &ast::Expr) -> Result<i64, SqlError> {
    let (minus, digits) = match value {
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => (true, expr.as_ref()),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Plus, expr } => (false, expr.as_ref()),
        other => (false, other),
    };
    let ast::Expr::Value(literal) = digits else {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{value}\"")));
    };
    let text = match &literal.value {
        ast::Value::Number(digits, _) => digits.as_str(),
        other => {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{other}\""),
            ));
        }
    };
    let text = if minus { format!("-{text}") } else { text.to_string() };
    text.parse().map_err(|_| {
        let message = format!("value \"{text}\" is out of range for type bigint");
        SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
    })
}
