use crate::{Charter, CheckpointRoot, OutcomeHeader, encode, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage, sha256};

/// What nodes attest: two statements of one kind at one height contradict each other unless they are equal.
pub trait Statement: Clone + PartialEq + BorshSerialize + BorshDeserialize {
    /// What is signed in front of the digest, so that a signature counts for nothing else.
    const DOMAIN: &'static [u8];
    /// Digest of the charter of the ledger that it is about.
    fn ledger(&self) -> Digest;
    /// The height that it is about.
    fn height(&self) -> u64;
    /// Stands for it under a signature.
    fn digest(&self) -> Digest;
}

impl Statement for OutcomeHeader {
    const DOMAIN: &'static [u8] = b"entente outcome attestation 1\0";

    fn ledger(&self) -> Digest {
        self.ledger
    }

    fn height(&self) -> u64 {
        self.height
    }

    fn digest(&self) -> Digest {
        OutcomeHeader::digest(self)
    }
}

impl Statement for CheckpointRoot {
    const DOMAIN: &'static [u8] = b"entente checkpoint attestation 1\0";

    fn ledger(&self) -> Digest {
        self.ledger
    }

    fn height(&self) -> u64 {
        self.height
    }

    fn digest(&self) -> Digest {
        CheckpointRoot::digest(self)
    }
}

/// What one organisation's node says, signed with its node key.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Attestation<T> {
    /// What it says.
    pub statement: T,
    /// Position of the organisation in the charter.
    pub organisation: u16,
    /// Under domain and digest of the statement.
    pub signature: Signature,
}

impl<T: Statement> Attestation<T> {
    /// Signs `statement` for member number `organisation`.
    pub fn sign(statement: T, organisation: u16, node_key: &SecretKey) -> Attestation<T> {
        let signature = node_key.sign(&message(&statement));
        Attestation { statement, organisation, signature }
    }
}

/// A statement that a quorum of organisations has attested: nobody has to believe who hands it on.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Certificate<T> {
    /// What they say.
    pub statement: T,
    /// Who says so: positions in the charter, ascending, each with its signature.
    pub signatures: Vec<(u16, Signature)>,
}

/// Proves what a block came to, and with it all blocks before.
pub type OutcomeCertificate = Certificate<OutcomeHeader>;

/// Proves the whole state at a checkpoint height.
pub type CheckpointCertificate = Certificate<CheckpointRoot>;

/// Why an attestation or a certificate is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AttestationError {
    /// It is about another ledger.
    #[error("expected an attestation of ledger {expected}, found one of ledger {found}")]
    OtherLedger {
        /// The charter's digest.
        expected: Digest,
        /// What it names.
        found: Digest,
    },
    /// A number that is no member's, or members that stand out of order or twice.
    #[error("expected ascending numbers of members below {members}, found {found}")]
    Members {
        /// Members of the ledger.
        members: usize,
        /// The number.
        found: u16,
    },
    /// Too few have signed.
    #[error("expected the signatures of {quorum} of {members} members, found {found}")]
    NoQuorum {
        /// How many there must be.
        quorum: usize,
        /// Members of the ledger.
        members: usize,
        /// How many there are.
        found: usize,
    },
    /// A signature that does not fit.
    #[error("the signature of member {organisation} does not fit what it is put under")]
    Signature {
        /// Whose it should be.
        organisation: u16,
    },
}

fn message<T: Statement>(statement: &T) -> Vec<u8> {
    [T::DOMAIN, &statement.digest().0].concat()
}

/// What makes an attestation or a certificate of one ledger good; made once, used for many.
#[derive(Clone, Debug)]
pub struct CertificateRules {
    ledger: Digest,
    keys: Vec<PublicKey>,
    quorum: usize,
}

impl CertificateRules {
    /// The rules of the ledger of `charter`.
    pub fn new(charter: &Charter) -> CertificateRules {
        let keys = charter.organisations.iter().map(|member| member.node_key).collect();
        CertificateRules { ledger: charter.ledger(), keys, quorum: charter.outcome_quorum() }
    }

