//! Blocks of Smallbank on a state that is loaded.

use super::checkpoints::Checkpoints;
use super::watched_store::WatchedStore;
use super::{StateBenchError, StateOptions};
use crate::EngineBenchError;
use crate::chain::Chain;
use crate::machine::{process_seconds, read_and_written_bytes, thread_seconds};
use crate::memory::peak_memory_bytes;
use engine::{ExecutedBlock, VerifiedBlock};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::time::{Duration, Instant};
use types::Payload;
use workloads::smallbank::{Smallbank, money_change};

/// Batches that are made before their execution is timed.
const BATCHES_AHEAD: u32 = 32;
/// The throughput is told for every so much time of execution.
const WINDOW: Duration = Duration::from_secs(10);

/// What a run came to.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) time: Duration,
    pub(super) wall: Duration,
    pub(super) cpu_seconds: f64,
    pub(super) transactions: u64,
    pub(super) committed: u64,
    pub(super) business_aborts: u64,
    pub(super) conflict_aborts: u64,
    pub(super) windows: Vec<f64>,
    pub(super) system_read_bytes: u64,
    pub(super) system_written_bytes: u64,
    pub(super) peak_memory_bytes: u64,
    /// Time of execution and committed transactions at the end of the last window.
    window: (Duration, u64),
    /// Rows that blocks have changed since the last checkpoint.
    changed_rows: u64,
}

/// Makes and executes blocks.
pub(super) struct Runner<'a> {
    chain: Chain,
    smallbank: &'a Smallbank,
    options: &'a StateOptions,
    pool: &'a rayon::ThreadPool,
    random: StdRng,
    /// By how much all balances together have changed.
    pub(super) money: i128,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        chain: Chain,
        smallbank: &'a Smallbank,
        options: &'a StateOptions,
        pool: &'a rayon::ThreadPool,
    ) -> Runner<'a> {
        Runner { chain, smallbank, options, pool, random: StdRng::seed_from_u64(options.seed), money: 0 }
    }

    pub(super) fn into_chain(self) -> Chain {
        self.chain
    }

    /// Runs as long as the options say. The clock stands while blocks are made.
    pub(super) fn run(
        &mut self,
        watched: &WatchedStore,
        checkpoints: &mut Checkpoints,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Ran, StateBenchError> {
        let (mut ran, start) = (Ran::default(), Instant::now());
        let (cpu, bytes) = (process_seconds("self").unwrap_or(0.0), read_and_written_bytes());
        let mut own_seconds = 0.0;
        while ran.time < self.options.time {
            let before = thread_seconds();
            let blocks: Vec<VerifiedBlock> =
                (0..BATCHES_AHEAD.div_ceil(self.options.batches)).map(|_| self.make_block()).collect();
            own_seconds += thread_seconds() - before;
            let mut foreseen = 0;
            for (number, block) in blocks.iter().enumerate() {
                foreseen = foreseen.max(number);
                watched.block_begins();
                let start = Instant::now();
                let executed = self.execute(block, &blocks, &mut foreseen)?;
                let took = start.elapsed();
                watched.block_ended(took);
                ran.add(&executed, took, progress);
                if self.chain.engine.is_at_checkpoint() {
                    checkpoints.request(&self.chain, std::mem::take(&mut ran.changed_rows));
                }
                let before = thread_seconds();
                self.count_money(block, &executed);
                own_seconds += thread_seconds() - before;
            }
        }
        ran.wall = start.elapsed();
        ran.peak_memory_bytes = peak_memory_bytes();
        ran.cpu_seconds = process_seconds("self").unwrap_or(0.0) - cpu - own_seconds;
        let after = read_and_written_bytes();
        (ran.system_read_bytes, ran.system_written_bytes) = (after.0 - bytes.0, after.1 - bytes.1);
        Ok(ran)
    }

    /// One block by itself.
    pub(super) fn run_block(&mut self) -> Result<(), StateBenchError> {
        let block = self.make_block();
        self.execute(&block, &[], &mut 0)?;
        Ok(())
    }

    fn make_block(&mut self) -> VerifiedBlock {
        let calls = self.options.block * self.options.batches;
        let transactions = (0..calls)
            .map(|_| {
                let payload = self.smallbank.next_call(&mut self.random).into_payload();
                self.chain.transaction(payload)
            })
            .collect();
        self.chain.block(transactions)
    }

    fn execute(
        &mut self,
        block: &VerifiedBlock,
        waiting: &[VerifiedBlock],
        foreseen: &mut usize,
    ) -> Result<ExecutedBlock, StateBenchError> {
        let engine = &mut self.chain.engine;
        let executed = self.pool.install(|| {
            // As a node does it with blocks that wait.
            while waiting.get(*foreseen).is_some_and(|next| engine.foresee(next)) {
                *foreseen += 1;
            }
            engine.execute(block)
        });
        Ok(executed.map_err(EngineBenchError::from)?)
    }

    fn count_money(&mut self, block: &VerifiedBlock, executed: &ExecutedBlock) {
        for (transaction, receipt) in block.transactions.iter().zip(&executed.receipts) {
            if let Ok(transaction) = transaction
                && let Payload::Call { procedure, arguments } = transaction.payload.as_ref()
            {
                self.money += money_change(procedure, arguments, &receipt.outcome);
            }
        }
    }
}

impl Ran {
    fn add(&mut self, executed: &ExecutedBlock, took: Duration, progress: &mut dyn FnMut(&str)) {
        let statistics = &executed.statistics;
        self.time += took;
        self.transactions += statistics.transactions;
        self.committed += statistics.committed;
        self.business_aborts += statistics.business_aborts;
        self.conflict_aborts += statistics.conflict_aborts;
        self.changed_rows += executed.changes.len() as u64;
        let (since, committed) = self.window;
        if self.time - since >= WINDOW {
            let tps = (self.committed - committed) as f64 / (self.time - since).as_secs_f64();
            progress(&format!("{:.0} s: {tps:.0} tps", self.time.as_secs_f64()));
            self.windows.push(tps);
            self.window = (self.time, self.committed);
        }
    }
}
