//! Reads the queue of recorded blocks and hears which heights are certified; hands out receipts, each at the moment that
//! its client has asked for.

use crate::admission::ordering_name;
use crate::charters::DecidedCharters;
use crate::metrics::{ANSWER, NodeMetrics};
use crate::published::Published;
use crate::receipts::{Begins, Receipts};
use crate::{Defence, Faults};
use crossbeam_channel::{Receiver, never, select};
use gateway::Notifier;
use ledger::{BlockRecord, Ledger, LedgerError};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use types::{Notifications, Outcome, Receipt};

/// Recorded blocks that are kept in memory until they are certified; others are read again.
const KEPT_BLOCKS: usize = 16;

/// What happened to recorded blocks.
pub(super) enum Answerable {
    /// They are on the disk.
    Recorded(Vec<BlockRecord>),
    /// Those from this height on are taken back.
    TakenBack(u64),
}

/// What the stage needs.
#[derive(Clone)]
pub(crate) struct AnswerStage {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) charters: Arc<DecidedCharters>,
    pub(crate) published: Arc<Published>,
    pub(crate) receipts: Arc<Receipts>,
    pub(crate) metrics: Arc<NodeMetrics>,
    pub(crate) notifier: Arc<Notifier>,
    /// Outcomes are attested, so that somebody may wait for that.
    pub(crate) attests: bool,
    /// What a test makes go wrong.
    pub(crate) faults: Option<Arc<Faults>>,
}

/// Hands out receipts.
pub(super) struct Answering {
    stage: AnswerStage,
    /// Recorded blocks with transactions whose outcomes are not certified, ascending. There are as many as the charter lets
    /// ordering be ahead, at most.
    uncertified: VecDeque<(u64, Option<BlockRecord>)>,
    recorded: u64,
}

impl AnswerStage {
    /// Blocks may have been recorded and not certified before the node was started: whoever asks for them waits too.
    pub(super) fn at_start(&self) -> Answering {
        let ledger = &self.ledger;
        let recorded = ledger.tip().map_or(0, |(height, _)| height);
        let first = self.certified_height().saturating_add(1).max(ledger.first_height());
        let has_transactions = |height: &u64| match ledger.header(*height) {
            Ok(header) => header.is_some_and(|header| header.transactions > 0),
            Err(error) => {
                tracing::error!(height, %error, "a recorded block cannot be read");
                // Somebody may ask for what is in it.
                true
            }
        };
        let uncertified = (first..=recorded).filter(has_transactions).map(|height| (height, None)).collect();
        Answering { stage: self.clone(), uncertified, recorded }
    }

    /// The height up to which nobody has to wait any longer.
    fn certified_height(&self) -> u64 {
        if self.attests && !Faults::lack(self.faults.as_deref(), Defence::QuorumBeforeAnswer) {
            self.published.certified().height()
        } else {
            u64::MAX
        }
    }

    fn publish(&self, record: &BlockRecord, attested: bool) {
        let original = |height, index| match self.ledger.receipt_at(height, index) {
            Ok(receipt) => receipt,
            // There is nothing to tell of the first one any more.
            Err(LedgerError::Redacted { .. }) => None,
            Err(error) => {
                tracing::error!(height, index, %error, "a recorded receipt cannot be read");
                None
            }
        };
        let name = |receipt: &Receipt| {
            ordering_name(receipt.transaction, &record.block.transactions[receipt.index as usize])
        };
        if attested {
            // In front of the receipts, so that whoever hears of its own transaction has heard what that notifies.
            record.outcome.receipts.iter().for_each(|receipt| self.tell(receipt));
        }
        self.receipts.publish(&record.outcome.receipts, attested, original, name);
    }
}

impl AnswerStage {
    fn tell(&self, receipt: &Receipt) {
        if let Outcome::Committed(results) = &receipt.outcome {
            let (_, said) = Notifications::split(results);
            self.notifier.publish(receipt.transaction, &said);
        }
    }
}

impl Answering {
    /// Works until the pipeline has ended.
    pub(super) fn run(mut self, blocks: &Receiver<Answerable>, certified: &Receiver<()>) {
        let mut certified = certified.clone();
        loop {
            select! {
                recv(blocks) -> message => match message {
                    Ok(answerable) => self.take(answerable),
                    Err(_) => return,
                },
                recv(certified) -> wake => match wake {
                    Ok(()) => self.settle(),
                    Err(_) => certified = never(),
                },
            }
        }
    }

    /// Something happened to recorded blocks.
    pub(super) fn take(&mut self, answerable: Answerable) {
        match answerable {
            Answerable::Recorded(records) => {
                let start = Instant::now();
                self.record(records);
                self.stage.metrics.worked(ANSWER, start.elapsed());
            }
            Answerable::TakenBack(height) => self.take_back(height),
        }
    }

