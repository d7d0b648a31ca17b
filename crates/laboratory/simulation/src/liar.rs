//! Nodes that run and lie: in what they tell about outcomes, in what they put into blocks, in what they endorse.

use crate::private::PartLies;
use bytes::Bytes;
use crossbeam_channel::Receiver;
use crypto::{Digest, sha256};
use node::simulation::retell;
use ordering::simulation::node_key;
use ordering::{
    Admission, CertificateError, CertifyOutcomes, Delivery, ExchangeMessages, Ordering, OrderingStatus,
    Services, SubmitError,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use types::{
    BlockHeader, Charters, CheckpointCertificate, CheckpointRoot, EndorsedEffects, OutcomeCertificate,
    OutcomeHeader, Place, Proposal, ProposalAnswer, ProposalRefusal, ProposalReply, ProposalRequest,
    RejectReason, RowWrite, SignedTransaction, TransactionId, Value, endorse,
};

/// What a node lies about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// It signs other outcomes and roots of the state than it found.
    Attestations,
    /// It signs other outcomes now and then, and the right ones too.
    Contradictions,
    /// Its blocks carry certificates of outcomes that nobody found, and it tells the others of such.
    Certificates,
    /// Its blocks are full of transactions that nobody has signed.
    Transactions,
    /// Its blocks repeat transactions that stand in blocks already.
    Repetitions,
    /// It says nothing about outcomes.
    Silence,
    /// What it sends to nodes that join from its checkpoint is changed on the way.
    Checkpoints,
    /// It endorses what transactions do not do, and hands transactions to ordering that do something else than was endorsed.
    Endorsements,
    /// It signs that it holds parts of schemas, and neither stores them nor hands them out.
    HoldsNothing,
    /// It has transactions ordered whose parts it alone holds, and hands out none.
    WithholdsParts,
    /// The parts that it hands out are other ones, for each member.
    AltersParts,
    /// It tells some members other votes than the rest.
    Votes,
    /// It attests other outcomes of schemas than it found.
    SchemaOutcomes,
    /// It hands in the parts of other clients as if they were its own.
    Replays,
    /// It says nothing about schemas.
    SchemaSilence,
    /// It brings votes into the ledger that nobody has cast.
    SchemaCertificates,
    /// It asks for the parts of schemas that it is no member of.
    AsksForParts,
}

impl Lie {
    /// Those about schemas with members.
    pub const PRIVATE: [Lie; 9] = [
        Lie::HoldsNothing,
        Lie::WithholdsParts,
        Lie::AltersParts,
        Lie::Votes,
        Lie::SchemaOutcomes,
        Lie::Replays,
        Lie::SchemaSilence,
        Lie::SchemaCertificates,
        Lie::AsksForParts,
    ];
}

/// What a lying organisation adds to the last number that a transaction writes.
const STOLEN: i64 = 1_000;

/// Transactions that a node has and repeats.
const REPEATED_MAX: usize = 256;

/// What the network gives to a lying node, as it uses it.
pub(crate) struct LyingServices {
    inner: Services,
    ledger: Digest,
    organisation: usize,
    lie: Lie,
    told: AtomicU64,
    /// Messages to nodes that join.
    sent: AtomicU64,
    /// What clients have submitted here.
    known: Mutex<Vec<Bytes>>,
    /// What it does with messages about schemas.
    parts: PartLies,
}

impl LyingServices {
    /// The node of this organisation on this ledger lies.
    pub(crate) fn around(inner: Services, ledger: Digest, organisation: usize, lie: Lie) -> Services {
        Services::of(Arc::new(LyingServices {
            inner,
            ledger,
            organisation,
            lie,
            told: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            known: Mutex::default(),
            parts: PartLies::new(ledger, organisation, lie),
        }))
    }

    /// One of those that clients have submitted here, once more.
    fn repeat(&self) {
        let told = self.told.fetch_add(1, Atomic::Relaxed) as usize;
        let known = self.known.lock();
        if let Some(one) = known.len().checked_sub(1).map(|last| known[told % (last + 1)].clone()) {
            let _ = self.inner.ordering.submit(vec![one]);
        }
    }

