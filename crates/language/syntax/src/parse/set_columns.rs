//! `FOREIGN KEY … ON DELETE SET NULL (column, …)`, of which sqlparser does not read the columns.
//!
//! They become the name of the index that MySQL lets a FOREIGN KEY have, and that PostgreSQL does not know.

use crate::parse::tokens::word_at;
use sqlparser::ast::Ident;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Stands in front of each of the columns.
const MARK: char = '\0';

/// The columns that ON DELETE SET NULL or SET DEFAULT is about; none where it is about all.
pub fn columns_set_on_delete(index_name: Option<&Ident>) -> Vec<String> {
    let marked = index_name.and_then(|name| name.value.strip_prefix(MARK));
    marked.map_or_else(Vec::new, |names| names.split(MARK).map(str::to_string).collect())
}

/// Puts the columns where sqlparser reads them. What is no list of names, or stands in no FOREIGN KEY, stays, and is an error there.
pub(super) fn move_set_columns(tokens: &mut Vec<TokenWithSpan>) {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    // Where the last FOREIGN KEY begins, and in how many parentheses it stands.
    let mut key: Option<(usize, usize)> = None;
    let (mut depth, mut at) = (0_usize, 0);
    let (mut marks, mut gone) = (Vec::new(), Vec::new());
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if key.is_some_and(|(_, around)| around == depth) => key = None,
            Token::Word(_)
                if is(at, "foreign")
                    && is(at + 1, "key")
                    && tokens.get(at + 2).is_some_and(|token| token.token == Token::LParen) =>
            {
                key = Some((at, depth));
            }
            _ => {}
        }
        let acts = at >= 3 && is(at - 3, "on") && is(at - 2, "delete") && is(at - 1, "set");
        if let (true, Some((begin, _))) = (acts && (is(at, "null") || is(at, "default")), key)
            && let Some((names, end)) = names_in_parentheses(tokens, at + 1)
        {
            let value = names.iter().flat_map(|name| [MARK.to_string(), name.clone()]).collect();
            let mark = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
            marks.push((begin + 2, TokenWithSpan { token: Token::Word(mark), span: token.span }));
            gone.push(at + 1..=end);
            at = end;
        }
        at += 1;
    }
    if marks.is_empty() {
        return;
    }
    let (mut marks, mut gone) = (marks.into_iter().peekable(), gone.into_iter().peekable());
    let mut moved = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.drain(..).enumerate() {
        while let Some((_, mark)) = marks.next_if(|(place, _)| *place == at) {
            moved.push(mark);
        }
        while gone.next_if(|range| *range.end() < at).is_some() {}
        if !gone.peek().is_some_and(|range| range.contains(&at)) {
            moved.push(token);
        }
    }
    *tokens = moved;
}

/// The names between parentheses that open here, and where these close.
fn names_in_parentheses(tokens: &[TokenWithSpan], open: usize) -> Option<(Vec<String>, usize)> {
    if tokens.get(open)?.token != Token::LParen {
        return None;
    }
    let mut names = Vec::new();
    let mut at = open + 1;
    loop {
        match &tokens.get(at)?.token {
            Token::Word(Word { value, quote_style: None, .. }) => names.push(value.to_ascii_lowercase()),
            Token::Word(word) => names.push(word.value.clone()),
            _ => return None,
        }
        match tokens.get(at + 1)?.token {
            Token::Comma => at += 2,
            Token::RParen => return Some((names, at + 1)),
            _ => return None,
        }
    }
}
