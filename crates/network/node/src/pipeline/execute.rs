//! Reads the queue of verified blocks; fills the queue of `record`. Owns the engine.

use super::verify::Verified;
use super::{Executed, QUEUE_BLOCKS, Shared};
use crate::NodeError;
use crate::attesting::{Input, OwnOutcome};
use crate::checkpoints::{CheckpointRequest, Checkpoints};
use crate::metrics::{CHECKPOINT_SNAPSHOT, EXECUTE};
use crossbeam_channel::{Receiver, Sender};
use engine::Engine;
use ledger::{BlockOutcome, BlockRecord};
use std::collections::VecDeque;
use std::time::Instant;

/// Executes blocks, and looks ahead at those that wait.
pub(super) struct Execute {
    engine: Engine,
    checkpoints: Checkpoints,
    waiting: VecDeque<Verified>,
    /// Of those that wait, how many the engine has seen.
    foreseen: usize,
}

impl Execute {
    pub(super) fn new(engine: Engine, checkpoints: Checkpoints) -> Execute {
        Execute { engine, checkpoints, waiting: VecDeque::new(), foreseen: 0 }
    }

    /// A block waits to be executed.
    pub(super) fn push(&mut self, verified: Verified) {
        self.waiting.push_back(verified);
    }

    /// Blocks that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Executes the first block that waits, and hands to others what it came to.
    pub(super) fn step(&mut self, shared: &Shared) -> Result<Option<Executed>, NodeError> {
        let Execute { engine, checkpoints, waiting, foreseen } = self;
        let start = Instant::now();
        shared.pool.install(|| {
            while waiting.get(*foreseen).is_some_and(|next| engine.foresee(&next.verified)) {
                *foreseen += 1;
            }
        });
        let Some(Verified { block, certificate, verified: judged }) = waiting.pop_front() else {
            return Ok(None);
        };
        *foreseen = foreseen.saturating_sub(1);
        if let Some(faults) = &shared.faults {
            faults.strike(&shared.charter, engine)?;
        }
        let result = shared.pool.install(|| engine.execute(&judged))?;
        // Before the outcome that names them.
        shared.follow_charters(engine);
        shared.keys.executed(&block.header);
        if let Some(attest) = &shared.attest {
            // First of all: the others wait for it, and it takes its time beside everything below.
            let (outcome, digest) = (result.outcome.clone(), result.digest.clone());
            let attested = block.attested.clone();
            let _ = attest.send(Input::Executed(Box::new(OwnOutcome { outcome, digest, attested })));
        }
        shared.verifier.forget(&judged);
        shared.published.applied(engine.state().snapshot(), engine.library(), engine.height());
        if let Some(proposer) = &shared.proposer {
            proposer.validated(&judged, &result);
        }
        if let Some(states) = &shared.states {
            states.push(engine.endorsement_basis(block.header.timestamp_ms));
        }
        shared.metrics.executed(&result);
        shared.metrics.worked(EXECUTE, start.elapsed());
        if engine.is_at_checkpoint() {
            let start = Instant::now();
            checkpoints.request(CheckpointRequest {
                header: engine.checkpoint_header(),
                snapshot: engine.state().snapshot(),
                live: engine.live().content(),
            });
            shared.metrics.worked(CHECKPOINT_SNAPSHOT, start.elapsed());
        }
        let outcome =
            BlockOutcome { receipts: result.receipts, digest: result.digest, header: result.outcome };
        let record = BlockRecord { block, certificate, outcome };
        Ok(Some(Executed { record, row_history: engine.take_row_history() }))
    }
}

/// Works until the stage before or behind it has ended.
pub(super) fn run(
    shared: &Shared,
    mut execute: Execute,
    verified: &Receiver<Verified>,
    executed: &Sender<Executed>,
) -> Result<(), NodeError> {
    loop {
        if execute.waiting() == 0 {
            let Ok(next) = verified.recv() else { return Ok(()) };
            execute.push(next);
        }
        let room = QUEUE_BLOCKS.saturating_sub(execute.waiting());
        verified.try_iter().take(room).for_each(|next| execute.push(next));
        shared.metrics.waiting(EXECUTE, execute.waiting() - 1 + verified.len());
        let Some(done) = execute.step(shared)? else { continue };
        if executed.send(done).is_err() {
            return Ok(());
        }
    }
}
