//! Statements without statements inside: assignment, SQL with INTO, CALL, RAISE and the rest.

use super::ast::{
    DynamicText, Expression, IntoClause, Name, Raise, RaiseLevel, RaiseOption, RaiseSubject, RowSource,
    StackedItem, StatementKind, Target,
};
use super::conditions::{parse_state, state_of_condition};
use super::parse::{BodyParser, is_reserved, is_semicolon};
use sqlparser::tokenizer::{Token, Word};
use types::limits::ARGUMENTS_MAX;
use types::{Severity, SqlError, SqlState};

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
            "OPEN" | "FETCH" | "MOVE" | "CLOSE" => refused("a cursor"),
            "COMMIT" | "ROLLBACK" | "ABORT" => Err(SqlError::unsupported(format!("{word} in a procedure"))
                .hint("A call is one transaction; RAISE EXCEPTION ends it without effect.")
                .at(position)),
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

    fn assignment(&mut self) -> Result<StatementKind, SqlError> {
        let target = self.target_name("a variable")?;
        let mut subscript = None;
        if self.tokens.accept(&Token::LBracket) {
            let end =
                |tokens: &super::tokens::Tokens<'_>, ahead| tokens.peek(ahead) == Some(&Token::RBracket);
            subscript = Some(self.expression_until("]", end)?);
            self.tokens.expect(&Token::RBracket)?;
        }
        if !self.tokens.accept(&Token::Assignment) {
            self.tokens.expect(&Token::Eq)?;
        }
        let value = self.expression_until_semicolon()?;
        Ok(StatementKind::Assign { target, subscript, value })
    }

    /// Nothing that begins a statement; a word in front of the wrong one is what PostgreSQL would point at.
    fn not_a_statement(&self) -> SqlError {
        self.tokens.unexpected("a statement or END")
    }

    /// SELECT, INSERT, UPDATE or DELETE up to its semicolon, with INTO taken out.
    fn sql_statement(&mut self) -> Result<StatementKind, SqlError> {
        let start = self.tokens.next;
        let mut into = None;
        loop {
            match self.tokens.peek(0) {
                None => return Err(self.tokens.unexpected("\";\"")),
                Some(Token::SemiColon) => break,
                _ if self.tokens.is_word(0, "INTO") && !self.follows_insert() => {
                    let from = self.tokens.next;
                    if into.is_some() {
                        let error = SqlError::new(SqlState::SYNTAX_ERROR, "INTO specified more than once");
                        return Err(error.at(self.tokens.position()));
                    }
                    self.tokens.next += 1;
                    let clause = self.target_clause()?;
                    into = Some((clause, from..self.tokens.next));
                }
                _ => self.tokens.next += 1,
            }
        }
        let end = self.tokens.next;
        self.tokens.next = start;
        let (into, left_out) = into.map_or((None, None), |(clause, range)| (Some(clause), Some(range)));
        let statement = self.tokens.statement(end, left_out)?;
        self.tokens.expect(&Token::SemiColon)?;
        Ok(StatementKind::Sql { statement: Box::new(statement), into })
    }

    /// `INSERT INTO` and `MERGE INTO` are no INTO of PL/pgSQL.
    fn follows_insert(&self) -> bool {
        self.tokens.previous_is_word("INSERT") || self.tokens.previous_is_word("MERGE")
    }

    fn target_clause(&mut self) -> Result<IntoClause, SqlError> {
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
    fn get_diagnostics(&mut self) -> Result<StatementKind, SqlError> {
        self.tokens.next += 1;
        if self.tokens.accept_word("STACKED") {
            return self.get_stacked_diagnostics();
        }
        self.tokens.accept_word("CURRENT");
        self.tokens.expect_word("DIAGNOSTICS")?;
        let mut targets: Vec<Target> = Vec::new();
        loop {
            targets.push(self.target("a variable")?);
            if !self.tokens.accept(&Token::Assignment) {
                self.tokens.expect(&Token::Eq)?;
            }
            if !self.tokens.accept_word("ROW_COUNT") {
                return Err(match self.tokens.peek_word(0).as_deref() {
                    Some(
                        item @ ("RETURNED_SQLSTATE"
                        | "MESSAGE_TEXT"
                        | "PG_EXCEPTION_DETAIL"
                        | "PG_EXCEPTION_HINT"
                        | "PG_EXCEPTION_CONTEXT"),
                    ) => {
                        let message =
                            format!("diagnostics item {item} is not allowed in GET CURRENT DIAGNOSTICS");
                        SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.tokens.position())
                    }
                    Some("PG_CONTEXT") => {
                        SqlError::unsupported("GET DIAGNOSTICS … = PG_CONTEXT").at(self.tokens.position())
                    }
                    _ => {
                        let message = "unrecognized GET DIAGNOSTICS item";
                        SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.tokens.position())
                    }
                });
            }
            if self.tokens.accept(&Token::SemiColon) {
                return Ok(StatementKind::GetDiagnostics { targets });
            }
            self.tokens.expect(&Token::Comma)?;
        }
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
                        RowSource::Static(Box::new(self.tokens.statement(end, None)?))
                    }
                };
                self.tokens.expect(&Token::SemiColon)?;
                Ok(StatementKind::ReturnQuery(source))
            }
            _ => Ok(StatementKind::Return(Some(self.expression_until_semicolon()?))),
        }
    }

    fn raise(&mut self) -> Result<StatementKind, SqlError> {
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
        let options =
            if self.tokens.accept_word("USING") { self.raise_options(&subject)? } else { Vec::new() };
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

    fn raise_options(&mut self, subject: &RaiseSubject) -> Result<Vec<(RaiseOption, Expression)>, SqlError> {
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
            let given = match subject {
                RaiseSubject::Format { .. } => option == RaiseOption::Message,
                RaiseSubject::Condition { .. } => option == RaiseOption::ErrorCode,
                _ => false,
            };
            if given || options.iter().any(|(known, _)| *known == option) {
                let message = format!("RAISE option already specified: {word}");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
            }
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

fn comma_or_semicolon(tokens: &super::tokens::Tokens<'_>, ahead: usize) -> bool {
    matches!(tokens.peek(ahead), Some(Token::Comma | Token::SemiColon))
}
