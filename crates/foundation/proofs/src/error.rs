use crypto::Digest;
use types::{AttestationError, HandoverError};

/// Why something is no proof.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProofError {
    /// Neither the encoding of a proof nor its JSON form.
    #[error("expected a proof: {0}")]
    Malformed(String),
    /// More of something than a proof may have.
    #[error("the proof has {found} {what}, the limit is {limit}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How much there is.
        found: usize,
        /// How much there may be.
        limit: usize,
    },
    /// The certificate is none of this ledger.
    #[error("the certificate: {0}")]
    Certificate(#[from] AttestationError),
    /// What should lead from the founding charter to a later one does not.
    #[error("a handover from one charter to the next: {0}")]
    Handover(#[from] HandoverError),
    /// An outcome header that the next one does not chain.
    #[error("the outcome header of height {height}: expected digest {expected}, found {found}")]
    Header {
        /// Its height.
        height: u64,
        /// What the next one chains.
        expected: Digest,
        /// What it has.
        found: Digest,
    },
    /// Headers that do not reach from what is proved to what is certified.
    #[error("expected an outcome header of height {expected}, found one of height {found}")]
    Height {
        /// The height that is missing.
        expected: u64,
        /// The height that stands there.
        found: u64,
    },
    /// A row proof whose parts do not stand where they should.
    #[error("the proof does not prove it: {0}")]
    Order(&'static str),
    /// The path does not lead to what is certified.
    #[error("the path from {what} leads to {found}, expected the {root} {expected}")]
    Path {
        /// Where it begins.
        what: &'static str,
        /// Which root it should lead to.
        root: &'static str,
        /// That root.
        expected: Digest,
        /// Where it leads.
        found: Digest,
    },
}
