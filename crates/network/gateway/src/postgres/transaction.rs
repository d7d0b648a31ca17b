//! The transaction block of a session: what BEGIN begins and COMMIT or ROLLBACK ends.
//!
//! ```text
//!  BEGIN ─▶ Block ─┬▶ a statement ─▶ TransactionBlock::run: on the snapshot that the first statement took
//!                  ├▶ an error ─▶ failed: only ROLLBACK, ROLLBACK TO and COMMIT (which rolls back) are taken
//!                  └▶ COMMIT ─▶ TransactionBlock::finish ─┬▶ nothing changed: done
//!                                                         └▶ a payload: ordered, run again by every node
//! ```

use super::connection::Connection;
use super::copy::found_relation;
use super::session::{Failure, Session};
use super::settings::{DEFAULT_READ_ONLY, Settings, TRANSACTION_READ_ONLY};
use super::statement::blocking;
use super::transaction_command::{Modes, TransactionCommand};
use crate::notifier::ListenCommand;
use crate::{FinishedBlock, TransactionBlock, limits};
use parking_lot::Mutex;
use pgwire::messages::response::TransactionStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use types::{SessionStep, SqlError, SqlState, StatementResult, Value};

/// `57P05` a session that has been idle for too long.
const IDLE_SESSION_TIMEOUT: SqlState = SqlState(*b"57P05");

/// The statements of a block, where a thread may run one of them.
pub(super) type Running = Arc<Mutex<Option<Box<dyn TransactionBlock>>>>;

/// How far the statements of a block are.
enum Run {
    /// None has run: the snapshot is taken by the first.
    NotBegun,
    Running(Running),
    /// One was cancelled, or the block came and failed as a whole: nothing but its end is left.
    Lost,
}

/// Who has opened a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opened {
    /// BEGIN.
    ByBegin,
    /// Nobody: several statements came together.
    ByItself,
}

/// A block that is open.
pub(super) struct Block {
    pub(super) opened: Opened,
    /// A statement has failed.
    pub(super) failed: bool,
    read_only: bool,
    /// A statement has read or written: a block that reads only stays so.
    has_queried: bool,
    run: Run,
    /// What ROLLBACK makes of the settings.
    before: Settings,
    /// What COMMIT makes of them.
    pub(super) lasting: Settings,
    /// LISTEN and UNLISTEN: COMMIT makes them hold.
    pub(super) listens: Vec<ListenCommand>,
    /// What gives back the advisory locks that it has taken, with parameters.
    pub(super) locks: Vec<(String, Vec<Value>)>,
    /// How the session was at each savepoint.
    savepoints: Vec<AtSavepoint>,
}

/// How the session was at a savepoint.
struct AtSavepoint {
    name: String,
    read_only: bool,
    settings: Settings,
    /// What COMMIT would have made of the settings.
    lasting: Settings,
    /// How many cursors had been declared.
    cursors: u64,
    /// How many LISTEN and UNLISTEN there had been.
    listens: usize,
}

impl Session {
    /// What ReadyForQuery says.
    pub(super) fn transaction_status(&self) -> TransactionStatus {
        match &self.block {
            None => TransactionStatus::Idle,
            Some(block) if block.failed => TransactionStatus::Error,
            Some(_) => TransactionStatus::Transaction,
        }
    }

    /// After an error in a block only what ends the block, or a part of it, is taken.
    pub(super) fn check_not_failed(&self, ends: bool) -> Result<(), SqlError> {
        match &self.block {
            Some(block) if block.failed && !ends => {
                let message =
                    "current transaction is aborted, commands ignored until end of transaction block";
                Err(SqlError::new(SqlState::IN_FAILED_TRANSACTION, message))
            }
            _ => Ok(()),
        }
    }

