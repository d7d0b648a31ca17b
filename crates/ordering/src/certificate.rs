//! What proves that a block is final.
//!
//! A certificate is the canonical encoding of one of two things, as the charter's `ordering` says:
//!
//! - `solo`: the only member's signature under the header's digest.
//! - `bft`: the signatures of n − f members under the digest of a block, encoded as the consensus crate encodes a
//!   finalization, and the headers of the way from the certified block's header to that one: what a later block
//!   builds on is final with it. The list is empty for nearly every block.

use crate::CertificateError;
use crate::bft::FinalizationVerifier;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, PublicKey, Signature, SignedMessage};
use types::{BlockHeader, Charter, decode_exactly, encode, quorum};

/// Headers that a certificate may need to get from its block to one that was signed.
pub(crate) const HEADERS_MAX: usize = 10_000;

const SOLO_DOMAIN: &[u8] = b"entente solo certificate 1\0";

#[derive(BorshSerialize, BorshDeserialize, Debug)]
pub(crate) enum Certificate {
    Solo(Signature),
    Bft { headers: Vec<BlockHeader>, finalization: Vec<u8> },
}

impl Certificate {
    pub(crate) fn to_bytes(&self) -> Bytes {
        Bytes::from(encode(self))
    }
}

/// What the only member of a `solo` ledger signs.
pub(crate) fn solo_message(header: &Digest) -> Vec<u8> {
    [SOLO_DOMAIN, &header.0].concat()
}

/// Checks certificates of one ledger; made once, used for many blocks.
pub struct CertificateVerifier {
    ledger: Digest,
    ordering: String,
    members: usize,
    kind: Kind,
}

enum Kind {
    Solo(PublicKey),
    Bft(Box<FinalizationVerifier>),
}

impl CertificateVerifier {
    /// For the ledger of `charter`.
    ///
    /// # Errors
    /// [`CertificateError::Key`] where a member's key is none; a charter that passed its check has only good ones.
    pub fn new(charter: &Charter) -> Result<CertificateVerifier, CertificateError> {
        let kind = match (charter.ordering.as_str(), charter.organisations.first()) {
            ("solo", Some(member)) => Kind::Solo(member.node_key),
            _ => Kind::Bft(Box::new(FinalizationVerifier::new(charter)?)),
        };
        let (ordering, members) = (charter.ordering.clone(), charter.organisations.len());
        Ok(CertificateVerifier { ledger: charter.ledger(), ordering, members, kind })
    }

    /// Checks that `certificate` proves the block with this header to be final. Needs no network.
    ///
    /// # Errors
    /// [`CertificateError`] says what is missing.
    pub fn verify(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        if header.ledger != self.ledger {
            return Err(CertificateError::OtherLedger { expected: self.ledger, found: header.ledger });
        }
        let read =
            decode_exactly::<Certificate>(certificate).map_err(|error| self.malformed(error.to_string()))?;
        match (&self.kind, read) {
            (Kind::Solo(key), Certificate::Solo(signature)) => {
                let message = solo_message(&header.digest());
                let signed = SignedMessage { key: *key, signature, message: &message };
                if crypto::verify(&signed) { Ok(()) } else { Err(self.no_quorum()) }
            }
            (Kind::Bft(verifier), Certificate::Bft { headers, finalization }) => {
                let last = follow(header, &headers)?;
                let found = verifier
                    .verify(&finalization)
                    .map_err(|reason| self.malformed(reason))?
                    .ok_or_else(|| self.no_quorum())?;
                if found == last {
                    Ok(())
                } else {
                    Err(CertificateError::OtherBlock { expected: last, found })
                }
            }
            (_, Certificate::Solo(_)) => Err(self.malformed("it is one for `solo`".to_string())),
            (_, Certificate::Bft { .. }) => Err(self.malformed("it is one for `bft`".to_string())),
        }
    }

    fn malformed(&self, reason: String) -> CertificateError {
        CertificateError::Malformed { ordering: self.ordering.clone(), reason }
    }

    fn no_quorum(&self) -> CertificateError {
        CertificateError::NoQuorum { quorum: quorum(self.members), members: self.members }
    }
}

/// The digest of the last of `headers`, each of which must build on the one before it.
fn follow(header: &BlockHeader, headers: &[BlockHeader]) -> Result<Digest, CertificateError> {
    let (mut digest, mut height) = (header.digest(), header.height);
    for (position, next) in headers.iter().enumerate() {
        if next.previous != digest || height.checked_add(1) != Some(next.height) || position >= HEADERS_MAX {
            return Err(CertificateError::BrokenChain { position });
        }
        (digest, height) = (next.digest(), next.height);
    }
    Ok(digest)
}

/// Checks offline that `certificate` proves the block with this header to be final: n − f of the charter's members
/// signed it, or a block that builds on it. For many blocks, keep a [`CertificateVerifier`].
///
/// # Errors
/// [`CertificateError`] says what is missing.
pub fn verify_certificate(
    charter: &Charter,
    header: &BlockHeader,
    certificate: &[u8],
) -> Result<(), CertificateError> {
    CertificateVerifier::new(charter)?.verify(header, certificate)
}
