//! Reads the topic, has the rule make blocks of it, and hands them to the node. A thread of its own: it waits for brokers, for
//! signatures and for the node.

use super::KafkaSettings;
use super::config::{AGAIN, FED_BLOCKS, FIRST_WAIT, PENDING_BLOCKS, READ_RECORDS};
use super::rule::{Appended, Dropped, Rule, Stuck, Taken};
use super::shared::Shared;
use super::topic::{Look, Reader, Stand, look};
use crate::cutting::{Parent, Rules, check, check_distinct};
use crate::judging::{check_certificates, check_transactions};
use crate::{CertificateVerifier, Delivery};
use bytes::Bytes;
use crossbeam_channel::{Receiver, SendTimeoutError, Sender};
use rdkafka::Timestamp;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message as _};
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::Duration;
use tracing::{debug, error, info, warn};
use types::{Place, TransactionId};

/// How often whoever waits looks whether it should stop.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Why nothing is read any more.
type Ended = String;

/// The reading thread's work.
pub(super) struct Reading {
    shared: Arc<Shared>,
    settings: KafkaSettings,
    rule: Rule,
    stand: Stand,
    reader: Option<Reader>,
    sender: Sender<Delivery>,
}

impl Reading {
    /// With where the blocks come out.
    pub(super) fn new(
        shared: Arc<Shared>,
        settings: KafkaSettings,
        (rule, stand): (Rule, Stand),
        reader: Option<Reader>,
    ) -> (Reading, Receiver<Delivery>) {
        let (sender, deliveries) = crossbeam_channel::bounded(FED_BLOCKS);
        (Reading { shared, settings, rule, stand, reader, sender }, deliveries)
    }

    /// Works until the service is stopped, or the topic is not what it was.
    pub(super) fn run(mut self) {
        if let Err(reason) = self.work() {
            error!(%reason, "the topic is not read any more; the ordering service ends");
            self.shared.say(Some(reason));
        }
        self.shared.stop();
    }

    fn work(&mut self) -> Result<(), Ended> {
        while !self.shared.is_stopped() {
            self.skip();
            let Some(reader) = &self.reader else {
                self.open()?;
                continue;
            };
            let (appended, problem) = poll(reader);
            match problem {
                Some(Problem::End) => {
                    self.shared.publish(|tip| tip.has_caught_up = true);
                    self.shared.say(None);
                }
                Some(Problem::Gone(reason)) => {
                    info!(reason, "the topic is looked at again");
                    self.reader = None;
                }
                Some(Problem::Away) => self.shared.say(Some(format!(
                    "the brokers at {} do not answer; blocks go on when they do",
                    self.settings.brokers
                ))),
                Some(Problem::Passing) | None => {}
            }
            if appended.is_empty() {
                continue;
            }
            self.shared.say(None);
            self.shared.records_read.fetch_add(appended.len() as u64, Atomic::Relaxed);
            for read in self.rule.read(appended) {
                let taken = self.rule.take(&read).map_err(|stuck: Stuck| stuck.to_string())?;
                if !self.take(taken) {
                    return Ok(());
                }
            }
            self.publish();
        }
        Ok(())
    }

    /// Blocks up to one that the node names are not needed.
    fn skip(&mut self) {
        let Some((header, proof)) = self.shared.skip.lock().take() else { return };
        if header.height > self.rule.parent().height {
            self.stand.behind(header.height, &proof);
            self.rule.begin_behind(Parent::block(&header), proof.next);
            self.reader = None;
            self.publish();
        }
    }

    /// Looks at the topic until it can be read from where this node is, or other members bring what it lacks.
    fn open(&mut self) -> Result<(), Ended> {
        let charter = self.shared.members.epochs.charter_at(self.rule.parent().height + 1);
        self.stand.block_bytes_max = charter.block.bytes_max;
        match look(&self.settings, &self.stand, FIRST_WAIT).map_err(|error| error.to_string())? {
            Look::Ready(reader) => {
                self.reader = Some(reader);
                self.shared.say(None);
            }
            Look::Later(reason) => {
                self.shared.say(Some(reason));
                std::thread::sleep(AGAIN);
            }
            Look::Truncated { begins } => {
                let (topic, next) = (&self.settings.topic, self.stand.next);
                self.shared.say(Some(format!(
                    "topic {topic} begins at offset {begins}, and this node's ledger ends before offset {next} of it: other members are \
                     asked for the blocks"
                )));
                if let Some(brought) = self.shared.asking.ask(self.rule.parent().height + 1) {
                    self.take_brought(brought);
                }
            }
        }
        Ok(())
    }

