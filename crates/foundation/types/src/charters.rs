//! The charters of a ledger one after the other, and how each is proved by those before.
//!
//! Outcome headers name all amendments decided so far ([`AmendedCharter::chain`]), so a quorum that certifies an outcome
//! certifies them with it. The first block whose outcome certificate names more than the blocks before carries them
//! ([`Attested::charters`]). Nobody has to be believed: whoever knows the founding charter follows from one to the next.
//!
//! Signatures count by height. The members of height h attest its outcome; a block is certified by the members of its
//! epoch; credentials are checked with root keys, which stay. Positions of organisations are for ever. Endorsements
//! count by the charter of their block, because an organisation that has left could otherwise endorse old states for
//! ever.

use crate::{AmendedCharter, AttestationError, Attested, CertificateRules, Charter, CharterError};
use crate::{Governance, OutcomeCertificate, encode, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};
use std::sync::Arc;

impl AmendedCharter {
    /// Names this amendment and all before: SHA-256 over domain, what names those before (the founding charter's digest
    /// for the first) and canonical encoding.
    pub fn chain(&self, previous: &Digest) -> Digest {
        sha256(&[b"entente charters 1\0", &previous.0, &encode(self)])
    }
}

impl Charter {
    /// A block may be so many heights above what is certified in it or before it, with transactions or without. So an
    /// amendment stands in a block several heights before it takes effect.
    pub fn uncertified_blocks_max(&self) -> u64 {
        self.amendment_delay_blocks() - 4
    }
}

/// Proves amended charters to whoever knows those before: they were decided at the certified height or below.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Handover {
    /// Of an outcome that names them, by the members of its height.
    pub certificate: OutcomeCertificate,
    /// All that no handover before has, by their versions.
    pub charters: Vec<AmendedCharter>,
}

/// Why amended charters cannot follow those that are known.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HandoverError {
    /// The certificate is none.
    #[error("the certificate of amended charters: {0}")]
    Certificate(#[from] AttestationError),
    /// Others are certified.
    #[error("expected the amended charters that the certified outcome names ({expected}), found {found}")]
    Others {
        /// What the outcome names.
        expected: Digest,
        /// What those that came chain up to.
        found: Digest,
    },
    /// Out of order.
    #[error(
        "expected version {expected} of the charter, in force above height {above}, found version {version} from height {height}"
    )]
    Order {
        /// The next version.
        expected: u64,
        /// From where on the one before is in force.
        above: u64,
        /// What came.
        version: u64,
        /// From where on that is in force.
        height: u64,
    },
    /// Of another ledger, or none that can be.
    #[error("the amended charter: {0}")]
    Charter(#[from] CharterError),
    /// Of another ledger.
    #[error("the amended charter is one of ledger {found}, not of {expected}")]
    OtherLedger {
        /// This ledger.
        expected: Digest,
        /// The other.
        found: Digest,
    },
    /// More than a block carries.
    #[error("{found} amended charters at once, the limit is {limit} (AMENDMENTS_PENDING_MAX)")]
    TooMany {
        /// How many came.
        found: usize,
        /// How many may.
        limit: usize,
    },
}

/// A charter and when it holds.
#[derive(Clone, Debug)]
pub struct Reign {
    /// The first height that it holds for; 0 of the founding charter.
    pub first: u64,
    /// The charter.
    pub charter: Arc<Charter>,
    /// What makes attestations about its heights good.
    pub rules: Arc<CertificateRules>,
    /// Names it and all before, as headers do.
    pub digest: Digest,
}

/// The charters of a ledger as far as they are known, by version.
#[derive(Clone, Debug)]
pub struct Charters(Vec<Reign>);

impl Charters {
    /// Those of a ledger that began with this charter.
    pub fn new(founding: Arc<Charter>) -> Charters {
        let (digest, rules) = (founding.ledger(), Arc::new(CertificateRules::new(&founding)));
        Charters(vec![Reign { first: 0, charter: founding, rules, digest }])
    }

    /// Digest of the founding charter.
    pub fn ledger(&self) -> Digest {
        self.0[0].digest
    }

