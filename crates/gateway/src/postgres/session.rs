//! One session: what its messages do.

use super::connection::{Closed, Connection, ReadError, Severity};
use super::copy::{self, CopyStatement};
use super::decode::{decode_parameter, type_of_oid};
use super::encode::{Format, data_row, row_description, wire_type};
use super::message::{Malformed, Message, Target};
use super::script::{self, Class, Statement};
use super::settings::{self, SessionStatement, Settings, WARNING};
use crate::catalog::{Catalogue, SessionFacts};
use crate::limits;
use crate::{Database, Prepared, StatementKind};
use bytes::Bytes;
use parking_lot::Mutex;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Notify;
use types::{DataType, OutputColumn, Payload, SqlError, SqlState, StatementResult, Value};

/// `26000` no such prepared statement.
const INVALID_STATEMENT_NAME: SqlState = SqlState(*b"26000");
/// `34000` no such portal.
const INVALID_CURSOR_NAME: SqlState = SqlState(*b"34000");
/// `42P03` a portal that exists already.
const DUPLICATE_CURSOR: SqlState = SqlState(*b"42P03");
/// `42P05` a prepared statement that exists already.
const DUPLICATE_STATEMENT: SqlState = SqlState(*b"42P05");
/// `55000` a portal that has run already.
const NOT_IN_PREREQUISITE_STATE: SqlState = SqlState(*b"55000");
/// `25P01` COMMIT without BEGIN.
const NO_ACTIVE_TRANSACTION: SqlState = SqlState(*b"25P01");

const TRANSACTIONS_HINT: &str = "every statement is a transaction of its own; put what belongs together into one \
     procedure, or send the statements in one query string, separated by semicolons";

/// Why a message could not be answered as asked.
pub(super) enum Failure {
    /// The connection is gone.
    Closed,
    /// The client is told.
    Problem(Box<SqlError>, Option<String>),
}

impl From<Closed> for Failure {
    fn from(_: Closed) -> Failure {
        Failure::Closed
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Problem(Box::new(error), None)
    }
}

fn problem(state: SqlState, message: impl Into<String>) -> Failure {
    SqlError::new(state, message).into()
}

/// What a statement is.
enum Body {
    /// Nothing but white space.
    Empty,
    /// Answered by the session.
    Session(SessionStatement),
    /// COMMIT or ROLLBACK without a transaction: a warning and this tag.
    NoTransaction(&'static str),
    /// Answered by DataFusion.
    Catalogue,
    /// COPY FROM STDIN.
    Copy(Arc<CopyStatement>),
    /// Answered by the database; prepared again when the catalog changes.
    Database(Mutex<Arc<Prepared>>),
}

/// A statement after Parse.
struct ParsedStatement {
    sql: String,
    body: Body,
    /// What the client calls the parameters' types; 0 where it left that to us.
    given: Vec<u32>,
    parameters: Vec<DataType>,
    columns: Vec<OutputColumn>,
    returns_rows: bool,
}

impl ParsedStatement {
    /// Object identifier of the type of parameter `index`, as the client was or will be told.
    fn parameter_oid(&self, index: usize) -> u32 {
        match self.given.get(index) {
            Some(oid) if *oid != 0 => *oid,
            _ => self.parameters.get(index).map_or(0, |data_type| wire_type(*data_type).oid()),
        }
    }
}

/// How far a portal is.
enum Progress {
    Ready,
    /// The result, and how many of its rows were sent.
    Rows(StatementResult, usize),
    Done,
}

/// A statement with its parameters.
struct Portal {
    statement: Arc<ParsedStatement>,
    parameters: Vec<Value>,
    formats: Vec<i16>,
    progress: Progress,
}

/// Who a session belongs to.
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) process: i32,
}

/// A started session.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) database: Arc<dyn Database>,
    catalogue: Arc<Catalogue>,
    identity: Identity,
    settings: Settings,
    pub(super) cancel: Arc<Notify>,
    statements: HashMap<String, Arc<ParsedStatement>>,
    portals: HashMap<String, Portal>,
    /// After an error of the extended protocol everything up to Sync is left out.
    skip_to_sync: bool,
}

impl Session {
    pub(super) fn new(
        connection: Connection,
        database: Arc<dyn Database>,
        catalogue: Arc<Catalogue>,
        identity: Identity,
        settings: Settings,
        cancel: Arc<Notify>,
    ) -> Session {
        let (statements, portals) = (HashMap::new(), HashMap::new());
        Session {
            connection,
            database,
            catalogue,
            identity,
            settings,
            cancel,
            statements,
            portals,
            skip_to_sync: false,
        }
    }

