//! Dependency graph: what conflicts is known before anything runs (ChainifyDB; PWV; `protocols.md`, section 3).
//!
//! After Sharma, *Snapshots in data management*, section 4.6.3 ("Parallel Transaction Execution"), with PWV's rule that
//! a transaction runs as soon as those it waits for are done, instead of whole stages:
//!
//! 1. **Analysis.** Every transaction says from its statements alone which regions (interval of keys × columns of a
//!    table) it may read and write: its [`Footprint`]. One that cannot be analysed ends with `0A000`, as a business
//!    abort: it is not executed, costs no steps and stands in no history.
//! 2. **Graph.** In batch order, an edge from each transaction to every later one with a region in common that one of
//!    the two writes (rw, wr, ww). Edges that follow from others are left out: see [`edges`].
//! 3. **Execution.** A transaction runs when all its predecessors are done, on the state that they left
//!    ([`shared_state`]), and its commands are applied at once. Nobody aborts for a conflict, nobody runs twice, and
//!    everything is as if they had run one after the other in batch order.
//!
//! ```text
//!  footprints ──▶ edges ──▶ ready ──▶ execute on the shared state ──▶ covered? ──▶ apply ──▶ in batch order: cut at
//!  (parallel)     (in       ▲         (parallel)                                    │        the budget, outcomes
//!                 order)    └──────────── successors that waited for nothing else ◀─┘
//! ```
//!
//! **Columns.** Unless the charter says that conflicts are per row, two transactions that write different columns of one
//! row do not wait for each other. So the shared state applies *commands* to rows as they stand, and never writes back a
//! row that a transaction saw.
//!
//! **Budget.** A transaction has a turn if those before it left any steps, which is known only when they have run.
//! Later ones run ahead; those that turn out to have had no turn are cut. No kept transaction can have seen a cut one:
//! it comes before it, so where they conflict the cut one waited. If one of the cut ones wrote, the changes are made again from
//! the commands of the kept ones.
//!
//! **Leaving the footprint.** That an execution touches something outside of its footprint would be an error of the
//! analysis. Up to the first such touch it has seen only what is the same on every node, so *that* it leaves is the same on
//! every node; what it saw afterwards is not. Its effects are dropped, it ends with `XX000`, and it is charged the
//! steps that it takes on the batch's snapshot, which depend on nothing else.

mod edges;
mod schedule;
mod shared_state;
#[cfg(test)]
mod tests;

use crate::execution::{Budget, execute};
use crate::serial;
use crate::{Batch, BatchResult, History, Protocol, Snapshots, TransactionOutcome};
use edges::Plan;
use rayon::prelude::*;
use shared_state::SharedState;
use state::{Effects, FirstFailure, Footprint, Simulate, Snapshot, StoreError};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use types::{Granularity, ProtocolOptions, SqlError, SqlState};

/// Transactions of which the steps are added up together.
const STEPS_CHUNK: usize = 64;

/// Plans a batch from footprints and runs what does not conflict in parallel.
pub(crate) struct Graph {
    granularity: Granularity,
    waiting: VecDeque<Batch>,
}

impl Graph {
    pub(crate) fn new(options: ProtocolOptions) -> Graph {
        Graph { granularity: options.granularity, waiting: VecDeque::new() }
    }
}

impl Protocol for Graph {
    fn id(&self) -> &'static str {
        "graph"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        if batch.steps_left == 0 {
            return Ok(Some(BatchResult::over_budget(&batch)));
        }
        run(&batch, self.granularity, snapshots.newest().as_ref()).map(Some)
    }
}

/// By transaction: its footprint, or why it has none.
type Footprints = Vec<Result<Footprint, SqlError>>;

fn run(batch: &Batch, granularity: Granularity, snapshot: &dyn Snapshot) -> Result<BatchResult, StoreError> {
    let catalog = snapshot.catalog();
    let footprints: Footprints =
        batch.transactions.par_iter().map(|transaction| transaction.footprint(catalog)).collect();
    let plan = Plan::new(&footprints, granularity);
    let execution = Execution::new(batch, snapshot, &footprints);
    schedule::run(&plan, &|transaction| execution.run(transaction));
    let Execution { state, effects, misapplied, failure, .. } = execution;
    failure.check(())?;
    if misapplied.into_inner() {
        return run_in_order(batch, snapshot, &footprints);
    }
    settle(batch, snapshot, state, &footprints, effects)
}

/// A batch while it is executed.
struct Execution<'a> {
    batch: &'a Batch,
    snapshot: &'a dyn Snapshot,
    footprints: &'a Footprints,
    state: SharedState<'a>,
    /// By transaction; empty where it has not run, was refused, or certainly has no turn.
    effects: Vec<OnceLock<Effects>>,
    /// By transaction: steps spent so far.
    steps: Vec<AtomicU64>,
    /// The same by [`STEPS_CHUNK`] transactions.
    chunk_steps: Vec<AtomicU64>,
    /// A command failed on the state that it was simulated on.
    misapplied: AtomicBool,
    /// The state could not be read: what comes out of the batch does not count.
    failure: FirstFailure,
}

