//! From text to tokens, within the limits of what a tree of them may be: how long, and how deep.

use crate::parse::conflict_target::name_targets;
use crate::parse::dialect::Grammar;
use crate::parse::drop_routine::put_modes_first;
use crate::parse::errors::{located, syntax_error};
use crate::parse::exclusion::mark_exclusions;
use crate::parse::fetch::spell_fetch;
use crate::parse::frame_offsets::enclose_offsets;
use crate::parse::locking::with_known_locks;
use crate::parse::only::enclose_only;
use crate::parse::spoken::spoken_bytes;
use crate::parse::subscripts::name_subscripts;
use crate::rewrite::rewrite;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};
use types::{ExecutionVersion, SqlError, SqlState, limits};

/// How deep sqlparser may nest; one level of parentheses takes up to two of its own.
const PARSER_DEPTH_MAX: usize = 2 * limits::NESTING_MAX;

/// Bytes of a script: more than a transaction can carry.
const SCRIPT_BYTES_MAX: usize = limits::TRANSACTION_BYTES_MAX;

/// Bytes of a script outside of its literals and comments: a token has at least one, and takes eighty in memory.
const SPOKEN_BYTES_MAX: usize = 1024 * 1024;

/// Tokens of a script, spaces among them. One of 256 KiB cannot have more, which is as long as they were before execution version 14:
/// no transaction before it comes to another result.
const TOKENS_MAX: usize = 256 * 1024;

const SHORTER: &str =
    "Split it; many rows come by COPY, or as parameters of a statement that runs for each of them.";

/// Nesting of expressions: the parser counts parentheses, this also chains of operators.
pub const OPERATORS_MAX: usize = 256;

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
    let spoken = spoken_bytes(sql);
    if sql.len() > TOKENS_MAX && spoken > SPOKEN_BYTES_MAX {
        let message = format!(
            "the script has {spoken} bytes outside of its literals and comments, the limit is {SPOKEN_BYTES_MAX} (SPOKEN_BYTES_MAX)"
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint(SHORTER));
    }
    let mut tokens = Vec::new();
    if let Err(error) = Tokenizer::new(Grammar::of(ExecutionVersion::NEWEST), sql)
        .tokenize_with_location_into_buf(&mut tokens)
    {
        return Err(located(syntax_error(&error.message), sql, error.location));
    }
    if tokens.len() > TOKENS_MAX {
        let message =
            format!("the script has {} tokens, the limit is {TOKENS_MAX} (TOKENS_MAX)", tokens.len());
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint(SHORTER));
    }
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    rewrite(&mut tokens, sql)?;
    check_depth(&tokens, sql)?;
    Ok(tokens)
}

/// The tokens of a text by these rules.
///
/// # Errors
/// As [`tokenize`]; `0A000` with the position for an operator that a later version has brought.
pub(crate) fn tokenize_by(sql: &str, version: ExecutionVersion) -> Result<Vec<TokenWithSpan>, SqlError> {
    let tokens = tokenize(sql)?;
    let is_newer = |token: &&TokenWithSpan| token.token == Token::DoubleExclamationMark;
    match tokens.iter().find(is_newer).filter(|_| version < ExecutionVersion::V15) {
        Some(token) => Err(located(SqlError::unsupported("the operator !!"), sql, token.span.start)),
        None => Ok(tokens),
    }
}

pub(super) fn parser(mut tokens: Vec<TokenWithSpan>, version: ExecutionVersion) -> Parser<'static> {
    if version >= ExecutionVersion::V8 {
        name_targets(&mut tokens);
        tokens = with_known_locks(tokens, version);
    }
    if version >= ExecutionVersion::V11 {
        name_subscripts(&mut tokens);
    }
    if version >= ExecutionVersion::V13 {
        spell_fetch(&mut tokens);
        put_modes_first(&mut tokens);
    }
    if version >= ExecutionVersion::V14 {
        enclose_only(&mut tokens);
        mark_exclusions(&mut tokens);
        enclose_offsets(&mut tokens);
    }
    Parser::new(Grammar::of(version))
        .with_recursion_limit(PARSER_DEPTH_MAX)
        .with_tokens_with_locations(tokens)
}

/// Whether a token is this word, without quotes.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Whether this word stands there, without quotes.
pub(super) fn word_at(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    tokens.get(at).is_some_and(|token| is_word(&token.token, word))
}

/// The place behind a name, with a schema in front or not, that begins at this one or behind IF EXISTS and ONLY.
pub(super) fn behind_name(tokens: &[TokenWithSpan], at: usize) -> usize {
    let mut first = at;
    if word_at(tokens, first, "if") && word_at(tokens, first + 1, "exists") {
        first += 2;
    }
    if word_at(tokens, first, "only") {
        first += 1;
    }
    let is_period = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Period);
    if is_period(first + 1) { first + 3 } else { first + 1 }
}

/// Trees are as deep as chains of operators are long: what is built must also be walked and dropped.
pub(super) fn check_depth(tokens: &[TokenWithSpan], sql: &str) -> Result<(), SqlError> {
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

/// The refusal of an expression whose operators are nested too deep.
pub fn too_deep() -> SqlError {
    let message = format!("an expression is nested more than {OPERATORS_MAX} operators deep (OPERATORS_MAX)");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).hint("Split it, or use a list with IN.")
}
