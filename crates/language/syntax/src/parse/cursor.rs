//! `FETCH`, `MOVE` and `CLOSE` outside of routines: a client of a transaction block uses a cursor. sqlparser reads neither MOVE nor all
//! directions of FETCH.

use crate::names::name_of;
use crate::parse::errors::unexpected;
use crate::parse::long_names::cut_long_names;
use crate::parse::tokens::{is_word, tokenize, word_at};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{Movement, SqlError};

/// What is done with cursors that are open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorUse {
    /// FETCH or MOVE.
    Fetch {
        /// The cursor.
        name: String,
        /// Where it goes.
        movement: Movement,
        /// FETCH: it gives the rows that it meets.
        gives: bool,
    },
    /// CLOSE of one, or of all.
    Close(Option<String>),
}

impl CursorUse {
    /// The command tag. `rows`: how many the cursor has met.
    pub fn tag(&self, rows: u64) -> String {
        match self {
            CursorUse::Fetch { gives: true, .. } => format!("FETCH {rows}"),
            CursorUse::Fetch { gives: false, .. } => format!("MOVE {rows}"),
            CursorUse::Close(Some(_)) => "CLOSE CURSOR".to_string(),
            CursorUse::Close(None) => "CLOSE CURSOR ALL".to_string(),
        }
    }
}

/// Whether these tokens use a cursor.
pub(super) fn uses_cursor(tokens: &[TokenWithSpan]) -> bool {
    ["fetch", "move", "close"].iter().any(|word| word_at(tokens, 0, word))
}

/// Reads a text that is one such statement. Names are cut as PostgreSQL cuts them.
///
/// # Errors
/// `42601` with the position, and those of [`tokenize`].
pub fn parse_cursor_use(sql: &str) -> Result<CursorUse, SqlError> {
    let mut tokens = tokenize(sql)?;
    cut_long_names(&mut tokens);
    parse_cursor_tokens(&tokens, sql)
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position.
pub(super) fn parse_cursor_tokens(tokens: &[TokenWithSpan], sql: &str) -> Result<CursorUse, SqlError> {
    let end = tokens.iter().position(|token| token.token == Token::EOF).unwrap_or(tokens.len());
    let mut reader = Reader { tokens: &tokens[..end], at: 0, sql };
    if reader.take("close") {
        let name = if reader.take("all") { None } else { Some(reader.name()?) };
        return reader.end(CursorUse::Close(name));
    }
    let gives = reader.take("fetch");
    if !gives && !reader.take("move") {
        return Err(reader.error());
    }
    let movement = reader.movement()?;
    let name = reader.name()?;
    reader.end(CursorUse::Fetch { name, movement, gives })
}

/// The tokens of a statement, and how far they are read.
struct Reader<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
    sql: &'t str,
}

