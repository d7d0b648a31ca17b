//! The batches and schema changes of one block, one after the other.

use crate::admission::Admission;
use crate::elsewhere::{self, BlockScripts, ExecuteScripts};
use crate::foresight::{self, ForeseenBlock};
use crate::outcomes::Outcomes;
use crate::row_history::Noting;
use crate::splitting::{BatchOfRun, SplitRuns, can_be_split};
use crate::submission::Submission;
use crate::{BlockStatistics, StageTimes, VerifiedBlock};
use concurrency::{Batch, BatchResult, Protocol, Snapshots, TransactionOutcome};
use rayon::Scope;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use sql::Library;
use state::{
    AfterImage, BlockChanges, Command, Overlay, Simulate, Snapshot, Store, StoreError, Version, apply_command,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use types::{Catalog, Charter, ExecutionModel, OnConflict, Outcome, RejectReason, SqlError};

/// After so many batches of one block a conflict is final, so that requeueing ends well before
/// [`Version::BATCHES_MAX`].
const REQUEUE_BATCHES_MAX: u32 = 10_000;
/// Steps that scripts may do where databases execute them, which count none: as good as all.
const UNMETERED: u64 = u64::MAX / 4;

/// A block that is being executed.
pub(crate) struct BlockRun<'r, 'a> {
    pub(crate) block: &'a VerifiedBlock,
    pub(crate) state: &'r dyn Store,
    pub(crate) protocol: &'r mut dyn Protocol,
    pub(crate) library: &'r mut Arc<Library>,
    pub(crate) charter: &'r Charter,
    /// What executes scripts, if the engine does not.
    pub(crate) elsewhere: Option<&'r dyn ExecuteScripts>,
    /// What says where transactions run, if not all of them run here.
    pub(crate) splitter: Option<&'r dyn SplitRuns>,
    /// The next batch may not depend on the one before.
    pub(crate) forget: &'r mut bool,
    /// Height before which no simulation counts.
    pub(crate) oldest_snapshot: &'r mut u64,
    pub(crate) outcomes: Outcomes<'a>,
    pub(crate) background: &'r Scope<'a>,
    /// Batches and schema changes so far.
    pub(crate) groups: u32,
    pub(crate) changes: BlockChanges,
    /// What transactions do to rows, where that is noted.
    pub(crate) noting: Option<Noting>,
    /// Positions of the transactions that were offered again.
    pub(crate) requeued: FxHashSet<u32>,
    /// Executions, repetitions and steps; how transactions end is counted with their receipts.
    pub(crate) statistics: BlockStatistics,
    pub(crate) times: StageTimes,
}

/// The newest state, as protocols ask for it.
pub(crate) struct Newest<'a>(pub(crate) &'a dyn Store);

impl Snapshots for Newest<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        self.0.snapshot()
    }
}

impl BlockRun<'_, '_> {
    /// Runs transactions in batches of the charter's size, those between two schema changes as one sequence. What a
    /// protocol hands back comes first in the next batch that is formed; the sequence is not done before.
    ///
    /// # Errors
    /// The state cannot be read: the block has no outcome.
    pub(crate) fn execute(&mut self, admission: &mut Admission<'_>) -> Result<(), StoreError> {
        let size = self.charter.block.batch_transactions as usize;
        let splitter = self.splitter.filter(|_| can_be_split(self.charter) && self.noting.is_none());
        if let Some(splitter) = splitter {
            return self.execute_split(splitter, size, admission);
        }
        let mut offered = VecDeque::new();
        loop {
            let start = Instant::now();
            while offered.len() < self.protocol.lookahead().max(1) {
                let positions = admission.take(size, self.library);
                if positions.is_empty() {
                    break;
                }
                self.offer(&positions, admission);
                offered.push_back(positions);
            }
            self.times.admit += start.elapsed();
            self.reject(admission);
            let Some(positions) = offered.pop_front() else {
                match admission.take_schema_change() {
                    Some(position) => self.change_schema(position)?,
                    None => return Ok(()),
                }
                continue;
            };
            let start = Instant::now();
            let (newest, protocol, library) =
                (Newest(self.state), &mut *self.protocol, self.library.as_ref());
            // Whoever is idle while this batch is decided judges the next one.
            let (result, ()) = rayon::join(|| protocol.poll(&newest), || admission.judge(size, library));
            self.times.protocol += start.elapsed();
            let result = result?.expect("the batch has been offered, and its followers");
            let again = self.apply(result, &positions)?;
            admission.put_back(&again);
        }
    }

