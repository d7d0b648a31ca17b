//! What can go wrong.

use concurrency::parts::PartsError;

/// Why something cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum PcpError {
    /// An option that makes no sense.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Which.
        option: &'static str,
        /// What would be right.
        expected: String,
        /// What came.
        found: String,
    },
    /// A schema with members came to something that it must not.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// Shards came to something else than a serial run, under rules that hold.
    #[error("expected the {what} of a serial run, found others; that is a defect of this program")]
    Wrong {
        /// What differs.
        what: &'static str,
    },
}
