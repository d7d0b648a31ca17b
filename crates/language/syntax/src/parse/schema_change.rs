//! Whether a script changes the schema, told from its tokens.

use crate::parse::dialect::Grammar;
use crate::parse::governance::governance_function;
use crate::parse::tokens::is_word;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use types::ExecutionVersion;

/// True where a script begins a statement that changes the schema, which runs alone. Says nothing about whether the
/// script is right otherwise. `version`: of the ledger.
pub fn is_schema_change(sql: &str, version: ExecutionVersion) -> bool {
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
    let refreshes = version >= ExecutionVersion::V11 && contains(b"refresh");
    if !selects_into && !governs && !refreshes && !words.into_iter().any(contains) {
        return false;
    }
    let mut begins = true;
    let (mut is_query, mut depth, mut before) = (false, 0usize, Keyword::NoKeyword);
    let mut tokens = Vec::new();
    // What does not even tokenize is no schema change; running it gives the error. Where a block is cut must not depend on
    // which versions a program knows: these are the tokens of version 1, for good.
    if Tokenizer::new(Grammar::of(ExecutionVersion::V1), sql)
        .tokenize_with_location_into_buf(&mut tokens)
        .is_err()
    {
        return false;
    }
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut statements = tokens.split(|token| token.token == Token::SemiColon);
    let calls = |tokens: &[TokenWithSpan]| {
        governance_function(tokens.iter().map(|token| &token.token), version).is_some()
    };
    if governs && statements.any(calls) {
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
                || (first && refreshes && is_word(&token.token, "refresh"))
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
