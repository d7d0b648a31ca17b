//! Words in the texts of both types: plain or in quotes, with characters that a backslash escapes.

use super::{Position, Weight};
use crate::{SqlError, SqlState};

/// What the text is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// A document: behind a word, its positions.
    Vector,
    /// What is looked for: operators end a word.
    Query,
    /// The same where quotes and backslashes are characters like others, and `"` ends a word.
    Web,
}

/// Reads words.
pub(super) struct Words<'a> {
    whole: &'a str,
    pub rest: &'a str,
    dialect: Dialect,
}

/// What ends a plain word in a query.
pub(super) fn is_operator(letter: char) -> bool {
    matches!(letter, '!' | '&' | '|' | '(' | ')' | '<')
}

pub(super) fn is_space(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

impl<'a> Words<'a> {
    pub fn new(text: &'a str, dialect: Dialect) -> Words<'a> {
        Words { whole: text, rest: text, dialect }
    }

    /// All of the text.
    pub fn whole(&self) -> &'a str {
        self.whole
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn skip(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        letter
    }

    /// The next word with its positions, if there is one.
    ///
    /// # Errors
    /// `42601`
    pub fn next_word(&mut self) -> Result<Option<(String, Vec<Position>)>, SqlError> {
        self.rest = self.rest.trim_start_matches(is_space);
        let Some(first) = self.peek() else { return Ok(None) };
        let is_plain_dialect = self.dialect != Dialect::Web;
        if is_plain_dialect && first == '\'' {
            return self.quoted().map(Some);
        }
        let ends = match self.dialect {
            Dialect::Vector => false,
            Dialect::Query => is_operator(first),
            Dialect::Web => is_operator(first) || first == '"',
        };
        if ends {
            return Err(self.unexpected());
        }
        self.plain().map(Some)
    }

    fn plain(&mut self) -> Result<(String, Vec<Position>), SqlError> {
        let mut word = String::new();
        loop {
            match self.peek() {
                Some('\\') if self.dialect != Dialect::Web => {
                    self.skip();
                    word.push(self.escaped()?);
                }
                // The first character is one of the word, whatever it is.
                Some(':') if !word.is_empty() => {
                    let positions = match self.dialect {
                        Dialect::Vector => self.positions()?,
                        _ => Vec::new(),
                    };
                    return Ok((word, positions));
                }
                Some(letter)
                    if !(is_space(letter)
                        || (self.dialect != Dialect::Vector && is_operator(letter))
                        || (self.dialect == Dialect::Web && letter == '"')) =>
                {
                    self.skip();
                    word.push(letter);
                }
                _ => return Ok((word, Vec::new())),
            }
        }
    }

    fn quoted(&mut self) -> Result<(String, Vec<Position>), SqlError> {
        self.skip();
        let mut word = String::new();
        loop {
            match self.skip() {
                None => return Err(self.unexpected()),
                Some('\\') => word.push(self.escaped()?),
                Some('\'') if self.peek() == Some('\'') => {
                    self.skip();
                    word.push('\'');
                }
                Some('\'') if word.is_empty() => return Err(self.unexpected()),
                Some('\'') => break,
                Some(letter) => word.push(letter),
            }
        }
        let has_positions = self.dialect == Dialect::Vector && self.peek() == Some(':');
        Ok((word, if has_positions { self.positions()? } else { Vec::new() }))
    }

    fn escaped(&mut self) -> Result<char, SqlError> {
        self.skip().ok_or_else(|| {
            let message = format!("there is no escaped character: \"{}\"", self.whole);
            SqlError::new(SqlState::SYNTAX_ERROR, message)
        })
    }

    /// `:1A,2,3B`
    fn positions(&mut self) -> Result<Vec<Position>, SqlError> {
        let mut positions = Vec::new();
        loop {
            // The colon, or a comma.
            self.skip();
            let digits =
                self.rest.len() - self.rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            if digits == 0 {
                return Err(self.unexpected());
            }
            let place = place_of(&self.rest[..digits]);
            self.rest = &self.rest[digits..];
            if place == 0 {
                let message = format!("wrong position info in tsvector: \"{}\"", self.whole);
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            let weight = self.weight()?;
            positions.push(Position::new(place, weight));
            match self.peek() {
                Some(',') => {}
                Some(letter) if !is_space(letter) => return Err(self.unexpected()),
                _ => return Ok(positions),
            }
        }
    }

    /// The weight behind a place. As in PostgreSQL, digits may stand around it and count for nothing, and a `D` may be followed by
    /// another weight.
    fn weight(&mut self) -> Result<Weight, SqlError> {
        let mut weight = Weight::D;
        while let Some(letter) = self.peek() {
            let found = match letter {
                '*' => Some(Weight::A),
                letter => Weight::of_letter(letter),
            };
            match found {
                Some(_) if weight != Weight::D => return Err(self.unexpected()),
                Some(found) => weight = found,
                None if letter.is_ascii_digit() => {}
                None => break,
            }
            self.skip();
        }
        Ok(weight)
    }

    #[cold]
    pub fn unexpected(&self) -> SqlError {
        let of = if self.dialect == Dialect::Vector { "tsvector" } else { "tsquery" };
        SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error in {of}: \"{}\"", self.whole))
    }
}

/// What C's `atoi` reads, as PostgreSQL keeps it: the number in 64 bits (the greatest one where there are more), of which the lower 32
/// count with their sign; what is too great is the last place, and of what is below 0 the lower 14 bits count.
fn place_of(digits: &str) -> u32 {
    let number = digits.parse::<i64>().unwrap_or(i64::MAX) as i32;
    number.min(i32::from(super::POSITION_MAX)).cast_unsigned() & u32::from(super::POSITION_MAX)
}
