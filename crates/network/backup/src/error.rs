//! Why a backup cannot be made, is not whole, or cannot be restored.

use audit::AuditError;
use crypto::Digest;
use ledger::LedgerError;
use node::NodeError;
use ordering::CertificateError;
use state::{PieceError, StoreError};
use std::path::PathBuf;
use targets::TargetError;

/// Why a backup cannot be made, is not whole, or cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The target: its name is none, or it cannot be read or written.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target is in the folder that is to be backed up.
    #[error(
        "{target} is in the node's folder {}: a backup there is lost with the node; name a folder on another machine or disk, or a bucket",
        folder.display()
    )]
    InsideOfNode {
        /// Which target.
        target: String,
        /// The node's folder.
        folder: PathBuf,
    },
    /// There is no manifest.
    #[error(
        "{target} has no backup: expected manifests/…json, as `entente backup` writes them last; is it mounted?"
    )]
    NoBackup {
        /// Which target.
        target: String,
    },
    /// There is no manifest with this number.
    #[error("{target} has no backup with the number {number}; there are {known}")]
    NoNumber {
        /// Which target.
        target: String,
        /// The number that was asked for.
        number: u64,
        /// Those that there are.
        known: String,
    },
    /// A manifest is not what was written.
    #[error(
        "{name} in {target} is not what was written: {what}; nothing was changed. An earlier backup can be named with --number, and \
         without that file the next backup goes on from the one before"
    )]
    Manifest {
        /// Which target.
        target: String,
        /// Which manifest.
        name: String,
        /// What was expected and what came.
        what: String,
    },
    /// A piece is not there.
    #[error("{name} is missing in {target}{}", advice(repaired))]
    Missing {
        /// Which target.
        target: String,
        /// Which piece.
        name: String,
        /// Whether the next backup of the node writes it again.
        repaired: bool,
    },
    /// A piece has another length than was written.
    #[error("{name} in {target}: expected {expected} bytes, found {found}: it was cut off or written by somebody else{}", advice(&true))]
    Length {
        /// Which target.
        target: String,
        /// Which piece.
        name: String,
        /// Bytes that were written.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// A piece has another content than was written.
    #[error("{name} in {target}: expected the SHA-256 {expected}, found {found}: it was damaged or changed{}", advice(&true))]
    Content {
        /// Which target.
        target: String,
        /// Which piece.
        name: String,
        /// Of what was written.
        expected: String,
        /// Of what is there.
        found: String,
    },
    /// Heights are missing between two pieces.
    #[error("{target}: {name} has a hole: after height {last} expected height {expected}, found {found}")]
    Hole {
        /// Which target.
        target: String,
        /// The manifest.
        name: String,
        /// The last height in front of the hole.
        last: u64,
        /// The next one.
        expected: u64,
        /// Where the next piece begins, or the backup ends.
        found: u64,
    },
    /// What is in a piece is not what the ledger's members have signed.
    #[error("{0}")]
    Audit(#[from] AuditError),
    /// The state is not the one that a quorum has signed.
    #[error("{name} in {target}: {what}")]
    State {
        /// Which target.
        target: String,
        /// Which piece.
        name: String,
        /// What was expected and what came.
        what: String,
    },
    /// It is a backup of another ledger.
    #[error("{target} is a backup of the ledger {found}, expected {expected}; take another target")]
    OtherLedger {
        /// Which target.
        target: String,
        /// The ledger that was expected.
        expected: Digest,
        /// The one whose backup is there.
        found: String,
    },
    /// It is a backup of another organisation's node.
    #[error(
        "{target} is a backup of the node of {found}, and this is the node of {expected}; take another target"
    )]
    OtherOrganisation {
        /// Which target.
        target: String,
        /// Whose node is backed up.
        expected: String,
        /// Whose node's backup is there.
        found: String,
    },
    /// Two made a backup at once.
    #[error(
        "somebody else has written the backup with the number {number} into {target} meanwhile; nothing is lost, the next backup \
         goes on from there"
    )]
    Meanwhile {
        /// Which target.
        target: String,
        /// Its number.
        number: u64,
    },
    /// Another process makes a backup of the folder.
    #[error("another backup of {path} is running; wait until it is done")]
    Running {
        /// The node's folder.
        path: PathBuf,
    },
    /// The node has no block.
    #[error("{path} has no block yet: there is nothing to back up before the node has run")]
    NoBlocks {
        /// The node's folder.
        path: PathBuf,
    },
    /// The blocks behind the backup are not in the folder.
    #[error(
        "{target} has blocks up to height {last}, and the ledger in {path} begins at height {first}, because its node has joined from a \
         checkpoint: keep this backup, and make the next ones into another target"
    )]
    Behind {
        /// Which target.
        target: String,
        /// The node's folder.
        path: PathBuf,
        /// Height of the last block in the backup.
        last: u64,
        /// Height of the first block in the folder.
        first: u64,
    },
    /// Two ledgers go apart.
    #[error(
        "block {height} in {path} is {found}, and in {target} it is {expected}: one of them is not this ledger's; nothing was written. \
         `entente verify` says which"
    )]
    Fork {
        /// Which target.
        target: String,
        /// The node's folder.
        path: PathBuf,
        /// At this height.
        height: u64,
        /// Digest of the header in the backup.
        expected: String,
        /// Digest of the header in the folder.
        found: String,
    },
    /// A folder cannot be made of it as was asked.
    #[error("{0}")]
    Options(String),
    /// The node's folder, or the new one.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The ledger's files.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The state in the node's folder.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Pieces that make no state.
    #[error(transparent)]
    Piece(#[from] PieceError),
    /// Keys in a charter that are none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A file that cannot be read or written.
    #[error("cannot {action} {path}: {error}")]
    File {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        error: std::io::Error,
    },
}

/// What to do about a piece.
fn advice(repaired: &bool) -> &'static str {
    match repaired {
        true => {
            ". Nothing was changed. As long as the node has its folder, remove the file if it is there: the next `entente backup` writes it again"
        }
        false => "",
    }
}

impl BackupError {
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> BackupError {
        let path = path.into();
        move |error| BackupError::File { action, path, error }
    }

    /// Whether trying again later may help.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            BackupError::Target(TargetError::Storage { .. })
                | BackupError::Meanwhile { .. }
                | BackupError::Running { .. }
                | BackupError::NoBlocks { .. }
                | BackupError::Ledger(_)
                | BackupError::Store(_)
        )
    }
}