    /// Endorsed transactions, changed: with this organisation's word alone for what they do now, or with that of those who
    /// have endorsed something else.
    fn forge(&self, transactions: &[Bytes]) -> Vec<Bytes> {
        let forged = |bytes: &Bytes| {
            let mut signed = SignedTransaction::from_bytes(bytes).ok()?;
            let id = signed.transaction.id();
            let endorsed = signed.endorsed.as_mut()?;
            let snapshot = endorsed.endorsements.first()?.snapshot;
            change_effects(&mut endorsed.effects);
            if self.told.fetch_add(1, Atomic::Relaxed).is_multiple_of(2) {
                let found = [(id, endorsed.effects.digest())];
                let (key, organisation) = (node_key(self.organisation), self.organisation as u16);
                endorsed.endorsements = endorse(&key, organisation, &self.ledger, snapshot, &found);
            }
            Some(Bytes::from(signed.to_bytes()))
        };
        transactions.iter().filter_map(forged).collect()
    }

    fn lies_now(&self) -> bool {
        let told = self.told.fetch_add(1, Atomic::Relaxed);
        match self.lie {
            Lie::Attestations | Lie::Certificates => true,
            Lie::Contradictions => told % 2 == 1,
            _ => false,
        }
    }
}

fn other(outcome: &mut OutcomeHeader) {
    outcome.state_digest = sha256(&[&outcome.state_digest.0]);
}

fn other_root(root: &mut CheckpointRoot) {
    root.state_root = sha256(&[&root.state_root.0]);
}

/// The transaction does, and says that it did, something else.
fn change_effects(effects: &mut EndorsedEffects) {
    let change = |value: &mut Value| {
        if let Value::BigInt(number) = value {
            *number += STOLEN;
        }
    };
    if let Some(write) = effects.writes.last_mut() {
        match &mut write.write {
            RowWrite::Put(row) => {
                let mut values = row.to_vec();
                values.last_mut().into_iter().for_each(change);
                *row = values.into();
            }
            RowWrite::Assign(values) => values.last_mut().into_iter().for_each(|(_, value)| change(value)),
            RowWrite::Add { amount, .. } => *amount += STOLEN,
            RowWrite::Delete => {}
        }
    }
    let said = effects.results.last_mut().and_then(|result| result.rows.last_mut());
    said.and_then(|row| row.last_mut()).into_iter().for_each(change);
}

/// What the lying organisation answers to a request for endorsements, by turns: `honest` answers it as it should be.
pub(crate) fn endorse_wrongly(
    organisation: usize,
    ledger: &Digest,
    request: &ProposalRequest,
    turn: u64,
    honest: impl Fn(ProposalRequest) -> Option<ProposalReply>,
) -> Option<ProposalReply> {
    if turn.is_multiple_of(5) {
        return honest(request.clone());
    }
    // So that it hears what they do.
    let proposals = request.proposals.iter().map(|one| Proposal { expected: None, ..one.clone() }).collect();
    let ProposalReply::Answers { height, answers } =
        honest(ProposalRequest { height: request.height, proposals })?
    else {
        return None;
    };
    let sign = |id, height, digest| {
        endorse(&node_key(organisation), organisation as u16, ledger, height, &[(id, digest)]).remove(0)
    };
    let lie = |(answer, proposal): (Result<ProposalAnswer, ProposalRefusal>, &Proposal)| {
        let Ok(signed) = SignedTransaction::from_bytes(&proposal.transaction) else { return answer };
        let Ok(ProposalAnswer::Found { mut effects, .. }) = answer else { return answer };
        let (id, right) = (signed.transaction.id(), effects.digest());
        change_effects(&mut effects);
        match turn % 5 {
            // Something else than it signs.
            1 => Ok(ProposalAnswer::Agreed(sign(id, height, effects.digest()))),
            2 => Ok(ProposalAnswer::Agreed(sign(id, height + 1, right))),
            3 => {
                let endorsement = sign(id, height, effects.digest());
                Ok(ProposalAnswer::Found { effects, endorsement })
            }
            _ => Err(ProposalRefusal::Busy),
        }
    };
    let answers = answers.into_iter().zip(&request.proposals).map(lie).collect();
    Some(ProposalReply::Answers { height, answers })
}

/// Which bit is for the message to say.
fn one_bit_changed(message: &[u8]) -> Bytes {
    let (chance, mut changed) = (sha256(&[message]).0, message.to_vec());
    let place = u64::from_le_bytes(std::array::from_fn(|byte| chance[byte])) as usize % message.len().max(1);
    if let Some(byte) = changed.get_mut(place) {
        *byte ^= 1 << (chance[8] % 8);
    }
    changed.into()
}

