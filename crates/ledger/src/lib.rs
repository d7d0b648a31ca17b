//! Append-only files of blocks, receipts and certificates, and the transaction index

mod disk;
mod error;
mod height_index;
mod indexer;
mod layout;
mod ledger;
mod ledger_file;
mod open;
mod record;
mod segment;
mod transaction_index;
mod writer;

pub use disk::Faults;
pub use error::LedgerError;
pub use ledger::{Blocks, Ledger, LedgerOptions};
pub use open::OpenReport;
pub use record::{BlockOutcome, BlockRecord, BlockSummary, OutcomeCounts, RECORD_BYTES_MAX};
