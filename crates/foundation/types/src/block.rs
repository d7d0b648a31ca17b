use crate::{Attested, SignedTransaction, encode, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, Sha256Batch, leaf_hash, merkle_root, node_hash, sha256};
use std::collections::BTreeMap;

/// What the certificate of a block signs: the chain, the transactions' root, height and time.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct BlockHeader {
    /// Digest of the charter.
    pub ledger: Digest,
    /// The first block has height 1; height 0 is the charter itself.
    pub height: u64,
    /// Milliseconds since 1970-01-01 00:00 UTC, larger than the previous block's. `now()` in contracts.
    pub timestamp_ms: u64,
    /// Digest of the previous block's header; of the charter for the first block.
    pub previous: Digest,
    /// Merkle root over the transactions grouped by contract: [`transactions_root`].
    pub transactions_root: Digest,
    /// How many transactions follow.
    pub transactions: u32,
    /// Position in the charter of the organisation that proposed the block.
    pub proposer: u16,
    /// The highest height whose outcome is certified in this block or in one before it; 0 for none.
    pub certified_height: u64,
    /// Digest of the certificates that follow: [`Attested::digest`].
    pub attested: Digest,
    /// Names all amended charters that this block or one before it carries ([`Attested::charters`]); the digest of the
    /// founding charter while there is none.
    pub charters: Digest,
}

impl BlockHeader {
    /// SHA-256 over domain and canonical encoding: what the next header chains, what a certificate signs.
    pub fn digest(&self) -> Digest {
        sha256(&[b"entente block 1\0", &encode(self)])
    }
}

impl BlockHeader {
    /// Bytes of its canonical encoding: all fields have fixed widths.
    pub const BYTES: usize = 32 + 8 + 8 + 32 + 32 + 4 + 2 + 8 + 32 + 32;
}

/// A header with certificates of earlier blocks' outcomes and its transactions, each in its canonical encoding and in the
/// order of the block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// What is chained and certified.
    pub header: BlockHeader,
    /// What organisations attest of blocks before.
    pub attested: Attested,
    /// Encoded [`SignedTransaction`]s, slices of the bytes that the block was read from.
    pub transactions: Vec<Bytes>,
}

/// Why bytes are no block.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BlockError {
    /// Not the encoding of a block.
    #[error("expected the encoding of a block: {0}")]
    Malformed(String),
    /// The header promises other certificates than follow.
    #[error("the block's certificates have the digest {found}, its header says {expected}")]
    Attested {
        /// Digest in the header.
        expected: Digest,
        /// Digest of the certificates.
        found: Digest,
    },
    /// The header promises other transactions than follow.
    #[error("the block's transactions have root {found}, its header says {expected}")]
    Root {
        /// Root in the header.
        expected: Digest,
        /// Root of the transactions.
        found: Digest,
    },
}

impl Block {
    /// Header, certificates, then each transaction with its length as `u32`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.head_bytes();
        bytes.reserve(self.transactions.iter().map(|transaction| transaction.len() + 4).sum());
        for transaction in &self.transactions {
            bytes.extend_from_slice(&(transaction.len() as u32).to_le_bytes());
            bytes.extend_from_slice(transaction);
        }
        bytes
    }

    /// Header and certificates in their canonical encoding: what stands in front of the transactions.
    pub fn head_bytes(&self) -> Vec<u8> {
        let mut bytes = encode(&self.header);
        bytes.extend_from_slice(&encode(&self.attested));
        bytes
    }

    /// Reads what [`Block::to_bytes`] wrote without copying the transactions. The root is checked by
    /// [`Block::check_content`], which hashes everything.
    ///
    /// # Errors
    /// [`BlockError::Malformed`] says at what.
    pub fn from_bytes(bytes: &Bytes) -> Result<Block, BlockError> {
        let malformed = |what: &str| BlockError::Malformed(what.to_string());
        let mut rest = bytes.as_ref();
        let header = BlockHeader::deserialize(&mut rest).map_err(|error| malformed(&error.to_string()))?;
        if header.transactions > limits::BLOCK_TRANSACTIONS_MAX {
            return Err(malformed("more transactions than BLOCK_TRANSACTIONS_MAX"));
        }
        let attested = Attested::deserialize(&mut rest).map_err(|error| malformed(&error.to_string()))?;
        let mut rest = bytes.slice(bytes.len() - rest.len()..);
        let mut transactions = Vec::with_capacity(header.transactions.min(4096) as usize);
        for _ in 0..header.transactions {
            let length = rest.get(..4).ok_or_else(|| malformed("a transaction's length is cut off"))?;
            let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
            if length > limits::TRANSACTION_BYTES_MAX {
                return Err(malformed("a transaction longer than TRANSACTION_BYTES_MAX"));
            }
            if rest.len() < 4 + length {
                return Err(malformed("a transaction is cut off"));
            }
            transactions.push(rest.slice(4..4 + length));
            rest = rest.slice(4 + length..);
        }
        if !rest.is_empty() {
            return Err(malformed("bytes follow the last transaction"));
        }
        Ok(Block { header, attested, transactions })
    }

    /// Compares the header's digests with those of the certificates and the transactions.
    ///
    /// # Errors
    /// [`BlockError::Attested`] and [`BlockError::Root`] with both.
    pub fn check_content(&self) -> Result<(), BlockError> {
        let (expected, found) = (self.header.attested, self.attested.digest());
        if found != expected {
            return Err(BlockError::Attested { expected, found });
        }
        let found = transactions_root(&self.transactions);
        let expected = self.header.transactions_root;
        if found == expected { Ok(()) } else { Err(BlockError::Root { expected, found }) }
    }
}

