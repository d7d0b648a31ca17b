//! Names with a schema in front, told from a script's tokens.

use crate::parse::tokenize;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;
use types::SqlError;

/// Schema and object of every `schema.object` in a script. What stands in texts, such as the bodies of routines, does not count. An
/// alias in front of a column looks the same.
///
/// # Errors
/// `42601` for what has no tokens.
pub fn qualified_names(sql: &str) -> Result<BTreeSet<(String, String)>, SqlError> {
    let mut tokens = tokenize(sql)?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let word = |at: usize| match tokens.get(at).map(|token: &TokenWithSpan| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_some() => Some(word.value.clone()),
        Some(Token::Word(word)) => Some(word.value.to_lowercase()),
        _ => None,
    };
    let is_period = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Period);
    let names = (0..tokens.len()).filter_map(|at| {
        let begins = at == 0 || !is_period(at - 1);
        let pair = (word(at)?, word(at + 2)?);
        (begins && is_period(at + 1)).then_some(pair)
    });
    Ok(names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_schema_are_found_and_texts_are_not_looked_into() {
        let sql = "CREATE TABLE Deal.Trades (id int); UPDATE \"Big Deal\".t SET a = x.y.z; \
                   CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT a FROM other.t $$; SELECT 'in.text', 1.5";
        let found = qualified_names(sql).expect("tokens");
        let expected = [("Big Deal", "t"), ("deal", "trades"), ("x", "y")];
        assert_eq!(found, expected.map(|(schema, name)| (schema.to_string(), name.to_string())).into());
        assert!(qualified_names("SELECT 'open").is_err());
    }
}