impl Reader<'_> {
    /// What is next is wrong.
    fn error(&self) -> SqlError {
        unexpected(self.tokens.get(self.at).unwrap_or(&TokenWithSpan::new_eof()), self.sql)
    }

    /// Takes the next word if it is this one.
    fn take(&mut self, word: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| is_word(&token.token, word));
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<String, SqlError> {
        let Some(Token::Word(word)) = self.tokens.get(self.at).map(|token| &token.token) else {
            return Err(self.error());
        };
        let name = match word.quote_style {
            Some(quote) => Ident::with_quote(quote, word.value.as_str()),
            None => Ident::new(word.value.as_str()),
        };
        self.at += 1;
        name_of(&name)
    }

    fn end<T>(&self, value: T) -> Result<T, SqlError> {
        if self.at < self.tokens.len() { Err(self.error()) } else { Ok(value) }
    }

    /// `[direction] [FROM | IN]`; a direction that is also a name in front of nothing is the cursor's.
    fn movement(&mut self) -> Result<Movement, SqlError> {
        let last = self.at + 1 == self.tokens.len();
        let movement = if last || self.take("next") {
            Movement::By(1)
        } else if self.take("prior") {
            Movement::By(-1)
        } else if self.take("first") {
            Movement::To(1)
        } else if self.take("last") {
            Movement::To(-1)
        } else if self.take("absolute") {
            Movement::To(self.count().ok_or_else(|| self.error())?)
        } else if self.take("relative") {
            Movement::Relative(self.count().ok_or_else(|| self.error())?)
        } else if self.take("all") {
            Movement::ToEnd
        } else if self.take("forward") {
            if self.take("all") { Movement::ToEnd } else { Movement::By(self.count().unwrap_or(1)) }
        } else if self.take("backward") {
            if self.take("all") { Movement::ToStart } else { Movement::By(-self.count().unwrap_or(1)) }
        } else {
            Movement::By(self.count().unwrap_or(1))
        };
        if !self.take("from") {
            self.take("in");
        }
        Ok(movement)
    }

    /// A whole number, with or without a sign.
    fn count(&mut self) -> Option<i64> {
        let token = |at: usize| self.tokens.get(at).map(|token| &token.token);
        let (negative, signs) = match token(self.at) {
            Some(Token::Minus) => (true, 1),
            Some(Token::Plus) => (false, 1),
            _ => (false, 0),
        };
        let Some(Token::Number(digits, _)) = token(self.at + signs) else { return None };
        let number: i64 = digits.parse().ok()?;
        self.at += signs + 1;
        Some(if negative { -number } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::SqlState;

    fn read(sql: &str) -> Result<CursorUse, SqlError> {
        parse_cursor_use(sql)
    }

    #[test]
    fn every_direction_is_read() {
        for (direction, movement) in [
            ("", Movement::By(1)),
            ("NEXT", Movement::By(1)),
            ("NEXT FROM", Movement::By(1)),
            ("PRIOR IN", Movement::By(-1)),
            ("FIRST", Movement::To(1)),
            ("LAST FROM", Movement::To(-1)),
            ("ABSOLUTE 3", Movement::To(3)),
            ("ABSOLUTE -3 FROM", Movement::To(-3)),
            ("RELATIVE 0 IN", Movement::Relative(0)),
            ("5", Movement::By(5)),
            ("-5 FROM", Movement::By(-5)),
            ("+ 5 FROM", Movement::By(5)),
            ("FROM", Movement::By(1)),
            ("ALL", Movement::ToEnd),
            ("FORWARD", Movement::By(1)),
            ("FORWARD 7 FROM", Movement::By(7)),
            ("FORWARD ALL", Movement::ToEnd),
            ("BACKWARD", Movement::By(-1)),
            ("BACKWARD 7", Movement::By(-7)),
            ("BACKWARD ALL IN", Movement::ToStart),
        ] {
            let fetch = CursorUse::Fetch { name: "C 1".to_string(), movement, gives: true };
            assert_eq!(read(&format!("FETCH {direction} \"C 1\"")), Ok(fetch), "{direction}");
        }
        let next = CursorUse::Fetch { name: "next".to_string(), movement: Movement::By(1), gives: false };
        assert_eq!(read("move Next -- a cursor of this name"), Ok(next));
    }

    #[test]
    fn cursors_are_closed_by_name_or_all_at_once() {
        assert_eq!(read("CLOSE ALL"), Ok(CursorUse::Close(None)));
        assert_eq!(
            read("close \"<unnamed portal 1>\""),
            Ok(CursorUse::Close(Some("<unnamed portal 1>".into())))
        );
        let long = "c".repeat(70);
        assert_eq!(read(&format!("CLOSE {long}")), Ok(CursorUse::Close(Some("c".repeat(63)))));
    }

    #[test]
    fn what_is_wrong_says_where() {
        for (wrong, near, position) in [
            ("FETCH", "syntax error at end of input", 6),
            ("FETCH ABSOLUTE c", "syntax error at or near \"c\"", 16),
            ("FETCH 1 2 FROM c", "syntax error at or near \"2\"", 9),
            ("FETCH FROM", "syntax error at end of input", 11),
            ("MOVE c d e", "syntax error at or near \"d\"", 8),
            ("FETCH 'c'", "syntax error at or near \"'c'\"", 7),
            ("CLOSE", "syntax error at end of input", 6),
            ("CLOSE ALL c", "syntax error at or near \"c\"", 11),
        ] {
            let error = read(wrong).expect_err(wrong);
            assert_eq!(error.state, SqlState::SYNTAX_ERROR, "{wrong}");
            assert_eq!((error.message.as_str(), error.position), (near, Some(position)), "{wrong}");
        }
    }
}
