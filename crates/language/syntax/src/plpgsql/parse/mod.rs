//! Bodies, blocks and declarations. Control flow is read in [`crate::plpgsql::parse::control`], everything else in
//! [`crate::plpgsql::parse::statement`] and its neighbours.

pub mod control;
pub mod cursor;
pub mod diagnostics;
pub mod raise;
pub mod statement;
#[cfg(test)]
pub mod tests;

use crate::plpgsql::ast::{
    Block, Body, BodyOptions, Condition, Declaration, DeclaredType, Expression, Handler, Name, NameConflict,
    Statement, StatementKind, Target,
};
use crate::plpgsql::conditions::states_of_condition;
use crate::plpgsql::tokens::Tokens;
use sqlparser::tokenizer::{Token, Word};
use types::limits::{NAME_BYTES_MAX, NESTING_MAX};
use types::{ExecutionVersion, SqlError, SqlState};

/// Words that end a list of statements or cannot begin one, so that they are never names of variables.
const RESERVED: [&str; 24] = [
    "ALL", "BEGIN", "BY", "CASE", "DECLARE", "ELSE", "END", "EXECUTE", "FOR", "FOREACH", "FROM", "IF", "IN",
    "INTO", "LOOP", "NOT", "NULL", "OR", "STRICT", "THEN", "TO", "USING", "WHEN", "WHILE",
];

/// What a label in scope belongs to.
pub(super) struct Label {
    pub name: Option<String>,
    pub is_loop: bool,
}

/// Reads a body from front to back.
pub(super) struct BodyParser<'b> {
    pub(super) tokens: Tokens<'b>,
    /// The blocks and loops around the next statement, outermost first.
    pub(super) labels: Vec<Label>,
    /// The rules that the body is read by.
    pub(super) version: ExecutionVersion,
}

/// Parses the text between the dollar quotes of a procedure.
///
/// # Errors
/// 42601 for what PL/pgSQL refuses, 0A000 for what Entente does not support, 54001 for too much nesting; each with
/// its position in the body.
pub fn parse(body: &str, version: ExecutionVersion) -> Result<Body, SqlError> {
    let mut parser = BodyParser { tokens: Tokens::read(body, version)?, labels: Vec::new(), version };
    let options = parser.options()?;
    let label = parser.optional_label()?;
    let block = parser.block(label)?;
    parser.tokens.accept(&Token::SemiColon);
    if parser.tokens.peek(0).is_some() {
        return Err(parser.tokens.unexpected("the end of the body"));
    }
    Ok(Body { options, block })
}

impl<'b> BodyParser<'b> {
    /// `#option value`, any number of times.
    fn options(&mut self) -> Result<BodyOptions, SqlError> {
        let mut options = BodyOptions::default();
        while self.tokens.accept(&Token::Sharp) {
            let words = (self.tokens.peek_word(0).unwrap_or_default(), self.tokens.peek_word(1));
            match (words.0.as_str(), words.1.as_deref()) {
                ("VARIABLE_CONFLICT", Some("ERROR")) => options.conflict = NameConflict::Error,
                ("VARIABLE_CONFLICT", Some("USE_VARIABLE")) => options.conflict = NameConflict::Variable,
                ("VARIABLE_CONFLICT", Some("USE_COLUMN")) => options.conflict = NameConflict::Column,
                ("PRINT_STRICT_PARAMS", Some("ON")) => options.print_strict_params = true,
                ("PRINT_STRICT_PARAMS", Some("OFF")) => options.print_strict_params = false,
                // It would show how PostgreSQL has understood the body.
                ("OPTION", Some("DUMP")) => {}
                ("VARIABLE_CONFLICT" | "PRINT_STRICT_PARAMS" | "OPTION", _) => {
                    self.tokens.next += 1;
                    return Err(self.tokens.unexpected("a value of the option"));
                }
                _ => return Err(self.tokens.unexpected("an option")),
            }
            self.tokens.next += 2;
        }
        Ok(options)
    }

