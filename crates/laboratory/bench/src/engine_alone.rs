//! The engine alone: blocks of verified calls in, receipts and digests out; no network, no signatures, no disk.

use crate::chain::{Chain, EngineBenchError};
use crate::peak_memory_bytes;
use engine::{ExecutedBlock, StageTimes, VerifiedBlock};
use memory::Memory;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use state::Stores;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Consistency, Payload, ProtocolOptions};
use workloads::Workload;
use workloads::smallbank::{Smallbank, money_change};

/// Batches that are generated before their execution is timed.
const BATCHES_AHEAD: u32 = 32;

/// What to run.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// One of [`concurrency::IDS`].
    pub protocol: String,
    /// Customers.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// Threads of the core.
    pub threads: usize,
    /// Transactions of an execution batch.
    pub block: u32,
    /// Execution batches of a block: those of one block may overlap.
    pub batches: u32,
    /// What clients may conclude from the order of their own actions; those of two blocks may overlap under `serializable`.
    pub consistency: Consistency,
    /// The engine sees the next block when the one before is executed, as where none waits: batches of two blocks do not
    /// overlap.
    pub one_by_one: bool,
    /// Where the state is.
    pub store: EngineStore,
    /// Seed of the workload.
    pub seed: u64,
    /// How long to execute.
    pub time: Duration,
}

/// Where a measured engine keeps its state.
#[derive(Clone)]
pub struct EngineStore {
    /// As records name it.
    pub name: &'static str,
    /// Makes it.
    pub stores: Arc<dyn Stores>,
}

impl fmt::Debug for EngineStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Default for EngineStore {
    fn default() -> EngineStore {
        EngineStore { name: "memory", stores: Arc::new(Memory) }
    }
}

/// One measured point.
#[derive(Clone, Debug, Serialize)]
pub struct EngineRecord {
    /// `smallbank`.
    pub workload: &'static str,
    /// The protocol.
    pub protocol: String,
    /// Where the state is: `memory` or `disk`.
    pub store: &'static str,
    /// Customers.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// Threads of the core.
    pub threads: usize,
    /// Transactions of an execution batch.
    pub block: u32,
    /// Execution batches of a block; not part of the record, whose keys others rely on.
    #[serde(skip)]
    pub batches: u32,
    /// Seconds of execution.
    pub seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that the contract ended.
    pub business_aborts: u64,
    /// Transactions given up because of a conflict.
    pub conflict_aborts: u64,
    /// Transactions that ran more than once.
    pub reexecuted: u64,
    /// Simulations per transaction.
    pub executions_per_transaction: f64,
    /// Committed transactions per second.
    pub throughput_tps: f64,
    /// Largest resident memory in MB (10^6 bytes).
    pub peak_memory_mb: f64,
    /// Where the time goes; not part of the record.
    #[serde(skip)]
    pub times: StageTimes,
    /// Whether no cent was made or lost; not part of the record, a false one is reported.
    #[serde(skip)]
    pub invariant_holds: bool,
}