    /// Takes blocks that another member has in its ledger, as far as they are what a topic could have given.
    fn take_brought(&mut self, brought: Vec<Delivery>) {
        for delivery in brought {
            let height = delivery.block.header.height;
            let ids = match self.judge_brought(&delivery) {
                Ok(ids) => ids,
                Err(reason) => {
                    warn!(height, reason, "a block that another member brought is none");
                    return;
                }
            };
            let Ok(proof) = Shared::proof_of(&delivery.certificate) else { return };
            let header = delivery.block.header.clone();
            if !self.hand_over(delivery, &ids) {
                return;
            }
            self.stand.behind(header.height, &proof);
            self.rule.begin_behind(Parent::block(&header), proof.next);
            self.publish();
        }
    }

    fn judge_brought(&self, delivery: &Delivery) -> Result<Vec<TransactionId>, String> {
        let (shared, Delivery { block, certificate }) = (&self.shared, delivery);
        let (parent, epochs) = (self.rule.parent(), &shared.members.epochs);
        let charter = epochs.charter_at(parent.height + 1);
        check(block, &Rules::of(&charter, shared.ledger), parent, block.header.proposer)
            .map_err(|fault| fault.to_string())?;
        let verifier = CertificateVerifier::new(epochs.charters()).map_err(|error| error.to_string())?;
        verifier.verify_block(block, certificate).map_err(|error| error.to_string())?;
        check_certificates(epochs, &block.attested).map_err(|fault| fault.to_string())?;
        epochs.learn(&block.attested).map_err(|error| error.to_string())?;
        let place = Place { charters: &epochs.charters(), height: parent.height + 1 };
        let ids = check_transactions(&*shared.admission, place, &block.transactions)
            .map_err(|fault| fault.to_string())?;
        check_distinct(&ids).map_err(|fault| fault.to_string())?;
        Ok(ids)
    }

    /// Does what follows from a record. `false` where nobody takes blocks any more.
    fn take(&mut self, taken: Taken) -> bool {
        let Taken { blocks, from, dropped } = taken;
        let own = self.shared.members.epochs.own_at(self.rule.parent().height + 1);
        if let Some(reason) = &dropped {
            *self.shared.dropped.lock().entry(reason.name()).or_default() += 1;
            let offset = self.rule.next().saturating_sub(1);
            match reason.is_strange() {
                true => {
                    warn!(offset, member = from.map(|from| from.0), %reason, "a record is dropped by every node")
                }
                false => debug!(offset, %reason, "a record is in no block"),
            }
        }
        if let Some((member, content)) = from
            && own == Some(member)
        {
            match &dropped {
                Some(reason) => self.offer_again(&content, matches!(reason, Dropped::Fault(_))),
                // They count as offered until the block comes.
                None => drop(self.shared.offered.lock().records.remove(&content)),
            }
        }
        for (delivery, ids) in blocks {
            let height = delivery.block.header.height;
            let Ok(proof) = Shared::proof_of(&delivery.certificate) else { return false };
            if !self.hand_over(delivery, &ids) {
                debug!(height, "nobody takes blocks any more; reading ends");
                return false;
            }
            self.stand.behind(height, &proof);
        }
        true
    }

    /// This node's record is in no block: its transactions are offered again, but for those that are refused now.
    fn offer_again(&self, content: &crypto::Digest, refused: bool) {
        let ids = self.shared.offered.lock().release(content);
        if refused && !ids.is_empty() {
            let (charters, height) = (self.shared.members.epochs.charters(), self.rule.parent().height + 1);
            let place = Place { charters: &charters, height };
            self.shared.mempool.forget_refused(&*self.shared.admission, place, &ids);
        }
    }