/// Merkle root over transactions grouped by contract, so that a node which follows some contracts can check its part.
///
/// One subtree per contract, in the order of names ([`SignedTransaction::contract_of`]); in it
/// the transactions in block order, each leaf binding position and content; a group's node is
/// `node_hash(leaf_hash(name), root of the group)`.
pub fn transactions_root(transactions: &[Bytes]) -> Digest {
    let mut leaves = Sha256Batch::new();
    for (position, bytes) in transactions.iter().enumerate() {
        leaves.push(&[&[0], &(position as u32).to_le_bytes(), bytes]);
    }
    let contracts = transactions.iter().map(|bytes| SignedTransaction::contract_of(bytes));
    transactions_root_of_leaves(contracts.zip(leaves.finish()))
}

/// [`transactions_root`] of transactions of which only the contract and the leaf are known, in the block's order.
pub fn transactions_root_of_leaves<'a>(leaves: impl IntoIterator<Item = (&'a str, Digest)>) -> Digest {
    let mut groups: BTreeMap<&str, Vec<Digest>> = BTreeMap::new();
    for (contract, leaf) in leaves {
        groups.entry(contract).or_default().push(leaf);
    }
    let roots: Vec<Digest> = groups
        .iter()
        .map(|(name, leaves)| node_hash(&leaf_hash(name.as_bytes()), &merkle_root(leaves)))
        .collect();
    merkle_root(&roots)
}

/// The leaf of the transaction at a position, in the group of its contract.
pub fn transaction_leaf(position: u32, bytes: &[u8]) -> Digest {
    sha256(&[&[0], &position.to_le_bytes(), bytes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Certificate, OutcomeHeader};

    fn attested() -> Attested {
        let statement = OutcomeHeader {
            ledger: sha256(&[b"ledger"]),
            height: 2,
            block: Digest([1; 32]),
            previous: Digest([2; 32]),
            receipts_root: Digest([3; 32]),
            state_digest: Digest([4; 32]),
            charters: Digest([5; 32]),
        };
        let signatures = vec![(0, crypto::Signature([5; 64])), (2, crypto::Signature([6; 64]))];
        Attested {
            outcome: Some(Certificate { statement, signatures }),
            checkpoint: None,
            charters: Vec::new(),
        }
    }

    fn block() -> Block {
        let transactions =
            vec![Bytes::from_static(b"one"), Bytes::from_static(b""), Bytes::from_static(b"three")];
        let attested = attested();
        let header = BlockHeader {
            ledger: sha256(&[b"ledger"]),
            height: 3,
            timestamp_ms: 1_700_000_000_000,
            previous: sha256(&[b"previous"]),
            transactions_root: transactions_root(&transactions),
            transactions: 3,
            proposer: 2,
            certified_height: 0,
            attested: attested.digest(),
            charters: Digest([5; 32]),
        };
        Block { header, attested, transactions }
    }

    #[test]
    fn blocks_round_trip_and_every_flipped_byte_shows() {
        let bytes = Bytes::from(block().to_bytes());
        let read = Block::from_bytes(&bytes).expect("what to_bytes wrote");
        assert_eq!(read, block());
        assert_eq!(read.check_content(), Ok(()));
        assert_eq!(encode(&read.header).len(), BlockHeader::BYTES);
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1;
            if let Ok(read) = Block::from_bytes(&Bytes::from(flipped)) {
                let same_header = read.header.digest() == block().header.digest();
                assert!(!same_header || read.check_content().is_err(), "byte {at}");
            }
        }
        for length in 0..bytes.len() {
            assert!(Block::from_bytes(&bytes.slice(..length)).is_err(), "{length} bytes");
        }
    }
}