    /// A client has left its block without a message for too long.
    pub(super) async fn end_idle(connection: Connection) {
        let message = "terminating connection due to idle-in-transaction timeout";
        let error = SqlError::new(SqlState::IDLE_IN_TRANSACTION_TIMEOUT, message);
        connection
            .close_with(&error.hint("idle_in_transaction_session_timeout says how long a block may be idle"))
            .await;
    }

    /// A client has left its session without a message for too long.
    pub(super) async fn end_idle_session(connection: Connection) {
        let message = "terminating connection due to idle-session timeout";
        let error = SqlError::new(IDLE_SESSION_TIMEOUT, message);
        connection.close_with(&error.hint("idle_session_timeout says how long a session may be idle")).await;
    }

    pub(super) async fn transaction_command(
        &mut self,
        command: &TransactionCommand,
    ) -> Result<StatementResult, Failure> {
        let tag = match command {
            TransactionCommand::Begin(modes) => {
                match &mut self.block {
                    None => self.open_block(Opened::ByBegin),
                    // What came in front of it belongs to it.
                    Some(block) if block.opened == Opened::ByItself => block.opened = Opened::ByBegin,
                    Some(_) => {
                        let message = "there is already a transaction in progress";
                        self.connection.put_warning(SqlState::ACTIVE_TRANSACTION, message);
                    }
                }
                self.set_modes(*modes)?;
                "BEGIN"
            }
            TransactionCommand::SetMode(modes) => {
                if !self.is_in_block() {
                    let message = "SET TRANSACTION can only be used in transaction blocks";
                    self.connection.put_warning(SqlState::NO_ACTIVE_TRANSACTION, message);
                } else {
                    self.set_modes(*modes)?;
                }
                "SET"
            }
            TransactionCommand::Commit { chain } => {
                let mode = self.ended(*chain, "COMMIT AND CHAIN")?;
                let result = self.commit().await?;
                self.chain(mode)?;
                return Ok(result);
            }
            TransactionCommand::Rollback { chain } => {
                let mode = self.ended(*chain, "ROLLBACK AND CHAIN")?;
                self.roll_back();
                self.chain(mode)?;
                "ROLLBACK"
            }
            TransactionCommand::Savepoint(name) => {
                self.in_block("SAVEPOINT")?;
                self.run_in_block(SessionStep::Savepoint(name.clone())).await?;
                self.note_savepoint(name);
                "SAVEPOINT"
            }
            TransactionCommand::RollbackTo(name) => {
                self.in_block("ROLLBACK TO SAVEPOINT")?;
                self.run_in_block(SessionStep::RollbackTo(name.clone())).await?;
                self.back_to(name)?;
                "ROLLBACK"
            }
            TransactionCommand::Release(name) => {
                self.in_block("RELEASE SAVEPOINT")?;
                self.run_in_block(SessionStep::Release(name.clone())).await?;
                if let Some(block) = &mut self.block
                    && let Some(position) = block.savepoints.iter().rposition(|known| known.name == *name)
                {
                    // That a part of a block reads only holds for the part.
                    let read_only = block.savepoints[position].read_only;
                    block.savepoints.truncate(position);
                    self.be_read_only(read_only)?;
                }
                "RELEASE"
            }
            TransactionCommand::LockForReading(tables) => {
                self.in_block("LOCK TABLE")?;
                self.check_tables(tables)?;
                "LOCK TABLE"
            }
        };
        Ok(StatementResult { tag: tag.to_string(), ..StatementResult::default() })
    }

    /// Remembers how the session is at a savepoint.
    fn note_savepoint(&mut self, name: &str) {
        if let Some(block) = &mut self.block {
            block.savepoints.push(AtSavepoint {
                name: name.to_string(),
                read_only: block.read_only,
                settings: self.settings.clone(),
                lasting: block.lasting.clone(),
                cursors: self.cursors.declared(),
                listens: block.listens.len(),
            });
        }
    }

