//! What executes blocks, as the pipeline sees it: Entente's engine, or whatever else comes to the same outcomes.
//!
//! ```text
//!               ┌───────────── ExecuteBlock ─────────────┐
//!   block ────▶ │ foresee*  execute ──▶ ExecutedBlock    │ ──▶ attest, record
//!               │              │                         │
//!               │              ▼                         │
//!               │        ExecutedState (a snapshot, …)   │ ──▶ readers, endorsers, checkpoints
//!               └────────────────────────────────────────┘
//! ```
//!
//! Two traits, because two kinds of callers ask. [`ExecuteBlock`] is what the stage `execute` drives: it alone changes
//! anything. [`ExecutedState`] is what everybody else takes of the state behind the last block, and changes nothing.
//!
//! - **Foreseeing belongs to executing.** A block that was foreseen must be executed next by the same executor, and only the
//!   executor knows whether looking ahead pays. Which blocks wait is the stage's to know. An executor that takes one block
//!   after the other leaves the default.
//! - **Snapshots and checkpoints stand beside it.** Who reads a state holds on to it while further blocks are executed, and
//!   a state that was made anew (file `heal`) is shown to the same readers without any block.
//! - **Where an executor comes from is not the pipeline's matter**: the executor that stands at the ledger's tip is
//!   [`Recovery`](crate::recovery::Recovery)'s to make.

use crate::NodeError;
use crate::checkpoints::CheckpointRequest;
use crypto::Digest;
use engine::{EndorsementBasis, Engine, ExecutedBlock, VerifiedBlock};
use sql::Library;
use state::Snapshot;
use std::sync::Arc;

/// Executes blocks in height order, each once, with the same outcomes on every node.
pub(crate) trait ExecuteBlock: ExecutedState + Send {
    /// Executes the next block: what its transactions came to, what it changed, and the digests of both. Called on a thread of
    /// the pool that the executor may work on.
    ///
    /// # Errors
    /// What keeps the node from going on. It is never a transaction's outcome; the block counts as not executed.
    fn execute(&mut self, block: &VerifiedBlock) -> Result<ExecutedBlock, NodeError>;

    /// A block that waits behind those that were foreseen: begins with what does not depend on how the blocks before it end.
    /// `false`: not yet, or never. After `true` the block must be executed when its turn comes.
    fn foresee(&mut self, _block: &VerifiedBlock) -> bool {
        false
    }
}

/// The state behind the last block that was executed.
pub(crate) trait ExecutedState {
    /// Height of that block.
    fn height(&self) -> u64;

    /// The digest that outcomes name it by.
    fn state_digest(&self) -> Digest;

    /// The compiled catalog.
    fn library(&self) -> &Arc<Library>;

    /// What readers see: it stays as it is while further blocks are executed.
    fn snapshot(&self) -> Arc<dyn Snapshot>;

    /// What an endorser stands on. `timestamp_ms`: time of the last block.
    fn endorsement_basis(&self, timestamp_ms: u64) -> EndorsementBasis;

    /// What is to be written down, where every node makes a checkpoint of this state.
    fn checkpoint(&self) -> Option<CheckpointRequest>;
}

impl ExecuteBlock for Engine {
    fn execute(&mut self, block: &VerifiedBlock) -> Result<ExecutedBlock, NodeError> {
        Ok(Engine::execute(self, block)?)
    }

    fn foresee(&mut self, block: &VerifiedBlock) -> bool {
        Engine::foresee(self, block)
    }
}

impl ExecutedState for Engine {
    fn height(&self) -> u64 {
        Engine::height(self)
    }

    fn state_digest(&self) -> Digest {
        Engine::state_digest(self)
    }

    fn library(&self) -> &Arc<Library> {
        Engine::library(self)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.state().snapshot()
    }

    fn endorsement_basis(&self, timestamp_ms: u64) -> EndorsementBasis {
        Engine::endorsement_basis(self, timestamp_ms)
    }

    fn checkpoint(&self) -> Option<CheckpointRequest> {
        self.is_at_checkpoint().then(|| CheckpointRequest {
            header: self.checkpoint_header(),
            store: self.state().clone(),
            snapshot: self.state().snapshot(),
            live: self.live().content(),
        })
    }
}
