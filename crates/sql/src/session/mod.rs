//! Transaction blocks: what a session does between BEGIN and COMMIT, first for its client on one snapshot, then again by
//! every node at the transaction's place in the order. Both run the same steps in the same way ([`Progress`]); the second
//! run commits if it gives the client what the first one has given.
//!
//! SAVEPOINT is the beginning of a block with handlers, ROLLBACK TO its error (`execution::protect`): what decides whether
//! a step fails behind a savepoint is read, and so is what undone steps used, because the client has seen what they gave.

use crate::execution::{Context, Execution, Savepoint, Suspended};
use crate::library::Library;
use crate::prepare::StatementKind;
use crate::simulate::insert_rows;
use state::{Command, RowChange, RowFunction, Snapshot};
use std::sync::Arc;
use types::{
    DataType, Payload, Principal, Row, SessionResults, SessionStep, SqlError, SqlState, StatementResult,
    Value, encode, limits, results_have_changed,
};

/// How far a block is.
#[derive(Default)]
pub(crate) struct Progress {
    savepoints: Vec<(String, Savepoint)>,
    /// A step has ended with an error, and nothing has been rolled back since.
    failed: bool,
}

impl Progress {
    /// Runs the next step.
    ///
    /// # Errors
    /// What it ends with; then only ROLLBACK TO can be next.
    pub fn run(
        &mut self,
        execution: &mut Execution<'_>,
        step: &SessionStep,
    ) -> Result<StatementResult, SqlError> {
        if self.failed && !matches!(step, SessionStep::RollbackTo(_)) {
            return Err(is_aborted());
        }
        execution.see_newer();
        let result = self.try_run(execution, step);
        self.failed = result.is_err();
        // An error tells itself alone.
        drop(execution.take_notices());
        result
    }

    /// Whether the block has failed without a savepoint to go back to.
    pub fn is_lost(&self) -> bool {
        self.failed && self.savepoints.is_empty()
    }

    fn try_run(
        &mut self,
        execution: &mut Execution<'_>,
        step: &SessionStep,
    ) -> Result<StatementResult, SqlError> {
        let tag = match step {
            SessionStep::Run { sql, parameters } => return run_statement(execution, sql, parameters),
            SessionStep::Insert { table, columns, rows } => {
                let results = insert_rows(execution, table, columns, rows)?;
                return Ok(results.into_iter().next_back().unwrap_or_default());
            }
            SessionStep::Savepoint(name) => {
                if self.savepoints.len() >= limits::SAVEPOINTS_MAX {
                    let message = format!(
                        "a transaction block has at most {} savepoints (SAVEPOINTS_MAX)",
                        limits::SAVEPOINTS_MAX
                    );
                    return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                        .hint("Release savepoints that are not needed any more."));
                }
                // The first change behind it copies what the block has written.
                execution.charge(1 + execution.own_rows() as u64)?;
                self.savepoints.push((name.clone(), execution.protect()));
                "SAVEPOINT"
            }
            SessionStep::RollbackTo(name) => {
                let position = self.find(name)?;
                self.savepoints.truncate(position + 1);
                if let Some((name, savepoint)) = self.savepoints.pop() {
                    execution.undo(savepoint);
                    self.savepoints.push((name, execution.protect()));
                }
                execution.charge(1 + execution.own_rows() as u64)?;
                "ROLLBACK"
            }
            SessionStep::Release(name) => {
                let position = self.find(name)?;
                execution.charge(1)?;
                self.savepoints.drain(position..).for_each(|_| execution.unprotect());
                "RELEASE"
            }
        };
        Ok(tagged(tag))
    }

    /// The newest savepoint of this name.
    fn find(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.savepoints.iter().rposition(|(known, _)| known == name);
        found.ok_or_else(|| {
            SqlError::new(SqlState::INVALID_SAVEPOINT, format!("savepoint \"{name}\" does not exist"))
        })
    }
}

fn tagged(tag: &str) -> StatementResult {
    StatementResult { tag: tag.to_string(), ..StatementResult::default() }
}

fn is_aborted() -> SqlError {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    SqlError::new(SqlState::IN_FAILED_TRANSACTION, message)
}

