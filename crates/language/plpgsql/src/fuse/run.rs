//! Runs fused statements: several statements on one row as one command.

use crate::fuse::row_program::RowRun;
use crate::program::FusedStatement;
use execute::Execution;
use plan::statement::resolve_key;
use types::{SqlError, Value};
use values::work::measured;

/// Runs fused statements on their row as it stands, and records them as one command. Gives whether a change of
/// the row matched.
///
/// They cost the steps that the statements cost one by one. One step has been charged already: that of the
/// instruction.
///
/// # Errors
/// What the statements end with.
pub(crate) fn run_fused(
    execution: &mut Execution<'_>,
    fused: &FusedStatement,
    frame: &[Value],
) -> Result<bool, SqlError> {
    execution.begin_change();
    let environment = execution.environment(&[], frame);
    let Some(key) = resolve_key(fused.key(), &environment)? else {
        // No row can have this key: nothing is looked at and nothing stands at a place.
        let left = execution.steps_left();
        let (run, work) = measured(left, || fused.function(&environment).run_without_key());
        let RowRun { change, steps, .. } = run;
        execution.charge(steps.saturating_add(work).saturating_sub(1))?;
        return change.map(|_| false);
    };
    let function = fused.function(&environment);
    let command = fused.command(key, function.clone(), &environment);
    let current = execution.current(command.row.table, &command.row.key)?;
    let left = execution.steps_left();
    let (run, work) = measured(left, || function.run(current.as_ref()));
    let RowRun { change, steps, change_failed } = run;
    let steps = steps.saturating_add(work);
    // How many steps it takes depends on the row, and so does whether they are too many.
    let ended = match (execution.charge(steps.saturating_sub(1)), &change) {
        (Err(error), _) => Some(error),
        (Ok(()), Err(error)) if !change_failed => Some(error.clone()),
        _ => None,
    };
    if let Some(error) = ended {
        execution.read_for_good(command.row, command.uses);
        return Err(error);
    }
    execution.record(command, fused.certainly_written(), change)
}
