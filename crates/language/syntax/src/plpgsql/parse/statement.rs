//! Statements without statements inside: assignment, SQL with INTO, CALL, RAISE and the rest.

use crate::parse::deferrals::SetConstraints;
use crate::parse::notify::{NotifyStatement, said};
use crate::plpgsql::ast::{DynamicText, Expression, IntoClause, Name, PathStep, RowSource, StatementKind};
use crate::plpgsql::parse::{BodyParser, is_reserved, is_semicolon};
use crate::plpgsql::tokens::Tokens;
use sqlparser::tokenizer::{Token, Word};
use types::limits::ARGUMENTS_MAX;
use types::{ExecutionVersion, SqlError, SqlState};

/// Statements of SQL that a contract cannot hold.
const REFUSED_SQL: [&str; 36] = [
    "ALTER",
    "ANALYZE",
    "CHECKPOINT",
    "CLUSTER",
    "COMMENT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DISCARD",
    "DO",
    "DROP",
    "EXPLAIN",
    "GRANT",
    "IMPORT",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "NOTIFY",
    "PREPARE",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "RESET",
    "REVOKE",
    "SAVEPOINT",
    "SECURITY",
    "SET",
    "SHOW",
    "START",
    "TABLE",
    "TRUNCATE",
    "UNLISTEN",
    "VACUUM",
    "VALUES",
];

