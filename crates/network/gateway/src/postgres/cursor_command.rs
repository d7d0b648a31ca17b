//! Reading DECLARE, FETCH, MOVE and CLOSE.

use super::script::Statement;
use super::words::Words;
use syntax::parse::cursor::{CursorUse, parse_cursor_use};
use types::limits::NAME_BYTES_MAX;
use types::{ExecutionVersion, SqlError};

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

/// Reads a statement of the class `Cursor` by these rules.
pub(super) fn parse<'a>(
    statement: &Statement<'a>,
    version: ExecutionVersion,
) -> Result<CursorCommand<'a>, SqlError> {
    let mut words = Words::of(statement);
    if words.take("declare") {
        return declare(words, version);
    }
    parse_cursor_use(statement.text, version).map(CursorCommand::Use)
}

fn declare<'a>(mut words: Words<'_, 'a>, version: ExecutionVersion) -> Result<CursorCommand<'a>, SqlError> {
    let mut name = words.name()?;
    if version >= ExecutionVersion::V14 {
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    }
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
    fn long_names_are_cut_as_where_they_are_used() {
        let (sql, long) =
            (format!("DECLARE {0} CURSOR FOR SELECT 1; CLOSE {0}", "c".repeat(70)), "c".repeat(63));
        let statements = split(&sql);
        let read =
            |at: usize| parse(&statements[at], ExecutionVersion::V14).expect("a statement about a cursor");
        assert!(matches!(read(0), CursorCommand::Declare { name, .. } if name == long));
        assert!(matches!(read(1), CursorCommand::Use(CursorUse::Close(Some(name))) if name == long));
    }

    #[test]
    fn declarations_are_read() {
        let read = |sql| match parse(&Vec::leak(split(sql))[0], ExecutionVersion::NEWEST) {
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