    /// Gives the node a block, once there is room. `false` where nobody takes it.
    fn hand_over(&self, mut delivery: Delivery, ids: &[TransactionId]) -> bool {
        let height = delivery.block.header.height;
        while height > self.shared.acknowledged() + PENDING_BLOCKS {
            if self.shared.is_stopped() {
                return false;
            }
            self.shared.wait_for_acknowledgement(STOP_POLL);
        }
        self.shared.mempool.delivered(ids);
        {
            let mut offered = self.shared.offered.lock();
            for id in ids {
                offered.ids.remove(id);
            }
        }
        self.shared.members.certificates.carried(&delivery.block.attested);
        let (parent, now) = (Parent::block(&delivery.block.header), self.shared.now());
        self.shared.publish(|tip| {
            (tip.parent, tip.cut_at) = (parent, now);
            (tip.certified, tip.drafted, tip.first) = (parent.certified_height, 0, None);
        });
        loop {
            match self.sender.send_timeout(delivery, STOP_POLL) {
                Ok(()) => return true,
                Err(SendTimeoutError::Timeout(back)) if !self.shared.is_stopped() => delivery = back,
                Err(_) => return false,
            }
        }
    }

    /// Says how far this node is.
    fn publish(&self) {
        let (draft, now) = (self.rule.draft(), self.shared.now());
        let first = draft.parts.iter().find(|part| part.kept > 0).map(|part| part.statement.member);
        let (parent, next, certified) = (*self.rule.parent(), self.rule.next(), self.rule.certified());
        self.shared.publish(|tip| {
            if draft.transactions.len() != tip.drafted {
                let since = if tip.drafted == 0 { now } else { tip.drafted_since[0] };
                tip.drafted_since = [since, now];
            }
            (tip.parent, tip.next, tip.certified) = (parent, next, certified);
            (tip.drafted, tip.first) = (draft.transactions.len(), first);
        });
        self.shared.offered.lock().judged_up_to(next);
        self.shared.mempool.wake_thread();
    }
}

/// What a poll says beside records.
enum Problem {
    /// There is no more now.
    End,
    /// Nobody answers; the library tries again.
    Away,
    /// One broker does not, or not at once; the library asks another, or again.
    Passing,
    /// What was to be read is not there.
    Gone(String),
}

/// Records that are there, as many as are judged together.
fn poll(reader: &Reader) -> (Vec<Appended>, Option<Problem>) {
    let mut appended = Vec::new();
    let mut wait = STOP_POLL;
    while appended.len() < READ_RECORDS {
        match reader.poll(wait) {
            Some(Ok(message)) => appended.push(appended_of(&message)),
            Some(Err(error)) => return (appended, Some(problem(&error))),
            None => break,
        }
        wait = Duration::ZERO;
    }
    (appended, None)
}

fn appended_of(message: &BorrowedMessage<'_>) -> Appended {
    let time_ms = match message.timestamp() {
        Timestamp::LogAppendTime(time) => u64::try_from(time).ok(),
        Timestamp::CreateTime(_) | Timestamp::NotAvailable => None,
    };
    let bytes = Bytes::copy_from_slice(message.payload().unwrap_or_default());
    Appended { offset: message.offset().max(0) as u64, time_ms, bytes }
}

fn problem(error: &KafkaError) -> Problem {
    use RDKafkaErrorCode as Code;
    let code = match error {
        KafkaError::PartitionEOF(_) => return Problem::End,
        KafkaError::MessageConsumption(code) | KafkaError::MessageConsumptionFatal(code) => code,
        _ => return Problem::Passing,
    };
    match code {
        Code::AllBrokersDown => Problem::Away,
        Code::AutoOffsetReset
        | Code::OffsetOutOfRange
        | Code::UnknownTopicOrPartition
        | Code::UnknownTopic
        | Code::UnknownPartition => Problem::Gone(error.to_string()),
        _ => {
            debug!(%error, "a broker does not give records");
            Problem::Passing
        }
    }
}
