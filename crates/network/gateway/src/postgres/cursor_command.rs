//! Reading DECLARE, FETCH, MOVE and CLOSE.

use super::script::{Kind, Statement};
use super::words::Words;
use syntax::parse::cursor::{CursorUse, parse_cursor_use};
use types::SqlError;
use types::limits::NAME_BYTES_MAX;

/// What is done with cursors.
#[derive(Debug)]
pub(super) enum CursorCommand<'a> {
    /// Computes the rows of a query.
    Declare { name: String, options: Options, query: Statement<'a> },
    /// Uses one that is open.
    Use(CursorUse),
}

/// How a cursor is declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// It cannot go back.
    pub(super) forward_only: bool,
    /// It outlives its transaction.
    pub(super) hold: bool,
}

/// Reads a statement of the class `Cursor`.
pub(super) fn parse<'a>(statement: &Statement<'a>) -> Result<CursorCommand<'a>, SqlError> {
    let mut words = Words::of(statement);
    if words.take("declare") {
        return declare(words);
    }
    parse_cursor_use(statement.text).map(CursorCommand::Use)
}

fn declare<'a>(mut words: Words<'_, 'a>) -> Result<CursorCommand<'a>, SqlError> {
    // As the names of cursors are read where they are used: of letters PostgreSQL makes ASCII alone small.
    let word = words.peek().filter(|lexeme| lexeme.kind == Kind::Word);
    let word = word.map(|lexeme| lexeme.text.to_ascii_lowercase());
    let name = words.name()?;
    let mut name = word.unwrap_or(name);
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    let mut options = Options::default();
    loop {
        if words.take("binary") {
            let error = SqlError::unsupported("a BINARY cursor");
            return Err(error.hint("Ask for binary results in the extended protocol."));
        }
        if words.take("no") {
            words.expect("scroll")?;
            options.forward_only = true;
        } else if !["insensitive", "asensitive", "scroll"].iter().any(|word| words.take(word)) {
            break;
        }
    }
    words.expect("cursor")?;
    if words.take("with") {
        words.expect("hold")?;
        options.hold = true;
    } else if words.take("without") {
        words.expect("hold")?;
    }
    words.expect("for")?;
    let query = words.rest(&["select", "values", "table", "with", "("])?;
    Ok(CursorCommand::Declare { name, options, query })
}

#[cfg(test)]
mod tests {
    use super::super::script::split;
    use super::*;

    #[test]
    fn names_are_declared_as_they_are_used() {
        let long = "c".repeat(70);
        for (name, read) in [(long.as_str(), &long[..63]), ("Ümlaut", "Ümlaut"), ("C", "c"), ("\"C\"", "C")]
        {
            let sql = format!("DECLARE {name} CURSOR FOR SELECT 1; CLOSE {name}");
            let statements = split(&sql);
            let command = |at: usize| parse(&statements[at]).expect("a statement about a cursor");
            assert!(matches!(command(0), CursorCommand::Declare { name, .. } if name == read), "{name}");
            assert!(matches!(command(1), CursorCommand::Use(CursorUse::Close(Some(name))) if name == read));
        }
    }

    #[test]
    fn declarations_are_read() {
        let read = |sql| match parse(&Vec::leak(split(sql))[0]) {
            Ok(CursorCommand::Declare { name, options, query }) => {
                Ok((name, options, query.text.to_string()))
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.state.to_string()),
        };
        let plain = Options::default();
        let expected = Ok(("c".to_string(), plain, "SELECT 1".to_string()));
        assert_eq!(read("DECLARE c CURSOR FOR SELECT 1"), expected);
        assert_eq!(read("DECLARE c INSENSITIVE SCROLL CURSOR WITHOUT HOLD FOR SELECT 1"), expected);
        let expected =
            Ok(("c".to_string(), Options { forward_only: true, hold: true }, "(VALUES (1))".to_string()));
        assert_eq!(read("DECLARE c NO SCROLL CURSOR WITH HOLD FOR (VALUES (1))"), expected);
        assert_eq!(read("DECLARE c BINARY CURSOR FOR SELECT 1"), Err("0A000".to_string()));
        for wrong in [
            "DECLARE c CURSOR",
            "DECLARE c CURSOR FOR",
            "DECLARE c CURSOR FOR DELETE FROM t",
            "DECLARE CURSOR FOR SELECT 1",
        ] {
            assert_eq!(read(wrong), Err("42601".to_string()), "{wrong}");
        }
    }
}
