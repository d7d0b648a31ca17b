//! What the optimistic protocols share: simulate all on one snapshot, let the protocol decide, place what it
//! accepts, and treat what is left over as the charter says. They differ in how they decide.

use crate::execution::{Budget, charge, differs, run_now, simulate_all};
use crate::placement::{Verdict, place};
use crate::written_rows::WrittenRows;
use crate::{
    Batch, BatchResult, BatchStatistics, Granularity, History, OnConflict, ProtocolOptions,
    TransactionOutcome,
};
use rayon::prelude::*;
use state::{AfterImage, Effects, Overlay, Snapshot, StoreError};
use types::ColumnSet;

/// Transactions that one task turns into outcomes, or of which it frees the effects.
const TRANSACTIONS_PER_TASK: usize = 64;

/// A batch whose transactions have run on one snapshot, or, where others ran them, each on one of its own.
pub(crate) struct Simulation {
    effects: Vec<Option<Effects>>,
}

impl Simulation {
    /// Of simulations made elsewhere.
    pub(crate) fn of(effects: Vec<Effects>) -> Simulation {
        Simulation { effects: effects.into_iter().map(Some).collect() }
    }
}

/// A batch after simulation: what a protocol decides on.
pub(crate) struct Simulated<'a> {
    /// By transaction; `None`: it was not executed and has no part in anything.
    pub(crate) effects: &'a [Option<Effects>],
    /// The rows that they write.
    pub(crate) rows: &'a WrittenRows<'a>,
    /// What their commands are placed on.
    pub(crate) snapshot: &'a dyn Snapshot,
}

/// What a protocol makes of a batch. Every executed transaction is in one of the lists.
#[derive(Debug)]
pub(crate) struct Decision {
    /// Accepted, in the order in which they are placed.
    pub(crate) order: Vec<u32>,
    /// Not accepted, ascending.
    pub(crate) rejected: Vec<u32>,
}

/// A decided batch with the executions that count.
pub(crate) struct Committed {
    pub(crate) result: BatchResult,
    /// By transaction: what it did in the execution that counts, without its results; `None`: nothing.
    pub(crate) effects: Vec<Option<Effects>>,
}