    /// Refuses names that no relation has. What a block has seen stays to it, so that nothing has to be kept from others.
    fn check_tables(&self, names: &[(Option<String>, String)]) -> Result<(), SqlError> {
        let (catalog, path) = (self.known_tables()?, self.search_path());
        for (schema, name) in names {
            if let Some(schema) = schema {
                catalog.check_schema(schema)?;
            }
            if !catalog.has_relation(&found_relation(&catalog, &path, name)) {
                let message = format!("relation \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
            }
        }
        Ok(())
    }

    /// A block is to end. How the next one is to be, if there is to be one at once.
    fn ended(&mut self, chain: bool, what: &str) -> Result<Option<Modes>, SqlError> {
        if chain {
            self.in_block(what)?;
        } else if !self.is_in_block() {
            self.warn_of_no_block();
        }
        let deferrable = Some(self.settings.is_on("transaction_deferrable"));
        let modes = |block: &Block| Modes { read_only: Some(block.read_only), deferrable, isolation: None };
        Ok(self.block.as_ref().filter(|_| chain).map(modes))
    }

    fn chain(&mut self, modes: Option<Modes>) -> Result<(), SqlError> {
        let Some(modes) = modes else { return Ok(()) };
        self.open_block(Opened::ByBegin);
        self.set_modes(modes)
    }

    fn in_block(&self, what: &str) -> Result<(), SqlError> {
        match self.is_in_block() {
            true => Ok(()),
            false => {
                let message = format!("{what} can only be used in transaction blocks");
                Err(SqlError::new(SqlState::NO_ACTIVE_TRANSACTION, message))
            }
        }
    }

    /// Whether BEGIN has begun a block.
    pub(super) fn is_in_block(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.opened == Opened::ByBegin)
    }

    pub(super) fn open_block(&mut self, opened: Opened) {
        self.block = Some(Block {
            opened,
            failed: false,
            read_only: self.settings.is_on(DEFAULT_READ_ONLY),
            has_queried: false,
            run: Run::NotBegun,
            before: self.settings.clone(),
            lasting: self.settings.clone(),
            listens: Vec::new(),
            locks: Vec::new(),
            savepoints: Vec::new(),
        });
        self.settings.begin_block();
    }

    /// Whether the next statement must only read: in the open block, or as a transaction of its own.
    pub(super) fn reads_only(&self) -> bool {
        self.block.as_ref().map_or_else(|| self.settings.is_on(DEFAULT_READ_ONLY), |block| block.read_only)
    }

    /// # Errors
    /// `25006` where the next statement must only read. `command`: what writes, as PostgreSQL calls it.
    pub(super) fn check_may_write(&self, command: &str) -> Result<(), SqlError> {
        if self.reads_only() { Err(SqlError::not_in_read_only(command)) } else { Ok(()) }
    }

    /// A block that came in one query string has failed: as in PostgreSQL it is still to be ended.
    pub(super) fn open_failed_block(&mut self) {
        self.open_block(Opened::ByBegin);
        if let Some(block) = &mut self.block {
            (block.failed, block.run) = (true, Run::Lost);
        }
    }

    pub(super) fn set_modes(&mut self, modes: Modes) -> Result<(), SqlError> {
        if let Some(read_only) = modes.read_only {
            self.set_read_only(read_only)?;
        }
        if let Some(deferrable) = modes.deferrable.filter(|_| self.block.is_some()) {
            self.settings.set_in_block("transaction_deferrable", deferrable);
        }
        Ok(())
    }

