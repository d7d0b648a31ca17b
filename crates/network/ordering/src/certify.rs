//! Making certificates with all members' keys at hand: ledgers for measurements and tests, which no network has ordered.

use crate::CertificateError;
use crate::bft::FinalizationSigner;
use crate::certificate::{Certificate, offer_message, solo_message};
use crate::kafka::one_record;
use bytes::Bytes;
use crypto::SecretKey;
use types::{Block, Charter, quorum};

/// Signs for the members whose node keys it holds; what it makes, [`crate::verify_certificate`] accepts.
pub struct CertificateSigner(Kind);

enum Kind {
    Solo(Box<SecretKey>),
    Bft(FinalizationSigner),
    /// By position in the charter.
    Raft(Vec<SecretKey>),
    /// The same.
    Kafka(Vec<SecretKey>),
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
        if ["raft", "kafka"].contains(&charter.ordering.as_str()) {
            let keys = (0..charter.organisations.len()).map(own).collect::<Result<_, _>>()?;
            let kind = if charter.ordering == "raft" { Kind::Raft(keys) } else { Kind::Kafka(keys) };
            return Ok(CertificateSigner(kind));
        }
        let members: Vec<usize> = charter.members().map(|(position, _)| position.into()).collect();
        let keys = members
            .iter()
            .take(quorum(members.len()))
            .map(|member| own(*member))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(CertificateSigner(Kind::Bft(FinalizationSigner::new(charter, &keys)?)))
    }

    /// The certificate of this block.
    pub fn sign(&self, block: &Block) -> Bytes {
        let header = &block.header;
        let certificate = match &self.0 {
            Kind::Solo(key) => Certificate::Solo(key.sign(&solo_message(&header.digest()))),
            Kind::Raft(keys) => {
                let key = &keys[usize::from(header.proposer)];
                Certificate::Raft(key.sign(&offer_message(&header.digest())))
            }
            Kind::Kafka(keys) => Certificate::Kafka(one_record(block, &keys[usize::from(header.proposer)])),
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
    use types::{Attested, BlockHeader, Charters, Organisation, transactions_root};

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

    fn block(charter: &Charter, height: u64) -> Block {
        let header = BlockHeader {
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
        };
        Block { header, attested: Attested::default(), transactions: Vec::new() }
    }

    #[test]
    fn what_is_signed_verifies_and_every_flipped_byte_shows() {
        for (ordering, members) in [("bft", 4), ("bft", 7), ("raft", 4), ("kafka", 4), ("solo", 1)] {
            let (charter, keys) = network(ordering, members);
            let block = block(&charter, 9);
            let certificate = CertificateSigner::new(&charter, &keys).expect("all keys").sign(&block);
            let header = block.header;
            verify_certificate(&charter, &header, &certificate).expect("signed by a quorum");
            let charters = Charters::new(std::sync::Arc::new(charter.clone()));
            let verifier = CertificateVerifier::new(charters).expect("good keys");
            // Nobody signs where in a topic a record stands: its offset, behind the kind and a count, and that of the next block.
            let places = |at: &usize| (5..13).contains(at) || *at >= certificate.len() - 8;
            for at in (0..certificate.len()).filter(|at| ordering != "kafka" || !places(at)) {
                let mut flipped = certificate.to_vec();
                flipped[at] ^= 1;
                assert!(verifier.verify(&header, &flipped).is_err(), "{ordering}: byte {at}");
            }
            let other = BlockHeader { previous: Digest::ZERO, ..header };
            // A record is bound to its block by the transactions alone, of which there are none.
            assert!(ordering == "kafka" || verifier.verify(&other, &certificate).is_err());
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
