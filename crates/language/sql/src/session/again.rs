//! A transaction block at its place in the order: every node runs its steps again.

use crate::library::Library;
use crate::session::place::Place;
use crate::session::progress::{Progress, tagged};
use execute::{Execution, SessionPlace, Suspended};
use state::{Command, Effects, RowChange, RowFunction};
use std::sync::Arc;
use types::{Row, SessionResults, SessionStep, SqlError, StatementResult, results_have_changed};

/// Runs the steps of a block again, and gives what they give; `None` where a step fails and nothing is rolled back. What
/// decides that has been read.
pub(crate) fn run_again(
    library: &Arc<Library>,
    execution: &mut Execution<'_>,
    steps: &[SessionStep],
    place: SessionPlace,
) -> Option<SessionResults> {
    execution.be_session(place);
    let (mut progress, mut results) = (Progress::new(library.clone()), SessionResults::default());
    for step in steps {
        results.add(&progress.run(execution, step));
        if progress.is_lost() {
            break;
        }
    }
    (!progress.has_failed()).then_some(results)
}

/// As [`run_again`], of a block that changes the schema: it commits where its results are those that the
/// client was given.
pub(crate) fn run_again_alone(
    library: &Arc<Library>,
    place: &Place<'_>,
    steps: &[SessionStep],
    is_given: &dyn Fn(&SessionResults) -> bool,
) -> Effects {
    let (mut progress, mut results) = (Progress::new(library.clone()), SessionResults::default());
    let mut suspended = Suspended::default();
    for step in steps {
        results.add(&progress.run_at(place, &mut suspended, step));
        if progress.is_lost() {
            break;
        }
    }
    let same = !progress.has_failed() && is_given(&results);
    let result = match same {
        true => progress.stage().settle(place, &mut suspended).map(|()| committed()),
        false => Err(results_have_changed()),
    };
    progress.stage().effects(place.snapshot.catalog(), suspended, result)
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
