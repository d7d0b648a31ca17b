//! Words of CREATE TABLE about how rows are stored, which is the same for all here: `WITHOUT OIDS`, as older programs and dumps write
//! it, and `UNLOGGED`, which lets a database lose rows that it need not lose.

use crate::parse::tokens::word_at;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Takes the words out, where they stand right behind the columns of a table.
pub(super) fn drop_without_oids(tokens: &mut Vec<TokenWithSpan>) {
    let creates_table = word_at(tokens, 0, "create") && (1..4).any(|at| word_at(tokens, at, "table"));
    if !creates_table {
        return;
    }
    let mut depth = 0_usize;
    let end_of_columns = tokens.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        token.token == Token::RParen && depth == 0
    });
    let Some(at) = end_of_columns.map(|at| at + 1) else { return };
    let columns = tokens.iter().position(|token| token.token == Token::LParen).unwrap_or(at);
    let is_query = (0..columns).any(|at| word_at(tokens, at, "as"));
    if word_at(tokens, at, "without") && word_at(tokens, at + 1, "oids") && !is_query {
        tokens.drain(at..at + 2);
    }
}

/// Takes the word out of `CREATE UNLOGGED TABLE`.
pub(super) fn drop_unlogged(tokens: &mut Vec<TokenWithSpan>) {
    if word_at(tokens, 0, "create") && word_at(tokens, 1, "unlogged") && word_at(tokens, 2, "table") {
        tokens.remove(1);
    }
}
