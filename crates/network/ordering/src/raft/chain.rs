//! Which entries of the log are blocks: a rule that every node follows alike.
//!
//! The log holds what members have offered as the next block, signed by who offered it. Raft agrees on the log, whatever
//! stands in it. What BFT's members would have refused to vote for is dropped here, by everybody: it takes no height, and
//! the next offer that builds on the last block goes on.

use super::shared::Shared;
use crate::Delivery;
use crate::certificate::{Certificate, offer_message};
use crate::cutting::{Fault, Parent, Rules, check, check_distinct};
use crate::judging::{check_certificates, check_transactions};
use bytes::Bytes;
use crypto::{SecretKey, Signature, SignedMessage};
use types::{Block, BlockHeader, Place, TransactionId};

/// The end of the year 9999. What is earlier is the leader's to say: nodes that judge a block later, or again, have no other clock.
const TIME_MAX_MS: u64 = 253_402_300_799_999;
/// Bytes of a signature in front of a block.
const SIGNATURE_BYTES: usize = 64;

/// A block as a member offers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    pub signature: Signature,
    pub block: Block,
}

/// What an entry comes to.
#[derive(Debug)]
pub(super) enum Judged {
    /// It is the next block.
    Block { delivery: Box<Delivery>, ids: Vec<TransactionId> },
    /// It is none.
    Dropped(Dropped),
    /// It is a block that this node has, or was none at its time.
    Behind,
    /// Nothing can be said: the charters that the last block names are not known here.
    Unknown,
}

/// Why an entry is no block.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Dropped {
    #[error("it is no signed block of this ledger: {0}")]
    Malformed(String),
    #[error(
        "organisation {proposer} of the charter, whose node is said to offer it, is no member at height {height}"
    )]
    Stranger { proposer: u16, height: u64 },
    #[error("the signature is not that of organisation {proposer} of the charter")]
    Signature { proposer: u16 },
    #[error("its time, {time_ms} ms, is later than the year 9999")]
    Time { time_ms: u64 },
    #[error("{0}")]
    Fault(Fault),
}

impl Offer {
    /// Signs a block as this node's offer.
    pub(super) fn sign(block: Block, key: &SecretKey) -> Offer {
        Offer { signature: key.sign(&offer_message(&block.header.digest())), block }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [&self.signature.0[..], &self.block.to_bytes()].concat()
    }

    pub(super) fn from_bytes(bytes: &Bytes) -> Result<Offer, Dropped> {
        let malformed = |what: &str| Dropped::Malformed(what.to_string());
        let Some((signature, _)) = bytes.split_first_chunk::<SIGNATURE_BYTES>() else {
            return Err(malformed("it is shorter than a signature"));
        };
        let block = Block::from_bytes(&bytes.slice(SIGNATURE_BYTES..));
        let block = block.map_err(|error| malformed(&error.to_string()))?;
        block.check_content().map_err(|error| malformed(&error.to_string()))?;
        Ok(Offer { signature: Signature(*signature), block })
    }

    /// The header that an entry's bytes claim to begin with, without a look at the rest.
    pub(super) fn header_of(bytes: &[u8]) -> Option<BlockHeader> {
        let mut header = bytes.get(SIGNATURE_BYTES..)?;
        borsh::BorshDeserialize::deserialize(&mut header).ok()
    }

    fn into_delivery(self) -> Delivery {
        Delivery { block: self.block, certificate: Certificate::Raft(self.signature).to_bytes() }
    }
}

/// Judges an entry that stands behind the block `parent`. Verifies signatures, so it takes milliseconds.
pub(super) fn judge(shared: &Shared, parent: &Parent, bytes: &Bytes) -> Judged {
    if !shared.members.epochs.knows(&parent.charters) {
        return Judged::Unknown;
    }
    match Offer::from_bytes(bytes) {
        // Entries from before a checkpoint, or that were read for their neighbours.
        Ok(offer) if offer.block.header.height <= parent.height => Judged::Behind,
        Ok(offer) => match check_offer(shared, parent, &offer) {
            Ok(ids) => Judged::Block { delivery: Box::new(offer.into_delivery()), ids },
            Err(dropped) => Judged::Dropped(dropped),
        },
        Err(dropped) => Judged::Dropped(dropped),
    }
}