    /// What names all of them in headers.
    pub fn digest(&self) -> Digest {
        self.newest().digest
    }

    /// Whether headers that name `digest` name nothing that is not here.
    pub fn knows(&self, digest: &Digest) -> bool {
        self.0.iter().any(|reign| reign.digest == *digest)
    }

    /// The founding charter.
    pub fn founding(&self) -> &Arc<Charter> {
        &self.0[0].charter
    }

    /// The last one, whether it holds already or not.
    pub fn newest(&self) -> &Reign {
        &self.0[self.0.len() - 1]
    }

    /// All, by version.
    pub fn reigns(&self) -> &[Reign] {
        &self.0
    }

    /// The version that holds at a height.
    pub fn version_at(&self, height: u64) -> u64 {
        self.0.partition_point(|reign| reign.first <= height).saturating_sub(1) as u64
    }

    /// What holds at a height.
    pub fn at(&self, height: u64) -> &Reign {
        &self.0[self.version_at(height) as usize]
    }

    /// The amended charters that headers name with `to` and not with `from`; `None` where not both are known.
    pub fn between(&self, from: &Digest, to: &Digest) -> Option<Vec<AmendedCharter>> {
        let position = |digest: &Digest| self.0.iter().position(|reign| reign.digest == *digest);
        let (from, to) = (position(from)?, position(to)?);
        let amended = |reign: &Reign| AmendedCharter {
            charter: (*reign.charter).clone(),
            effective_height: reign.first,
        };
        self.0.get(from + 1..=to).map(|reigns| reigns.iter().map(amended).collect())
    }

    /// All that a state has decided on, certified or not; `None` of a state that is no ledger's.
    pub fn of(governance: &Governance) -> Option<Charters> {
        let mut charters = Charters::new(governance.founding.clone()?);
        for amended in &governance.amendments {
            charters.add((**amended).clone()).ok()?;
        }
        Some(charters)
    }

    /// The last height of a version; `None` where it is not known to end, or not known at all.
    pub fn last_of(&self, version: u64) -> Option<u64> {
        let next = usize::try_from(version).ok()?.checked_add(1)?;
        self.0.get(next).map(|reign| reign.first - 1)
    }

    /// Adds the next one, which the caller knows to be certified.
    ///
    /// # Errors
    /// [`HandoverError`] where it cannot be the next.
    pub fn add(&mut self, amended: AmendedCharter) -> Result<(), HandoverError> {
        let (newest, ledger) = (self.newest(), self.ledger());
        let (expected, above) = (newest.charter.version + 1, newest.first);
        let (version, height) = (amended.charter.version, amended.effective_height);
        if version != expected || height <= above {
            return Err(HandoverError::Order { expected, above, version, height });
        }
        amended.charter.check_amended()?;
        let found = amended.charter.ledger();
        if found != ledger {
            return Err(HandoverError::OtherLedger { expected: ledger, found });
        }
        let digest = amended.chain(&newest.digest);
        let charter = Arc::new(amended.charter);
        let rules = Arc::new(CertificateRules::new(&charter));
        self.0.push(Reign { first: height, charter, rules, digest });
        Ok(())
    }

    /// Adds what a block carries that is known to be final, or whose certificates were checked. Says whether that was
    /// anything new.
    ///
    /// # Errors
    /// [`HandoverError`] where these cannot be the next; nothing is added then.
    pub fn follow(&mut self, attested: &Attested) -> Result<bool, HandoverError> {
        let Some(certificate) = &attested.outcome else { return Ok(false) };
        if attested.charters.is_empty() || self.knows(&certificate.statement.charters) {
            return Ok(false);
        }
        self.extend(&certificate.statement.charters, &attested.charters)?;
        Ok(true)
    }

    /// Adds what a handover proves.
    ///
    /// # Errors
    /// [`HandoverError`] where it proves nothing; nothing is added then.
    pub fn hand_over(&mut self, handover: &Handover) -> Result<(), HandoverError> {
        let statement = &handover.certificate.statement;
        self.at(statement.height).rules.check_certificate(&handover.certificate)?;
        self.extend(&statement.charters, &handover.charters)
    }

