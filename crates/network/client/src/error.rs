//! Why a request to a gateway failed.

use crate::trust::OtherKey;
use types::{SUBMISSION_BYTES_MAX, SUBMISSION_TRANSACTIONS_MAX};

/// Why a request to a gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The gateway cannot be reached, or the connection broke.
    #[error("the gateway {url} does not answer: {error}; is its node running?")]
    Connection {
        /// Which gateway.
        url: String,
        /// What the HTTP client says.
        error: reqwest::Error,
    },
    /// The gateway answered with an error.
    #[error("the gateway answered {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its explanation.
        message: String,
    },
    /// More than one submission may hold.
    #[error(
        "a submission holds at most {SUBMISSION_TRANSACTIONS_MAX} transactions and {SUBMISSION_BYTES_MAX} bytes, found {transactions} and {bytes}; split it"
    )]
    TooLarge {
        /// Transactions in it.
        transactions: usize,
        /// Bytes of them.
        bytes: usize,
    },
    /// Somebody else answers at the gateway's address.
    #[error(
        "somebody else answers at {url}: {other}. Nothing was sent. A new key is an amendment of the charter (docs/governance.md): give the \
         one that holds now; otherwise the address leads elsewhere, or somebody stands between"
    )]
    OtherKey {
        /// Which gateway.
        url: String,
        /// Who was expected, and who was found.
        other: Box<OtherKey>,
    },
    /// The gateway's certificate does not count.
    #[error(
        "the certificate that is shown at {url} does not count: {reason}. Nothing was sent. Name the authority that has signed it, or have \
         its owner replace it; a node proves its key of the charter to whoever asks for that instead"
    )]
    Certificate {
        /// Which gateway.
        url: String,
        /// Why not.
        reason: String,
    },
    /// There is no TLS, and it was asked for.
    #[error(
        "{url} answers in plain text, and TLS was asked for: nothing was sent. Either another program listens there, or the node is of a \
         version before there was TLS"
    )]
    PlainText {
        /// Which gateway.
        url: String,
    },
    /// TLS that failed otherwise.
    #[error("TLS with {url} failed: {reason}")]
    Tls {
        /// Which gateway.
        url: String,
        /// Why.
        reason: String,
    },
    /// Nobody could be trusted.
    #[error("TLS cannot be set up: {0}")]
    Trust(String),
    /// The reply is not of the protocol.
    #[error("the gateway's reply is not one: {0}")]
    Reply(String),
}
