use crate::{AmendedCharter, Charter, CheckpointRoot, Organisation, OutcomeHeader, encode, limits};
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
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
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
    /// The signature of an organisation that has left, or whose key has expired.
    #[error(
        "organisation {organisation} has no key that counts at height {height}: it has left, or the key has expired"
    )]
    NoKey {
        /// Its position.
        organisation: u16,
        /// The height that the statement is about.
        height: u64,
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
    /// Keys by position, each with the last height that it signs for; no height of those that have left.
    keys: Vec<(PublicKey, Option<u64>)>,
    /// Above this height no key expires: [`Charter::signs_at`].
    expire_up_to: u64,
    quorum: usize,
}

impl CertificateRules {
    /// The rules of the ledger of `charter`.
    pub fn new(charter: &Charter) -> CertificateRules {
        let last = |organisation: &Organisation| match organisation.removed {
            true => None,
            false => Some(organisation.node_key_expires.unwrap_or(u64::MAX)),
        };
        let keys = charter.organisations.iter().map(|one| (one.node_key, last(one))).collect();
        let (quorum, expire_up_to) = (charter.outcome_quorum(), charter.keys_expire_up_to());
        CertificateRules { ledger: charter.ledger(), keys, expire_up_to, quorum }
    }

    /// How many organisations must say the same.
    pub fn quorum(&self) -> usize {
        self.quorum
    }

    /// How many positions there are, those of organisations that have left included.
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

    pub(crate) fn check_signatures<T: Statement>(
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
            let height = statement.height();
            let signs_up_to = self.keys[usize::from(organisation)].1;
            if !signs_up_to.is_some_and(|last| height <= last || height > self.expire_up_to) {
                return Err(AttestationError::NoKey { organisation, height });
            }
            last = Some(organisation);
        }
        let message = message(statement);
        let signed: Vec<SignedMessage<'_>> = signatures
            .iter()
            .map(|&(organisation, signature)| SignedMessage {
                key: self.keys[usize::from(organisation)].0,
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
    /// The amended charters that the certified outcome names and no block before carries.
    pub charters: Vec<AmendedCharter>,
}

impl Attested {
    /// Bytes of its canonical encoding with all members' signatures and as many amended charters as can be.
    pub const BYTES_MAX: usize = 2 * (1 + 200 + 4 + limits::ORGANISATIONS_MAX * (2 + 64))
        + 4
        + limits::AMENDMENTS_PENDING_MAX * (limits::CHARTER_BYTES_MAX + 8);

    /// SHA-256 over domain and canonical encoding: what a block's header binds.
    pub fn digest(&self) -> Digest {
        sha256(&[b"entente attested 1\0", &encode(self)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_exactly;

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
                removed: false,
                node_key_expires: None,
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
            charters: charter.ledger(),
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
        let attested =
            Attested { outcome: Some(outcome), checkpoint: Some(checkpoint), charters: Vec::new() };
        assert!(encode(&attested).len() <= Attested::BYTES_MAX);
    }

    #[test]
    fn keys_expire_by_height_as_long_as_a_quorum_of_others_is_left() {
        let (mut charter, keys) = network();
        for (member, last) in [(0, 5), (1, 9), (3, 9)] {
            charter.organisations[member].node_key_expires = Some(last);
        }
        charter.organisations[2].node_key_expires = None;
        let rules = CertificateRules::new(&charter);
        let judged = |height: u64, who: [u16; 3]| {
            let statement = OutcomeHeader { height, ..header(&charter) };
            let sign = |member: u16| {
                (member, Attestation::sign(statement.clone(), member, &keys[usize::from(member)]).signature)
            };
            let signatures = who.map(sign).to_vec();
            rules.check_certificate(&Certificate { statement, signatures })
        };
        for height in [1, 5] {
            assert_eq!(judged(height, [0, 1, 2]), Ok(()));
        }
        let expired = AttestationError::NoKey { organisation: 0, height: 6 };
        assert_eq!(judged(6, [0, 1, 2]), Err(expired));
        for height in [6, 9] {
            assert_eq!(judged(height, [1, 2, 3]), Ok(()));
        }
        // The keys of the third alone would be left: no quorum.
        for height in [10, 1_000] {
            assert_eq!(judged(height, [0, 1, 3]), Ok(()));
        }
        for height in [1, 5, 6, 9, 10] {
            for member in 0..4 {
                let statement = OutcomeHeader { height, ..header(&charter) };
                let attested = Attestation::sign(statement, member, &keys[usize::from(member)]);
                assert_eq!(rules.check(&attested).is_ok(), charter.signs_at(member.into(), height));
            }
        }
        charter.organisations[0].removed = true;
        assert!(!charter.signs_at(0, 10) && !charter.signs_at(4, 1), "those are no members");
    }
}
