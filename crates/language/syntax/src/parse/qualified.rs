//! Names with a schema in front, told from a script's tokens.

use crate::parse::tokenize;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;
use types::SqlError;

/// The names of a script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QualifiedNames {
    /// Schema and object of every `schema.object`. An alias in front of a column looks the same.
    pub qualified: BTreeSet<(String, String)>,
    /// Words without a period on either side: an alias stands so where it is given.
    pub alone: BTreeSet<String>,
}

/// The names of a script. What stands in texts, such as the bodies of routines, does not count.
///
/// # Errors
/// `42601` for what has no tokens.
pub fn qualified_names(sql: &str) -> Result<QualifiedNames, SqlError> {
    let mut tokens = tokenize(sql)?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let word = |at: usize| match tokens.get(at).map(|token: &TokenWithSpan| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_some() => Some(word.value.clone()),
        Some(Token::Word(word)) => Some(word.value.to_lowercase()),
        _ => None,
    };
    let is_period = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Period);
    let mut names = QualifiedNames::default();
    for at in 0..tokens.len() {
        let begins = at == 0 || !is_period(at - 1);
        let Some(first) = word(at).filter(|_| begins) else { continue };
        match word(at + 2).filter(|_| is_period(at + 1)) {
            Some(object) => drop(names.qualified.insert((first, object))),
            None if !is_period(at + 1) => drop(names.alone.insert(first)),
            None => {}
        }
    }
    Ok(names)
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
        assert_eq!(
            found.qualified,
            expected.map(|(schema, name)| (schema.to_string(), name.to_string())).into()
        );
        assert!(found.alone.contains("id") && !found.alone.contains("deal") && !found.alone.contains("z"));
        assert!(qualified_names("SELECT 'open").is_err());
    }
}
