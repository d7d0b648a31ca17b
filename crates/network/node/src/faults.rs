use crate::NodeError;
use crate::checkpoints::CheckpointRequest;
use crate::pipeline::{ExecuteBlock, ExecutedState};
use crypto::Digest;
use engine::{EndorsementBasis, Engine, ExecutedBlock, VerifiedBlock, VerifiedTransaction};
use parking_lot::Mutex;
use sql::Library;
use state::{AfterImage, KeyRange, LiveRequests, RowId, Snapshot, Store, Version};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use types::{Charter, Payload, Value, limits};

/// What a node does so that its promises hold, and what a test switches off to see that it finds out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Defence {
    /// Receipts are sent once their block is flushed.
    FlushBeforeAnswer = 1,
    /// Answers wait for a quorum's certificate.
    QuorumBeforeAnswer = 2,
    /// A transaction that was executed is not executed again.
    ExactlyOnce = 4,
    /// A part of a schema with members is what its client has committed to.
    PartCommitments = 8,
    /// The ledger takes transactions whose parts enough members say that they hold.
    HeldByQuorum = 16,
    /// What members vote counts if a quorum of them has signed it.
    VotesOfQuorum = 32,
    /// What is prepared in a schema is locked until it is decided.
    PartLocks = 64,
    /// Parts are handed out to members alone.
    MembersAlone = 128,
    /// A transaction takes effect if what leaves one of its schemas is what comes into the other.
    MovesCompared = 256,
}

/// What a test makes go wrong in a node's memory, behind its back. No configuration leads here.
#[derive(Default)]
pub struct Faults {
    table: Mutex<Option<String>>,
    undefended: AtomicU16,
    checkpoints_lost: AtomicBool,
}

impl Faults {
    /// The node does without `defence` from now on.
    pub fn switch_off(&self, defence: Defence) {
        self.undefended.fetch_or(defence as u16, Ordering::Relaxed);
    }

    pub(crate) fn lacks(&self, defence: Defence) -> bool {
        self.undefended.load(Ordering::Relaxed) & defence as u16 != 0
    }

    /// The same where there may be no test.
    pub(crate) fn lack(faults: Option<&Faults>, defence: Defence) -> bool {
        faults.is_some_and(|faults| faults.lacks(defence))
    }

    /// Before the next block is executed, a bit of the first row of `table` flips: of its last column, a number.
    pub fn flip_in(&self, table: &str) {
        *self.table.lock() = Some(table.to_string());
    }

    /// Whether what was asked for has happened.
    pub fn has_struck(&self) -> bool {
        self.table.lock().is_none()
    }

    /// From now on no checkpoint of this node can be read when it heals.
    pub fn lose_checkpoints(&self) {
        self.checkpoints_lost.store(true, Ordering::SeqCst);
    }

    pub(crate) fn checkpoints_lost(&self) -> bool {
        self.checkpoints_lost.load(Ordering::SeqCst)
    }

    fn flip(&self, state: &dyn Store) -> Result<(), NodeError> {
        let mut asked = self.table.lock();
        let Some(name) = asked.as_ref() else { return Ok(()) };
        let snapshot = state.snapshot();
        let Some(table) = snapshot.catalog().tables.get(name) else { return Ok(()) };
        let version = Version::after_block(state.version().height());
        if state.version() >= version {
            // Straight from a checkpoint: nothing can follow its version before the next block.
            return Ok(());
        }
        let mut flipped = None;
        snapshot.scan(table.id, &KeyRange::ALL, false, &mut |key, row| {
            let mut values = row.to_vec();
            if let Some(Value::BigInt(number)) = values.last_mut() {
                *number ^= 1;
            }
            flipped = Some(AfterImage {
                row: RowId { table: table.id, key: key.clone() },
                value: Some(values.into()),
            });
            ControlFlow::Break(())
        })?;
        let Some(flipped) = flipped else { return Ok(()) };
        drop(snapshot);
        state.apply(version, &[flipped], None)?;
        *asked = None;
        Ok(())
    }
}

/// The engine of a node in whose memory something goes wrong, between two blocks.
pub(crate) struct FaultyEngine {
    engine: Engine,
    faults: Arc<Faults>,
    charter: Arc<Charter>,
}

impl FaultyEngine {
    pub(crate) fn new(engine: Engine, faults: Arc<Faults>, charter: Arc<Charter>) -> FaultyEngine {
        FaultyEngine { engine, faults, charter }
    }

    fn strike(&mut self) -> Result<(), NodeError> {
        let FaultyEngine { engine, faults, charter } = self;
        faults.flip(engine.state().as_ref())?;
        if faults.lacks(Defence::ExactlyOnce) {
            let (header, state) = (engine.checkpoint_header(), engine.state().clone());
            let at = (&header, engine.checkpoint_progress());
            *engine = Engine::at(charter.clone(), at, state, LiveRequests::new())?;
        }
        Ok(())
    }
}

/// A block in which everybody holds the parts of all transactions.
fn held_by_all(block: &VerifiedBlock) -> VerifiedBlock {
    let mut held = block.clone();
    for transaction in held.transactions.iter_mut().flatten() {
        if matches!(*transaction.payload, Payload::Parts { .. }) {
            let mut one = VerifiedTransaction::clone(transaction);
            if let Some(endorsed) = &mut one.endorsed {
                endorsed.endorsers = (0..limits::ORGANISATIONS_MAX as u16).collect();
                endorsed.heights = endorsed.endorsers.iter().map(|_| u64::MAX).collect();
            }
            *transaction = Arc::new(one);
        }
    }
    held
}

impl ExecuteBlock for FaultyEngine {
    fn execute(&mut self, block: &VerifiedBlock) -> Result<ExecutedBlock, NodeError> {
        self.strike()?;
        match self.faults.lacks(Defence::HeldByQuorum) {
            true => ExecuteBlock::execute(&mut self.engine, &held_by_all(block)),
            false => ExecuteBlock::execute(&mut self.engine, block),
        }
    }

    fn foresee(&mut self, block: &VerifiedBlock) -> bool {
        self.engine.foresee(block)
    }
}

impl ExecutedState for FaultyEngine {
    fn height(&self) -> u64 {
        self.engine.height()
    }

    fn state_digest(&self) -> Digest {
        self.engine.state_digest()
    }

    fn library(&self) -> &Arc<Library> {
        self.engine.library()
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.engine.snapshot()
    }

    fn endorsement_basis(&self, timestamp_ms: u64) -> EndorsementBasis {
        self.engine.endorsement_basis(timestamp_ms)
    }

    fn checkpoint(&self) -> Option<CheckpointRequest> {
        self.engine.checkpoint()
    }
}