impl BodyParser<'_> {
    /// A statement that begins with `word` (upper-case; empty where it begins with none).
    pub(super) fn simple_statement(&mut self, word: &str) -> Result<StatementKind, SqlError> {
        if self.is_assignment() {
            return self.assignment();
        }
        let position = self.tokens.position();
        let refused = |what: &str| Err(SqlError::unsupported(what).at(position));
        match word {
            "NULL" => {
                self.tokens.next += 1;
                self.tokens.expect(&Token::SemiColon)?;
                Ok(StatementKind::Null)
            }
            "EXIT" | "CONTINUE" => {
                self.tokens.next += 1;
                self.leave(word == "EXIT", position)
            }
            "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH" => self.sql_statement(),
            "PERFORM" => self.perform(),
            "CALL" => self.call(),
            "GET" => self.get_diagnostics(),
            "RAISE" => self.raise(),
            "ASSERT" => self.assert(),
            "RETURN" => self.return_statement(),
            "EXECUTE" => self.execute(),
            "OPEN" => self.open(),
            "FETCH" => self.fetch(),
            "MOVE" => self.move_cursor(),
            "CLOSE" => self.close(),
            "COMMIT" | "ROLLBACK" | "ABORT" => Err(SqlError::unsupported(format!("{word} in a procedure"))
                .hint("A call is one transaction; RAISE EXCEPTION ends it without effect.")
                .at(position)),
            "SET" if self.tokens.is_word(1, "CONSTRAINTS") && self.tokens.version >= ExecutionVersion::V8 => {
                self.set_constraints()
            }
            "NOTIFY" if self.tokens.version >= ExecutionVersion::V14 => self.notify(),
            _ if REFUSED_SQL.contains(&word) => refused(&format!("{word} in a procedure")),
            _ => Err(self.not_a_statement()),
        }
    }

    fn is_assignment(&self) -> bool {
        let mut ahead = match self.tokens.peek(0) {
            Some(Token::Placeholder(_)) => 1,
            Some(Token::Word(Word { value, quote_style, .. }))
                if quote_style.is_some() || !is_reserved(value) =>
            {
                1
            }
            _ => return false,
        };
        while self.tokens.peek(ahead) == Some(&Token::Period) {
            ahead += 2;
        }
        matches!(self.tokens.peek(ahead), Some(Token::Assignment | Token::Eq | Token::LBracket))
    }

    #[inline(never)]
    fn assignment(&mut self) -> Result<StatementKind, SqlError> {
        let target = self.target_name("a variable")?;
        let mut path = Vec::new();
        // Before version 10 there was one step, a subscript.
        while path.is_empty() || self.version >= ExecutionVersion::V10 {
            match self.path_step(!path.is_empty())? {
                Some(step) => path.push(step),
                None => break,
            }
        }
        if !self.tokens.accept(&Token::Assignment) {
            self.tokens.expect(&Token::Eq)?;
        }
        let value = self.expression_until_semicolon()?;
        Ok(StatementKind::Assign { target, path, value })
    }

    /// A subscript, a slice, or behind these a field. Statements nest, and what this needs of the stack is not needed in each of them.
    #[inline(never)]
    fn path_step(&mut self, may_be_field: bool) -> Result<Option<PathStep>, SqlError> {
        if may_be_field && self.tokens.accept(&Token::Period) {
            return Ok(Some(PathStep::Field(self.name("a name behind the dot")?)));
        }
        if !self.tokens.accept(&Token::LBracket) {
            return Ok(None);
        }
        let knows_slices = self.version >= ExecutionVersion::V10;
        let end = move |tokens: &Tokens<'_>, ahead: usize| match tokens.peek(ahead) {
            Some(Token::RBracket) => true,
            Some(Token::Colon) => knows_slices,
            _ => false,
        };
        let from = match self.tokens.peek(0) {
            Some(Token::Colon) if knows_slices => None,
            _ => Some(self.expression_until("]", end)?),
        };
        let step = match from {
            Some(subscript) if self.tokens.peek(0) == Some(&Token::RBracket) => {
                PathStep::Element(Box::new(subscript))
            }
            from => {
                self.tokens.expect(&Token::Colon)?;
                let to = match self.tokens.peek(0) {
                    Some(Token::RBracket) => None,
                    _ => Some(self.expression_until("]", end)?),
                };
                PathStep::Slice(from.map(Box::new), to.map(Box::new))
            }
        };
        self.tokens.expect(&Token::RBracket)?;
        Ok(Some(step))
    }

    /// Nothing that begins a statement; a word in front of the wrong one is what PostgreSQL would point at.
    fn not_a_statement(&self) -> SqlError {
        self.tokens.unexpected("a statement or END")
    }

    /// SELECT, INSERT, UPDATE or DELETE up to its semicolon, with INTO taken out.
    fn sql_statement(&mut self) -> Result<StatementKind, SqlError> {
        let start = self.tokens.next;
        let (mut into, mut current_of) = (None, None);
        let mut left_out = Vec::new();
        loop {
            match self.tokens.peek(0) {
                None => return Err(self.tokens.unexpected("\";\"")),
                Some(Token::SemiColon) => break,
                _ if self.is_current_of() => {
                    let from = self.tokens.next;
                    self.tokens.next += 3;
                    current_of = Some(self.name("a cursor")?);
                    left_out.push(from..self.tokens.next);
                }
                _ if self.tokens.is_word(0, "INTO") && !self.follows_insert() => {
                    let from = self.tokens.next;
                    if into.is_some() {
                        let error = SqlError::new(SqlState::SYNTAX_ERROR, "INTO specified more than once");
                        return Err(error.at(self.tokens.position()));
                    }
                    self.tokens.next += 1;
                    into = Some(self.target_clause()?);
                    left_out.push(from..self.tokens.next);
                }
                _ => self.tokens.next += 1,
            }
        }
        let end = self.tokens.next;
        self.tokens.next = start;
        let statement = Box::new(self.tokens.statement(end, &left_out)?);
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Sql { statement, into, current_of })
    }

    /// `INSERT INTO` and `MERGE INTO` are no INTO of PL/pgSQL.
    fn follows_insert(&self) -> bool {
        self.tokens.previous_is_word("INSERT") || self.tokens.previous_is_word("MERGE")
    }

    pub(super) fn target_clause(&mut self) -> Result<IntoClause, SqlError> {
        let strict = self.tokens.accept_word("STRICT");
        Ok(IntoClause { strict, targets: self.targets()? })
    }

    fn perform(&mut self) -> Result<StatementKind, SqlError> {
        let end = self.tokens.find(";", is_semicolon)?;
        if end == self.tokens.next + 1 {
            return Err(
                SqlError::new(SqlState::SYNTAX_ERROR, "missing expression").at(self.tokens.position_at(end))
            );
        }
        let statement = self.tokens.statement_as_select(end)?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Perform { query: Box::new(statement) })
    }

    fn call(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.expect_word("CALL")?;
        let procedure = self.name("a procedure's name")?;
        if self.tokens.peek(0) == Some(&Token::Period) {
            return Err(SqlError::unsupported("a schema in front of a procedure").at(procedure.position));
        }
        self.tokens.expect(&Token::LParen)?;
        let mut arguments = Vec::new();
        if !self.tokens.accept(&Token::RParen) {
            loop {
                arguments.push(self.argument()?);
                if arguments.len() > ARGUMENTS_MAX {
                    let message = format!("cannot pass more than {ARGUMENTS_MAX} arguments to a procedure");
                    return Err(SqlError::new(SqlState(*b"54023"), message).at(procedure.position));
                }
                if self.tokens.accept(&Token::RParen) {
                    break;
                }
                self.tokens.expect(&Token::Comma)?;
            }
        }
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Call { procedure, arguments })
    }

    /// `[name =>] value`
    fn argument(&mut self) -> Result<(Option<Name>, Expression), SqlError> {
        let name = match self.tokens.peek(1) {
            Some(Token::RArrow | Token::Assignment) => {
                let name = self.name("the name of a parameter")?;
                self.tokens.next += 1;
                Some(name)
            }
            _ => None,
        };
        if self.tokens.is_word(0, "VARIADIC") {
            return Err(SqlError::unsupported("VARIADIC").at(self.tokens.position()));
        }
        // The list's own closing parenthesis ends the last argument.
        let end = self.tokens.find_in_list()?;
        let position = self.tokens.position();
        Ok((name, Expression { expression: self.tokens.expression(end)?, position }))
    }

    /// `EXECUTE text [INTO [STRICT] targets] [USING value, …]`, the last two in any order.
    fn execute(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let text = self.expression_until("INTO or USING or ;", |tokens, ahead| {
            is_semicolon(tokens, ahead) || tokens.is_word(ahead, "INTO") || tokens.is_word(ahead, "USING")
        })?;
        let (mut into, mut arguments): (Option<IntoClause>, Option<Vec<Expression>>) = (None, None);
        loop {
            if into.is_none() && self.tokens.accept_word("INTO") {
                into = Some(self.target_clause()?);
            } else if arguments.is_none() && self.tokens.is_word(0, "USING") {
                arguments = Some(self.using("INTO")?);
            } else {
                break;
            }
        }
        self.tokens.expect(&Token::SemiColon)?;
        let dynamic = DynamicText { text, arguments: arguments.unwrap_or_default() };
        Ok(StatementKind::Execute { dynamic, into })
    }

    /// `text [USING value, …]` up to a word or a semicolon, behind EXECUTE.
    pub(super) fn dynamic_text(&mut self, end: &'static str) -> Result<DynamicText, SqlError> {
        let text = self.expression_until(end, |tokens, ahead| {
            is_semicolon(tokens, ahead) || tokens.is_word(ahead, end) || tokens.is_word(ahead, "USING")
        })?;
        let arguments = match self.tokens.is_word(0, "USING") {
            true => self.using(end)?,
            false => Vec::new(),
        };
        Ok(DynamicText { text, arguments })
    }

    /// `USING value, …` up to a word or a semicolon.
    fn using(&mut self, end: &'static str) -> Result<Vec<Expression>, SqlError> {
        let mut arguments = Vec::new();
        self.tokens.expect_word("USING")?;
        loop {
            arguments.push(self.expression_until(end, |tokens, ahead| {
                comma_or_semicolon(tokens, ahead) || tokens.is_word(ahead, end)
            })?);
            if arguments.len() > ARGUMENTS_MAX {
                let message =
                    format!("EXECUTE takes at most {ARGUMENTS_MAX} values in USING (ARGUMENTS_MAX)");
                return Err(SqlError::new(SqlState(*b"54023"), message).at(self.tokens.position()));
            }
            if !self.tokens.accept(&Token::Comma) {
                return Ok(arguments);
            }
        }
    }

    /// `SET CONSTRAINTS {ALL | name, …} {DEFERRED | IMMEDIATE}`
    fn set_constraints(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 2;
        let mut names = None;
        if !self.tokens.accept_word("ALL") {
            loop {
                let mut name = self.name("a constraint")?.text;
                if self.tokens.accept(&Token::Period) {
                    name = format!("{name}.{}", self.name("a constraint")?.text);
                }
                names.get_or_insert_with(Vec::new).push(name);
                if !self.tokens.accept(&Token::Comma) {
                    break;
                }
            }
        }
        let deferred = self.tokens.accept_word("DEFERRED");
        if !deferred {
            self.tokens.expect_word("IMMEDIATE")?;
        }
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::SetConstraints(SetConstraints { names, deferred }))
    }

    /// `NOTIFY channel [, 'payload']`
    fn notify(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let channel = self.name("a channel")?.text;
        let mut payload = String::new();
        if self.tokens.accept(&Token::Comma) {
            let Some(said) = self.tokens.peek(0).and_then(said) else {
                let message = "NOTIFY takes a literal; call pg_notify(channel, payload) for another value";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.tokens.position()));
            };
            self.tokens.next += 1;
            payload = said;
        }
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Notify(NotifyStatement { channel, payload }))
    }

    fn assert(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        let condition = self.expression_until(";", comma_or_semicolon)?;
        let message = match self.tokens.accept(&Token::Comma) {
            true => Some(self.expression_until(";", is_semicolon)?),
            false => None,
        };
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Assert { condition, message })
    }

    /// RETURN and its forms. What the procedure or function may return is judged when it is compiled.
    fn return_statement(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        if self.tokens.accept(&Token::SemiColon) {
            return Ok(StatementKind::Return(None));
        }
        match self.tokens.peek_word(0).as_deref() {
            Some("NEXT") => {
                self.tokens.next += 1;
                if self.tokens.accept(&Token::SemiColon) {
                    return Ok(StatementKind::ReturnNext(None));
                }
                Ok(StatementKind::ReturnNext(Some(self.expression_until_semicolon()?)))
            }
            Some("QUERY") => {
                self.tokens.next += 1;
                let source = match self.tokens.accept_word("EXECUTE") {
                    true => RowSource::Dynamic(self.dynamic_text(";")?),
                    false => {
                        let end = self.tokens.find(";", is_semicolon)?;
                        RowSource::Static(Box::new(self.tokens.statement(end, &[])?))
                    }
                };
                self.tokens.expect(&Token::SemiColon)?;
                Ok(StatementKind::ReturnQuery(source))
            }
            _ => Ok(StatementKind::Return(Some(self.expression_until_semicolon()?))),
        }
    }
}

pub(super) fn comma_or_semicolon(tokens: &crate::plpgsql::tokens::Tokens<'_>, ahead: usize) -> bool {
    matches!(tokens.peek(ahead), Some(Token::Comma | Token::SemiColon))
}