    /// An identifier that is no reserved word.
    pub(super) fn name(&mut self, what: &str) -> Result<Name, SqlError> {
        let position = self.tokens.position();
        let text = match self.tokens.peek(0) {
            Some(Token::Word(Word { value, quote_style: Some(_), .. })) => value.clone(),
            Some(Token::Word(Word { value, .. })) if !is_reserved(value) => value.to_ascii_lowercase(),
            _ => return Err(self.tokens.unexpected(what)),
        };
        if text.len() > NAME_BYTES_MAX {
            let message = format!("identifier \"{text}\" is longer than {NAME_BYTES_MAX} bytes");
            return Err(SqlError::new(SqlState::NAME_TOO_LONG, message).at(position));
        }
        self.tokens.next += 1;
        Ok(Name { text, position })
    }

    /// `name.name.…`, or `$n`.
    pub(super) fn target(&mut self, what: &str) -> Result<Target, SqlError> {
        let target = self.target_name(what)?;
        if self.tokens.peek(0) == Some(&Token::LBracket) {
            let error = SqlError::unsupported("an element of an array here")
                .hint("Use a variable, and assign it to the element afterwards.");
            return Err(error.at(self.tokens.position()));
        }
        Ok(target)
    }

    /// A name as [`BodyParser::target`], which may be followed by a subscript.
    pub(super) fn target_name(&mut self, what: &str) -> Result<Target, SqlError> {
        if let Some(Token::Placeholder(text)) = self.tokens.peek(0) {
            let part = Name { text: text.clone(), position: self.tokens.position() };
            self.tokens.next += 1;
            return Ok(Target { parts: vec![part] });
        }
        let mut parts = vec![self.name(what)?];
        while self.tokens.accept(&Token::Period) {
            parts.push(self.name("a name behind the dot")?);
        }
        Ok(Target { parts })
    }

    /// `target, target, …`
    pub(super) fn targets(&mut self) -> Result<Vec<Target>, SqlError> {
        let mut targets = vec![self.target("a variable")?];
        while self.tokens.accept(&Token::Comma) {
            targets.push(self.target("a variable")?);
        }
        Ok(targets)
    }

