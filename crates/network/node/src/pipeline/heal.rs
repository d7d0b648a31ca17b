//! Taking back blocks whose outcomes are not those of a quorum, and executing them again: from the newest checkpoint
//! below them, then from older ones, then from a certified checkpoint of another node, at last from the first block. The same
//! where only the state is not that of a quorum; then the blocks stay, which are.
//!
//! The stages verify, execute, record and the writing of checkpoints end. Blocks, checkpoints and row history are
//! taken back from the first differing height on. Then the node recovers from what is left, as at a start, and
//! `verify` fetches the blocks again from ordering. A rung of the ladder has failed if the outcomes differ again
//! before they have agreed once.
//!
//! Where only the state was wrong, no block is fetched. The state is made again from below, and its root is compared
//! when the replay comes past the height. That checkpoint is written anew, read, and agreed upon like any other.

use super::answer::Answerable;
use super::{Shared, join};
use crate::NodeError;
use crate::attesting::{Divergence, Heal, Input};
use crate::joining::{Fetched, Wanted};
use crate::recovery::{Known, Recovered};
use crossbeam_channel::{Sender, bounded};
use crypto::Digest;
use engine::Engine;

/// Where a state comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rung {
    /// An own checkpoint of this height.
    Own(u64),
    /// Another node's certified checkpoint.
    Others,
    /// The first block.
    Start,
}

/// A way to a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// An own checkpoint below this height.
    Own(u64),
    /// Another node's certified checkpoint.
    Others,
    /// The first block.
    Start,
}

/// How far up the ladder of starting points a node has climbed.
pub(super) struct Ladder {
    from: Rung,
    /// The lowest height that was taken back and has not been certified since.
    taken_back: Option<u64>,
}

impl Ladder {
    /// The node has started from this checkpoint of its own; 0: it has executed every block.
    pub(super) fn at(checkpoint: u64) -> Ladder {
        Ladder { from: Ladder::own(checkpoint), taken_back: None }
    }

    fn own(checkpoint: u64) -> Rung {
        if checkpoint == 0 { Rung::Start } else { Rung::Own(checkpoint) }
    }

    /// The next rungs, to be tried in this order; none at the end. `certified`: the height up to which there is agreement.
    fn climb(&mut self, height: u64, certified: u64) -> Vec<Step> {
        let again = self.taken_back.is_some_and(|taken_back| certified < taken_back);
        self.taken_back =
            Some(if again { self.taken_back.map_or(height, |low| low.min(height)) } else { height });
        match self.from {
            _ if !again => vec![Step::Own(u64::MAX), Step::Others, Step::Start],
            Rung::Own(checkpoint) => vec![Step::Own(checkpoint), Step::Others, Step::Start],
            Rung::Others => vec![Step::Start],
            Rung::Start => Vec::new(),
        }
    }
}

/// Makes again what is not that of a quorum. The pipeline goes on behind it.
pub(super) fn heal(
    shared: &Shared,
    ladder: &mut Ladder,
    wanted: &Heal,
    answers: &Sender<Answerable>,
) -> Result<Engine, NodeError> {
    match wanted {
        Heal::Blocks(height) => take_back(shared, ladder, *height, answers),
        Heal::State { height, expected, agreed } => {
            let root = expected.as_ref().map(|expected| expected.state_root);
            make_state_again(shared, ladder, (*height, root), *agreed, answers)
        }
    }
}

/// Takes back the blocks from `height` on. The pipeline goes on with the state behind the block before, or behind the
/// checkpoint of another node: it fetches the blocks again from ordering and executes them.
fn take_back(
    shared: &Shared,
    ladder: &mut Ladder,
    height: u64,
    answers: &Sender<Answerable>,
) -> Result<Engine, NodeError> {
    let certified = shared.published.certified();
    let steps = climb(shared, ladder, height, certified.height())?;
    if certified.divergence().is_none() {
        // Whatever was found: nobody is served before these blocks are certified again.
        let text = format!("the blocks from {height} on are fetched and executed again");
        shared.published.suspend(text.clone());
        certified.diverge(Some(Divergence { height, text: certified.reported().unwrap_or(text) }));
    }
    let last = height.saturating_sub(1);
    shared.ledger.truncate_after(last)?;
    shared.checkpoints.remove_after(last)?;
    if let Some(rows) = &shared.rows {
        rows.take_back(last)?;
    }
    let _ = answers.send(Answerable::TakenBack(height));
    tell(shared, Input::TakenBack(height));
    try_steps(shared, ladder, &steps, (height, None))
}

/// Executes recorded blocks again, from a checkpoint below `height` on, and writes the checkpoint of that height again. Where
/// the root of the state there is known, only what leads to it counts; otherwise an older checkpoint is tried each time.
fn make_state_again(
    shared: &Shared,
    ladder: &mut Ladder,
    (height, root): (u64, Option<Digest>),
    agreed: u64,
    answers: &Sender<Answerable>,
) -> Result<Engine, NodeError> {
    let steps = match root {
        Some(_) => vec![Step::Own(height), Step::Others, Step::Start],
        None => climb(shared, ladder, height, agreed)?,
    };
    // The wrong state may have come to wrong outcomes already, which are recorded and which no quorum has: those blocks are
    // fetched again.
    let certified = shared.published.certified().height();
    if shared.ledger.tip().is_some_and(|(tip, _)| tip > certified) {
        shared.ledger.truncate_after(certified)?;
        if let Some(rows) = &shared.rows {
            rows.take_back(certified)?;
        }
        let _ = answers.send(Answerable::TakenBack(certified + 1));
        tell(shared, Input::TakenBack(certified + 1));
    }
    shared.checkpoints.remove_after(height.saturating_sub(1))?;
    tell(shared, Input::StateReplaced(height));
    try_steps(shared, ladder, &steps, (height, Some(root)))
}

