//! `ALTER TABLE … ATTACH PARTITION` and `… DETACH PARTITION`, which sqlparser does not read in PostgreSQL's form.

use crate::parse::errors::{expect_end, parser_error};
use crate::parse::tokens::{behind_name, word_at};
use crate::parse::words::{accept, expect_word, in_parentheses, relation};
use sqlparser::ast::{ForValues, PartitionBoundValue};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// A change of which partitions a table has.
#[derive(Clone, Debug)]
pub struct AlterPartition {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The table.
    pub table: String,
    /// What becomes a partition, or is one.
    pub partition: String,
    /// ATTACH: the rows that it has; `None`: DETACH.
    pub bound: Option<ForValues>,
}

/// Whether the tokens of a statement that begins with ALTER TABLE are this one.
pub fn alters_partition(tokens: &[TokenWithSpan]) -> bool {
    let at = behind_name(tokens, 2);
    (word_at(tokens, at, "attach") || word_at(tokens, at, "detach")) && word_at(tokens, at + 1, "partition")
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` for forms that are not supported.
pub fn parse_alter_partition(parser: &mut Parser<'_>, sql: &str) -> Result<AlterPartition, SqlError> {
    expect_word(parser, "alter", sql)?;
    expect_word(parser, "table", sql)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    accept(parser, "only");
    let table = relation(parser, sql)?;
    let attaches = accept(parser, "attach");
    if !attaches {
        expect_word(parser, "detach", sql)?;
    }
    expect_word(parser, "partition", sql)?;
    let partition = relation(parser, sql)?;
    let bound = match attaches {
        true => Some(parse_bound(parser, sql)?),
        false => {
            if accept(parser, "concurrently") || accept(parser, "finalize") {
                return Err(SqlError::unsupported("DETACH PARTITION CONCURRENTLY")
                    .hint("Leave the word out: a statement waits for no other one here."));
            }
            None
        }
    };
    expect_end(parser, sql)?;
    Ok(AlterPartition { if_exists, table, partition, bound })
}

fn parse_bound(parser: &mut Parser<'_>, sql: &str) -> Result<ForValues, SqlError> {
    if accept(parser, "default") {
        return Ok(ForValues::Default);
    }
    expect_word(parser, "for", sql)?;
    expect_word(parser, "values", sql)?;
    if accept(parser, "in") {
        let values = in_parentheses(parser, sql, |parser, sql| {
            parser.parse_expr().map_err(|error| parser_error(error, parser, sql))
        })?;
        return Ok(ForValues::In(values));
    }
    if accept(parser, "with") {
        // What it says makes no difference: it is refused by name.
        while parser.peek_token().token != Token::EOF {
            parser.next_token();
        }
        return Ok(ForValues::With { modulus: 0, remainder: 0 });
    }
    expect_word(parser, "from", sql)?;
    let from = in_parentheses(parser, sql, bound_value)?;
    expect_word(parser, "to", sql)?;
    let to = in_parentheses(parser, sql, bound_value)?;
    Ok(ForValues::From { from, to })
}

fn bound_value(parser: &mut Parser<'_>, sql: &str) -> Result<PartitionBoundValue, SqlError> {
    if accept(parser, "minvalue") {
        return Ok(PartitionBoundValue::MinValue);
    }
    if accept(parser, "maxvalue") {
        return Ok(PartitionBoundValue::MaxValue);
    }
    parser.parse_expr().map(PartitionBoundValue::Expr).map_err(|error| parser_error(error, parser, sql))
}
