use state::{AfterImage, Simulate, Snapshot};
use std::sync::Arc;
use types::{SqlError, StatementResult};

/// Transactions that are decided together: a run of neighbours in one block.
pub struct Batch {
    /// Height of their block.
    pub height: u64,
    /// Position of the batch in its block, from 0.
    pub number: u32,
    /// In ledger order; the position here is the transaction's number in the batch.
    pub transactions: Vec<Arc<dyn Simulate>>,
    /// Logical steps that executions of this batch may still spend; every execution counts, also a repeated one.
    pub steps_left: u64,
    /// The previous block was a checkpoint height: nothing may depend on what came before (`protocols.md`,
    /// section 2), so that a node that restarts there decides the same.
    pub forget: bool,
}

/// How a transaction of a batch ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionOutcome {
    /// Its effects are among the after-images.
    Committed(Vec<StatementResult>),
    /// The contract or a constraint said no.
    Aborted(SqlError),
    /// Given up because of a conflict.
    Conflict,
    /// The steps that the block may spend were gone before its turn.
    OverBudget,
}

/// Counts of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStatistics {
    /// Simulations, repeated ones included.
    pub executions: u64,
    /// Transactions that ran more than once.
    pub reexecuted: u64,
    /// Of these, transactions that validation rejected (a backward dangerous structure).
    pub rejected: u64,
    /// Of these, transactions of which a guard did not hold at their place.
    pub guards_failed: u64,
}

/// What a batch came to.
pub struct BatchResult {
    /// Height of its block.
    pub height: u64,
    /// Position in its block.
    pub number: u32,
    /// One per transaction, in order.
    pub outcomes: Vec<TransactionOutcome>,
    /// One per changed row, by table and key.
    pub changes: Vec<AfterImage>,
    /// Logical steps spent.
    pub steps: u64,
    /// Counts.
    pub statistics: BatchStatistics,
}

/// Where a protocol gets the states it simulates on.
pub trait Snapshots: Sync {
    /// The state after everything applied so far.
    fn newest(&self) -> Arc<dyn Snapshot>;
}

/// A deterministic concurrency control as a state machine.
///
/// The caller offers a batch, polls, applies what comes out to the state, and polls again; a protocol that overlaps
/// batches answers `None` until it has been offered enough, or [`Protocol::finish`] tells it that no more come.
/// Parallel work runs on the current rayon pool.
pub trait Protocol: Send {
    /// The id by which charters and experiments name it.
    fn id(&self) -> &'static str;

    /// Hands over the next batch in ledger order.
    fn offer(&mut self, batch: Batch);

    /// The next decided batch, in ledger order. Its changes must be applied before the next call.
    fn poll(&mut self, snapshots: &dyn Snapshots) -> Option<BatchResult>;

    /// No batch follows for now: what was offered is decided without waiting for more.
    fn finish(&mut self) {}
}
