//! Names with a schema in front, told from a script's tokens.

use crate::parse::tokenize;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;
use types::SqlError;

/// Texts in texts that are looked into: a body that makes statements of texts is the second one.
const DEPTH_MAX: usize = 8;

/// Schema and object of every `schema.object` in a script, also in the bodies of DO and of routines, and in the texts that
/// these make statements of. An alias in front of a column looks the same.
///
/// # Errors
/// `42601` for what has no tokens.
pub fn qualified_names(sql: &str) -> Result<BTreeSet<(String, String)>, SqlError> {
    let mut names = BTreeSet::new();
    collect(sql, 0, &mut names)?;
    Ok(names)
}

fn collect(sql: &str, depth: usize, names: &mut BTreeSet<(String, String)>) -> Result<(), SqlError> {
    let mut tokens = tokenize(sql)?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let word = |at: usize| match tokens.get(at).map(|token: &TokenWithSpan| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_some() => Some(word.value.clone()),
        Some(Token::Word(word)) => Some(word.value.to_lowercase()),
        _ => None,
    };
    let is_period = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Period);
    let is_do = matches!(tokens.first().map(|token| &token.token), Some(Token::Word(word)) if word.keyword == Keyword::DO);
    for (at, token) in tokens.iter().enumerate() {
        let begins = at == 0 || !is_period(at - 1);
        if let (true, true, Some(schema), Some(object)) = (begins, is_period(at + 1), word(at), word(at + 2))
        {
            names.insert((schema, object));
        }
        let is_body = depth > 0 || is_do || (at > 0 && word(at - 1).as_deref() == Some("as"));
        if let Some(text) = text_of(&token.token, is_body).filter(|_| depth < DEPTH_MAX) {
            // Most texts are no statements.
            let _ = collect(text, depth + 1, names);
        }
    }
    Ok(())
}

/// The text that a literal stands for, if that may be statements: between dollars always, between quotes in a body or as one.
fn text_of(token: &Token, is_body: bool) -> Option<&str> {
    match token {
        Token::DollarQuotedString(text) => Some(&text.value),
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::NationalStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
            if is_body =>
        {
            Some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<String> {
        let found = qualified_names(sql).expect("tokens");
        found.into_iter().map(|(schema, object)| format!("{schema}.{object}")).collect()
    }

    #[test]
    fn names_with_a_schema_are_found_and_literals_are_not_looked_into() {
        let sql =
            "CREATE TABLE Deal.Trades (id int); UPDATE \"Big Deal\".t SET a = x.y.z; SELECT 'in.text', 1.5";
        assert_eq!(names(sql), ["Big Deal.t", "deal.trades", "x.y"]);
        assert!(qualified_names("SELECT 'open").is_err());
    }

    #[test]
    fn bodies_are_looked_into_and_the_texts_in_them() {
        assert_eq!(names("DO $$ BEGIN UPDATE deal.t SET n = 1; END $$"), ["deal.t"]);
        assert_eq!(names("DO 'BEGIN UPDATE deal.t SET n = 1; END'"), ["deal.t"]);
        assert_eq!(names("DO LANGUAGE plpgsql $x$ BEGIN EXECUTE 'DELETE FROM deal.t'; END $x$"), ["deal.t"]);
        let function = "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS ";
        assert_eq!(names(&format!("{function} $$ SELECT a FROM deal.t $$")), ["deal.t"]);
        assert_eq!(names(&format!("{function} 'SELECT a FROM deal.t'")), ["deal.t"]);
        assert_eq!(names("DO $$ BEGIN EXECUTE $q$ DELETE FROM deal.t $q$; END $$"), ["deal.t"]);
        assert_eq!(names("DO $$ it''s no statement $$"), Vec::<String>::new());
    }
}
