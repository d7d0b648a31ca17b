//! Block-STM (Gelashvili, Spiegelman, Xiang, Danezis, Li, Malkhi, Xia, Zhou: "Block-STM: Scaling Blockchain Execution by
//! Turning Ordering Curse to a Performance Blessing", PPoPP 2023): speculative execution in block order, with the
//! outcome of the serial one.
//!
//! Threads draw executions and validations from a [`scheduler`]. An execution reads through a [`view`] that shows what
//! the largest smaller number wrote to the multi-version [`memory`], and leaves what it wrote there, row by row. A
//! validation reads again what an execution read; if the origin of anything is another one, what the execution wrote
//! becomes ESTIMATEs, the transaction is executed again (its next *incarnation*), and everybody behind it is validated
//! again. When nothing is left to do, every execution has read what the serial run would have shown it, so every
//! outcome and row is that of the serial run.
//!
//! What is peculiar to Entente:
//!
//! - Who meets an ESTIMATE is not stopped at once: a [`Snapshot`] has no way to say so. The execution goes on with
//!   an older value, is thrown away at its end, and begins anew behind the transaction that it waits for. An incarnation
//!   that is not the first one looks for ESTIMATEs among what the one before read, before it begins (as in section 4
//!   of the paper).
//! - Commands are evaluated at once on the view that they were simulated on. A row that a command changes counts as
//!   read, whole.
//! - Scans are recorded as the interval really examined, with the rows in it that others had written; a row that is
//!   written later into the interval is found when validation scans again.
//! - The step budget is decided at the end, from the executions that count, as `serial` decides it. Who has no turn is
//!   behind everybody who has one, so that leaving out what it wrote changes nothing else. Executions are bounded by
//!   the contracts' own limits, but what they cost beyond the budget is not charged.
//!
//! Contracts may run on states that never existed. They must neither loop forever nor panic there.

mod memory;
mod scheduler;
mod synchronization;
mod view;

use crate::execution::{Budget, Step, differs, execute, step};
use crate::{Batch, BatchResult, BatchStatistics, History, Protocol, Snapshots, TransactionOutcome};
use memory::{Memory, Writes};
use rayon::prelude::*;
use scheduler::{Incarnation, Scheduler, Task};
use state::{AfterImage, Command, FirstFailure, Overlay, RowId, Snapshot, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use synchronization::{Mutex, pause};
use types::{SqlError, SqlState};
use view::{ReadSet, Validity, View};

/// Block-STM as a protocol.
#[derive(Default)]
pub(crate) struct BlockStm {
    waiting: VecDeque<Batch>,
}

impl Protocol for BlockStm {
    fn id(&self) -> &'static str {
        "block-stm"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        if batch.steps_left == 0 {
            return Ok(Some(BatchResult::over_budget(&batch)));
        }
        let snapshot = snapshots.newest();
        let speculation = Speculation::new(&batch, snapshot.as_ref());
        let threads = rayon::current_num_threads().min(batch.transactions.len());
        // Who starts late, because the pool is busy, finds everything done. No thread waits for another one that has
        // not begun, so one is enough.
        rayon::scope(|scope| (0..threads).for_each(|_| scope.spawn(|_| speculation.work())));
        speculation.into_result().map(Some)
    }
}

/// The last incarnation of a transaction that ended with its writes recorded.
#[derive(Default)]
struct Execution {
    outcome: Option<TransactionOutcome>,
    steps: u64,
    /// Rows that it wrote, by table and key.
    writes: Vec<RowId>,
    /// Executions so far, those thrown away included.
    count: u64,
}

/// A transaction as threads share it.
#[derive(Default)]
struct Transaction {
    /// Written by whoever executes it. Read by who aborts it, which is never at the same time.
    execution: Mutex<Execution>,
    /// What the same incarnation read. Validation takes a copy: it may be under way several times.
    reads: Mutex<Arc<ReadSet>>,
}

/// A batch under way.
struct Speculation<'a> {
    batch: &'a Batch,
    base: &'a dyn Snapshot,
    memory: Memory,
    scheduler: Scheduler,
    transactions: Vec<Transaction>,
    /// The state could not be read: nothing of the batch counts.
    failure: FirstFailure,
}

