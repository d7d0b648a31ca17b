//! What a statement is, and running it.

use super::advisory_text::{
    BlockLock, is_lock_function, lock_for_block, names_a_lock, names_unlock_all, only_locks_for_session,
    waits_for_a_lock,
};
use super::copy::{self, CopyCommand, CopyStatement};
use super::copy_out::CopyOut;
use super::cursor::CursorStatement;
use super::cursor_command;
use super::decode::types_of_oids;
use super::encode::{ColumnsTold, wire_type};
use super::prepared_command;
use super::script::{self, Class, Lexeme, Statement};
use super::session::{Failure, Session};
use super::session_statement::{self, SessionStatement};
use super::set_config::{self, SetConfig};
use super::transaction_command::{self, TransactionCommand};
use crate::access::RolePassword;
use crate::{Prepared, StatementKind, TemporaryTables, limits};
use parking_lot::{Mutex, MutexGuard};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use types::limits::{NAME_BYTES_MAX, NOTICES_MAX};
use types::{
    Catalog, DataType, ExecutionVersion, MemoryShare, Notice, Notifications, OutputColumn, Payload,
    RequestId, ScriptSettings, SearchPath, SessionStep, Severity, SqlError, SqlState, StatementResult, Value,
};

/// `55006` somebody else uses it.
const OBJECT_IN_USE: SqlState = SqlState(*b"55006");

/// What a statement is.
pub(super) enum Body {
    /// Nothing but white space.
    Empty,
    /// Answered by the session.
    Session(SessionStatement),
    /// Begins, ends or divides a transaction block.
    Transaction(TransactionCommand),
    /// Answered by the catalogue.
    Catalogue(Vec<SetConfig>),
    /// COPY FROM STDIN.
    Copy(Arc<CopyStatement>),
    /// COPY TO STDOUT.
    CopyOut(Arc<CopyOut>),
    /// About cursors.
    Cursor(CursorStatement),
    /// PREPARE.
    Prepare,
    /// EXECUTE, with EXPLAIN or not: what it runs is looked for when it runs.
    Execute,
    /// CREATE ROLE and ALTER ROLE with a password.
    Password(RolePassword),
    /// Answered by the database; prepared again when the catalog or the execution version changes.
    Database(Mutex<Arc<Prepared>>),
}

/// What a statement has to do with advisory locks, as far as its words say it.
#[derive(Default)]
pub(super) struct Locks {
    /// It names a function about locks.
    pub(super) are_named: bool,
    /// It takes or gives back locks of the session, and does nothing else.
    pub(super) only_for_session: bool,
    /// It takes a lock for the transaction, and does nothing else.
    pub(super) for_block: Option<BlockLock>,
    /// It may wait for one.
    pub(super) waits: bool,
}

/// A statement after Parse.
pub(super) struct ParsedStatement {
    pub(super) sql: String,
    pub(super) body: Body,
    /// What the client calls the parameters' types; 0 where it left that to us.
    pub(super) given: Vec<u32>,
    pub(super) parameters: Vec<DataType>,
    pub(super) columns: Vec<OutputColumn>,
    /// What the client is told of the columns besides.
    pub(super) told: ColumnsTold,
    pub(super) returns_rows: bool,
    /// The client has heard of its columns, or may have: they stay what they are.
    pub(super) described: bool,
    /// What it meant when it was bound depended on these.
    pub(super) settings: ScriptSettings,
    pub(super) locks: Locks,
}

impl ParsedStatement {
    /// Whether it ends a transaction block, or undoes a part of it: what is taken after an error.
    pub(super) fn ends_block(&self) -> bool {
        use TransactionCommand::{Commit, Rollback, RollbackTo};
        matches!(self.body, Body::Empty | Body::Transaction(Commit { .. } | Rollback { .. } | RollbackTo(_)))
    }

    /// Those of all parameters.
    pub(super) fn parameter_oids(&self) -> Vec<u32> {
        (0..self.parameters.len()).map(|index| self.parameter_oid(index)).collect()
    }

