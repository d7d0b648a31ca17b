//! What nodes tell one another about outcomes and about the state at checkpoints.

use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use types::{
    Attestation, BlockDigest, CheckpointCertificate, CheckpointRoot, OutcomeCertificate, OutcomeHeader,
    decode_exactly, encode,
};

/// Attestations in a message; a node that has executed more at once sends several.
pub(crate) const ATTESTATIONS_MAX: usize = 64;
/// Outcome headers in a message.
pub(crate) const HEADERS_MAX: usize = 256;

/// A message to all other nodes.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) enum Message {
    /// What the sender found blocks to come to.
    Attestations {
        /// The sender has said so before and misses a certificate.
        again: bool,
        /// The sender's own, by height.
        attestations: Vec<Attestation<OutcomeHeader>>,
    },
    /// The newest certificate, for those who are behind.
    Certificate(OutcomeCertificate),
    /// The sender's outcomes differ: which headers do the others have at these heights?
    AskHeaders {
        /// The lowest height.
        from: u64,
        /// The highest.
        to: u64,
    },
    /// Outcome headers of consecutive heights.
    Headers(Vec<OutcomeHeader>),
    /// What did a block do to the state, table by table?
    AskDigest {
        /// Which block.
        height: u64,
    },
    /// What a block did to the state.
    Digest {
        /// Which block.
        height: u64,
        /// What it did.
        digest: BlockDigest,
    },
    /// What the sender found the whole state to be at checkpoints.
    Roots {
        /// The sender has said so before and misses a certificate.
        again: bool,
        /// The sender's own, by height.
        attestations: Vec<Attestation<CheckpointRoot>>,
    },
    /// The newest certificate of a checkpoint, for those who are behind.
    RootCertificate(CheckpointCertificate),
}

impl Message {
    /// For sending; `None` for what is longer than a message may be.
    pub(crate) fn to_bytes(&self) -> Option<Bytes> {
        let bytes = encode(self);
        (bytes.len() <= ordering::MESSAGE_BYTES_MAX).then(|| Bytes::from(bytes))
    }

    /// What another node has sent; `None` for anything else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Message> {
        let message = decode_exactly(bytes).ok()?;
        let fits = match &message {
            Message::Attestations { attestations, .. } => attestations.len() <= ATTESTATIONS_MAX,
            Message::Roots { attestations, .. } => attestations.len() <= ATTESTATIONS_MAX,
            Message::Headers(headers) => headers.len() <= HEADERS_MAX,
            _ => true,
        };
        fits.then_some(message)
    }
}
