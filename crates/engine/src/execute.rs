use crate::{VerifiedBlock, VerifiedTransaction};
use borsh::BorshSerialize;
use concurrency::{Batch, BatchResult, Protocol, Snapshots, TransactionOutcome};
use crypto::{Digest, Sha256Batch, merkle_root};
use rayon::prelude::*;
use sql::{CompileOptions, Context, Invocation, Library};
use state::{BlockChanges, BlockDigest, LiveRequests, Simulate, Snapshot, State, Version};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Catalog, Charter, Consistency, OnConflict, Outcome, Receipt, RejectReason, SqlError};

/// Receipts that one task hashes; a power of two, so that what it finds is a node of the tree.
const RECEIPTS_PER_PIECE: usize = 64;
/// After so many batches of one block a conflict is final, so that requeueing ends well before
/// [`Version::BATCHES_MAX`].
const REQUEUE_BATCHES_MAX: u32 = 10_000;

/// Why the engine cannot go on. Nothing that a transaction does leads here.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The charter names a protocol that this binary does not have.
    #[error(transparent)]
    UnknownProtocol(#[from] concurrency::UnknownProtocol),
    /// A catalog that was accepted cannot be compiled again.
    #[error("the catalog of version {version} does not compile: {error}; restore another checkpoint")]
    Catalog {
        /// Version of the catalog.
        version: u64,
        /// Why.
        error: SqlError,
    },
    /// A block that does not follow the last one.
    #[error("expected the block of height {expected}, found height {found}")]
    Height {
        /// The next height.
        expected: u64,
        /// The height that came.
        found: u64,
    },
}

/// Counts of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockStatistics {
    /// Transactions in the block.
    pub transactions: u64,
    /// Those that committed.
    pub committed: u64,
    /// Those that the contract or a constraint ended.
    pub business_aborts: u64,
    /// Those given up because of a conflict.
    pub conflict_aborts: u64,
    /// Those that were not executed.
    pub rejected: u64,
    /// Those that ran more than once.
    pub reexecuted: u64,
    /// Simulations, repeated ones included.
    pub executions: u64,
    /// Logical steps spent.
    pub steps: u64,
}

/// How long the parts of a block's execution took; for metrics alone, nothing depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTimes {
    /// Admission of ids and cutting into batches.
    pub admit: Duration,
    /// Simulation, decision and placement.
    pub protocol: Duration,
    /// Installing after-images.
    pub apply: Duration,
    /// State digest.
    pub digest: Duration,
    /// Receipts and their root.
    pub receipts: Duration,
}

/// What a block came to.
pub struct ExecutedBlock {
    /// One per transaction, in block order.
    pub receipts: Vec<Receipt>,
    /// Merkle root over the receipts.
    pub receipts_root: Digest,
    /// The state after the block, chained.
    pub state_digest: Digest,
    /// Counts.
    pub statistics: BlockStatistics,
    /// Durations.
    pub times: StageTimes,
}

/// State, live ids and protocol of one ledger, at one height.
pub struct Engine {
    state: Arc<State>,
    live: LiveRequests,
    protocol: Box<dyn Protocol>,
    library: Arc<Library>,
    height: u64,
    state_digest: Digest,
    charter: Arc<Charter>,
    /// The next batch may not depend on the one before.
    forget: bool,
}

/// The newest state, as protocols ask for it.
struct Newest<'a>(&'a State);

impl Snapshots for Newest<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        self.0.snapshot()
    }
}

impl Engine {
    /// The empty state at height 0.
    ///
    /// # Errors
    /// The charter's protocol is unknown.
    pub fn new(charter: Arc<Charter>) -> Result<Engine, EngineError> {
        let state = Arc::new(State::new(Arc::new(Catalog::default())));
        let digest = charter.ledger();
        Engine::at(charter, state, LiveRequests::new(), 0, digest)
    }