    /// The open block may only read from now on, or write.
    ///
    /// # Errors
    /// `25001` where it has read already and is to write: what reads only is run by nobody else.
    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        let Some(block) = &self.block else { return Ok(()) };
        if block.read_only && !read_only {
            let inside = block.savepoints.last().is_some_and(|savepoint| savepoint.read_only);
            let message = if inside {
                "cannot set transaction read-write mode inside a read-only transaction"
            } else if block.has_queried {
                "transaction read-write mode must be set before any query"
            } else {
                return self.be_read_only(false);
            };
            return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message));
        }
        self.be_read_only(read_only)
    }

    fn be_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if block.read_only != read_only
            && let Run::Running(running) = &block.run
            && let Some(running) = running.lock().as_mut()
        {
            running.set_read_only(read_only)?;
        }
        block.read_only = read_only;
        self.settings.set_in_block(TRANSACTION_READ_ONLY, read_only);
        Ok(())
    }

    /// A statement of the open block reads or writes.
    pub(super) fn note_query(&mut self) {
        if let Some(block) = &mut self.block {
            block.has_queried = true;
        }
    }

    /// The block's statements, begun if none has run.
    async fn running(&mut self) -> Result<Running, SqlError> {
        let lost = || {
            let message = "a statement of the transaction block was cancelled, so that nothing of it is left";
            Err(SqlError::new(SqlState::IN_FAILED_TRANSACTION, message).hint("ROLLBACK, and run it again."))
        };
        let read_only = match &self.block {
            None | Some(Block { run: Run::Lost, .. }) => return lost(),
            Some(Block { run: Run::Running(running), .. }) => return Ok(Arc::clone(running)),
            Some(Block { run: Run::NotBegun, read_only, .. }) => *read_only,
        };
        self.wait_for_min_height().await?;
        let begun = self.temporary()?.begin(&self.identity.role, read_only)?;
        let running = Arc::new(Mutex::new(Some(begun)));
        if let Some(block) = &mut self.block {
            block.run = Run::Running(Arc::clone(&running));
        }
        Ok(running)
    }

    /// What binds the statements of the open block; `None` outside of a block, and before its first statement.
    pub(super) fn open_statements(&self) -> Option<Running> {
        match &self.block {
            Some(Block { run: Run::Running(running), .. }) => Some(Arc::clone(running)),
            _ => None,
        }
    }

    /// The open block takes its snapshot once more: nothing that it has done counts.
    pub(super) fn begin_block_anew(&mut self) {
        if let Some(block) = &mut self.block {
            block.run = Run::NotBegun;
        }
    }

    /// Runs a step of the open block.
    pub(super) async fn run_in_block(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        let running = self.running().await?;
        let is_statement = matches!(step, SessionStep::Run { .. });
        if is_statement || matches!(step, SessionStep::Insert { .. }) {
            self.note_query();
        }
        let mut done = false;
        let interrupt = running.lock().as_ref().map(|block| block.interrupt());
        let work = blocking(move || {
            let mut guard = running.lock();
            let Some(block) = guard.as_mut() else { return Ok(StatementResult::default()) };
            block.run(step)
        });
        let work = async {
            let result = work.await;
            done = true;
            result
        };
        let result = self.wait(work, false).await;
        if !done && let Some(block) = &mut self.block {
            // The thread may go on for a little; what it comes to is not the client's any more.
            block.run = Run::Lost;
            if let Some(interrupt) = interrupt {
                interrupt.store(true, Relaxed);
            }
        }
        if is_statement && result.is_ok() {
            self.check_left_open()?;
        }
        result
    }

    /// Runs a statement as a block: with the rows of temporary tables, or where it must not write though it may, because a function may
    /// write in a branch that is not taken. Its client has seen nothing of it before COMMIT, so that it runs again where it is in conflict.
    pub(super) async fn run_as_block(&mut self, step: SessionStep) -> Result<StatementResult, Failure> {
        let mut tries = 0;
        loop {
            self.open_block(Opened::ByItself);
            let result = match self.run_in_block_waiting(step.clone()).await {
                Ok(result) => result,
                Err(error) => {
                    self.roll_back();
                    return Err(error.into());
                }
            };
            tries += 1;
            match self.commit().await {
                Ok(_) => return Ok(result),
                Err(Failure::Problem(error, _))
                    if error.state == SqlState::SERIALIZATION_FAILURE && tries < limits::BLOCK_TRIES_MAX => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    pub(super) async fn commit(&mut self) -> Result<StatementResult, Failure> {
        let tagged = |tag: &str| StatementResult { tag: tag.to_string(), ..StatementResult::default() };
        match &self.block {
            None => return Ok(tagged("COMMIT")),
            Some(block) if block.failed => {
                self.roll_back();
                return Ok(tagged("ROLLBACK"));
            }
            Some(_) => {}
        }
        let Some(mut block) = self.block.take() else { return Ok(tagged("COMMIT")) };
        self.portals.clear();
        let locks = std::mem::take(&mut block.locks);
        let committed = self.finish_block(block).await;
        self.give_back_of_block(locks);
        committed?;
        Ok(tagged("COMMIT"))
    }

    async fn finish_block(&mut self, block: Block) -> Result<(), Failure> {
        let finished = match block.run {
            Run::Running(running) => running.lock().take().map(|block| block.finish()),
            Run::NotBegun | Run::Lost => None,
        };
        if let Some(FinishedBlock { payload, request, temporary, row_locks }) = finished {
            let committed = match payload {
                Some(payload) => self.write_as(request, payload).await.map(drop),
                None => Ok(()),
            };
            drop(row_locks);
            if let Err(error) = committed {
                self.cursors.end_block(false);
                self.restore(block.before);
                return Err(error.into());
            }
            *self.temporary()? = temporary;
        }
        self.cursors.end_block(true);
        self.restore(block.lasting);
        block.listens.iter().for_each(|command| self.listening.apply(command));
        Ok(())
    }

    pub(super) fn roll_back(&mut self) {
        if let Some(block) = self.block.take() {
            self.portals.clear();
            self.cursors.end_block(false);
            self.restore(block.before);
            self.give_back_of_block(block.locks);
        }
    }

    fn warn_of_no_block(&mut self) {
        let message = "there is no transaction in progress";
        self.connection.put_warning(SqlState::NO_ACTIVE_TRANSACTION, message);
    }

    /// What was done since the savepoint has been undone, and so are settings.
    fn back_to(&mut self, name: &str) -> Result<(), SqlError> {
        let Some(block) = &mut self.block else { return Ok(()) };
        block.failed = false;
        let Some(position) = block.savepoints.iter().rposition(|known| known.name == name) else {
            return Ok(());
        };
        block.savepoints.truncate(position + 1);
        let known = &block.savepoints[position];
        let (settings, cursors, read_only) = (known.settings.clone(), known.cursors, known.read_only);
        block.lasting = known.lasting.clone();
        block.listens.truncate(known.listens);
        self.cursors.forget_since(cursors);
        self.restore(settings);
        self.be_read_only(read_only)
    }

    fn restore(&mut self, settings: Settings) {
        let told = self.settings.restore(settings);
        self.follow_settings();
        for (name, value) in told {
            self.tell(name, value);
        }
    }

    /// A transaction of the session has committed.
    pub(super) fn committed_at(&mut self, height: u64) {
        if let Some((name, height)) = self.settings.committed_at(height) {
            self.tell(name, height);
        }
    }

    /// Waits until reads see the height that the session asks for.
    pub(super) async fn wait_for_min_height(&self) -> Result<(), SqlError> {
        let height = self.settings.min_height();
        if self.database.height() >= height {
            return Ok(());
        }
        let work = async {
            let time = limits::MIN_HEIGHT_WAIT_MAX;
            let reached = tokio::time::timeout(time, self.database.wait_for_height(height)).await;
            reached.map_err(|_| {
                let (found, seconds) = (self.database.height(), time.as_secs());
                let message = format!(
                    "entente.min_height asks for height {height}, this node is at {found} and has not come there in {seconds} seconds"
                );
                SqlError::new(SqlState::CANNOT_CONNECT_NOW, message)
                    .hint("Ask again, ask another node, or SET entente.min_height to a height that the ledger has.")
            })
        };
        self.wait(work, false).await
    }
}
