use crypto::Digest;
use std::io;
use std::path::{Path, PathBuf};
use types::TransactionId;

/// Why a ledger or checkpoint file could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The operating system refused.
    #[error("could not {action} {}: {source}; check the disk, its mount and the rights of this user", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// No space is left. What was flushed before is intact.
    #[error(
        "the disk is full: could not {action} {}; what was flushed before is intact: free space, then restart the node",
        path.display()
    )]
    DiskFull {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
    },
    /// The folder holds another network's data.
    #[error(
        "{} belongs to the network with charter digest {found}, this node's charter has digest {expected}; \
         use the data folder of this network or an empty one",
        path.display()
    )]
    OtherLedger {
        /// File or folder.
        path: PathBuf,
        /// Digest of this node's charter.
        expected: Digest,
        /// Digest in the file.
        found: Digest,
    },
    /// Another process has the folder open.
    #[error("{} is in use by process {process}; stop that process or use another data folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Number of the process as its lock file has it, `?` where it cannot be read.
        process: String,
    },
    /// Written by a version of the program that this one does not know.
    #[error(
        "expected format version {expected} in {}, found version {found}, which another version of Entente has written: install \
         that version of Entente, or a newer one; nothing was changed",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that this program writes.
        expected: u32,
        /// The version in the file.
        found: u32,
    },
    /// Bytes that are not what was written, at a place where a crash cannot have torn them.
    #[error(
        "{} is damaged at byte {offset}, height {height}: {what}; the disk may be failing: \
         restore the file from a copy or let the node fetch the blocks from that height on again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// Height of the block (or checkpoint) that the place belongs to.
        height: u64,
        /// What was expected and what came.
        what: String,
    },
    /// A file of blocks is missing.
    #[error(
        "expected a file that starts with height {expected}, found {} which starts with {found}; restore the missing file",
        path.display()
    )]
    Gap {
        /// The file behind the gap.
        path: PathBuf,
        /// Height that should come next.
        expected: u64,
        /// Height with which the file starts.
        found: u64,
    },
    /// A block that does not continue this ledger.
    #[error(
        "the block does not continue this ledger: expected {what} {expected}, found {found}; append blocks in their order"
    )]
    WrongBlock {
        /// Which property.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A record that exceeds a limit.
    #[error(
        "a block with its outcome has {found} bytes, the limit is {limit} (RECORD_BYTES_MAX); lower the charter's block limits"
    )]
    TooLarge {
        /// Its size.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// An earlier write failed, so that nobody knows what is on the disk.
    #[error(
        "nothing more is written since an earlier failure ({reason}); restart the node once that is repaired"
    )]
    Poisoned {
        /// The first failure.
        reason: String,
    },
    /// A block in front of the one that the ledger begins with.
    #[error(
        "this node has no block of height {height}: it joined from a certified checkpoint, and its ledger begins at height \
         {first}; ask another organisation's node"
    )]
    NotKept {
        /// The height that was asked for.
        height: u64,
        /// Height of the ledger's first block.
        first: u64,
    },
    /// A block of which only header, certificates and digests are left.
    #[error(
        "the transactions and receipts of block {height} are pruned on this node (payload_blocks, payload_days in node.toml); \
         ask a node that keeps them"
    )]
    Pruned {
        /// The height that was asked for.
        height: u64,
    },
    /// A block of which something was taken away by consent.
    #[error(
        "transactions of block {height} are redacted: their content is gone from every node, and the block can be neither executed          again nor handed on"
    )]
    RedactedBlock {
        /// The height that was asked for.
        height: u64,
    },
    /// A transaction whose content was taken away by consent.
    #[error(
        "transaction {transaction} at height {height}, position {index}, is redacted by proposal {proposal}: its content is gone          from every node"
    )]
    Redacted {
        /// The transaction.
        transaction: TransactionId,
        /// Its block.
        height: u64,
        /// Its position there.
        index: u32,
        /// The proposal to which the ledger's members agreed.
        proposal: u64,
    },
    /// A checkpoint that is not there.
    #[error("there is no checkpoint of height {height} in {}; choose one of those that are listed", path.display())]
    NoCheckpoint {
        /// The folder.
        path: PathBuf,
        /// The height that was asked for.
        height: u64,
    },
}

impl LedgerError {
    /// Sorts an error of the operating system into [`LedgerError::DiskFull`] and [`LedgerError::Io`].
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> LedgerError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                LedgerError::DiskFull { action, path }
            }
            _ => LedgerError::Io { action, path, source },
        }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, height: u64, what: impl Into<String>) -> LedgerError {
        LedgerError::Damaged { path: path.to_path_buf(), offset, height, what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_the_operating_system_calls_a_full_disk_is_a_full_disk() {
        let mut full =
            std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full");
        let error = full.write_all(b"x").expect_err("it takes nothing");
        let error = LedgerError::io("write", Path::new("/dev/full"), error);
        assert!(matches!(error, LedgerError::DiskFull { .. }), "{error}");
    }
}
