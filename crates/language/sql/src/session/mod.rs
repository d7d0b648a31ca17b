//! Transaction blocks: what a session does between BEGIN and COMMIT, first for its client on one snapshot, then again by
//! every node at the transaction's place in the order. Both run the same steps in the same way ([`Progress`]); the second
//! run commits if it gives the client what the first one has given.
//!
//! SAVEPOINT is the beginning of a block with handlers, ROLLBACK TO its error (`execute::protect`): what decides whether
//! a step fails behind a savepoint is read, and so is what undone steps used, because the client has seen what they gave.
//!
//! A cursor that a function leaves open is a part of the block: where it stands, and so FETCH, MOVE and CLOSE of it are steps. Those that the
//! client declares are not: the query of DECLARE is the step.
//!
//! The session's temporary tables take part at the gateway alone: nothing of them is a step.
//!
//! ```text
//!  gateway::postgres::transaction ─▶ TransactionBlock ─▶ Session ─┬▶ Execution::resume … suspend, per statement, on a snapshot
//!                                                                 └▶ Payload::Session { steps, now_ms, digest of results }
//!  every node ─▶ Invocation ─▶ run_again: the same steps, with reads registered ─▶ the same digest, or 40001
//! ```
//!
//! For a protocol a block is an ordinary transaction. What its results depend on is read, or guarded (row counts). A
//! command from which the client learnt nothing stays a command. If a command ends at its place with an error, the
//! block ends with `40001` too.
//!
//! `entente.last_height` and `entente.min_height` are a token for reading one's own writes at another node, which
//! waits until it has recorded that height.

pub(crate) mod again;
mod filling;
pub(crate) mod place;
mod progress;
pub(crate) mod stage;
mod step_locks;
mod temporary;

use crate::library::Library;
use crate::prepare::{Prepared, prepare};
use crate::script::StatementKind;
use crate::temporary::TemporaryTables;
use execute::{Context, Cursors, RowLocks, SessionPlace, SharedRowLocks, Suspended};
use filling::Filling;
use place::Place;
use progress::Progress;
use state::Snapshot;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use step_locks::StepLocks;
use temporary::Temporary;
use types::{
    Catalog, DataType, ExecutionVersion, HeldRow, MemoryShare, OutputColumn, Payload, Principal, RowLockMode,
    SessionResults, SessionStep, SqlError, SqlState, StatementResult, StepGiven, Value, encode, limits,
    row_is_held,
};

/// A transaction block that a gateway runs for its client, on one snapshot.
///
/// Nothing of it is ordered before [`Session::finish`] makes a transaction of it.
pub struct Session {
    snapshot: Arc<dyn Snapshot>,
    context: Context,
    principal: Principal,
    /// Steps that it may take as long as it has written nothing.
    read_step_limit: u64,
    /// Bytes that the transaction may have which the block becomes.
    bytes_max: usize,
    read_only: bool,
    suspended: Suspended,
    progress: Progress,
    temporary: Temporary,
    /// What it has done, and the bytes of that. Nothing where it was only to read from the first.
    steps: Option<Vec<SessionStep>>,
    bytes: usize,
    results: SessionResults,
    /// Changes of a schema since it began, undone ones too.
    schema_changes: u64,
    interrupt: Arc<AtomicBool>,
    /// The locks on rows of the gateway's blocks.
    row_locks: Option<SharedRowLocks>,
    /// A step has run, on the ledger or on temporary tables.
    has_run: bool,
    /// The step that runs may wait for rows: nothing is lost if the block begins anew.
    may_wait: bool,
    /// Rows that its first step waits for.
    awaited: Vec<HeldRow>,
}

/// What a block leaves that is committed.
pub struct Finished {
    /// What is to be ordered; `None` where it has changed nothing of the ledger.
    pub payload: Option<Payload>,
    /// The session's temporary tables behind it.
    pub temporary: TemporaryTables,
}

impl Session {
    /// A block begins, in the name of `principal`. `context`: its time is `now()`, its limit that of a transaction, its id what random
    /// values are drawn from: [`types::ClientId::session_seed`] of who will sign the block. `library`: that of the snapshot's
    /// catalog. `read_step_limit`: what it may take as long as it only reads, because then nobody else runs it.
    /// `temporary`: the session's temporary tables.
    pub fn begin(
        library: Arc<Library>,
        snapshot: Arc<dyn Snapshot>,
        context: Context,
        principal: Principal,
        read_step_limit: u64,
        read_only: bool,
        temporary: TemporaryTables,
    ) -> Session {
        debug_assert_eq!(snapshot.catalog().version, library.catalog().version, "the snapshot's library");
        Session {
            snapshot,
            context,
            principal,
            read_step_limit,
            bytes_max: limits::TRANSACTION_BYTES_MAX,
            read_only,
            suspended: Suspended::default(),
            progress: Progress::new(library),
            temporary: Temporary::new(temporary),
            steps: (!read_only).then(Vec::new),
            bytes: 0,
            results: SessionResults::default(),
            schema_changes: 0,
            interrupt: Arc::default(),
            row_locks: None,
            has_run: false,
            may_wait: false,
            awaited: Vec::new(),
        }
    }

