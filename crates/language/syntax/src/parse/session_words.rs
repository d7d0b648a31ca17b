//! `current_schema` and `current_role`, which PostgreSQL reserves and sqlparser takes for columns, as calls of functions.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The same tokens with parentheses behind these words where they stand for a value.
pub(super) fn with_session_calls(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    // These name roles.
    if matches!(keyword(0), Keyword::GRANT | Keyword::REVOKE) {
        return tokens;
    }
    let distinct_from =
        |at: usize| at > 1 && keyword(at - 2) == Keyword::DISTINCT && keyword(at - 1) == Keyword::FROM;
    let is_asked = |at: usize| {
        is_session_word(&tokens[at].token)
            && (distinct_from(at) || begins_value(at.checked_sub(1).map(|before| &tokens[before].token)))
            && !matches!(tokens.get(at + 1).map(|next| &next.token), Some(Token::LParen | Token::Period))
    };
    if !(0..tokens.len()).any(is_asked) {
        return tokens;
    }
    let mut changed = Vec::with_capacity(tokens.len() + 2);
    for (at, token) in tokens.iter().enumerate() {
        changed.push(token.clone());
        if is_asked(at) {
            let symbol = |symbol| TokenWithSpan { token: symbol, span: token.span };
            changed.extend([symbol(Token::LParen), symbol(Token::RParen)]);
        }
    }
    changed
}

fn is_session_word(token: &Token) -> bool {
    match token {
        Token::Word(word) if word.quote_style.is_none() => {
            ["current_schema", "current_role"].iter().any(|known| word.value.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// Whether a value may stand behind this token, and no alias and no name of a role.
fn begins_value(before: Option<&Token>) -> bool {
    match before {
        None => true,
        Some(Token::Word(word)) if word.quote_style.is_none() => matches!(
            word.keyword,
            Keyword::SELECT
                | Keyword::DISTINCT
                | Keyword::ALL
                | Keyword::WHERE
                | Keyword::HAVING
                | Keyword::ON
                | Keyword::BY
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::DEFAULT
                | Keyword::RETURNING
        ),
        Some(
            Token::Comma
            | Token::LParen
            | Token::LBracket
            | Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::StringConcat
            | Token::Plus
            | Token::Minus
            | Token::Tilde
            | Token::Assignment,
        ) => true,
        Some(_) => false,
    }
}