    /// Object identifier of the type of parameter `index`, as the client was or will be told.
    pub(super) fn parameter_oid(&self, index: usize) -> u32 {
        match self.given.get(index) {
            Some(oid) if *oid != 0 => *oid,
            _ => self.parameters.get(index).map_or(0, |data_type| wire_type(*data_type).oid()),
        }
    }
}

/// Whether a statement gives rows, of whatever columns. SET CONSTRAINTS reads only, and gives none.
fn returns_rows(prepared: &Prepared, class: Class) -> bool {
    (prepared.kind == StatementKind::Read && class == Class::Read) || !prepared.columns.is_empty()
}

impl Session {
    /// The rules that the ledger is executed with.
    pub(super) fn version(&self) -> ExecutionVersion {
        self.database.binding().execution_version
    }

    /// Finds out what a statement is and binds it.
    pub(super) async fn parse(
        &mut self,
        statement: &Statement<'_>,
        class: Class,
        given: Vec<u32>,
    ) -> Result<ParsedStatement, Failure> {
        self.tell_of_cut_names(statement);
        let mut sql = statement.text.to_string();
        if statement.creates_routine() && !self.settings.checks_bodies() {
            // A transaction says itself what it depends on.
            sql.push_str("\nSET check_function_bodies TO off");
        }
        let types = types_of_oids(&given, || self.known_catalog(), self.version());
        let none = |body| ParsedStatement { body, ..empty_statement(given.clone()) };
        Ok(match class {
            Class::Read | Class::Write => self.parse_data(statement, class, (sql, &types), given).await?,
            Class::Catalogue => {
                let sets = set_config::find(statement)?;
                let query = self.catalogue.prepare(&self.known_catalog(), &sql, &self.facts(), &types)?;
                let (parameters, mut columns) = (query.parameters().to_vec(), query.columns().to_vec());
                set_config::told(&sets, &mut columns);
                let (returns_rows, facts) = (true, query.facts_of_columns());
                let told = ColumnsTold { type_numbers: query.type_numbers().to_vec(), facts };
                ParsedStatement {
                    sql,
                    parameters,
                    columns,
                    told,
                    returns_rows,
                    ..none(Body::Catalogue(sets))
                }
            }
            Class::Session => {
                let session = session_statement::parse(statement)?;
                let columns = session.columns();
                let returns_rows = !columns.is_empty();
                ParsedStatement { columns, returns_rows, ..none(Body::Session(session)) }
            }
            Class::Password => match RolePassword::find(&sql) {
                Some(password) => none(Body::Password(password)),
                None => return Err(script::syntax_error(statement, statement.lexemes.last()).into()),
            },
            Class::Copy => {
                let tables = self.known_tables()?;
                match copy::parse(statement, &tables, &self.search_path())? {
                    CopyCommand::From(copy) => none(Body::Copy(Arc::new(copy))),
                    CopyCommand::To(copy) => {
                        none(Body::CopyOut(Arc::new(self.parse_copy_out(statement, copy).await?)))
                    }
                }
            }
            Class::Cursor => {
                let command = cursor_command::parse(statement)?;
                let (parsed, cursor) = self.parse_cursor(statement, command, given).await?;
                ParsedStatement { sql, body: Body::Cursor(cursor), ..parsed }
            }
            Class::Prepare => {
                prepared_command::parse_prepare(statement)?;
                ParsedStatement { sql, ..none(Body::Prepare) }
            }
            Class::Execute => {
                let execute = prepared_command::parse_execute(statement)?;
                self.describe_execute(sql, &execute, given)
            }
            Class::Begin | Class::Commit | Class::Rollback | Class::Transaction => {
                none(Body::Transaction(transaction_command::parse(statement)?))
            }
            Class::Refused { what, hint } => return Err(SqlError::unsupported(what).hint(hint).into()),
        })
    }