/// Executes Smallbank blocks for the given time. Only execution is timed: admission of ids, simulation, decision,
/// placement, application, digest and receipts.
///
/// # Errors
/// Options that make no sense; a set-up that fails.
pub fn engine_alone(options: &EngineOptions) -> Result<EngineRecord, EngineBenchError> {
    let smallbank = Smallbank::new(options.customers, options.skew)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|_| EngineBenchError::Threads(options.threads))?;
    let protocol_options = ProtocolOptions { consistency: options.consistency, ..ProtocolOptions::default() };
    let mut chain =
        Chain::on(&*options.store.stores, &options.protocol, protocol_options, options.block, options.seed)?;
    pool.install(|| chain.set_up(&smallbank))?;
    let mut random = StdRng::seed_from_u64(options.seed);
    let mut totals = Totals { money: smallbank.initial_total(), ..Totals::default() };
    while totals.time < options.time {
        let blocks: Vec<VerifiedBlock> = (0..BATCHES_AHEAD.div_ceil(options.batches))
            .map(|_| {
                let calls = (0..options.block * options.batches)
                    .map(|_| smallbank.next_call(&mut random).into_payload());
                let transactions = calls.map(|payload| chain.transaction(payload)).collect();
                chain.block(transactions)
            })
            .collect();
        let mut foreseen = 0;
        for (number, block) in blocks.iter().enumerate() {
            foreseen = foreseen.max(number);
            let start = Instant::now();
            let executed = pool.install(|| {
                // As a node does it with blocks that wait.
                while !options.one_by_one
                    && blocks.get(foreseen).is_some_and(|next| chain.engine.foresee(next))
                {
                    foreseen += 1;
                }
                chain.engine.execute(block)
            })?;
            totals.time += start.elapsed();
            totals.add(block, &executed);
        }
    }
    let seconds = totals.time.as_secs_f64();
    let transactions = totals.transactions.max(1);
    Ok(EngineRecord {
        workload: "smallbank",
        protocol: options.protocol.clone(),
        store: options.store.name,
        customers: options.customers,
        skew: options.skew,
        threads: options.threads,
        block: options.block,
        batches: options.batches,
        seconds,
        committed: totals.committed,
        business_aborts: totals.business_aborts,
        conflict_aborts: totals.conflict_aborts,
        reexecuted: totals.reexecuted,
        executions_per_transaction: totals.executions as f64 / transactions as f64,
        throughput_tps: totals.committed as f64 / seconds,
        peak_memory_mb: peak_memory_bytes() as f64 / 1e6,
        times: totals.times,
        invariant_holds: chain.sum(&smallbank.invariant()) == Some(totals.money),
    })
}

#[derive(Default)]
struct Totals {
    time: Duration,
    transactions: u64,
    committed: u64,
    business_aborts: u64,
    conflict_aborts: u64,
    reexecuted: u64,
    executions: u64,
    money: i128,
    times: StageTimes,
}

impl Totals {
    fn add(&mut self, block: &VerifiedBlock, executed: &ExecutedBlock) {
        let statistics = &executed.statistics;
        self.transactions += statistics.transactions;
        self.committed += statistics.committed;
        self.business_aborts += statistics.business_aborts;
        self.conflict_aborts += statistics.conflict_aborts;
        self.reexecuted += statistics.reexecuted;
        self.executions += statistics.executions;
        self.times.admit += executed.times.admit;
        self.times.protocol += executed.times.protocol;
        self.times.apply += executed.times.apply;
        self.times.digest += executed.times.digest;
        self.times.receipts += executed.times.receipts;
        for (transaction, receipt) in block.transactions.iter().zip(&executed.receipts) {
            if let Ok(transaction) = transaction
                && let Payload::Call { procedure, arguments } = transaction.payload.as_ref()
            {
                self.money += money_change(procedure, arguments, &receipt.outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_ahead_comes_to_the_same() {
        let run = |one_by_one| {
            let options = EngineOptions {
                protocol: "harmony".to_string(),
                customers: 200,
                skew: 1.2,
                threads: 2,
                block: 64,
                batches: 1,
                consistency: Consistency::Serializable,
                one_by_one,
                store: EngineStore::default(),
                seed: 3,
                // As many blocks as are made at once.
                time: Duration::from_nanos(1),
            };
            let record = engine_alone(&options).expect("it runs");
            assert!(record.invariant_holds, "{record:?}");
            (record.committed, record.business_aborts, record.reexecuted)
        };
        assert_eq!(run(false), run(true));
    }

    #[test]
    fn every_protocol_keeps_every_cent_and_abort_nobody_for_a_conflict() {
        for protocol in concurrency::IDS {
            let options = EngineOptions {
                protocol: protocol.to_string(),
                customers: 200,
                skew: 1.2,
                threads: 2,
                block: 64,
                batches: 3,
                consistency: Consistency::Strict,
                one_by_one: false,
                store: EngineStore::default(),
                seed: 3,
                time: Duration::from_millis(50),
            };
            let record = engine_alone(&options).expect("it runs");
            assert!(record.invariant_holds, "{record:?}");
            assert!(record.committed > 0 && record.conflict_aborts == 0, "{record:?}");
        }
    }
}
