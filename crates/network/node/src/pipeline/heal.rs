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
use super::execute_block::ExecuteBlock;
use super::join::Takeover;
use crate::NodeError;
use crate::attesting::{Divergence, Heal, Input};
use crate::joining::{Fetched, Wanted};
use crate::metrics::NodeMetrics;
use crate::published::Published;
use crate::recovery::{Known, Recovered, Recovery};
use crossbeam_channel::{Sender, bounded};
use crypto::Digest;
use state::StoreError;
use std::ops::ControlFlow;
use std::sync::Arc;

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

/// What healing needs.
pub(crate) struct Restore {
    /// Goes on from another node's checkpoint, and shows the state that was made.
    pub(crate) takeover: Takeover,
    /// Where another node's certified checkpoint is asked for; `None` where there is no other node.
    pub(crate) wanted: Option<Sender<Wanted>>,
    pub(crate) metrics: Arc<NodeMetrics>,
}

/// What of the state is known that is to be made again.
#[derive(Clone, Copy)]
struct HealTarget {
    /// Only checkpoints below this height are tried, or at it where the state of this height is made again.
    height: u64,
    /// The root at that height, if it is known, where the state is to be made again; `None`: blocks are.
    state: Option<Option<Digest>>,
}

impl Restore {
    /// Makes again what is not that of a quorum. The pipeline goes on behind it.
    pub(super) fn heal(
        &self,
        ladder: &mut Ladder,
        wanted: &Heal,
        answers: &Sender<Answerable>,
    ) -> Result<Box<dyn ExecuteBlock>, NodeError> {
        match wanted {
            Heal::Blocks(height) => self.take_back(ladder, *height, answers),
            Heal::State { height, expected, agreed } => {
                let root = expected.as_ref().map(|expected| expected.state_root);
                self.make_state_again(ladder, (*height, root), *agreed, answers)
            }
        }
    }

    /// Takes back the blocks from `height` on. The pipeline goes on with the state behind the block before, or behind the
    /// checkpoint of another node: it fetches the blocks again from ordering and executes them.
    fn take_back(
        &self,
        ladder: &mut Ladder,
        height: u64,
        answers: &Sender<Answerable>,
    ) -> Result<Box<dyn ExecuteBlock>, NodeError> {
        let published = self.published();
        let certified = published.certified();
        let steps = self.climb(ladder, height, certified.height())?;
        if certified.divergence().is_none() {
            // Whatever was found: nobody is served before these blocks are certified again.
            let text = format!("the blocks from {height} on are fetched and executed again");
            published.suspend(text.clone());
            certified.diverge(Some(Divergence { height, text: certified.reported().unwrap_or(text) }));
        }
        let Recovery { ledger, checkpoints, rows, own_database, own_execution, .. } = &self.takeover.recovery;
        if let Some(execution) = own_execution {
            execution.distrust();
        }
        let last = height.saturating_sub(1);
        ledger.truncate_after(last)?;
        checkpoints.remove_after(last)?;
        self.takeover.recovery.stores.remove_checkpoints_behind(last)?;
        self.takeover.recovery.stores.recorded(last);
        if let Some(rows) = rows {
            rows.take_back(last)?;
        }
        if let Some(own) = own_database {
            own.take_back(last)?;
        }
        let _ = answers.send(Answerable::TakenBack(height));
        self.tell(Input::TakenBack(height));
        self.try_steps(ladder, &steps, HealTarget { height, state: None })
    }

    /// Executes recorded blocks again, from a checkpoint below `height` on, and writes the checkpoint of that height again.
    /// Where the root of the state there is known, only what leads to it counts; otherwise an older checkpoint is tried each
    /// time.
    fn make_state_again(
        &self,
        ladder: &mut Ladder,
        (height, root): (u64, Option<Digest>),
        agreed: u64,
        answers: &Sender<Answerable>,
    ) -> Result<Box<dyn ExecuteBlock>, NodeError> {
        let steps = match root {
            Some(_) => vec![Step::Own(height), Step::Others, Step::Start],
            None => self.climb(ladder, height, agreed)?,
        };
        let Recovery { ledger, checkpoints, rows, own_database, own_execution, .. } = &self.takeover.recovery;
        // The wrong state may have come to wrong outcomes already, which are recorded and which no quorum has: those blocks
        // are fetched again.
        let certified = self.published().certified().height();
        if self.takeover.recovery.tip() > certified {
            if let Some(execution) = own_execution {
                execution.distrust();
            }
            ledger.truncate_after(certified)?;
            if let Some(rows) = rows {
                rows.take_back(certified)?;
            }
            if let Some(own) = own_database {
                own.take_back(certified)?;
            }
            let _ = answers.send(Answerable::TakenBack(certified + 1));
            self.tell(Input::TakenBack(certified + 1));
        }
        checkpoints.remove_after(height.saturating_sub(1))?;
        self.takeover.recovery.stores.remove_checkpoints_behind(height.saturating_sub(1))?;
        self.takeover.recovery.stores.recorded(self.takeover.recovery.tip());
        self.tell(Input::StateReplaced(height));
        self.try_steps(ladder, &steps, HealTarget { height, state: Some(root) })
    }