fn run_statement(
    execution: &mut Execution<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<StatementResult, SqlError> {
    let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
    let script = execution.library().script(sql, &types)?;
    match script.kind() {
        StatementKind::SchemaChange => {
            return Err(SqlError::unsupported("a schema change in a transaction block")
                .hint("COMMIT first: a schema change is a transaction of its own."));
        }
        StatementKind::Copy { .. } => {
            return Err(
                SqlError::unsupported("COPY as a statement of a transaction").hint("Insert the rows.")
            );
        }
        StatementKind::Read | StatementKind::Write | StatementKind::Empty => {}
    }
    if script.steps.len() > 1 {
        let message = "cannot insert multiple commands into a prepared statement";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let frame = script.frame(parameters)?;
    let results = script.run_steps(execution, &frame, false)?;
    Ok(results.into_iter().next_back().unwrap_or_default())
}

/// Runs the steps of a block again, and gives what they give; `None` where a step fails and nothing is rolled back. What
/// decides that has been read.
pub(crate) fn run_again(
    execution: &mut Execution<'_>,
    steps: &[SessionStep],
    now_ms: u64,
) -> Option<SessionResults> {
    execution.set_now(now_ms);
    let (mut progress, mut results) = (Progress::default(), SessionResults::default());
    for step in steps {
        results.add(&progress.run(execution, step));
        if progress.is_lost() {
            break;
        }
    }
    (!progress.failed).then_some(results)
}

/// What the COMMIT of a block gives.
pub(crate) fn committed() -> Vec<StatementResult> {
    vec![tagged("COMMIT")]
}

/// A command of a block: what it ends with at its place, the client has not been given.
struct GivenCommand(Arc<dyn RowFunction>);

impl RowFunction for GivenCommand {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        self.0.apply(row).map_err(|_| results_have_changed())
    }
}

/// Makes an error that a command of a block ends with at its place the block's.
pub(crate) fn guard_results(commands: &mut [Command]) {
    for command in commands.iter_mut().filter(|command| command.can_fail) {
        command.function = Arc::new(GivenCommand(command.function.clone()));
    }
}

/// A transaction block that a gateway runs for its client, on one snapshot.
///
/// Nothing of it is ordered before [`Session::finish`] makes a transaction of it.
pub struct Session {
    library: Arc<Library>,
    snapshot: Arc<dyn Snapshot>,
    context: Context,
    principal: Principal,
    /// Steps that it may take as long as it has written nothing.
    read_step_limit: u64,
    read_only: bool,
    suspended: Suspended,
    progress: Progress,
    /// What it has done, and the bytes of that. Nothing where it was only to read from the first.
    steps: Option<Vec<SessionStep>>,
    bytes: usize,
    results: SessionResults,
}

impl Session {
    /// A block begins, in the name of `principal`. `context`: its time is `now()`, its limit that of a transaction. `library`: that of the snapshot's
    /// catalog. `read_step_limit`: what it may take as long as it only reads, because then nobody else runs it.
    pub fn begin(
        library: Arc<Library>,
        snapshot: Arc<dyn Snapshot>,
        context: Context,
        principal: Principal,
        read_step_limit: u64,
        read_only: bool,
    ) -> Session {
        debug_assert_eq!(snapshot.catalog().version, library.catalog().version, "the snapshot's library");
        Session {
            library,
            snapshot,
            context,
            principal,
            read_step_limit,
            read_only,
            suspended: Suspended::default(),
            progress: Progress::default(),
            steps: (!read_only).then(Vec::new),
            bytes: 0,
            results: SessionResults::default(),
        }
    }

    /// The catalog that it runs with.
    pub fn catalog_version(&self) -> u64 {
        self.library.catalog().version
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
        let bytes = encode(&step).len();
        if let Some(steps) = &self.steps {
            self.check_size(steps.len() + 1, self.bytes + bytes)?;
        } else {
            // Nobody runs this again: every statement is metered on its own, as outside of a block.
            self.suspended.forget_steps();
        }
        let writes = !self.suspended.commands().is_empty();
        let mut context = self.context;
        if !writes && self.reads(&step) {
            context.step_limit = self.read_step_limit;
        }
        let suspended = std::mem::take(&mut self.suspended);
        let before = suspended.commands().len();
        let mut execution =
            Execution::resume(&self.library, self.snapshot.as_ref(), context, &self.principal, suspended);
        let mut result = self.progress.run(&mut execution, &step);
        self.suspended = execution.suspend();
        if self.read_only && result.is_ok() && self.suspended.commands().len() > before {
            let tag = result.map(|result| result.tag).unwrap_or_default();
            let what = tag.split(|c: char| !c.is_ascii_uppercase()).next().unwrap_or_default();
            let message = format!("cannot execute {what} in a read-only transaction");
            result = Err(SqlError::new(SqlState::READ_ONLY_TRANSACTION, message));
            self.progress.failed = true;
        }
        if let Some(steps) = &mut self.steps {
            self.bytes += bytes;
            self.results.add(&result);
            steps.push(step);
        }
        result
    }

    fn check_size(&self, steps: usize, bytes: usize) -> Result<(), SqlError> {
        /// What a transaction has beside its steps, with room to spare.
        const OTHER_BYTES: usize = 1024;
        let message = if steps > limits::SESSION_STEPS_MAX {
            format!(
                "a transaction block has at most {} statements (SESSION_STEPS_MAX)",
                limits::SESSION_STEPS_MAX
            )
        } else if bytes + OTHER_BYTES > limits::TRANSACTION_BYTES_MAX {
            format!(
                "the transaction block has {bytes} bytes, the limit is {} (TRANSACTION_BYTES_MAX, less its signature)",
                limits::TRANSACTION_BYTES_MAX - OTHER_BYTES
            )
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("COMMIT more often; a block that only reads has no such limit if it begins as READ ONLY."))
    }

    /// Whether a step can only read.
    fn reads(&self, step: &SessionStep) -> bool {
        let SessionStep::Run { sql, parameters } = step else {
            return !matches!(step, SessionStep::Insert { .. });
        };
        let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
        self.library.script(sql, &types).is_ok_and(|script| script.kind() == StatementKind::Read)
    }

    /// The transaction that the block is; `None` where it has changed nothing, so that nothing is to be ordered.
    pub fn finish(self) -> Option<Payload> {
        if self.suspended.commands().is_empty() {
            return None;
        }
        let (now_ms, results) = (self.context.timestamp_ms, self.results.digest());
        Some(Payload::Session { steps: self.steps?, now_ms, results })
    }
}