    /// Beside the other blocks of a gateway, which lock rows for one another; before its first step.
    pub fn locking_rows(mut self, locks: SharedRowLocks) -> Session {
        self.row_locks =
            Some(locks).filter(|_| self.progress.stage().library.version() >= ExecutionVersion::V15);
        self
    }

    /// The rows that its first step waits for, which has ended with [`types::row_is_held`]: the block is to begin anew once nobody has them.
    pub fn awaited_rows(&mut self) -> Vec<HeldRow> {
        std::mem::take(&mut self.awaited)
    }

    /// With a share of the memory that all queries of a node have together; before its first step.
    pub fn sharing(mut self, memory: MemoryShare) -> Session {
        self.suspended = Suspended::sharing(memory);
        self
    }

    /// With what the ledger's charter says of how long a transaction may be; before its first step.
    pub fn of_at_most(mut self, transaction_bytes: u32) -> Session {
        self.bytes_max = transaction_bytes as usize;
        self
    }

    /// What ends the step that runs soon after it is set. The block is lost then: steps that its client has not seen the end of
    /// must not be committed.
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }

    /// The catalog that its statements are bound to: the snapshot's version as long as it has not changed the schema, and
    /// then one that no ledger has, another one after each change.
    pub fn catalog_version(&self) -> u64 {
        match self.schema_changes {
            0 => self.progress.stage().library.catalog().version,
            changes => u64::MAX - changes,
        }
    }

    /// Binds a statement as it would run now. Gives whether it concerns temporary tables.
    ///
    /// # Errors
    /// As [`prepare`].
    pub fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<(Prepared, bool), SqlError> {
        let library = &self.progress.stage().library;
        if let Some(prepared) = self.temporary.tables().prepare(library, sql, parameter_types)? {
            return Ok((prepared, true));
        }
        Ok((prepare(library, sql, parameter_types)?, false))
    }

    /// The tables that its next statement knows, temporary ones among them.
    ///
    /// # Errors
    /// As [`TemporaryTables::visible`].
    pub fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        let library = self.progress.stage().library.clone();
        self.temporary.tables().visible(&library)
    }

    /// The columns of a cursor that a function of the block has left open; `None` where there is none of this name, or where the ledger's
    /// version knows no statements about such cursors.
    pub fn cursor_columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.cursors().and_then(|cursors| cursors.described(name)).cloned()
    }

    /// Whether functions of the block have left cursors open that its statements can use.
    pub fn has_cursors(&self) -> bool {
        self.cursors().is_some_and(|cursors| !cursors.is_empty())
    }

    fn cursors(&self) -> Option<&Cursors> {
        let is_known = self.progress.stage().library.version() >= ExecutionVersion::V16;
        is_known.then(|| self.suspended.cursors())
    }

    /// From now on it may only read (or write again).
    ///
    /// # Errors
    /// `25001` where it was only to read from the first, and has.
    pub fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        if !read_only && self.steps.is_none() {
            let message = "transaction read-write mode must be set before any query";
            return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message));
        }
        self.read_only = read_only;
        Ok(())
    }

    /// Runs the next step.
    ///
    /// # Errors
    /// What it ends with; the block has failed then, until it is rolled back to a savepoint.
    pub fn run(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        self.may_wait = !std::mem::replace(&mut self.has_run, true) && self.steps.is_some();
        self.progress.stage().library.clone().value_limits().within(|| self.run_within_limits(step))
    }

    fn run_within_limits(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        let step = match self.concerns_temporary(&step) {
            false => step,
            true => match self.run_on_temporary(step) {
                ControlFlow::Continue(step) => step,
                ControlFlow::Break(result) => {
                    if result.is_err() {
                        self.progress.fail();
                    }
                    return result;
                }
            },
        };
        let bytes = encode(&step).len();
        if let Some(steps) = &self.steps {
            self.check_size(steps.len() + 1, self.bytes + bytes)?;
        } else {
            // Nobody runs this again: every statement is metered on its own, as outside of a block.
            self.suspended.forget_steps();
        }
        let mut context = self.context;
        if !self.has_written() && self.reads(&step) {
            context.step_limit = self.read_step_limit;
        }
        let done = |suspended: &Suspended| suspended.commands().len() + suspended.notifications();
        let (before, catalog) = (done(&self.suspended), self.progress.stage().library.clone());
        let (mut result, step) = self.run_on_snapshot(step, context);
        // It is longer where it was told of locked rows.
        let is_longer = !step.given().held.is_empty();
        let bytes = if is_longer { encode(&step).len() } else { bytes };
        if is_longer
            && self.steps.is_some()
            && let Err(error) = self.check_size(0, self.bytes + bytes)
        {
            self.progress.fail();
            result = Err(error);
        }
        let changes_schema = !Arc::ptr_eq(&catalog, &self.progress.stage().library);
        let is_statement = step.statement().is_some() || matches!(step, SessionStep::Insert { .. });
        if changes_schema || (self.schema_changes > 0 && !is_statement) {
            self.schema_changes += 1;
        }
        let writes = is_statement && (changes_schema || done(&self.suspended) > before);
        if result.is_ok() {
            self.temporary.follow(&step);
            if writes && self.temporary.has_read_ledger() {
                self.progress.fail();
                result = Err(temporary::reads_unseen());
            }
        }
        if let Some(steps) = &mut self.steps {
            self.bytes += bytes;
            self.results.add(&result);
            steps.push(step);
        }
        result
    }

    /// Runs a step, and holds what it writes. Gives the step as others are to run it again, too.
    fn run_on_snapshot(
        &mut self,
        step: SessionStep,
        context: Context,
    ) -> (Result<StatementResult, SqlError>, SessionStep) {
        let locks = self.row_locks.as_ref().map(|locks| StepLocks::new(locks, self.may_wait));
        let written = self.suspended.commands().len();
        let place = Place {
            snapshot: self.snapshot.as_ref(),
            context,
            principal: &self.principal,
            session: Some(SessionPlace {
                now_ms: context.timestamp_ms,
                organisation: self.principal.organisation,
                seed: context.transaction.0,
            }),
            interrupt: Some(&self.interrupt),
            read_only: self.read_only,
            row_locks: locks.clone().map(|locks| locks as Rc<dyn RowLocks>),
        };
        let result = self.progress.run_at(&place, &mut self.suspended, &step);
        let Some(locks) = locks else { return (result, step) };
        self.awaited = locks.awaited();
        if !self.awaited.is_empty() {
            self.progress.fail();
            return (Err(row_is_held()), step);
        }
        for command in self.suspended.commands().iter().skip(written) {
            locks.hold(command.row.table, &command.row.key, RowLockMode::Update, false);
        }
        (result, locks.told(step))
    }

    /// Whether a step may have to do with temporary tables.
    fn concerns_temporary(&mut self, step: &SessionStep) -> bool {
        let text = match step {
            SessionStep::Insert { table, .. } => table,
            SessionStep::Run { sql, .. } => sql,
            _ => return false,
        };
        !self.progress.has_failed() && self.temporary.tables().are_mentioned_in(text)
    }

    /// Runs a step that concerns temporary tables alone. Goes on with one that has to do with the ledger: with their rows, where it reads both
    /// and others run it again.
    fn run_on_temporary(
        &mut self,
        step: SessionStep,
    ) -> ControlFlow<Result<StatementResult, SqlError>, SessionStep> {
        let payload = match &step {
            SessionStep::Run { sql, parameters } => {
                let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
                let library = self.progress.stage().library.clone();
                let tables = self.temporary.tables();
                if self.steps.is_some()
                    && let Some(filling) = tables.filling(&library, sql, &types)
                {
                    return ControlFlow::Break(self.fill(filling, parameters));
                }
                let given = match self.steps.is_some() {
                    true => tables.given_to(&library, sql, &types),
                    false => Ok(None),
                };
                match given {
                    Err(error) => return ControlFlow::Break(Err(error)),
                    Ok(Some(tables)) => {
                        let given = StepGiven { held: Vec::new(), tables };
                        let (sql, parameters) = (sql.clone(), parameters.clone());
                        let with_rows = SessionStep::RunGiven { given, sql, parameters };
                        // The session may read what no transaction could carry.
                        let (steps, bytes) =
                            (self.steps.as_ref().map_or(0, Vec::len), encode(&with_rows).len());
                        let is_too_large = self.check_size(steps + 1, self.bytes + bytes).is_err();
                        if !(is_too_large && self.reads(&with_rows)) {
                            return ControlFlow::Continue(with_rows);
                        }
                    }
                    Ok(None) => {}
                }
                Payload::Script { sql: sql.clone(), parameters: parameters.clone() }
            }
            SessionStep::Insert { table, columns, rows } => Payload::Insert {
                table: table.clone(),
                columns: columns.clone(),
                rows: rows.iter().collect(),
            },
            _ => return ControlFlow::Continue(step),
        };
        self.run_here(&payload).map_or(ControlFlow::Continue(step), ControlFlow::Break)
    }

    /// Fills a temporary table with what a query gives, which is a step of the block.
    fn fill(&mut self, filling: Filling, parameters: &[Value]) -> Result<StatementResult, SqlError> {
        let Filling { query, create, table, mut columns } = filling;
        let parameters = parameters.to_vec();
        let found =
            self.run_within_limits(SessionStep::Run { sql: query, parameters: parameters.clone() })?;
        let tag = match &create {
            Some(_) => found.tag,
            None => format!("INSERT 0 {}", found.rows.len()),
        };
        if let Some(sql) = create {
            self.run_here(&Payload::Script { sql, parameters }).transpose()?;
        }
        if columns.is_empty() {
            let table = self.temporary.tables().catalog().tables.get(&table);
            let known = table.into_iter().flat_map(|table| &table.columns);
            columns.extend(known.take(found.columns.len()).map(|column| column.name.clone()));
        }
        self.run_here(&Payload::Insert { table, columns, rows: found.rows }).transpose()?;
        Ok(StatementResult { tag, notices: found.notices, ..StatementResult::default() })
    }

    /// Runs what concerns temporary tables alone; `None` where it does not.
    fn run_here(&mut self, payload: &Payload) -> Option<Result<StatementResult, SqlError>> {
        let context = Context { step_limit: self.read_step_limit, ..self.context };
        let stage = self.progress.stage().clone();
        let seen = stage.seen(self.snapshot.as_ref());
        let catalog = self.temporary.tables().catalog().clone();
        self.temporary.tables().be_interrupted_by(&self.interrupt);
        let ran = self.temporary.tables().run(
            &self.principal,
            &stage.library,
            seen.as_snapshot(),
            payload,
            context,
        )?;
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => return Some(Err(error)),
        };
        if !Arc::ptr_eq(&catalog, self.temporary.tables().catalog()) {
            self.schema_changes += 1;
            if self.read_only {
                let tag = ran.results.last().map(|result| result.tag.as_str()).unwrap_or_default();
                return Some(Err(progress::schema_change_in_read_only(tag)));
            }
        }
        if ran.reads_ledger {
            if self.has_written() {
                return Some(Err(temporary::reads_unseen()));
            }
            self.temporary.note_read_of_ledger();
        }
        if let Err(error) = self.temporary.check_saved() {
            return Some(Err(error));
        }
        Some(Ok(ran.results.into_iter().next_back().unwrap_or_default()))
    }

    /// Whether it has changed the ledger's rows or schema, or notifies, and has not undone it.
    fn has_written(&self) -> bool {
        !self.suspended.commands().is_empty()
            || self.suspended.notifications() > 0
            || self.progress.stage().changed_catalog().is_some()
    }

    fn check_size(&self, steps: usize, bytes: usize) -> Result<(), SqlError> {
        /// What a transaction has beside its steps, with room to spare.
        const OTHER_BYTES: usize = 1024;
        let steps_max = limits::session_steps_max(self.progress.stage().library.version());
        let message = if steps > steps_max {
            format!("a transaction block has at most {steps_max} statements (SESSION_STEPS_MAX)")
        } else if bytes + OTHER_BYTES > self.bytes_max {
            format!(
                "the transaction block has {bytes} bytes, the limit is {} (block.transaction_bytes_max of the charter, less its signature)",
                self.bytes_max - OTHER_BYTES
            )
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("COMMIT more often; a block that only reads has no such limit if it begins as READ ONLY."))
    }

    /// Whether a step can only read.
    fn reads(&self, step: &SessionStep) -> bool {
        match self.progress.stage().library.script_of(step) {
            Ok(Some(script)) => script.kind() == StatementKind::Read,
            Ok(None) => !matches!(step, SessionStep::Insert { .. }),
            Err(_) => false,
        }
    }

    /// The transaction that the block is, and the temporary tables behind it.
    pub fn finish(self) -> Finished {
        let has_written = self.has_written();
        let (now_ms, results) = (self.context.timestamp_ms, self.results.digest());
        let payload =
            self.steps.filter(|_| has_written).map(|steps| Payload::Session { steps, now_ms, results });
        Finished { payload, temporary: self.temporary.commit() }
    }
}