    /// How many organisations must say the same.
    pub fn quorum(&self) -> usize {
        self.quorum
    }

    /// How many organisations there are.
    pub fn members(&self) -> usize {
        self.keys.len()
    }

    /// Checks who signed an attestation.
    ///
    /// # Errors
    /// [`AttestationError`] says what is wrong.
    pub fn check<T: Statement>(&self, attestation: &Attestation<T>) -> Result<(), AttestationError> {
        let Attestation { statement, organisation, signature } = attestation;
        self.check_signatures(statement, &[(*organisation, *signature)])
    }

    /// Checks that a quorum signed.
    ///
    /// # Errors
    /// [`AttestationError`] says what is wrong.
    pub fn check_certificate<T: Statement>(
        &self,
        certificate: &Certificate<T>,
    ) -> Result<(), AttestationError> {
        let (quorum, members, found) = (self.quorum, self.keys.len(), certificate.signatures.len());
        if found < quorum {
            return Err(AttestationError::NoQuorum { quorum, members, found });
        }
        self.check_signatures(&certificate.statement, &certificate.signatures)
    }

    fn check_signatures<T: Statement>(
        &self,
        statement: &T,
        signatures: &[(u16, Signature)],
    ) -> Result<(), AttestationError> {
        let (expected, found) = (self.ledger, statement.ledger());
        if expected != found {
            return Err(AttestationError::OtherLedger { expected, found });
        }
        let members = self.keys.len();
        let mut last = None;
        for &(organisation, _) in signatures {
            if usize::from(organisation) >= members || last >= Some(organisation) {
                return Err(AttestationError::Members { members, found: organisation });
            }
            last = Some(organisation);
        }
        let message = message(statement);
        let signed: Vec<SignedMessage<'_>> = signatures
            .iter()
            .map(|&(organisation, signature)| SignedMessage {
                key: self.keys[usize::from(organisation)],
                signature,
                message: &message,
            })
            .collect();
        let verdicts = crypto::verify_batch(&signed);
        match verdicts.iter().position(|good| !good) {
            None => Ok(()),
            Some(wrong) => Err(AttestationError::Signature { organisation: signatures[wrong].0 }),
        }
    }
}

/// The certificates that a block carries about blocks before it: a ledger proves its own outcomes.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct Attested {
    /// The newest outcome certificate that the proposer has, if no block before carries as new a one.
    pub outcome: Option<OutcomeCertificate>,
    /// A checkpoint certificate that no block before carries.
    pub checkpoint: Option<CheckpointCertificate>,
}

impl Attested {
    /// Bytes of its canonical encoding with all members' signatures.
    pub const BYTES_MAX: usize = 2 * (1 + 200 + 4 + limits::ORGANISATIONS_MAX * (2 + 64));

