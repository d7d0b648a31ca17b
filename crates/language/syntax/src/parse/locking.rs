//! Clauses such as `FOR NO KEY UPDATE OF a, b` in words that sqlparser knows.

use sqlparser::ast::{LockClause, LockType, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use types::ExecutionVersion;

/// How a name is quoted behind OF that says how strong the clause is. No text has such quotes.
const STRENGTH_QUOTE: char = '`';

/// `FOR NO KEY UPDATE` is `FOR UPDATE` here, `FOR KEY SHARE` is `FOR SHARE`, and behind OF stands one name. Which of them a clause says
/// counts from version 14 on, in the words of errors, and from version 15 on for which locks go together: [`lock_strength`] tells.
pub(super) fn with_known_locks(tokens: Vec<TokenWithSpan>, version: ExecutionVersion) -> Vec<TokenWithSpan> {
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
        let mut clause = vec![token.clone(), tokens[strength].clone()];
        let mark = mark(&tokens[at + 1..strength]).filter(|_| version >= ExecutionVersion::V14);
        at = strength + 1;
        let names_tables = keyword(&tokens, at) == Keyword::OF;
        if names_tables || mark.is_some() {
            clause.push(TokenWithSpan { token: Token::make_keyword("OF"), span: token.span });
        }
        if let Some(mark) = mark {
            clause.push(TokenWithSpan { token: mark, span: token.span });
            let period = TokenWithSpan { token: Token::Period, span: token.span };
            clause.extend(names_tables.then_some(period));
        }
        known.extend_from_slice(&clause[1..]);
        if !names_tables {
            continue;
        }
        at += 1;
        let when_held = match version >= ExecutionVersion::V15 {
            true => when_held(&tokens, at),
            false => &[],
        };
        while let Some(name) = tokens.get(at) {
            known.push(name.clone());
            at += 1;
            match tokens.get(at).map(|token| &token.token) {
                Some(Token::Period) => known.push(tokens[at].clone()),
                Some(Token::Comma) => {
                    known.extend_from_slice(when_held);
                    known.extend_from_slice(&clause);
                }
                _ => break,
            }
            at += 1;
        }
    }
    known
}

/// NOWAIT or SKIP LOCKED behind the names that begin here: it holds for each of them.
fn when_held(tokens: &[TokenWithSpan], names: usize) -> &[TokenWithSpan] {
    let mut end = names + 1;
    while let Some(Token::Period | Token::Comma) = tokens.get(end).map(|token| &token.token) {
        end += 2;
    }
    let length = match (keyword(tokens, end), keyword(tokens, end + 1)) {
        (Keyword::NOWAIT, _) => 1,
        (Keyword::SKIP, Keyword::LOCKED) => 2,
        _ => 0,
    };
    tokens.get(end..end + length).unwrap_or_default()
}

/// What says that NO KEY or KEY stands between FOR and the last word of a clause.
fn mark(between: &[TokenWithSpan]) -> Option<Token> {
    let value = match between.len() {
        0 => return None,
        1 => "key",
        _ => "no key",
    };
    let (value, quote_style) = (value.to_string(), Some(STRENGTH_QUOTE));
    Some(Token::Word(Word { value, quote_style, keyword: Keyword::NoKeyword }))
}

/// How strong a clause is, and the relation that it names.
pub fn lock_strength(lock: &LockClause) -> (&'static str, Option<ObjectName>) {
    let (mark, rest) = match lock.of.as_ref().map(|of| of.0.as_slice()) {
        Some([first, rest @ ..])
            if first.as_ident().is_some_and(|name| name.quote_style == Some(STRENGTH_QUOTE)) =>
        {
            (first.as_ident().map(|name| name.value.as_str()), rest)
        }
        Some(name) => (None, name),
        None => (None, &[][..]),
    };
    let words = match (lock.lock_type, mark) {
        (LockType::Update, Some("no key")) => "FOR NO KEY UPDATE",
        (LockType::Update, _) => "FOR UPDATE",
        (LockType::Share, Some("key")) => "FOR KEY SHARE",
        (LockType::Share, _) => "FOR SHARE",
    };
    (words, (!rest.is_empty()).then(|| ObjectName(rest.to_vec())))
}

/// Leaves the relation that a clause names, and not what tells how strong it is.
pub fn forget_strength(lock: &mut LockClause) {
    lock.of = lock_strength(lock).1;
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
