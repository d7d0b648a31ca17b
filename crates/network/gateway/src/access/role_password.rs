//! Passwords in `CREATE ROLE` and `ALTER ROLE`: taken out of the statement before it is signed and ordered, because what is
//! ordered every member can read.

use super::passwords::{PasswordError, Verifier};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// A statement that sets or takes away a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RolePassword {
    /// Whose.
    pub(crate) user: String,
    /// The password, or its verifier, as it was written; `None` for `PASSWORD NULL`.
    pub(crate) password: Option<String>,
    /// What else the statement does; `None` where nothing is left to do.
    pub(crate) rest: Option<String>,
    /// Whether the role is made by it.
    pub(crate) creates: bool,
}

impl RolePassword {
    /// Finds the password in a statement, if it is one about a role.
    pub(crate) fn find(sql: &str) -> Option<RolePassword> {
        // Most statements are told apart by their first letter.
        let start = sql.trim_start().as_bytes().first()?.to_ascii_lowercase();
        if !matches!(start, b'c' | b'a' | b'-' | b'/') {
            return None;
        }
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().ok()?;
        let mut tokens: Vec<TokenWithSpan> = tokens
            .into_iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
            .collect();
        while tokens.last().is_some_and(|token| token.token == Token::SemiColon) {
            tokens.pop();
        }
        let is = |at: usize, word: &str| match tokens.get(at).map(|token| &token.token) {
            Some(Token::Word(found)) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
            _ => false,
        };
        let creates = is(0, "create");
        if !(creates || is(0, "alter")) || !(is(1, "role") || is(1, "user") || is(1, "group")) {
            return None;
        }
        let user = match &tokens.get(2)?.token {
            Token::Word(word) if word.quote_style.is_some() => word.value.clone(),
            Token::Word(word) => word.value.to_ascii_lowercase(),
            _ => return None,
        };
        let at = (3..tokens.len()).find(|at| is(*at, "password"))?;
        let password = match &tokens.get(at + 1)?.token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Some(text.clone()),
            Token::DollarQuotedString(text) => Some(text.value.clone()),
            _ if is(at + 1, "null") => None,
            _ => return None,
        };
        let first = if is(at - 1, "encrypted") { at - 1 } else { at };
        // WITH alone says nothing.
        let others = (3..tokens.len()).any(|token| !(first..=at + 1).contains(&token) && !is(token, "with"));
        let rest = (creates || others).then(|| {
            let place = |location: Location| place(sql, location);
            let (from, to) = (place(tokens[first].span.start), place(tokens[at + 1].span.end));
            format!("{} {}", &sql[..from], &sql[to..])
        });
        Some(RolePassword { user, password, rest, creates })
    }

    /// What is kept of the password.
    ///
    /// # Errors
    /// It is empty or too long, or a verifier of another kind.
    pub(crate) fn verifier(&self) -> Result<Option<Verifier>, PasswordError> {
        let keep = |password: &String| match password.starts_with("SCRAM-SHA-256$") || is_md5(password) {
            true => password.parse(),
            false => Verifier::of_password(password),
        };
        self.password.as_ref().map(keep).transpose()
    }
}

/// PostgreSQL's older form.
fn is_md5(password: &str) -> bool {
    password.len() == 35
        && password.strip_prefix("md5").is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The byte at a line and column, both counted from 1, the latter in characters.
fn place(sql: &str, location: Location) -> usize {
    let line = match location.line {
        0 | 1 => 0,
        line => sql.match_indices('\n').nth(line as usize - 2).map_or(sql.len(), |(at, _)| at + 1),
    };
    let column = (location.column as usize).saturating_sub(1);
    sql[line..].char_indices().nth(column).map_or(sql.len(), |(at, _)| line + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sql: &str) -> RolePassword {
        RolePassword::find(sql).unwrap_or_else(|| panic!("{sql}"))
    }

    #[test]
    fn the_password_is_taken_out_and_the_rest_stays() {
        let one = found("CREATE ROLE ada LOGIN PASSWORD 'it''s' IN ROLE clerks");
        assert_eq!((one.user.as_str(), one.password.as_deref(), one.creates), ("ada", Some("it's"), true));
        assert_eq!(
            one.rest.expect("a role is made").split_whitespace().collect::<Vec<_>>().join(" "),
            "CREATE ROLE ada LOGIN IN ROLE clerks"
        );
        let one = found("-- a comment\nalter user \"Ädä\" with encrypted password $p$é$p$;");
        assert_eq!((one.user.as_str(), one.password.as_deref(), one.rest), ("Ädä", Some("é"), None));
        let one = found("ALTER ROLE Ada NOLOGIN\n  PASSWORD NULL");
        assert_eq!((one.user.as_str(), one.password.as_deref()), ("ada", None));
        assert_eq!(one.rest.expect("it may not log in").trim(), "ALTER ROLE Ada NOLOGIN");
        let one = found("CREATE USER ada PASSWORD 'ünï\nx'");
        assert!(!one.rest.as_ref().expect("a role is made").contains('x'), "{:?}", one.rest);
        assert!(one.verifier().expect("a password").is_some());
        assert_eq!(found("CREATE GROUP g PASSWORD 'p'").password.as_deref(), Some("p"));
        let md5 = found("ALTER ROLE ada PASSWORD 'md5e10adc3949ba59abbe56e057f20f883e'");
        assert!(md5.verifier().is_err());
    }

    #[test]
    fn other_statements_are_none_of_it() {
        for sql in [
            "",
            "SELECT 1",
            "CREATE TABLE t (password text)",
            "ALTER ROLE ada LOGIN",
            "CREATE ROLE",
            "ALTER TABLE user ADD password text",
            "CREATE ROLE ada PASSWORD",
            "CREATE ROLE ada PASSWORD x",
            "CREATE ROLE 'unfinished",
        ] {
            assert_eq!(RolePassword::find(sql), None, "{sql}");
        }
    }
}