    /// What is to be made again where a reader has met files of the state that are damaged, whether or not [`crate::scrub`] has found
    /// them. Nobody is served before the next block is certified.
    pub(super) fn damaged_store(&self) -> Option<Heal> {
        let (published, stores) = (self.published(), &self.takeover.recovery.stores);
        let failure = published.store_health().failure().filter(StoreError::can_be_made_again)?;
        let (certified, height) = (published.certified(), self.takeover.recovery.tip());
        // Who has lost another node's rows has lost no state of its own: the newest one is good.
        let agreed = if failure.is_damage() { certified.height() } else { u64::MAX };
        if published.store_health().tell() {
            // It is better to name the file.
            let check = || stores.check_files(&mut |_| ControlFlow::Continue(())).err();
            let found =
                Some(&failure).filter(|failure| failure.is_damage()).and_then(|_| check()).unwrap_or(failure);
            let text = format!("the state behind block {height}: {found}");
            tracing::error!(height, text, "the state is made again");
            self.metrics.scrub_found("state");
            published.suspend(text.clone());
            certified.diverge(Some(Divergence { height: height + 1, text }));
        }
        // Each time a lower state is tried until a block was certified behind this height.
        Some(Heal::State { height: height + 1, expected: None, agreed })
    }

    fn published(&self) -> &Published {
        &self.takeover.audience.published
    }

    /// Nobody else listens, where outcomes are not attested.
    fn tell(&self, input: Input) {
        if let Some(attest) = &self.takeover.attest {
            // It ends after the pipeline only.
            let _ = attest.send(input);
        }
    }

    fn climb(&self, ladder: &mut Ladder, height: u64, agreed: u64) -> Result<Vec<Step>, NodeError> {
        let steps = ladder.climb(height, agreed);
        if steps.is_empty() { Err(self.not_healed(height)) } else { Ok(steps) }
    }

    fn not_healed(&self, height: u64) -> NodeError {
        let divergence = self.published().certified().divergence();
        NodeError::NotHealed {
            height,
            found: divergence.map_or_else(String::new, |divergence| divergence.text),
        }
    }

    /// The first step that leads to a state.
    fn try_steps(
        &self,
        ladder: &mut Ladder,
        steps: &[Step],
        target: HealTarget,
    ) -> Result<Box<dyn ExecuteBlock>, NodeError> {
        let (height, mut refused) = (target.height, Vec::new());
        for step in steps {
            let Some(recovered) = self.take(*step, target, &mut refused)? else { continue };
            let Recovered { executor, checkpoint, replayed, .. } = recovered;
            tracing::warn!(
                height,
                checkpoint,
                replayed,
                ?step,
                ?refused,
                "the state is made again from the checkpoint and the blocks behind it"
            );
            ladder.from = if *step == Step::Others { Rung::Others } else { Ladder::own(checkpoint) };
            return Ok(executor);
        }
        tracing::error!(height, ?refused, "nothing leads to a state that a quorum agrees with");
        Err(self.not_healed(height))
    }

    /// The state that a step leads to, if it leads anywhere.
    fn take(
        &self,
        step: Step,
        target: HealTarget,
        refused: &mut Vec<String>,
    ) -> Result<Option<Recovered>, NodeError> {
        let HealTarget { height, state } = target;
        let recovery = &self.takeover.recovery;
        let state = state.map(|root| (height, root));
        let recovered = match step {
            Step::Own(_) if recovery.faults.as_ref().is_some_and(|faults| faults.checkpoints_lost()) => {
                refused.push("own checkpoints are lost".to_string());
                None
            }
            Step::Own(below) => {
                let below = if state.is_some() { below.min(height) } else { below };
                recovery.begin_at_checkpoint(&Known { below, state }, refused)?
            }
            Step::Others => {
                let Some(fetched) = self.fetch() else {
                    refused.push("no other node had a certified checkpoint".to_string());
                    return Ok(None);
                };
                return self.takeover.take_over(fetched, recovery.tip()).map(Some);
            }
            // The blocks in front of the first are not here.
            Step::Start if recovery.ledger.payloads_from() > 1 => None,
            Step::Start => match recovery.begin_at_start(&Known { below: height, state }) {
                Err(error @ NodeError::State { .. }) => {
                    refused.push(error.to_string());
                    None
                }
                started => Some(started?),
            },
        };
        if let Some(recovered) = &recovered {
            recovery.settle()?;
            self.takeover.show(&*recovered.executor)?;
        }
        Ok(recovered)
    }

    /// A certified checkpoint of another node. Everything stands still meanwhile: nothing that this node could do is right.
    fn fetch(&self) -> Option<Fetched> {
        let (answer, fetched) = bounded(1);
        self.wanted.as_ref()?.send(Wanted(answer)).ok()?;
        // It gives up when nothing comes any more.
        fetched.recv().ok().flatten().map(|fetched| *fetched)
    }
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
