//! Clauses such as `FOR NO KEY UPDATE OF a, b` in words that sqlparser knows.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// `FOR NO KEY UPDATE` is `FOR UPDATE` here, `FOR KEY SHARE` is `FOR SHARE`, and behind OF stands one name. Which of them a clause says makes
/// no difference, because none of them locks anything.
pub(super) fn with_known_locks(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_lock = |at: usize| {
        keyword(at) == Keyword::FOR
            && matches!(
                (keyword(at + 1), keyword(at + 2)),
                (Keyword::NO | Keyword::KEY, _) | (Keyword::UPDATE | Keyword::SHARE, Keyword::OF)
            )
    };
    if !(0..tokens.len()).any(is_lock) {
        return tokens;
    }
    let mut known = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if !is_lock(at) {
            known.push(token.clone());
            at += 1;
            continue;
        }
        let strength = match (keyword(at + 1), keyword(at + 2), keyword(at + 3)) {
            (Keyword::NO, Keyword::KEY, Keyword::UPDATE) => 3,
            (Keyword::KEY, Keyword::SHARE, _) => 2,
            (Keyword::UPDATE | Keyword::SHARE, _, _) => 1,
            _ => 0,
        };
        let clause = [&tokens[at], &tokens[at + strength]];
        known.extend(clause.into_iter().take(strength.min(1) + 1).cloned());
        at += strength + 1;
        if strength == 0 || keyword(at) != Keyword::OF {
            continue;
        }
        let of = &tokens[at];
        known.push(of.clone());
        at += 1;
        while let Some(name) = tokens.get(at) {
            known.push(name.clone());
            at += 1;
            match tokens.get(at).map(|token| &token.token) {
                Some(Token::Period) => known.push(tokens[at].clone()),
                Some(Token::Comma) => known.extend(clause.into_iter().chain([of]).cloned()),
                _ => break,
            }
            at += 1;
        }
    }
    known
}