fn check_offer(shared: &Shared, parent: &Parent, offer: &Offer) -> Result<Vec<TransactionId>, Dropped> {
    let Block { header, attested, transactions } = &offer.block;
    let (height, proposer) = (parent.height + 1, header.proposer);
    let charter = shared.members.epochs.charter_at(height);
    check(&offer.block, &Rules::of(&charter, shared.ledger), parent, proposer).map_err(Dropped::Fault)?;
    if header.timestamp_ms > TIME_MAX_MS {
        return Err(Dropped::Time { time_ms: header.timestamp_ms });
    }
    let member = charter.members().find(|(position, _)| *position == proposer);
    let Some((_, member)) = member else { return Err(Dropped::Stranger { proposer, height }) };
    let (key, signature) = (member.node_key, offer.signature);
    let message = offer_message(&header.digest());
    if !crypto::verify(&SignedMessage { key, signature, message: &message }) {
        return Err(Dropped::Signature { proposer });
    }
    // What is read late, as after a time away, says nothing about its leader's clock.
    let now = (shared.wall_clock)();
    if header.timestamp_ms > now.as_millis() as u64 {
        shared.members.clocks.see(proposer, (header.timestamp_ms, parent.timestamp_ms), now);
    }
    check_certificates(&shared.members.epochs, attested).map_err(Dropped::Fault)?;
    shared.members.epochs.learn(attested).map_err(|error| Dropped::Fault(Fault::Charters(error)))?;
    let place = Place { charters: &shared.members.epochs.charters(), height };
    let ids = check_transactions(&*shared.admission, place, transactions).map_err(Dropped::Fault)?;
    check_distinct(&ids).map_err(Dropped::Fault)?;
    Ok(ids)
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::MempoolLimits;
    use crate::cutting::assemble;
    use crate::simulation::{AnyBytes, charter, node_key};
    use std::sync::Arc;
    use std::time::Duration;
    use types::{Attested, Charters};

    fn shared() -> Arc<Shared> {
        let mut charter = charter(1, 4);
        charter.ordering = "raft".to_string();
        let charters = Charters::new(Arc::new(charter));
        let clock: crate::mempool::Clock = Arc::new(|| Duration::from_secs(1));
        let clocks = [clock.clone(), clock];
        Shared::new(charters, &node_key(0), MempoolLimits::default(), clocks, Arc::new(AnyBytes), None)
    }

    /// An offer behind `parent`, by the node of one organisation.
    fn offer(shared: &Shared, parent: &Parent, proposer: usize, transactions: &[&'static str]) -> Offer {
        let transactions = transactions.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        let block = assemble(shared.ledger, parent, proposer as u16, 5, Attested::default(), transactions);
        Offer::sign(block, &node_key(proposer))
    }

    fn judged(shared: &Shared, parent: &Parent, offer: &Offer) -> Judged {
        judge(shared, parent, &offer.to_bytes().into())
    }

    fn dropped(shared: &Shared, parent: &Parent, offer: &Offer) -> String {
        match judged(shared, parent, offer) {
            Judged::Dropped(dropped) => dropped.to_string(),
            other => panic!("expected an entry that is no block, found {other:?}"),
        }
    }

    #[test]
    fn an_offer_of_a_member_on_the_last_block_is_the_next_one() {
        let shared = shared();
        let parent = Parent::charter(shared.ledger);
        let first = offer(&shared, &parent, 2, &["one", "two"]);
        let Judged::Block { delivery, ids } = judged(&shared, &parent, &first) else {
            panic!("expected a block")
        };
        assert_eq!((ids.len(), delivery.block.header.height), (2, 1));
        let charter = shared.members.epochs.charter_at(1);
        crate::verify_certificate(&charter, &delivery.block.header, &delivery.certificate)
            .expect("it is signed");
        assert_eq!(Offer::header_of(&first.to_bytes()), Some(first.block.header.clone()));
        // What was judged before is behind.
        let tip = Parent::block(&first.block.header);
        assert!(matches!(judged(&shared, &tip, &first), Judged::Behind));
        let unknown = Parent { charters: crypto::sha256(&[b"others"]), ..parent };
        assert!(matches!(judged(&shared, &unknown, &first), Judged::Unknown));
    }

    #[test]
    fn what_breaks_a_rule_is_no_block_for_anybody() {
        let shared = shared();
        let parent = Parent::charter(shared.ledger);
        let good = offer(&shared, &parent, 1, &["one"]);
        let on_another = Parent { digest: crypto::sha256(&[b"another"]), ..parent };
        assert!(dropped(&shared, &parent, &offer(&shared, &on_another, 1, &[])).contains("previous"));
        let mut late = good.clone();
        late.block.header.height = 3;
        assert!(dropped(&shared, &parent, &Offer::sign(late.block, &node_key(1))).contains("height"));
        assert!(dropped(&shared, &parent, &offer(&shared, &parent, 1, &["one", "one"])).contains("already"));
        let stranger = Offer { signature: good.signature, block: offer(&shared, &parent, 9, &[]).block };
        assert!(dropped(&shared, &parent, &stranger).contains("is no member"));
        let mut end = good.block.clone();
        end.header.timestamp_ms = u64::MAX;
        assert!(dropped(&shared, &parent, &Offer::sign(end, &node_key(1))).contains("9999"));
        let others = Offer::sign(good.block.clone(), &node_key(2));
        assert!(dropped(&shared, &parent, &others).contains("not that of organisation 1"));
    }

    #[test]
    fn every_flipped_byte_of_an_offer_shows() {
        let shared = shared();
        let parent = Parent::charter(shared.ledger);
        let bytes = offer(&shared, &parent, 0, &["one", "two"]).to_bytes();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let judged = judge(&shared, &parent, &flipped.into());
            assert!(matches!(judged, Judged::Dropped(_) | Judged::Behind), "byte {at}: {judged:?}");
        }
        for length in 0..bytes.len() {
            let judged = judge(&shared, &parent, &Bytes::copy_from_slice(&bytes[..length]));
            assert!(matches!(judged, Judged::Dropped(_)), "{length} bytes");
        }
    }
}
