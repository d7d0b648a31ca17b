//! Clauses such as `FOR NO KEY UPDATE OF a, b` in words that sqlparser knows.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// `FOR NO KEY UPDATE` is `FOR UPDATE` here, `FOR KEY SHARE` is `FOR SHARE`, and behind OF stands one name. Which of them a clause says
/// makes no difference but in the words of errors, because none of them locks anything.
pub(super) fn with_known_locks(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !(0..tokens.len()).any(|at| lock_at(&tokens, at).is_some()) {
        return tokens;
    }
    let mut known = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        known.push(token.clone());
        let Some(strength) = lock_at(&tokens, at) else {
            at += 1;
            continue;
        };
        let clause = [token, &tokens[strength]];
        known.push(tokens[strength].clone());
        at = strength + 1;
        if keyword(&tokens, at) != Keyword::OF {
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

/// Where the last word of a clause is that begins here and that sqlparser reads otherwise, or with one name alone.
fn lock_at(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let word = |ahead: usize| keyword(tokens, at + ahead);
    if word(0) != Keyword::FOR {
        return None;
    }
    match (word(1), word(2), word(3)) {
        (Keyword::NO, Keyword::KEY, Keyword::UPDATE) => Some(at + 3),
        (Keyword::KEY, Keyword::SHARE, _) => Some(at + 2),
        (Keyword::UPDATE | Keyword::SHARE, Keyword::OF, _) => Some(at + 1),
        _ => None,
    }
}

fn keyword(tokens: &[TokenWithSpan], at: usize) -> Keyword {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}
