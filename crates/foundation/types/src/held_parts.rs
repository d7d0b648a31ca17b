//! Members' words that they hold parts, for many transactions at once.
//!
//! ```text
//! a block:  Payload::HeldParts { transactions a, b, c; holders 0, 1, 3 }    a    b    c
//!                                                └─ one signature each      └─ Payload::Parts without endorsements
//! ```
//!
//! So a transaction with parts carries nothing but its client's commitments, and a signature is verified once for all transactions
//! that it covers. The words stand in the block of the transactions, so that whoever has the block can check them.

use crate::TransactionId;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, SecretKey, Signature, sha256};

const HELD_DOMAIN: &[u8] = b"entente held parts 1\0";

/// Members of schemas say that they hold their parts of these transactions.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct HeldParts {
    /// The transactions.
    pub transactions: Vec<TransactionId>,
    /// Who says so.
    pub holders: Vec<Holder>,
}

/// A member that holds its parts of transactions.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Holder {
    /// Position of the organisation in the charter; its node's key signs.
    pub organisation: u16,
    /// Height of the last block that it had executed then.
    pub height: u64,
    /// Signature under [`HeldParts::root`], as endorsers sign a root ([`crate::endorsement_message`]).
    pub signature: Signature,
}

impl HeldParts {
    /// One member's word.
    pub fn sign(
        transactions: Vec<TransactionId>,
        (organisation, height): (u16, u64),
        (ledger, key): (&Digest, &SecretKey),
    ) -> HeldParts {
        let root = HeldParts::root(&transactions, height);
        let signature = key.sign(&crate::endorsement_message(ledger, &root));
        HeldParts { transactions, holders: vec![Holder { organisation, height, signature }] }
    }

    /// What a member signs that has executed the blocks up to a height.
    pub fn root(transactions: &[TransactionId], height: u64) -> Digest {
        let ids: Vec<&[u8]> = transactions.iter().map(|id| &id.0.0[..]).collect();
        sha256(&[HELD_DOMAIN, &height.to_le_bytes(), &sha256(&ids).0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode, endorsement_message};
    use crypto::SignedMessage;

    #[test]
    fn a_word_covers_ledger_height_and_all_transactions_in_their_order() {
        let (ledger, key) = (sha256(&[b"ledger"]), SecretKey::from_bytes([1; 32]));
        let ids: Vec<TransactionId> = (0..5_u8).map(|number| TransactionId(sha256(&[&[number]]))).collect();
        let word = HeldParts::sign(ids.clone(), (2, 7), (&ledger, &key));
        let [holder] = &word.holders[..] else { panic!("one: {word:?}") };
        let is_signed = |ledger: &Digest, ids: &[TransactionId], height: u64| {
            let message = endorsement_message(ledger, &HeldParts::root(ids, height));
            crypto::verify(&SignedMessage {
                key: key.public_key(),
                signature: holder.signature,
                message: &message,
            })
        };
        assert!(is_signed(&ledger, &ids, 7));
        assert!(!is_signed(&sha256(&[b"other"]), &ids, 7) && !is_signed(&ledger, &ids, 8));
        assert!(!is_signed(&ledger, &ids[1..], 7) && !is_signed(&ledger, &[], 7));
        let swapped: Vec<TransactionId> = ids.iter().rev().copied().collect();
        assert!(!is_signed(&ledger, &swapped, 7));
        let bytes = encode(&word);
        assert_eq!(decode_exactly::<HeldParts>(&bytes).expect("it is one"), word);
        for length in 0..bytes.len() {
            assert!(decode_exactly::<HeldParts>(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}
