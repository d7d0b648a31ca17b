//! `FOREIGN KEY … ON DELETE SET NULL (column, …)`, of which sqlparser does not read the columns.
//!
//! They become the name of the index that MySQL lets a FOREIGN KEY have, and that PostgreSQL does not know.

use crate::parse::tokens::is_word;
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

/// Puts the columns where sqlparser reads them. What is no list of names stays, and is an error there.
pub(super) fn move_set_columns(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        at += 1;
        let is =
            |at: usize, word| tokens.get(at).is_some_and(|token: &TokenWithSpan| is_word(&token.token, word));
        let acts = at >= 3 && is(at - 3, "on") && is(at - 2, "delete") && is(at - 1, "set");
        if !acts || !(is(at, "null") || is(at, "default")) {
            continue;
        }
        let Some((names, end)) = names_in_parentheses(tokens, at + 1) else { continue };
        let begins =
            |at: usize| is(at, "foreign") && is(at + 1, "key") && tokens[at + 2].token == Token::LParen;
        let Some(key) = (0..at).rev().find(|at| begins(*at)) else { continue };
        let value = names.iter().flat_map(|name| [MARK.to_string(), name.clone()]).collect();
        let mark = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
        let span = tokens[at].span;
        tokens.drain(at + 1..=end);
        tokens.insert(key + 2, TokenWithSpan { token: Token::Word(mark), span });
    }
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