    /// The state of a checkpoint.
    ///
    /// # Errors
    /// The charter's protocol is unknown, or the checkpoint's catalog does not compile.
    pub fn at(
        charter: Arc<Charter>,
        state: Arc<State>,
        live: LiveRequests,
        height: u64,
        state_digest: Digest,
    ) -> Result<Engine, EngineError> {
        let protocol = concurrency::protocol(&charter.protocol, charter.concurrency)?;
        let catalog = state.catalog();
        let version = catalog.version;
        let library = Library::new(catalog).map_err(|error| EngineError::Catalog { version, error })?;
        Ok(Engine {
            state,
            live,
            protocol,
            library: Arc::new(library),
            height,
            state_digest,
            charter,
            forget: true,
        })
    }

    /// The same engine with procedures compiled in another way than ledgers do, for measurements.
    ///
    /// # Errors
    /// The catalog does not compile.
    pub fn with_compile_options(self, options: CompileOptions) -> Result<Engine, EngineError> {
        let catalog = self.state.catalog();
        let version = catalog.version;
        let library = Library::with_options(catalog, options)
            .map_err(|error| EngineError::Catalog { version, error })?;
        Ok(Engine { library: Arc::new(library), ..self })
    }

    /// Height of the last block executed.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// Digest of the state at that height.
    pub fn state_digest(&self) -> Digest {
        self.state_digest
    }

    /// The tables; readers take snapshots of it while blocks are executed.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The compiled catalog at that height.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// The ids that may not come again.
    pub fn live(&self) -> &LiveRequests {
        &self.live
    }

    /// Executes the next block.
    ///
    /// # Errors
    /// [`EngineError::Height`] if it is not the next one; the state is then unchanged.
    pub fn execute(&mut self, block: &VerifiedBlock) -> Result<ExecutedBlock, EngineError> {
        let (height, expected) = (block.header.height, self.height + 1);
        if height != expected {
            return Err(EngineError::Height { expected, found: height });
        }
        let mut run = BlockRun::new(block);
        let start = Instant::now();
        let admitted = self.admit(block, &mut run);
        run.times.admit = start.elapsed();
        // Nothing in a block can have been submitted after the answer to something else in it, so batches of one block
        // may miss each other without a client noticing; those of two blocks may not, if consistency is strict.
        self.forget |= self.charter.concurrency.consistency == Consistency::Strict;
        self.forget |= (height - 1).is_multiple_of(u64::from(self.charter.checkpoint_blocks));
        for group in groups(block, &admitted) {
            match group {
                Group::SchemaChange(index) => self.change_schema(block, index, &mut run),
                Group::Transactions(indices) => self.run_transactions(block, indices, &mut run),
            }
        }
        self.finish(block, run)
    }

    /// Judges ids in block order: expiry, duplicates. Returns the positions of those that are executed.
    fn admit(&mut self, block: &VerifiedBlock, run: &mut BlockRun) -> Vec<u32> {
        let height = block.header.height;
        self.live.begin_block(height);
        let expiry_max = height + u64::from(self.charter.expiry_blocks_max);
        let mut admitted = Vec::with_capacity(block.transactions.len());
        for (index, judged) in block.transactions.iter().enumerate() {
            let verdict = match judged {
                Err((_, reason)) => Err(reason.clone()),
                Ok(transaction) => self.admit_one(transaction, height, index as u32, expiry_max),
            };
            match verdict {
                Ok(()) => admitted.push(index as u32),
                Err(reason) => run.outcomes[index] = Some(Outcome::Rejected(reason)),
            }
        }
        admitted
    }

    fn admit_one(
        &mut self,
        transaction: &VerifiedTransaction,
        height: u64,
        index: u32,
        expiry_max: u64,
    ) -> Result<(), RejectReason> {
        let expires_at = transaction.expires_at;
        if expires_at < height || expires_at > expiry_max {
            return Err(RejectReason::Expired { height, expires_at });
        }
        self.live.admit(transaction.client, transaction.id, index, expires_at)
    }