impl Ordering for LyingServices {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        if self.lie == Lie::Transactions {
            let number = self.told.fetch_add(1, Atomic::Relaxed);
            let nobodys = |position: u64| {
                Bytes::from(sha256(&[&number.to_le_bytes(), &position.to_le_bytes()]).0.repeat(4))
            };
            let mut forged: Vec<Bytes> = (0..8).map(nobodys).collect();
            // A client's, changed.
            forged.extend(transactions.iter().map(|bytes| {
                let mut changed = bytes.to_vec();
                if let Some(last) = changed.last_mut() {
                    *last ^= 1;
                }
                Bytes::from(changed)
            }));
            let _ = self.inner.ordering.submit(forged);
        }
        if self.lie == Lie::Endorsements {
            let _ = self.inner.ordering.submit(self.forge(&transactions));
        }
        if self.lie == Lie::Repetitions {
            let mut known = self.known.lock();
            let room = REPEATED_MAX.saturating_sub(known.len());
            known.extend(transactions.iter().take(room).cloned());
        }
        self.inner.ordering.submit(transactions)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.inner.ordering.submit_together(transactions)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        self.inner.ordering.deliveries()
    }

    fn acknowledge(&self, height: u64) {
        self.parts.recorded(height);
        self.inner.ordering.acknowledge(height);
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        self.inner.ordering.skip_to(header, certificate)
    }

    fn read(&self, height: u64) -> Option<Delivery> {
        self.inner.ordering.read(height)
    }

    fn forget_below(&self, height: u64) {
        self.inner.ordering.forget_below(height);
    }

    fn status(&self) -> OrderingStatus {
        self.inner.ordering.status()
    }

    fn metrics(&self) -> String {
        self.inner.ordering.metrics()
    }

    fn stop(&self) {
        self.inner.ordering.stop();
    }
}

impl CertifyOutcomes for LyingServices {
    fn certify(&self, mut certificate: OutcomeCertificate) {
        if self.lie == Lie::Certificates {
            other(&mut certificate.statement);
        }
        self.inner.certifying.certify(certificate);
    }

    fn certify_checkpoint(&self, mut certificate: CheckpointCertificate) {
        if self.lie == Lie::Certificates {
            other_root(&mut certificate.statement);
        }
        self.inner.certifying.certify_checkpoint(certificate);
    }

    fn decided(&self, charters: Charters) {
        self.inner.certifying.decided(charters);
    }

    fn charters(&self) -> Charters {
        self.inner.certifying.charters()
    }

    fn follow(&self, charters: &Charters) {
        self.inner.certifying.follow(charters);
    }
}

impl ExchangeMessages for LyingServices {
    fn broadcast(&self, message: Bytes) {
        match self.lie {
            Lie::Silence => return,
            // Whenever it has something to say, which is after every block.
            Lie::Repetitions => self.repeat(),
            _ => {}
        }
        let message = match self.lies_now() {
            true => retell(&message, &node_key(self.organisation), other, other_root).unwrap_or(message),
            false => message,
        };
        self.inner.messages.broadcast(message);
    }

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        self.inner.messages.messages()
    }

    fn tell(&self, member: u16, message: Bytes) {
        let lies = self.lie == Lie::Checkpoints && self.sent.fetch_add(1, Atomic::Relaxed) % 2 == 1;
        let message = if lies { one_bit_changed(&message) } else { message };
        if let Some(message) = self.parts.tell(member, message, &self.inner) {
            self.inner.messages.tell(member, message);
        }
    }

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        self.parts.hear(&self.inner)
    }
}

/// Admission that takes every transaction for one that it has never seen: what a proposer has whose blocks repeat others.
pub(crate) struct ForgetsAll {
    inner: Arc<dyn Admission>,
    looks: AtomicU64,
}

impl ForgetsAll {
    pub(crate) fn around(inner: Arc<dyn Admission>) -> ForgetsAll {
        ForgetsAll { inner, looks: AtomicU64::new(0) }
    }
}

impl Admission for ForgetsAll {
    fn check(&self, place: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        let look = self.looks.fetch_add(1, Atomic::Relaxed).to_le_bytes();
        let judged = self.inner.check(place, transactions).into_iter();
        judged.map(|judged| judged.map(|id| TransactionId(sha256(&[&id.0.0, &look])))).collect()
    }
}

/// Admission of everything: what a proposer has that fills its blocks with what it likes.
pub(crate) struct AdmitsAnything(pub(crate) Arc<dyn Admission>);

impl Admission for AdmitsAnything {
    fn check(&self, place: Place<'_>, transactions: &[Bytes]) -> Vec<Result<TransactionId, RejectReason>> {
        let judged = self.0.check(place, transactions).into_iter().zip(transactions);
        judged.map(|(judged, bytes)| Ok(judged.unwrap_or_else(|_| TransactionId(sha256(&[bytes]))))).collect()
    }
}