    /// Binds what the database answers.
    async fn parse_data(
        &mut self,
        statement: &Statement<'_>,
        class: Class,
        (sql, types): (String, &[DataType]),
        given: Vec<u32>,
    ) -> Result<ParsedStatement, Failure> {
        self.note_locks_named(statement);
        let prepared = self.prepare(&sql, types).await?;
        let (parameters, columns) = (prepared.parameters.clone(), prepared.columns.clone());
        let returns_rows = returns_rows(&prepared, class);
        let told = ColumnsTold::of(&prepared.origins, || self.known_catalog());
        let body = Body::Database(Mutex::new(Arc::new(prepared)));
        let (settings, locks) = (self.script_settings(), self.locks_of(statement));
        let described = ParsedStatement { body, ..empty_statement(given) };
        Ok(ParsedStatement { sql, parameters, columns, told, returns_rows, settings, locks, ..described })
    }

    /// What a statement has to do with advisory locks.
    fn locks_of(&self, statement: &Statement<'_>) -> Locks {
        let waits = waits_for_a_lock(statement);
        // A ledger may have functions of these names from before.
        let own = |lexeme: &Lexeme<'_>| self.known_schema().has_routine(&lexeme.value());
        let is_known = self.version() >= ExecutionVersion::V14
            && !statement.lexemes.iter().any(|lexeme| is_lock_function(lexeme) && own(lexeme));
        if !is_known {
            return Locks::default();
        }
        let only_for_session = only_locks_for_session(statement);
        let (are_named, for_block) = (names_a_lock(statement), lock_for_block(statement));
        Locks { are_named, only_for_session, for_block, waits }
    }

    /// Says which names are longer than names may be, as PostgreSQL does: their first bytes count.
    pub(super) fn tell_of_cut_names(&mut self, statement: &Statement<'_>) {
        // However many there are.
        let names: Vec<String> = statement.long_names().take(NOTICES_MAX).collect();
        if names.is_empty() || self.version() < ExecutionVersion::V14 {
            return;
        }
        let short = |name: &str| name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_string();
        let notice = |name: String| {
            let message = format!("identifier \"{name}\" will be truncated to \"{}\"", short(&name));
            let severity = Severity::Notice;
            Notice { severity, report: SqlError::new(SqlState::NAME_TOO_LONG, message) }
        };
        let notices: Vec<Notice> = names.into_iter().map(notice).collect();
        self.connection.put_notices(&notices);
    }

    /// Runs a statement to its end.
    pub(super) async fn execute_statement(
        &mut self,
        statement: &ParsedStatement,
        parameters: Vec<Value>,
    ) -> Result<StatementResult, Failure> {
        Ok(match &statement.body {
            // What copies or executes is known to who called.
            Body::Empty | Body::Copy(_) | Body::CopyOut(_) | Body::Execute => StatementResult::default(),
            Body::Prepare => self.prepare_statement(&statement.sql).await?,
            Body::Session(SessionStatement::Sleep(time)) => {
                let slept = async {
                    tokio::time::sleep(*time).await;
                    Ok(session_statement::slept())
                };
                self.wait(slept, false).await?
            }
            Body::Session(session) => {
                if matches!(session, SessionStatement::DiscardAll) && self.block.is_none() {
                    self.give_back_locks().await?;
                }
                self.session_statement(session)?
            }
            Body::Transaction(command) => self.transaction_command(command).await?,
            Body::Cursor(cursor) => self.cursor_statement(cursor, (&statement.sql, parameters)).await?,
            Body::Password(password) => self.set_password(password).await?,
            Body::Catalogue(sets) => self.ask_catalogue(statement, sets, parameters).await?,
            Body::Database(cached) => {
                self.use_locks(statement.locks.are_named);
                let prepared = self.current(statement, cached).await?;
                let sql = self.script_settings().in_front_of(&statement.sql).into_owned();
                if statement.locks.only_for_session && prepared.kind == StatementKind::Write {
                    let payload = Payload::Script { sql, parameters };
                    let results = self.write_waiting(payload, statement.locks.waits).await?;
                    return Ok(results.into_iter().next_back().unwrap_or_default());
                }
                if let Some(lock) = statement.locks.for_block.as_ref().filter(|_| self.block.is_some()) {
                    return Ok(self.lock_for_block(lock, parameters, statement).await?);
                }
                if self.block.is_some() {
                    return Ok(self.run_in_block_waiting(SessionStep::Run { sql, parameters }).await?);
                }
                if prepared.is_given_rows || (prepared.kind == StatementKind::Write && self.reads_only()) {
                    return self.run_as_block(SessionStep::Run { sql, parameters }).await;
                }
                if let Some(lock) = prepared.lock {
                    self.check_may_write(&format!("SELECT {lock}"))?;
                }
                if prepared.temporary {
                    let payload = Payload::Script { sql: sql.clone(), parameters: parameters.clone() };
                    if let Some(results) = self.run_temporary(payload).await? {
                        return Ok(results.into_iter().next_back().unwrap_or_default());
                    }
                }
                match prepared.kind {
                    StatementKind::Read => self.read(statement, cached, prepared, parameters).await?,
                    StatementKind::Write => {
                        let payload = Payload::Script { sql, parameters };
                        let mut results = self.write_waiting(payload, statement.locks.waits).await?;
                        results.pop().unwrap_or_default()
                    }
                }
            }
        })
    }

