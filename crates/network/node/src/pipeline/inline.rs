//! The same stages on one thread, one step after the other: for the simulation of a whole network. Checkpoints are written,
//! read again and attested at once. A node that is behind may join from another one's checkpoint; one that heals does not
//! ask for them. Files are not scrubbed.

use super::answer::{Answerable, Answering};
use super::execute::Executing;
use super::execute_block::ExecuteBlock;
use super::heal::Ladder;
use super::verify::Verifying;
use super::{Attest, Exchanging, Executed, QUEUE_BLOCKS, Stages, is_ahead};
use crate::NodeError;
use crate::attesting::Clock;
use crate::checkpoints::{CheckpointWriter, Checkpoints};
use crate::joining::{Exchange, Fetched, Joining};
use crate::recovery::Recovered;
use crossbeam_channel::{Receiver, Sender, bounded, never};
use ordering::{Delivery, ExchangeMessages};
use std::ops::Range;
use std::sync::Arc;

/// The pipeline of a simulated node. What waits between two stages is lost when it is dropped.
pub(crate) struct Inline {
    stages: Stages,
    verifying: Verifying,
    executing: Executing,
    checkpoints: CheckpointWriter,
    executed: Vec<Executed>,
    /// What is recorded, and nobody was told of.
    recorded: Vec<Answerable>,
    /// Why a block could not be recorded, which the node stops for in its turn.
    not_recorded: Option<NodeError>,
    /// Taken from at once.
    answers: (Sender<Answerable>, Receiver<Answerable>),
    answering: Answering,
    attest: Option<Attest>,
    ladder: Ladder,
    /// Checkpoints of other members, and what was fetched of them.
    joining: Option<(Joining, Receiver<Box<Fetched>>)>,
    /// What other members' nodes say.
    messages: Arc<dyn ExchangeMessages>,
    clock: Clock,
}

impl Inline {
    /// # Errors
    /// [`NodeError::Thread`].
    pub(crate) fn new(
        stages: Stages,
        recovered: Recovered,
        attest: Option<Attest>,
        Exchanging { exchange, joined }: Exchanging,
        messages: Arc<dyn ExchangeMessages>,
        clock: Clock,
    ) -> Result<Inline, NodeError> {
        let (verifying, executing, checkpoints) = begin(&stages, recovered.executor)?;
        let answering = stages.answer.at_start();
        let mut inline = Inline {
            stages,
            verifying,
            executing,
            checkpoints,
            executed: Vec::new(),
            recorded: Vec::new(),
            not_recorded: None,
            answers: bounded(QUEUE_BLOCKS),
            answering,
            attest,
            ladder: Ladder::at(recovered.checkpoint),
            // Healing would wait for what it asks for, and everything else with it.
            joining: exchange
                .map(|exchange| (Joining::new(Exchange { wanted: never(), ..exchange }), joined)),
            messages,
            clock,
        };
        inline.checkpoints.read_known();
        inline.attest(|_| ());
        Ok(inline)
    }

    /// Heights that ordering is to give before what it has delivered.
    pub(crate) fn missing(&self, delivered: u64) -> Range<u64> {
        self.verifying.missing(delivered)
    }

    /// Verifies and executes a block.
    pub(crate) fn deliver(&mut self, delivery: Delivery) -> Result<(), NodeError> {
        match self.verifying.step(delivery) {
            // It joins; what comes until then ordering has.
            Err(NodeError::Gap { .. }) if self.stages.verify.tell_gap() => {}
            verified => verified?.into_iter().for_each(|verified| self.executing.push(verified)),
        }
        while let Some(executed) = self.executing.step()? {
            self.executed.push(executed);
            self.attest(|_| ());
            if self.checkpoints.is_asked() {
                // The store keeps what the ledger has.
                match self.record() {
                    Ok(()) => self.checkpoints.write_asked(),
                    // The block is executed all the same, and was attested.
                    Err(error) => self.not_recorded = Some(error),
                }
                self.attest(|_| ());
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<(), NodeError> {
        if !self.executed.is_empty() {
            let recorded = self.stages.record.step(std::mem::take(&mut self.executed))?;
            self.recorded.push(recorded);
        }
        Ok(())
    }

    /// Records what is executed, hears what others say, hands out answers, heals or joins.
    pub(crate) fn turn(&mut self) -> Result<(), NodeError> {
        if let Some(error) = self.not_recorded.take() {
            return Err(error);
        }
        self.record()?;
        for recorded in std::mem::take(&mut self.recorded) {
            self.answering.take(recorded);
        }
        self.hear();
        let Some(Attest { certified, heal: asked, .. }) = &self.attest else { return Ok(()) };
        if certified.try_recv().is_ok() {
            self.answering.settle();
        }
        if let Ok(wanted) = asked.try_recv() {
            // Everything that was executed is recorded above.
            let executor = self.stages.restore.heal(&mut self.ladder, &wanted, &self.answers.0)?;
            // What was asked for meanwhile is what was done.
            asked.try_iter().for_each(drop);
            self.go_on(executor)?;
        }
        self.join()
    }

    /// Fetches and hands out checkpoints, and goes on from one that is here and ahead.
    fn join(&mut self) -> Result<(), NodeError> {
        let Some((joining, joined)) = &mut self.joining else { return Ok(()) };
        let now = (self.clock)();
        for (member, bytes) in self.messages.told().try_iter() {
            joining.hear(member, &bytes, now);
        }
        joining.tick(now);
        let fetched = joined.try_iter().find(|fetched| is_ahead(&self.stages.published, fetched));
        let Some(fetched) = fetched else { return Ok(()) };
        self.ladder = Ladder::at(fetched.anchor.height());
        let recovered = self.stages.restore.takeover.join(*fetched, &self.answers.0)?;
        self.go_on(recovered.executor)
    }

    /// The stages begin again behind a state that was made anew.
    fn go_on(&mut self, executor: Box<dyn ExecuteBlock>) -> Result<(), NodeError> {
        self.answers.1.try_iter().for_each(|answerable| self.answering.take(answerable));
        self.attest(|_| ());
        (self.verifying, self.executing, self.checkpoints) = begin(&self.stages, executor)?;
        self.checkpoints.read_known();
        self.attest(|_| ());
        Ok(())
    }

    /// What came from other nodes, and the time.
    fn hear(&mut self) {
        let messages = self.messages.messages().clone();
        self.attest(|attest| {
            let mut outputs = Vec::new();
            for (member, bytes) in messages.try_iter() {
                attest.attester.hear(member, &bytes, &mut outputs);
                attest.attester.act(&mut outputs);
            }
            attest.attester.tick(&mut outputs);
            attest.attester.act(&mut outputs);
        });
    }

    /// What the pipeline has told comes first.
    fn attest(&mut self, then: impl FnOnce(&mut Attest)) {
        let Some(attest) = &mut self.attest else { return };
        let mut outputs = Vec::new();
        for input in attest.inputs.try_iter() {
            attest.attester.take(input, &mut outputs);
        }
        attest.attester.act(&mut outputs);
        then(attest);
    }
}

/// The stages that a state made anew begins again, and what writes checkpoints beside them.
fn begin(
    stages: &Stages,
    executor: Box<dyn ExecuteBlock>,
) -> Result<(Verifying, Executing, CheckpointWriter), NodeError> {
    let (checkpoints, writer) = Checkpoints::new(stages.checkpoints.clone())?;
    Ok((stages.verify.from(executor.height() + 1), stages.execute.with(executor, checkpoints), writer))
}
