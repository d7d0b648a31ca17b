//! Rates, counted at the level of protocols: the same seed gives the same figures on every machine, whatever else it
//! does. Nothing here is timed.

use super::plan::Point;
use crate::chain::{Chain, EngineBenchError};
use concurrency::checker::{Fate, RecordingTransaction, false_aborts, fixed_edges};
use concurrency::{Batch, BatchResult, OnConflict, ProtocolOptions, Snapshots, TransactionOutcome};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sql::{Context, Invocation, Library};
use state::{Effects, Simulate, Snapshot, Store, StoreError, Version};
use std::collections::VecDeque;
use std::sync::Arc;
use types::{Catalog, TransactionId};
use workloads::Workload;

/// Transactions that are counted.
const TRANSACTIONS: usize = 10_000;

/// Shares of all transactions, where conflicts abort. What runs again at the end of its batch would be met by the next
/// batch as well, so that Harmony's rates would be higher than those that the paper counts.
///
/// A comparison of protocols counts aborts where all of them simulate on the newest state: it compares what they decide
/// about the same snapshots. What validation rejects is counted under the point's own options.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Given up.
    pub(super) conflict_aborts: f64,
    /// Given up although the committed ones and it alone would have been serializable.
    pub(super) false_aborts: f64,
    /// Rejected by validation.
    pub(super) rejected: f64,
}

/// Counts a point.
pub(super) fn count(
    point: &Point,
    compares_protocols: bool,
    workload: &dyn Workload,
    seed: u64,
) -> Result<Rates, EngineBenchError> {
    let options = ProtocolOptions { on_conflict: OnConflict::Abort, ..point.options };
    let own = Run::new(point, options, workload, seed)?;
    let looks_ahead = own.protocol.lookahead() > 1;
    let own = own.finish().map_err(engine::EngineError::from)?;
    let compared = if compares_protocols && looks_ahead {
        let run = Run::new(point, ProtocolOptions { inter_block: false, ..options }, workload, seed)?;
        run.finish().map_err(engine::EngineError::from)?
    } else {
        own
    };
    let share = |count: u64| count as f64 / own.transactions.max(1) as f64;
    Ok(Rates {
        conflict_aborts: share(compared.conflicts),
        false_aborts: share(compared.false_aborts),
        rejected: share(own.rejected),
    })
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    transactions: u64,
    conflicts: u64,
    false_aborts: u64,
    rejected: u64,
}

type Recorded = Vec<Arc<RecordingTransaction>>;

/// A protocol over batches of calls, as the engine drives it.
struct Run {
    protocol: Box<dyn concurrency::Protocol>,
    state: Arc<dyn Store>,
    catalog: Arc<Catalog>,
    /// Not offered yet.
    coming: VecDeque<Recorded>,
    /// Offered, not decided.
    offered: VecDeque<(Recorded, bool)>,
    height: u64,
    number: u32,
    counts: Counts,
    /// The last batch: first execution and fate of each transaction; their order.
    previous: (Vec<(Effects, Fate)>, Vec<u32>),
}

struct Newest<'a>(&'a dyn Store);

impl Snapshots for Newest<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        self.0.snapshot()
    }
}

impl Run {
    fn new(
        point: &Point,
        options: ProtocolOptions,
        workload: &dyn Workload,
        seed: u64,
    ) -> Result<Run, EngineBenchError> {
        let mut chain = Chain::new(&point.protocol, options, point.block_size, seed)?;
        chain.set_up(workload)?;
        let library = chain.engine.library().clone();
        let size = point.block_size as usize;
        let batches = TRANSACTIONS.div_ceil(size).max(8);
        let mut random = StdRng::seed_from_u64(seed);
        let mut number = 0;
        let mut call = || {
            let payload = workload.call(number, &mut random).into_payload();
            number += 1;
            recorded(&library, number, payload)
        };
        let coming = (0..batches).map(|_| (0..size).map(|_| call()).collect()).collect();
        let protocol = concurrency::protocol(&point.protocol, options).map_err(engine::EngineError::from)?;
        let state = chain.engine.state().clone();
        Ok(Run {
            protocol,
            catalog: state.catalog(),
            height: chain.engine.height() + 1,
            number: 0,
            state,
            coming,
            offered: VecDeque::new(),
            counts: Counts::default(),
            previous: Default::default(),
        })
    }