    fn extend(&mut self, expected: &Digest, charters: &[AmendedCharter]) -> Result<(), HandoverError> {
        let (found, limit) = (charters.len(), limits::AMENDMENTS_PENDING_MAX);
        if found > limit {
            return Err(HandoverError::TooMany { found, limit });
        }
        let mut extended = self.clone();
        for amended in charters {
            extended.add(amended.clone())?;
        }
        let (expected, found) = (*expected, extended.digest());
        if expected != found {
            return Err(HandoverError::Others { expected, found });
        }
        *self = extended;
        Ok(())
    }
}

impl Attested {
    /// What names all charters after a block that carries this, where those before are named by `before`; `None` where it
    /// carries others than its outcome certificate names.
    pub fn charters_after(&self, before: &Digest) -> Option<Digest> {
        if self.charters.len() > limits::AMENDMENTS_PENDING_MAX {
            return None;
        }
        let named = self.outcome.as_ref().map_or(before, |certificate| &certificate.statement.charters);
        let chained = self.charters.iter().fold(*before, |digest, amended| amended.chain(&digest));
        (chained == *named).then_some(chained)
    }

    /// What proves the charters that this carries, if it carries any.
    pub fn handover(&self) -> Option<Handover> {
        let certificate = self.outcome.clone().filter(|_| !self.charters.is_empty())?;
        Some(Handover { certificate, charters: self.charters.clone() })
    }
}

/// Where transactions are to stand: a height, and the charters that the ledger is known to have.
///
/// All that hold up to that height must be among them; then what is judged for a place depends on nothing else that a node
/// knows.
#[derive(Clone, Copy, Debug)]
pub struct Place<'c> {
    /// What is known.
    pub charters: &'c Charters,
    /// Of the block.
    pub height: u64,
}

