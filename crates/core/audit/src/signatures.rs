//! Who signed what: clients, those who vouch for them, endorsers. Batches over several blocks, because a signature costs
//! the less the more are verified together.

use crate::error::{Fault, Part};
use bytes::Bytes;
use crypto::{Digest, PublicKey, Signature, SignedMessage};
use ledger::BlockRecord;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::hash::Hash;
use types::{
    Charters, Credential, EndorsedSimulation, Outcome, Place, Receipt, RejectReason, SignedTransaction,
    TransactionId, endorsement_message, endorsement_roots,
};

/// Signatures of one kind that are remembered as good.
const REMEMBERED_MAX: usize = 65_536;

/// A client's key, and who vouches for it.
type Client = (PublicKey, Credential);
/// An endorser's number, its key at the height that it names, the root that it signed, and its signature.
type EndorserSignature = (u16, PublicKey, Digest, Signature);

/// Signs and vouches in one ledger. What many transactions rest on is verified once.
pub(crate) struct SignatureRules {
    ledger: Digest,
    /// Of all heights that it is asked about.
    charters: Charters,
    clients: Mutex<FxHashSet<Client>>,
    endorsers: Mutex<FxHashSet<EndorserSignature>>,
}

/// What a receipt says of its transaction's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// They are a transaction that its client has signed.
    Signed,
    /// They are no transaction of this ledger.
    Malformed,
    /// Nobody who may has signed it.
    Unsigned,
    /// Its client's organisation is no member at this height.
    NoMember,
    /// Its endorsements are not what they must be; whether that is so, execution tells.
    Unendorsed,
}

impl Claim {
    fn of(receipt: &Receipt) -> Claim {
        match &receipt.outcome {
            Outcome::Rejected(RejectReason::Malformed(_)) => Claim::Malformed,
            Outcome::Rejected(RejectReason::Unsigned(_)) => Claim::Unsigned,
            Outcome::Rejected(RejectReason::NoMember { .. }) => Claim::NoMember,
            Outcome::Rejected(RejectReason::Endorsement(_)) => Claim::Unendorsed,
            _ => Claim::Signed,
        }
    }
}

/// Position of a block in the piece, and of a transaction in the block.
type Position = (usize, u32);

/// A transaction whose signatures are still to be verified.
struct Pending<'a> {
    position: Position,
    height: u64,
    claim: Claim,
    id: &'a TransactionId,
    client: Client,
    signature: Signature,
    endorsed: Option<Box<EndorsedSimulation>>,
    endorsers: Vec<EndorserSignature>,
}

impl SignatureRules {
    pub(crate) fn new(charters: Charters) -> SignatureRules {
        SignatureRules {
            ledger: charters.ledger(),
            charters,
            clients: Mutex::default(),
            endorsers: Mutex::default(),
        }
    }

    /// Holds the transactions of some blocks, with their ids, against the receipts. The first that is wrong, with the
    /// position of its block.
    pub(crate) fn check(&self, blocks: &[(BlockRecord, Vec<TransactionId>)]) -> Result<(), (usize, Fault)> {
        let (mut pending, mut faults) = (Vec::new(), BTreeMap::new());
        for (number, (record, ids)) in blocks.iter().enumerate() {
            let transactions = record.block.transactions.iter().zip(ids).zip(&record.outcome.receipts);
            for ((bytes, id), receipt) in transactions {
                let (height, index) = (record.block.header.height, receipt.index);
                match self.decode((number, index), height, bytes, id, Claim::of(receipt)) {
                    Ok(transaction) => pending.extend(transaction),
                    Err(what) => drop(faults.insert((number, index), what)),
                }
            }
        }
        self.find_endorsers(&mut pending, &mut faults);
        self.verify(&pending, &mut faults);
        match faults.pop_first() {
            None => Ok(()),
            Some(((number, index), what)) => Err((number, (Part::Transaction(index), what))),
        }
    }

