//! Which records of the topic make which blocks: a rule that every node follows alike. No clock, no network, no threads; records
//! go in with their offsets and the times that brokers gave them, and blocks come out.
//!
//! The next block is a function of the block before it and of the records from the offset on that its certificate names. So it
//! does not matter how records come, how many at once, or when a node was started again.
//!
//! - **A record is taken whole.** If its transactions do not fit into the block that is being made, that block is cut without it
//!   and the record begins the next one.
//! - **A block is cut** when it is full, when a record does not fit, or by the first record that asks for it at its height. An
//!   empty block has to be `idle_ms / 2` younger than the one before by the brokers' clock.
//! - **Its time** is the greatest append time so far, later than the block's before it.
//! - **It waits for certificates.** Where outcomes are not certified far enough, nothing is cut until a record brings one. What does
//!   not fit meanwhile is dropped, and its member offers it again.
//! - **What BFT's members would not vote for is dropped**: records of strangers, of other ledgers, with a wrong signature, with a
//!   transaction that is refused at the height, with a forged certificate. A transaction that the block has already is left out.

use super::proof::{Part, Proof};
use super::record::Record;
use crate::certificate::Certificate;
use crate::cutting::{Fault, Parent, assemble};
use crate::judging::{check_certificates, check_transactions};
use crate::members::Epochs;
use crate::mempool::LENGTH_BYTES;
use crate::{Admission, Delivery};
use bytes::Bytes;
use crypto::{Digest, PublicKey, SignedMessage, verify_batch};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use types::{Attested, Charter, Place, TransactionId};

/// The end of the year 9999; a later time of a broker is none.
const TIME_MAX_MS: u64 = 253_402_300_799_999;
/// A record that was offered for a block so far below is too old: somebody has put it into the topic again.
const STALE_BLOCKS: u64 = 1_000;
/// Records of a block, so that certificates have a limit.
pub(super) const PARTS_MAX: usize = 4_096;

/// A record as the brokers give it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Appended {
    pub offset: u64,
    /// When a broker put it there, in milliseconds since 1970; none where the topic does not say so.
    pub time_ms: Option<u64>,
    pub bytes: Bytes,
}

/// A record that is read, and by whose key its signature is known to be.
pub(super) struct Read {
    offset: u64,
    time_ms: u64,
    record: Result<Record, String>,
    verified: Option<PublicKey>,
}

/// Why a record is in no block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Dropped {
    #[error("it is no record of a ledger: {0}")]
    Malformed(String),
    #[error("it is one of ledger {0}")]
    OtherLedger(Digest),
    #[error("organisation {member} of the charter, which is said to offer it, is no member at height {height}")]
    Stranger { member: u16, height: u64 },
    #[error("the signature is not that of organisation {member} of the charter")]
    Signature { member: u16 },
    #[error("it was offered for block {offered}, and block {height} is next")]
    Stale { offered: u64, height: u64 },
    #[error("its {transactions} transactions of {bytes} bytes fit into no block")]
    TooLong { transactions: usize, bytes: usize },
    #[error("{0}")]
    Fault(String),
    #[error("the block is full, and nothing can be cut before outcomes are certified")]
    Full,
    #[error("most of its transactions stand in the block already")]
    Repeated,
    #[error("nothing of it is new at height {height}")]
    Idle { height: u64 },
}

impl Dropped {
    /// A name for counting.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Dropped::Malformed(_) => "malformed",
            Dropped::OtherLedger(_) => "other_ledger",
            Dropped::Stranger { .. } => "stranger",
            Dropped::Signature { .. } => "signature",
            Dropped::Stale { .. } => "stale",
            Dropped::TooLong { .. } => "too_long",
            Dropped::Fault(_) => "fault",
            Dropped::Full => "full",
            Dropped::Repeated => "repeated",
            Dropped::Idle { .. } => "idle",
        }
    }

    /// Whether only a member that lies, or a stranger, offers such a thing.
    pub(super) fn is_strange(&self) -> bool {
        !matches!(
            self,
            Dropped::Full | Dropped::Repeated | Dropped::Idle { .. } | Dropped::Stale { .. }
        )
    }
}

