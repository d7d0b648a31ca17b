//! Reading DECLARE, FETCH, MOVE and CLOSE.

use super::script::{Kind, Lexeme, Statement};
use super::words::Words;
use types::SqlError;

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Movement {
    /// So many rows on; back where it is negative.
    By(i64),
    /// Behind the last row.
    ToEnd,
    /// In front of the first row.
    ToStart,
    /// To this row; counted from the end where it is negative.
    To(i64),
    /// So many rows on, of which only the last one counts.
    Relative(i64),
}

/// What is done with cursors.
#[derive(Debug)]
pub(super) enum CursorCommand<'a> {
    /// Computes the rows of a query.
    Declare { name: String, options: Options, query: Statement<'a> },
    /// Goes somewhere; `gives`: and gives the rows that it meets.
    Fetch { name: String, movement: Movement, gives: bool },
    /// Forgets one, or all.
    Close(Option<String>),
}

/// How a cursor is declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// It cannot go back.
    pub(super) forward_only: bool,
    /// It outlives its transaction.
    pub(super) hold: bool,
}

impl Words<'_, '_> {
    /// A whole number, with or without a sign.
    fn number(&mut self) -> Option<i64> {
        let sign = self.peek().filter(|lexeme| lexeme.is("-") || lexeme.is("+"))?;
        let negative = sign.is("-");
        let number = self.statement.lexemes.get(self.at + 1).and_then(plain_number)?;
        self.at += 2;
        Some(if negative { -number } else { number })
    }

    fn count(&mut self) -> Option<i64> {
        if let Some(number) = self.number() {
            return Some(number);
        }
        let number = self.peek().and_then(plain_number)?;
        self.at += 1;
        Some(number)
    }
}

fn plain_number(lexeme: &Lexeme<'_>) -> Option<i64> {
    if lexeme.kind == Kind::Number { lexeme.text.parse().ok() } else { None }
}

/// Reads a statement of the class `Cursor`.
pub(super) fn parse<'a>(statement: &Statement<'a>) -> Result<CursorCommand<'a>, SqlError> {
    let mut words = Words::of(statement);
    if words.take("declare") {
        return declare(words);
    }
    if words.take("close") {
        if words.take("all") {
            return words.end(CursorCommand::Close(None));
        }
        let name = words.name()?;
        return words.end(CursorCommand::Close(Some(name)));
    }
    let gives = words.take("fetch");
    if !gives {
        words.expect("move")?;
    }
    let movement = movement(&mut words)?;
    let name = words.name()?;
    words.end(CursorCommand::Fetch { name, movement, gives })
}

fn declare<'a>(mut words: Words<'_, 'a>) -> Result<CursorCommand<'a>, SqlError> {
    let name = words.name()?;
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

/// `[direction] [FROM | IN]`; a direction that is also a name in front of nothing is the cursor's.
fn movement(words: &mut Words<'_, '_>) -> Result<Movement, SqlError> {
    let last = words.at + 1 == words.statement.lexemes.len();
    let movement = if last || words.take("next") {
        Movement::By(1)
    } else if words.take("prior") {
        Movement::By(-1)
    } else if words.take("first") {
        Movement::To(1)
    } else if words.take("last") {
        Movement::To(-1)
    } else if words.take("absolute") {
        Movement::To(words.count().ok_or_else(|| words.error())?)
    } else if words.take("relative") {
        Movement::Relative(words.count().ok_or_else(|| words.error())?)
    } else if words.take("all") {
        Movement::ToEnd
    } else if words.take("forward") {
        if words.take("all") { Movement::ToEnd } else { Movement::By(words.count().unwrap_or(1)) }
    } else if words.take("backward") {
        if words.take("all") { Movement::ToStart } else { Movement::By(-words.count().unwrap_or(1)) }
    } else {
        Movement::By(words.count().unwrap_or(1))
    };
    if !words.take("from") {
        words.take("in");
    }
    Ok(movement)
}

#[cfg(test)]
mod tests {
    use super::super::script::split;
    use super::*;

    fn moved(sql: &str) -> Result<(Movement, String), String> {
        match parse(&split(sql)[0]) {
            Ok(CursorCommand::Fetch { name, movement, .. }) => Ok((movement, name)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn every_direction_is_read() {
        for (direction, expected) in [
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
            ("ALL", Movement::ToEnd),
            ("FORWARD", Movement::By(1)),
            ("FORWARD 7 FROM", Movement::By(7)),
            ("FORWARD ALL", Movement::ToEnd),
            ("BACKWARD", Movement::By(-1)),
            ("BACKWARD 7", Movement::By(-7)),
            ("BACKWARD ALL IN", Movement::ToStart),
        ] {
            assert_eq!(
                moved(&format!("FETCH {direction} \"C 1\"")),
                Ok((expected, "C 1".to_string())),
                "{direction}"
            );
        }
        assert_eq!(moved("move next"), Ok((Movement::By(1), "next".to_string())), "a cursor of this name");
        for wrong in
            ["FETCH", "FETCH ABSOLUTE c", "FETCH 1 2 FROM c", "FETCH FROM", "MOVE c d e", "FETCH 'c'"]
        {
            assert!(moved(wrong).expect_err(wrong).starts_with("syntax error"), "{wrong}");
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
