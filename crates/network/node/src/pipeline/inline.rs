//! The same stages on one thread, one step after the other: for the simulation of a whole network. Checkpoints are written,
//! read again and attested at once. A node that is behind may join from another one's checkpoint; one that heals does not
//! ask for them. Files are not scrubbed.

use super::answer::{Answerable, Waiting};
use super::execute::Execute;
use super::heal::{Ladder, heal};
use super::verify::Verify;
use super::{Attest, Executed, QUEUE_BLOCKS, Shared, is_ahead, join, record};
use crate::NodeError;
use crate::attesting::Clock;
use crate::checkpoints::{CheckpointWriter, Checkpoints};
use crate::joining::{Exchange, Fetched, Joining};
use crate::recovery::Recovered;
use crossbeam_channel::{Receiver, Sender, bounded, never};
use engine::Engine;
use ordering::Delivery;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;

/// The pipeline of a simulated node. What waits between two stages is lost when it is dropped.
pub(crate) struct Inline {
    shared: Arc<Shared>,
    verify: Verify,
    execute: Execute,
    checkpoints: CheckpointWriter,
    executed: Vec<Executed>,
    /// Taken from at once.
    answers: (Sender<Answerable>, Receiver<Answerable>),
    waiting: Waiting,
    attest: Option<Attest>,
    ladder: Ladder,
    /// Checkpoints of other members, and what was fetched of them.
    joining: Option<(Joining, Receiver<Box<Fetched>>)>,
    clock: Clock,
}

impl Inline {
    /// # Errors
    /// [`NodeError::Thread`].
    pub(crate) fn new(
        shared: Arc<Shared>,
        recovered: Recovered,
        attest: Option<Attest>,
        (exchange, joined): (Option<Exchange>, Receiver<Box<Fetched>>),
        clock: Clock,
    ) -> Result<Inline, NodeError> {
        let (verify, execute, checkpoints) = stages(&shared, recovered.engine)?;
        let waiting = Waiting::at_start(&shared);
        let mut inline = Inline {
            shared,
            verify,
            execute,
            checkpoints,
            executed: Vec::new(),
            answers: bounded(QUEUE_BLOCKS),
            waiting,
            attest,
            ladder: Ladder::at(recovered.checkpoint),
            // Healing would wait for what it asks for, and everything else with it.
            joining: exchange
                .map(|exchange| (Joining::new(Exchange { wanted: never(), ..exchange }), joined)),
            clock,
        };
        inline.checkpoints.read_known();
        inline.attest(|_| ());
        Ok(inline)
    }

    /// Heights that ordering is to give before what it has delivered.
    pub(crate) fn missing(&self, delivered: u64) -> Range<u64> {
        self.verify.missing(delivered)
    }

    /// Verifies and executes a block.
    pub(crate) fn deliver(&mut self, delivery: Delivery) -> Result<(), NodeError> {
        match (self.verify.step(&self.shared, delivery), &self.shared.gap) {
            // It joins; what comes until then ordering has.
            (Err(NodeError::Gap { .. }), Some(gap)) => gap.store(true, Atomic::Release),
            (verified, _) => verified?.into_iter().for_each(|verified| self.execute.push(verified)),
        }
        while let Some(executed) = self.execute.step(&self.shared)? {
            self.executed.push(executed);
            self.attest(|_| ());
            self.checkpoints.write_asked();
            self.attest(|_| ());
        }
        Ok(())
    }

    /// Records what is executed, hears what others say, hands out answers, heals or joins.
    pub(crate) fn turn(&mut self) -> Result<(), NodeError> {
        if !self.executed.is_empty() {
            let recorded = record::step(&self.shared, std::mem::take(&mut self.executed))?;
            self.waiting.take(&self.shared, recorded);
        }
        self.hear();
        let Some(Attest { certified, heal: asked, .. }) = &self.attest else { return Ok(()) };
        if certified.try_recv().is_ok() {
            self.waiting.settle(&self.shared);
        }
        if let Ok(wanted) = asked.try_recv() {
            // Everything that was executed is recorded above.
            let engine = heal(&self.shared, &mut self.ladder, &wanted, &self.answers.0)?;
            // What was asked for meanwhile is what was done.
            asked.try_iter().for_each(drop);
            self.go_on(engine)?;
        }
        self.join()
    }

    /// Fetches and hands out checkpoints, and goes on from one that is here and ahead.
    fn join(&mut self) -> Result<(), NodeError> {
        let Some((joining, joined)) = &mut self.joining else { return Ok(()) };
        let now = (self.clock)();
        for (member, bytes) in self.shared.messages.told().try_iter() {
            joining.hear(member, &bytes, now);
        }
        joining.tick(now);
        let fetched = joined.try_iter().find(|fetched| is_ahead(&self.shared, fetched));
        let Some(fetched) = fetched else { return Ok(()) };
        self.ladder = Ladder::at(fetched.anchor.height());
        let recovered = join::join(&self.shared, *fetched, &self.answers.0)?;
        self.go_on(recovered.engine)
    }

    /// The stages begin again behind a state that was made anew.
    fn go_on(&mut self, engine: Engine) -> Result<(), NodeError> {
        self.answers.1.try_iter().for_each(|answerable| self.waiting.take(&self.shared, answerable));
        self.attest(|_| ());
        (self.verify, self.execute, self.checkpoints) = stages(&self.shared, engine)?;
        self.checkpoints.read_known();
        self.attest(|_| ());
        Ok(())
    }

    /// What came from other nodes, and the time.
    fn hear(&mut self) {
        let messages = self.shared.messages.messages().clone();
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

/// The stages that own an engine, and those that write checkpoints beside them.
fn stages(shared: &Shared, engine: Engine) -> Result<(Verify, Execute, CheckpointWriter), NodeError> {
    let (checkpoints, writer) = Checkpoints::new(shared.checkpoint_parts(), never())?;
    Ok((Verify::new(engine.height() + 1), Execute::new(engine, checkpoints), writer))
}
