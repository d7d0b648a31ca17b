//! GET DIAGNOSTICS and GET STACKED DIAGNOSTICS.

use crate::plpgsql::ast::{DiagnosticsItem, StackedItem, StatementKind, Target};
use crate::plpgsql::parse::BodyParser;
use sqlparser::tokenizer::Token;
use types::{ExecutionVersion, SqlError, SqlState};

impl BodyParser<'_> {
    /// `GET STACKED DIAGNOSTICS target = item, …`, behind STACKED.
    fn get_stacked_diagnostics(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.expect_word("DIAGNOSTICS")?;
        let mut items = Vec::new();
        loop {
            let target = self.target("a variable")?;
            if !self.tokens.accept(&Token::Assignment) {
                self.tokens.expect(&Token::Eq)?;
            }
            let position = self.tokens.position();
            let item = match self.tokens.peek_word(0).as_deref() {
                Some("RETURNED_SQLSTATE") => StackedItem::State,
                Some("MESSAGE_TEXT") => StackedItem::Message,
                Some("PG_EXCEPTION_DETAIL") => StackedItem::Detail,
                Some("PG_EXCEPTION_HINT") => StackedItem::Hint,
                Some("PG_EXCEPTION_CONTEXT") if self.version >= ExecutionVersion::V9 => StackedItem::Context,
                Some(
                    item @ ("PG_EXCEPTION_CONTEXT"
                    | "COLUMN_NAME"
                    | "CONSTRAINT_NAME"
                    | "PG_DATATYPE_NAME"
                    | "TABLE_NAME"
                    | "SCHEMA_NAME"),
                ) => {
                    return Err(SqlError::unsupported(format!("GET STACKED DIAGNOSTICS … = {item}"))
                        .hint("MESSAGE_TEXT names what is wrong.")
                        .at(position));
                }
                Some("ROW_COUNT" | "PG_CONTEXT") => {
                    let item = self.tokens.peek_word(0).unwrap_or_default();
                    let message =
                        format!("diagnostics item {item} is not allowed in GET STACKED DIAGNOSTICS");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
                }
                _ => {
                    let message = "unrecognized GET DIAGNOSTICS item";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
                }
            };
            self.tokens.next += 1;
            items.push((target, item));
            if self.tokens.accept(&Token::SemiColon) {
                return Ok(StatementKind::GetStackedDiagnostics { items });
            }
            self.tokens.expect(&Token::Comma)?;
        }
    }

    /// `GET [CURRENT] DIAGNOSTICS target = item, …`
    pub(super) fn get_diagnostics(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        if self.tokens.accept_word("STACKED") {
            return self.get_stacked_diagnostics();
        }
        self.tokens.accept_word("CURRENT");
        self.tokens.expect_word("DIAGNOSTICS")?;
        let mut items: Vec<(Target, DiagnosticsItem)> = Vec::new();
        loop {
            let target = self.target("a variable")?;
            if !self.tokens.accept(&Token::Assignment) {
                self.tokens.expect(&Token::Eq)?;
            }
            let item = match self.tokens.peek_word(0).as_deref() {
                Some("ROW_COUNT") => DiagnosticsItem::RowCount,
                Some("PG_CONTEXT") => DiagnosticsItem::Context,
                Some(
                    item @ ("RETURNED_SQLSTATE"
                    | "MESSAGE_TEXT"
                    | "PG_EXCEPTION_DETAIL"
                    | "PG_EXCEPTION_HINT"
                    | "PG_EXCEPTION_CONTEXT"),
                ) => {
                    let message =
                        format!("diagnostics item {item} is not allowed in GET CURRENT DIAGNOSTICS");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.tokens.position()));
                }
                _ => {
                    let message = "unrecognized GET DIAGNOSTICS item";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.tokens.position()));
                }
            };
            self.tokens.next += 1;
            items.push((target, item));
            if self.tokens.accept(&Token::SemiColon) {
                return Ok(StatementKind::GetDiagnostics { items });
            }
            self.tokens.expect(&Token::Comma)?;
        }
    }
}
