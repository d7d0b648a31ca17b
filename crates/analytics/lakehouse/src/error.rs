use crypto::Digest;
use deltalake_core::DeltaTableError;
use ledger::LedgerError;
use proofs::ProofError;
use state::StoreError;
use std::fmt::Display;
use targets::TargetError;

/// Why tables were not exported, or an export is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum LakehouseError {
    /// The target: its name is none, or it cannot be read or written.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The log of a table cannot be read or written.
    #[error(
        "the log of {folder} in {target}: {what}; what is there already stays readable, and the next export goes on from it"
    )]
    Log {
        /// Which table.
        folder: String,
        /// Of which target.
        target: String,
        /// What is wrong.
        what: String,
    },
    /// The target was there, and is not any more.
    #[error(
        "{target} has vanished: expected {file} there, which the first export has written; is it mounted?"
    )]
    Vanished {
        /// Which target.
        target: String,
        /// The file that was there.
        file: &'static str,
    },
    /// It has the tables of another network.
    #[error(
        "{target} holds the tables of the ledger {found}, expected {expected}; export into another folder"
    )]
    OtherLedger {
        /// Which target.
        target: String,
        /// The ledger that was to be exported.
        expected: Digest,
        /// The one whose tables are there.
        found: String,
    },
    /// Another node exports into it.
    #[error(
        "{target} is written from another node's folder ({found}, this one is {expected}): two at once would harm each other; \
         export into another folder, or stop that one for good and give --take-over"
    )]
    OtherWriter {
        /// Which target.
        target: String,
        /// The writer that tries.
        expected: String,
        /// The writer that is known there.
        found: String,
    },
    /// What is there was not written by an export.
    #[error(
        "{path} in {target} was not written by an export of this ledger: {what}; export into another folder"
    )]
    NotAnExport {
        /// Which target.
        target: String,
        /// What is there.
        path: String,
        /// Why it is not.
        what: String,
    },
    /// A table was named that the ledger does not have.
    #[error("the state of height {height} has no table {name}; it has {known}")]
    NoTable {
        /// The name that was given.
        name: String,
        /// Of the state.
        height: u64,
        /// Names of those that there are.
        known: String,
    },
    /// Rows of the checkpoint cannot be put into columns, or files not be made.
    #[error("rows of table {table} cannot be written as Parquet: {what}")]
    Columns {
        /// Which table.
        table: String,
        /// What is wrong.
        what: String,
    },
    /// The node's folder cannot be read.
    #[error("{path}: {what}")]
    Folder {
        /// What was read.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// Somebody else exports from the node's folder.
    #[error("another export from {path} is running; stop it first, or wait until it is done")]
    Running {
        /// The node's folder.
        path: String,
    },
    /// The node's ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The node's state cannot be read.
    #[error(transparent)]
    State(#[from] StoreError),
    /// The certificate or the proof is none of this ledger.
    #[error("the proof: {0}")]
    Proof(#[from] ProofError),
    /// What is exported is not what is certified.
    #[error("{what}: expected {expected}, found {found}")]
    Different {
        /// What was compared.
        what: String,
        /// What is certified.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A row of an export is none of the ledger's.
    #[error("table {table}, {file}: {what}")]
    Rows {
        /// Which table.
        table: String,
        /// Which file, or the folder where no one file is at fault.
        file: String,
        /// What is wrong.
        what: String,
    },
}

impl LakehouseError {
    /// Whether trying again later may help: the target may come back or have room, and the node have a checkpoint that is whole.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            LakehouseError::Target(TargetError::Storage { .. })
                | LakehouseError::Log { .. }
                | LakehouseError::Vanished { .. }
                | LakehouseError::Ledger(_)
                | LakehouseError::State(_)
                | LakehouseError::Folder { .. }
                | LakehouseError::Different { .. }
        )
    }

    pub(crate) fn different(
        what: impl Into<String>,
        expected: impl Display,
        found: impl Display,
    ) -> LakehouseError {
        LakehouseError::Different {
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// What a log says, without the names of its own layers.
pub(crate) fn words(error: &DeltaTableError) -> String {
    match error {
        DeltaTableError::ObjectStore { source } => source.to_string(),
        error => error.to_string(),
    }
}
