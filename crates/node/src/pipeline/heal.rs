//! Taking back blocks whose outcomes are not those of a quorum, and executing them again: from the newest checkpoint
//! below them, then from an older one, at last from the first block.

use super::Shared;
use super::answer::Answerable;
use crate::NodeError;
use crate::attesting::Input;
use crate::recovery::{Recovered, recover};
use crossbeam_channel::Sender;
use engine::Engine;

/// How far up the ladder of starting points a node has climbed.
pub(super) struct Ladder {
    /// Height of the checkpoint that the state comes from; 0 where every block was executed.
    checkpoint: u64,
    /// The lowest height that was taken back and has not been certified since.
    taken_back: Option<u64>,
}

impl Ladder {
    /// The node has started from this checkpoint.
    pub(super) fn at(checkpoint: u64) -> Ladder {
        Ladder { checkpoint, taken_back: None }
    }

    /// The next rung, as the height below which checkpoints are tried; `None` at the end. `certified`: the height up to
    /// which outcomes agree.
    fn climb(&mut self, height: u64, certified: u64) -> Option<u64> {
        let again = self.taken_back.is_some_and(|taken_back| certified < taken_back);
        if again && self.checkpoint == 0 {
            return None;
        }
        self.taken_back =
            Some(if again { self.taken_back.map_or(height, |low| low.min(height)) } else { height });
        Some(if again { self.checkpoint } else { u64::MAX })
    }
}

/// Takes back the blocks from `height` on. The pipeline goes on with the state behind the block before: it fetches the
/// blocks again from ordering and executes them.
pub(super) fn heal(
    shared: &Shared,
    ladder: &mut Ladder,
    height: u64,
    answers: &Sender<Answerable>,
) -> Result<Engine, NodeError> {
    let certified = shared.published.certified();
    let found = certified.divergence().map_or_else(String::new, |divergence| divergence.text);
    let Some(below) = ladder.climb(height, certified.height()) else {
        return Err(NodeError::NotHealed { height, found });
    };
    let last = height.saturating_sub(1);
    shared.ledger.truncate_after(last)?;
    shared.checkpoints.remove_after(last)?;
    if let Some(rows) = &shared.rows {
        rows.take_back(last)?;
    }
    let _ = answers.send(Answerable::TakenBack(height));
    let recovered = shared.pool.install(|| {
        let (charter, ledger, rows) = (&shared.charter, &shared.ledger, shared.rows.as_deref());
        recover(charter, shared.pipeline, &shared.verifier, ledger, &shared.checkpoints, rows, below)
    })?;
    let Recovered { engine, checkpoint, replayed, refused } = recovered;
    tracing::warn!(
        height,
        checkpoint,
        replayed,
        ?refused,
        "blocks are taken back; the state is made again from the checkpoint and the blocks behind it"
    );
    ladder.checkpoint = checkpoint;
    let (state, library) = (engine.state().clone(), engine.library().clone());
    shared.published.replace(state, library, engine.height(), engine.state_digest());
    if let Some(states) = &shared.states {
        let header = shared.ledger.header(engine.height())?;
        states.replace(engine.endorsement_basis(header.map_or(0, |header| header.timestamp_ms)));
    }
    if let Some(attest) = &shared.attest {
        // It ends after the pipeline only.
        let _ = attest.send(Input::TakenBack(height));
    }
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_is_tried_once_and_a_height_that_agreed_begins_anew() {
        let mut ladder = Ladder::at(40);
        assert_eq!(ladder.climb(57, 50), Some(u64::MAX), "the newest checkpoint first");
        ladder.checkpoint = 40;
        assert_eq!(ladder.climb(57, 56), Some(40), "an older one than that did not help");
        ladder.checkpoint = 20;
        assert_eq!(ladder.climb(55, 54), Some(20));
        ladder.checkpoint = 0;
        assert_eq!(ladder.climb(57, 54), None, "every block was executed");
        assert_eq!(ladder.climb(90, 80), Some(u64::MAX), "what was taken back agrees");
    }
}
