//! Reads the queue of verified blocks; fills the queue of `record`. Owns the engine.

use super::verify::Verified;
use super::{Executed, QUEUE_BLOCKS, Shared};
use crate::NodeError;
use crate::attesting::{Input, OwnOutcome};
use crate::checkpoints::{CheckpointRequest, Checkpoints};
use crate::metrics::EXECUTE;
use crossbeam_channel::{Receiver, Sender};
use engine::Engine;
use ledger::{BlockOutcome, BlockRecord};
use std::collections::VecDeque;
use std::time::Instant;

pub(super) fn run(
    shared: &Shared,
    mut engine: Engine,
    checkpoints: &Checkpoints,
    verified: &Receiver<Verified>,
    executed: &Sender<Executed>,
) -> Result<(), NodeError> {
    let mut waiting: VecDeque<Verified> = VecDeque::new();
    // Of those that wait, how many the engine has seen.
    let mut foreseen = 0;
    loop {
        if waiting.is_empty() {
            let Ok(next) = verified.recv() else { return Ok(()) };
            waiting.push_back(next);
        }
        waiting.extend(verified.try_iter().take(QUEUE_BLOCKS.saturating_sub(waiting.len())));
        shared.metrics.waiting(EXECUTE, waiting.len() - 1 + verified.len());
        let start = Instant::now();
        shared.pool.install(|| {
            while waiting.get(foreseen).is_some_and(|next| engine.foresee(&next.verified)) {
                foreseen += 1;
            }
        });
        let Some(Verified { block, certificate, verified: judged }) = waiting.pop_front() else { continue };
        foreseen = foreseen.saturating_sub(1);
        if let Some(faults) = &shared.faults {
            faults.strike(engine.state());
        }
        let result = shared.pool.install(|| engine.execute(&judged))?;
        if let Some(attest) = &shared.attest {
            // First of all: the others wait for it, and it takes its time beside everything below.
            let (outcome, digest) = (result.outcome.clone(), result.digest.clone());
            let attested = block.attested.clone();
            let _ = attest.send(Input::Executed(Box::new(OwnOutcome { outcome, digest, attested })));
        }
        shared.verifier.forget(&judged);
        shared.published.applied(engine.library(), engine.height());
        if let Some(proposer) = &shared.proposer {
            proposer.validated(&judged, &result);
        }
        if let Some(states) = &shared.states {
            states.push(engine.endorsement_basis(block.header.timestamp_ms));
        }
        shared.metrics.executed(&result);
        shared.metrics.worked(EXECUTE, start.elapsed());
        if engine.height().is_multiple_of(u64::from(shared.charter.checkpoint_blocks)) {
            checkpoints.request(CheckpointRequest {
                header: engine.checkpoint_header(),
                snapshot: engine.state().snapshot(),
                live: engine.live().content(),
            });
        }
        let outcome =
            BlockOutcome { receipts: result.receipts, digest: result.digest, header: result.outcome };
        let record = BlockRecord { block, certificate, outcome };
        if executed.send(Executed { record, row_history: engine.take_row_history() }).is_err() {
            return Ok(());
        }
    }
}