/// Why nothing can be said about any record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stuck {
    #[error(
        "the topic begins with a record of ledger {found}, and this node is of ledger {expected}; give each ledger a topic of its own"
    )]
    OtherLedger { expected: Digest, found: Digest },
    #[error("the topic begins with something else than a record of a ledger ({0}); give the ledger a topic of its own")]
    NoLedger(String),
    #[error("the charters that block {0} names are not known here; the node must learn of them")]
    Charters(u64),
}

/// What a record has come to.
#[derive(Default, Debug)]
pub(super) struct Taken {
    /// Blocks that it has finished, with the ids of their transactions.
    pub blocks: Vec<(Delivery, Vec<TransactionId>)>,
    /// Whose it was, as far as it says, and what it had.
    pub from: Option<(u16, Digest)>,
    /// Why it is in no block.
    pub dropped: Option<Dropped>,
}

/// The block that is being made.
#[derive(Default, Debug)]
pub(super) struct Draft {
    pub transactions: Vec<Bytes>,
    ids: Vec<TransactionId>,
    known: FxHashSet<TransactionId>,
    bytes: usize,
    pub attested: Attested,
    pub parts: Vec<Part>,
    time_ms: u64,
    /// A record has asked for it.
    cut: bool,
    /// Something did not fit.
    full: bool,
}

/// What a good record brings.
struct Judged {
    ids: Vec<TransactionId>,
    attested: Attested,
    cut: bool,
}

/// The rule, and how far it is.
pub(super) struct Rule {
    ledger: Digest,
    epochs: Epochs,
    admission: Arc<dyn Admission>,
    parent: Parent,
    /// The offset of the next record.
    next: u64,
    draft: Draft,
    /// Whether the topic is known to be this ledger's.
    bound: bool,
}

impl Rule {
    /// Goes on behind a block whose certificate names an offset.
    pub(super) fn new(ledger: Digest, epochs: Epochs, admission: Arc<dyn Admission>) -> Rule {
        let parent = Parent::charter(ledger);
        Rule { ledger, epochs, admission, parent, next: 0, draft: Draft::default(), bound: false }
    }

    /// Goes on behind this block, with the record at this offset.
    pub(super) fn begin_behind(&mut self, parent: Parent, next: u64) {
        (self.parent, self.next, self.draft) = (parent, next, Draft::default());
        self.bound = parent.height > 0;
    }