    /// The same where an organisation's nodes share its schemas.
    fn execute_split(
        &mut self,
        splitter: &dyn SplitRuns,
        size: usize,
        admission: &mut Admission<'_>,
    ) -> Result<(), StoreError> {
        loop {
            let start = Instant::now();
            let mut batches = Vec::new();
            loop {
                let positions = admission.take(size, self.library);
                if positions.is_empty() {
                    break;
                }
                let transactions = self.submission().of_batch(&positions, admission);
                batches.push(BatchOfRun { positions, transactions });
            }
            self.times.admit += start.elapsed();
            self.reject(admission);
            if !batches.is_empty() {
                self.run_split(splitter, batches)?;
            }
            match admission.take_schema_change() {
                Some(position) => self.change_schema(position)?,
                None => return Ok(()),
            }
        }
    }

    /// Runs scripts, on a ledger that agrees on what they come to: all of the block's, and its schema changes behind them. What
    /// does not mean the same in every database is refused before.
    ///
    /// # Errors
    /// As [`BlockRun::execute`].
    pub(crate) fn execute_scripts(&mut self, admission: &mut Admission<'_>) -> Result<(), StoreError> {
        let start = Instant::now();
        let (mut positions, mut schema_changes) = (Vec::new(), Vec::new());
        loop {
            positions.extend(admission.take(self.block.transactions.len(), self.library));
            self.reject(admission);
            match admission.take_schema_change() {
                Some(position) => schema_changes.push(position),
                None => break,
            }
        }
        let (catalog, now_ms) = (self.library.catalog().clone(), self.block.header.timestamp_ms);
        let block = self.block;
        let check = |position: u32| {
            let transaction = block.transactions[position as usize].as_ref();
            let payload = &transaction.expect("only admitted transactions are executed").payload;
            (position, portable::check_script(&catalog, payload, now_ms))
        };
        let checked: Vec<_> = positions.into_par_iter().map(check).collect();
        let mut scripts = Vec::with_capacity(checked.len());
        for (position, script) in checked {
            match script {
                Ok(script) => scripts.push((position, script)),
                Err(error) => self.outcomes.set(position, Outcome::Aborted(error), self.background),
            }
        }
        self.times.admit += start.elapsed();
        match self.elsewhere {
            Some(elsewhere) => self.run_elsewhere(elsewhere, scripts)?,
            None => self.run_here(&scripts, admission)?,
        }
        schema_changes.into_iter().try_for_each(|position| self.change_schema(position))
    }

    /// Has scripts executed by whatever the organisation executes them with.
    fn run_elsewhere(
        &mut self,
        elsewhere: &dyn ExecuteScripts,
        scripts: Vec<(u32, portable::Script)>,
    ) -> Result<(), StoreError> {
        let start = Instant::now();
        let header = &self.block.header;
        let scripts = BlockScripts {
            ledger: header.ledger,
            height: header.height,
            before: self.state.snapshot(),
            scripts,
        };
        let ran = elsewhere.execute(&scripts)?;
        self.times.protocol += start.elapsed();
        let start = Instant::now();
        let version = Version::after_batch(header.height, self.groups);
        self.groups += 1;
        self.state.apply(version, &ran.changes, None)?;
        self.changes.add(ran.changes);
        self.times.apply += start.elapsed();
        self.statistics.executions += scripts.scripts.len() as u64;
        for ((position, script), end) in scripts.scripts.iter().zip(ran.ends) {
            let payload =
                &self.block.transactions[*position as usize].as_ref().expect("it was checked").payload;
            let outcome = match end {
                Some(rows) => Outcome::Committed(elsewhere::results(script, payload, &rows)),
                None => Outcome::Aborted(elsewhere::failure()),
            };
            self.outcomes.set(*position, outcome, self.background);
        }
        Ok(())
    }

