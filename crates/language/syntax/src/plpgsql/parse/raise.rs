//! RAISE.

use crate::plpgsql::ast::{Expression, Raise, RaiseLevel, RaiseOption, RaiseSubject, StatementKind};
use crate::plpgsql::conditions::{parse_state, state_of_condition};
use crate::plpgsql::parse::BodyParser;
use crate::plpgsql::parse::statement::comma_or_semicolon;
use sqlparser::tokenizer::Token;
use types::{Severity, SqlError, SqlState};

impl BodyParser<'_> {
    pub(super) fn raise(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let level = match self.tokens.peek_word(0).as_deref() {
            Some("EXCEPTION") => Some(RaiseLevel::Exception),
            Some("INFO") => Some(RaiseLevel::Message(Severity::Info)),
            Some("NOTICE") => Some(RaiseLevel::Message(Severity::Notice)),
            Some("WARNING") => Some(RaiseLevel::Message(Severity::Warning)),
            Some("DEBUG" | "LOG") => Some(RaiseLevel::Silent),
            _ => None,
        };
        self.tokens.next += usize::from(level.is_some());
        let level = level.unwrap_or(RaiseLevel::Exception);
        let subject = self.raise_subject()?;
        let options = if self.tokens.accept_word("USING") { self.raise_options()? } else { Vec::new() };
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Raise(Raise { level, subject, options }))
    }

    fn raise_subject(&mut self) -> Result<RaiseSubject, SqlError> {
        let position = self.tokens.position();
        match self.tokens.peek(0) {
            Some(Token::SemiColon) => Ok(RaiseSubject::Nothing),
            Some(Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text)) => {
                let text = text.clone();
                self.tokens.next += 1;
                self.raise_format(text, position)
            }
            Some(Token::DollarQuotedString(text)) => {
                let text = text.value.clone();
                self.tokens.next += 1;
                self.raise_format(text, position)
            }
            _ if self.tokens.is_word(0, "USING") => Ok(RaiseSubject::Options),
            _ if self.tokens.is_word(0, "SQLSTATE") => {
                self.tokens.next += 1;
                let (name, state) = self.state()?;
                Ok(RaiseSubject::Condition { name, state })
            }
            _ => {
                let name = self.name("a format, a condition, USING or \";\"")?;
                match state_of_condition(&name.text) {
                    Some(state) => Ok(RaiseSubject::Condition { name: name.text, state }),
                    None => {
                        let message = format!("unrecognized exception condition \"{}\"", name.text);
                        Err(SqlError::new(SqlState(*b"42704"), message).at(name.position))
                    }
                }
            }
        }
    }

    /// A code in quotes, behind SQLSTATE.
    pub(super) fn state(&mut self) -> Result<(String, SqlState), SqlError> {
        let Some(Token::SingleQuotedString(text)) = self.tokens.peek(0) else {
            return Err(self.tokens.unexpected("a code of five characters in quotes"));
        };
        let Some(state) = parse_state(text) else {
            return Err(
                SqlError::new(SqlState::SYNTAX_ERROR, "invalid SQLSTATE code").at(self.tokens.position())
            );
        };
        let name = text.clone();
        self.tokens.next += 1;
        Ok((name, state))
    }

    fn raise_format(&mut self, text: String, position: u32) -> Result<RaiseSubject, SqlError> {
        let mut arguments = Vec::new();
        while self.tokens.accept(&Token::Comma) {
            arguments.push(self.expression_until(";", |tokens, ahead| {
                comma_or_semicolon(tokens, ahead) || tokens.is_word(ahead, "USING")
            })?);
        }
        let expected = text.replace("%%", "").matches('%').count();
        let message = match arguments.len().cmp(&expected) {
            std::cmp::Ordering::Less => "too few parameters specified for RAISE",
            std::cmp::Ordering::Equal => return Ok(RaiseSubject::Format { text, arguments }),
            std::cmp::Ordering::Greater => "too many parameters specified for RAISE",
        };
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position))
    }

    fn raise_options(&mut self) -> Result<Vec<(RaiseOption, Expression)>, SqlError> {
        let mut options: Vec<(RaiseOption, Expression)> = Vec::new();
        loop {
            let position = self.tokens.position();
            let word = self.tokens.peek_word(0).unwrap_or_default();
            let option = match word.as_str() {
                "ERRCODE" => RaiseOption::ErrorCode,
                "MESSAGE" => RaiseOption::Message,
                "DETAIL" => RaiseOption::Detail,
                "HINT" => RaiseOption::Hint,
                "COLUMN" => RaiseOption::Other("COLUMN"),
                "CONSTRAINT" => RaiseOption::Other("CONSTRAINT"),
                "DATATYPE" => RaiseOption::Other("DATATYPE"),
                "TABLE" => RaiseOption::Other("TABLE"),
                "SCHEMA" => RaiseOption::Other("SCHEMA"),
                _ => {
                    let message = "unrecognized RAISE statement option";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
                }
            };
            self.tokens.next += 1;
            if !self.tokens.accept(&Token::Assignment) {
                self.tokens.expect(&Token::Eq)?;
            }
            options.push((option, self.expression_until(";", comma_or_semicolon)?));
            if !self.tokens.accept(&Token::Comma) {
                return Ok(options);
            }
        }
    }
}