/// Nobody else listens, where outcomes are not attested.
fn tell(shared: &Shared, input: Input) {
    if let Some(attest) = &shared.attest {
        // It ends after the pipeline only.
        let _ = attest.send(input);
    }
}

fn climb(shared: &Shared, ladder: &mut Ladder, height: u64, agreed: u64) -> Result<Vec<Step>, NodeError> {
    let steps = ladder.climb(height, agreed);
    if steps.is_empty() { Err(not_healed(shared, height)) } else { Ok(steps) }
}

fn not_healed(shared: &Shared, height: u64) -> NodeError {
    let divergence = shared.published.certified().divergence();
    NodeError::NotHealed { height, found: divergence.map_or_else(String::new, |divergence| divergence.text) }
}

/// The first step that leads to a state. `state`: its height and root are to be this, if they are to be made again.
fn try_steps(
    shared: &Shared,
    ladder: &mut Ladder,
    steps: &[Step],
    (height, state): (u64, Option<Option<Digest>>),
) -> Result<Engine, NodeError> {
    let mut refused = Vec::new();
    for step in steps {
        let state = state.map(|root| (height, root));
        let Some(recovered) = take(shared, *step, (height, state), &mut refused)? else { continue };
        let Recovered { engine, checkpoint, replayed, .. } = recovered;
        tracing::warn!(
            height,
            checkpoint,
            replayed,
            ?step,
            ?refused,
            "the state is made again from the checkpoint and the blocks behind it"
        );
        ladder.from = if *step == Step::Others { Rung::Others } else { Ladder::own(checkpoint) };
        return Ok(engine);
    }
    tracing::error!(height, ?refused, "nothing leads to a state that a quorum agrees with");
    Err(not_healed(shared, height))
}

/// The state that a step leads to, if it leads anywhere.
fn take(
    shared: &Shared,
    step: Step,
    (height, state): (u64, Option<(u64, Option<Digest>)>),
    refused: &mut Vec<String>,
) -> Result<Option<Recovered>, NodeError> {
    let recovery = shared.recovery();
    let recovered = match step {
        Step::Own(_) if shared.faults.as_ref().is_some_and(|faults| faults.checkpoints_lost()) => {
            refused.push("own checkpoints are lost".to_string());
            None
        }
        Step::Own(below) => {
            let below = if state.is_some() { below.min(height) } else { below };
            shared.pool.install(|| recovery.begin_at_checkpoint(&Known { below, state }, refused))
        }
        Step::Others => {
            let Some(fetched) = fetch(shared) else {
                refused.push("no other node had a certified checkpoint".to_string());
                return Ok(None);
            };
            let tip = shared.ledger.tip().map_or(0, |(height, _)| height);
            return join::take_over(shared, fetched, tip).map(Some);
        }
        // The blocks in front of the first are not here.
        Step::Start if shared.ledger.first_height() > 1 => None,
        Step::Start => {
            let started = shared.pool.install(|| recovery.begin_at_start(&Known { below: height, state }));
            match started {
                Err(error @ NodeError::State { .. }) => {
                    refused.push(error.to_string());
                    None
                }
                started => Some(started?),
            }
        }
    };
    if let Some(recovered) = &recovered {
        join::follow(shared, &recovered.engine)?;
    }
    Ok(recovered)
}

/// A certified checkpoint of another node. Everything stands still meanwhile: nothing that this node could do is right.
fn fetch(shared: &Shared) -> Option<Fetched> {
    let (answer, fetched) = bounded(1);
    shared.wanted.as_ref()?.send(Wanted(answer)).ok()?;
    // It gives up when nothing comes any more.
    fetched.recv().ok().flatten().map(|fetched| *fetched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_is_tried_once_and_a_height_that_agreed_begins_anew() {
        let mut ladder = Ladder::at(40);
        let from = |below| vec![Step::Own(below), Step::Others, Step::Start];
        assert_eq!(ladder.climb(57, 50), from(u64::MAX), "the newest checkpoint first");
        assert_eq!(ladder.climb(57, 56), from(40), "it did not help");
        ladder.from = Ladder::own(20);
        assert_eq!(ladder.climb(55, 54), from(20));
        ladder.from = Rung::Others;
        assert_eq!(
            ladder.climb(57, 54),
            [Step::Start],
            "a quorum's state, and still others' outcomes differ"
        );
        ladder.from = Rung::Start;
        assert!(ladder.climb(57, 54).is_empty(), "every block was executed");
        assert_eq!(ladder.climb(90, 80), from(u64::MAX), "what was taken back agrees");
    }
}
