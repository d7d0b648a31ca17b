//! What proves that a block is final.
//!
//! A certificate is the canonical encoding of one of four things, as the charter's `ordering` says:
//!
//! - `solo`: the only member's signature under the header's digest.
//! - `raft`: the signature of the member that offered the block, under the header's digest. It proves who ordered the block,
//!   and not that a majority had it.
//! - `kafka`: what members have signed of the records that the block is made of, and where the next block begins in the topic.
//!   Records are bound to the block by its transactions, so whoever has the whole block checks more than whoever has its header.
//! - `bft`: the signatures of n − f members under the digest of a block, encoded as the consensus crate encodes a
//!   finalization, and the headers of the way from the certified block's header to that one: what a later block
//!   builds on is final with it. The list is empty for nearly every block.

use crate::CertificateError;
use crate::bft::FinalizationVerifier;
use crate::kafka::Proof;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, PublicKey, Signature, SignedMessage};
use std::sync::Arc;
use types::{Attested, Block, BlockHeader, Charter, Charters, decode_exactly, encode, quorum};

/// Headers that a certificate may need to get from its block to one that was signed.
pub(crate) const HEADERS_MAX: usize = 10_000;

const OFFER_DOMAIN: &[u8] = b"entente offered block 1\0";
const SOLO_DOMAIN: &[u8] = b"entente solo certificate 1\0";

#[derive(BorshSerialize, BorshDeserialize, Debug)]
pub(crate) enum Certificate {
    Solo(Signature),
    Bft { headers: Vec<BlockHeader>, finalization: Vec<u8> },
    Raft(Signature),
    Kafka(Proof),
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

/// What the node signs that offers a block of a `raft` ledger.
pub(crate) fn offer_message(header: &Digest) -> Vec<u8> {
    [OFFER_DOMAIN, &header.0].concat()
}

/// Checks certificates of one ledger; made once, used for many blocks.
pub struct CertificateVerifier {
    charters: Charters,
    /// By version of the charter.
    versions: Vec<Version>,
}

struct Version {
    ordering: String,
    members: usize,
    kind: Kind,
}

enum Kind {
    Solo(PublicKey),
    Bft(Box<FinalizationVerifier>),
    /// Node keys by position; none of those that have left.
    Raft(Vec<Option<PublicKey>>),
    /// The same.
    Kafka(Vec<Option<PublicKey>>),
}

impl CertificateVerifier {
    /// For the ledger of these charters, up to where they are known to hold.
    ///
    /// # Errors
    /// [`CertificateError::Key`] where a member's key is none; a charter that passed its check has only good ones.
    pub fn new(charters: Charters) -> Result<CertificateVerifier, CertificateError> {
        let versions = charters.reigns().iter().map(|reign| Version::new(&reign.charter));
        Ok(CertificateVerifier { versions: versions.collect::<Result<_, _>>()?, charters })
    }

    /// The charters that are known.
    pub fn charters(&self) -> &Charters {
        &self.charters
    }

    /// Takes charters that are proved otherwise, if they are more than those that are known.
    ///
    /// # Errors
    /// [`CertificateError::Key`] where a member's key is none; nothing is taken then.
    pub fn adopt(&mut self, charters: &Charters) -> Result<(), CertificateError> {
        if self.charters.reigns().len() < charters.reigns().len() {
            *self = CertificateVerifier::new(charters.clone())?;
        }
        Ok(())
    }

    /// Takes the charters that a block carries which is known to be final.
    ///
    /// # Errors
    /// [`CertificateError::Charters`] where they cannot follow those that are known.
    pub fn follow(&mut self, attested: &Attested) -> Result<(), CertificateError> {
        let followed = self.charters.follow(attested);
        followed.map_err(|error| CertificateError::Charters(error.to_string()))?;
        for reign in &self.charters.reigns()[self.versions.len()..] {
            self.versions.push(Version::new(&reign.charter)?);
        }
        Ok(())
    }

    /// Checks that `certificate` proves the block with this header to be final. Needs no network.
    ///
    /// # Errors
    /// [`CertificateError`] says what is missing.
    pub fn verify(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        let expected = self.charters.ledger();
        if header.ledger != expected {
            return Err(CertificateError::OtherLedger { expected, found: header.ledger });
        }
        let at = |height: u64| &self.versions[self.charters.version_at(height) as usize];
        let read = decode_exactly::<Certificate>(certificate)
            .map_err(|error| at(header.height).malformed(error.to_string()))?;
        // The members of the height that was signed answer for all below.
        let signed = match &read {
            Certificate::Bft { headers, .. } => headers.last().unwrap_or(header).height,
            Certificate::Solo(_) | Certificate::Raft(_) | Certificate::Kafka(_) => header.height,
        };
        at(signed).verify(header, read)
    }

