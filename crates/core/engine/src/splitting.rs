//! A block whose transactions do not all run in this process: an organisation's nodes may each hold some of its schemas, and a
//! transaction runs where its rows are. What comes of that is what one engine would have come to that runs all of them.

use crate::block_run::{BlockRun, Newest};
use crate::{VerifiedBlock, VerifiedTransaction};
use concurrency::{Batch, BatchResult};
use sql::Library;
use state::{Simulate, StoreError, Version};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use types::{Charter, Consistency, ExecutionModel, OnConflict};

/// A batch before it runs.
pub struct BatchOfRun {
    /// Positions in the block, ascending.
    pub positions: Vec<u32>,
    /// The transactions there.
    pub transactions: Vec<Arc<dyn Simulate>>,
}

/// Batches of a block between two schema changes, before they run.
pub struct RunOfBatches<'a> {
    /// The block.
    pub block: &'a VerifiedBlock,
    /// The schema that they run with.
    pub library: &'a Arc<Library>,
    /// Steps of one execution of a transaction.
    pub step_limit: u64,
    /// Steps that all of them together may spend.
    pub steps_left: u64,
    /// The number of the first batch in its block.
    pub first: u32,
    /// In the order of the block.
    pub batches: Vec<BatchOfRun>,
}

impl RunOfBatches<'_> {
    /// The transaction at a position of the block.
    pub fn transaction(&self, position: u32) -> &Arc<VerifiedTransaction> {
        let judged = self.block.transactions[position as usize].as_ref();
        judged.expect("only admitted transactions are executed")
    }
}

/// Where the transactions of a run are executed.
pub struct Split {
    /// By batch: which of its transactions run here, ascending. All others have begun elsewhere.
    pub here: Vec<Vec<u32>>,
    /// Those; `None`: all run here.
    pub elsewhere: Option<Box<dyn Elsewhere>>,
    /// What runs here reads rows that stand elsewhere: it begins when everything there has ended.
    pub here_waits: bool,
}

/// Transactions that run elsewhere.
pub trait Elsewhere {
    /// Waits until they have ended. Gives results by batch, with the transactions that each is about, ascending. Their changes have
    /// taken effect there, and are in no store here.
    ///
    /// # Errors
    /// Some of it came to nothing: the block has no outcome, and the state is to be made again.
    fn end(self: Box<Self>) -> Result<Vec<(u32, Vec<u32>, BatchResult)>, StoreError>;
}

/// Says where transactions run, and has them run there.
pub trait SplitRuns: Send + Sync {
    /// Splits a run, so that nothing which runs in one place can meet what runs in another one, and begins what runs elsewhere.
    ///
    /// # Errors
    /// As [`Elsewhere::end`].
    fn split(&self, run: &RunOfBatches<'_>) -> Result<Split, StoreError>;

    /// The block of this height has spent more steps than it may. Which of its transactions have no turn only an engine can say
    /// that runs all of them: from now on it is not split. Why the state is to be made again.
    fn overspent(&self, height: u64) -> StoreError;
}

/// Whether batches of such a ledger can be split: what a batch comes to must not depend on transactions that it cannot meet.
pub(crate) fn can_be_split(charter: &Charter) -> bool {
    let options = &charter.concurrency;
    charter.execution == ExecutionModel::OrderExecute
        && options.consistency == Consistency::Strict
        && options.on_conflict != OnConflict::Requeue
        && options.serial_threshold_percent > 100
}

impl BlockRun<'_, '_> {
    /// Runs batches between two schema changes, each transaction where its rows are.
    ///
    /// # Errors
    /// The state cannot be read, or what runs elsewhere came to nothing: the block has no outcome.
    pub(crate) fn run_split(
        &mut self,
        splitter: &dyn SplitRuns,
        batches: Vec<BatchOfRun>,
    ) -> Result<(), StoreError> {
        let start = Instant::now();
        let (height, before) = (self.block.header.height, self.statistics.steps);
        let steps_left = self.charter.meter.block_steps.saturating_sub(before);
        let step_limit = self.charter.meter.transaction_steps;
        let (block, first) = (self.block, self.groups);
        let run = RunOfBatches { block, library: self.library, step_limit, steps_left, first, batches };
        let split = splitter.split(&run)?;
        let count = run.batches.len() as u32;
        let batches = run.batches;
        self.times.protocol += start.elapsed();
        let Split { here, mut elsewhere, here_waits } = split;
        // Of each batch what runs elsewhere has its number, and what runs here one behind all of them.
        self.groups += if elsewhere.is_some() { count } else { 0 };
        let (behind, is_split) = (self.groups + count, elsewhere.is_some());
        if here_waits && let Some(elsewhere) = elsewhere.take() {
            self.take_in_elsewhere(elsewhere, &batches)?;
        }
        if here.iter().any(|batch| !batch.is_empty()) {
            self.run_here_of(&batches, &here, steps_left)?;
        }
        if let Some(elsewhere) = elsewhere {
            self.take_in_elsewhere(elsewhere, &batches)?;
        }
        self.groups = behind;
        match is_split && self.statistics.steps - before > steps_left {
            true => Err(splitter.overspent(height)),
            false => Ok(()),
        }
    }