impl<'a> Speculation<'a> {
    fn new(batch: &'a Batch, base: &'a dyn Snapshot) -> Speculation<'a> {
        let count = batch.transactions.len();
        let transactions = (0..count).map(|_| Transaction::default()).collect();
        let (memory, scheduler) = (Memory::new(), Scheduler::new(count));
        Speculation { batch, base, memory, scheduler, transactions, failure: FirstFailure::default() }
    }

    /// What each thread does.
    fn work(&self) {
        let _stop = StopOnPanic(&self.scheduler);
        let mut task = None;
        while !self.scheduler.is_done() {
            task = match task.or_else(|| self.scheduler.next_task()) {
                Some(Task::Execute(incarnation)) => self.execute(incarnation),
                Some(Task::Validate(incarnation)) => self.validate(incarnation),
                None => {
                    pause();
                    None
                }
            }
        }
    }

    fn execute(&self, incarnation: Incarnation) -> Option<Task> {
        let number = incarnation.transaction;
        let transaction = &self.transactions[number as usize];
        loop {
            if incarnation.number > 0 {
                let reads = transaction.reads.lock().clone();
                if let Validity::Blocked(blocking) = reads.validate(&self.memory, number)
                    && self.scheduler.add_dependency(number, blocking)
                {
                    return None;
                }
            }
            let view = View::new(self.base, &self.memory, number);
            let (outcome, writes, steps) = match self.run(number, &view) {
                Ok(ran) => ran,
                Err(error) => {
                    self.failure.note(error);
                    // The others end too.
                    self.scheduler.stop();
                    return None;
                }
            };
            let mut execution = transaction.execution.lock();
            execution.count += 1;
            let reads = match view.into_read_set() {
                Ok(reads) => reads,
                Err(blocking) => {
                    drop(execution);
                    if self.scheduler.add_dependency(number, blocking) {
                        return None;
                    }
                    continue;
                }
            };
            let rows = writes.iter().map(|(row, _)| row.clone()).collect();
            let before = std::mem::replace(&mut execution.writes, rows);
            (execution.outcome, execution.steps) = (Some(outcome), steps);
            drop(execution);
            *transaction.reads.lock() = Arc::new(reads);
            let wrote_new = self.memory.record(incarnation, &before, writes);
            return self.scheduler.finish_execution(incarnation, wrote_new);
        }
    }

    /// Executes a transaction on a view: its outcome, what it writes and its steps.
    fn run(&self, number: u32, view: &View<'_>) -> Result<(TransactionOutcome, Writes, u64), StoreError> {
        let effects = execute(self.batch.transactions[number as usize].as_ref(), view)?;
        let results = match effects.result {
            Ok(results) => results,
            Err(error) => return Ok((TransactionOutcome::Aborted(error), Vec::new(), effects.steps)),
        };
        let (outcome, writes) = match apply(&effects.commands, view)? {
            Ok(writes) => (TransactionOutcome::Committed(results), writes),
            Err(error) => (TransactionOutcome::Aborted(error), Vec::new()),
        };
        Ok((outcome, writes, effects.steps))
    }

    fn validate(&self, incarnation: Incarnation) -> Option<Task> {
        let number = incarnation.transaction;
        let transaction = &self.transactions[number as usize];
        let reads = transaction.reads.lock().clone();
        let valid = reads.validate(&self.memory, number) == Validity::Valid;
        let aborted = !valid && self.scheduler.try_abort(incarnation);
        if aborted {
            self.memory.estimate(number, &transaction.execution.lock().writes);
        }
        self.scheduler.finish_validation(number, aborted)
    }

    /// What the batch came to, once everything is done.
    fn into_result(self) -> Result<BatchResult, StoreError> {
        self.failure.check(())?;
        let failure = FirstFailure::default();
        assert!(self.scheduler.is_done(), "every transaction is executed and valid");
        let mut budget = Budget::new(self.batch.steps_left);
        let mut statistics = BatchStatistics::default();
        let mut history = History::default();
        let mut outcomes = Vec::with_capacity(self.transactions.len());
        for (number, transaction) in (0..).zip(self.transactions) {
            let Execution { outcome, steps, count, .. } = transaction.execution.into_inner();
            statistics.executions += count;
            statistics.reexecuted += u64::from(count > 1);
            if budget.is_spent() {
                outcomes.push(TransactionOutcome::OverBudget);
                continue;
            }
            budget.charge(steps);
            history.serial.push(number);
            outcomes.push(outcome.expect("every transaction has been executed"));
        }
        let shards = self.memory.into_rows(history.serial.len() as u32).into_par_iter();
        let changes: Vec<AfterImage> = shards
            .flat_map_iter(|rows| rows.into_iter().map(|(row, value)| AfterImage { row, value }))
            .filter(|change| !change.row.table.is_index())
            .filter(|change| {
                let before = failure.keep(self.base.get(change.row.table, &change.row.key));
                differs(before.as_ref(), change.value.as_ref())
            })
            .collect();
        let mut changes = failure.check(changes)?;
        changes.par_sort_unstable_by(|a, b| a.row.cmp(&b.row));
        Ok(BatchResult {
            height: self.batch.height,
            number: self.batch.number,
            outcomes,
            changes,
            history,
            steps: budget.spent(),
            statistics,
        })
    }
}

/// Evaluates commands on the view that they were simulated on: the rows that they leave otherwise than they found them,
/// by table and key.
///
/// # Errors
/// The state cannot be read. Inside: a command fails that did not fail in simulation. That happens on a state that never was, which validation finds; in
/// the end it would be an error in the contract's language.
fn apply(commands: &[Command], view: &View<'_>) -> Result<Result<Writes, SqlError>, StoreError> {
    let mut state = Overlay::new(view);
    for command in commands {
        match step(command, state.current(&command.row)?.as_ref()) {
            Step::Unchanged => {}
            Step::Changed(after) => state.set(command.row.clone(), after)?,
            Step::Again | Step::Error(_) => {
                let message = "a command failed on the state that it was simulated on";
                return Ok(Err(SqlError::new(SqlState::INTERNAL_ERROR, message)));
            }
        }
    }
    // Entries of indexes are written like rows: others look rows up by them.
    let mut changed = Vec::new();
    for AfterImage { row, value } in state.into_all_changes() {
        if differs(view.get(row.table, &row.key)?.as_ref(), value.as_ref()) {
            changed.push((row, value));
        }
    }
    Ok(Ok(changed))
}

/// Lets the other threads end if this one panics; they would wait for its task.
struct StopOnPanic<'a>(&'a Scheduler);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

#[cfg(test)]
mod tests;
