//! Blocks, declarations and control flow. Statements of SQL and RAISE are read in [`super::parse_statement`].

use super::ast::{
    Block, Body, Branch, CaseBranch, Condition, Declaration, DeclaredType, Expression, Handler, Name,
    RowSource, Statement, StatementKind, Target,
};
use super::conditions::states_of_condition;
use super::tokens::Tokens;
use sqlparser::ast as sql;
use sqlparser::tokenizer::{Token, Word};
use types::limits::{NAME_BYTES_MAX, NESTING_MAX};
use types::{SqlError, SqlState};

/// Words that end a list of statements or cannot begin one, so that they are never names of variables.
const RESERVED: [&str; 24] = [
    "ALL", "BEGIN", "BY", "CASE", "DECLARE", "ELSE", "END", "EXECUTE", "FOR", "FOREACH", "FROM", "IF", "IN",
    "INTO", "LOOP", "NOT", "NULL", "OR", "STRICT", "THEN", "TO", "USING", "WHEN", "WHILE",
];

/// What a label in scope belongs to.
struct Label {
    name: Option<String>,
    is_loop: bool,
}

/// Reads a body from front to back.
pub(super) struct BodyParser<'b> {
    pub(super) tokens: Tokens<'b>,
    /// The blocks and loops around the next statement, outermost first.
    labels: Vec<Label>,
}

/// Parses the text between the dollar quotes of a procedure.
///
/// # Errors
/// 42601 for what PL/pgSQL refuses, 0A000 for what Entente does not support, 54001 for too much nesting; each with
/// its position in the body.
pub fn parse(body: &str) -> Result<Body, SqlError> {
    let mut parser = BodyParser { tokens: Tokens::read(body)?, labels: Vec::new() };
    if parser.tokens.peek(0) == Some(&Token::Sharp) {
        return Err(SqlError::unsupported("a compiler option (#)").at(parser.tokens.position()));
    }
    let label = parser.optional_label()?;
    let block = parser.block(label)?;
    parser.tokens.accept(&Token::SemiColon);
    if parser.tokens.peek(0).is_some() {
        return Err(parser.tokens.unexpected("the end of the body"));
    }
    Ok(Body { block })
}

impl<'b> BodyParser<'b> {
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