    fn invocation(&self, block: &VerifiedBlock, index: u32) -> Invocation {
        let transaction =
            block.transactions[index as usize].as_ref().expect("only admitted transactions are executed");
        let context = Context {
            height: block.header.height,
            timestamp_ms: block.header.timestamp_ms,
            index,
            transaction: transaction.id,
            step_limit: self.charter.meter.transaction_steps,
        };
        Invocation::new(self.library.clone(), context, transaction.payload.clone())
    }

    /// Runs transactions in batches of the charter's size. Those that a protocol hands back come first in the next
    /// batch that is formed; the block is not done before they are.
    fn run_transactions(&mut self, block: &VerifiedBlock, indices: Vec<u32>, run: &mut BlockRun) {
        let size = self.charter.block.batch_transactions as usize;
        let mut waiting = VecDeque::from(indices);
        let mut offered = VecDeque::new();
        loop {
            while offered.len() < self.protocol.lookahead() && !waiting.is_empty() {
                let indices: Vec<u32> = waiting.drain(..size.min(waiting.len())).collect();
                self.offer(block, &indices, run);
                offered.push_back(indices);
            }
            if waiting.is_empty() {
                self.protocol.finish();
            }
            let Some(indices) = offered.pop_front() else { break };
            let start = Instant::now();
            let newest = Newest(&self.state);
            let result = self.protocol.poll(&newest).expect("the batch has been offered, and its followers");
            run.times.protocol += start.elapsed();
            for index in self.apply(result, &indices, run).into_iter().rev() {
                waiting.push_front(index);
            }
        }
    }

    fn offer(&mut self, block: &VerifiedBlock, indices: &[u32], run: &mut BlockRun) {
        let transactions = indices
            .iter()
            .map(|index| Arc::new(self.invocation(block, *index)) as Arc<dyn Simulate>)
            .collect();
        let steps_left = self.charter.meter.block_steps.saturating_sub(run.statistics.steps);
        let (height, number) = (block.header.height, run.groups);
        run.groups += 1;
        let forget = std::mem::take(&mut self.forget);
        self.protocol.offer(Batch { height, number, transactions, steps_left, forget });
    }

    /// Takes in what a batch came to; the transactions that have to be offered again.
    fn apply(&self, result: BatchResult, indices: &[u32], run: &mut BlockRun) -> Vec<u32> {
        let start = Instant::now();
        self.state.apply(Version::after_batch(result.height, result.number), &result.changes, None);
        run.changes.add(result.changes);
        run.times.apply += start.elapsed();
        run.statistics.steps += result.steps;
        run.statistics.executions += result.statistics.executions;
        run.statistics.reexecuted += result.statistics.reexecuted;
        let requeue = self.charter.concurrency.on_conflict == OnConflict::Requeue;
        let requeue = requeue && result.number < REQUEUE_BATCHES_MAX;
        let mut again = Vec::new();
        for (index, outcome) in indices.iter().zip(result.outcomes) {
            run.outcomes[*index as usize] = Some(match outcome {
                TransactionOutcome::Committed(results) => Outcome::Committed(results),
                TransactionOutcome::Aborted(error) => Outcome::Aborted(error),
                TransactionOutcome::Conflict if requeue => {
                    again.push(*index);
                    continue;
                }
                TransactionOutcome::Conflict => Outcome::Conflict,
                TransactionOutcome::OverBudget => Outcome::Rejected(RejectReason::BlockBudget),
            });
        }
        run.statistics.reexecuted += again.len() as u64;
        again
    }

    /// A schema change runs alone, on the state that everything before it in the block has left.
    fn change_schema(&mut self, block: &VerifiedBlock, index: u32, run: &mut BlockRun) {
        let version = Version::after_batch(block.header.height, run.groups);
        run.groups += 1;
        self.forget = true;
        run.outcomes[index as usize] = Some(self.try_schema_change(block, index, version, run));
    }