    fn finish(mut self) -> Result<Counts, StoreError> {
        loop {
            while self.offered.len() < self.protocol.lookahead().max(1)
                && let Some(batch) = self.coming.pop_front()
            {
                self.offer(batch);
            }
            let Some((transactions, unseen)) = self.offered.pop_front() else { return Ok(self.counts) };
            let result = self
                .protocol
                .poll(&Newest(self.state.as_ref()))?
                .expect("as many batches have been offered as the protocol looks ahead");
            let version = Version::after_batch(result.height, result.number);
            self.state.apply(version, &result.changes, None)?;
            self.add(&transactions, &result, unseen);
        }
    }

    fn offer(&mut self, batch: Recorded) {
        // Strict consistency cuts at blocks; here every block is one long one, so it cuts at the beginning alone.
        let forget = self.number == 0;
        let transactions: Vec<Arc<dyn Simulate>> =
            batch.iter().map(|transaction| transaction.clone() as Arc<dyn Simulate>).collect();
        let (height, number) = (self.height, self.number);
        self.protocol.offer(Batch {
            height,
            number,
            transactions,
            steps_left: u64::MAX,
            forget,
            oldest_snapshot: 0,
        });
        self.number += 1;
        // A protocol that looks ahead simulates a batch while the one before it takes effect. Where that is made good
        // for strict consistency, what it missed still shows in the edges.
        let unseen = self.protocol.lookahead() > 1 && !forget;
        self.offered.push_back((batch, unseen));
    }

    fn add(&mut self, transactions: &Recorded, result: &BatchResult, unseen: bool) {
        self.counts.transactions += transactions.len() as u64;
        self.counts.rejected += result.statistics.rejected;
        let conflict = |outcome: &&TransactionOutcome| **outcome == TransactionOutcome::Conflict;
        let conflicts = result.outcomes.iter().filter(conflict).count() as u64;
        self.counts.conflicts += conflicts;
        let fate = |outcome: &TransactionOutcome| match outcome {
            TransactionOutcome::Committed(_) => Fate::Committed,
            TransactionOutcome::Conflict => Fate::Conflict,
            TransactionOutcome::Aborted(_) | TransactionOutcome::OverBudget => Fate::Business,
        };
        let executed = transactions.iter().zip(&result.outcomes).filter_map(|(transaction, outcome)| {
            Some((transaction.executions().into_iter().next()?.effects, fate(outcome)))
        });
        let block: Vec<(Effects, Fate)> = executed.collect();
        if conflicts > 0 {
            let current: Vec<(&Effects, Fate)> =
                block.iter().map(|(effects, fate)| (effects, *fate)).collect();
            let (previous, placed) = &self.previous;
            let fixed = if unseen {
                let previous: Vec<(&Effects, Fate)> =
                    previous.iter().map(|(effects, fate)| (effects, *fate)).collect();
                fixed_edges(&current, &previous, placed, &self.catalog)
            } else {
                Vec::new()
            };
            self.counts.false_aborts += false_aborts(&current, &self.catalog, &fixed).len() as u64;
        }
        self.previous = (block, result.history.placed.clone());
    }
}

fn recorded(library: &Arc<Library>, number: u64, payload: types::Payload) -> Arc<RecordingTransaction> {
    let context = Context {
        height: 1,
        timestamp_ms: 1_800_000_000_000,
        index: (number % 1_000_000) as u32,
        transaction: TransactionId(crypto::sha256(&[&number.to_be_bytes()])),
        step_limit: 1_000_000,
    };
    RecordingTransaction::new(Arc::new(Invocation::new(library.clone(), context, Arc::new(payload))))
}
