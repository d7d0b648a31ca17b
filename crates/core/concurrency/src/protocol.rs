use crate::aria::Aria;
use crate::block_stm::BlockStm;
use crate::endorsed::Validation;
use crate::graph::Graph;
use crate::harmony::Harmony;
use crate::serial::Serial;
use crate::ssi::Ssi;
use state::{AfterImage, Simulate, Snapshot, StoreError};
use std::sync::{Arc, PoisonError, RwLock};
use types::{Pipeline, ProtocolOptions, SqlError, StatementResult};

/// Transactions that are decided together: a run of neighbours in one block.
pub struct Batch {
    /// Height of their block.
    pub height: u64,
    /// Position of the batch in its block, from 0.
    pub number: u32,
    /// In ledger order; the position here is the transaction's number in the batch.
    pub transactions: Vec<Arc<dyn Simulate>>,
    /// Logical steps that executions of this batch and of those of its block that were offered before it and not
    /// polled yet may still spend; every execution counts, also a repeated one. A transaction runs if the executions
    /// before it, in the order in which a serial machine would run them, left anything.
    pub steps_left: u64,
    /// Nothing may depend on what came before: the batch is simulated on the state that everything before it left. So
    /// it is behind a checkpoint, so that a node that restarts there decides the same (`protocols.md`, section 2),
    /// and where a transaction may have been submitted after the answer to one of the batch before.
    pub forget: bool,
    /// Simulations that came with their transactions count only if they were made on the state after this height or a
    /// later one: nobody knows what a schema change in between did to them, and a node that restarts at a checkpoint
    /// does not remember what was written before it.
    pub oldest_snapshot: u64,
}

/// How a transaction of a batch ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionOutcome {
    /// Its effects are among the after-images.
    Committed(Vec<StatementResult>),
    /// The contract or a constraint said no.
    Aborted(SqlError),
    /// Given up because of a conflict, or, with [`OnConflict::Requeue`](types::OnConflict), to be offered again.
    Conflict,
    /// The steps that the block may spend were gone before its turn.
    OverBudget,
}

/// Counts of one batch.
///
/// Block-STM counts what really happened: its `executions` and `reexecuted` depend on which thread came first and
/// belong into no comparison of results. Everybody else's are the same on every node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStatistics {
    /// Simulations, repeated ones included.
    pub executions: u64,
    /// Transactions that ran more than once in this batch.
    pub reexecuted: u64,
    /// Transactions that validation rejected (Harmony: a backward dangerous structure).
    pub rejected: u64,
    /// Transactions of which a guard did not hold at their place.
    pub guards_failed: u64,
}

/// The order in which a batch took effect. Every transaction that was executed and not given up (`Committed` and
/// `Aborted`, but not what `graph` refuses unexecuted) stands in exactly one of the lists; to run them one after the
/// other, first `placed`, then `serial`, gives the same results, values read and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Those whose execution on the batch's snapshot counts, by place.
    pub placed: Vec<u32>,
    /// Those that ran one after the other behind them, each on the state that the one before left.
    pub serial: Vec<u32>,
}

/// What a batch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchResult {
    /// Height of its block.
    pub height: u64,
    /// Position in its block.
    pub number: u32,
    /// One per transaction, in order.
    pub outcomes: Vec<TransactionOutcome>,
    /// One per row whose value differs from what it was before the batch, by table and key.
    pub changes: Vec<AfterImage>,
    /// The order in which the transactions took effect.
    pub history: History,
    /// Logical steps spent. Less than the whole of the last execution may have been left for it, so this exceeds
    /// [`Batch::steps_left`] by at most one transaction's limit.
    pub steps: u64,
    /// Counts.
    pub statistics: BatchStatistics,
}

impl BatchResult {
    /// Nothing of the batch had a turn.
    pub(crate) fn over_budget(batch: &Batch) -> BatchResult {
        BatchResult {
            height: batch.height,
            number: batch.number,
            outcomes: vec![TransactionOutcome::OverBudget; batch.transactions.len()],
            changes: Vec::new(),
            history: History::default(),
            steps: 0,
            statistics: BatchStatistics::default(),
        }
    }
}

/// Where a protocol gets the states it simulates on.
pub trait Snapshots: Sync {
    /// The state after everything applied so far.
    fn newest(&self) -> Arc<dyn Snapshot>;
}

/// A deterministic concurrency control as a state machine.
///
/// The caller offers a batch, or several, polls, applies what comes out to the state, and polls again; `None` where
/// nothing is left.
/// Parallel work runs on the current rayon pool.
pub trait Protocol: Send {
    /// The id by which charters and experiments name it.
    fn id(&self) -> &'static str;

    /// Hands over the next batch in ledger order.
    fn offer(&mut self, batch: Batch);

    /// The next decided batch, in ledger order. Its changes must be applied before the next call.
    ///
    /// # Errors
    /// A state cannot be read. Nothing of the batch has an outcome, and the protocol is of no more use.
    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError>;

