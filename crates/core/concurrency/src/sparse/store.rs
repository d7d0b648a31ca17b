//! What a sparse peer keeps: the seam to its disk.

use super::transaction::{SparseTransaction, Version};
use crate::parts::LedgerPosition;
use state::{AfterImage, KeyRange, RowId, StoreError};
use std::ops::ControlFlow;
use types::{Key, TableId};

/// What becomes durable at once, or not at all.
#[derive(Debug, Default)]
pub struct Record<'a> {
    /// The block that is committed; `None`: transactions of earlier blocks are decided.
    pub block: Option<u64>,
    /// Whether transactions are valid, in the order of the ledger. They are deferred no more.
    pub verdicts: Vec<(LedgerPosition, bool)>,
    /// What the valid ones write, in the order of the ledger; the position is the row's new version.
    pub changes: Vec<(Version, &'a AfterImage)>,
    /// Transactions of the block that nobody has decided, with what they do.
    pub deferred: Vec<&'a SparseTransaction>,
}

/// The durable state of a peer.
pub trait SparseStore {
    /// The version of a row; `None`: it does not exist.
    ///
    /// # Errors
    /// The state cannot be read.
    fn version(&self, row: &RowId) -> Result<Option<Version>, StoreError>;

    /// The rows of an interval with their versions, ascending by key, until `each` breaks.
    ///
    /// # Errors
    /// The state cannot be read.
    fn versions(
        &self,
        table: TableId,
        range: &KeyRange,
        each: &mut dyn FnMut(&Key, Version) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Whether a transaction was valid; `None`: nothing is recorded of it.
    ///
    /// # Errors
    /// The state cannot be read.
    fn verdict(&self, transaction: LedgerPosition) -> Result<Option<bool>, StoreError>;

    /// Height of the last committed block.
    fn height(&self) -> u64;

    /// Transactions up to that height that are deferred.
    ///
    /// # Errors
    /// The state cannot be read.
    fn deferred(&self) -> Result<Vec<SparseTransaction>, StoreError>;

    /// Makes a record durable.
    ///
    /// # Errors
    /// It is not durable; nothing of it is.
    fn record(&mut self, record: &Record<'_>) -> Result<(), StoreError>;
}
