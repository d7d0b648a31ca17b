//! Making certificates with all members' keys at hand: ledgers for measurements and tests, which no network has ordered.

use crate::CertificateError;
use crate::bft::FinalizationSigner;
use crate::certificate::{Certificate, offer_message, solo_message};
use bytes::Bytes;
use crypto::SecretKey;
use types::{BlockHeader, Charter, quorum};

/// Signs for the members whose node keys it holds; what it makes, [`crate::verify_certificate`] accepts.
pub struct CertificateSigner(Kind);

enum Kind {
    Solo(Box<SecretKey>),
    Bft(FinalizationSigner),
    /// By position in the charter.
    Raft(Vec<SecretKey>),
}

impl CertificateSigner {
    /// For the ledger of `charter`; `node_keys` in the order of its members.
    ///
    /// # Errors
    /// [`CertificateError::Key`] names a member whose key is missing or another one.
    pub fn new(charter: &Charter, node_keys: &[SecretKey]) -> Result<CertificateSigner, CertificateError> {
        let own = |position: usize| {
            let member = &charter.organisations[position];
            let key = node_keys.get(position).filter(|key| key.public_key() == member.node_key);
            key.cloned().ok_or_else(|| CertificateError::Key(member.name.clone()))
        };
        if charter.ordering == "solo" {
            return Ok(CertificateSigner(Kind::Solo(Box::new(own(0)?))));
        }
        if charter.ordering == "raft" {
            let keys = (0..charter.organisations.len()).map(own).collect::<Result<_, _>>()?;
            return Ok(CertificateSigner(Kind::Raft(keys)));
        }
        let members: Vec<usize> = charter.members().map(|(position, _)| position.into()).collect();
        let keys = members
            .iter()
            .take(quorum(members.len()))
            .map(|member| own(*member))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(CertificateSigner(Kind::Bft(FinalizationSigner::new(charter, &keys)?)))
    }

    /// The certificate of the block with this header.
    pub fn sign(&self, header: &BlockHeader) -> Bytes {
        let certificate = match &self.0 {
            Kind::Solo(key) => Certificate::Solo(key.sign(&solo_message(&header.digest()))),
            Kind::Raft(keys) => {
                let key = &keys[usize::from(header.proposer)];
                Certificate::Raft(key.sign(&offer_message(&header.digest())))
            }
            Kind::Bft(signer) => {
                let finalization = signer.sign(header.height, &header.digest());
                Certificate::Bft { headers: Vec::new(), finalization }
            }
        };
        certificate.to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CertificateVerifier, verify_certificate};
    use crypto::{Digest, sha256};
    use types::{Attested, Charters, Organisation, transactions_root};

    fn network(ordering: &str, members: u8) -> (Charter, Vec<SecretKey>) {
        let keys: Vec<SecretKey> = (0..members).map(|at| SecretKey::from_bytes([at + 101; 32])).collect();
        let mut charter = Charter::with_defaults("test", 1);
        charter.ordering = ordering.to_string();
        for (position, key) in keys.iter().enumerate() {
            charter.organisations.push(Organisation {
                name: format!("org{}", position + 1),
                root_key: SecretKey::from_bytes([position as u8 + 1; 32]).public_key(),
                node_key: key.public_key(),
                address: format!("127.0.0.1:{}", 7_000 + position),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        (charter, keys)
    }

    fn header(charter: &Charter, height: u64) -> BlockHeader {
        BlockHeader {
            ledger: charter.ledger(),
            height,
            timestamp_ms: 5,
            previous: sha256(&[b"previous"]),
            transactions_root: transactions_root(&[]),
            transactions: 0,
            proposer: 0,
            certified_height: 0,
            attested: Attested::default().digest(),
            charters: charter.ledger(),
        }
    }

    #[test]
    fn what_is_signed_verifies_and_every_flipped_byte_shows() {
        for (ordering, members) in [("bft", 4), ("bft", 7), ("raft", 4), ("solo", 1)] {
            let (charter, keys) = network(ordering, members);
            let header = header(&charter, 9);
            let certificate = CertificateSigner::new(&charter, &keys).expect("all keys").sign(&header);
            verify_certificate(&charter, &header, &certificate).expect("signed by a quorum");
            let charters = Charters::new(std::sync::Arc::new(charter.clone()));
            let verifier = CertificateVerifier::new(charters).expect("good keys");
            for at in 0..certificate.len() {
                let mut flipped = certificate.to_vec();
                flipped[at] ^= 1;
                assert!(verifier.verify(&header, &flipped).is_err(), "{ordering}: byte {at}");
            }
            let other = BlockHeader { previous: Digest::ZERO, ..header };
            assert!(verifier.verify(&other, &certificate).is_err());
        }
    }

    #[test]
    fn keys_of_others_sign_nothing() {
        let (charter, mut keys) = network("bft", 4);
        keys.swap(0, 1);
        let refused = CertificateSigner::new(&charter, &keys);
        assert!(matches!(refused.err(), Some(CertificateError::Key(name)) if name == "org1"));
    }
}
