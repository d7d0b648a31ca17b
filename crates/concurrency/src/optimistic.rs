//! What the optimistic protocols share: simulate all on one snapshot, let the protocol decide, place what it
//! accepts, and run what is left over one after the other. They differ in how they decide.

use crate::execution::{Budget, differs, run_now, simulate_all};
use crate::placement::{Verdict, place};
use crate::written_rows::WrittenRows;
use crate::{Batch, BatchResult, BatchStatistics, History, TransactionOutcome};
use rayon::prelude::*;
use state::{AfterImage, Effects, Overlay, Snapshot};

/// Transactions that one task turns into outcomes. Most of that is freeing their effects.
const TRANSACTIONS_PER_TASK: usize = 64;

/// A batch after simulation: what a protocol decides on.
pub(crate) struct Simulated<'a> {
    /// By transaction; `None`: it was not executed and has no part in anything.
    pub(crate) effects: &'a [Option<Effects>],
    /// The rows that they write.
    pub(crate) rows: &'a WrittenRows<'a>,
    /// What they ran on.
    pub(crate) snapshot: &'a dyn Snapshot,
}

/// What a protocol makes of a batch. Every executed transaction is in one of the lists.
#[derive(Debug)]
pub(crate) struct Decision {
    /// Accepted, in the order in which they are placed.
    pub(crate) order: Vec<u32>,
    /// To be run again, ascending.
    pub(crate) rejected: Vec<u32>,
}

/// Runs a batch.
pub(crate) fn run(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    decide: impl FnOnce(&Simulated<'_>) -> Decision,
) -> BatchResult {
    let mut budget = Budget::new(batch.steps_left);
    let effects = simulate_all(&batch.transactions, snapshot, &mut budget);
    let (decision, placement) = {
        let rows = WrittenRows::new(&effects);
        let decision = decide(&Simulated { effects: &effects, rows: &rows, snapshot });
        let placement = place(&effects, &rows, &decision.order, snapshot);
        (decision, placement)
    };
    let mut statistics =
        BatchStatistics { executions: effects.iter().flatten().count() as u64, ..BatchStatistics::default() };
    let (outcomes, placed, guards_failed) = settle(effects, &decision.order, placement.verdicts);
    let mut result = BatchResult {
        height: batch.height,
        number: batch.number,
        outcomes,
        changes: placement.changes,
        history: History { placed, serial: Vec::new() },
        steps: 0,
        statistics,
    };
    let left_over = merge(&decision.rejected, &guards_failed);
    if !left_over.is_empty() {
        run_left_over(batch, snapshot, &left_over, &mut budget, &mut result);
        let ran = |number: &&u32| result.history.serial.binary_search(number).is_ok();
        statistics.reexecuted = result.history.serial.len() as u64;
        statistics.executions += statistics.reexecuted;
        statistics.rejected = decision.rejected.iter().filter(ran).count() as u64;
        statistics.guards_failed = guards_failed.iter().filter(ran).count() as u64;
        result.statistics = statistics;
    }
    result.steps = budget.spent();
    result
}

/// Outcomes of what was placed, the order of those that stay, and, ascending, those of which a guard failed.
fn settle(
    effects: Vec<Option<Effects>>,
    order: &[u32],
    verdicts: Vec<Verdict>,
) -> (Vec<TransactionOutcome>, Vec<u32>, Vec<u32>) {
    let mut outcomes: Vec<TransactionOutcome> = effects
        .into_par_iter()
        .with_min_len(TRANSACTIONS_PER_TASK)
        .map(|effects| match effects.map(|effects| effects.result) {
            None => TransactionOutcome::OverBudget,
            Some(Ok(results)) => TransactionOutcome::Committed(results),
            Some(Err(error)) => TransactionOutcome::Aborted(error),
        })
        .collect();
    let mut placed = Vec::with_capacity(order.len());
    let mut guards_failed = Vec::new();
    for (number, verdict) in order.iter().zip(verdicts) {
        match verdict {
            Verdict::Applied => placed.push(*number),
            Verdict::Error(error) => {
                placed.push(*number);
                outcomes[*number as usize] = TransactionOutcome::Aborted(*error);
            }
            Verdict::Again => guards_failed.push(*number),
        }
    }
    guards_failed.sort_unstable();
    (outcomes, placed, guards_failed)
}

fn merge(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all
}

/// Runs transactions one after the other on the state that the placed ones left.
fn run_left_over(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    numbers: &[u32],
    budget: &mut Budget,
    result: &mut BatchResult,
) {
    let placed = Overlay::with_changes(snapshot, result.changes.iter().cloned());
    let mut state = Overlay::new(&placed);
    for number in numbers {
        let outcome = run_now(batch.transactions[*number as usize].as_ref(), &mut state, budget);
        if outcome != TransactionOutcome::OverBudget {
            result.history.serial.push(*number);
        }
        result.outcomes[*number as usize] = outcome;
    }
    let later = state.into_changes();
    result.changes = override_changes(std::mem::take(&mut result.changes), later, snapshot);
}

/// `changes` with the values of `later` where both have the row, without rows that are as in `before` again. Both and
/// the result are by table and key.
fn override_changes(
    changes: Vec<AfterImage>,
    later: Vec<AfterImage>,
    before: &dyn Snapshot,
) -> Vec<AfterImage> {
    let mut all = Vec::with_capacity(changes.len() + later.len());
    let mut earlier = changes.into_iter().peekable();
    for change in later {
        while let Some(kept) = earlier.next_if(|kept| kept.row < change.row) {
            all.push(kept);
        }
        earlier.next_if(|replaced| replaced.row == change.row);
        if differs(before.get(change.row.table, &change.row.key).as_ref(), change.value.as_ref()) {
            all.push(change);
        }
    }
    all.extend(earlier);
    all
}
