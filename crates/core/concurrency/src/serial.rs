//! One transaction after the other.

use crate::execution::{Budget, differs, run_now};
use crate::{Batch, BatchResult, BatchStatistics, History, Protocol, Snapshots, TransactionOutcome};
use state::{AfterImage, FirstFailure, Overlay, Snapshot, StoreError};
use std::collections::VecDeque;

/// Runs every transaction on the state that the one before it left: the yardstick for correctness, and for what
/// everything else costs.
#[derive(Default)]
pub(crate) struct Serial {
    waiting: VecDeque<Batch>,
}

impl Protocol for Serial {
    fn id(&self) -> &'static str {
        "serial"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        run(&batch, snapshots.newest().as_ref()).map(Some)
    }
}

/// Runs a whole batch in order.
pub(crate) fn run(batch: &Batch, snapshot: &dyn Snapshot) -> Result<BatchResult, StoreError> {
    run_but(batch, snapshot, |_| None)
}

/// Runs a batch in order but those transactions that are `settled` without an execution, if their turn comes.
pub(crate) fn run_but(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    settled: impl Fn(usize) -> Option<TransactionOutcome>,
) -> Result<BatchResult, StoreError> {
    let mut budget = Budget::new(batch.steps_left);
    let mut state = Overlay::new(snapshot);
    let mut history = History::default();
    let mut outcomes = Vec::with_capacity(batch.transactions.len());
    for (number, transaction) in batch.transactions.iter().enumerate() {
        if let Some(outcome) = settled(number).filter(|_| !budget.is_spent()) {
            outcomes.push(outcome);
            continue;
        }
        let (outcome, effects) = run_now(transaction.as_ref(), &mut state, &mut budget, |_| true)?;
        if effects.is_some() {
            history.serial.push(number as u32);
        }
        outcomes.push(outcome);
    }
    Ok(result(batch, outcomes, changes_since(state, snapshot)?, history, &budget))
}

/// What a batch came to of which every executed transaction ran once, in order.
pub(crate) fn result(
    batch: &Batch,
    outcomes: Vec<TransactionOutcome>,
    changes: Vec<AfterImage>,
    history: History,
    budget: &Budget,
) -> BatchResult {
    let executions = history.serial.len() as u64;
    BatchResult {
        height: batch.height,
        number: batch.number,
        outcomes,
        changes,
        history,
        steps: budget.spent(),
        statistics: BatchStatistics { executions, ..BatchStatistics::default() },
    }
}

/// The changed rows of `state` that are not what they were in `before`.
fn changes_since(state: Overlay<'_>, before: &dyn Snapshot) -> Result<Vec<AfterImage>, StoreError> {
    let failure = FirstFailure::default();
    let mut changes = state.into_changes();
    changes.retain(|change| {
        let before = failure.keep(before.get(change.row.table, &change.row.key));
        differs(before.as_ref(), change.value.as_ref())
    });
    failure.check(changes)
}