    fn take_in_elsewhere(
        &mut self,
        elsewhere: Box<dyn Elsewhere>,
        batches: &[BatchOfRun],
    ) -> Result<(), StoreError> {
        let start = Instant::now();
        let ended = elsewhere.end()?;
        self.times.protocol += start.elapsed();
        for (batch, of_batch, mut result) in ended {
            let positions: Vec<u32> =
                of_batch.iter().map(|one| batches[batch as usize].positions[*one as usize]).collect();
            self.changes.add(std::mem::take(&mut result.changes));
            let again = self.take_in(result, &positions);
            debug_assert!(again.is_empty(), "nothing is offered again on a ledger that can be split");
        }
        Ok(())
    }

    /// Runs the part of each batch that runs here. Empty batches are offered too: a protocol that works on two batches at a time
    /// then simulates each on the state that it would have found beside all other transactions.
    fn run_here_of(
        &mut self,
        batches: &[BatchOfRun],
        here: &[Vec<u32>],
        steps_left: u64,
    ) -> Result<(), StoreError> {
        let start = Instant::now();
        *self.forget = true;
        let (mut offered, mut next) = (VecDeque::new(), 0);
        let mut spent = 0u64;
        loop {
            while next < batches.len() && offered.len() < self.protocol.lookahead().max(1) {
                let BatchOfRun { positions, transactions } = &batches[next];
                let chosen: Vec<u32> = here[next].iter().map(|one| positions[*one as usize]).collect();
                let transactions: Vec<_> =
                    here[next].iter().map(|one| transactions[*one as usize].clone()).collect();
                self.state.prefetch(&transactions);
                self.protocol.offer(Batch {
                    height: self.block.header.height,
                    number: self.groups,
                    transactions,
                    steps_left: steps_left.saturating_sub(spent),
                    forget: std::mem::take(self.forget),
                    oldest_snapshot: *self.oldest_snapshot,
                });
                self.groups += 1;
                offered.push_back(chosen);
                next += 1;
            }
            let Some(positions) = offered.pop_front() else { break };
            let newest = Newest(self.state);
            let mut result = self.protocol.poll(&newest)?.expect("the batch has been offered");
            spent += result.steps;
            let version = Version::after_batch(result.height, result.number);
            if !result.changes.is_empty() {
                self.state.apply(version, &result.changes, None)?;
            }
            self.changes.add(std::mem::take(&mut result.changes));
            let again = self.take_in(result, &positions);
            debug_assert!(again.is_empty(), "nothing is offered again on a ledger that can be split");
        }
        self.times.protocol += start.elapsed();
        Ok(())
    }
}