    /// Answers messages until the client goes.
    pub(super) async fn run(mut self) {
        if self.ready().await.is_err() {
            return;
        }
        loop {
            let message = match self.connection.read_message().await {
                Ok(Message::Terminate) | Err(ReadError::Closed) => return,
                Ok(message) => message,
                Err(ReadError::Malformed(Malformed::Violation(what))) => {
                    tracing::debug!(what, "a session ends");
                    self.connection.close_with(&SqlError::new(SqlState::PROTOCOL_VIOLATION, what)).await;
                    return;
                }
                Err(ReadError::Malformed(Malformed::Encoding { query, message })) => {
                    let error = SqlError::new(super::decode::CHARACTER_NOT_IN_REPERTOIRE, message);
                    self.connection.put_error(Severity::Error, &error, None);
                    self.skip_to_sync |= !query;
                    let sent = if query { self.ready().await } else { self.connection.flush().await };
                    if sent.is_err() {
                        return;
                    }
                    continue;
                }
            };
            if self.answer(message).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&mut self, message: Message) -> Result<(), Closed> {
        match message {
            Message::Sync => {
                self.skip_to_sync = false;
                self.portals.clear();
                self.ready().await
            }
            // Left over from a COPY that failed.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => Ok(()),
            _ if self.skip_to_sync => Ok(()),
            Message::Query(sql) => {
                self.portals.remove("");
                if let Err(failure) = self.simple_query(&sql).await {
                    self.report(failure)?;
                }
                self.ready().await
            }
            other => match self.extended(other).await {
                Ok(()) => self.connection.flush_if_full().await,
                Err(failure) => {
                    self.report(failure)?;
                    self.skip_to_sync = true;
                    self.connection.flush().await
                }
            },
        }
    }

    fn report(&mut self, failure: Failure) -> Result<(), Closed> {
        match failure {
            Failure::Closed => Err(Closed),
            Failure::Problem(error, context) => {
                self.connection.put_error(Severity::Error, &error, context);
                Ok(())
            }
        }
    }

    async fn ready(&mut self) -> Result<(), Closed> {
        self.connection.put(&ReadyForQuery::new(TransactionStatus::Idle));
        self.connection.flush().await
    }

    // ---- simple protocol ----

    async fn simple_query(&mut self, sql: &str) -> Result<(), Failure> {
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
        let catalog = self.database.catalog();
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
        let data = |class: &Class| matches!(class, Class::Read | Class::Write);
        let run = classes.iter().take_while(|class| data(class)).count();
        if run > 1 && classes[..run].contains(&Class::Write) {
            self.transaction(sql, &statements[..run]).await?;
            return Ok(run);
        }
        if classes[0] == Class::Begin {
            let inner = classes[1..].iter().take_while(|class| data(class)).count();
            if classes.get(inner + 1) == Some(&Class::Commit) {
                self.connection.put(&CommandComplete::new("BEGIN".into()));
                if inner > 0 {
                    self.transaction(sql, &statements[1..=inner]).await?;
                }
                self.connection.put(&CommandComplete::new("COMMIT".into()));
                return Ok(inner + 2);
            }
        }
        let start = statements[0].start;
        let parsed = self.parse(&statements[0], classes[0], Vec::new()).await;
        let parsed = parsed.map_err(|failure| shift(failure, sql, start))?;
        if !parsed.parameters.is_empty() {
            return Err(problem(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        self.run_simple(&Arc::new(parsed)).await.map_err(|failure| shift(failure, sql, start))?;
        Ok(1)
    }

    /// Runs one statement and sends everything that it gives.
    async fn run_simple(&mut self, statement: &Arc<ParsedStatement>) -> Result<(), Failure> {
        if let Body::Copy(copy) = &statement.body {
            let copy = Arc::clone(copy);
            return self.copy_in(copy).await;
        }
        let result = self.execute_statement(statement, Vec::new()).await?;
        self.send_result(&result, statement.returns_rows || !result.columns.is_empty()).await
    }

    async fn send_result(&mut self, result: &StatementResult, rows: bool) -> Result<(), Failure> {
        self.connection.put_notices(&result.notices);
        if rows {
            self.connection.put(&row_description(&result.columns, &[]));
            for row in &result.rows {
                data_row(self.connection.output(), &result.columns, row, &[]);
                self.connection.flush_if_full().await?;
            }
        }
        self.connection.put(&CommandComplete::new(result.tag.clone()));
        Ok(())
    }

    /// Several statements as one transaction: PostgreSQL's implicit transaction of a query string.
    async fn transaction(&mut self, sql: &str, statements: &[Statement<'_>]) -> Result<(), Failure> {
        let (Some(first), Some(last)) = (statements.first(), statements.last()) else { return Ok(()) };
        for (index, statement) in statements.iter().enumerate() {
            // Later statements may need what earlier ones create; a syntax error is one in any case, and is not worth
            // a place in a block.
            if let Err(error) = self.prepare(statement.text, &[]).await
                && (index == 0 || error.state == SqlState::SYNTAX_ERROR)
            {
                return Err(shift(error.into(), sql, statement.start));
            }
        }
        let text = sql[first.start..last.end()].to_string();
        let results = self.write(Payload::Script { sql: text, parameters: Vec::new() }).await;
        for result in &results.map_err(|error| shift(error.into(), sql, first.start))? {
            self.send_result(result, !result.columns.is_empty()).await?;
        }
        Ok(())
    }

    // ---- extended protocol ----

    async fn extended(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Parse { name, sql, types } => self.on_parse(name, &sql, types).await,
            Message::Bind { portal, statement, formats, values, results } => {
                self.on_bind(portal, &statement, &formats, &values, results)
            }
            Message::Describe { target: Target::Statement, name } => self.describe_statement(&name),
            Message::Describe { target: Target::Portal, name } => self.describe_portal(&name),
            Message::Execute { portal, rows_max } => self.on_execute(&portal, rows_max).await,
            Message::Close { target, name } => {
                match target {
                    Target::Statement => drop(self.statements.remove(&name)),
                    Target::Portal => drop(self.portals.remove(&name)),
                }
                self.connection.put(&CloseComplete::new());
                Ok(())
            }
            Message::Flush => Ok(self.connection.flush().await?),
            Message::FunctionCall => {
                Err(SqlError::unsupported("the function call message").hint("use CALL or SELECT").into())
            }
            // Answered by the caller.
            Message::Query(_)
            | Message::Sync
            | Message::CopyData(_)
            | Message::CopyDone
            | Message::CopyFail(_)
            | Message::Terminate => Ok(()),
        }
    }

    async fn on_parse(&mut self, name: String, sql: &str, types: Vec<u32>) -> Result<(), Failure> {
        check_length(sql)?;
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(problem(
                DUPLICATE_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        if self.statements.len() >= limits::PREPARED_STATEMENTS_MAX && !self.statements.contains_key(&name) {
            let limit = limits::PREPARED_STATEMENTS_MAX;
            let message =
                format!("a session has at most {limit} prepared statements (PREPARED_STATEMENTS_MAX)");
            return Err(problem(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let statements = script::split(sql);
        let parsed = match statements.as_slice() {
            [] => empty_statement(types),
            [statement] => {
                let class = script::classify(statement, &self.database.catalog());
                let parsed = self.parse(statement, class, types).await;
                parsed.map_err(|failure| shift(failure, sql, statement.start))?
            }
            _ => {
                let message = "cannot insert multiple commands into a prepared statement";
                return Err(problem(SqlState::SYNTAX_ERROR, message));
            }
        };
        self.statements.insert(name, Arc::new(parsed));
        self.connection.put(&ParseComplete::new());
        Ok(())
    }

    fn statement(&self, name: &str) -> Result<Arc<ParsedStatement>, Failure> {
        let missing = || match name {
            "" => "unnamed prepared statement does not exist".to_string(),
            name => format!("prepared statement \"{name}\" does not exist"),
        };
        self.statements.get(name).cloned().ok_or_else(|| problem(INVALID_STATEMENT_NAME, missing()))
    }

    fn on_bind(
        &mut self,
        name: String,
        statement: &str,
        formats: &[i16],
        values: &[Option<Bytes>],
        results: Vec<i16>,
    ) -> Result<(), Failure> {
        let shown = statement;
        let statement = self.statement(statement)?;
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(problem(DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        if self.portals.len() >= limits::PORTALS_MAX {
            let message = format!("a session has at most {} portals (PORTALS_MAX)", limits::PORTALS_MAX);
            return Err(problem(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        check_counts(shown, &statement, formats, values, &results)?;
        let mut parameters = Vec::with_capacity(values.len());
        for (index, bytes) in values.iter().enumerate() {
            let (oid, data_type) = (statement.parameter_oid(index), statement.parameters[index]);
            parameters.push(decode_parameter(
                index,
                bytes.as_deref(),
                Format::of(formats, index),
                oid,
                data_type,
            )?);
        }
        self.portals
            .insert(name, Portal { statement, parameters, formats: results, progress: Progress::Ready });
        self.connection.put(&BindComplete::new());
        Ok(())
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), Failure> {
        let statement = self.statement(name)?;
        let types = (0..statement.parameters.len()).map(|index| statement.parameter_oid(index)).collect();
        self.connection.put(&ParameterDescription::new(types));
        self.describe_rows(&statement, &[]);
        Ok(())
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Failure> {
        let Some(portal) = self.portals.get(name) else {
            return Err(problem(INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist")));
        };
        let (statement, formats) = (Arc::clone(&portal.statement), portal.formats.clone());
        self.describe_rows(&statement, &formats);
        Ok(())
    }

    fn describe_rows(&mut self, statement: &ParsedStatement, formats: &[i16]) {
        if statement.returns_rows {
            self.connection.put(&row_description(&statement.columns, formats));
        } else {
            self.connection.put(&NoData::new());
        }
    }

    async fn on_execute(&mut self, name: &str, rows_max: usize) -> Result<(), Failure> {
        let Some(mut portal) = self.portals.remove(name) else {
            return Err(problem(INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist")));
        };
        let result = self.run_portal(name, &mut portal, rows_max).await;
        self.portals.insert(name.to_string(), portal);
        result
    }

    async fn run_portal(&mut self, name: &str, portal: &mut Portal, rows_max: usize) -> Result<(), Failure> {
        match &portal.statement.body {
            Body::Empty => {
                self.connection.put(&EmptyQueryResponse::new());
                return Ok(());
            }
            Body::Copy(copy) => {
                let copy = Arc::clone(copy);
                return self.copy_in(copy).await;
            }
            _ => {}
        }
        let (result, sent) = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Ready => {
                let parameters = std::mem::take(&mut portal.parameters);
                let result = self.execute_statement(&portal.statement, parameters).await?;
                self.connection.put_notices(&result.notices);
                (result, 0)
            }
            Progress::Rows(result, sent) => (result, sent),
            Progress::Done => {
                return Err(problem(NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run")));
            }
        };
        if !portal.statement.returns_rows {
            self.connection.put(&CommandComplete::new(result.tag));
            return Ok(());
        }
        let end = if rows_max == 0 {
            result.rows.len()
        } else {
            result.rows.len().min(sent.saturating_add(rows_max))
        };
        for row in &result.rows[sent..end] {
            data_row(self.connection.output(), &result.columns, row, &portal.formats);
            self.connection.flush_if_full().await?;
        }
        // As PostgreSQL: a portal that gave as many rows as asked is suspended, even if none are left.
        if rows_max > 0 && end - sent == rows_max {
            self.connection.put(&PortalSuspended::new());
            portal.progress = Progress::Rows(result, end);
            return Ok(());
        }
        let tag = if sent == 0 { result.tag.clone() } else { format!("SELECT {}", end - sent) };
        self.connection.put(&CommandComplete::new(tag));
        portal.progress = Progress::Rows(result, end);
        Ok(())
    }

    // ---- statements ----

    /// Finds out what a statement is and binds it.
    async fn parse(
        &mut self,
        statement: &Statement<'_>,
        class: Class,
        given: Vec<u32>,
    ) -> Result<ParsedStatement, Failure> {
        let sql = statement.text.to_string();
        let types: Vec<DataType> = given.iter().map(|oid| type_of_oid(*oid)).collect();
        let none = |body| ParsedStatement { body, ..empty_statement(given.clone()) };
        Ok(match class {
            Class::Read | Class::Write => {
                let prepared = self.prepare(&sql, &types).await?;
                let (parameters, columns) = (prepared.parameters.clone(), prepared.columns.clone());
                let returns_rows = prepared.kind == StatementKind::Read || !columns.is_empty();
                let body = Body::Database(Mutex::new(Arc::new(prepared)));
                ParsedStatement { sql, body, given, parameters, columns, returns_rows }
            }
            Class::Catalogue => {
                let query = self.catalogue.prepare(&sql, &self.facts(), &types).await?;
                let (parameters, columns) = (query.parameters().to_vec(), query.columns().to_vec());
                ParsedStatement { sql, body: Body::Catalogue, given, parameters, columns, returns_rows: true }
            }
            Class::Session => {
                let session = settings::parse(statement)?;
                let columns = session.columns();
                let returns_rows = !columns.is_empty();
                ParsedStatement { columns, returns_rows, ..none(Body::Session(session)) }
            }
            Class::Copy => none(Body::Copy(Arc::new(copy::parse(statement, &self.database.catalog())?))),
            Class::Commit => none(Body::NoTransaction("COMMIT")),
            Class::Rollback => none(Body::NoTransaction("ROLLBACK")),
            Class::Begin => {
                return Err(SqlError::unsupported("a transaction block (BEGIN)")
                    .hint(TRANSACTIONS_HINT)
                    .into());
            }
            Class::Refused(what) => return Err(SqlError::unsupported(what).hint(TRANSACTIONS_HINT).into()),
        })
    }

    /// Runs a statement to its end.
    async fn execute_statement(
        &mut self,
        statement: &ParsedStatement,
        parameters: Vec<Value>,
    ) -> Result<StatementResult, Failure> {
        Ok(match &statement.body {
            Body::Empty | Body::Copy(_) => StatementResult::default(),
            Body::Session(session) => self.session_statement(session)?,
            Body::NoTransaction(tag) => {
                self.connection.put_warning(NO_ACTIVE_TRANSACTION, "there is no transaction in progress");
                StatementResult { tag: (*tag).to_string(), ..StatementResult::default() }
            }
            Body::Catalogue => {
                let types: Vec<DataType> = statement.given.iter().map(|oid| type_of_oid(*oid)).collect();
                let catalogue = Arc::clone(&self.catalogue);
                let facts = self.facts();
                let work = async {
                    let query = catalogue.prepare(&statement.sql, &facts, &types).await?;
                    catalogue.run(query, parameters).await
                };
                self.wait(work, false).await?
            }
            Body::Database(prepared) => {
                let prepared = self.current(statement, prepared).await?;
                match prepared.kind {
                    StatementKind::Read => self.read(prepared, parameters).await?,
                    StatementKind::Write => {
                        let payload = Payload::Script { sql: statement.sql.clone(), parameters };
                        self.write(payload).await?.pop().unwrap_or_default()
                    }
                }
            }
        })
    }

    /// The prepared statement, bound to the current catalog.
    async fn current(
        &self,
        statement: &ParsedStatement,
        cached: &Mutex<Arc<Prepared>>,
    ) -> Result<Arc<Prepared>, SqlError> {
        let prepared = Arc::clone(&cached.lock());
        if prepared.catalog_version == self.database.catalog().version {
            return Ok(prepared);
        }
        let again = self.prepare(&statement.sql, &statement.parameters).await?;
        if again.columns != prepared.columns
            || again.parameters != prepared.parameters
            || again.kind != prepared.kind
        {
            let message = "cached plan must not change result type";
            return Err(
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("prepare the statement again")
            );
        }
        let again = Arc::new(again);
        *cached.lock() = Arc::clone(&again);
        Ok(again)
    }

    /// Parses and binds; long statements on another thread.
    async fn prepare(&self, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
        const INLINE_BYTES_MAX: usize = 8 * 1024;
        if sql.len() <= INLINE_BYTES_MAX {
            return self.database.prepare(sql, types);
        }
        let (database, sql, types) = (Arc::clone(&self.database), sql.to_string(), types.to_vec());
        blocking(move || database.prepare(&sql, &types)).await
    }

    async fn read(
        &self,
        prepared: Arc<Prepared>,
        parameters: Vec<Value>,
    ) -> Result<StatementResult, SqlError> {
        let database = Arc::clone(&self.database);
        self.wait(blocking(move || database.query(&prepared, &parameters)), false).await
    }

    async fn write(&self, payload: Payload) -> Result<Vec<StatementResult>, SqlError> {
        if let Payload::Script { sql, .. } = &payload
            && sql.len() > types::limits::TRANSACTION_BYTES_MAX
        {
            let (found, limit) = (sql.len(), types::limits::TRANSACTION_BYTES_MAX);
            let message =
                format!("the transaction has {found} bytes, the limit is {limit} (TRANSACTION_BYTES_MAX)");
            let error = SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
            return Err(error.hint("split it; for many rows use COPY"));
        }
        self.wait(self.database.execute(payload), true).await
    }

    /// Waits for `work`, for a cancel request, and for the statement's time to be up.
    async fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, SqlError>>,
        writes: bool,
    ) -> Result<T, SqlError> {
        let cancelled = |why: &str| {
            let error = SqlError::new(SqlState::QUERY_CANCELED, format!("canceling statement due to {why}"));
            if !writes {
                return error;
            }
            error.detail("Only the wait ended: the transaction was submitted and may still commit; see entente.transactions.")
        };
        let time_is_up = async {
            match self.settings.statement_timeout() {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = work => result,
            () = self.cancel.notified() => Err(cancelled("user request")),
            () = time_is_up => Err(cancelled("statement timeout")),
        }
    }

    // ---- session ----

    fn facts(&self) -> SessionFacts {
        SessionFacts {
            user: self.identity.user.clone(),
            process: self.identity.process,
            settings: self.settings.all(),
        }
    }

    fn tell(&mut self, name: &str, value: String) {
        self.connection.put(&ParameterStatus::new(name.to_string(), value));
    }

    fn session_statement(&mut self, statement: &SessionStatement) -> Result<StatementResult, SqlError> {
        let tag = match statement {
            SessionStatement::Show { name } => return self.settings.show(Some(name)),
            SessionStatement::ShowAll => return self.settings.show(None),
            SessionStatement::Set { name, value } => {
                let changed = self.settings.set(name, value.as_deref())?;
                if let Some(warning) = changed.warning {
                    self.connection.put_warning(WARNING, &warning);
                }
                if let Some((name, value)) = changed.report {
                    self.tell(name, value);
                }
                if value.is_none() { "RESET" } else { "SET" }
            }
            SessionStatement::ResetAll => {
                self.reset_settings();
                "RESET"
            }
            SessionStatement::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.reset_settings();
                "DISCARD ALL"
            }
            SessionStatement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            SessionStatement::Deallocate(Some(name)) => {
                if self.statements.remove(name).is_none() {
                    let message = format!("prepared statement \"{name}\" does not exist");
                    return Err(SqlError::new(INVALID_STATEMENT_NAME, message));
                }
                "DEALLOCATE"
            }
            SessionStatement::Close(None) => {
                self.portals.clear();
                "CLOSE CURSOR ALL"
            }
            SessionStatement::Close(Some(name)) => {
                if self.portals.remove(name).is_none() {
                    return Err(SqlError::new(
                        INVALID_CURSOR_NAME,
                        format!("cursor \"{name}\" does not exist"),
                    ));
                }
                "CLOSE CURSOR"
            }
            SessionStatement::DiscardNothing(tag) | SessionStatement::Nothing(tag) => tag,
        };
        Ok(StatementResult { tag: tag.to_string(), ..StatementResult::default() })
    }

    fn reset_settings(&mut self) {
        for (name, value) in self.settings.reset_all() {
            self.tell(name, value);
        }
    }
}

fn empty_statement(given: Vec<u32>) -> ParsedStatement {
    let (parameters, columns) = (Vec::new(), Vec::new());
    ParsedStatement { sql: String::new(), body: Body::Empty, given, parameters, columns, returns_rows: false }
}

fn check_length(sql: &str) -> Result<(), SqlError> {
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

/// Compares the counts of a Bind message with the statement.
fn check_counts(
    name: &str,
    statement: &ParsedStatement,
    formats: &[i16],
    values: &[Option<Bytes>],
    results: &[i16],
) -> Result<(), SqlError> {
    let violation = |message: String| Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
    if values.len() != statement.parameters.len() {
        let (found, expected) = (values.len(), statement.parameters.len());
        return violation(format!(
            "bind message supplies {found} parameters, but prepared statement \"{name}\" requires {expected}"
        ));
    }
    if formats.len() > 1 && formats.len() != values.len() {
        let (formats, values) = (formats.len(), values.len());
        return violation(format!("bind message has {formats} parameter formats but {values} parameters"));
    }
    let columns = if statement.returns_rows { statement.columns.len() } else { 0 };
    if results.len() > 1 && results.len() != columns {
        let results = results.len();
        return violation(format!(
            "bind message has {results} result formats but query has {columns} columns"
        ));
    }
    match formats.iter().chain(results).find(|code| !matches!(code, 0 | 1)) {
        Some(code) => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unsupported format code: {code}")))
        }
        None => Ok(()),
    }
}

/// Moves an error's position from a statement to the query string that holds it.
fn shift(failure: Failure, sql: &str, start: usize) -> Failure {
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
