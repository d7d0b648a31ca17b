use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;

/// Which state a checkpoint holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct CheckpointHeader {
    /// Digest of the ledger's charter.
    pub ledger: Digest,
    /// The last block whose effects are in the state.
    pub height: u64,
    /// The chained state digest after that block.
    pub state_digest: Digest,
    /// Digest of the outcome header of that block, which the next one chains.
    pub outcome: Digest,
}

/// How far a ledger has come since its last checkpoint: when the next one comes follows from that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct CheckpointProgress {
    /// Height of the last checkpoint, whether it has a file or not; 0: the founding.
    pub last: u64,
    /// Rows that the blocks since then have changed, each counted once per block.
    pub rows: u64,
}

impl CheckpointProgress {
    /// At a checkpoint.
    pub fn at(height: u64) -> CheckpointProgress {
        CheckpointProgress { last: height, rows: 0 }
    }
}