    /// Everything up to `ends`, outside parentheses, as one expression; the end itself stays unread.
    pub(super) fn expression_until(
        &mut self,
        expected: &str,
        ends: impl Fn(&Tokens<'b>, usize) -> bool,
    ) -> Result<Expression, SqlError> {
        let end = self.tokens.find(expected, ends)?;
        self.expression_to(end)
    }

    pub(super) fn expression_to(&mut self, end: usize) -> Result<Expression, SqlError> {
        let position = self.tokens.position();
        Ok(Expression { expression: self.tokens.expression(end)?, position })
    }

    pub(super) fn expression_until_word(&mut self, word: &'static str) -> Result<Expression, SqlError> {
        let expression = self.expression_until(word, |tokens, ahead| tokens.is_word(ahead, word))?;
        self.tokens.expect_word(word)?;
        Ok(expression)
    }

    pub(super) fn expression_until_semicolon(&mut self) -> Result<Expression, SqlError> {
        let expression = self.expression_until(";", is_semicolon)?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(expression)
    }

    /// `<<label>>`, if there is one.
    fn optional_label(&mut self) -> Result<Option<Name>, SqlError> {
        if !self.tokens.accept(&Token::ShiftLeft) {
            return Ok(None);
        }
        let label = self.name("a label")?;
        self.tokens.expect(&Token::ShiftRight)?;
        Ok(Some(label))
    }

    /// Reads what stands inside a block or loop, which is left again afterwards.
    pub(super) fn inside<T>(
        &mut self,
        label: Option<&Name>,
        is_loop: bool,
        read: impl FnOnce(&mut BodyParser<'b>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if self.labels.len() >= NESTING_MAX {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!("more than {NESTING_MAX} blocks and statements inside each other"),
            )
            .hint("Move the inner ones to a procedure of their own.")
            .at(self.tokens.position()));
        }
        self.labels.push(Label { name: label.map(|label| label.text.clone()), is_loop });
        let result = read(self);
        self.labels.pop();
        result
    }

    /// The label behind END must be the one in front.
    pub(super) fn end_label(&mut self, label: Option<&Name>) -> Result<(), SqlError> {
        if self.tokens.peek(0) == Some(&Token::SemiColon) || self.tokens.peek(0).is_none() {
            return Ok(());
        }
        let end = self.name("a label or \";\"")?;
        let message = match label {
            Some(label) if label.text == end.text => return Ok(()),
            Some(label) => {
                format!("end label \"{}\" differs from block's label \"{}\"", end.text, label.text)
            }
            None => format!("end label \"{}\" specified for unlabeled block", end.text),
        };
        Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(end.position))
    }

    /// `[DECLARE …] BEGIN … END [label]`, without the semicolon.
    fn block(&mut self, label: Option<Name>) -> Result<Block, SqlError> {
        let declarations = self.declarations()?;
        let position = self.tokens.position();
        self.tokens.expect_word("BEGIN")?;
        let statements = self.inside(label.as_ref(), false, |parser| parser.statements())?;
        let mut handlers = Vec::new();
        if self.tokens.accept_word("EXCEPTION") {
            handlers.push(self.handler(label.as_ref())?);
            while self.tokens.is_word(0, "WHEN") {
                handlers.push(self.handler(label.as_ref())?);
            }
        }
        self.tokens.expect_word("END")?;
        self.end_label(label.as_ref())?;
        Ok(Block { label, position, declarations, statements, handlers })
    }

    /// `WHEN condition OR … THEN statements`
    fn handler(&mut self, label: Option<&Name>) -> Result<Handler, SqlError> {
        let position = self.tokens.position();
        self.tokens.expect_word("WHEN")?;
        let mut conditions = self.conditions()?;
        while self.tokens.accept_word("OR") {
            conditions.extend(self.conditions()?);
        }
        self.tokens.expect_word("THEN")?;
        let statements = self.inside(label, false, |parser| parser.statements())?;
        Ok(Handler { position, conditions, statements })
    }

    /// A condition's name, which may stand for several codes, or `SQLSTATE '…'`.
    fn conditions(&mut self) -> Result<Vec<Condition>, SqlError> {
        if self.tokens.accept_word("SQLSTATE") {
            let (_, state) = self.state()?;
            return Ok(vec![Condition::State(state)]);
        }
        let name = self.name("a condition")?;
        if name.text == "others" {
            return Ok(vec![Condition::Others]);
        }
        let states: Vec<Condition> = states_of_condition(&name.text).map(Condition::State).collect();
        if states.is_empty() {
            let message = format!("unrecognized exception condition \"{}\"", name.text);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(name.position));
        }
        Ok(states)
    }

    fn declarations(&mut self) -> Result<Vec<Declaration>, SqlError> {
        let mut declarations = Vec::new();
        if !self.tokens.accept_word("DECLARE") {
            return Ok(declarations);
        }
        while !self.tokens.is_word(0, "BEGIN") {
            if self.tokens.accept_word("DECLARE") {
                continue;
            }
            declarations.push(self.declaration()?);
        }
        Ok(declarations)
    }

    fn declaration(&mut self) -> Result<Declaration, SqlError> {
        let name = self.name("a variable's name or BEGIN")?;
        if self.tokens.accept_word("ALIAS") {
            self.tokens.expect_word("FOR")?;
            let declared = DeclaredType::Alias(self.target("a variable or parameter")?);
            self.tokens.expect(&Token::SemiColon)?;
            return Ok(Declaration { name, constant: false, declared, not_null: false, default: None });
        }
        if let Some(declared) = self.cursor_declaration()? {
            return Ok(Declaration { name, constant: false, declared, not_null: false, default: None });
        }
        let constant = self.tokens.accept_word("CONSTANT");
        let declared = self.declared_type()?;
        let not_null = self.tokens.accept_word("NOT");
        if not_null {
            self.tokens.expect_word("NULL")?;
        }
        let has_default = self.tokens.accept(&Token::Assignment)
            || self.tokens.accept(&Token::Eq)
            || self.tokens.accept_word("DEFAULT");
        let default = if has_default {
            Some(self.expression_until_semicolon()?)
        } else {
            self.tokens.expect(&Token::SemiColon)?;
            None
        };
        if not_null && default.is_none() {
            let message =
                format!("variable \"{}\" must have a default value, since it's declared NOT NULL", name.text);
            return Err(SqlError::new(SqlState(*b"22004"), message).at(name.position));
        }
        Ok(Declaration { name, constant, declared, not_null, default })
    }

    fn declared_type(&mut self) -> Result<DeclaredType, SqlError> {
        let position = self.tokens.position();
        if self.tokens.is_word(0, "RECORD") {
            self.tokens.next += 1;
            return Ok(DeclaredType::Record);
        }
        let ends = |tokens: &Tokens<'b>, ahead: usize| {
            matches!(tokens.peek(ahead), Some(Token::SemiColon | Token::Assignment | Token::Eq))
                || ["NOT", "DEFAULT", "COLLATE"].iter().any(|word| tokens.is_word(ahead, word))
        };
        let end = self.tokens.find(";", ends)?;
        let last = end.saturating_sub(self.tokens.next);
        if last >= 3 && self.tokens.peek(last - 2) == Some(&Token::Mod) {
            if self.tokens.is_word(last - 1, "ROWTYPE") {
                let target = self.target("a table")?;
                self.tokens.expect(&Token::Mod)?;
                self.tokens.expect_word("ROWTYPE")?;
                return Ok(DeclaredType::Row(target));
            }
            if self.tokens.is_word(last - 1, "TYPE") {
                let target = self.target("a variable or column")?;
                self.tokens.expect(&Token::Mod)?;
                self.tokens.expect_word("TYPE")?;
                return Ok(DeclaredType::Like(target));
            }
        }
        if self.tokens.is_word(last, "COLLATE") {
            return Err(SqlError::unsupported("COLLATE").at(self.tokens.position_at(end)));
        }
        let data_type = self.tokens.data_type(end)?;
        Ok(DeclaredType::Scalar(data_type, position))
    }

    /// Statements up to a word that ends the list; that word stays unread.
    pub(super) fn statements(&mut self) -> Result<Vec<Statement>, SqlError> {
        let mut statements = Vec::new();
        loop {
            match self.tokens.peek_word(0).as_deref() {
                Some("END" | "ELSE" | "ELSIF" | "ELSEIF" | "EXCEPTION" | "WHEN") => return Ok(statements),
                _ if self.tokens.peek(0).is_none() => return Ok(statements),
                _ => statements.push(self.statement()?),
            }
        }
    }

    fn statement(&mut self) -> Result<Statement, SqlError> {
        let position = self.tokens.position();
        let label = self.optional_label()?;
        let word = self.tokens.peek_word(0).unwrap_or_default();
        let kind = match word.as_str() {
            "DECLARE" | "BEGIN" => {
                let block = self.block(label)?;
                self.tokens.expect(&Token::SemiColon)?;
                StatementKind::Block(block)
            }
            "LOOP" | "WHILE" | "FOR" | "FOREACH" => self.loop_statement(label, &word)?,
            _ if label.is_some() => return Err(self.tokens.unexpected("a block or loop behind its label")),
            "IF" => self.if_statement()?,
            "CASE" => self.case_statement()?,
            _ => self.simple_statement(&word)?,
        };
        Ok(Statement { position, kind })
    }
}

/// True if the token `ahead` is a semicolon.
pub(super) fn is_semicolon(tokens: &Tokens<'_>, ahead: usize) -> bool {
    tokens.peek(ahead) == Some(&Token::SemiColon)
}

/// True for a word of PL/pgSQL that cannot be a variable's name unless it is quoted.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}
