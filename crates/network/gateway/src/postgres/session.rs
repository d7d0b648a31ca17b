//! One session: its messages, what they change in it, and what it says of itself.

use super::about::{self, About};
use super::advisory::AdvisoryLocks;
use super::connection::{Closed, Connection, ReadError};
use super::cursor::Cursors;
use super::extended::Portal;
use super::message::{Malformed, Message};
use super::prepared::PreparedStatements;
use super::session_statement::SessionStatement;
use super::setting::SERVER_VERSION;
use super::settings::{DEFAULT_READ_ONLY, Settings, WARNING, modes_of_setting};
use super::transaction::Block;
use crate::catalogue::NodeCatalogue;
use crate::notifier::{ListenCommand, Listening};
use crate::{Database, Passwords, TemporaryTables};
use catalogue::SessionFacts;
use parking_lot::Mutex;
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::startup::ParameterStatus;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;
use types::{SqlError, SqlState, StatementResult, TransactionId};

/// `26000` no such prepared statement.
pub(super) const INVALID_STATEMENT_NAME: SqlState = SqlState(*b"26000");
/// `34000` no such portal.
pub(super) const INVALID_CURSOR_NAME: SqlState = SqlState(*b"34000");

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

pub(super) fn problem(state: SqlState, message: impl Into<String>) -> Failure {
    SqlError::new(state, message).into()
}

/// What a session that waits for its client gets.
enum Received {
    /// A message, or the end of the connection.
    Message(Result<Message, ReadError>),
    /// The client has said nothing for too long.
    TooLate,
    /// More waits for the client than may.
    TooMany,
}

/// Who a session belongs to.
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) process: i32,
    /// What it acts as; empty: the administrator.
    pub(super) role: String,
}

/// A started session.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) database: Arc<dyn Database>,
    pub(super) catalogue: Arc<NodeCatalogue>,
    pub(super) identity: Identity,
    pub(super) settings: Settings,
    pub(super) passwords: Arc<Passwords>,
    pub(super) temporary: Arc<Mutex<Box<dyn TemporaryTables>>>,
    pub(super) cancel: Arc<Notify>,
    pub(super) statements: PreparedStatements,
    pub(super) portals: HashMap<String, Portal>,
    pub(super) cursors: Cursors,
    /// The transaction block that is open.
    pub(super) block: Option<Block>,
    /// The channels that it listens on.
    pub(super) listening: Listening,
    /// The advisory locks that it holds.
    pub(super) advisory: AdvisoryLocks,
    /// The last transaction of its own that has notified.
    pub(super) notified_by: Option<TransactionId>,
    /// The client has been told that the session is ready, and has said nothing since.
    is_ready: bool,
    /// After an error of the extended protocol everything up to Sync is left out.
    skip_to_sync: bool,
}

impl Session {
    pub(super) fn new(
        connection: Connection,
        database: Arc<dyn Database>,
        catalogue: Arc<NodeCatalogue>,
        identity: Identity,
        settings: Settings,
        passwords: Arc<Passwords>,
        cancel: Arc<Notify>,
    ) -> Session {
        let temporary = Arc::new(Mutex::new(database.temporary_tables()));
        let listening = Listening::new(database.notifier());
        let advisory = AdvisoryLocks::new(Arc::clone(&database), identity.role.clone());
        let mut session = Session {
            connection,
            database,
            catalogue,
            identity,
            settings,
            passwords,
            temporary,
            cancel,
            statements: PreparedStatements::default(),
            portals: HashMap::new(),
            cursors: Cursors::default(),
            block: None,
            listening,
            advisory,
            notified_by: None,
            is_ready: false,
            skip_to_sync: false,
        };
        session.follow_settings();
        session
    }

    /// What the connection does follows the settings.
    pub(super) fn follow_settings(&mut self) {
        self.connection.send_from(self.settings.message_level());
    }

