use ledger::LedgerError;
use std::fmt;
use std::path::PathBuf;

/// Where a record stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordLocation {
    /// The file.
    pub path: PathBuf,
    /// Where in it the record begins.
    pub offset: u64,
    /// Height of its block.
    pub height: u64,
}

impl fmt::Display for RecordLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}, height {}", self.path.display(), self.offset, self.height)
    }
}

/// A part of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The block's header.
    Header,
    /// What ordering proves the block to be final with.
    OrderingCertificate,
    /// The outcome certificate in the block.
    OutcomeCertificate,
    /// The checkpoint certificate in the block.
    CheckpointCertificate,
    /// The amended charters in the block.
    Charters,
    /// All transactions.
    Transactions,
    /// The transaction at this position.
    Transaction(u32),
    /// All receipts.
    Receipts,
    /// The receipt at this position.
    Receipt(u32),
    /// What the block did to the state.
    StateDigest,
    /// The outcome header.
    OutcomeHeader,
    /// The part in the folder of the transaction at this position.
    Held(u32),
    /// What the block came to in a schema with members.
    SchemaOutcome,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Header => f.write_str("block header"),
            Part::OrderingCertificate => f.write_str("ordering certificate"),
            Part::OutcomeCertificate => f.write_str("outcome certificate"),
            Part::CheckpointCertificate => f.write_str("checkpoint certificate"),
            Part::Charters => f.write_str("amended charters"),
            Part::Transactions => f.write_str("transactions"),
            Part::Transaction(index) => write!(f, "transaction {index}"),
            Part::Receipts => f.write_str("receipts"),
            Part::Receipt(index) => write!(f, "receipt {index}"),
            Part::StateDigest => f.write_str("state digest"),
            Part::OutcomeHeader => f.write_str("outcome header"),
            Part::Held(index) => write!(f, "the folder's part of transaction {index}"),
            Part::SchemaOutcome => f.write_str("outcome of a schema"),
        }
    }
}

/// What is wrong with a ledger.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The files: bytes that are not what was written, a file that is missing, another network's folder.
    #[error(transparent)]
    File(#[from] LedgerError),
    /// Execution needs the state in front of the first block.
    #[error(
        "the ledger begins at height {first}, behind a certified checkpoint: its blocks cannot be executed again from the \
         charter alone; verify it without --replay, or a ledger that begins at height 1 with it"
    )]
    NoReplay {
        /// Height of the first block.
        first: u64,
    },
    /// Execution needs the transactions.
    #[error(
        "the transactions of block {height} are pruned, so it cannot be executed again; verify this ledger without --replay, or \
         that of a node that keeps all with it"
    )]
    PrunedReplay {
        /// Height of the first pruned block.
        height: u64,
    },
    /// What pruned transactions came to must stand under a quorum's signatures.
    #[error(
        "the transactions of blocks up to height {up_to} are pruned, and outcomes are certified up to height {certified} only: \
         nothing proves what they came to; verify the ledger of another node"
    )]
    PrunedUncertified {
        /// Height of the last pruned block.
        up_to: u64,
        /// The highest certified one.
        certified: u64,
    },
    /// Execution goes on behind a redacted transaction from a certified state.
    #[error(
        "transactions of block {height} are redacted, so it cannot be executed again, and there is no certified checkpoint at or \
         behind it to go on from: verify a node's folder with its folders `state` and `checkpoints`, or verify without --replay"
    )]
    RedactedReplay {
        /// Height of the block.
        height: u64,
    },
    /// What redacted transactions came to must stand under a quorum's signatures.
    #[error(
        "transactions of block {up_to} are redacted, and outcomes are certified up to height {certified} only: nothing proves \
         what they came to; verify the ledger of another node"
    )]
    RedactedUncertified {
        /// Height of the last block of which something is redacted.
        up_to: u64,
        /// The highest certified one.
        certified: u64,
    },
    /// A record that no honest node has written.
    #[error("{place}: {part}: {what}")]
    Wrong {
        /// Which record.
        place: RecordLocation,
        /// What of it.
        part: Part,
        /// What was expected and what came.
        what: String,
    },
}

/// A part of a record that is wrong, and how; whoever knows the place adds it.
pub(crate) type Fault = (Part, String);

/// What was expected and what came.
pub(crate) fn differs(
    part: Part,
    what: &str,
    expected: impl fmt::Display,
    found: impl fmt::Display,
) -> Fault {
    (part, format!("expected {what} {expected}, found {found}"))
}

/// Whether both are the same.
pub(crate) fn equal<T: PartialEq + fmt::Display>(
    part: Part,
    what: &str,
    expected: T,
    found: T,
) -> Result<(), Fault> {
    if expected == found { Ok(()) } else { Err(differs(part, what, expected, found)) }
}
