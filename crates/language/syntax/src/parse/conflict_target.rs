//! In what rows conflict, where ON CONFLICT names more than columns: expressions, and a condition. sqlparser reads columns alone, so
//! the whole target stands in one name of a kind that nobody can write.

use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What such a name is quoted with.
const MARK: char = '\'';
/// What stands behind every part, and in front of the condition.
const PART: char = '\u{1}';
const CONDITION: char = '\u{2}';

/// The target of an ON CONFLICT, as SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictTargetText {
    /// Columns and expressions.
    pub parts: Vec<String>,
    /// WHERE
    pub condition: Option<String>,
}

impl ConflictTargetText {
    /// The one that a name of the target's columns stands for.
    pub fn of(name: &Ident) -> Option<ConflictTargetText> {
        if name.quote_style != Some(MARK) {
            return None;
        }
        let (parts, condition) = match name.value.split_once(CONDITION) {
            Some((parts, condition)) => (parts, Some(condition.to_string())),
            None => (name.value.as_str(), None),
        };
        let parts = parts.split_terminator(PART).map(str::to_string).collect();
        Some(ConflictTargetText { parts, condition })
    }
}

/// How often the tokens of a text are looked at, taken together: more is no statement, and stays as it is.
const LOOKS: usize = 16;

/// Puts such targets into names.
pub(crate) fn name_targets(tokens: &mut Vec<TokenWithSpan>) {
    let Some(first) = next_target(tokens, 0) else { return };
    let mut named = Vec::with_capacity(tokens.len());
    let mut looks = LOOKS * tokens.len();
    let (mut from, mut open) = (0, first);
    loop {
        named.extend_from_slice(&tokens[from..=open]);
        from = open + 1;
        if let Some((text, end)) = target_text(tokens, open, &mut looks) {
            let name =
                Token::Word(Word { value: text, quote_style: Some(MARK), keyword: Keyword::NoKeyword });
            let last = tokens[end - 1].clone();
            named.push(TokenWithSpan { token: name, span: tokens[open + 1].span });
            named.push(TokenWithSpan { token: Token::RParen, ..last });
            from = end;
        }
        match next_target(tokens, from).filter(|_| looks > 0) {
            Some(next) => open = next,
            None => break,
        }
    }
    named.extend_from_slice(&tokens[from..]);
    *tokens = named;
}

/// The target behind a parenthesis that opens here, and where the tokens behind it begin; `None` where it is columns alone.
fn target_text(tokens: &[TokenWithSpan], open: usize, looks: &mut usize) -> Option<(String, usize)> {
    let close = closing(tokens, open)?;
    *looks = looks.saturating_sub(close - open);
    let has_condition = tokens.get(close + 1).is_some_and(|token| is(&token.token, Keyword::WHERE));
    let names_only = tokens[open + 1..close].iter().enumerate().all(|(at, token)| match &token.token {
        Token::Word(_) => at % 2 == 0,
        Token::Comma => at % 2 == 1,
        _ => false,
    });
    if (names_only && !has_condition) || close == open + 1 {
        return None;
    }
    let mut end = close + 1;
    let mut text = parts(&tokens[open + 1..close]);
    if has_condition {
        let does = |token: &TokenWithSpan| is(&token.token, Keyword::DO);
        let length = length_outside_parentheses(&tokens[close + 2..], does);
        *looks = looks.saturating_sub(length.unwrap_or(tokens.len()));
        end = close + 2 + length?;
        text.push(CONDITION);
        text += &written(&tokens[close + 2..end]);
    }
    let marks = tokens[open + 1..end].iter().filter(|token| has_mark(&token.token)).count();
    (marks == 0).then_some((text, end))
}

/// Whether a token has what marks the parts of a target.
fn has_mark(token: &Token) -> bool {
    match token {
        Token::Word(Word { value: text, .. })
        | Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text) => text.contains([PART, CONDITION]),
        Token::DollarQuotedString(text) => text.value.contains([PART, CONDITION]),
        _ => false,
    }
}

fn is(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == keyword)
}

/// Where the parenthesis behind the next ON CONFLICT opens.
fn next_target(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let found = tokens.get(from..)?.windows(3).position(|window| {
        is(&window[0].token, Keyword::ON)
            && is(&window[1].token, Keyword::CONFLICT)
            && window[2].token == Token::LParen
    });
    found.map(|at| from + at + 2)
}

fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let closes = |token: &TokenWithSpan| token.token == Token::RParen;
    length_outside_parentheses(&tokens[open + 1..], closes).map(|length| open + 1 + length)
}

/// How many tokens come before one that ends them, which stands in no parentheses.
fn length_outside_parentheses(
    tokens: &[TokenWithSpan],
    ends: impl Fn(&TokenWithSpan) -> bool,
) -> Option<usize> {
    let mut open = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        if open == 0 && ends(token) {
            return Some(at);
        }
        match token.token {
            Token::LParen => open += 1,
            Token::RParen => open = open.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// The parts of a list, with a mark behind each.
fn parts(tokens: &[TokenWithSpan]) -> String {
    let mut text = String::new();
    let mut rest = tokens;
    loop {
        let comma = |token: &TokenWithSpan| token.token == Token::Comma;
        let length = length_outside_parentheses(rest, comma).unwrap_or(rest.len());
        text += &written(&rest[..length]);
        text.push(PART);
        match rest.get(length + 1..) {
            Some(next) if length < rest.len() => rest = next,
            _ => return text,
        }
    }
}

fn written(tokens: &[TokenWithSpan]) -> String {
    let text = |token: &TokenWithSpan| match &token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        Token::Word(Word { value, quote_style: Some('"'), .. }) => {
            format!("\"{}\"", value.replace('"', "\"\""))
        }
        other => other.to_string(),
    };
    tokens.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokenize;

    fn target(sql: &str) -> Option<ConflictTargetText> {
        let mut tokens = tokenize(sql).expect("tokens");
        name_targets(&mut tokens);
        tokens.iter().find_map(|token| match &token.token {
            Token::Word(word) => ConflictTargetText::of(&word.clone().into_ident(token.span)),
            _ => None,
        })
    }

    #[test]
    fn targets_with_more_than_columns_are_kept_as_text() {
        let found = target(
            "INSERT INTO t VALUES (1) ON CONFLICT (lower(a), b, f(1, ')')) WHERE c = 'it''s' DO NOTHING",
        );
        let parts = ["lower ( a )", "b", "f ( 1 , ')' )"].map(str::to_string).to_vec();
        assert_eq!(found, Some(ConflictTargetText { parts, condition: Some("c = 'it''s'".to_string()) }));
        assert_eq!(target("INSERT INTO t VALUES (1) ON CONFLICT (a, \"B\") DO NOTHING"), None);
        assert_eq!(target("INSERT INTO t VALUES (1) ON CONFLICT () DO NOTHING"), None);
        let condition = Some("c".to_string());
        let parts = vec!["a".to_string()];
        let found = target("INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE c DO UPDATE SET a = 1");
        assert_eq!(found, Some(ConflictTargetText { parts, condition }));
    }
}
