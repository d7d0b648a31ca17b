//! The schemas in which a script finds names: a script may begin with `SET search_path TO …;`, which counts for all of it.
//!
//! A gateway puts the path of its session in front of what it sends, so that a transaction carries what its names mean.

use crate::{SearchPath, SqlError, SqlState, limits};

/// The path that a script begins with, and the rest of the script.
///
/// # Errors
/// `42601` for a list that is none; a name that cannot be.
pub fn split_search_path(sql: &str) -> Result<(SearchPath, &str), SqlError> {
    let none = Ok((SearchPath::default(), sql));
    let mut reader = Reader { rest: sql };
    if !reader.accept_word("set") {
        return none;
    }
    if !reader.accept_word("local") {
        reader.accept_word("session");
    }
    if !reader.accept_word("search_path") || !(reader.accept_word("to") || reader.accept("=")) {
        return none;
    }
    let path = SearchPath::new(reader.names()?)?;
    match reader.accept(";") || reader.rest.trim_start().is_empty() {
        true => Ok((path, reader.rest)),
        false => Err(reader.unexpected()),
    }
}

/// The schemas of a setting's value, as SET and SHOW write them: `"$user", public`.
///
/// # Errors
/// As `22023` what is no list of names.
pub fn parse_search_path(text: &str) -> Result<Vec<String>, SqlError> {
    let mut reader = Reader { rest: text };
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let invalid = |_| {
        let message = format!("invalid value for parameter \"search_path\": \"{text}\"");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).detail("List syntax is invalid.")
    };
    let names = reader.names().map_err(invalid)?;
    match reader.rest.trim_start().is_empty() {
        true => Ok(names),
        false => Err(invalid(reader.unexpected())),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(|character: char| character.is_ascii_whitespace());
    }

    /// Bytes of the word that comes next.
    fn word(&mut self) -> usize {
        self.skip_blanks();
        let is_part = |character: char| {
            character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
        };
        self.rest.find(|character| !is_part(character)).unwrap_or(self.rest.len())
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let length = self.word();
        let found = self.rest[..length].eq_ignore_ascii_case(word);
        if found {
            self.rest = &self.rest[length..];
        }
        found
    }

    fn accept(&mut self, symbol: &str) -> bool {
        self.skip_blanks();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn names(&mut self) -> Result<Vec<String>, SqlError> {
        let mut names = Vec::new();
        loop {
            names.extend(self.name()?);
            if !self.accept(",") {
                return Ok(names);
            }
        }
    }

    /// A name; `''` and `""` are none.
    fn name(&mut self) -> Result<Option<String>, SqlError> {
        let length = self.word();
        if length > 0 {
            let word = &self.rest[..length];
            self.rest = &self.rest[length..];
            return checked(word.to_ascii_lowercase()).map(Some);
        }
        let Some(quote) = self.rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else {
            return Err(self.unexpected());
        };
        let mut name = String::new();
        let mut at = 1;
        loop {
            let Some(end) = self.rest[at..].find(quote) else { return Err(self.unexpected()) };
            name.push_str(&self.rest[at..at + end]);
            at += end + 1;
            if !self.rest[at..].starts_with(quote) {
                break;
            }
            name.push(quote);
            at += 1;
        }
        self.rest = &self.rest[at..];
        if name.is_empty() { Ok(None) } else { checked(name).map(Some) }
    }

    fn unexpected(&self) -> SqlError {
        let rest = self.rest.trim_start().chars().take(limits::NAME_BYTES_MAX);
        let found: String = rest.take_while(|next| !next.is_whitespace()).collect();
        let message = match found.is_empty() {
            true => "syntax error at end of input".to_string(),
            false => format!("syntax error at or near \"{found}\""),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message)
    }
}

fn checked(name: String) -> Result<String, SqlError> {
    if name.len() > limits::NAME_BYTES_MAX {
        let message = format!(
            "identifier \"{name}\" has {} bytes, the limit is {} (NAME_BYTES_MAX)",
            name.len(),
            limits::NAME_BYTES_MAX
        );
        return Err(SqlError::new(SqlState::NAME_TOO_LONG, message));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str) -> (Vec<String>, &str) {
        let (path, rest) = split_search_path(sql).expect("a list");
        (path.schemas().to_vec(), rest)
    }

    #[test]
    fn a_script_may_begin_with_its_path() {
        for sql in
            ["SET search_path TO a, \"B\"\"c\";SELECT 1", "set  local search_path = A , 'B\"c' ;SELECT 1"]
        {
            assert_eq!(split(sql), (vec!["a".to_string(), "B\"c".to_string()], "SELECT 1"));
        }
        assert_eq!(split("SET search_path TO '';SELECT 1"), (Vec::new(), "SELECT 1"));
        assert_eq!(split("SET SESSION search_path TO é"), (vec!["é".to_string()], ""));
        let public = vec!["public".to_string()];
        for sql in
            ["", "SELECT 1", "SET x TO 1", "SETTLE", "set", "SET search_path", "-- SET search_path TO a"]
        {
            assert_eq!(split(sql), (public.clone(), sql));
        }
        for sql in ["SET search_path TO ", "SET search_path TO a b", "SET search_path = \"a"] {
            assert!(split_search_path(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn what_a_path_shows_is_read_again() {
        let path = SearchPath::new(["a", "B \"c\"", "é"].map(str::to_string)).expect("a short path");
        assert_eq!(split_search_path(&format!("SET search_path TO {path};x")).expect("a list"), (path, "x"));
        let none = SearchPath::new([]).expect("a short path");
        assert_eq!(split_search_path(&format!("SET search_path TO {none};x")).expect("a list"), (none, "x"));
        assert_eq!(parse_search_path("\"$user\", public").expect("a list"), ["$user", "public"]);
        assert_eq!(parse_search_path(" ").expect("a list"), Vec::<String>::new());
        assert!(parse_search_path("a b").is_err());
    }
}