    fn record(&mut self, records: Vec<BlockRecord>) {
        let certified = self.stage.certified_height();
        let Some(last) = records.last() else { return };
        self.recorded = last.block.header.height;
        for record in records {
            let height = record.block.header.height;
            if height <= certified {
                self.stage.publish(&record, true);
            } else if !record.block.transactions.is_empty() {
                self.stage.publish(&record, false);
                let kept = self.uncertified.len() < KEPT_BLOCKS;
                self.uncertified.push_back((height, kept.then_some(record)));
            }
        }
        self.settle();
        let attested = self.uncertified.front().map_or(self.recorded, |(height, _)| height - 1);
        let AnswerStage { ledger, charters, receipts, .. } = &self.stage;
        let begins = Begins::of(ledger, &charters.all());
        receipts.expire(self.recorded, attested.min(self.stage.certified_height()), begins);
    }

    /// Hands out what is recorded and certified.
    pub(super) fn settle(&mut self) {
        let certified = self.stage.certified_height();
        while let Some((height, record)) = self.uncertified.pop_front_if(|(height, _)| *height <= certified) {
            let record = match record {
                Some(record) => Ok(Some(record)),
                None => self.stage.ledger.read(height),
            };
            match record {
                Ok(Some(record)) => self.stage.publish(&record, true),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(height, %error, "a recorded block cannot be read");
                    // Who waits for something in it would be told, later, that it has expired and will never be executed.
                    self.stage.receipts.give_up();
                }
            }
        }
    }

    fn take_back(&mut self, height: u64) {
        self.uncertified.retain(|(recorded, _)| *recorded < height);
        self.recorded = self.recorded.min(height.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attesting::Certified;
    use bench::{SignedLedger, SignedLedgerOptions};
    use engine::Engine;
    use tokio::sync::mpsc;
    use types::{AnswerAt, Charter, Charters, KnownVersions, Payload, SubmissionRefusal};

    /// A ledger on the disk with one block, and the receipt in it.
    fn ledger_of_one_block(folder: &std::path::Path) -> (Ledger, Arc<Charter>, Receipt) {
        let mut signed =
            SignedLedger::create(folder, SignedLedgerOptions::default(), |_| ()).expect("an empty folder");
        let sql = "CREATE TABLE t (id bigint PRIMARY KEY)".to_string();
        let transactions = signed.transactions(vec![Payload::Script { sql, parameters: Vec::new() }]);
        let receipt = signed.append(transactions, |_| ()).expect("it is appended").remove(0);
        let charter = signed.charter().clone();
        signed.finish().expect("it is flushed");
        let (ledger, _) = Ledger::open(folder.join("ledger"), charter.ledger()).expect("a good ledger");
        (ledger, charter, receipt)
    }

    fn stage(ledger: Ledger, charter: &Arc<Charter>) -> AnswerStage {
        let engine = Engine::new(charter.clone(), &memory::Memory).expect("a charter");
        let known = Charters::new(charter.clone());
        let charters = Arc::new(DecidedCharters::of(&engine, known, KnownVersions::default()));
        let (snapshot, library) = (engine.state().snapshot(), engine.library().clone());
        let (certified, failure) = (Arc::new(Certified::new(0, 1)), Arc::default());
        let digest = engine.state_digest();
        let published = Published::new(snapshot, library, (4, None), 1, digest, certified, failure);
        AnswerStage {
            ledger: Arc::new(ledger),
            charters,
            published: Arc::new(published),
            receipts: Arc::new(Receipts::new()),
            metrics: Arc::new(NodeMetrics::new()),
            notifier: Arc::default(),
            attests: false,
            faults: None,
        }
    }

    /// That it has expired would be a promise that it is never executed.
    #[test]
    fn who_waits_for_what_stands_in_a_block_that_cannot_be_read_is_told_that_nothing_is_known() {
        for is_damaged in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let (ledger, charter, receipt) = ledger_of_one_block(folder.path());
            if is_damaged {
                let files = std::fs::read_dir(folder.path().join("ledger")).expect("it is there");
                let paths = files.map(|file| file.expect("a file").path());
                for path in paths.filter(|path| path.is_file()) {
                    let file = std::fs::File::options().write(true).open(path).expect("it can be written");
                    let length = file.metadata().expect("it has a length").len();
                    file.set_len(length / 2).expect("it is cut");
                }
            }
            let stage = stage(ledger, &charter);
            let (reply, mut replies) = mpsc::channel(1);
            let id = receipt.transaction;
            assert!(stage.receipts.wait((id, id), 0, 1, AnswerAt::Attested, reply));
            let uncertified = VecDeque::from([(1, None)]);
            Answering { stage, uncertified, recorded: 1 }.settle();
            let expected = if is_damaged { Err(SubmissionRefusal::Unknown) } else { Ok(receipt) };
            assert_eq!(replies.try_recv().expect("it is told").result, expected);
        }
    }
}