    /// Nothing where there is no signature to verify.
    fn decode<'a>(
        &self,
        position: Position,
        height: u64,
        bytes: &Bytes,
        id: &'a TransactionId,
        claim: Claim,
    ) -> Result<Option<Pending<'a>>, String> {
        let decoded = SignedTransaction::from_bytes(bytes).map_err(|error| error.to_string());
        let decoded = decoded.and_then(|signed| match signed.transaction.ledger {
            ledger if ledger == self.ledger => Ok(signed),
            other => Err(format!("it is one of ledger {other}")),
        });
        let signed = match (decoded, claim) {
            (Err(_), Claim::Malformed) => return Ok(None),
            (Ok(_), Claim::Malformed) => {
                return Err(format!("expected what its receipt calls malformed, found transaction {id}"));
            }
            (Err(what), _) => return Err(format!("expected a transaction of this ledger: {what}")),
            (Ok(signed), _) => signed,
        };
        let members = self.charters.at(height).charter.organisations.len();
        let organisation = signed.credential.organisation;
        if usize::from(organisation) >= members {
            return match claim {
                Claim::NoMember => Ok(None),
                _ => Err(format!("expected a credential of a member below {members}, found {organisation}")),
            };
        }
        let member = &self.charters.at(height).charter.organisations[usize::from(organisation)];
        if claim == Claim::NoMember && !member.removed {
            return Err(format!("expected what its receipt calls no member's, found one of {}", member.name));
        }
        if claim == Claim::Unendorsed {
            return Ok(None);
        }
        let client = (signed.transaction.client, signed.credential);
        let (signature, endorsed) = (signed.signature, signed.endorsed.filter(|_| claim == Claim::Signed));
        Ok(Some(Pending { position, height, claim, id, client, signature, endorsed, endorsers: Vec::new() }))
    }

    /// What endorsers must have signed.
    fn find_endorsers(&self, pending: &mut [Pending<'_>], faults: &mut BTreeMap<Position, String>) {
        let simulations: Vec<(TransactionId, &EndorsedSimulation)> =
            pending.iter().filter_map(|one| Some((*one.id, one.endorsed.as_deref()?))).collect();
        if simulations.is_empty() {
            return;
        }
        let mut roots = endorsement_roots(&simulations).into_iter();
        for one in pending.iter_mut() {
            let Some(simulation) = &one.endorsed else { continue };
            let roots = roots.next().unwrap_or_default();
            for (endorsement, root) in simulation.endorsements.iter().zip(roots) {
                let member = endorsement.organisation;
                let place = Place { charters: &self.charters, height: one.height };
                let organisations = &place.charter_before(endorsement.snapshot).organisations;
                let key = organisations.get(usize::from(member)).map(|known| known.node_key);
                let root = root.filter(|_| one.endorsers.iter().all(|(other, ..)| *other != member));
                match root.zip(key) {
                    Some((root, key)) => one.endorsers.push((member, key, root, endorsement.signature)),
                    None => {
                        let what =
                            format!("expected one good endorsement of each endorser, found one of {member}");
                        faults.entry(one.position).or_insert(what);
                    }
                }
            }
        }
    }

    fn verify(&self, pending: &[Pending<'_>], faults: &mut BTreeMap<Position, String>) {
        let organisations = &self.charters.newest().charter.organisations;
        let forged_clients =
            self.forged(&self.clients, pending.iter().map(|one| one.client), |(key, credential)| {
                let root = organisations[usize::from(credential.organisation)].root_key;
                (root, credential.signature, Credential::message(&self.ledger, key))
            });
        let forged_endorsers = self.forged(
            &self.endorsers,
            pending.iter().flat_map(|one| one.endorsers.iter().copied()),
            |(_, key, root, signature)| (*key, *signature, endorsement_message(&self.ledger, root)),
        );
        let messages: Vec<SignedMessage<'_>> = pending
            .iter()
            .map(|one| SignedMessage { key: one.client.0, signature: one.signature, message: &one.id.0.0 })
            .collect();
        for (one, signed) in pending.iter().zip(crypto::verify_batch(&messages)) {
            let vouched = !forged_clients.contains(&one.client);
            let forged = one.endorsers.iter().find(|endorser| forged_endorsers.contains(*endorser));
            let what = match (one.claim, signed, vouched, forged) {
                (Claim::Unsigned, true, true, _) => {
                    "expected what its receipt calls not signed, found good signatures".to_string()
                }
                (Claim::Unsigned, ..) | (_, true, true, None) => continue,
                (_, false, ..) => format!("expected the signature of client {}", one.client.0),
                (_, _, false, _) => {
                    let member = one.client.1.organisation;
                    format!("expected a credential that member {member} has signed for {}", one.client.0)
                }
                (.., Some((member, ..))) => format!("expected the endorsement of member {member}"),
            };
            faults.entry(one.position).or_insert(what);
        }
    }

    /// Those that are not what they say; the others are remembered.
    fn forged<T: Copy + Eq + Hash>(
        &self,
        known: &Mutex<FxHashSet<T>>,
        all: impl Iterator<Item = T>,
        signed: impl Fn(&T) -> (PublicKey, Signature, Vec<u8>),
    ) -> FxHashSet<T> {
        let mut strangers: FxHashSet<T> = FxHashSet::default();
        {
            let known = known.lock();
            strangers.extend(all.filter(|one| !known.contains(one)));
        }
        let strangers: Vec<T> = strangers.into_iter().collect();
        let texts: Vec<(PublicKey, Signature, Vec<u8>)> = strangers.iter().map(signed).collect();
        let messages: Vec<SignedMessage<'_>> = texts
            .iter()
            .map(|(key, signature, message)| SignedMessage { key: *key, signature: *signature, message })
            .collect();
        let verdicts = crypto::verify_batch(&messages);
        let mut known = known.lock();
        let mut forged = FxHashSet::default();
        for (one, good) in strangers.into_iter().zip(verdicts) {
            if !good {
                forged.insert(one);
                continue;
            }
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            known.insert(one);
        }
        forged
    }
}
