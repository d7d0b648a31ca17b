//! Charters that change: what can be changed, what the charter is then, and from which height on it holds.

use crate::charter_encoding::{has_rows, has_transaction_bytes, has_window};
use crate::{Charter, CharterError, Organisation, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage};

const MEMBERSHIP_DOMAIN: &[u8] = b"entente membership 1\0";

/// Blocks on top of the charter's `outcome_lag_blocks` after which an amendment takes effect: it is certified and stands in
/// a block before ([`Charter::uncertified_blocks_max`]).
pub const AMENDMENT_MARGIN_BLOCKS: u64 = 10;

/// A charter and the heights that it holds for.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct AmendedCharter {
    /// The whole charter as it is then; its `version` counts the amendments.
    pub charter: Charter,
    /// The height of the first block that it holds for.
    pub effective_height: u64,
}

/// What one amendment changes.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum CharterChange {
    /// One more member, behind all others.
    AddOrganisation {
        /// The member.
        organisation: Organisation,
        /// Its root key's signature under [`membership_message`]: nobody becomes a member without wanting it.
        acceptance: Signature,
    },
    /// A member goes. Its position stays taken, because signatures and credentials name positions.
    RemoveOrganisation {
        /// Its name.
        name: String,
    },
    /// Another key signs the votes of a member's node.
    ReplaceNodeKey {
        /// The member's name.
        name: String,
        /// The key.
        node_key: PublicKey,
        /// The last height that it signs for; `None`: it does not expire.
        expires: Option<u64>,
    },
    /// A member's node listens elsewhere.
    SetAddress {
        /// The member's name.
        name: String,
        /// Where its node listens for the others: `host:port`.
        address: String,
        /// Where its node answers HTTP, and proposals with it: `https://host:port` or `host:port`; empty: nowhere.
        gateway: String,
    },
    /// A parameter gets another value.
    SetParameter {
        /// Its name as in the file of a charter, with its table in front: `block.fill_ms`.
        parameter: String,
        /// Its value as in that file; a text without quotes.
        value: String,
    },
}

/// What the root key of a new member signs.
pub fn membership_message(ledger: &Digest, organisation: &Organisation) -> Vec<u8> {
    [MEMBERSHIP_DOMAIN, &ledger.0, &encode(organisation)].concat()
}

/// Signs with the root key of `organisation` that it wants to be a member of `ledger`.
pub fn accept_membership(ledger: &Digest, organisation: &Organisation, root: &SecretKey) -> Signature {
    root.sign(&membership_message(ledger, organisation))
}

impl Charter {
    /// After how many blocks an amendment takes effect that is decided under this charter.
    pub fn amendment_delay_blocks(&self) -> u64 {
        u64::from(self.outcome_lag_blocks) + AMENDMENT_MARGIN_BLOCKS
    }

    /// The charter after a change: the next version, of the same ledger.
    ///
    /// # Errors
    /// What cannot be changed so, and what the charter could not be then.
    pub fn amended(&self, change: &CharterChange) -> Result<Charter, CharterError> {
        let mut charter = Charter {
            version: self.version + 1,
            founding: Some(self.ledger()),
            signatures: Vec::new(),
            ..self.clone()
        };
        match change {
            CharterChange::AddOrganisation { organisation, acceptance } => {
                let message = membership_message(&self.ledger(), organisation);
                let signed =
                    SignedMessage { key: organisation.root_key, signature: *acceptance, message: &message };
                if !crypto::verify(&signed) {
                    return Err(CharterError::NotAccepted { organisation: organisation.name.clone() });
                }
                charter.organisations.push(Organisation { removed: false, ..organisation.clone() });
            }
            CharterChange::RemoveOrganisation { name } => charter.find(name)?.removed = true,
            CharterChange::ReplaceNodeKey { name, node_key, expires } => {
                let organisation = charter.find(name)?;
                organisation.node_key = *node_key;
                organisation.node_key_expires = *expires;
            }
            CharterChange::SetAddress { name, address, gateway } => {
                let organisation = charter.find(name)?;
                organisation.address.clone_from(address);
                organisation.gateway.clone_from(gateway);
            }
            CharterChange::SetParameter { parameter, value } => charter.set(parameter, value)?,
        }
        charter.check_amended()?;
        Ok(charter)
    }

