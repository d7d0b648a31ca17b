//! IF, CASE, loops and leaving them.

use crate::plpgsql::ast::{Branch, CaseBranch, Name, RowSource, Statement, StatementKind, Target};
use crate::plpgsql::parse::{BodyParser, is_reserved};
use sqlparser::ast as sql;
use sqlparser::tokenizer::{Token, Word};
use types::{SqlError, SqlState};

impl<'b> BodyParser<'b> {
    pub(super) fn if_statement(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.expect_word("IF")?;
        let mut branches = Vec::new();
        loop {
            let condition = self.expression_until_word("THEN")?;
            let statements = self.nested_statements()?;
            branches.push(Branch { condition, statements });
            if !self.tokens.accept_word("ELSIF") && !self.tokens.accept_word("ELSEIF") {
                break;
            }
        }
        let otherwise = if self.tokens.accept_word("ELSE") { self.nested_statements()? } else { Vec::new() };
        self.tokens.expect_word("END")?;
        self.tokens.expect_word("IF")?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::If { branches, otherwise })
    }

    /// Statements one level down, where no label is new.
    fn nested_statements(&mut self) -> Result<Vec<Statement>, SqlError> {
        self.inside(None, false, |parser| parser.statements())
    }

    pub(super) fn case_statement(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.expect_word("CASE")?;
        let operand = if self.tokens.is_word(0, "WHEN") {
            None
        } else {
            Some(self.expression_until("WHEN", |tokens, ahead| tokens.is_word(ahead, "WHEN"))?)
        };
        let mut branches = Vec::new();
        while self.tokens.accept_word("WHEN") {
            let mut values = Vec::new();
            loop {
                values.push(self.expression_until("THEN", |tokens, ahead| {
                    tokens.is_word(ahead, "THEN")
                        || (operand.is_some() && tokens.peek(ahead) == Some(&Token::Comma))
                })?);
                if !self.tokens.accept(&Token::Comma) {
                    break;
                }
            }
            self.tokens.expect_word("THEN")?;
            branches.push(CaseBranch { values, statements: self.nested_statements()? });
        }
        if branches.is_empty() {
            return Err(self.tokens.unexpected("WHEN"));
        }
        let otherwise = if self.tokens.accept_word("ELSE") { Some(self.nested_statements()?) } else { None };
        self.tokens.expect_word("END")?;
        self.tokens.expect_word("CASE")?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Case { operand, branches, otherwise })
    }

    pub(super) fn loop_statement(
        &mut self,
        label: Option<Name>,
        word: &str,
    ) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        match word {
            "LOOP" => {
                let body = self.loop_body(label.as_ref())?;
                Ok(StatementKind::Loop { label, body })
            }
            "WHILE" => {
                let condition = self.expression_until_word("LOOP")?;
                let body = self.loop_body(label.as_ref())?;
                Ok(StatementKind::While { label, condition, body })
            }
            "FOREACH" => self.foreach_statement(label),
            _ => self.for_statement(label),
        }
    }

    fn foreach_statement(&mut self, label: Option<Name>) -> Result<StatementKind, SqlError> {
        let targets = self.targets()?;
        let mut slice = 0;
        if self.tokens.accept_word("SLICE") {
            slice = match self.tokens.peek(0) {
                Some(Token::Number(text, _)) => {
                    text.parse().map_err(|_| self.tokens.unexpected("a number"))?
                }
                _ => return Err(self.tokens.unexpected("a number")),
            };
            self.tokens.next += 1;
        }
        self.tokens.expect_word("IN")?;
        self.tokens.expect_word("ARRAY")?;
        let array = self.expression_until_word("LOOP")?;
        let body = self.loop_body(label.as_ref())?;
        Ok(StatementKind::ForElements { label, targets, slice, array, body })
    }

    /// What follows the word LOOP's place: `… END LOOP [label];`, LOOP itself having been read.
    fn loop_body(&mut self, label: Option<&Name>) -> Result<Vec<Statement>, SqlError> {
        let body = self.inside(label, true, |parser| parser.statements())?;
        self.tokens.expect_word("END")?;
        self.tokens.expect_word("LOOP")?;
        self.end_label(label)?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(body)
    }

    fn for_statement(&mut self, label: Option<Name>) -> Result<StatementKind, SqlError> {
        let targets = self.targets()?;
        self.tokens.expect_word("IN")?;
        if self.tokens.accept_word("EXECUTE") {
            let dynamic = self.dynamic_text("LOOP")?;
            self.tokens.expect_word("LOOP")?;
            let body = self.loop_body(label.as_ref())?;
            return Ok(StatementKind::ForRows { label, targets, query: RowSource::Dynamic(dynamic), body });
        }
        let reverse = self.tokens.accept_word("REVERSE");
        let end = self
            .tokens
            .find("LOOP", |tokens, ahead| tokens.is_word(ahead, "LOOP") || tokens.is_dot_dot(ahead))?;
        if self.tokens.is_dot_dot(end - self.tokens.next) {
            return self.for_range(label, targets, reverse, end);
        }
        if reverse {
            let message = "cannot specify REVERSE in query FOR loop";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.tokens.position()));
        }
        if let Some(kind) = self.for_cursor(&label, &targets)? {
            return Ok(kind);
        }
        let query = RowSource::Static(self.query_of_loop(end)?);
        self.tokens.expect_word("LOOP")?;
        let body = self.loop_body(label.as_ref())?;
        Ok(StatementKind::ForRows { label, targets, query, body })
    }

    /// `FOR record IN cursor [(arguments)] LOOP`, the word IN having been read; `None` where a query follows.
    fn for_cursor(
        &mut self,
        label: &Option<Name>,
        targets: &[Target],
    ) -> Result<Option<StatementKind>, SqlError> {
        let is_name = match self.tokens.peek(0) {
            Some(Token::Word(Word { value, quote_style, .. })) => {
                let begins_query = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "TABLE"];
                quote_style.is_some()
                    || !(is_reserved(value)
                        || begins_query.iter().any(|word| value.eq_ignore_ascii_case(word)))
            }
            _ => false,
        };
        if !is_name || !(self.tokens.is_word(1, "LOOP") || self.tokens.peek(1) == Some(&Token::LParen)) {
            return Ok(None);
        }
        let cursor = self.name("a cursor")?;
        let [Target { parts }] = targets else {
            let message = "cursor FOR loop must have only one target variable";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(targets[1].position()));
        };
        let [record] = parts.as_slice() else {
            let message = "the variable of a cursor FOR loop is a simple name";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(targets[0].position()));
        };
        let (record, label) = (record.clone(), label.clone());
        let arguments = self.cursor_arguments()?;
        self.tokens.expect_word("LOOP")?;
        let body = self.loop_body(label.as_ref())?;
        Ok(Some(StatementKind::ForCursor { label, record, cursor, arguments, body }))
    }

    fn query_of_loop(&mut self, end: usize) -> Result<Box<sql::Statement>, SqlError> {
        match self.tokens.peek_word(0).as_deref() {
            Some("SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH" | "VALUES" | "TABLE") => {
                self.tokens.statement(end, &[]).map(Box::new)
            }
            _ if self.tokens.peek(0) == Some(&Token::LParen) => self.tokens.statement(end, &[]).map(Box::new),
            _ => Err(self.tokens.unexpected("SELECT or a range")),
        }
    }

    fn for_range(
        &mut self,
        label: Option<Name>,
        mut targets: Vec<Target>,
        reverse: bool,
        end: usize,
    ) -> Result<StatementKind, SqlError> {
        let position = targets[0].position();
        let (Some(mut target), true) = (targets.pop(), targets.is_empty()) else {
            let message = "integer FOR loop must have only one target variable";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
        };
        let (Some(variable), true) = (target.parts.pop(), target.parts.is_empty()) else {
            let message = "the variable of an integer FOR loop is a simple name";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
        };
        let first = self.expression_to(end)?;
        self.tokens.next += 1;
        let last = self.expression_until("LOOP", |tokens, ahead| {
            tokens.is_word(ahead, "LOOP") || tokens.is_word(ahead, "BY")
        })?;
        let step = if self.tokens.accept_word("BY") {
            Some(self.expression_until_word("LOOP")?)
        } else {
            self.tokens.expect_word("LOOP")?;
            None
        };
        let body = self.loop_body(label.as_ref())?;
        Ok(StatementKind::ForRange { label, variable, reverse, first, last, step, body })
    }

    /// `EXIT` and `CONTINUE`, their word having been read at `position`.
    pub(super) fn leave(&mut self, is_exit: bool, position: u32) -> Result<StatementKind, SqlError> {
        let label = match self.tokens.peek(0) {
            Some(Token::SemiColon) => None,
            _ if self.tokens.is_word(0, "WHEN") => None,
            _ => Some(self.name("a label, WHEN or \";\"")?),
        };
        self.check_label(label.as_ref(), is_exit, position)?;
        let condition = if self.tokens.accept_word("WHEN") {
            Some(self.expression_until_semicolon()?)
        } else {
            self.tokens.expect(&Token::SemiColon)?;
            None
        };
        Ok(match is_exit {
            true => StatementKind::Exit { label, condition },
            false => StatementKind::Continue { label, condition },
        })
    }

    fn check_label(&self, label: Option<&Name>, is_exit: bool, position: u32) -> Result<(), SqlError> {
        let Some(label) = label else {
            if self.labels.iter().any(|label| label.is_loop) {
                return Ok(());
            }
            let message = match is_exit {
                true => "EXIT cannot be used outside a loop, unless it has a label",
                false => "CONTINUE cannot be used outside a loop",
            };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
        };
        let found = self.labels.iter().rev().find(|known| known.name.as_ref() == Some(&label.text));
        let message = match found {
            Some(known) if known.is_loop || is_exit => return Ok(()),
            Some(_) => format!("block label \"{}\" cannot be used in CONTINUE", label.text),
            None => format!(
                "there is no label \"{}\" attached to any block or loop enclosing this statement",
                label.text
            ),
        };
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(label.position))
    }
}
