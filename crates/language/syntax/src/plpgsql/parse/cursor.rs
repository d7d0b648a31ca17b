//! Cursors: their declarations, OPEN, FETCH, MOVE, CLOSE and WHERE CURRENT OF.

use crate::plpgsql::ast::{
    Argument, CursorParameter, DeclaredType, Expression, FetchCount, FetchDirection, FetchKind, OpenSource,
    RowSource, StatementKind,
};
use crate::plpgsql::parse::{BodyParser, is_semicolon};
use crate::plpgsql::tokens::Tokens;
use sqlparser::tokenizer::Token;
use types::limits::ARGUMENTS_MAX;
use types::{SqlError, SqlState};

impl<'b> BodyParser<'b> {
    /// `[[NO] SCROLL] CURSOR [(parameters)] {FOR | IS} query;`, if that is next.
    pub(super) fn cursor_declaration(&mut self) -> Result<Option<DeclaredType>, SqlError> {
        let words = [0, 1, 2].map(|ahead| self.tokens.peek_word(ahead));
        let words: Vec<&str> = words.iter().map(|word| word.as_deref().unwrap_or_default()).collect();
        if !matches!(words.as_slice(), ["CURSOR", ..] | ["SCROLL", "CURSOR", _] | ["NO", "SCROLL", "CURSOR"])
        {
            return Ok(None);
        }
        let scroll = self.scroll()?;
        self.tokens.expect_word("CURSOR")?;
        let mut parameters = Vec::new();
        if self.tokens.accept(&Token::LParen) {
            loop {
                let name = self.name("the name of a parameter")?;
                let position = self.tokens.position();
                let end = self.tokens.find_in_list()?;
                let data_type = self.tokens.data_type(end)?;
                parameters.push(CursorParameter { name, data_type, position });
                if parameters.len() > ARGUMENTS_MAX {
                    let message = format!("a cursor has at most {ARGUMENTS_MAX} parameters (ARGUMENTS_MAX)");
                    return Err(SqlError::new(SqlState(*b"54023"), message).at(position));
                }
                if self.tokens.accept(&Token::RParen) {
                    break;
                }
                self.tokens.expect(&Token::Comma)?;
            }
        }
        if !self.tokens.accept_word("IS") {
            self.tokens.expect_word("FOR")?;
        }
        let end = self.tokens.find(";", is_semicolon)?;
        let query = Box::new(self.tokens.statement(end, &[])?);
        self.tokens.expect(&Token::SemiColon)?;
        Ok(Some(DeclaredType::Cursor { scroll, parameters, query }))
    }

    /// `[[NO] SCROLL]`
    fn scroll(&mut self) -> Result<Option<bool>, SqlError> {
        if self.tokens.accept_word("NO") {
            self.tokens.expect_word("SCROLL")?;
            return Ok(Some(false));
        }
        Ok(self.tokens.accept_word("SCROLL").then_some(true))
    }

    /// `(argument, …)`, if there is a parenthesis.
    pub(super) fn cursor_arguments(&mut self) -> Result<Option<Vec<Argument>>, SqlError> {
        if !self.tokens.accept(&Token::LParen) {
            return Ok(None);
        }
        let mut arguments = Vec::new();
        loop {
            // Unlike those of functions, they are not named with an arrow.
            let name = match self.tokens.peek(1) {
                Some(Token::Assignment) => {
                    let name = self.name("the name of a parameter")?;
                    self.tokens.next += 1;
                    Some(name)
                }
                _ => None,
            };
            let end = self.tokens.find_in_list()?;
            arguments.push((name, self.expression_to(end)?));
            if self.tokens.accept(&Token::RParen) {
                return Ok(Some(arguments));
            }
            self.tokens.expect(&Token::Comma)?;
        }
    }

