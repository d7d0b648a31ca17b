//! `SET column[subscript] = value` of UPDATE, of which sqlparser reads only names.
//!
//! Each pair of brackets becomes one more part of the name, whose text is what stands between them.

use crate::parse::errors::parser_error;
use crate::parse::tokens::{parser, tokenize, word_at};
use sqlparser::ast::{Expr, Ident};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use types::{ExecutionVersion, SqlError};

/// Stands in front of what stood in brackets.
const MARK: char = '\0';

/// What a pair of brackets says.
#[derive(Clone, Debug)]
pub enum Subscript {
    /// `[number]`
    Element(Box<Expr>),
    /// `[from:to]`, of which either may be missing.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>),
}

/// Whether a part of a name stood in brackets.
pub fn is_subscript(part: &Ident) -> bool {
    part.value.starts_with(MARK)
}

/// What stood in the brackets that became this part of a name.
///
/// # Errors
/// `42601` where that is no expression.
pub fn subscript_of(part: &Ident, version: ExecutionVersion) -> Result<Subscript, SqlError> {
    let text = part.value.trim_start_matches(MARK);
    let tokens = tokenize(text)?;
    let end = tokens.iter().position(|token| token.token == Token::EOF).unwrap_or(tokens.len());
    let tokens = &tokens[..end];
    let read = |tokens: &[TokenWithSpan]| {
        if tokens.is_empty() {
            return Ok(None);
        }
        let mut parser = parser(tokens.to_vec(), version);
        let expr = parser.parse_expr().map_err(|error| parser_error(error, &parser, text))?;
        crate::parse::errors::expect_end(&parser, text).map(|()| Some(Box::new(expr)))
    };
    Ok(match colon(tokens) {
        Some(at) => Subscript::Slice(read(&tokens[..at])?, read(&tokens[at + 1..])?),
        None => match read(tokens)? {
            Some(expr) => Subscript::Element(expr),
            None => {
                return Err(SqlError::new(types::SqlState::SYNTAX_ERROR, "syntax error at or near \"]\""));
            }
        },
    })
}

/// The colon of a slice.
fn colon(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        match token.token {
            Token::LBracket | Token::LParen => depth += 1,
            Token::RBracket | Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.token == Token::Colon
    })
}

/// Makes parts of names of the brackets behind the columns that SET of an UPDATE, or of ON CONFLICT DO UPDATE, assigns.
pub(super) fn name_subscripts(tokens: &mut Vec<TokenWithSpan>) {
    let has_brackets = tokens.iter().any(|token| token.token == Token::LBracket);
    if !has_brackets || !(0..tokens.len()).any(|at| word_at(tokens, at, "update")) {
        return;
    }
    let mut named = Vec::with_capacity(tokens.len());
    let mut at = 0;
    // In how many parentheses the SET stands whose targets may come.
    let (mut depth, mut set) = (0_usize, None);
    while let Some(token) = tokens.get(at) {
        let begins = match token.token {
            Token::LParen => {
                depth += 1;
                false
            }
            Token::RParen => {
                depth = depth.saturating_sub(1);
                false
            }
            Token::Comma => set == Some(depth),
            _ if word_at(tokens, at, "set") => {
                set = Some(depth);
                true
            }
            _ => false,
        };
        named.push(token.clone());
        at += 1;
        if begins && let Some((target, behind)) = target_with_subscripts(tokens, at) {
            named.extend(target);
            at = behind;
        }
    }
    *tokens = named;
}

/// A target that has brackets and stands in front of `=`, with names in their place; and where it ends.
fn target_with_subscripts(tokens: &[TokenWithSpan], first: usize) -> Option<(Vec<TokenWithSpan>, usize)> {
    let mut target = vec![tokens.get(first).filter(|token| matches!(token.token, Token::Word(_)))?.clone()];
    let (mut at, mut found) = (first + 1, false);
    loop {
        let token = tokens.get(at)?;
        match &token.token {
            Token::Period => {
                let field = tokens.get(at + 1).filter(|field| matches!(field.token, Token::Word(_)))?;
                target.extend([token.clone(), field.clone()]);
                at += 2;
            }
            Token::LBracket => {
                let close = closing(tokens, at)?;
                let value = std::iter::once(MARK.to_string())
                    .chain(tokens[at + 1..close].iter().map(|token| written(&token.token)))
                    .collect::<Vec<String>>()
                    .join(" ");
                let part =
                    Word { value, quote_style: Some('"'), keyword: sqlparser::keywords::Keyword::NoKeyword };
                let with = |token: Token| TokenWithSpan { token, span: tokens[at].span };
                target.extend([with(Token::Period), with(Token::Word(part))]);
                (at, found) = (close + 1, true);
            }
            Token::Eq if found => return Some((target, at)),
            _ => return None,
        }
    }
}

/// Where the bracket closes that opens here.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().enumerate().skip(open).find_map(|(at, token)| {
        match token.token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// A token as it can be read again.
fn written(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
        Token::Word(Word { value, quote_style: Some(_), .. }) => {
            format!("\"{}\"", value.replace('"', "\"\""))
        }
        other => other.to_string(),
    }
}
