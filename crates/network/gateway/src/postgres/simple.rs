//! The simple protocol: query strings.

use super::advisory_text::{only_locks_for_session, waits_for_a_lock};
use super::encode::{ColumnsTold, data_row, row_description};
use super::prepared::without_position;
use super::script::{self, Class, Statement};
use super::session::{Failure, Session, problem};
use super::statement::{Body, ParsedStatement, check_length, shift};
use super::transaction::Opened;
use super::transaction_command::{self, Modes, TransactionCommand};
use crate::limits;
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};
use std::sync::Arc;
use types::session_format::within_format;
use types::{Payload, SqlState, StatementResult, Value};

/// How many of the first statements are one transaction in PostgreSQL, where there is one among them that is not alone and that a
/// script cannot have: EXECUTE, or what makes a temporary table; or a write, where the session is to read only.
fn implicit_block(statements: &[Statement<'_>], classes: &[Class], reads_only: bool) -> Option<usize> {
    let runs = |class: &&Class| matches!(class, Class::Read | Class::Write | Class::Execute);
    let count = classes.iter().take_while(|class| runs(class) || **class == Class::Prepare).count();
    let run = &classes[..count];
    let needs_block = run.contains(&Class::Execute)
        || (reads_only && run.contains(&Class::Write))
        || statements[..count].iter().any(makes_temporary);
    (needs_block && run.iter().filter(runs).count() > 1).then_some(count)
}

/// Whether a statement is `CREATE TEMPORARY TABLE` or one of its kind.
fn makes_temporary(statement: &Statement<'_>) -> bool {
    let is = |at: usize, words: &[&str]| {
        statement.lexemes.get(at).is_some_and(|lexeme| words.iter().any(|word| lexeme.is(word)))
    };
    let kind = 1 + usize::from(is(1, &["local", "global"]));
    is(0, &["create"]) && is(kind, &["temp", "temporary"])
}

impl Session {
    pub(super) async fn simple_query(&mut self, sql: &str) -> Result<(), Failure> {
        check_length(sql)?;
        let statements = script::split(sql);
        if statements.is_empty() {
            self.connection.put(&EmptyQueryResponse::new());
            return Ok(());
        }
        if statements.len() > limits::STATEMENTS_MAX {
            let message =
                format!("a query string has at most {} statements (STATEMENTS_MAX)", limits::STATEMENTS_MAX);
            return Err(problem(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let catalog = self.known_schema();
        let classes: Vec<Class> =
            statements.iter().map(|statement| script::classify(statement, &catalog)).collect();
        drop(catalog);
        let mut at = 0;
        while at < statements.len() {
            at += self.simple_step(sql, &statements[at..], &classes[at..]).await?;
        }
        Ok(())
    }

    /// Runs the first statement, or the first that make one transaction; returns how many.
    async fn simple_step(
        &mut self,
        sql: &str,
        statements: &[Statement<'_>],
        classes: &[Class],
    ) -> Result<usize, Failure> {
        // Locks of the session are no part of the transaction behind them, which begins once the session has them.
        let locks_first = classes[0] == Class::Read && only_locks_for_session(&statements[0]);
        if self.block.is_none() && !locks_first {
            if let Some(count) = implicit_block(statements, classes, self.reads_only()) {
                self.run_implicit_block(sql, &statements[..count], &classes[..count]).await?;
                return Ok(count);
            }
            // What is known as a whole is ordered without anybody having looked at whether it writes.
            if !self.reads_only()
                && let Some(count) = self.whole_transaction(sql, statements, classes).await?
            {
                return Ok(count);
            }
        }
        self.simple_statement(sql, &statements[0], classes[0]).await?;
        Ok(1)
    }

    async fn simple_statement(
        &mut self,
        sql: &str,
        statement: &Statement<'_>,
        class: Class,
    ) -> Result<(), Failure> {
        let start = statement.start;
        self.check_not_failed(class.ends_block())?;
        let parsed = self.parse(statement, class, Vec::new()).await;
        let parsed = parsed.map_err(|failure| shift(failure, sql, start))?;
        if !parsed.parameters.is_empty() {
            return Err(problem(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        // A block may change the catalog before it runs, and nobody has been told its columns.
        let parsed = Arc::new(ParsedStatement { described: false, ..parsed });
        self.run_simple(&parsed).await.map_err(|failure| shift(failure, sql, start))
    }

    /// Runs statements as a block that nobody has begun. What an EXECUTE runs, and what a temporary table is, is known when their turn has
    /// come, so that they cannot be one script.
    async fn run_implicit_block(
        &mut self,
        sql: &str,
        statements: &[Statement<'_>],
        classes: &[Class],
    ) -> Result<(), Failure> {
        self.open_block(Opened::ByItself);
        for (statement, class) in statements.iter().zip(classes) {
            if let Err(failure) = self.simple_statement(sql, statement, *class).await {
                self.roll_back();
                return Err(failure);
            }
        }
        self.commit().await.map(drop)
    }

    /// Runs the first statements as one transaction if they are known to be one: a run of statements with a write among
    /// them, or BEGIN, such a run and COMMIT. What is known as a whole needs no snapshot and is never serialized anew.
    async fn whole_transaction(
        &mut self,
        sql: &str,
        statements: &[Statement<'_>],
        classes: &[Class],
    ) -> Result<Option<usize>, Failure> {
        let data = |class: &Class| matches!(class, Class::Read | Class::Write);
        let run = classes.iter().take_while(|class| data(class)).count();
        if run > 1 && classes[..run].contains(&Class::Write) {
            self.transaction(sql, &statements[..run], &classes[..run]).await?;
            return Ok(Some(run));
        }
        let command = |index: usize| {
            let parsed = transaction_command::parse(&statements[index]);
            parsed.map_err(|error| shift(error.into(), sql, statements[index].start))
        };
        let plain = TransactionCommand::Begin(Modes::default());
        let begins = classes[0] == Class::Begin && command(0)? == plain;
        let inner = classes[1..].iter().take_while(|class| data(class)).count();
        let ends = classes.get(inner + 1) == Some(&Class::Commit);
        if !begins || !ends || !classes[1..=inner].contains(&Class::Write) {
            return Ok(None);
        }
        if command(inner + 1)? != (TransactionCommand::Commit { chain: false }) {
            return Ok(None);
        }
        self.connection.put(&CommandComplete::new("BEGIN".into()));
        if let Err(failure) = self.transaction(sql, &statements[1..=inner], &classes[1..=inner]).await {
            self.open_failed_block();
            return Err(failure);
        }
        self.connection.put(&CommandComplete::new("COMMIT".into()));
        Ok(Some(inner + 2))
    }

    /// Runs one statement and sends everything that it gives.
    async fn run_simple(&mut self, statement: &Arc<ParsedStatement>) -> Result<(), Failure> {
        if !matches!(statement.body, Body::Execute) {
            return self.run_with(statement, Vec::new()).await;
        }
        let (statement, parameters) = self.executed(statement).await?;
        self.run_with(&statement, parameters).await.map_err(without_position)
    }

    async fn run_with(
        &mut self,
        statement: &Arc<ParsedStatement>,
        parameters: Vec<Value>,
    ) -> Result<(), Failure> {
        if let Body::Copy(copy) = &statement.body {
            let copy = Arc::clone(copy);
            return self.copy_in(copy).await;
        }
        if let Body::CopyOut(copy) = &statement.body {
            let copy = Arc::clone(copy);
            return self.copy_out(&copy).await;
        }
        if let Some(cached) = self.streamed(statement).await? {
            return self.send_rows(statement, cached, parameters, (true, &[])).await;
        }
        let result = self.execute_statement(statement, parameters).await?;
        let _memory = self.share_of(&result)?;
        let rows = statement.returns_rows || !result.columns.is_empty();
        self.send_result(&result, &statement.told, rows).await
    }

    async fn send_result(
        &mut self,
        result: &StatementResult,
        told: &ColumnsTold,
        rows: bool,
    ) -> Result<(), Failure> {
        self.connection.put_notices(&result.notices);
        if rows {
            self.connection.put(&row_description(&result.columns, told, &[]));
            let format = self.settings.format();
            for row in &result.rows {
                within_format(format, || data_row(self.connection.output(), &result.columns, row, &[]));
                self.connection.flush_if_full().await?;
            }
        }
        self.connection.put(&CommandComplete::new(result.tag.clone()));
        Ok(())
    }

    /// Several statements as one transaction: PostgreSQL's implicit transaction of a query string.
    async fn transaction(
        &mut self,
        sql: &str,
        statements: &[Statement<'_>],
        classes: &[Class],
    ) -> Result<(), Failure> {
        let (Some(first), Some(last)) = (statements.first(), statements.last()) else { return Ok(()) };
        let (mut temporary, mut is_given_rows, mut told) =
            (false, false, Vec::with_capacity(statements.len()));
        for (index, statement) in statements.iter().enumerate() {
            self.tell_of_cut_names(statement);
            self.note_locks_named(statement);
            // Later statements may need what earlier ones create; a syntax error is one in any case, and is not worth
            // a place in a block.
            match self.prepare(statement.text, &[]).await {
                Err(error) if index == 0 || error.state == SqlState::SYNTAX_ERROR => {
                    return Err(shift(error.into(), sql, statement.start));
                }
                Ok(prepared) => {
                    temporary |= prepared.temporary;
                    is_given_rows |= prepared.is_given_rows;
                    told.push(ColumnsTold::of(&prepared.origins, || self.known_catalog()));
                }
                // Where its columns are is known once it has run.
                Err(_) => told.push(ColumnsTold::default()),
            }
        }
        if is_given_rows {
            return self.run_implicit_block(sql, statements, classes).await;
        }
        let text = self.script_settings().in_front_of(&sql[first.start..last.end()]).into_owned();
        let payload = Payload::Script { sql: text, parameters: Vec::new() };
        let local = if temporary { self.run_temporary(payload.clone()).await } else { Ok(None) };
        let executed = match local {
            Ok(Some(results)) => Ok(results),
            Ok(None) => self.write_waiting(payload, statements.iter().any(waits_for_a_lock)).await,
            Err(error) => Err(error),
        };
        let results = executed.map_err(|error| shift(error.into(), sql, first.start))?;
        told.resize_with(results.len(), ColumnsTold::default);
        for (result, told) in results.iter().zip(&told) {
            self.send_result(result, told, !result.columns.is_empty()).await?;
        }
        Ok(())
    }
}