impl<'c> Place<'c> {
    /// What holds there.
    pub fn charter(&self) -> &'c Charter {
        &self.charters.at(self.height).charter
    }

    /// How often the charter was amended up to there.
    pub fn version(&self) -> u64 {
        self.charters.version_at(self.height)
    }

    /// What held at a height before this one; what names a later one is judged as if it named this one.
    pub fn charter_before(&self, height: u64) -> &'c Charter {
        &self.charters.at(height.min(self.height)).charter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attestation, Certificate, CharterChange, Organisation, OutcomeHeader};
    use crypto::SecretKey;

    fn node_key(number: u8) -> SecretKey {
        SecretKey::from_bytes([number + 100; 32])
    }

    fn founding() -> Arc<Charter> {
        let mut charter = Charter::with_defaults("test", 7);
        for number in 1..6_u8 {
            charter.organisations.push(Organisation {
                name: format!("org{number}"),
                root_key: SecretKey::from_bytes([number; 32]).public_key(),
                node_key: node_key(number).public_key(),
                address: String::new(),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        Arc::new(charter)
    }

    fn replace(charter: &Charter, number: u8, key: u8) -> Charter {
        let change = CharterChange::ReplaceNodeKey {
            name: format!("org{number}"),
            node_key: node_key(key).public_key(),
            expires: None,
        };
        charter.amended(&change).expect("a good change")
    }

    /// Two amendments, in force from heights 20 and 30.
    fn amendments(founding: &Charter) -> Vec<AmendedCharter> {
        let first = replace(founding, 1, 50);
        let second = replace(&first, 2, 51);
        let amended = |charter, effective_height| AmendedCharter { charter, effective_height };
        vec![amended(first, 20), amended(second, 30)]
    }

    fn certificate(charters: Digest, ledger: Digest, height: u64, keys: &[u8]) -> OutcomeCertificate {
        let zero = Digest::ZERO;
        let statement = OutcomeHeader {
            ledger,
            height,
            block: zero,
            previous: zero,
            receipts_root: zero,
            state_digest: zero,
            charters,
        };
        let sign = |(position, key): (usize, &u8)| {
            let signed = Attestation::sign(statement.clone(), position as u16, &node_key(*key));
            (signed.organisation, signed.signature)
        };
        Certificate { signatures: keys.iter().enumerate().map(sign).collect(), statement }
    }

    #[test]
    fn each_charter_is_certified_by_the_members_before_it() {
        let founding = founding();
        let ledger = founding.ledger();
        let [first, second] = amendments(&founding).try_into().expect("two");
        let one = first.chain(&ledger);
        let two = second.chain(&one);
        let mut charters = Charters::new(founding);
        let handover = |charters: Digest, height, keys: &[u8], carried: &[&AmendedCharter]| Handover {
            certificate: certificate(charters, ledger, height, keys),
            charters: carried.iter().map(|one| (*one).clone()).collect(),
        };
        let refused = |charters: &Charters, handover: Handover| {
            let mut charters = charters.clone();
            charters.hand_over(&handover).expect_err("wrong")
        };
        let strangers = handover(one, 12, &[50, 2, 3, 4], &[&first]);
        assert!(matches!(refused(&charters, strangers), HandoverError::Certificate(_)));
        let others = handover(two, 12, &[1, 2, 3, 4], &[&first]);
        assert!(matches!(refused(&charters, others), HandoverError::Others { .. }));
        let gap = handover(two, 12, &[1, 2, 3, 4], &[&second]);
        assert!(matches!(refused(&charters, gap), HandoverError::Order { expected: 1, version: 2, .. }));
        let both = handover(two, 12, &[1, 2, 3, 4], &[&first, &second]);
        assert_eq!(charters.clone().hand_over(&both), Ok(()), "two at once");

        assert_eq!(charters.hand_over(&handover(one, 12, &[1, 2, 3, 4], &[&first])), Ok(()));
        // The key that was replaced signs for heights before the change only.
        let late = handover(two, 25, &[1, 2, 3, 4], &[&second]);
        assert!(matches!(refused(&charters, late), HandoverError::Certificate(_)));
        assert_eq!(charters.hand_over(&handover(two, 25, &[50, 2, 3, 4], &[&second])), Ok(()));
        let versions = [0, 1, 19, 20, 29, 30, 900].map(|height| charters.version_at(height));
        assert_eq!(versions, [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2].map(|version| charters.last_of(version)), [Some(19), Some(29), None]);
        assert_eq!(charters.digest(), two);
        assert!(charters.knows(&one) && charters.knows(&ledger) && !charters.knows(&Digest::ZERO));
    }

    #[test]
    fn a_block_carries_what_its_certificate_names_and_nothing_else() {
        let founding = founding();
        let ledger = founding.ledger();
        let [first, second] = amendments(&founding).try_into().expect("two");
        let one = first.chain(&ledger);
        let attested = |named: Option<Digest>, charters: &[&AmendedCharter]| Attested {
            outcome: named.map(|named| certificate(named, ledger, 12, &[])),
            checkpoint: None,
            charters: charters.iter().map(|one| (*one).clone()).collect(),
        };
        let after = |attested: Attested| attested.charters_after(&ledger);
        assert_eq!(after(attested(None, &[])), Some(ledger));
        assert_eq!(after(attested(Some(ledger), &[])), Some(ledger));
        assert_eq!(after(attested(Some(one), &[&first])), Some(one));
        assert_eq!(after(attested(Some(second.chain(&one)), &[&first, &second])), Some(second.chain(&one)));
        for wrong in [
            attested(None, &[&first]),
            attested(Some(one), &[]),
            attested(Some(ledger), &[&first]),
            attested(Some(one), &[&second]),
        ] {
            assert_eq!(after(wrong), None);
        }
        let mut charters = Charters::new(founding);
        assert_eq!(charters.follow(&attested(Some(one), &[&first])), Ok(true));
        assert_eq!(charters.follow(&attested(Some(one), &[&first])), Ok(false), "known");
        assert_eq!(charters.follow(&attested(Some(one), &[])), Ok(false));
    }
}