    pub(super) fn parent(&self) -> &Parent {
        &self.parent
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    /// The height up to which outcomes are certified with what the draft carries.
    pub(super) fn certified(&self) -> u64 {
        let outcome = self.draft.attested.outcome.as_ref().map_or(0, |known| known.statement.height);
        outcome.max(self.parent.certified_height)
    }

    /// Whether the draft may be cut with transactions.
    pub(super) fn is_open(&self) -> bool {
        let charter = self.charter();
        self.ahead() <= u64::from(charter.outcome_lag_blocks)
    }

    fn ahead(&self) -> u64 {
        self.parent.height + 1 - self.certified()
    }

    fn charter(&self) -> Arc<Charter> {
        self.epochs.charter_at(self.parent.height + 1)
    }

    /// Reads records and verifies their signatures together.
    pub(super) fn read(&self, appended: Vec<Appended>) -> Vec<Read> {
        let charter = self.charter();
        let key = |record: &Record| key_of(&charter, record.statement.member);
        let mut read: Vec<Read> = appended
            .into_iter()
            .map(|Appended { offset, time_ms, bytes }| Read {
                offset,
                time_ms: time_ms.filter(|time| *time <= TIME_MAX_MS).unwrap_or(0),
                record: Record::from_bytes(&bytes),
                verified: None,
            })
            .collect();
        let signed: Vec<(usize, PublicKey, Vec<u8>)> = (read.iter().enumerate())
            .filter_map(|(at, read)| {
                let record = read.record.as_ref().ok().filter(|record| record.ledger == self.ledger)?;
                Some((at, key(record)?, record.statement.message(&self.ledger)))
            })
            .collect();
        let messages: Vec<SignedMessage<'_>> = (signed.iter())
            .filter_map(|(at, key, message)| {
                let signature = read[*at].record.as_ref().ok()?.signature;
                Some(SignedMessage { key: *key, signature, message })
            })
            .collect();
        let good = verify_batch(&messages);
        for ((at, key, _), _) in signed.iter().zip(good).filter(|(_, good)| *good) {
            read[*at].verified = Some(*key);
        }
        read
    }

    /// Takes the next record. One that was taken before comes to nothing.
    pub(super) fn take(&mut self, read: &Read) -> Result<Taken, Stuck> {
        let mut taken = Taken::default();
        if read.offset < self.next {
            return Ok(taken);
        }
        self.bind(read)?;
        taken.from = read.record.as_ref().ok().map(|known| (known.statement.member, known.statement.content));
        loop {
            if !self.epochs.knows(&self.parent.charters) {
                return Err(Stuck::Charters(self.parent.height));
            }
            match self.judge(read) {
                Ok((record, judged)) => {
                    if !self.fits(record, &judged) && self.is_open() && !self.draft.transactions.is_empty() {
                        taken.blocks.push(self.cut(read.offset));
                        continue;
                    }
                    taken.dropped = self.place(read, record, judged);
                }
                Err(dropped) => taken.dropped = Some(dropped),
            }
            break;
        }
        self.draft.time_ms = self.draft.time_ms.max(read.time_ms);
        self.next = read.offset + 1;
        if self.is_due() {
            taken.blocks.push(self.cut(self.next));
        }
        Ok(taken)
    }

    /// The first record of a topic says whose it is.
    fn bind(&mut self, read: &Read) -> Result<(), Stuck> {
        match &read.record {
            _ if self.bound => {}
            Ok(record) if record.ledger == self.ledger => self.bound = true,
            Ok(record) => {
                return Err(Stuck::OtherLedger { expected: self.ledger, found: record.ledger });
            }
            Err(reason) => return Err(Stuck::NoLedger(reason.clone())),
        }
        Ok(())
    }

    /// What a record brings to the block that is being made.
    fn judge<'r>(&self, read: &'r Read) -> Result<(&'r Record, Judged), Dropped> {
        let record = read.record.as_ref().map_err(|reason| Dropped::Malformed(reason.clone()))?;
        if record.ledger != self.ledger {
            return Err(Dropped::OtherLedger(record.ledger));
        }
        let (height, charter) = (self.parent.height + 1, self.charter());
        let (member, offered) = (record.statement.member, record.statement.height);
        let key = key_of(&charter, member).ok_or(Dropped::Stranger { member, height })?;
        if read.verified != Some(key) && !record.is_signed_by(key) {
            return Err(Dropped::Signature { member });
        }
        if offered + STALE_BLOCKS < height {
            return Err(Dropped::Stale { offered, height });
        }
        let (transactions, bytes) = (record.transactions.len(), bytes_in_block(&record.transactions));
        if transactions > charter.block.transactions_max as usize || bytes > charter.block.bytes_max as usize {
            return Err(Dropped::TooLong { transactions, bytes });
        }
        let fault = |fault: Fault| Dropped::Fault(fault.to_string());
        let attested = self.attested(&record.attested).map_err(fault)?;
        let charters = self.epochs.charters();
        let place = Place { charters: &charters, height };
        let ids = check_transactions(&*self.admission, place, &record.transactions).map_err(fault)?;
        let wants = record.statement.cut && offered == height;
        let idle_ms = u64::from(charter.block.idle_ms) / 2;
        let has_some = transactions > 0 || !self.draft.transactions.is_empty();
        let cut = wants && (has_some || read.time_ms >= self.parent.timestamp_ms.saturating_add(idle_ms));
        Ok((record, Judged { ids, attested, cut }))
    }

    /// Those of a record's certificates that are new; what they are of the blocks themselves.
    fn attested(&self, offered: &Attested) -> Result<Attested, Fault> {
        let (parent, mut attested) = (&self.parent, Attested::default());
        let new = |height: u64| height > self.certified() && height <= parent.height;
        if offered.outcome.as_ref().is_some_and(|outcome| new(outcome.statement.height)) {
            let Attested { outcome, charters, .. } = offered.clone();
            let with_charters = Attested { outcome, checkpoint: None, charters };
            // Charters that a block meanwhile has carried are not carried again.
            if with_charters.charters_after(&parent.charters).is_some() {
                attested = with_charters;
            }
        }
        let known = self.draft.attested.checkpoint.as_ref().map_or(0, |known| known.statement.height);
        let new = |height: u64| height > known && height <= parent.height;
        attested.checkpoint =
            offered.checkpoint.clone().filter(|checkpoint| new(checkpoint.statement.height));
        check_certificates(&self.epochs, &attested)?;
        self.epochs.learn(&attested).map_err(Fault::Charters)?;
        Ok(attested)
    }