    /// As [`CertificateVerifier::verify`], and that the block's transactions are those that members have offered, where a
    /// certificate says so of every one.
    ///
    /// # Errors
    /// [`CertificateError`] says what is missing.
    pub fn verify_block(&self, block: &Block, certificate: &[u8]) -> Result<(), CertificateError> {
        self.verify(&block.header, certificate)?;
        match decode_exactly::<Certificate>(certificate) {
            Ok(Certificate::Kafka(proof)) => {
                proof.check_content(block).map_err(|error| CertificateError::Records(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// As [`CertificateVerifier::verify`], for a certificate in which the members have signed this very block and not one
    /// that builds on it: what they have signed is given, as the consensus crate encodes it; nothing of it where one member
    /// orders alone.
    ///
    /// # Errors
    /// As [`CertificateVerifier::verify`].
    pub fn verify_own(&self, header: &BlockHeader, certificate: &[u8]) -> Result<Vec<u8>, CertificateError> {
        self.verify(header, certificate)?;
        match decode_exactly::<Certificate>(certificate) {
            Ok(Certificate::Bft { headers, finalization }) if headers.is_empty() => Ok(finalization),
            Ok(Certificate::Solo(_) | Certificate::Raft(_) | Certificate::Kafka(_)) => Ok(Vec::new()),
            _ => {
                let reason = "expected signatures under this block, not under a later one".to_string();
                let version = self.charters.version_at(header.height) as usize;
                Err(self.versions[version].malformed(reason))
            }
        }
    }
}

impl Version {
    fn new(charter: &Charter) -> Result<Version, CertificateError> {
        let mut members = charter.members();
        let kind = match (charter.ordering.as_str(), members.next()) {
            ("solo", Some((_, member))) => Kind::Solo(member.node_key),
            ("raft", _) => Kind::Raft(node_keys(charter)),
            ("kafka", _) => Kind::Kafka(node_keys(charter)),
            _ => Kind::Bft(Box::new(FinalizationVerifier::new(charter)?)),
        };
        Ok(Version { ordering: charter.ordering.clone(), members: charter.members().count(), kind })
    }

    fn verify(&self, header: &BlockHeader, certificate: Certificate) -> Result<(), CertificateError> {
        match (&self.kind, certificate) {
            (Kind::Solo(key), Certificate::Solo(signature)) => {
                let message = solo_message(&header.digest());
                let signed = SignedMessage { key: *key, signature, message: &message };
                if crypto::verify(&signed) { Ok(()) } else { Err(self.no_quorum()) }
            }
            (Kind::Raft(keys), Certificate::Raft(signature)) => {
                let key = keys.get(usize::from(header.proposer)).copied().flatten();
                let message = offer_message(&header.digest());
                let signed = |key| crypto::verify(&SignedMessage { key, signature, message: &message });
                if key.is_some_and(signed) {
                    Ok(())
                } else {
                    Err(CertificateError::NotOffered { proposer: header.proposer })
                }
            }
            (Kind::Kafka(keys), Certificate::Kafka(proof)) => {
                proof.check(header, keys).map_err(|error| CertificateError::Records(error.to_string()))
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
            (_, Certificate::Raft(_)) => Err(self.malformed("it is one for `raft`".to_string())),
            (_, Certificate::Kafka(_)) => Err(self.malformed("it is one for `kafka`".to_string())),
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

/// Node keys by position; none of those that have left.
fn node_keys(charter: &Charter) -> Vec<Option<PublicKey>> {
    let key = |organisation: &types::Organisation| (!organisation.removed).then_some(organisation.node_key);
    charter.organisations.iter().map(key).collect()
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

/// Checks offline that `certificate` proves the block with this header to be final, in a ledger whose charter has not been
/// amended: n − f of the charter's members signed it, or a block that builds on it. For many blocks, keep a [`CertificateVerifier`].
///
/// # Errors
/// [`CertificateError`] says what is missing.
pub fn verify_certificate(
    charter: &Charter,
    header: &BlockHeader,
    certificate: &[u8],
) -> Result<(), CertificateError> {
    CertificateVerifier::new(Charters::new(Arc::new(charter.clone())))?.verify(header, certificate)
}