    fn try_schema_change(
        &mut self,
        block: &VerifiedBlock,
        index: u32,
        version: Version,
        run: &mut BlockRun,
    ) -> Outcome {
        let snapshot = self.state.snapshot();
        let effects = self.invocation(block, index).simulate(snapshot.as_ref());
        run.statistics.executions += 1;
        run.statistics.steps += effects.steps;
        let results = match effects.result {
            Ok(results) => results,
            Err(error) => return Outcome::Aborted(error),
        };
        if let Some(catalog) = effects.catalog {
            match self.library.successor(catalog.clone()) {
                Ok(library) => {
                    self.state.apply(version, &[], Some(catalog));
                    self.library = Arc::new(library);
                }
                Err(error) => return Outcome::Aborted(error),
            }
        }
        Outcome::Committed(results)
    }

    fn finish(&mut self, block: &VerifiedBlock, run: BlockRun) -> Result<ExecutedBlock, EngineError> {
        let BlockRun { outcomes, changes, mut statistics, mut times, .. } = run;
        let height = block.header.height;
        let start = Instant::now();
        let digest =
            BlockDigest::new(&changes.finish(), self.state.catalog_digest(), self.live.block_digest());
        self.state_digest = digest.chain(self.state_digest, height);
        self.height = height;
        times.digest = start.elapsed();
        let start = Instant::now();
        let receipts: Vec<Receipt> = outcomes
            .into_iter()
            .zip(&block.transactions)
            .enumerate()
            .map(|(index, (outcome, transaction))| {
                let outcome = outcome.expect("every transaction of a block has an outcome");
                statistics.count(&outcome);
                let transaction =
                    transaction.as_ref().map_or_else(|(id, _)| *id, |transaction| transaction.id);
                Receipt { transaction, height, index: index as u32, outcome }
            })
            .collect();
        let pieces: Vec<Digest> = receipts.par_chunks(RECEIPTS_PER_PIECE).map(piece_root).collect();
        let receipts_root = merkle_root(&pieces);
        times.receipts = start.elapsed();
        Ok(ExecutedBlock { receipts, receipts_root, state_digest: self.state_digest, statistics, times })
    }
}

/// The node of the receipts tree above these receipts.
fn piece_root(receipts: &[Receipt]) -> Digest {
    let (mut leaves, mut content) = (Sha256Batch::new(), Vec::new());
    for receipt in receipts {
        content.clear();
        receipt.serialize(&mut content).expect("writing to memory cannot fail");
        leaves.push_leaf(&content);
    }
    merkle_root(&leaves.finish())
}

enum Group {
    SchemaChange(u32),
    Transactions(Vec<u32>),
}

/// The admitted transactions in order; a schema change stands alone.
fn groups(block: &VerifiedBlock, admitted: &[u32]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for index in admitted {
        let Ok(transaction) = &block.transactions[*index as usize] else { continue };
        if sql::is_schema_change(&transaction.payload) {
            groups.push(Group::SchemaChange(*index));
            continue;
        }
        match groups.last_mut() {
            Some(Group::Transactions(indices)) => indices.push(*index),
            _ => groups.push(Group::Transactions(vec![*index])),
        }
    }
    groups
}

struct BlockRun {
    /// Batches and schema changes so far.
    groups: u32,
    outcomes: Vec<Option<Outcome>>,
    changes: BlockChanges,
    statistics: BlockStatistics,
    times: StageTimes,
}

impl BlockRun {
    fn new(block: &VerifiedBlock) -> BlockRun {
        let transactions = block.transactions.len();
        let statistics = BlockStatistics { transactions: transactions as u64, ..BlockStatistics::default() };
        BlockRun {
            groups: 0,
            outcomes: vec![None; transactions],
            changes: BlockChanges::default(),
            statistics,
            times: StageTimes::default(),
        }
    }
}

impl BlockStatistics {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Committed(_) => self.committed += 1,
            Outcome::Aborted(_) => self.business_aborts += 1,
            Outcome::Conflict => self.conflict_aborts += 1,
            Outcome::Rejected(_) => self.rejected += 1,
        }
    }
}
