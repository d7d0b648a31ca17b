//! What members put into the topic: records that they have signed.
//!
//! ```text
//! +---------------------+----------------+----------------------------+--------------------------------------------+
//! | `entente record 1\0`| signature (64) | head, canonical encoding   | per transaction: length (4, LE), its bytes |
//! +---------------------+----------------+----------------------------+--------------------------------------------+
//! ```
//!
//! One kind of record says everything: transactions, the wish that the block be cut, certificates that a block is to carry; any of
//! them may be missing. What is signed is a [`Statement`], which names all of it by digests: so a ledger can prove who has offered what
//! although some of a record's transactions stand in no block.

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, PublicKey, SecretKey, Sha256Batch, Signature, SignedMessage, sha256};
use types::{Attested, encode, limits};

const MAGIC: &[u8] = b"entente record 1\0";
const DOMAIN: &[u8] = b"entente record statement 1\0";
const SIGNATURE_BYTES: usize = 64;
/// Bytes of a record beside its transactions and certificates, at most.
const AROUND: usize = 1024;

/// What a member signs of a record.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Statement {
    /// Position in the charter of the member that offers it.
    pub member: u16,
    /// Height of the block that was next when it was offered.
    pub height: u64,
    /// Whether that block is to be cut with what there is.
    pub cut: bool,
    /// Of the certificates in it: [`Attested::digest`].
    pub attested: Digest,
    /// How many transactions it has.
    pub transactions: u32,
    /// Of their digests, in their order: [`content`].
    pub content: Digest,
}

impl Statement {
    /// What the signature is under, in a ledger.
    pub(crate) fn message(&self, ledger: &Digest) -> Vec<u8> {
        [DOMAIN, &ledger.0, &encode(self)].concat()
    }
}

/// The digest of each transaction as records are signed.
pub(crate) fn digests<'a>(transactions: impl IntoIterator<Item = &'a Bytes>) -> Vec<Digest> {
    let mut digests = Sha256Batch::new();
    for transaction in transactions {
        digests.push(&[transaction]);
    }
    digests.finish()
}

/// The digest of a list of digests.
pub(crate) fn content(digests: &[Digest]) -> Digest {
    let parts: Vec<&[u8]> = digests.iter().map(|digest| &digest.0[..]).collect();
    sha256(&parts)
}

#[derive(BorshSerialize, BorshDeserialize)]
struct Head {
    ledger: Digest,
    statement: Statement,
    attested: Attested,
}

/// A record as it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub ledger: Digest,
    pub statement: Statement,
    pub signature: Signature,
    pub attested: Attested,
    pub transactions: Vec<Bytes>,
    /// Of each transaction.
    pub digests: Vec<Digest>,
}

/// What a node wants to say, before it is signed.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub height: u64,
    pub cut: bool,
    pub attested: Attested,
    pub transactions: Vec<Bytes>,
}

impl Record {
    /// Signs an offer as that of a member of a ledger.
    pub(super) fn sign(offer: Offer, (ledger, member): (Digest, u16), key: &SecretKey) -> Record {
        let Offer { height, cut, attested, transactions } = offer;
        let digests = digests(&transactions);
        let statement = Statement {
            member,
            height,
            cut,
            attested: attested.digest(),
            transactions: transactions.len() as u32,
            content: content(&digests),
        };
        let signature = key.sign(&statement.message(&ledger));
        Record { ledger, statement, signature, attested, transactions, digests }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Record { ledger, statement, signature, attested, .. } = self;
        let head = Head { ledger: *ledger, statement: statement.clone(), attested: attested.clone() };
        let mut bytes = [MAGIC, &signature.0, &encode(&head)].concat();
        bytes.reserve(self.transactions.iter().map(|transaction| transaction.len() + 4).sum());
        for transaction in &self.transactions {
            bytes.extend_from_slice(&(transaction.len() as u32).to_le_bytes());
            bytes.extend_from_slice(transaction);
        }
        bytes
    }

    /// Reads what [`Record::to_bytes`] wrote; digests are checked, the signature is not.
    pub(super) fn from_bytes(bytes: &Bytes) -> Result<Record, String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as one")?;
        let (signature, mut rest) =
            rest.split_first_chunk::<SIGNATURE_BYTES>().ok_or("its signature is cut off")?;
        let head = Head::deserialize(&mut rest).map_err(|error| error.to_string())?;
        let Head { ledger, statement, attested } = head;
        if statement.attested != attested.digest() {
            return Err("its certificates are not those that its statement names".to_string());
        }
        if statement.transactions > limits::BLOCK_TRANSACTIONS_MAX {
            return Err("it has more transactions than BLOCK_TRANSACTIONS_MAX".to_string());
        }
        let mut rest = bytes.slice(bytes.len() - rest.len()..);
        let mut transactions = Vec::with_capacity(statement.transactions.min(4_096) as usize);
        for _ in 0..statement.transactions {
            let length = rest.first_chunk::<4>().ok_or("a transaction's length is cut off")?;
            let length = u32::from_le_bytes(*length) as usize;
            if length > limits::TRANSACTION_BYTES_MAX {
                return Err("a transaction is longer than TRANSACTION_BYTES_MAX".to_string());
            }
            if rest.len() < 4 + length {
                return Err("a transaction is cut off".to_string());
            }
            transactions.push(rest.slice(4..4 + length));
            rest = rest.slice(4 + length..);
        }
        if !rest.is_empty() {
            return Err("bytes follow its last transaction".to_string());
        }
        let digests = digests(&transactions);
        if statement.content != content(&digests) {
            return Err("its transactions are not those that its statement names".to_string());
        }
        Ok(Record { ledger, statement, signature: Signature(*signature), attested, transactions, digests })
    }

    /// Whether whoever has this key has signed it.
    pub(super) fn is_signed_by(&self, key: PublicKey) -> bool {
        let message = self.statement.message(&self.ledger);
        crypto::verify(&SignedMessage { key, signature: self.signature, message: &message })
    }
}

/// The longest record where blocks have so many bytes of transactions at most.
pub(super) fn record_bytes_max(block_bytes_max: u32) -> u32 {
    block_bytes_max + (Attested::BYTES_MAX + AROUND) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let transactions = vec![Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"three")];
        let offer = Offer { height: 7, cut: true, attested: Attested::default(), transactions };
        Record::sign(offer, (sha256(&[b"ledger"]), 2), &SecretKey::from_bytes([9; 32]))
    }

    #[test]
    fn records_round_trip_and_every_flipped_byte_shows() {
        let (record, key) = (record(), SecretKey::from_bytes([9; 32]).public_key());
        let bytes = Bytes::from(record.to_bytes());
        assert!(bytes.len() <= record_bytes_max(20) as usize);
        let read = Record::from_bytes(&bytes).expect("what to_bytes wrote");
        assert_eq!(read, record);
        assert!(read.is_signed_by(key));
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1;
            let read = Record::from_bytes(&flipped.into());
            assert!(read.is_err() || read.is_ok_and(|read| !read.is_signed_by(key)), "byte {at}");
        }
        for length in 0..bytes.len() {
            assert!(Record::from_bytes(&bytes.slice(..length)).is_err(), "{length} bytes");
        }
    }
}
