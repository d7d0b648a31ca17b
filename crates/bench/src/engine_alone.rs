//! The engine alone: blocks of verified calls in, receipts and digests out; no network, no signatures, no disk.

use crate::peak_memory_bytes;
use crypto::{SecretKey, Signature};
use engine::{Engine, EngineError, ExecutedBlock, StageTimes, VerifiedBlock, VerifiedTransaction};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{
    BlockHeader, Charter, Credential, Organisation, Outcome, Payload, RequestId, SignedTransaction,
    Transaction,
};
use workloads::smallbank::{ParameterError, Smallbank, money_change};

/// Blocks that are generated before their execution is timed.
const BLOCKS_AHEAD: u64 = 32;

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
    /// Transactions of a block, which is one execution batch.
    pub block: u32,
    /// Seed of the workload.
    pub seed: u64,
    /// How long to execute.
    pub time: Duration,
}

/// One measured point.
#[derive(Clone, Debug, Serialize)]
pub struct EngineRecord {
    /// `smallbank`.
    pub workload: &'static str,
    /// The protocol.
    pub protocol: String,
    /// Customers.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// Threads of the core.
    pub threads: usize,
    /// Transactions of a block.
    pub block: u32,
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

/// Why the engine could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum EngineBenchError {
    /// Options that make no sense.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The engine refuses to run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A statement of the set-up failed.
    #[error("the set-up failed at: {statement}\n{outcome:?}")]
    SetUp {
        /// The statement.
        statement: String,
        /// How it ended.
        outcome: Box<Outcome>,
    },
    /// No threads.
    #[error("cannot start {0} threads")]
    Threads(usize),
}

/// An engine with its chain of blocks, fed without signatures.
struct Chain {
    engine: Engine,
    key: SecretKey,
    credential: Credential,
    charter: Arc<Charter>,
    requests: u64,
    height: u64,
}

impl Chain {
    fn new(options: &EngineOptions) -> Result<Chain, EngineError> {
        let key = SecretKey::from_bytes([7; 32]);
        let mut charter = Charter::with_defaults("bench", options.seed);
        charter.protocol = options.protocol.clone();
        charter.ordering = "solo".to_string();
        charter.block.batch_transactions = options.block;
        charter.checkpoint_blocks = 1_000_000;
        charter.organisations.push(Organisation {
            name: "bench".to_string(),
            root_key: key.public_key(),
            node_key: SecretKey::from_bytes([8; 32]).public_key(),
            address: String::new(),
        });
        let charter = Arc::new(charter);
        let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
        let engine = Engine::new(charter.clone())?;
        Ok(Chain { engine, key, credential, charter, requests: 0, height: 0 })
    }

    /// The block of the next height but `ahead`.
    fn block(&mut self, payloads: Vec<Payload>) -> VerifiedBlock {
        self.height += 1;
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height: self.height,
            timestamp_ms: 1_800_000_000_000 + self.height,
            previous: crypto::Digest::ZERO,
            transactions_root: crypto::Digest::ZERO,
            transactions: payloads.len() as u32,
            proposer: 0,
        };
        let transactions =
            payloads.into_iter().map(|payload| Ok(Arc::new(self.transaction(payload)))).collect();
        VerifiedBlock { digest: header.digest(), header, transactions }
    }

    fn transaction(&mut self, payload: Payload) -> VerifiedTransaction {
        self.requests += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.requests.to_be_bytes());
        let transaction = Transaction {
            ledger: self.charter.ledger(),
            client: self.key.public_key(),
            request: RequestId(request),
            expires_at: self.height + 50,
            payload,
        };
        let signature = Signature([0; 64]);
        SignedTransaction { transaction, credential: self.credential, signature }.into()
    }

    fn set_up(&mut self, smallbank: &Smallbank, customers: u64) -> Result<(), EngineBenchError> {
        let script = |sql: &str| Payload::Script { sql: sql.to_string(), parameters: vec![] };
        let mut payloads: Vec<Payload> = Smallbank::statements().map(script).collect();
        for first in (1..=customers).step_by(1_000) {
            let tables = smallbank.rows(first, 1_000.min(customers + 1 - first));
            payloads.extend(tables.into_iter().map(|rows| Payload::Insert {
                table: rows.table.to_string(),
                columns: rows.columns.iter().map(|column| column.to_string()).collect(),
                rows: rows.rows,
            }));
        }
        for payload in payloads {
            let block = self.block(vec![payload]);
            let executed = self.engine.execute(&block)?;
            if !matches!(executed.receipts[0].outcome, Outcome::Committed(_)) {
                let payload = &block.transactions[0].as_ref().expect("made here").payload;
                let statement = format!("{payload:?}").chars().take(500).collect();
                let outcome = Box::new(executed.receipts[0].outcome.clone());
                return Err(EngineBenchError::SetUp { statement, outcome });
            }
        }
        Ok(())
    }

    /// The sum of all balances, asked in SQL.
    fn total(&self) -> Option<i128> {
        let mut total = 0;
        for table in ["savings", "checking"] {
            let sql = format!("SELECT sum(balance) FROM {table}");
            let prepared = sql::prepare(self.engine.library(), &sql, &[]).ok()?;
            let snapshot = self.engine.state().snapshot();
            let results = prepared.query(snapshot.as_ref(), &[], u64::MAX, 0).ok()?;
            let text = types::format_value(results.first()?.rows.first()?.first()?)?;
            total += text.parse::<i128>().ok()?;
        }
        Some(total)
    }
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
    let mut chain = Chain::new(options)?;
    pool.install(|| chain.set_up(&smallbank, options.customers))?;
    let mut random = StdRng::seed_from_u64(options.seed);
    let mut totals = Totals { money: smallbank.initial_total(), ..Totals::default() };
    while totals.time < options.time {
        let blocks: Vec<VerifiedBlock> = (0..BLOCKS_AHEAD)
            .map(|_| {
                let calls = (0..options.block).map(|_| smallbank.next_call(&mut random).into_payload());
                chain.block(calls.collect())
            })
            .collect();
        for block in &blocks {
            let start = Instant::now();
            let executed = pool.install(|| chain.engine.execute(block))?;
            totals.time += start.elapsed();
            totals.add(block, &executed);
        }
    }
    let seconds = totals.time.as_secs_f64();
    let transactions = totals.transactions.max(1);
    Ok(EngineRecord {
        workload: "smallbank",
        protocol: options.protocol.clone(),
        customers: options.customers,
        skew: options.skew,
        threads: options.threads,
        block: options.block,
        seconds,
        committed: totals.committed,
        business_aborts: totals.business_aborts,
        conflict_aborts: totals.conflict_aborts,
        reexecuted: totals.reexecuted,
        executions_per_transaction: totals.executions as f64 / transactions as f64,
        throughput_tps: totals.committed as f64 / seconds,
        peak_memory_mb: peak_memory_bytes() as f64 / 1e6,
        times: totals.times,
        invariant_holds: chain.total() == Some(totals.money),
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
    fn both_protocols_keep_every_cent_and_abort_nobody_for_a_conflict() {
        for protocol in concurrency::IDS {
            let options = EngineOptions {
                protocol: protocol.to_string(),
                customers: 200,
                skew: 1.2,
                threads: 2,
                block: 64,
                seed: 3,
                time: Duration::from_millis(50),
            };
            let record = engine_alone(&options).expect("it runs");
            assert!(record.invariant_holds, "{record:?}");
            assert!(record.committed > 0 && record.conflict_aborts == 0, "{record:?}");
        }
    }
}
