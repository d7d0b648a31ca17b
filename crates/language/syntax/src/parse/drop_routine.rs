//! `DROP FUNCTION f(a INOUT integer)`: sqlparser reads the mode of an argument in front of its name only.

use crate::parse::tokens::word_at;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Puts modes in front of names.
pub(super) fn put_modes_first(tokens: &mut [TokenWithSpan]) {
    let drops =
        word_at(tokens, 0, "drop") && (word_at(tokens, 1, "function") || word_at(tokens, 1, "procedure"));
    if !drops {
        return;
    }
    let mut depth = 0_usize;
    for at in 1..tokens.len().saturating_sub(2) {
        let begins = match tokens[at].token {
            Token::LParen => {
                depth += 1;
                depth == 1
            }
            Token::RParen => {
                depth = depth.saturating_sub(1);
                false
            }
            Token::Comma => depth == 1,
            _ => false,
        };
        let is_mode =
            |at: usize| ["in", "out", "inout", "variadic"].iter().any(|mode| word_at(tokens, at, mode));
        // A mode in front is followed by a name or a type, which no mode is.
        let has_name = matches!(tokens[at + 1].token, Token::Word(_)) && !is_mode(at + 1);
        if begins && has_name && is_mode(at + 2) {
            tokens.swap(at + 1, at + 2);
        }
    }
}
