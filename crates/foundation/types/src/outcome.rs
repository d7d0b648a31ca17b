use crate::{TableId, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, leaf_hash, merkle_root, sha256};

const STATE_DOMAIN: &[u8] = b"entente state 1\0";

/// What a block did to one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct TableDigest {
    /// Which table.
    pub table: TableId,
    /// Merkle root (RFC 9162) over one leaf per row written, in key order: `key ‖ Option<row>`, the last value of the
    /// row in the block.
    pub root: Digest,
}

/// What a block did to the state. [`BlockDigest::chain`] binds it to all blocks before.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct BlockDigest {
    /// One per table written, by table. A node that holds some of the tables compares theirs.
    pub tables: Vec<TableDigest>,
    /// Digest of the catalog after the block.
    pub catalog: Digest,
    /// Digest of the ids of the transactions that the block admitted.
    pub requests: Digest,
}

impl BlockDigest {
    /// Merkle root over one leaf per table written, by table: `table ‖ root`.
    pub fn rows_root(&self) -> Digest {
        let leaves: Vec<Digest> = self.tables.iter().map(|table| leaf_hash(&encode(table))).collect();
        merkle_root(&leaves)
    }

    /// The state digest after the block at `height`:
    /// `SHA-256(domain ‖ previous state digest ‖ height ‖ rows root ‖ catalog ‖ requests)`. Before the first block it
    /// is the charter's digest.
    pub fn chain(&self, previous: Digest, height: u64) -> Digest {
        let rows = self.rows_root();
        sha256(&[
            STATE_DOMAIN,
            &previous.0,
            &height.to_le_bytes(),
            &rows.0,
            &self.catalog.0,
            &self.requests.0,
        ])
    }
}

/// What a block came to, in 200 bytes: what nodes sign when they have executed it.
///
/// Outcome headers are a chain like blocks: whoever signs one answers for all before it.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct OutcomeHeader {
    /// Digest of the charter.
    pub ledger: Digest,
    /// Height of the block.
    pub height: u64,
    /// Digest of the block's header.
    pub block: Digest,
    /// Digest of the outcome header of the block before; of the charter for the first block.
    pub previous: Digest,
    /// Merkle root over the block's receipts.
    pub receipts_root: Digest,
    /// The state after the block: [`BlockDigest::chain`].
    pub state_digest: Digest,
    /// Names all amendments of the charter that are decided after the block
    /// ([`AmendedCharter::chain`](crate::AmendedCharter::chain)); the digest of the charter while there is none.
    pub charters: Digest,
}

impl OutcomeHeader {
    /// SHA-256 over domain and canonical encoding: what the next one chains, what an attestation signs.
    pub fn digest(&self) -> Digest {
        sha256(&[b"entente outcome 1\0", &encode(self)])
    }
}

/// The whole state at a checkpoint height, in one digest: what nodes sign when they have computed it.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct CheckpointRoot {
    /// Digest of the charter.
    pub ledger: Digest,
    /// A height at which checkpoints are made.
    pub height: u64,
    /// Digest of the outcome header at that height.
    pub outcome: Digest,
    /// Root of the tree over all tables, the catalog and the ids that may not come again.
    pub state_root: Digest,
}

impl CheckpointRoot {
    /// SHA-256 over domain and canonical encoding: what an attestation signs.
    pub fn digest(&self) -> Digest {
        sha256(&[b"entente checkpoint 1\0", &encode(self)])
    }
}