    /// How many batches, at least 1, should be offered before the first of them is polled, so that work on them can
    /// overlap. Offering fewer changes the speed and nothing else.
    fn lookahead(&self) -> usize {
        1
    }
}

/// A protocol by its id.
type Registered = (&'static str, fn(ProtocolOptions) -> Box<dyn Protocol>);

/// Every protocol. Who adds one adds a line here; charters, experiments and the command line know it from then on.
const PROTOCOLS: [Registered; 6] = [
    ("harmony", |options| Box::new(Harmony::new(options))),
    ("aria", |options| Box::new(Aria::new(options))),
    ("ssi", |options| Box::new(Ssi::new(options))),
    ("graph", |options| Box::new(Graph::new(options))),
    ("block-stm", |_| Box::new(BlockStm::default())),
    ("serial", |_| Box::new(Serial::default())),
];

/// The ids of all built-in protocols.
pub const IDS: [&str; PROTOCOLS.len()] = ids_of(&PROTOCOLS);

const fn ids_of<Make: Copy, const COUNT: usize>(
    protocols: &[(&'static str, Make); COUNT],
) -> [&'static str; COUNT] {
    let mut ids = [""; COUNT];
    let mut number = 0;
    while number < COUNT {
        ids[number] = protocols[number].0;
        number += 1;
    }
    ids
}

/// A validation protocol by its id.
type RegisteredValidation = (&'static str, fn(ProtocolOptions, Pipeline) -> Box<dyn Protocol>);

/// Every way to validate transactions that were executed before they were ordered.
const VALIDATIONS: [RegisteredValidation; 4] = [
    ("occ", |options, pipeline| Box::new(Validation::occ("occ", options, pipeline))),
    ("fabric++", |options, pipeline| Box::new(Validation::occ("fabric++", options, pipeline))),
    ("fabric-sharp", |options, _| Box::new(Validation::sharp(options))),
    ("xox", |options, pipeline| Box::new(Validation::xox(options, pipeline))),
];

/// The ids of all validation protocols of execute–order–validate.
pub const VALIDATION_IDS: [&str; VALIDATIONS.len()] = ids_of(&VALIDATIONS);

/// The ids of those that [`Pipeline::Graph`] schedules on SmartFabric's graph. The others judge in order under either pipeline:
/// what `fabric-sharp` decides depends on everything that it has decided before.
pub const GRAPH_IDS: [&str; 3] = ["occ", "fabric++", "xox"];

/// Protocols that a program brings itself.
static REGISTERED: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// Makes a protocol known to everything in this process that takes an id: charters, experiments, measurements. For
/// research; what a ledger runs under stands in [`IDS`], so that every node has it.
///
/// # Panics
/// Where the id is taken: a mistake of the caller.
pub fn register(id: &'static str, make: fn(ProtocolOptions) -> Box<dyn Protocol>) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let taken = IDS.contains(&id) || registered.iter().any(|(known, _)| *known == id);
    assert!(!taken, "there is a protocol with the id \"{id}\" already");
    registered.push((id, make));
}

/// The ids that [`protocol()`] knows: [`IDS`], and those that have been registered.
pub fn ids() -> Vec<&'static str> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    IDS.into_iter().chain(registered.iter().map(|(id, _)| *id)).collect()
}

/// No protocol has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected the id of a protocol, one of {ids}, found `{0}`; correct the charter's `protocol`",
    ids = ids().join(", ")
)]
pub struct UnknownProtocol(pub String);

/// A protocol that has seen nothing yet, by the id that charters use: one of [`ids`].
///
/// # Errors
/// The id is unknown.
pub fn protocol(id: &str, options: ProtocolOptions) -> Result<Box<dyn Protocol>, UnknownProtocol> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let found = PROTOCOLS.iter().chain(registered.iter()).find(|(known, _)| *known == id);
    let (_, make) = found.ok_or_else(|| UnknownProtocol(id.to_string()))?;
    Ok(make(options))
}

/// No validation protocol has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected the id of a validation protocol, one of {ids}, found `{0}`; correct the charter's `protocol`, or its \
     `execution`",
    ids = VALIDATION_IDS.join(", ")
)]
pub struct UnknownValidation(pub String);

/// A validation protocol that has seen nothing yet, by the id that charters use: one of [`VALIDATION_IDS`]. Its batches
/// hold transactions that come with their effects ([`Simulate::endorsed`]). `pipeline` changes the speed and nothing else.
///
/// # Errors
/// The id is unknown.
pub fn validation(
    id: &str,
    options: ProtocolOptions,
    pipeline: Pipeline,
) -> Result<Box<dyn Protocol>, UnknownValidation> {
    let found = VALIDATIONS.iter().find(|(known, _)| *known == id);
    let (_, make) = found.ok_or_else(|| UnknownValidation(id.to_string()))?;
    Ok(make(options, pipeline))
}