    /// SHA-256 over domain and canonical encoding: what a block's header binds.
    pub fn digest(&self) -> Digest {
        sha256(&[b"entente attested 1\0", &encode(self)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Organisation, decode_exactly};

    fn network() -> (Charter, Vec<SecretKey>) {
        let keys: Vec<_> = (0..4).map(|number| SecretKey::from_bytes([number + 101; 32])).collect();
        let mut charter = Charter::with_defaults("test", 7);
        for (position, key) in keys.iter().enumerate() {
            charter.organisations.push(Organisation {
                name: format!("org{}", position + 1),
                root_key: SecretKey::from_bytes([position as u8 + 1; 32]).public_key(),
                node_key: key.public_key(),
                address: format!("127.0.0.1:{}", 7000 + position),
                gateway: String::new(),
            });
        }
        (charter, keys)
    }

    fn header(charter: &Charter) -> OutcomeHeader {
        OutcomeHeader {
            ledger: charter.ledger(),
            height: 9,
            block: Digest([1; 32]),
            previous: Digest([2; 32]),
            receipts_root: Digest([3; 32]),
            state_digest: Digest([4; 32]),
        }
    }

    fn certificate(charter: &Charter, keys: &[SecretKey], who: &[u16]) -> OutcomeCertificate {
        let statement = header(charter);
        let signatures = who
            .iter()
            .map(|&number| {
                let key = &keys[usize::from(number)];
                (number, Attestation::sign(statement.clone(), number, key).signature)
            })
            .collect();
        Certificate { statement, signatures }
    }

    #[test]
    fn a_quorum_of_distinct_members_is_a_certificate() {
        let (charter, keys) = network();
        let rules = CertificateRules::new(&charter);
        let check = |who: &[u16]| rules.check_certificate(&certificate(&charter, &keys, who));
        assert_eq!((rules.quorum(), rules.members()), (3, 4));
        assert_eq!(check(&[0, 1, 3]), Ok(()));
        assert_eq!(check(&[0, 1, 2, 3]), Ok(()));
        assert_eq!(check(&[0, 3]), Err(AttestationError::NoQuorum { quorum: 3, members: 4, found: 2 }));
        for repeated in [[0, 1, 1], [0, 2, 1]] {
            let expected = AttestationError::Members { members: 4, found: 1 };
            assert_eq!(check(&repeated), Err(expected), "{repeated:?}");
        }
        let mut stranger = certificate(&charter, &keys, &[0, 1, 2]);
        stranger.signatures[2].0 = 4;
        let expected = AttestationError::Members { members: 4, found: 4 };
        assert_eq!(rules.check_certificate(&stranger), Err(expected));
    }

    #[test]
    fn every_flipped_byte_of_a_certificate_shows() {
        let (charter, keys) = network();
        let rules = CertificateRules::new(&charter);
        let good = certificate(&charter, &keys, &[0, 1, 2]);
        let bytes = encode(&good);
        assert_eq!(decode_exactly::<OutcomeCertificate>(&bytes).expect("what was encoded"), good);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            let read = decode_exactly::<OutcomeCertificate>(&flipped);
            assert!(read.is_err() || rules.check_certificate(&read.unwrap()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_signature_counts_for_one_kind_of_statement_and_one_member() {
        let (charter, keys) = network();
        let rules = CertificateRules::new(&charter);
        let good = Attestation::sign(header(&charter), 2, &keys[2]);
        assert_eq!(rules.check(&good), Ok(()));
        let wrong = Err(AttestationError::Signature { organisation: 1 });
        assert_eq!(rules.check(&Attestation { organisation: 1, ..good.clone() }), wrong);
        let root = CheckpointRoot {
            ledger: charter.ledger(),
            height: 9,
            outcome: good.statement.digest(),
            state_root: Digest([5; 32]),
        };
        let moved = Attestation { statement: root, organisation: 2, signature: good.signature };
        assert_eq!(rules.check(&moved), Err(AttestationError::Signature { organisation: 2 }));
        let mut other = header(&charter);
        other.ledger = Digest::ZERO;
        let other = Attestation::sign(other, 2, &keys[2]);
        assert!(matches!(rules.check(&other), Err(AttestationError::OtherLedger { .. })));
    }

    #[test]
    fn certificates_of_all_members_have_room_in_a_block() {
        let (charter, keys) = network();
        let mut outcome = certificate(&charter, &keys, &[0, 1, 2]);
        outcome.signatures.resize(limits::ORGANISATIONS_MAX, (0, Signature([0; 64])));
        let root = CheckpointRoot {
            ledger: charter.ledger(),
            height: 9,
            outcome: Digest::ZERO,
            state_root: Digest::ZERO,
        };
        let checkpoint = Certificate { statement: root, signatures: outcome.signatures.clone() };
        let attested = Attested { outcome: Some(outcome), checkpoint: Some(checkpoint) };
        assert!(encode(&attested).len() <= Attested::BYTES_MAX);
    }
}