    /// Whether what a record brings has room in the block.
    fn fits(&self, record: &Record, judged: &Judged) -> bool {
        let block = self.charter().block;
        let new = |id: &&TransactionId| !self.draft.known.contains(*id);
        let count = self.draft.transactions.len() + judged.ids.iter().filter(new).count();
        // Transactions that stand there already count as well, which costs little and is simple.
        let bytes = self.draft.bytes + bytes_in_block(&record.transactions);
        judged.ids.is_empty()
            || !self.draft.full
                && self.draft.parts.len() < PARTS_MAX
                && count <= block.transactions_max as usize
                && bytes <= block.bytes_max as usize
    }

    /// Puts what a record brings into the block; why nothing of it is there.
    fn place(&mut self, read: &Read, record: &Record, judged: Judged) -> Option<Dropped> {
        let fits = self.fits(record, &judged);
        let Judged { ids, attested, cut } = judged;
        let (mut kept, mut left_out, mut dropped) = (Vec::new(), Vec::new(), None);
        if !fits {
            (self.draft.full, dropped) = (true, Some(Dropped::Full));
        } else {
            let mut seen = FxHashSet::default();
            for (at, id) in ids.iter().enumerate() {
                match !self.draft.known.contains(id) && seen.insert(*id) {
                    true => kept.push(at),
                    false => left_out.push((at as u32, record.digests[at])),
                }
            }
            if left_out.len() > kept.len() {
                (kept, dropped) = (Vec::new(), Some(Dropped::Repeated));
            }
            if kept.is_empty() {
                left_out.clear();
            }
        }
        let brings = attested != Attested::default();
        if kept.is_empty() && !brings && !cut {
            return dropped.or(Some(Dropped::Idle { height: self.parent.height + 1 }));
        }
        let draft = &mut self.draft;
        for at in &kept {
            draft.known.insert(ids[*at]);
            draft.ids.push(ids[*at]);
            draft.bytes += record.transactions[*at].len() + LENGTH_BYTES;
            draft.transactions.push(record.transactions[*at].clone());
        }
        if attested.outcome.is_some() {
            (draft.attested.outcome, draft.attested.charters) = (attested.outcome, attested.charters);
        }
        if attested.checkpoint.is_some() {
            draft.attested.checkpoint = attested.checkpoint;
        }
        draft.cut |= cut;
        draft.parts.push(Part {
            offset: read.offset,
            statement: record.statement.clone(),
            signature: record.signature,
            kept: kept.len() as u32,
            left_out,
        });
        dropped
    }

    /// Whether the block is cut now.
    fn is_due(&self) -> bool {
        let (draft, charter) = (&self.draft, self.charter());
        let is_full = draft.full
            || draft.transactions.len() >= charter.block.transactions_max as usize
            || draft.parts.len() >= PARTS_MAX;
        if draft.parts.is_empty() || !draft.cut && !is_full {
            return false;
        }
        match draft.transactions.is_empty() {
            true => self.ahead() <= charter.uncertified_blocks_max(),
            false => self.is_open(),
        }
    }

    /// Cuts the block; the record at this offset is the first for the next one.
    fn cut(&mut self, next: u64) -> (Delivery, Vec<TransactionId>) {
        let Draft { transactions, ids, attested, parts, time_ms, .. } = std::mem::take(&mut self.draft);
        let proposer = parts.last().map_or(0, |part| part.statement.member);
        let block = assemble(self.ledger, &self.parent, proposer, time_ms, attested, transactions);
        self.parent = Parent::block(&block.header);
        let certificate = Certificate::Kafka(Proof { parts, next }).to_bytes();
        (Delivery { block, certificate }, ids)
    }
}

fn key_of(charter: &Charter, member: u16) -> Option<PublicKey> {
    let organisation = charter.organisations.get(usize::from(member))?;
    (!organisation.removed).then_some(organisation.node_key)
}

fn bytes_in_block(transactions: &[Bytes]) -> usize {
    transactions.iter().map(|transaction| transaction.len() + LENGTH_BYTES).sum()
}
