//! The steps of a transaction block, run one after the other.

use crate::insert::insert_rows;
use crate::library::Library;
use crate::script::{StatementKind, Step};
use crate::session::place::Place;
use crate::session::stage::Stage;
use execute::{Execution, HeldElsewhere, Savepoint, Suspended};
use std::rc::Rc;
use std::sync::Arc;
use syntax::parse::is_schema_change;
use types::{SessionStep, SqlError, SqlState, StatementResult, Value, limits};

/// How far a block is.
pub(crate) struct Progress {
    /// What the next step runs with.
    stage: Stage,
    savepoints: Vec<(String, Savepoint, Stage)>,
    /// A step has ended with an error, and nothing has been rolled back since.
    failed: bool,
}

impl Progress {
    /// Nothing has run yet.
    pub fn new(library: Arc<Library>) -> Progress {
        Progress { stage: Stage::new(library), savepoints: Vec::new(), failed: false }
    }

    /// What the next step runs with.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// A step has ended with an error that [`Progress::run`] does not know of.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether the last step has ended with an error.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Runs the next step, which may change the schema, of a transaction that is suspended between its steps.
    ///
    /// # Errors
    /// As [`Progress::run`].
    pub fn run_at(
        &mut self,
        place: &Place<'_>,
        suspended: &mut Suspended,
        step: &SessionStep,
    ) -> Result<StatementResult, SqlError> {
        if let Some((sql, _)) = step.statement()
            && !self.failed
            && is_schema_change(sql, self.stage.library.version())
            && let Ok(script) = self.stage.library.script(sql, &[])
            && let [Step::Schema(change)] = script.steps.as_slice()
        {
            let result =
                self.stage.change_schema(place, suspended, (std::slice::from_ref(change), script.format));
            let result = result.map(|results| results.into_iter().next_back().unwrap_or_default());
            let result = match result {
                // What is called IF NOT EXISTS and finds that it does is refused, too, as in PostgreSQL.
                Ok(result) if place.read_only => Err(schema_change_in_read_only(&result.tag)),
                result => result,
            };
            self.failed = result.is_err();
            return result;
        }
        let stage = self.stage.clone();
        let seen = stage.seen(place.snapshot);
        let mut execution = place.resume(&stage.library, seen.as_snapshot(), suspended);
        let result = self.run(&mut execution, step);
        *suspended = execution.suspend();
        result
    }

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
        if !step.given().held.is_empty() {
            execution.know_row_locks(Some(Rc::new(HeldElsewhere::of(&step.given().held))));
        }
        let result = self.try_run(execution, step);
        execution.know_row_locks(None);
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
            SessionStep::Run { parameters, .. } | SessionStep::RunGiven { parameters, .. } => {
                return run_statement(&self.stage.library, execution, step, parameters);
            }
            SessionStep::Insert { .. } if execution.is_reading_only() => {
                return Err(SqlError::not_in_read_only("COPY FROM"));
            }
            SessionStep::Insert { table, columns, rows } => {
                let results = insert_rows(execution, table, columns, rows.iter())?;
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
                self.savepoints.push((name.clone(), execution.protect(), self.stage.clone()));
                "SAVEPOINT"
            }
            SessionStep::RollbackTo(name) => {
                let position = self.find(name)?;
                self.savepoints.truncate(position + 1);
                if let Some((name, savepoint, stage)) = self.savepoints.pop() {
                    execution.undo(savepoint);
                    self.stage = stage.clone();
                    self.savepoints.push((name, execution.protect(), stage));
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
        let found = self.savepoints.iter().rposition(|(known, ..)| known == name);
        found.ok_or_else(|| {
            SqlError::new(SqlState::INVALID_SAVEPOINT, format!("savepoint \"{name}\" does not exist"))
        })
    }
}

pub(super) fn tagged(tag: &str) -> StatementResult {
    StatementResult { tag: tag.to_string(), ..StatementResult::default() }
}

/// A read-only transaction must not make this change of the schema.
pub(super) fn schema_change_in_read_only(tag: &str) -> SqlError {
    SqlError::not_in_read_only(if tag.starts_with("SELECT") { "CREATE TABLE AS" } else { tag })
}

fn is_aborted() -> SqlError {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    SqlError::new(SqlState::IN_FAILED_TRANSACTION, message)
}

fn run_statement(
    library: &Library,
    execution: &mut Execution<'_>,
    step: &SessionStep,
    parameters: &[Value],
) -> Result<StatementResult, SqlError> {
    let Some(script) = library.script_of(step)? else { return Ok(StatementResult::default()) };
    if matches!(script.kind(), StatementKind::Copy { .. }) {
        let error = SqlError::unsupported("COPY as a statement of a transaction");
        return Err(error.hint("Insert the rows."));
    }
    if script.steps.len() > 1 {
        let message = "cannot insert multiple commands into a prepared statement";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let frame = script.frame(parameters)?;
    let results = script.run_given(execution, &frame, &step.given().tables)?;
    Ok(results.into_iter().next_back().unwrap_or_default())
}
