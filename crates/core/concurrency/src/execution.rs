//! Single executions: what they cost, and how effects apply to a state that nobody else changes.

use crate::TransactionOutcome;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use state::{Command, Effects, FirstFailure, Overlay, RowChange, RowId, Simulate, Snapshot, StoreError};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Row, SqlError, SqlState};

/// Transactions that one task simulates one after the other.
const CHUNK: usize = 16;

/// Logical steps that a batch may spend. A transaction runs while anything is left.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Budget {
        Budget { limit, spent: 0 }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent >= self.limit
    }

    pub(crate) fn charge(&mut self, steps: u64) {
        self.spent = self.spent.saturating_add(steps);
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }
}

/// Runs a transaction and keeps the promises that protocols rely on: an error leaves no commands.
pub(crate) fn execute(transaction: &dyn Simulate, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
    let mut effects = transaction.simulate(snapshot)?;
    if effects.catalog.take().is_some() {
        let error = SqlError::unsupported("a schema change together with other transactions")
            .hint("submit it as a transaction of its own");
        effects.result = Err(error);
    }
    if effects.result.is_err() {
        effects.commands.clear();
    }
    Ok(effects)
}

/// Runs all transactions on one snapshot, in parallel. `None`: `limit` logical steps were gone before its turn.
/// [`charge`] has the last word, which does not depend on the threads.
pub(crate) fn simulate_all(
    transactions: &[Arc<dyn Simulate>],
    snapshot: &dyn Snapshot,
    limit: u64,
) -> Result<Vec<Option<Effects>>, StoreError> {
    let failure = FirstFailure::default();
    let mut effects: Vec<Option<Effects>> = Vec::new();
    effects.resize_with(transactions.len(), || None);
    let spent: Vec<AtomicU64> = transactions.chunks(CHUNK).map(|_| AtomicU64::new(0)).collect();
    effects.par_chunks_mut(CHUNK).zip(transactions.par_chunks(CHUNK)).enumerate().for_each(
        |(chunk, (effects, transactions))| {
            // What is known of the chunks before is at most what they spend in the end, so nothing that has a turn
            // is left out; it only saves work.
            let before =
                spent[..chunk].iter().fold(0u64, |sum, s| sum.saturating_add(s.load(Ordering::Relaxed)));
            let mut own = 0u64;
            for (effects, transaction) in effects.iter_mut().zip(transactions) {
                if before.saturating_add(own) >= limit || failure.get().is_some() {
                    break;
                }
                let found = match execute(transaction.as_ref(), snapshot) {
                    Ok(found) => found,
                    Err(error) => return failure.note(error),
                };
                own = own.saturating_add(found.steps);
                spent[chunk].store(own, Ordering::Relaxed);
                *effects = Some(found);
            }
        },
    );
    failure.check(effects)
}

/// Charges simulations in order; those behind the end of the budget do not count.
pub(crate) fn charge(effects: &mut [Option<Effects>], budget: &mut Budget) {
    for effects in effects {
        if budget.is_spent() {
            *effects = None;
        } else {
            budget.charge(effects.as_ref().expect("everything before the end of the budget has run").steps);
        }
    }
}

/// Runs a transaction on the state as it stands and applies what it does. Gives its effects as well, without its
/// results, unless the budget was gone before. What is not permitted has no effects and ends as a conflict.
pub(crate) fn run_now(
    transaction: &dyn Simulate,
    state: &mut Overlay<'_>,
    budget: &mut Budget,
    permits: impl FnOnce(&Effects) -> bool,
) -> Result<(TransactionOutcome, Option<Effects>), StoreError> {
    if budget.is_spent() {
        return Ok((TransactionOutcome::OverBudget, None));
    }
    let mut effects = execute(transaction, state)?;
    budget.charge(effects.steps);
    if !permits(&effects) {
        return Ok((TransactionOutcome::Conflict, None));
    }
    let result = std::mem::replace(&mut effects.result, Ok(Vec::new()));
    let outcome = match result {
        Ok(results) => match apply_now(&effects.commands, state)? {
            Ok(()) => TransactionOutcome::Committed(results),
            Err(error) => TransactionOutcome::Aborted(error),
        },
        Err(error) => TransactionOutcome::Aborted(error),
    };
    Ok((outcome, Some(effects)))
}

/// Applies commands to the state that they were simulated on: nothing may fail.
pub(crate) fn apply_now(
    commands: &[Command],
    state: &mut Overlay<'_>,
) -> Result<Result<(), SqlError>, StoreError> {
    let mut undo: Vec<(&RowId, Option<Row>)> = Vec::new();
    for command in commands {
        let before = state.current(&command.row)?;
        match step(command, before.as_ref()) {
            Step::Unchanged => {}
            Step::Changed(after) => {
                undo.push((&command.row, before));
                state.set(command.row.clone(), after)?;
            }
            failed @ (Step::Again | Step::Error(_)) => {
                debug_assert!(false, "{command:?} succeeds on the state that it was simulated on");
                for (row, before) in undo.into_iter().rev() {
                    state.set(row.clone(), before)?;
                }
                return Ok(Err(match failed {
                    Step::Error(error) => error,
                    _ => SqlError::new(
                        SqlState::INTERNAL_ERROR,
                        "a guard failed on the state that it was made on",
                    ),
                }));
            }
        }
    }
    Ok(Ok(()))
}

/// What a command comes to at its place.
pub(crate) enum Step {
    /// It matched nothing, and nobody minds.
    Unchanged,
    /// The row has this value now.
    Changed(Option<Row>),
    /// Whether it matched is not what the transaction saw: the transaction has to run again.
    Again,
    /// A business abort.
    Error(SqlError),
}

/// Evaluates one command on its row as the commands before it left it. An error where the transaction saw that
/// nothing matched is a guard that does not hold: what matches nothing meets no error.
pub(crate) fn step(command: &Command, row: Option<&Row>) -> Step {
    let change = match command.function.apply(row) {
        Ok(change) => change,
        Err(_) if command.guard == Some(false) => return Step::Again,
        Err(error) => return Step::Error(error),
    };
    let matched = change != RowChange::Unmatched;
    if command.guard.is_some_and(|seen| seen != matched) {
        return Step::Again;
    }
    match change {
        RowChange::Unmatched => Step::Unchanged,
        RowChange::Put(row) => Step::Changed(Some(row)),
        RowChange::Delete => Step::Changed(None),
    }
}

/// Whether two values of a row are two states.
pub(crate) fn differs(before: Option<&Row>, after: Option<&Row>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => !Arc::ptr_eq(before, after) && before != after,
        (None, None) => false,
        _ => true,
    }
}

/// In which of so many shards of shared memory a row stands.
pub(crate) fn shard_of(row: &RowId, shards: usize) -> usize {
    // The upper bits of this hash are the well mixed ones.
    (FxBuildHasher.hash_one(row) >> 32) as usize % shards
}
