//! Why a target cannot be used.

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The name of a target is none.
    #[error(
        "expected a folder, or the address of an object store (s3://, gs://, az://, abfs://), found {found}: {what}"
    )]
    Address {
        /// What was given.
        found: String,
        /// What is wrong with it.
        what: String,
    },
    /// The target cannot be read or written.
    #[error(
        "cannot {action} {path} in {target}: {what}; what is there already stays as it is, and the next attempt goes on from it"
    )]
    Storage {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: String,
        /// Of which target.
        target: String,
        /// What it says.
        what: String,
    },
}
