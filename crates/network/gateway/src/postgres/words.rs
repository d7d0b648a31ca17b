//! Reading a statement word by word.

use super::script::{Kind, Lexeme, Statement, syntax_error};
use types::SqlError;

/// A statement, and how far it was read.
pub(super) struct Words<'s, 'a> {
    pub(super) statement: &'s Statement<'a>,
    /// The next lexeme.
    pub(super) at: usize,
}

impl<'s, 'a> Words<'s, 'a> {
    pub(super) fn of(statement: &'s Statement<'a>) -> Words<'s, 'a> {
        Words { statement, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'s Lexeme<'a>> {
        self.statement.lexemes.get(self.at)
    }

    /// What is next is wrong.
    pub(super) fn error(&self) -> SqlError {
        syntax_error(self.statement, self.peek())
    }

    /// Takes the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|lexeme| lexeme.is(word));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), SqlError> {
        if self.take(word) { Ok(()) } else { Err(self.error()) }
    }

    pub(super) fn name(&mut self) -> Result<String, SqlError> {
        let is_name = |lexeme: &&Lexeme<'_>| {
            lexeme.kind == Kind::Word || (lexeme.text.starts_with('"') && lexeme.text != "\"\"")
        };
        let name = self.peek().filter(is_name).ok_or_else(|| self.error())?.value();
        self.at += 1;
        Ok(name)
    }

    /// The name of a relation: the schema in front of it, where there is one, and the name by which SQL finds it.
    pub(super) fn relation(&mut self) -> Result<(Option<String>, String), SqlError> {
        let name = self.name()?;
        if !self.take(".") {
            return Ok((None, name));
        }
        let inside = self.name()?;
        let found_by = format!("{name}.{inside}");
        Ok((Some(name), found_by))
    }

    /// What is left, where it begins with one of these words.
    pub(super) fn rest(&self, beginnings: &[&str]) -> Result<Statement<'a>, SqlError> {
        let begins = |lexeme: &&Lexeme<'_>| beginnings.iter().any(|word| lexeme.is(word));
        let first = self.peek().filter(begins).ok_or_else(|| self.error())?;
        let Statement { text, start, lexemes } = self.statement;
        let text = &text[first.start - start..];
        Ok(Statement { text, start: first.start, lexemes: lexemes[self.at..].to_vec() })
    }

    /// `(… , …)`: what stands between the commas, none of it empty.
    pub(super) fn list(&mut self) -> Result<Vec<Statement<'a>>, SqlError> {
        self.expect("(")?;
        let mut parts = Vec::new();
        loop {
            let (first, mut depth) = (self.at, 0_usize);
            loop {
                let lexeme = self.peek().ok_or_else(|| self.error())?;
                let is = |symbols: [&str; 2]| symbols.iter().any(|symbol| lexeme.is(symbol));
                if depth == 0 && (lexeme.is(",") || lexeme.is(")")) {
                    break;
                }
                if is(["(", "["]) {
                    depth += 1;
                } else if is([")", "]"]) {
                    depth = depth.checked_sub(1).ok_or_else(|| self.error())?;
                }
                self.at += 1;
            }
            parts.push(self.part(first)?);
            if !self.take(",") {
                self.expect(")")?;
                return Ok(parts);
            }
        }
    }

    /// What was read from this lexeme on.
    fn part(&self, first: usize) -> Result<Statement<'a>, SqlError> {
        let Statement { text, start, lexemes } = self.statement;
        let lexemes = &lexemes[first..self.at];
        let (Some(first), Some(last)) = (lexemes.first(), lexemes.last()) else { return Err(self.error()) };
        let text = &text[first.start - start..last.start + last.text.len() - start];
        Ok(Statement { text, start: first.start, lexemes: lexemes.to_vec() })
    }

    pub(super) fn end<T>(&self, value: T) -> Result<T, SqlError> {
        if self.peek().is_some() { Err(self.error()) } else { Ok(value) }
    }
}