    async fn ask_catalogue(
        &mut self,
        statement: &ParsedStatement,
        sets: &[SetConfig],
        parameters: Vec<Value>,
    ) -> Result<StatementResult, Failure> {
        if names_unlock_all(&statement.sql) {
            self.give_back_locks().await?;
        }
        self.note_query();
        let known = self.known_catalog();
        let types = types_of_oids(&statement.given, || Arc::clone(&known), self.version());
        let catalogue = Arc::clone(&self.catalogue);
        let mut facts = self.facts();
        if statement.sql.to_ascii_lowercase().contains("pg_locks") {
            facts.advisory_locks = self.shown_locks(&known).await?;
        }
        let sql = statement.sql.clone();
        let interest = Interest::default();
        let interrupt = interest.interrupt();
        let work = blocking(move || catalogue.run(&known, &sql, &facts, &types, &parameters, &interrupt));
        let mut result = self.wait(work, false).await?;
        self.set_what_was_given(sets, &mut result)?;
        Ok(result)
    }

    /// The prepared statement, bound to the current catalog with the current rules.
    pub(super) async fn current(
        &self,
        statement: &ParsedStatement,
        cached: &Mutex<Arc<Prepared>>,
    ) -> Result<Arc<Prepared>, SqlError> {
        let prepared = Arc::clone(&cached.lock());
        let block = self.open_statements();
        let block = block.and_then(|block| block.lock().as_ref().map(|block| block.binding()));
        let binding = block.unwrap_or_else(|| self.database.binding());
        let is_current = prepared.binding == binding && !binding.is_of_block();
        if is_current && statement.settings == self.script_settings() {
            return Ok(prepared);
        }
        let again = self.prepare(&statement.sql, &statement.parameters).await?;
        let same = again.columns == prepared.columns
            && again.parameters == prepared.parameters
            && again.kind == prepared.kind;
        if statement.described && !same {
            let message = "cached plan must not change result type";
            return Err(
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("prepare the statement again")
            );
        }
        let again = Arc::new(again);
        *cached.lock() = Arc::clone(&again);
        Ok(again)
    }