/// Runs a batch on one snapshot from beginning to end.
pub(crate) fn run(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    options: &ProtocolOptions,
    decide: impl FnOnce(&Simulated<'_>) -> Decision,
) -> Result<BatchResult, StoreError> {
    let simulation = simulate(batch, snapshot, options.granularity)?;
    let committed = commit(batch, simulation, snapshot, options, decide)?;
    free(committed.effects);
    Ok(committed.result)
}

/// Executes all transactions of a batch on a snapshot.
pub(crate) fn simulate(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    granularity: Granularity,
) -> Result<Simulation, StoreError> {
    let mut effects = simulate_all(&batch.transactions, snapshot, batch.steps_left)?;
    if granularity == Granularity::Row {
        effects.par_iter_mut().with_min_len(TRANSACTIONS_PER_TASK).flatten().for_each(widen);
    }
    Ok(Simulation { effects })
}

/// Lets conflicts be of whole rows.
fn widen(effects: &mut Effects) {
    effects.reads.iter_mut().for_each(|read| read.columns = ColumnSet::ALL);
    for scan in &mut effects.scans {
        (scan.columns, scan.predicate_columns) = (ColumnSet::ALL, ColumnSet::ALL);
    }
    for command in &mut effects.commands {
        (command.uses, command.writes) = (ColumnSet::ALL, ColumnSet::ALL);
    }
}

/// Frees effects, which takes longer than it looks.
pub(crate) fn free(effects: Vec<Option<Effects>>) {
    effects.into_par_iter().with_min_len(TRANSACTIONS_PER_TASK).for_each(drop);
}

/// Lets a simulated batch take effect on `snapshot`, the state after everything before it.
pub(crate) fn commit(
    batch: &Batch,
    simulation: Simulation,
    snapshot: &dyn Snapshot,
    options: &ProtocolOptions,
    decide: impl FnOnce(&Simulated<'_>) -> Decision,
) -> Result<Committed, StoreError> {
    commit_permitted(batch, simulation, snapshot, options, decide, &|_, _| true)
}

/// The same where a transaction that runs again must not do just anything: `permits` judges its number and effects.
pub(crate) fn commit_permitted(
    batch: &Batch,
    simulation: Simulation,
    snapshot: &dyn Snapshot,
    options: &ProtocolOptions,
    decide: impl FnOnce(&Simulated<'_>) -> Decision,
    permits: &dyn Fn(u32, &Effects) -> bool,
) -> Result<Committed, StoreError> {
    let Simulation { mut effects } = simulation;
    let mut budget = Budget::new(batch.steps_left);
    charge(&mut effects, &mut budget);
    let (decision, placement) = {
        let rows = WrittenRows::new(&effects);
        let decision = decide(&Simulated { effects: &effects, rows: &rows, snapshot });
        let placement = place(&effects, &rows, &decision.order, snapshot, options.coalescing)?;
        (decision, placement)
    };
    let executions = effects.iter().flatten().count() as u64;
    let mut settled = settle(&mut effects, &decision.order, placement.verdicts);
    let mut result = BatchResult {
        height: batch.height,
        number: batch.number,
        outcomes: std::mem::take(&mut settled.outcomes),
        changes: placement.changes,
        history: History { placed: settled.placed, serial: Vec::new() },
        steps: 0,
        statistics: BatchStatistics {
            executions,
            rejected: decision.rejected.len() as u64,
            guards_failed: settled.guards_failed.len() as u64,
            ..BatchStatistics::default()
        },
    };
    let left_over = merge(&decision.rejected, &settled.guards_failed);
    for number in &left_over {
        effects[*number as usize] = None;
        result.outcomes[*number as usize] = TransactionOutcome::Conflict;
    }
    let mut committed = Committed { result, effects };
    if !left_over.is_empty() && options.on_conflict == OnConflict::Reexecute {
        run_left_over(batch, snapshot, &left_over, &mut budget, &mut committed, permits)?;
    }
    committed.result.steps = budget.spent();
    Ok(committed)
}

/// How placed transactions ended.
struct Settled {
    /// By transaction.
    outcomes: Vec<TransactionOutcome>,
    /// Those that stay, by place.
    placed: Vec<u32>,
    /// Those of which a guard failed, ascending.
    guards_failed: Vec<u32>,
}

/// Takes results out of effects, and verdicts into account.
fn settle(effects: &mut [Option<Effects>], order: &[u32], verdicts: Vec<Verdict>) -> Settled {
    let mut outcomes: Vec<TransactionOutcome> = effects
        .par_iter_mut()
        .with_min_len(TRANSACTIONS_PER_TASK)
        .map(|effects| match effects {
            None => TransactionOutcome::OverBudget,
            Some(effects) => match std::mem::replace(&mut effects.result, Ok(Vec::new())) {
                Ok(results) => TransactionOutcome::Committed(results),
                Err(error) => TransactionOutcome::Aborted(error),
            },
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
    Settled { outcomes, placed, guards_failed }
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
    committed: &mut Committed,
    permits: &dyn Fn(u32, &Effects) -> bool,
) -> Result<(), StoreError> {
    let result = &mut committed.result;
    let mut ran = 0;
    let mut state = Overlay::behind_batch(snapshot, &result.changes)?;
    for number in numbers {
        let transaction = batch.transactions[*number as usize].as_ref();
        let (outcome, effects) =
            run_now(transaction, &mut state, budget, |effects| permits(*number, effects))?;
        if effects.is_some() {
            result.history.serial.push(*number);
        }
        ran += u64::from(outcome != TransactionOutcome::OverBudget);
        result.outcomes[*number as usize] = outcome;
        committed.effects[*number as usize] = effects;
    }
    let later = state.into_changes();
    result.changes = override_changes(std::mem::take(&mut result.changes), later, snapshot)?;
    result.statistics.reexecuted = ran;
    result.statistics.executions += result.statistics.reexecuted;
    Ok(())
}

/// `changes` with the values of `later` where both have the row, without rows that are as in `before` again. Both and
/// the result are by table and key.
fn override_changes(
    changes: Vec<AfterImage>,
    later: Vec<AfterImage>,
    before: &dyn Snapshot,
) -> Result<Vec<AfterImage>, StoreError> {
    let mut all = Vec::with_capacity(changes.len() + later.len());
    let mut earlier = changes.into_iter().peekable();
    for change in later {
        while let Some(kept) = earlier.next_if(|kept| kept.row < change.row) {
            all.push(kept);
        }
        earlier.next_if(|replaced| replaced.row == change.row);
        if differs(before.get(change.row.table, &change.row.key)?.as_ref(), change.value.as_ref()) {
            all.push(change);
        }
    }
    all.extend(earlier);
    Ok(all)
}