    /// Executes scripts with the engine: an organisation that has no database of its own. All in one batch: a row that is at the
    /// end of the block what it was at its begin has not changed, as in a database.
    fn run_here(
        &mut self,
        scripts: &[(u32, portable::Script)],
        admission: &mut Admission<'_>,
    ) -> Result<(), StoreError> {
        if scripts.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let positions: Vec<u32> = scripts.iter().map(|(position, _)| *position).collect();
        let submission = Submission { step_limit: UNMETERED, ..self.submission() };
        let mut transactions = submission.of_batch(&positions, admission);
        self.state.prefetch(&transactions);
        if let Some(noting) = &mut self.noting {
            transactions = noting.recorded.wrap(&positions, transactions);
        }
        self.protocol.offer(Batch {
            height: self.block.header.height,
            number: self.groups,
            transactions,
            steps_left: UNMETERED,
            forget: std::mem::take(self.forget),
            oldest_snapshot: *self.oldest_snapshot,
        });
        self.groups += 1;
        let mut result = self.protocol.poll(&Newest(self.state))?.expect("the batch has been offered");
        self.times.protocol += start.elapsed();
        for outcome in &mut result.outcomes {
            if let TransactionOutcome::Aborted(error) = outcome {
                tracing::debug!(%error, "a script failed");
                *error = elsewhere::failure();
            }
        }
        let again = self.apply(result, &positions)?;
        debug_assert!(again.is_empty(), "the protocols of such ledgers give nothing back");
        Ok(())
    }

    /// Runs a block that was admitted before its turn came; `behind`: those that are admitted behind it.
    ///
    /// # Errors
    /// As [`BlockRun::execute`].
    pub(crate) fn execute_foreseen(
        &mut self,
        foreseen: ForeseenBlock,
        behind: &mut VecDeque<ForeseenBlock>,
    ) -> Result<(), StoreError> {
        self.times.admit += foreseen.admitted_in;
        for (position, reason) in foreseen.rejected {
            self.outcomes.set(position, Outcome::Rejected(reason), self.background);
        }
        let mut batches = foreseen.batches;
        while !batches.is_empty() {
            let start = Instant::now();
            let steps_left = self.charter.meter.block_steps.saturating_sub(self.statistics.steps);
            foresight::offer(self.protocol, &mut batches, steps_left, behind);
            let result = self.protocol.poll(&Newest(self.state))?.expect("the batch has been offered");
            self.times.protocol += start.elapsed();
            let executed = batches.pop_front().expect("the one that was polled");
            let again = self.apply(result, &executed.positions)?;
            debug_assert!(again.is_empty(), "nothing is offered again behind what was offered ahead");
        }
        Ok(())
    }

    fn reject(&mut self, admission: &mut Admission<'_>) {
        for (position, reason) in admission.take_rejected() {
            self.outcomes.set(position, Outcome::Rejected(reason), self.background);
        }
    }

    fn offer(&mut self, positions: &[u32], admission: &mut Admission<'_>) {
        let mut transactions = self.submission().of_batch(positions, admission);
        self.state.prefetch(&transactions);
        if let Some(noting) = &mut self.noting {
            transactions = noting.recorded.wrap(positions, transactions);
        }
        let batch = Batch {
            height: self.block.header.height,
            number: self.groups,
            transactions,
            steps_left: self.charter.meter.block_steps.saturating_sub(self.statistics.steps),
            forget: std::mem::take(self.forget),
            oldest_snapshot: *self.oldest_snapshot,
        };
        self.groups += 1;
        self.protocol.offer(batch);
    }

    fn executes_before_ordering(&self) -> bool {
        self.charter.execution == ExecutionModel::ExecuteOrderValidate
    }