    /// The session's temporary tables, unless a statement that was cancelled still works on them: nobody waits for that on
    /// a thread that serves other sessions too.
    pub(super) fn temporary(&self) -> Result<MutexGuard<'_, Box<dyn TemporaryTables>>, SqlError> {
        self.temporary.try_lock().ok_or_else(|| {
            let message = "a cancelled statement still works on the session's temporary tables";
            SqlError::new(OBJECT_IN_USE, message).hint("Wait a moment, or use another session.")
        })
    }

    /// The tables that the next statement knows.
    pub(super) fn known_tables(&self) -> Result<Arc<Catalog>, SqlError> {
        if let Some(block) = self.open_statements()
            && let Some(block) = block.lock().as_mut()
        {
            return block.catalog();
        }
        self.temporary()?.catalog()
    }

    /// The same for those who only describe what there is: where it cannot be had, as the ledger has it.
    pub(super) fn known_catalog(&self) -> Arc<Catalog> {
        self.known_tables().unwrap_or_else(|_| self.database.catalog())
    }

    /// The schemas that the next statement knows, and all else that no temporary table changes: those are not waited for.
    pub(super) fn known_schema(&self) -> Arc<Catalog> {
        match self.open_statements() {
            Some(_) => self.known_catalog(),
            None => self.database.catalog(),
        }
    }

    /// Where the names of the next statement are looked for.
    pub(super) fn search_path(&self) -> SearchPath {
        self.settings.search_path(&self.identity.user, &self.known_schema(), self.version())
    }

    /// What stands in front of the next statement.
    pub(super) fn script_settings(&self) -> ScriptSettings {
        let (search_path, format) = (self.search_path(), self.settings.format());
        ScriptSettings { search_path, format, advisory: self.advisory_session() }
    }

    /// Runs what concerns temporary tables outside of a block; `None` where it does not.
    pub(super) async fn run_temporary(
        &self,
        payload: Payload,
    ) -> Result<Option<Vec<StatementResult>>, SqlError> {
        drop(self.temporary()?);
        self.wait_for_min_height().await?;
        let (temporary, role) = (Arc::clone(&self.temporary), self.identity.role.clone());
        let _interest = Interest(self.temporary()?.interrupt());
        self.wait(blocking(move || temporary.lock().run(&role, &payload).transpose()), false).await
    }

    /// Parses and binds; long statements on another thread.
    pub(super) async fn prepare(&self, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
        let prepared = self.bind(sql, types).await?;
        let restricted = match self.identity.role.is_empty() {
            true => &prepared.restricted_for_administrators,
            false => &prepared.restricted_for_roles,
        };
        match restricted.as_ref().filter(|_| self.settings.refuses_row_security()) {
            Some(table) => {
                let message =
                    format!("query would be affected by row-level security policy for table \"{table}\"");
                Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
                    .hint("SET row_security = on gives the rows that policies let through."))
            }
            None => Ok(prepared),
        }
    }

    async fn bind(&self, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
        if self.open_statements().is_none() {
            // What the session asks to see may have been created there.
            self.wait_for_min_height().await?;
        }
        let sql = &*self.script_settings().in_front_of(sql);
        if let Some(block) = self.open_statements()
            && let Some(block) = block.lock().as_mut()
        {
            return block.prepare(sql, types);
        }
        if let Some(prepared) = self.temporary()?.prepare(sql, types)? {
            return Ok(prepared);
        }
        const INLINE_BYTES_MAX: usize = 8 * 1024;
        if sql.len() <= INLINE_BYTES_MAX {
            return self.database.prepare(sql, types);
        }
        let (database, sql, types) = (Arc::clone(&self.database), sql.to_string(), types.to_vec());
        blocking(move || database.prepare(&sql, &types)).await
    }

    async fn read(
        &self,
        statement: &ParsedStatement,
        cached: &Mutex<Arc<Prepared>>,
        mut prepared: Arc<Prepared>,
        mut parameters: Vec<Value>,
    ) -> Result<StatementResult, SqlError> {
        self.wait_for_min_height().await?;
        loop {
            let role = self.identity.role.clone();
            let interest = Interest::default();
            let interrupt = interest.interrupt();
            let work = blocking(move || {
                let result = prepared.query.run(&role, &parameters, &interrupt)?;
                Ok((result, parameters))
            });
            match self.wait(work, false).await? {
                (Some(result), _) => return Ok(result),
                (None, again) => parameters = again,
            }
            // A block has changed the catalog, or the rules, since it was bound.
            prepared = self.current(statement, cached).await?;
        }
    }

    /// What a result takes as long as its client has not got it.
    ///
    /// # Errors
    /// `53200` where the node has too little memory for all of its queries.
    pub(super) fn share_of(&self, result: &StatementResult) -> Result<MemoryShare, SqlError> {
        let mut share = MemoryShare::of(&self.database.query_memory());
        share.grow_to(result.rows.iter().map(|row| row_bytes(row)).sum())?;
        Ok(share)
    }

    /// Has a transaction ordered and waits until it is final; the client is told at which height.
    pub(super) async fn write(&mut self, payload: Payload) -> Result<Vec<StatementResult>, SqlError> {
        self.write_as(RequestId(crypto::random_bytes()), payload).await
    }

    /// The same under a request id that has been chosen before.
    pub(super) async fn write_as(
        &mut self,
        request: RequestId,
        payload: Payload,
    ) -> Result<Vec<StatementResult>, SqlError> {
        let answer_at = self.settings.answer_at();
        let executing = self.database.execute(&self.identity.role, payload, request, answer_at);
        let executed = self.wait(executing, true).await?;
        self.committed_at(executed.height);
        let mut results = executed.results;
        if Notifications::take_from(&mut results).is_some() {
            self.notified_by = executed.transaction;
        }
        Ok(results)
    }

    /// Waits for `work`, for a cancel request, and for the statement's time to be up.
    pub(super) async fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, SqlError>>,
        writes: bool,
    ) -> Result<T, SqlError> {
        let cancelled = |why: &str| {
            let error = cancelled(why);
            if !writes {
                return error;
            }
            error.detail("Only the wait ended: the transaction was submitted and may still commit; see entente.transactions.")
        };
        let time_is_up = time_is_up(self.settings.statement_timeout());
        tokio::select! {
            biased;
            result = work => result,
            () = self.cancel.notified() => Err(cancelled("user request")),
            () = time_is_up => Err(cancelled("statement timeout")),
        }
    }
}