    /// `OPEN cursor [(arguments)]`, `OPEN cursor [[NO] SCROLL] FOR {query | EXECUTE text [USING …]}`
    pub(super) fn open(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let cursor = self.target("a cursor")?;
        let scroll = self.scroll()?;
        if scroll.is_none() && !self.tokens.is_word(0, "FOR") {
            let arguments = self.cursor_arguments()?;
            self.tokens.expect(&Token::SemiColon)?;
            return Ok(StatementKind::Open { cursor, scroll, source: OpenSource::Bound(arguments) });
        }
        self.tokens.expect_word("FOR")?;
        let source = match self.tokens.accept_word("EXECUTE") {
            true => RowSource::Dynamic(self.dynamic_text(";")?),
            false => {
                let end = self.tokens.find(";", is_semicolon)?;
                RowSource::Static(Box::new(self.tokens.statement(end, &[])?))
            }
        };
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Open { cursor, scroll, source: OpenSource::Query(source) })
    }

    /// `FETCH [direction {FROM | IN}] cursor INTO targets`
    pub(super) fn fetch(&mut self) -> Result<StatementKind, SqlError> {
        let position = self.tokens.position();
        self.tokens.next += 1;
        let (direction, several) = self.direction()?;
        let cursor = self.target("a cursor")?;
        if several {
            let message = "FETCH statement cannot return multiple rows";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
        }
        self.tokens.expect_word("INTO")?;
        let into = self.target_clause()?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Fetch { cursor, direction, into: Some(into) })
    }

    /// `MOVE [direction {FROM | IN}] cursor`
    pub(super) fn move_cursor(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let (direction, _) = self.direction()?;
        let cursor = self.target("a cursor")?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Fetch { cursor, direction, into: None })
    }

    /// `CLOSE cursor`
    pub(super) fn close(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let cursor = self.target("a cursor")?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Close { cursor })
    }

    /// A direction up to the cursor's name, and whether it may give several rows.
    fn direction(&mut self) -> Result<(FetchDirection, bool), SqlError> {
        let one = |kind: FetchKind, count: i64| FetchDirection { kind, count: FetchCount::Constant(count) };
        let (direction, several) = match self.tokens.peek_word(0).as_deref() {
            Some("NEXT") => (one(FetchKind::Forward, 1), false),
            Some("PRIOR") => (one(FetchKind::Backward, 1), false),
            Some("FIRST") => (one(FetchKind::Absolute, 1), false),
            Some("LAST") => (one(FetchKind::Absolute, -1), false),
            Some("ALL") => (FetchDirection { kind: FetchKind::Forward, count: FetchCount::All }, true),
            Some(word @ ("ABSOLUTE" | "RELATIVE")) => {
                let kind = if word == "ABSOLUTE" { FetchKind::Absolute } else { FetchKind::Relative };
                self.tokens.next += 1;
                let count = FetchCount::Expression(self.count()?);
                return Ok((FetchDirection { kind, count }, false));
            }
            Some(word @ ("FORWARD" | "BACKWARD")) => {
                let kind = if word == "FORWARD" { FetchKind::Forward } else { FetchKind::Backward };
                self.tokens.next += 1;
                if self.accept_from() {
                    return Ok((one(kind, 1), false));
                }
                if self.tokens.accept_word("ALL") {
                    self.expect_from()?;
                    return Ok((FetchDirection { kind, count: FetchCount::All }, true));
                }
                let count = FetchCount::Expression(self.count()?);
                return Ok((FetchDirection { kind, count }, true));
            }
            Some("FROM" | "IN") => (one(FetchKind::Forward, 1), false),
            // The cursor itself.
            _ if self.tokens.is_word(1, "INTO") || is_semicolon(&self.tokens, 1) => {
                return Ok((one(FetchKind::Forward, 1), false));
            }
            _ => {
                let count = FetchCount::Expression(self.count()?);
                return Ok((FetchDirection { kind: FetchKind::Forward, count }, true));
            }
        };
        if !self.tokens.is_word(0, "FROM") && !self.tokens.is_word(0, "IN") {
            self.tokens.next += 1;
        }
        self.expect_from()?;
        Ok((direction, several))
    }

    fn accept_from(&mut self) -> bool {
        self.tokens.accept_word("FROM") || self.tokens.accept_word("IN")
    }

    fn expect_from(&mut self) -> Result<(), SqlError> {
        if self.accept_from() { Ok(()) } else { Err(self.tokens.unexpected("FROM or IN")) }
    }

    /// A number up to FROM or IN, which is read too.
    fn count(&mut self) -> Result<Expression, SqlError> {
        let count = self.expression_until("FROM or IN", |tokens: &Tokens<'b>, ahead| {
            tokens.is_word(ahead, "FROM") || tokens.is_word(ahead, "IN")
        })?;
        self.expect_from()?;
        Ok(count)
    }

    /// `WHERE CURRENT OF` comes next.
    pub(super) fn is_current_of(&self) -> bool {
        ["WHERE", "CURRENT", "OF"].iter().enumerate().all(|(ahead, word)| self.tokens.is_word(ahead, word))
    }
}
