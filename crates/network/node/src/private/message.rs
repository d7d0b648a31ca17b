//! What members of a schema tell each other. The messages travel from node to node on ordering's authenticated and encrypted
//! connections.

use super::part_store::HeldPart;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use ordering::MESSAGE_BYTES_MAX;
use types::{Endorsement, HeldParts, SchemaAttestation, TransactionId, decode_exactly, encode};

/// The first byte of these messages, which no message about checkpoints has.
const TAG: u8 = 0x80;

/// Bytes that go into one message, with room for what stands around them.
const PACKED_BYTES: usize = 56 * 1024;

/// An encoded transaction without signatures of members ([`types::SignedTransaction`]), and its parts in all schemas that whoever gets
/// them is a member of.
pub(super) type PartsToHold = (Vec<u8>, Vec<HeldPart>);

/// A message to one other member.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub(super) enum Message {
    /// Hold these parts, and sign that.
    Hold(Vec<PartsToHold>),
    /// The sender holds the parts of these transactions, and signs that.
    Held(Vec<(TransactionId, Endorsement)>),
    /// The sender does not hold them, and why.
    Refused {
        /// The transaction.
        transaction: TransactionId,
        /// Why.
        reason: String,
    },
    /// Who has this part?
    AskPart {
        /// The transaction.
        transaction: TransactionId,
        /// The schema.
        schema: String,
    },
    /// A part that was asked for.
    Part(HeldPart),
    /// What a block came to in a schema, in the words of the sender.
    Outcome(SchemaAttestation),
    /// What did a block come to?
    AskOutcome {
        /// [`types::SchemaMembers::number`].
        schema: u32,
        /// Height of the block.
        height: u64,
    },
    /// Hold these parts, and sign that with one signature for all: from execution version 5 on.
    HoldTogether(Vec<PartsToHold>),
    /// The sender holds the parts of these transactions, and signs that: its word and nobody else's.
    HeldTogether(HeldParts),
}

/// Whether a message between members is one about schemas.
pub(crate) fn is_private(bytes: &[u8]) -> bool {
    bytes.first() == Some(&TAG)
}

impl Message {
    /// `None` for what is longer than a message may be.
    pub(super) fn to_bytes(&self) -> Option<Bytes> {
        let mut bytes = vec![TAG];
        bytes.extend(encode(self));
        (bytes.len() <= MESSAGE_BYTES_MAX).then(|| Bytes::from(bytes))
    }

    /// `None` for anything else.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Message> {
        let (tag, content) = bytes.split_first()?;
        decode_exactly(content).ok().filter(|_| *tag == TAG)
    }
}

/// As many in a message as it holds. `size`: bytes of one's encoding.
pub(super) fn packed<T>(all: Vec<T>, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut messages, mut bytes) = (Vec::<Vec<T>>::new(), 0);
    for one in all {
        let size = size(&one);
        match messages.last_mut() {
            Some(last) if bytes + size <= PACKED_BYTES => {
                bytes += size;
                last.push(one);
            }
            _ => {
                bytes = size;
                messages.push(vec![one]);
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{PartVotes, SchemaOutcome};

    #[test]
    fn messages_round_trip_and_are_told_from_others() {
        let transaction = TransactionId(crypto::sha256(&[b"t"]));
        let outcome = SchemaOutcome {
            ledger: crypto::sha256(&[b"l"]),
            schema: 3,
            height: 9,
            outcome: crypto::sha256(&[b"d"]),
            votes: vec![PartVotes { height: 8, yes: vec![1, 2], no: vec![3] }],
            moves: vec![],
        };
        let (ledger, key) = (outcome.ledger, crypto::SecretKey::from_bytes([1; 32]));
        let attestation = SchemaAttestation::sign(outcome, 1, &key);
        let held = HeldParts::sign(vec![transaction], (1, 9), (&ledger, &key));
        let messages = [
            Message::AskPart { transaction, schema: "deal".into() },
            Message::Refused { transaction, reason: "no".into() },
            Message::Outcome(attestation),
            Message::AskOutcome { schema: 3, height: 9 },
            Message::HeldTogether(held),
        ];
        for message in messages {
            let bytes = message.to_bytes().expect("short");
            assert!(is_private(&bytes));
            assert_eq!(Message::from_bytes(&bytes), Some(message));
            assert!((0..bytes.len()).all(|length| Message::from_bytes(&bytes[..length]).is_none()));
        }
        let other = crate::joining::Message::AskOffer.to_bytes().expect("short");
        assert!(!is_private(&other) && Message::from_bytes(&other).is_none());
    }
}
