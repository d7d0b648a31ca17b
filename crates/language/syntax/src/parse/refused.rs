//! Statements of PostgreSQL that are refused by their first words, with what to use instead: the parser does not read all of
//! them, and a syntax error would say nothing.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::SqlError;

/// The refusal; `None` where it is none of these statements.
pub fn refused(tokens: &[TokenWithSpan]) -> Option<SqlError> {
    let tokens = match tokens.split_last() {
        Some((last, rest)) if last.token == Token::EOF => rest,
        _ => tokens,
    };
    let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    };
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let (first, end) = (word(0), tokens.len());
    let (what, hint) = match (first.as_str(), word(1).as_str()) {
        ("create" | "alter" | "drop", "domain") => (
            format!("{} DOMAIN", first.to_ascii_uppercase()),
            "Use the type that the domain is of, with a CHECK on each column.",
        ),
        ("alter", "type") => {
            // Behind the name, which may have a schema in front.
            let at =
                if matches!(tokens.get(3).map(|token| &token.token), Some(Token::Period)) { 5 } else { 3 };
            let change = [word(at), word(at + 1)];
            if !matches!(change[0].as_str(), "add" | "drop" | "alter" | "rename" | "set")
                || change[1].is_empty()
            {
                return None;
            }
            (
                format!("ALTER TYPE … {}", change.join(" ").to_ascii_uppercase()),
                "Create another type, and go over to it: ALTER TABLE … ALTER COLUMN … TYPE … USING ROW(…)::…",
            )
        }
        ("create", _)
            if end > 4
                && (1..4).any(|at| keyword(at) == Keyword::VIEW)
                && (word(end - 2), word(end - 1)) == ("check".to_string(), "option".to_string()) =>
        {
            ("WITH CHECK OPTION".to_string(), "Put a CHECK on the table, or refuse the row in a trigger.")
        }
        ("update" | "delete", _)
            if (1..end).any(|at| {
                keyword(at) == Keyword::WHERE && word(at + 1) == "current" && word(at + 2) == "of"
            }) =>
        {
            (
                "WHERE CURRENT OF outside of functions and procedures".to_string(),
                "Name the row by its primary key, or go through the rows in a DO block.",
            )
        }
        _ => return None,
    };
    Some(SqlError::unsupported(what).hint(hint))
}