    /// Answers messages until the client goes.
    pub(super) async fn run(mut self) {
        if self.ready().await.is_err() {
            return;
        }
        loop {
            let received = match self.next_message().await {
                Received::Message(received) => received,
                Received::TooLate if self.block.is_some() => return Session::end_idle(self.connection).await,
                Received::TooLate => return Session::end_idle_session(self.connection).await,
                Received::TooMany => return Session::end_deaf(self.connection).await,
            };
            self.is_ready = false;
            self.put_lost_locks();
            let message = match received {
                Ok(Message::Terminate) | Err(ReadError::Closed) => return,
                Ok(message) => message,
                Err(ReadError::Malformed(Malformed::Violation(what))) => {
                    tracing::debug!(what, "a session ends");
                    self.connection.close_with(&SqlError::new(SqlState::PROTOCOL_VIOLATION, what)).await;
                    return;
                }
                Err(ReadError::Malformed(Malformed::Encoding { query, message })) => {
                    let error = SqlError::new(super::decode::CHARACTER_NOT_IN_REPERTOIRE, message);
                    self.skip_to_sync |= !query;
                    if self.report(error.into()).is_err() {
                        return;
                    }
                    if query && self.end_transaction().await.is_err() {
                        return;
                    }
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

    /// Waits for the next message. Who is idle is told meanwhile what arrives on its channels.
    async fn next_message(&mut self) -> Received {
        let idle = match &self.block {
            None => self.settings.idle_session(),
            Some(_) => Some(self.settings.idle_in_transaction()),
        };
        let idle_until = idle.map(|idle| Instant::now() + idle);
        loop {
            let is_told = self.block.is_none() && self.is_ready;
            let too_late = async {
                match idle_until {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                received = self.connection.read_message() => return Received::Message(received),
                () = self.listening.arrived(), if is_told => {}
                () = too_late => return Received::TooLate,
            }
            if self.put_notifications().is_err() {
                return Received::TooMany;
            }
            if self.connection.flush().await.is_err() {
                return Received::Message(Err(ReadError::Closed));
            }
        }
    }

    async fn answer(&mut self, message: Message) -> Result<(), Closed> {
        match message {
            Message::Sync => {
                self.skip_to_sync = false;
                self.end_transaction().await?;
                // Those of a transaction block live as long as the block.
                if self.block.is_none() {
                    self.portals.clear();
                }
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
                self.end_transaction().await?;
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

    /// Ends a block that nobody has begun.
    async fn end_transaction(&mut self) -> Result<(), Closed> {
        match self.end_pipeline().await {
            Ok(()) => Ok(()),
            Err(failure) => self.report(failure),
        }
    }

    fn report(&mut self, failure: Failure) -> Result<(), Closed> {
        match failure {
            Failure::Closed => Err(Closed),
            Failure::Problem(error, context) => {
                if let Some(block) = &mut self.block {
                    block.failed = true;
                }
                let about = match about::says_it(error.state) {
                    true => About::of(&error, &self.known_catalog()),
                    false => About::default(),
                };
                self.connection.put_error(&error, context, about);
                Ok(())
            }
        }
    }

    async fn ready(&mut self) -> Result<(), Closed> {
        // Whoever has too many is told once the client is waited for.
        if self.block.is_none() {
            let _ = self.put_notifications();
        }
        self.is_ready = true;
        self.connection.put(&ReadyForQuery::new(self.transaction_status()));
        self.connection.flush().await
    }

    // ---- what it says of itself ----

    pub(super) fn facts(&self) -> SessionFacts {
        SessionFacts {
            user: self.identity.user.clone(),
            role: self.identity.role.clone(),
            process: self.identity.process,
            search_path: self.search_path().known(&self.known_schema()),
            settings: self.settings.facts(),
            format: self.settings.format(),
            server_version: SERVER_VERSION.to_string(),
            prepared: self.statements.facts(),
            listening: self.listening.channels().map(str::to_string).collect(),
            advisory_locks: Vec::new(),
        }
    }

    pub(super) fn tell(&mut self, name: &str, value: String) {
        self.connection.put(&ParameterStatus::new(name.to_string(), value));
    }

    pub(super) fn session_statement(
        &mut self,
        statement: &SessionStatement,
    ) -> Result<StatementResult, SqlError> {
        let tag = match statement {
            SessionStatement::Show { name } => return self.settings.show(Some(name)),
            SessionStatement::ShowAll => return self.settings.show(None),
            SessionStatement::Set { name, value, local } => {
                self.set(name, value.as_deref(), *local)?;
                if value.is_none() { "RESET" } else { "SET" }
            }
            SessionStatement::SetDefaults(modes) => {
                let on = |on: bool| if on { "on" } else { "off" };
                let said = [
                    ("default_transaction_isolation", modes.isolation),
                    (DEFAULT_READ_ONLY, modes.read_only.map(on)),
                    ("default_transaction_deferrable", modes.deferrable.map(on)),
                ];
                for (name, value) in said.into_iter().filter(|(_, value)| value.is_some()) {
                    self.set(name, value, false)?;
                }
                "SET"
            }
            SessionStatement::ResetAll => {
                self.reset_settings();
                "RESET"
            }
            SessionStatement::DiscardAll if self.block.is_some() => {
                let message = "DISCARD ALL cannot run inside a transaction block";
                return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message));
            }
            SessionStatement::DiscardAll => {
                self.temporary()?.clear();
                self.statements.clear();
                self.portals.clear();
                self.cursors.clear();
                self.reset_settings();
                self.listening.apply(&ListenCommand::UnlistenAll);
                "DISCARD ALL"
            }
            SessionStatement::DiscardTemporary => {
                self.temporary()?.clear();
                "DISCARD TEMP"
            }
            SessionStatement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            SessionStatement::Deallocate(Some(name)) => {
                self.statements.deallocate(name)?;
                "DEALLOCATE"
            }
            SessionStatement::DiscardNothing(tag) | SessionStatement::Nothing(tag) => tag,
            SessionStatement::Listen(command) => self.listen(command)?,
            // Whoever runs statements waits by itself.
            SessionStatement::Sleep(_) => "SELECT 1",
        };
        Ok(StatementResult { tag: tag.to_string(), ..StatementResult::default() })
    }

    /// SET and RESET, where there is no value.
    fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
        if local && self.block.is_none() {
            let message = "SET LOCAL can only be used in transaction blocks";
            self.connection.put_warning(SqlState::NO_ACTIVE_TRANSACTION, message);
            return Ok(());
        }
        let changed = self.settings.set(name, value)?;
        self.follow_settings();
        if let Some(modes) = modes_of_setting(name, value)? {
            return self.set_modes(modes);
        }
        if let Some(block) = self.block.as_mut().filter(|_| !local) {
            block.lasting.set(name, value)?;
        }
        if let Some(warning) = changed.warning {
            self.connection.put_warning(WARNING, &warning);
        }
        if let Some((name, value)) = changed.report {
            self.tell(name, value);
        }
        Ok(())
    }

    fn reset_settings(&mut self) {
        if let Some(block) = &mut self.block {
            block.lasting.reset_all();
        }
        let told = self.settings.reset_all();
        self.follow_settings();
        for (name, value) in told {
            self.tell(name, value);
        }
    }
}
