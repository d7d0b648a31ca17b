//! Which records of the topic make which blocks: a rule that every node follows alike. No clock, no network, no threads; records
//! go in with their offsets and the times that brokers gave them, and blocks come out.
//!
//! The next block is a function of the block before it and of the records from the offset on that its certificate names. So it
//! does not matter how records come, how many at once, or when a node was started again.
//!
//! - **A record is taken whole.** If its transactions do not fit into the block that is being made, that block is cut without it
//!   and the record begins the next one.
//! - **A block is cut** when it is full, when a record does not fit, or by the first record that asks for it at its height. An
//!   empty block has to be `idle_ms / 2` younger than the one before by the brokers' clock, unless that has gone back.
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
/// Records of a block, and transactions of them that stand in it already: so a certificate fits into a message between members.
pub(super) const PARTS_MAX: usize = 128;
pub(super) const LEFT_OUT_MAX: usize = 256;

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
    #[error(
        "organisation {member} of the charter, which is said to offer it, is no member at height {height}"
    )]
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
        !matches!(self, Dropped::Full | Dropped::Repeated | Dropped::Idle { .. } | Dropped::Stale { .. })
    }
}

/// Why nothing can be said about any record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stuck {
    #[error(
        "the topic begins with a record of ledger {found}, and this node is of ledger {expected}; give each ledger a topic of its own"
    )]
    OtherLedger { expected: Digest, found: Digest },
    #[error(
        "the topic begins with something else than a record of a ledger ({0}); give the ledger a topic of its own"
    )]
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
        if offered + STALE_BLOCKS < height || offered > height {
            return Err(Dropped::Stale { offered, height });
        }
        let (transactions, bytes) = (record.transactions.len(), bytes_in_block(&record.transactions));
        if transactions > charter.block.transactions_max as usize || bytes > charter.block.bytes_max as usize
        {
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
        let (now, before) = (read.time_ms, self.parent.timestamp_ms);
        // Another broker's clock may be behind, for longer than anybody wants to wait.
        let cut = wants && (has_some || now < before || now >= before.saturating_add(idle_ms));
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
            let left_out_before: usize = self.draft.parts.iter().map(|part| part.left_out.len()).sum();
            if left_out.len() > kept.len() || left_out_before + left_out.len() > LEFT_OUT_MAX {
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

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::super::record::Offer;
    use super::*;
    use crate::CertificateVerifier;
    use crate::simulation::{AnyBytes, charter, node_key};
    use crypto::sha256;
    use types::{
        AmendedCharter, Attestation, Block, Certificate as Signed, CharterChange, Charters,
        OutcomeCertificate, OutcomeHeader,
    };

    const MEMBERS: u16 = 4;

    /// Numbers that look like chance.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % most
        }
    }

    fn founding() -> Charter {
        let mut charter = charter(1, MEMBERS.into());
        charter.ordering = "kafka".to_string();
        (charter.block.transactions_max, charter.block.bytes_max, charter.outcome_lag_blocks) = (6, 200, 3);
        charter.block.idle_ms = 100;
        charter
    }

    /// As [`founding`], where nothing waits for certificates.
    fn patient() -> Charter {
        Charter { outcome_lag_blocks: 100, ..founding() }
    }

    fn rule_of(charter: &Charter) -> Rule {
        let charters = Charters::new(Arc::new(charter.clone()));
        let epochs = Epochs::new(charters.clone(), node_key(0));
        Rule::new(charters.ledger(), epochs, Arc::new(AnyBytes))
    }

    fn bytes(texts: &[&str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect()
    }

    fn outcome(height: u64, (ledger, charters): (Digest, Digest)) -> OutcomeCertificate {
        let zero = Digest::ZERO;
        let (receipts_root, state_digest) = (zero, zero);
        let statement = OutcomeHeader {
            ledger,
            height,
            block: zero,
            previous: zero,
            receipts_root,
            state_digest,
            charters,
        };
        let sign = |member| {
            (member, Attestation::sign(statement.clone(), member, &node_key(member.into())).signature)
        };
        Signed { signatures: (0..MEMBERS).map(sign).collect(), statement }
    }

    fn carrying(height: u64, ledger: Digest) -> Attested {
        Attested { outcome: Some(outcome(height, (ledger, ledger))), ..Attested::default() }
    }

    /// A topic, as brokers keep it.
    #[derive(Default)]
    struct Topic(Vec<Appended>);

    impl Topic {
        fn append(&mut self, bytes: impl Into<Bytes>, time_ms: u64) {
            let offset = self.0.last().map_or(0, |last| last.offset + 1);
            self.0.push(Appended { offset, time_ms: Some(time_ms), bytes: bytes.into() });
        }

        fn offer(&mut self, rule: &Rule, member: u16, offer: Offer) {
            let record = Record::sign(offer, (rule.ledger, member), &node_key(member.into()));
            self.append(record.to_bytes(), 1_000 + 7 * self.0.len() as u64);
        }
    }

    fn take(rule: &mut Rule, appended: &[Appended]) -> Vec<Taken> {
        let read = rule.read(appended.to_vec());
        read.iter().map(|read| rule.take(read).expect("the ledger's topic")).collect()
    }

    fn blocks(taken: Vec<Taken>) -> Vec<Delivery> {
        taken.into_iter().flat_map(|taken| taken.blocks).map(|(delivery, _)| delivery).collect()
    }

    fn proof(delivery: &Delivery) -> Proof {
        match types::decode_exactly(&delivery.certificate).expect("a certificate") {
            Certificate::Kafka(proof) => proof,
            other => panic!("found {other:?}"),
        }
    }

    /// What the last record of a topic comes to.
    fn last(rule: &mut Rule, topic: &Topic) -> Taken {
        take(rule, &topic.0).pop().expect("a record")
    }

    fn dropped(rule: &mut Rule, topic: &Topic) -> Dropped {
        last(rule, topic).dropped.expect("it is dropped")
    }

    /// Says something good or bad, as members, strangers and brokers may.
    fn say_anything(chance: &mut Chance, topic: &mut Topic, rule: &Rule) {
        let (height, ledger) = (rule.parent.height + 1, rule.ledger);
        let member = chance.below(MEMBERS.into()) as u16;
        let some = |chance: &mut Chance| {
            let texts: Vec<String> =
                (0..1 + chance.below(5)).map(|_| format!("transaction {}", chance.below(90))).collect();
            texts.into_iter().map(Bytes::from).collect::<Vec<_>>()
        };
        let mut offer = Offer { height, transactions: some(chance), ..Offer::default() };
        match chance.below(12) {
            0 => offer.cut = true,
            1 => (offer.cut, offer.transactions) = (true, Vec::new()),
            2 => (offer.height, offer.cut) = (height.saturating_sub(1), true),
            3 | 4 => offer.attested = carrying(chance.below(height + 1), ledger),
            5 => {
                (offer.attested, offer.transactions) =
                    (carrying(chance.below(height + 1), ledger), Vec::new())
            }
            6 => offer.transactions.extend(bytes(&["bad one"])),
            7 => return topic.append("no record", 5),
            8 => {
                let other = Record::sign(offer, (sha256(&[b"another"]), member), &node_key(member.into()));
                return topic.append(other.to_bytes(), 2_000);
            }
            9 => {
                let forged = Record::sign(offer, (ledger, member), &node_key(9));
                return topic.append(forged.to_bytes(), u64::MAX);
            }
            10 => {
                let again = chance.below(topic.0.len() as u64) as usize;
                return topic.append(topic.0[again].bytes.clone(), 3_000);
            }
            _ => {}
        }
        topic.offer(rule, member, offer);
    }

    /// A topic that begins with a record of the ledger, with everything that may stand there.
    fn any_topic(seed: u64, records: usize) -> Topic {
        let (mut chance, mut topic, mut rule) =
            (Chance(seed * 7 + 1), Topic::default(), rule_of(&founding()));
        topic.offer(&rule, 0, Offer { height: 1, transactions: bytes(&["first"]), ..Offer::default() });
        for _ in 0..records {
            let new = topic.0.last().cloned().into_iter().collect::<Vec<_>>();
            take(&mut rule, &new);
            say_anything(&mut chance, &mut topic, &rule);
        }
        topic
    }

    #[test]
    fn blocks_are_the_same_however_records_come_and_whenever_a_node_is_started_again() {
        let verifier = CertificateVerifier::new(Charters::new(Arc::new(founding()))).expect("good keys");
        let (mut cut, mut kinds) = (0, FxHashSet::default());
        for seed in 1..60 {
            let topic = any_topic(seed, 150);
            let mut rule = rule_of(&founding());
            let taken = take(&mut rule, &topic.0);
            kinds.extend(taken.iter().filter_map(|taken| taken.dropped.as_ref()).map(Dropped::name));
            let expected = blocks(taken);
            for delivery in &expected {
                verifier.verify_block(&delivery.block, &delivery.certificate).expect("it proves the block");
                assert!(delivery.block.transactions.len() <= 6);
            }
            let mut chance = Chance(seed);
            for _ in 0..4 {
                // Some at once, some twice, and now and then a new node, which has the last block alone.
                let (mut rule, mut found, mut at) = (rule_of(&founding()), Vec::new(), 0);
                while at < topic.0.len() {
                    let end = (at + 1 + chance.below(9) as usize).min(topic.0.len());
                    found.extend(blocks(take(
                        &mut rule,
                        &topic.0[at.saturating_sub(chance.below(4) as usize)..end],
                    )));
                    at = end;
                    if let Some(last) = found.last().filter(|_| chance.below(3) == 0) {
                        let next = proof(last).next;
                        rule = rule_of(&founding());
                        rule.begin_behind(Parent::block(&last.block.header), next);
                        at = next as usize;
                    }
                }
                assert_eq!(found, expected, "seed {seed}");
            }
            cut += expected.len();
        }
        assert!(cut > 1_000, "{cut} blocks");
        let expected = ["full", "repeated", "fault", "malformed", "other_ledger", "signature", "idle"];
        assert!(expected.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    }

    #[test]
    fn a_block_is_cut_by_count_by_bytes_and_by_whoever_asks_first() {
        let mut rule = rule_of(&patient());
        let mut topic = Topic::default();
        let offer = |texts: &[&str], cut, height| Offer {
            height,
            cut,
            transactions: bytes(texts),
            ..Offer::default()
        };
        topic.offer(&rule, 0, offer(&["1", "2", "3", "4"], false, 1));
        assert!(blocks(take(&mut rule, &topic.0)).is_empty());
        topic.offer(&rule, 1, offer(&["5", "6", "7"], false, 1));
        let first = blocks(take(&mut rule, &topic.0)).remove(0);
        assert_eq!((first.block.transactions.len(), first.block.header.proposer), (4, 0), "whole records");
        assert_eq!(proof(&first).next, 1);
        topic.offer(&rule, 2, offer(&["8", "9", "10"], false, 2));
        let second = blocks(take(&mut rule, &topic.0)).remove(0);
        assert_eq!((second.block.transactions.len(), second.block.header.proposer), (6, 2), "by count");
        let long = "x".repeat(120);
        topic.offer(&rule, 0, offer(&[&long], false, 3));
        topic.offer(&rule, 0, offer(&[&format!("{long}y")], false, 3));
        let third = blocks(take(&mut rule, &topic.0)).remove(0);
        assert_eq!(third.block.transactions, bytes(&[&long]), "by bytes");
        topic.offer(&rule, 3, offer(&[], true, 4));
        topic.offer(&rule, 1, offer(&[], true, 4));
        let taken = take(&mut rule, &topic.0);
        assert_eq!(taken.last().and_then(|taken| taken.dropped.clone()), Some(Dropped::Idle { height: 5 }));
        let fourth = blocks(taken).remove(0);
        assert_eq!(
            (fourth.block.transactions.len(), fourth.block.header.proposer),
            (1, 3),
            "by who asks first"
        );
        assert_eq!(fourth.block.header.timestamp_ms, topic.0[5].time_ms.expect("a time"));
        let too_long = vec!["x"; 7];
        topic.offer(&rule, 0, offer(&too_long, false, 5));
        assert_eq!(dropped(&mut rule, &topic).name(), "too_long");
    }

    #[test]
    fn empty_blocks_keep_their_distance_and_time_never_goes_back() {
        let mut rule = rule_of(&patient());
        let mut topic = Topic::default();
        let cut = |height| Offer { height, cut: true, ..Offer::default() };
        let sign = |offer, rule: &Rule| Record::sign(offer, (rule.ledger, 0), &node_key(0)).to_bytes();
        topic.append(sign(cut(1), &rule), 10_000);
        assert_eq!(blocks(take(&mut rule, &topic.0)).len(), 1);
        topic.append(sign(cut(2), &rule), 10_049);
        assert_eq!(dropped(&mut rule, &topic), Dropped::Idle { height: 2 });
        topic.append(sign(cut(2), &rule), 10_050);
        let second = blocks(take(&mut rule, &topic.0)).remove(0);
        assert_eq!(second.block.header.timestamp_ms, 10_050);
        // A broker whose clock is an hour behind, and one that says the year 300,000,000.
        let some = |height| Offer { transactions: bytes(&["one"]), ..cut(height) };
        topic.append(sign(some(3), &rule), 9_000);
        assert_eq!(last(&mut rule, &topic).blocks[0].0.block.header.timestamp_ms, 10_051);
        topic.append(sign(some(4), &rule), u64::MAX / 2);
        assert_eq!(last(&mut rule, &topic).blocks[0].0.block.header.timestamp_ms, 10_052);
        topic.append(sign(cut(5), &rule), 9_001);
        assert_eq!(last(&mut rule, &topic).blocks.len(), 1, "its clock is behind");
    }

    #[test]
    fn nothing_is_cut_before_outcomes_are_certified_and_the_certificate_opens_it() {
        let mut rule = rule_of(&founding());
        let (mut topic, ledger) = (Topic::default(), rule.ledger);
        let some = |height: u64, text: &str| Offer {
            height,
            cut: true,
            transactions: bytes(&[text]),
            ..Offer::default()
        };
        for height in 1..=3 {
            topic.offer(&rule, 0, some(height, &format!("at {height}")));
            assert_eq!(last(&mut rule, &topic).blocks.len(), 1);
        }
        topic.offer(&rule, 1, some(4, "waits"));
        assert!(last(&mut rule, &topic).blocks.is_empty() && !rule.is_open());
        topic.offer(
            &rule,
            1,
            Offer { cut: false, transactions: bytes(&["1", "2", "3", "4", "5", "6"]), ..some(4, "") },
        );
        assert_eq!(dropped(&mut rule, &topic), Dropped::Full);
        let forged = Attested {
            outcome: Some(Signed { signatures: Vec::new(), ..outcome(2, (ledger, ledger)) }),
            ..Attested::default()
        };
        topic.offer(&rule, 1, Offer { height: 4, attested: forged, ..Offer::default() });
        assert_eq!(dropped(&mut rule, &topic).name(), "fault");
        topic.offer(&rule, 2, Offer { height: 4, attested: carrying(2, ledger), ..Offer::default() });
        let opened = last(&mut rule, &topic).blocks.remove(0).0;
        let header = &opened.block.header;
        assert_eq!((header.transactions, header.certified_height, header.proposer), (1, 2, 2));
        topic.offer(&rule, 3, Offer { height: 5, attested: carrying(2, ledger), ..Offer::default() });
        assert_eq!(dropped(&mut rule, &topic), Dropped::Idle { height: 5 }, "it is certified");
    }

    #[test]
    fn strangers_old_records_and_what_is_refused_are_dropped_by_name() {
        let mut rule = rule_of(&founding());
        let (mut topic, ledger) = (Topic::default(), rule.ledger);
        let some = |text: &str| Offer { height: 1, transactions: bytes(&[text]), ..Offer::default() };
        topic.offer(&rule, 0, some("good"));
        assert!(last(&mut rule, &topic).dropped.is_none());
        let cases: [(Vec<u8>, &str); 5] = [
            (b"nothing".to_vec(), "malformed"),
            (Record::sign(some("1"), (sha256(&[b"other"]), 0), &node_key(0)).to_bytes(), "other_ledger"),
            (Record::sign(some("2"), (ledger, MEMBERS), &node_key(4)).to_bytes(), "stranger"),
            (Record::sign(some("3"), (ledger, 1), &node_key(2)).to_bytes(), "signature"),
            (Record::sign(some("bad"), (ledger, 1), &node_key(1)).to_bytes(), "fault"),
        ];
        for (record, name) in cases {
            topic.append(record, 5_000);
            assert_eq!(dropped(&mut rule, &topic).name(), name);
        }
        topic.offer(&rule, 3, some("good"));
        assert_eq!(dropped(&mut rule, &topic), Dropped::Repeated, "offered by two members");
        let parent = Parent { height: 2_000, ..*rule.parent() };
        rule.begin_behind(parent, rule.next());
        topic.offer(&rule, 3, some("old"));
        assert_eq!(dropped(&mut rule, &topic), Dropped::Stale { offered: 1, height: 2_001 });
    }

    #[test]
    fn the_first_record_binds_the_topic_to_its_ledger() {
        let rule = || rule_of(&founding());
        let first = |bytes: Vec<u8>| {
            let (mut topic, mut rule) = (Topic::default(), rule());
            topic.append(bytes, 5);
            let read = rule.read(topic.0).remove(0);
            rule.take(&read).map(|_| ())
        };
        let other = sha256(&[b"other"]);
        let stuck = first(Record::sign(Offer::default(), (other, 0), &node_key(0)).to_bytes());
        assert_eq!(stuck, Err(Stuck::OtherLedger { expected: rule().ledger, found: other }));
        assert!(matches!(first(b"something".to_vec()), Err(Stuck::NoLedger(_))));
        let own = Record::sign(Offer::default(), (rule().ledger, 0), &node_key(0)).to_bytes();
        assert_eq!(first(own), Ok(()));
    }

    #[test]
    fn members_come_in_and_leave_at_the_height_that_the_chain_says() {
        let Charter { organisations, block, .. } = charter(1, 5);
        let founding = Charter { organisations, block, ..founding() };
        let amended = founding.amended(&CharterChange::RemoveOrganisation { name: "org5".to_string() });
        let amended = AmendedCharter { charter: amended.expect("it may leave"), effective_height: 5 };
        let mut charters = Charters::new(Arc::new(founding.clone()));
        charters.add(amended.clone()).expect("the next one");
        let mut rule = rule_of(&founding);
        let (mut topic, ledger) = (Topic::default(), rule.ledger);
        let some = |height: u64| Offer {
            height,
            cut: true,
            transactions: bytes(&[&format!("at {height}")]),
            ..Offer::default()
        };
        topic.offer(&rule, 4, some(1));
        take(&mut rule, &topic.0);
        let named = Attested {
            outcome: Some(outcome(1, (ledger, charters.digest()))),
            checkpoint: None,
            charters: vec![amended],
        };
        topic.offer(&rule, 4, Offer { attested: named, ..some(2) });
        let carries = last(&mut rule, &topic).blocks.remove(0).0;
        assert_eq!(carries.block.header.charters, charters.digest());
        for height in 3..=5 {
            let attested = Attested {
                outcome: Some(outcome(height - 1, (ledger, charters.digest()))),
                ..Attested::default()
            };
            topic.offer(&rule, 4, Offer { attested, ..some(height) });
            let Taken { blocks, dropped, .. } = last(&mut rule, &topic);
            match height {
                5 => assert_eq!(dropped, Some(Dropped::Stranger { member: 4, height: 5 })),
                _ => assert_eq!(blocks.len(), 1, "height {height}: {dropped:?}"),
            }
        }
    }

    #[test]
    fn every_flipped_byte_of_a_certificate_shows_but_for_offsets_and_so_do_other_transactions() {
        let verifier = CertificateVerifier::new(Charters::new(Arc::new(founding()))).expect("good keys");
        let mut rule = rule_of(&founding());
        let mut topic = Topic::default();
        let offer =
            |texts: &[&str], cut| Offer { height: 1, cut, transactions: bytes(texts), ..Offer::default() };
        topic.offer(&rule, 0, offer(&["1", "2"], false));
        topic.offer(&rule, 1, offer(&["2", "3", "4"], false));
        topic.offer(&rule, 2, offer(&[], true));
        let Delivery { block, certificate } = blocks(take(&mut rule, &topic.0)).remove(0);
        let proof = proof(&Delivery { block: block.clone(), certificate: certificate.clone() });
        assert_eq!(proof.parts.iter().map(|part| part.kept).collect::<Vec<_>>(), [2, 2, 0]);
        assert_eq!(proof.parts[1].left_out.len(), 1, "what stands there already");
        let good = |block: &Block, bytes: &[u8]| verifier.verify_block(block, bytes).is_ok();
        assert!(good(&block, &certificate));
        let mut unnoticed = Vec::new();
        for at in 0..certificate.len() {
            let mut flipped = certificate.to_vec();
            flipped[at] ^= 1;
            if good(&block, &flipped) {
                let changed = match types::decode_exactly(&flipped).expect("it decodes") {
                    Certificate::Kafka(changed) => changed,
                    other => panic!("found {other:?}"),
                };
                let without = |proof: &Proof| {
                    let parts = proof.parts.iter().cloned();
                    parts.map(|part| Part { offset: 0, ..part }).collect::<Vec<_>>()
                };
                assert_eq!(without(&changed), without(&proof), "byte {at}");
                unnoticed.push(at);
            }
            assert!(!good(&block, &certificate[..at]), "{at} bytes");
        }
        assert!(unnoticed.len() <= 4 * 8, "offsets alone: {unnoticed:?}");
        let mut others = block.clone();
        others.transactions[2] = Bytes::from_static(b"5");
        assert!(!good(&others, &certificate), "a transaction that nobody has signed");
        others = block.clone();
        others.transactions.swap(0, 1);
        assert!(!good(&others, &certificate), "another order");
    }
}