    fn submission(&self) -> Submission<'_> {
        let step_limit = self.charter.meter.transaction_steps;
        Submission {
            block: self.block,
            library: self.library,
            step_limit,
            has_endorsed_effects: self.executes_before_ordering(),
        }
    }

    /// Takes in what a batch came to; the transactions that have to be offered again.
    fn apply(&mut self, result: BatchResult, positions: &[u32]) -> Result<Vec<u32>, StoreError> {
        let start = Instant::now();
        if let Some(Noting { recorded, history }) = &mut self.noting {
            history.note(self.block, self.state.snapshot(), &result, positions, recorded);
        }
        self.state.apply(Version::after_batch(result.height, result.number), &result.changes, None)?;
        let mut result = result;
        self.changes.add(std::mem::take(&mut result.changes));
        self.times.apply += start.elapsed();
        Ok(self.take_in(result, positions))
    }

    /// Takes in how the transactions of a batch ended whose changes have taken effect; those that have to be offered again.
    pub(crate) fn take_in(&mut self, result: BatchResult, positions: &[u32]) -> Vec<u32> {
        self.statistics.steps += result.steps;
        self.statistics.executions += result.statistics.executions;
        self.statistics.reexecuted += result.statistics.reexecuted;
        // Who is stale once is stale ever after: endorsements are not offered again.
        let requeue =
            self.charter.concurrency.on_conflict == OnConflict::Requeue && !self.executes_before_ordering();
        let requeue = requeue && result.number < REQUEUE_BATCHES_MAX;
        let mut again = Vec::new();
        for (position, outcome) in positions.iter().zip(result.outcomes) {
            let outcome = match outcome {
                TransactionOutcome::Committed(results) => Outcome::Committed(results),
                TransactionOutcome::Aborted(error) => Outcome::Aborted(error),
                TransactionOutcome::Conflict if requeue => {
                    again.push(*position);
                    continue;
                }
                TransactionOutcome::Conflict => Outcome::Conflict,
                TransactionOutcome::OverBudget => Outcome::Rejected(RejectReason::BlockBudget),
            };
            self.outcomes.set(*position, outcome, self.background);
        }
        let first = again.iter().filter(|position| self.requeued.insert(**position)).count();
        self.statistics.reexecuted += first as u64;
        again
    }

    /// A schema change runs alone, on the state that everything before it in the block has left.
    fn change_schema(&mut self, position: u32) -> Result<(), StoreError> {
        let version = Version::after_batch(self.block.header.height, self.groups);
        self.groups += 1;
        *self.forget = true;
        *self.oldest_snapshot = self.block.header.height;
        let outcome = self.try_schema_change(position, version)?;
        self.outcomes.set(position, outcome, self.background);
        Ok(())
    }

    fn try_schema_change(&mut self, position: u32, version: Version) -> Result<Outcome, StoreError> {
        let snapshot = self.state.snapshot();
        let effects = self.submission().invocation(position).simulate(snapshot.as_ref())?;
        self.statistics.executions += 1;
        self.statistics.steps += effects.steps;
        let results = match effects.result {
            Ok(results) => results,
            Err(error) => return Ok(Outcome::Aborted(error)),
        };
        if let Err(error) =
            self.check_schema_change(&effects.commands, effects.catalog.as_deref(), snapshot.catalog())
        {
            return Ok(Outcome::Aborted(error));
        }
        let changes = match after_images(&effects.commands, snapshot.as_ref())? {
            Ok(changes) => changes,
            Err(error) => return Ok(Outcome::Aborted(error)),
        };
        if let Some(catalog) = &effects.catalog {
            match self.library.successor(catalog.clone()) {
                Ok(library) => *self.library = Arc::new(library),
                Err(error) => return Ok(Outcome::Aborted(error)),
            }
        }
        if let Some(noting) = &mut self.noting {
            let after = effects.catalog.as_deref();
            let (block, before) = (self.block, snapshot.clone());
            noting.history.note_schema_change(block, before, position, &effects.commands, after);
        }
        if effects.catalog.is_some() || !changes.is_empty() {
            self.state.apply(version, &changes, effects.catalog)?;
            self.changes.add(changes);
        }
        Ok(Outcome::Committed(results))
    }

    /// Whether a schema change can be on this ledger.
    ///
    /// # Errors
    /// `0A000`: it changes rows that nobody has endorsed or agreed to, or makes what not every database can have.
    fn check_schema_change(
        &self,
        commands: &[Command],
        after: Option<&Catalog>,
        before: &Catalog,
    ) -> Result<(), SqlError> {
        let ledger = match self.charter.execution {
            ExecutionModel::OrderExecute => return Ok(()),
            ExecutionModel::ExecuteOrderValidate => "a ledger that executes before it orders",
            ExecutionModel::WhateverThenAgree => "a ledger whose databases execute scripts",
        };
        // Rows of a table that the change makes follow from those that there are.
        let known = |command: &Command| before.table(command.row.table).is_some();
        if commands.iter().any(known) {
            let (what, hint) = match after {
                Some(_) => (
                    "a schema change and changes of other tables' rows in one transaction",
                    "Make them in transactions of their own.",
                ),
                None => ("TRUNCATE", "Use DELETE."),
            };
            return Err(SqlError::unsupported(format_args!("{what} on {ledger}")).hint(hint));
        }
        match after {
            Some(after) if self.charter.execution == ExecutionModel::WhateverThenAgree => {
                portable::check_catalog(after)
            }
            _ => Ok(()),
        }
    }
}

/// The rows as commands leave them that run alone, on the snapshot that they were simulated on.
///
/// # Errors
/// The state cannot be read. Inside: those of a command, none that its simulation did not end with.
fn after_images(
    commands: &[Command],
    snapshot: &dyn Snapshot,
) -> Result<Result<Vec<AfterImage>, SqlError>, StoreError> {
    let mut state = Overlay::new(snapshot);
    for command in commands {
        match apply_command(state.current(&command.row)?, command) {
            Ok((value, _)) => state.set(command.row.clone(), value)?,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(state.into_changes()))
}