impl<'a> Execution<'a> {
    fn new(batch: &'a Batch, snapshot: &'a dyn Snapshot, footprints: &'a Footprints) -> Execution<'a> {
        let count = batch.transactions.len();
        Execution {
            batch,
            snapshot,
            footprints,
            state: SharedState::new(snapshot),
            effects: (0..count).map(|_| OnceLock::new()).collect(),
            steps: (0..count).map(|_| AtomicU64::new(0)).collect(),
            chunk_steps: (0..count.div_ceil(STEPS_CHUNK)).map(|_| AtomicU64::new(0)).collect(),
            misapplied: AtomicBool::new(false),
            failure: FirstFailure::default(),
        }
    }

    /// Runs a transaction whose predecessors are done.
    fn run(&self, number: u32) {
        let position = number as usize;
        let Ok(footprint) = &self.footprints[position] else { return };
        if self.failure.get().is_some() {
            return;
        }
        // What is known of those before is at most what they spend in the end, so nothing that has a turn is left out.
        if self.known_steps_before(position) >= self.batch.steps_left {
            return;
        }
        let transaction = self.batch.transactions[position].as_ref();
        let effects = match self.take_effect(transaction, footprint) {
            Ok(effects) => effects,
            Err(error) => return self.failure.note(error),
        };
        self.steps[position].store(effects.steps, Ordering::Relaxed);
        self.chunk_steps[position / STEPS_CHUNK].fetch_add(effects.steps, Ordering::Relaxed);
        let first = self.effects[position].set(effects).is_ok();
        debug_assert!(first, "transaction {number} ran twice");
    }

    fn take_effect(&self, transaction: &dyn Simulate, footprint: &Footprint) -> Result<Effects, StoreError> {
        let effects = execute(transaction, &self.state)?;
        if !footprint.covers(&effects) {
            return left_footprint(transaction, self.snapshot);
        }
        if !self.state.apply(&effects.commands)? {
            self.misapplied.store(true, Ordering::Relaxed);
        }
        Ok(effects)
    }

    fn known_steps_before(&self, position: usize) -> u64 {
        let chunk = position / STEPS_CHUNK;
        let of = |steps: &[AtomicU64]| {
            steps.iter().fold(0u64, |sum, steps| sum.saturating_add(steps.load(Ordering::Relaxed)))
        };
        of(&self.chunk_steps[..chunk]).saturating_add(of(&self.steps[chunk * STEPS_CHUNK..position]))
    }
}

/// What a transaction comes to that touched something outside of its footprint.
fn left_footprint(transaction: &dyn Simulate, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
    let mut effects = execute(transaction, snapshot)?;
    effects.commands.clear();
    let message = "the transaction touched something that its analysis does not name";
    effects.result = Err(SqlError::new(SqlState::INTERNAL_ERROR, message)
        .hint("Please report the contract; the protocols \"serial\" and \"harmony\" run it."));
    Ok(effects)
}

/// Cuts the batch at its budget and gathers what is left.
fn settle(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    state: SharedState<'_>,
    footprints: &Footprints,
    effects: Vec<OnceLock<Effects>>,
) -> Result<BatchResult, StoreError> {
    let mut budget = Budget::new(batch.steps_left);
    let mut history = History::default();
    let (mut outcomes, mut kept) = (Vec::with_capacity(effects.len()), Vec::with_capacity(effects.len()));
    let mut cut_wrote = false;
    for (number, (footprint, effects)) in footprints.iter().zip(effects).enumerate() {
        let effects = effects.into_inner();
        if budget.is_spent() {
            cut_wrote |= effects.is_some_and(|effects| !effects.commands.is_empty());
            outcomes.push(TransactionOutcome::OverBudget);
            continue;
        }
        if let Err(refusal) = footprint {
            outcomes.push(TransactionOutcome::Aborted(refusal.clone()));
            continue;
        }
        let effects = effects.expect("what has a turn has run");
        budget.charge(effects.steps);
        history.serial.push(number as u32);
        outcomes.push(match effects.result {
            Ok(results) => TransactionOutcome::Committed(results),
            Err(error) => TransactionOutcome::Aborted(error),
        });
        kept.push(effects.commands);
    }
    let changes = if cut_wrote {
        let without_cut = SharedState::new(snapshot);
        for commands in &kept {
            let applied = without_cut.apply(commands)?;
            debug_assert!(applied, "what could be applied once can be applied again in batch order");
        }
        without_cut.into_changes()?
    } else {
        state.into_changes()?
    };
    Ok(serial::result(batch, outcomes, changes, history, &budget))
}

/// Runs the batch one after the other: what is left where a command failed on the very state that it was simulated on,
/// which no command may do.
fn run_in_order(
    batch: &Batch,
    snapshot: &dyn Snapshot,
    footprints: &Footprints,
) -> Result<BatchResult, StoreError> {
    debug_assert!(false, "a command succeeds on the state that it was simulated on");
    serial::run_but(batch, snapshot, |number| {
        footprints[number].as_ref().err().map(|refusal| TransactionOutcome::Aborted(refusal.clone()))
    })
}
