//! The history of rows that a node keeps: what `entente.history` gives.

use crate::NodeError;
use engine::RowHistory;
use ledger::RecordedRow;
use parking_lot::RwLock;
use state::{PastChange, PastError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Charter, Key, TableId, TransactionId};

/// Bytes that the history of rows may have on the disk where `node.toml` says nothing else, in units of 1,048,576.
const MEGABYTES_DEFAULT: u64 = 4096;

/// The changes of rows on this node's disk.
pub struct KeptRows {
    store: RwLock<ledger::RowHistory>,
    path: PathBuf,
    bytes_max: u64,
    charter: Arc<Charter>,
}

impl KeptRows {
    /// Opens the history in the node's folder. `None` where none is to be kept: then what there was goes, because it would not
    /// be whole later. `newest`: the ledger's newest height.
    pub(crate) fn open(
        folder: &Path,
        charter: &Arc<Charter>,
        newest: u64,
        megabytes: Option<u64>,
    ) -> Result<Option<Arc<KeptRows>>, NodeError> {
        let (path, megabytes) = (folder.join("history"), megabytes.unwrap_or(MEGABYTES_DEFAULT));
        if megabytes == 0 {
            return match std::fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(NodeError::File { action: "remove", path, error })
                }
                _ => Ok(None),
            };
        }
        let bytes_max = megabytes.saturating_mul(1024 * 1024);
        let store = RwLock::new(ledger::RowHistory::open(&path, charter.ledger(), newest, bytes_max)?);
        Ok(Some(Arc::new(KeptRows { store, path, bytes_max, charter: charter.clone() })))
    }

    /// Begins anew where the ledger begins behind `height` and the history ends before that: what lies between is nowhere.
    pub(crate) fn reach(&self, height: u64) -> Result<(), NodeError> {
        let mut store = self.store.write();
        if store.tip() < height {
            let (path, ledger) = (&self.path, self.charter.ledger());
            *store = ledger::RowHistory::begin_behind(path, ledger, height, self.bytes_max)?;
        }
        Ok(())
    }

    /// The newest height whose changes are here.
    pub(crate) fn tip(&self) -> u64 {
        self.store.read().tip()
    }

    /// Forgets what blocks above `height` did: they will be executed again.
    pub(crate) fn take_back(&self, height: u64) -> Result<(), NodeError> {
        let mut store = self.store.write();
        *store = ledger::RowHistory::open(&self.path, self.charter.ledger(), height, self.bytes_max)?;
        Ok(())
    }

    /// Keeps what the transactions of a block did to rows; of a block that is known already nothing.
    pub(crate) fn record(&self, height: u64, history: &RowHistory) -> Result<(), NodeError> {
        if height <= self.tip() {
            return Ok(());
        }
        let changes = history.changes()?;
        let rows = changes.iter().map(|change| RecordedRow {
            index: change.index,
            transaction: change.transaction,
            principal: &change.principal,
            table: change.row.table,
            key: &change.row.key,
            existed: change.existed,
            value: change.value.as_ref(),
        });
        Ok(self.store.read().append(height, rows)?)
    }

    /// Forgets what blocks below a height did, as far as whole files go.
    pub(crate) fn forget_below(&self, height: u64) -> Result<(), NodeError> {
        Ok(self.store.read().forget_below(height)?)
    }

    /// Takes what a transaction did in a block out of the history.
    pub(crate) fn redact(&self, height: u64, transaction: &TransactionId) -> Result<(), NodeError> {
        self.store.read().redact(height, transaction)?;
        Ok(())
    }

    /// The changes of a row, the oldest first.
    pub(crate) fn changes(&self, table: TableId, key: &Key) -> Result<Vec<PastChange>, PastError> {
        let versions = self.store.read().versions(table, key).map_err(|error| {
            tracing::error!(%error, "the history of a row cannot be read");
            PastError::Unreadable
        })?;
        let organisation = |position: u16| match self.charter.organisations.get(usize::from(position)) {
            Some(organisation) => organisation.name.clone(),
            None => format!("organisation {position}"),
        };
        let change = |version: ledger::RowVersion| PastChange {
            height: version.height,
            index: version.index,
            transaction: version.transaction.to_string(),
            organisation: organisation(version.principal.organisation),
            role: version.principal.role,
            existed: version.existed,
            value: version.value,
        };
        Ok(versions.into_iter().map(change).collect())
    }
}
