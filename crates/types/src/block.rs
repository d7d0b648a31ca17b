use crate::{SignedTransaction, encode, limits};
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
}

impl BlockHeader {
    /// SHA-256 over domain and canonical encoding: what the next header chains, what a certificate signs.
    pub fn digest(&self) -> Digest {
        sha256(&[b"entente block 1\0", &encode(self)])
    }
}

/// A header with its transactions, each in its canonical encoding and in the order of the block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// What is chained and certified.
    pub header: BlockHeader,
    /// Encoded [`SignedTransaction`]s, slices of the bytes that the block was read from.
    pub transactions: Vec<Bytes>,
}

/// Why bytes are no block.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BlockError {
    /// Not the encoding of a block.
    #[error("expected the encoding of a block: {0}")]
    Malformed(String),
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
    /// Header, then each transaction with its length as `u32`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = encode(&self.header);
        bytes.reserve(self.transactions.iter().map(|transaction| transaction.len() + 4).sum());
        for transaction in &self.transactions {
            bytes.extend_from_slice(&(transaction.len() as u32).to_le_bytes());
            bytes.extend_from_slice(transaction);
        }
        bytes
    }

    /// Reads what [`Block::to_bytes`] wrote without copying the transactions. The root is checked by
    /// [`Block::check_root`], which hashes everything.
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
        Ok(Block { header, transactions })
    }

    /// Compares the header's root with that of the transactions.
    ///
    /// # Errors
    /// [`BlockError::Root`] with both.
    pub fn check_root(&self) -> Result<(), BlockError> {
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
    let mut groups: BTreeMap<&str, Vec<Digest>> = BTreeMap::new();
    for (bytes, leaf) in transactions.iter().zip(leaves.finish()) {
        groups.entry(SignedTransaction::contract_of(bytes)).or_default().push(leaf);
    }
    let roots: Vec<Digest> = groups
        .iter()
        .map(|(name, leaves)| node_hash(&leaf_hash(name.as_bytes()), &merkle_root(leaves)))
        .collect();
    merkle_root(&roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        let transactions =
            vec![Bytes::from_static(b"one"), Bytes::from_static(b""), Bytes::from_static(b"three")];
        let header = BlockHeader {
            ledger: sha256(&[b"ledger"]),
            height: 3,
            timestamp_ms: 1_700_000_000_000,
            previous: sha256(&[b"previous"]),
            transactions_root: transactions_root(&transactions),
            transactions: 3,
            proposer: 2,
        };
        Block { header, transactions }
    }

    #[test]
    fn blocks_round_trip_and_every_flipped_byte_shows() {
        let bytes = Bytes::from(block().to_bytes());
        let read = Block::from_bytes(&bytes).expect("what to_bytes wrote");
        assert_eq!(read, block());
        assert_eq!(read.check_root(), Ok(()));
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1;
            if let Ok(read) = Block::from_bytes(&Bytes::from(flipped)) {
                let same_header = read.header.digest() == block().header.digest();
                assert!(!same_header || read.check_root().is_err(), "byte {at}");
            }
        }
        for length in 0..bytes.len() {
            assert!(Block::from_bytes(&bytes.slice(..length)).is_err(), "{length} bytes");
        }
    }
}