    fn expression_to(&mut self, end: usize) -> Result<Expression, SqlError> {
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
    fn inside<T>(
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
    fn end_label(&mut self, label: Option<&Name>) -> Result<(), SqlError> {
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
        Ok(Block { label, declarations, statements, handlers })
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
        if self.tokens.is_word(0, "CURSOR")
            || self.tokens.is_word(0, "REFCURSOR")
            || (self.tokens.is_word(0, "SCROLL") || self.tokens.is_word(0, "NO"))
        {
            return Err(SqlError::unsupported("a cursor").at(position));
        }
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
    fn statements(&mut self) -> Result<Vec<Statement>, SqlError> {
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

    fn if_statement(&mut self) -> Result<StatementKind, SqlError> {
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

    fn case_statement(&mut self) -> Result<StatementKind, SqlError> {
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

    fn loop_statement(&mut self, label: Option<Name>, word: &str) -> Result<StatementKind, SqlError> {
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
        if self.tokens.is_word(0, "SLICE") {
            return Err(SqlError::unsupported("FOREACH … SLICE").at(self.tokens.position()));
        }
        self.tokens.expect_word("IN")?;
        self.tokens.expect_word("ARRAY")?;
        let array = self.expression_until_word("LOOP")?;
        let body = self.loop_body(label.as_ref())?;
        Ok(StatementKind::ForElements { label, targets, array, body })
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
        let query = RowSource::Static(self.query_of_loop(end)?);
        self.tokens.expect_word("LOOP")?;
        let body = self.loop_body(label.as_ref())?;
        Ok(StatementKind::ForRows { label, targets, query, body })
    }

    fn query_of_loop(&mut self, end: usize) -> Result<Box<sql::Statement>, SqlError> {
        match self.tokens.peek_word(0).as_deref() {
            Some("SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH" | "VALUES" | "TABLE") => {
                self.tokens.statement(end, None).map(Box::new)
            }
            _ if self.tokens.peek(0) == Some(&Token::LParen) => {
                self.tokens.statement(end, None).map(Box::new)
            }
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

/// True if the token `ahead` is a semicolon.
pub(super) fn is_semicolon(tokens: &Tokens<'_>, ahead: usize) -> bool {
    tokens.peek(ahead) == Some(&Token::SemiColon)
}

/// True for a word of PL/pgSQL that cannot be a variable's name unless it is quoted.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

#[cfg(test)]
mod tests {
    use super::super::ast::{RaiseLevel, RaiseOption, RaiseSubject};
    use super::*;
    use proptest::prelude::*;
    use types::Severity;

    /// The statements of `BEGIN … END` around `statements`.
    fn statements(statements: &str) -> Vec<Statement> {
        let body = format!("BEGIN {statements} END");
        parse(&body).unwrap_or_else(|error| panic!("{statements}: {error:?}")).block.statements
    }

    fn only(text: &str) -> StatementKind {
        let mut found = statements(text);
        assert_eq!(found.len(), 1, "{text}");
        found.remove(0).kind
    }

    fn names(targets: &[Target]) -> Vec<String> {
        targets.iter().map(Target::text).collect()
    }

    /// The error of a body in which `^` stands in front of the place that the error must point at.
    fn refused(marked: &str) -> SqlError {
        let position = marked.chars().position(|character| character == '^').expect("a mark") as u32 + 1;
        let body = marked.replacen('^', "", 1);
        let error = parse(&body).expect_err(&body);
        assert_eq!(error.position, Some(position), "{body}: {error:?}");
        error
    }

    fn refused_with(marked: &str, state: &str, message: &str) {
        let error = refused(marked);
        assert_eq!(error.state.to_string(), state, "{marked}: {error:?}");
        assert!(error.message.contains(message), "{marked}: {error:?}");
    }

    #[test]
    fn declarations_have_types_defaults_and_marks() {
        let body = "DECLARE a integer; B CONSTANT numeric(5,2) NOT NULL := 1.5; \"C\" text = 'x'; d bigint DEFAULT 2;
                    r record; e a%TYPE; h accounts%ROWTYPE; f accounts.name%TYPE; g ALIAS FOR $1; BEGIN END";
        let block = parse(body).expect("a body").block;
        let names: Vec<&str> = block.declarations.iter().map(|each| each.name.text.as_str()).collect();
        assert_eq!(names, ["a", "b", "C", "d", "r", "e", "h", "f", "g"]);
        let defaults: Vec<bool> = block.declarations.iter().map(|each| each.default.is_some()).collect();
        assert_eq!(defaults, [false, true, true, true, false, false, false, false, false]);
        assert!(block.declarations[1].constant && block.declarations[1].not_null);
        assert_eq!(block.declarations[4].declared, DeclaredType::Record);
        assert!(
            matches!(&block.declarations[6].declared, DeclaredType::Row(target) if target.text() == "accounts")
        );
        assert!(
            matches!(&block.declarations[7].declared, DeclaredType::Like(target) if target.text() == "accounts.name")
        );
        assert!(
            matches!(&block.declarations[8].declared, DeclaredType::Alias(target) if target.text() == "$1")
        );
    }

    #[test]
    fn blocks_nest_and_have_labels() {
        let found = only("<<inside>> DECLARE x integer; BEGIN x := 1; END inside;");
        let StatementKind::Block(block) = found else { panic!("{found:?}") };
        assert_eq!(block.label.map(|label| label.text).as_deref(), Some("inside"));
        assert_eq!((block.declarations.len(), block.statements.len()), (1, 1));
        assert!(parse("<<whole>> BEGIN NULL; END whole;").is_ok());
    }

    #[test]
    fn assignments_are_written_in_two_ways() {
        for text in ["x := 1 + 1;", "x = 1 + 1;", "r.x := 1;", "l.r.x = 1;", "$1 := 2;", "raise := 3;"] {
            assert!(matches!(only(text), StatementKind::Assign { .. }), "{text}");
        }
    }

    #[test]
    fn if_has_branches_and_a_rest() {
        let found = only("IF a THEN NULL; ELSIF b THEN NULL; ELSEIF c THEN NULL; ELSE NULL; NULL; END IF;");
        let StatementKind::If { branches, otherwise } = found else { panic!("{found:?}") };
        assert_eq!((branches.len(), otherwise.len()), (3, 2));
    }

    #[test]
    fn case_compares_or_asks() {
        let found = only("CASE x WHEN 1, 2 THEN NULL; WHEN 3 THEN NULL; ELSE END CASE;");
        let StatementKind::Case { operand, branches, otherwise } = found else { panic!("{found:?}") };
        assert!(operand.is_some() && otherwise.is_some());
        assert_eq!(branches.iter().map(|branch| branch.values.len()).collect::<Vec<_>>(), [2, 1]);
        let found = only("CASE WHEN a = 1 THEN NULL; END CASE;");
        assert!(matches!(found, StatementKind::Case { operand: None, otherwise: None, .. }));
    }

    #[test]
    fn integer_loops_find_their_two_dots() {
        for bounds in
            ["1..10", "a..b", "1 .. b", "a..10", "-1..-2", "(a + 1)..f(b, 2)", "1.5..2.5", "a.b..c.d"]
        {
            let found = only(&format!("FOR i IN {bounds} LOOP NULL; END LOOP;"));
            assert!(matches!(found, StatementKind::ForRange { reverse: false, step: None, .. }), "{bounds}");
        }
        let found = only("<<l>> FOR i IN REVERSE 9..1 BY 2 LOOP EXIT l WHEN i = 3; END LOOP l;");
        let StatementKind::ForRange { first, last, step, reverse, .. } = found else { panic!("{found:?}") };
        assert!(reverse);
        let shown = (first.expression.to_string(), last.expression.to_string());
        assert_eq!(shown, ("9".to_string(), "1".to_string()));
        assert_eq!(step.map(|step| step.expression.to_string()).as_deref(), Some("2"));
    }

    #[test]
    fn row_loops_have_a_record_or_scalars() {
        let found = only("FOR a, r.b IN SELECT x, y FROM t WHERE z > 1 ORDER BY x LOOP CONTINUE; END LOOP;");
        let StatementKind::ForRows { targets, query, .. } = found else { panic!("{found:?}") };
        assert_eq!(names(&targets), ["a", "r.b"]);
        let RowSource::Static(query) = query else { panic!("{query:?}") };
        assert_eq!(query.to_string(), "SELECT x, y FROM t WHERE z > 1 ORDER BY x");
    }

    #[test]
    fn handlers_have_conditions_and_statements() {
        let body = "BEGIN NULL; EXCEPTION WHEN division_by_zero OR SQLSTATE '23505' THEN NULL; NULL;
                    WHEN null_value_not_allowed THEN NULL; WHEN OTHERS THEN END";
        let handlers = parse(body).expect("a body").block.handlers;
        let conditions: Vec<usize> = handlers.iter().map(|handler| handler.conditions.len()).collect();
        assert_eq!(conditions, [2, 2, 1]);
        assert_eq!(handlers[0].conditions[1], Condition::State(SqlState::UNIQUE_VIOLATION));
        assert_eq!((handlers[0].statements.len(), handlers[2].statements.len()), (2, 0));
        assert_eq!(handlers[2].conditions, [Condition::Others]);
    }

    #[test]
    fn texts_are_executed_with_values_and_targets() {
        let parts = |text: &str| match only(text) {
            StatementKind::Execute { dynamic, into } => {
                (dynamic.arguments.len(), into.map(|into| (into.strict, into.targets.len())))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(parts("EXECUTE 'SELECT 1';"), (0, None));
        assert_eq!(parts("EXECUTE 'a' || b INTO x, y USING 1, f(2, 3);"), (2, Some((false, 2))));
        assert_eq!(parts("EXECUTE t USING 1 INTO STRICT x;"), (1, Some((true, 1))));
        let found = only("FOR a, b IN EXECUTE 'SELECT $1, 2' USING c LOOP NULL; END LOOP;");
        assert!(matches!(found, StatementKind::ForRows { query: RowSource::Dynamic(_), .. }), "{found:?}");
    }

    #[test]
    fn into_stands_where_postgresql_allows_it() {
        for text in [
            "SELECT a, b INTO STRICT x, y FROM t WHERE c = 1;",
            "SELECT INTO STRICT x, y a, b FROM t WHERE c = 1;",
            "SELECT a, b FROM t WHERE c = 1 INTO STRICT x, y;",
        ] {
            let found = only(text);
            let StatementKind::Sql { statement, into: Some(into) } = found else { panic!("{found:?}") };
            assert_eq!(statement.to_string(), "SELECT a, b FROM t WHERE c = 1");
            assert!(into.strict);
            assert_eq!(names(&into.targets), ["x", "y"]);
        }
        let found = only("INSERT INTO t (a) VALUES (1) RETURNING a INTO x;");
        let StatementKind::Sql { statement, into: Some(into) } = found else { panic!("{found:?}") };
        assert_eq!(statement.to_string(), "INSERT INTO t (a) VALUES (1) RETURNING a");
        assert_eq!((into.strict, names(&into.targets)), (false, vec!["x".to_string()]));
        assert!(matches!(only("DELETE FROM t;"), StatementKind::Sql { into: None, .. }));
        assert!(matches!(only("UPDATE t SET a = 1 WHERE b = 2;"), StatementKind::Sql { into: None, .. }));
    }

    #[test]
    fn calls_performs_and_diagnostics_are_read() {
        let found = only("CALL pay(a, f(b, 1) + 2, 'x');");
        let StatementKind::Call { procedure, arguments } = found else { panic!("{found:?}") };
        assert_eq!((procedure.text.as_str(), arguments.len()), ("pay", 3));
        assert!(matches!(only("CALL nothing();"), StatementKind::Call { .. }));
        let found = only("PERFORM 1 FROM t WHERE a = 1;");
        assert!(
            matches!(found, StatementKind::Perform { query } if query.to_string() == "SELECT 1 FROM t WHERE a = 1")
        );
        let found = only("GET DIAGNOSTICS n = ROW_COUNT, m := ROW_COUNT;");
        assert!(matches!(found, StatementKind::GetDiagnostics { targets } if names(&targets) == ["n", "m"]));
        assert!(matches!(only("ASSERT a > 0, 'message';"), StatementKind::Assert { message: Some(_), .. }));
        assert_eq!(only("RETURN;"), StatementKind::Return(None));
        assert!(matches!(only("RETURN x + 1;"), StatementKind::Return(Some(_))));
        assert!(matches!(only("RETURN NEXT;"), StatementKind::ReturnNext(None)));
        assert!(matches!(only("RETURN NEXT x;"), StatementKind::ReturnNext(Some(_))));
        assert!(matches!(only("RETURN QUERY SELECT 1;"), StatementKind::ReturnQuery(RowSource::Static(_))));
        let found = only("RETURN QUERY EXECUTE 'SELECT $1' USING 1;");
        assert!(matches!(found, StatementKind::ReturnQuery(RowSource::Dynamic(_))));
        assert_eq!(only("NULL;"), StatementKind::Null);
    }

    #[test]
    fn raise_has_level_subject_and_options() {
        let raise = |text: &str| match only(text) {
            StatementKind::Raise(raise) => raise,
            other => panic!("{other:?}"),
        };
        let found = raise("RAISE EXCEPTION 'a % b %% c %', x, y USING ERRCODE = '22012', HINT := 'h';");
        assert_eq!(found.level, RaiseLevel::Exception);
        assert!(matches!(&found.subject, RaiseSubject::Format { arguments, .. } if arguments.len() == 2));
        let options: Vec<RaiseOption> = found.options.iter().map(|(option, _)| *option).collect();
        assert_eq!(options, [RaiseOption::ErrorCode, RaiseOption::Hint]);
        for (level, expected) in [
            ("DEBUG", RaiseLevel::Silent),
            ("LOG", RaiseLevel::Silent),
            ("INFO", RaiseLevel::Message(Severity::Info)),
            ("NOTICE", RaiseLevel::Message(Severity::Notice)),
            ("WARNING", RaiseLevel::Message(Severity::Warning)),
        ] {
            assert_eq!(raise(&format!("RAISE {level} 'x';")).level, expected);
        }
        let state = SqlState::DIVISION_BY_ZERO;
        let condition = |name: &str| RaiseSubject::Condition { name: name.to_string(), state };
        assert_eq!(raise("RAISE division_by_zero;").subject, condition("division_by_zero"));
        assert_eq!(raise("RAISE SQLSTATE '22012';").subject, condition("22012"));
        assert_eq!(raise("RAISE USING MESSAGE = 'x';").subject, RaiseSubject::Options);
        assert_eq!(raise("RAISE;").subject, RaiseSubject::Nothing);
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (body, name) in [
            ("DECLARE c ^CURSOR FOR SELECT 1; BEGIN END", "cursor"),
            ("DECLARE c ^refcursor; BEGIN END", "cursor"),
            ("BEGIN ^OPEN c; END", "cursor"),
            ("BEGIN ^FETCH c INTO x; END", "cursor"),
            ("BEGIN ^CLOSE c; END", "cursor"),
            ("BEGIN FOREACH x ^SLICE 1 IN ARRAY a LOOP NULL; END LOOP; END", "FOREACH … SLICE"),
            ("BEGIN ^COMMIT; END", "COMMIT"),
            ("BEGIN ^ROLLBACK; END", "ROLLBACK"),
            ("BEGIN SELECT 1 INTO a^[1]; END", "array"),
            ("BEGIN ^CREATE TABLE t (a integer); END", "CREATE"),
            ("BEGIN ^TRUNCATE t; END", "TRUNCATE"),
            ("BEGIN GET STACKED DIAGNOSTICS x = ^PG_EXCEPTION_CONTEXT; END", "PG_EXCEPTION_CONTEXT"),
            ("^#variable_conflict use_column BEGIN END", "option"),
        ] {
            refused_with(body, "0A000", name);
        }
    }

    #[test]
    fn what_is_wrong_is_refused_as_postgresql_does() {
        for (body, message) in [
            ("BEGIN x := ^; END", "missing expression"),
            ("BEGIN x := 1 +^; END", "syntax error"),
            ("BEGIN x := (1^; END", "mismatched parentheses"),
            ("BEGIN IF a LOOP NULL^; END IF; END", "missing \"THEN\""),
            ("BEGIN NULL;^", "syntax error at end of input"),
            ("BEGIN ^foo bar; END", "syntax error at or near \"foo\""),
            ("BEGIN SELECT a INTO x ^INTO y FROM t; END", "INTO specified more than once"),
            ("BEGIN SELECT a FORM ^t; END", "syntax error at or near \"t\""),
            ("BEGIN ^EXIT; END", "EXIT cannot be used outside a loop"),
            ("BEGIN ^CONTINUE; END", "CONTINUE cannot be used outside a loop"),
            ("BEGIN LOOP EXIT ^nowhere; END LOOP; END", "there is no label \"nowhere\""),
            ("<<b>> BEGIN LOOP CONTINUE ^b; END LOOP; END", "cannot be used in CONTINUE"),
            ("<<a>> BEGIN END ^b", "end label \"b\" differs from block's label \"a\""),
            ("BEGIN LOOP EXIT; END LOOP ^x; END", "specified for unlabeled block"),
            (
                "BEGIN FOR i, j IN 1..2 LOOP NULL; END LOOP; END".replace("i, j", "^i, j").as_str(),
                "only one target",
            ),
            ("BEGIN FOR r IN REVERSE ^SELECT 1 LOOP NULL; END LOOP; END", "cannot specify REVERSE"),
            ("BEGIN RAISE EXCEPTION ^'%'; END", "too few parameters"),
            ("BEGIN RAISE EXCEPTION ^'x', 1; END", "too many parameters"),
            ("BEGIN RAISE SQLSTATE ^'1234'; END", "invalid SQLSTATE"),
            ("BEGIN RAISE 'x' USING ^COLOUR = 'red'; END", "unrecognized RAISE statement option"),
            ("BEGIN RAISE 'x' USING ^MESSAGE = 'y'; END", "already specified: MESSAGE"),
            ("BEGIN GET DIAGNOSTICS x = ^PG_ROUTINE_OID; END", "unrecognized GET DIAGNOSTICS"),
            ("BEGIN END; ^BEGIN END", "syntax error"),
            ("BEGIN x := ^'abc; END", ""),
        ] {
            let error = refused(body);
            assert_eq!(error.state, SqlState::SYNTAX_ERROR, "{body}: {error:?}");
            assert!(error.message.contains(message), "{body}: {error:?}");
        }
        refused_with("BEGIN RAISE ^no_such_condition; END", "42704", "unrecognized exception condition");
        let body = "BEGIN NULL; EXCEPTION WHEN ^no_such_condition THEN NULL; END";
        refused_with(body, "42704", "unrecognized exception condition");
        refused_with("DECLARE ^x integer NOT NULL; BEGIN END", "22004", "must have a default value");
    }

    #[test]
    fn positions_count_characters_over_lines() {
        refused_with("BEGIN\n  -- größer\n  x := 'ü' || ^;\nEND", "42601", "syntax error at or near \";\"");
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |levels: usize| format!("{}{}", "BEGIN ".repeat(levels), "END; ".repeat(levels));
        assert!(parse(&nested(NESTING_MAX)).is_ok());
        let error = parse(&nested(NESTING_MAX + 1)).expect_err("too deep");
        assert_eq!(error.state, SqlState::STATEMENT_TOO_COMPLEX);
        let branches = format!("BEGIN {} {} END", "IF a THEN ".repeat(20_000), "END IF; ".repeat(20_000));
        assert!(parse(&branches).is_err());
        let parentheses = format!("BEGIN x := {}1{}; END", "(".repeat(20_000), ")".repeat(20_000));
        assert!(parse(&parentheses).is_err());
        let sum = format!("BEGIN x := 1{}; END", " + 1".repeat(20_000));
        assert!(parse(&sum).is_err());
    }

    proptest! {
        #[test]
        fn a_soup_of_tokens_never_panics(words in prop::collection::vec(prop::sample::select(vec![
            "BEGIN", "END", "DECLARE", "IF", "THEN", "ELSE", "ELSIF", "LOOP", "FOR", "WHILE", "IN", "..", "1", "x",
            "integer", ":=", "=", ";", ";", "(", ")", "SELECT", "INTO", "FROM", "INSERT", "RAISE", "'%'", ",", "USING",
            "EXIT", "WHEN", "CASE", "CALL", "<<", ">>", "NULL", "$1", ".", "%", "TYPE", "GET", "DIAGNOSTICS", "-",
            "STRICT", "RETURN", "PERFORM", "BY", "REVERSE", "ASSERT", "UPDATE", "SET", "DELETE", "[", "]", "--\n", "'",
        ]), 0..40), spaced: bool) {
            let _ = parse(&words.join(if spaced { " " } else { "" }));
            let _ = parse(&format!("BEGIN {}; END", words.join(" ")));
        }

        #[test]
        fn any_text_never_panics(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }
    }
}