    fn find(&mut self, name: &str) -> Result<&mut Organisation, CharterError> {
        let found = self.organisations.iter_mut().find(|one| !one.removed && one.name == name);
        found.ok_or_else(|| CharterError::NoMember { organisation: name.to_string() })
    }

    /// Goes over to the next version of the rules of execution. Which one that is follows from the charter alone, so that every
    /// node comes to the same, also one whose program does not know it yet. There is no way back, nor past one.
    fn set_execution_version(&mut self, value: &str) -> Result<(), CharterError> {
        let next = self.execution_version.saturating_add(1);
        if value != next.to_string() {
            let expected = format!("{next}, the one after the present one");
            return Err(CharterError::Value {
                field: "execution_version",
                expected,
                found: format!("`{value}`"),
            });
        }
        self.execution_version = next;
        Ok(())
    }

    /// Sets a parameter that can change while the network runs. What is executed with (`execution`, `protocol`,
    /// `concurrency`, `ordering`) stays as it was founded; its rules have versions.
    fn set(&mut self, parameter: &str, value: &str) -> Result<(), CharterError> {
        // Part of receipts: as it was before there was a second execution version.
        const KNOWN: &str = "one of governance, outcome_quorum, outcome_lag_blocks, expiry_blocks_max, \
                             block.transactions_max, block.bytes_max, block.fill_ms, block.idle_ms, \
                             block.batch_transactions, meter.transaction_steps, meter.block_steps";
        fn number<T: std::str::FromStr>(field: &'static str, value: &str) -> Result<T, CharterError> {
            let wrong = |_| CharterError::Value {
                field,
                expected: "a whole number".to_string(),
                found: format!("`{value}`"),
            };
            value.parse().map_err(wrong)
        }
        match parameter {
            "governance" => self.governance = value.to_string(),
            "outcome_quorum" => {
                self.outcome_quorum = match value {
                    "" => None,
                    value => Some(number("outcome_quorum", value)?),
                }
            }
            "outcome_lag_blocks" => self.outcome_lag_blocks = number("outcome_lag_blocks", value)?,
            "expiry_blocks_max" => self.expiry_blocks_max = number("expiry_blocks_max", value)?,
            "block.transactions_max" => {
                self.block.transactions_max = number("block.transactions_max", value)?
            }
            "block.bytes_max" => self.block.bytes_max = number("block.bytes_max", value)?,
            "block.fill_ms" => self.block.fill_ms = number("block.fill_ms", value)?,
            "block.idle_ms" => self.block.idle_ms = number("block.idle_ms", value)?,
            "block.batch_transactions" => {
                self.block.batch_transactions = number("block.batch_transactions", value)?;
            }
            "meter.transaction_steps" => {
                self.meter.transaction_steps = number("meter.transaction_steps", value)?;
            }
            "meter.block_steps" => self.meter.block_steps = number("meter.block_steps", value)?,
            "execution_version" => self.set_execution_version(value)?,
            "checkpoint_rows" if has_rows(self.execution_version) => {
                self.checkpoint_rows = number("checkpoint_rows", value)?;
            }
            "block.transaction_bytes_max" if has_transaction_bytes(self.execution_version) => {
                self.block.transaction_bytes_max = number("block.transaction_bytes_max", value)?;
            }
            "window_blocks" if has_window(self.execution_version) => {
                self.window_blocks = number("window_blocks", value)?;
            }
            other => {
                let expected = match self.execution_version {
                    1 => KNOWN.to_string(),
                    2 => format!("{KNOWN}, execution_version"),
                    14.. => format!(
                        "{KNOWN}, execution_version, checkpoint_rows, window_blocks, block.transaction_bytes_max"
                    ),
                    4.. => format!("{KNOWN}, execution_version, checkpoint_rows, window_blocks"),
                    _ => format!("{KNOWN}, execution_version, checkpoint_rows"),
                };
                return Err(CharterError::Value {
                    field: "the parameter to change",
                    expected,
                    found: format!("`{other}`"),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attestation, CertificateRules, OutcomeHeader, decode_exactly};
    use crypto::sha256;

    fn organisation(number: u8) -> Organisation {
        Organisation {
            name: format!("org{number}"),
            root_key: SecretKey::from_bytes([number; 32]).public_key(),
            node_key: SecretKey::from_bytes([number + 100; 32]).public_key(),
            address: format!("127.0.0.1:{}", 7000 + u16::from(number)),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        }
    }

    fn charter() -> Charter {
        let mut charter = Charter::with_defaults("test", 7);
        charter.organisations = (1..5).map(organisation).collect();
        for position in 0..4 {
            charter.sign(position, &SecretKey::from_bytes([position as u8 + 1; 32]));
        }
        charter.check().expect("a good charter");
        charter
    }

    fn remove(name: &str) -> CharterChange {
        CharterChange::RemoveOrganisation { name: name.to_string() }
    }

    fn set(parameter: &str, value: &str) -> CharterChange {
        CharterChange::SetParameter { parameter: parameter.into(), value: value.into() }
    }

    fn add(ledger: &Digest, number: u8, root: u8) -> CharterChange {
        let organisation = organisation(number);
        let acceptance = accept_membership(ledger, &organisation, &SecretKey::from_bytes([root; 32]));
        CharterChange::AddOrganisation { organisation, acceptance }
    }

    #[test]
    fn an_amended_charter_is_of_the_same_ledger_and_no_founding_one() {
        let founding = charter();
        let ledger = founding.ledger();
        let five = founding.amended(&add(&ledger, 5, 5)).expect("a fifth member");
        assert_eq!((five.version, five.ledger(), five.members().count()), (1, ledger, 5));
        assert_eq!(five.check_amended(), Ok(()));
        assert!(matches!(five.check(), Err(CharterError::Amended { version: 1 })));
        assert!(founding.check_amended().is_err());
        let amended = AmendedCharter { charter: five.clone(), effective_height: 9 };
        assert_eq!(decode_exactly::<AmendedCharter>(&crate::encode(&amended)).expect("canonical"), amended);

        // Positions are for ever, also of those who have left; names and keys are not given twice.
        let four = five.amended(&remove("org2")).expect("without the second");
        let members: Vec<u16> = four.members().map(|(position, _)| position).collect();
        assert_eq!((four.version, members), (2, vec![0, 2, 3, 4]));
        assert_eq!(four.member(&founding.organisations[1].node_key), None);
        assert_eq!(four.outcome_quorum(), 3);
        assert!(matches!(four.amended(&add(&ledger, 2, 2)), Err(CharterError::Repeated { .. })));
        assert_eq!(
            four.amended(&remove("org2")),
            Err(CharterError::NoMember { organisation: "org2".into() })
        );
        assert_eq!(
            four.amended(&remove("org1")),
            Err(CharterError::TooFewMembers { ordering: "bft".to_string(), members: 3 })
        );
    }

    #[test]
    fn nobody_becomes_a_member_without_accepting() {
        let founding = charter();
        let refused = founding.amended(&add(&founding.ledger(), 5, 6));
        assert_eq!(refused, Err(CharterError::NotAccepted { organisation: "org5".into() }));
        let other_ledger = founding.amended(&add(&sha256(&[b"other"]), 5, 5));
        assert!(matches!(other_ledger, Err(CharterError::NotAccepted { .. })));
    }

    #[test]
    fn how_many_rows_lead_to_a_checkpoint_is_a_parameter_of_version_3() {
        let mut second = charter();
        second.found_with_version(2);
        let refused = second.amended(&set("checkpoint_rows", "5000")).expect_err("not yet").to_string();
        // In receipts of such ledgers, as it always was.
        assert!(
            refused.ends_with("meter.block_steps, execution_version, found `checkpoint_rows`"),
            "{refused}"
        );
        second.checkpoint_rows = 5_000;
        let refused = second.amended(&set("block.fill_ms", "30")).expect_err("not yet").to_string();
        assert!(refused.contains("checkpoint_rows must be left out before execution version 3"), "{refused}");
        second.checkpoint_rows = Charter::CHECKPOINT_ROWS_DEFAULT;
        let third = second.amended(&set("execution_version", "3")).expect("the next one");
        assert_eq!(third.checkpoint_rows, 250_000);
        let other = third.amended(&set("checkpoint_rows", "5000")).expect("in range");
        assert_eq!(other.checkpoint_rows, 5_000);
        assert_eq!(decode_exactly::<Charter>(&encode(&other)).expect("whole"), other);
        for wrong in ["0", "1000000001", "many", ""] {
            assert!(third.amended(&set("checkpoint_rows", wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_window_of_decisions_is_a_parameter_of_version_4() {
        let mut third = charter();
        third.found_with_version(3);
        let refused = third.amended(&set("window_blocks", "30")).expect_err("not yet").to_string();
        assert!(refused.ends_with("execution_version, checkpoint_rows, found `window_blocks`"), "{refused}");
        third.window_blocks = 30;
        let refused = third.amended(&set("block.fill_ms", "30")).expect_err("not yet").to_string();
        assert!(
            refused.contains("window_blocks must be left out before execution version 4, found 30"),
            "{refused}"
        );
        third.window_blocks = Charter::WINDOW_BLOCKS_DEFAULT;
        let fourth = third.amended(&set("execution_version", "4")).expect("the next one");
        assert_eq!(fourth.window_blocks, 24);
        let other = fourth.amended(&set("window_blocks", "30")).expect("in range");
        assert_eq!(other.window_blocks, 30);
        assert_eq!(decode_exactly::<Charter>(&encode(&other)).expect("whole"), other);
        let short = fourth.amended(&set("window_blocks", "3")).expect_err("too short").to_string();
        assert!(short.contains("window_blocks must be 4 to 10000, found 3"), "{short}");
    }

    #[test]
    fn parameters_change_within_their_ranges() {
        let founding = charter();
        let changed = founding.amended(&set("block.fill_ms", "50")).expect("in range");
        assert_eq!(changed.block.fill_ms, 50);
        for (parameter, value) in [
            ("block.fill_ms", "5000"),
            ("block.fill_ms", "soon"),
            ("outcome_quorum", "1"),
            ("protocol", "rbc"),
            ("nonsense", "1"),
            ("governance", "2 of (org1, org9)"),
        ] {
            assert!(founding.amended(&set(parameter, value)).is_err(), "{parameter} = {value}");
        }
        let next = founding.execution_version + 1;
        let switched = founding.amended(&set("execution_version", &next.to_string())).expect("the next one");
        // Whether a program knows the one after is no part of what every node must decide alike.
        let switched =
            switched.amended(&set("execution_version", &(next + 1).to_string())).expect("one more");
        assert_eq!((switched.execution_version, switched.version), (next + 1, 2));
        for value in [next, next + 1, next + 3] {
            let refused = switched.amended(&set("execution_version", &value.to_string()));
            assert!(refused.is_err(), "{value} does not follow {}", next + 1);
        }
        let five = founding.amended(&add(&founding.ledger(), 5, 5)).expect("a fifth member");
        let governed = five.amended(&set("governance", "org1 AND org2")).expect("members");
        // What governance names can leave only when governance says something else.
        assert!(matches!(governed.amended(&remove("org2")), Err(CharterError::Governance(_))));
    }

    #[test]
    fn keys_count_until_they_expire_and_those_of_members_alone() {
        let founding = charter();
        let key = SecretKey::from_bytes([150; 32]);
        let change = CharterChange::ReplaceNodeKey {
            name: "org1".into(),
            node_key: key.public_key(),
            expires: Some(20),
        };
        let changed = founding.amended(&change).expect("a new key");
        let changed = changed.amended(&add(&founding.ledger(), 5, 5)).expect("a member more");
        let changed = changed.amended(&remove("org2")).expect("a member less");
        let rules = CertificateRules::new(&changed);
        assert_eq!((rules.quorum(), rules.members()), (3, 5));
        let header = |height| {
            let digest = sha256(&[b"x"]);
            OutcomeHeader {
                ledger: founding.ledger(),
                height,
                block: digest,
                previous: digest,
                receipts_root: digest,
                state_digest: digest,
                charters: digest,
            }
        };
        let by = |height, organisation, key: &SecretKey| {
            rules.check(&Attestation::sign(header(height), organisation, key))
        };
        assert_eq!(by(20, 0, &key), Ok(()));
        assert!(by(21, 0, &key).is_err(), "the key has expired");
        assert!(by(20, 0, &SecretKey::from_bytes([101; 32])).is_err(), "the old key");
        assert!(by(20, 1, &SecretKey::from_bytes([102; 32])).is_err(), "one that has left");
        assert_eq!(by(20, 4, &SecretKey::from_bytes([105; 32])), Ok(()));
    }
}