/// What a row takes in memory.
fn row_bytes(row: &[Value]) -> u64 {
    const ROW_BYTES: usize = 48;
    let long = row.iter().map(|value| match value {
        Value::Text(text) | Value::Char(text) | Value::Citext(text) => text.len(),
        Value::Hstore(store) => store.bytes().len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Json(text) => text.len(),
        Value::Jsonb(value) => value.bytes().len(),
        Value::Array(array) => size_of_val(array.values()),
        Value::Composite(row) => size_of_val(row.values()),
        Value::Bit(bits) | Value::VarBit(bits) => bits.bytes().len(),
        Value::Range(range) => range.bytes(),
        Value::Multirange(ranges) => ranges.bytes(),
        _ => 0,
    });
    (ROW_BYTES + size_of_val(row) + long.sum::<usize>()) as u64
}

/// Somebody's interest in a result: when it is dropped, the work for it is told to end.
#[derive(Default)]
pub(super) struct Interest(Arc<AtomicBool>);

impl Interest {
    /// In what works as long as this is not set.
    pub(super) fn of(interrupt: Arc<AtomicBool>) -> Interest {
        Interest(interrupt)
    }

    /// Set when nobody waits any more.
    pub(super) fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A statement that ends before it has given all.
pub(super) fn cancelled(why: &str) -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, format!("canceling statement due to {why}"))
}

/// Waits for as long as a statement may take.
pub(super) async fn time_is_up(limit: Option<Duration>) {
    match limit {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

pub(super) fn empty_statement(given: Vec<u32>) -> ParsedStatement {
    ParsedStatement {
        sql: String::new(),
        body: Body::Empty,
        given,
        parameters: Vec::new(),
        columns: Vec::new(),
        told: ColumnsTold::default(),
        returns_rows: false,
        described: true,
        settings: ScriptSettings::default(),
        locks: Locks::default(),
    }
}

pub(super) fn check_length(sql: &str) -> Result<(), SqlError> {
    if sql.len() > limits::STATEMENT_BYTES_MAX {
        let (found, limit) = (sql.len(), limits::STATEMENT_BYTES_MAX);
        let message =
            format!("the query string has {found} bytes, the limit is {limit} (STATEMENT_BYTES_MAX)");
        return Err(
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("split it; for many rows use COPY")
        );
    }
    Ok(())
}

/// Moves an error's position from a statement to the query string that holds it.
pub(super) fn shift(failure: Failure, sql: &str, start: usize) -> Failure {
    match failure {
        Failure::Problem(mut error, context) => {
            error.position = error.position.map(|position| position + script::position(sql, start) - 1);
            Failure::Problem(error, context)
        }
        Failure::Closed => Failure::Closed,
    }
}

/// Runs work that needs the CPU on a thread where that does no harm.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a statement panicked");
        Err(SqlError::new(
            SqlState::INTERNAL_ERROR,
            "the statement failed unexpectedly; the node's log says more",
        ))
    })
}
