use crate::charter_encoding::{has_rows, has_transaction_bytes, has_window};
use crate::charter_text::{MISSING, as_text, digest_as_text, signatures_as_text};
use crate::{
    Consistency, EndorsementOptions, ExecutionModel, ExecutionVersion, KnownVersions, Policy, PolicyError,
    ProtocolOptions, UnknownVersion, encode, faults_tolerated, limits, quorum,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage, sha256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A member: its keys and where its node listens for the other nodes.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organisation {
    /// Its name, unique in the charter.
    pub name: String,
    /// The key that signs the charter and the organisation's clients.
    #[serde(with = "as_text")]
    pub root_key: PublicKey,
    /// The key that its node signs votes with.
    #[serde(with = "as_text")]
    pub node_key: PublicKey,
    /// Where its node listens for the others: `host:port`.
    pub address: String,
    /// Where its node answers HTTP, and proposals with it: `https://host:port`, or `host:port`, where charters of before do not say
    /// whether over TLS ([`crate::GatewayAddress`]). Empty: it endorses nothing that others propose.
    #[serde(default)]
    pub gateway: String,
    /// It has left. Its position stays taken, because signatures and credentials name positions.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
    /// The last height that its node key signs for; `None`: the key does not expire. What it means: [`Charter::signs_at`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_key_expires: Option<u64>,
}

/// When a block is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockLimits {
    /// Transactions of a block.
    pub transactions_max: u32,
    /// Bytes of a block's transactions.
    pub bytes_max: u32,
    /// Bytes of one transaction. Charters of execution versions before 14 do without it: [`limits::TRANSACTION_BYTES_BEFORE`].
    #[serde(
        default = "default_transaction_bytes_max",
        skip_serializing_if = "is_default_transaction_bytes_max"
    )]
    pub transaction_bytes_max: u32,
    /// Milliseconds that a proposer waits for the block to fill once it has a transaction.
    pub fill_ms: u32,
    /// Milliseconds after which an idle network orders an empty block.
    pub idle_ms: u32,
    /// Transactions of an execution batch: a block is cut into batches of this size, in order.
    pub batch_transactions: u32,
}

/// How much work contracts may do, in logical steps (statements and rows), not in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterLimits {
    /// Steps of one execution of a transaction.
    pub transaction_steps: u64,
    /// Steps of all executions in a block, repeated ones included.
    pub block_steps: u64,
}

/// A ledger's configuration, agreed by its members. The digest of the founding one names the ledger; what members
/// agree on later makes amended ones ([`Charter::amended`]), which are states of the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charter {
    /// For people.
    pub name: String,
    /// Distinguishes networks that have the same members.
    pub nonce: u64,
    /// Counts the amendments; 0: the founding charter.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub version: u64,
    /// Digest of the founding charter, of an amended one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "digest_as_text")]
    pub founding: Option<Digest>,
    /// Who must agree to a change of schema, contracts, policies, members, keys or this charter: `majority` of the
    /// members, `any` one of them, or an expression over them ([`Policy`]).
    #[serde(default = "default_governance")]
    pub governance: String,
    /// Version of the rules of execution ([`ExecutionVersion`]); which ones there are, programs know ([`KnownVersions`]).
    pub execution_version: u32,
    /// When transactions are executed, and by whom.
    #[serde(default)]
    pub execution: ExecutionModel,
    /// How the conflicts of a batch are settled: a protocol's id. Which there are, the engine knows.
    pub protocol: String,
    /// Who orders: `bft`; `raft`, where members trust whoever leads with the order; `kafka`, where they trust who runs
    /// brokers with it; or `solo` for a network of one.
    pub ordering: String,
    /// Checkpoints are so many blocks apart, from execution version 3 on at most.
    pub checkpoint_blocks: u32,
    /// From execution version 3 on: there is a checkpoint where so many rows have changed since the last one. In the file it
    /// may be left out; before that version it must be.
    #[serde(default = "default_checkpoint_rows", skip_serializing_if = "is_default_checkpoint_rows")]
    pub checkpoint_rows: u32,
    /// From execution version 4 on: a transaction in several schemas with members is decided so many blocks behind its own at the
    /// latest. In the file it may be left out; before that version it must be.
    #[serde(default = "default_window_blocks", skip_serializing_if = "is_default_window_blocks")]
    pub window_blocks: u32,
    /// How far ahead a transaction's expiry height may lie.
    pub expiry_blocks_max: u32,
    /// How many organisations must come to the same outcome of a block; n − ⌊(n − 1)/3⌋ where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_quorum: Option<u32>,
    /// How many blocks ordering may be ahead of certified outcomes; beyond it only empty blocks are ordered.
    #[serde(default = "default_outcome_lag")]
    pub outcome_lag_blocks: u32,
    /// How the protocol works.
    #[serde(default)]
    pub concurrency: ProtocolOptions,
    /// Who endorses, where transactions are executed before they are ordered.
    #[serde(default)]
    pub endorsement: EndorsementOptions,
    /// When a block is cut.
    pub block: BlockLimits,
    /// How much work contracts may do.
    pub meter: MeterLimits,
    /// The members, in the order that `organisation` numbers count.
    #[serde(rename = "organisation")]
    pub organisations: Vec<Organisation>,
    /// One signature per member, with its root key under the ledger's digest, in the same order. Before all have signed, those
    /// that are missing are empty, and of a draft there is none at all.
    #[serde(with = "signatures_as_text")]
    pub signatures: Vec<Signature>,
}

/// Why a charter cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CharterError {
    /// Not TOML, a field missing, a field unknown, a key that is none.
    #[error("the charter cannot be read: {0}")]
    Malformed(String),
    /// Agreement on outcomes needs four members to survive one, whoever orders.
    #[error(
        "a charter with `ordering = \"{ordering}\"` needs at least 4 organisations to survive a faulty one, this has {members}"
    )]
    TooFewMembers {
        /// Who orders.
        ordering: String,
        /// How many members there are.
        members: usize,
    },
    /// A value that is out of its range.
    #[error("charter: {field} must be {expected}, found {found}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A key or name that stands twice.
    #[error("charter: {what} {found} stands more than once; every member needs its own")]
    Repeated {
        /// What is repeated.
        what: &'static str,
        /// Its value.
        found: String,
    },
    /// The ledger was founded with rules of execution that this program does not know.
    #[error("charter: {0}")]
    Unknown(#[from] UnknownVersion),
    /// The policy of the whole ledger.
    #[error("the charter's `endorsement.policy` cannot be: {0}")]
    Policy(PolicyError),
    /// Who must agree to changes.
    #[error(
        "the charter's `governance` cannot be: {0}; write `majority`, `any` or an expression over members"
    )]
    Governance(PolicyError),
    /// An amended charter where a founding one is expected, or the other way round.
    #[error(
        "expected the founding charter, which its members have signed, found version {version}; \
         amendments are in the ledger"
    )]
    Amended {
        /// The version that came.
        version: u64,
    },
    /// A founding charter where an amended one is expected.
    #[error("expected an amended charter, found the founding one")]
    Founding,
    /// A change of an organisation that is no member.
    #[error("the ledger has no member {organisation}; entente.organisations shows who there is")]
    NoMember {
        /// Its name.
        organisation: String,
    },
    /// A new member that has not said that it wants to be one.
    #[error(
        "organisation {organisation} has not accepted its membership: have it signed by its root key \
         (`entente accept-membership`) with exactly this name, these keys and addresses"
    )]
    NotAccepted {
        /// Its name.
        organisation: String,
    },
    /// A charter that not all members have signed.
    #[error(
        "the charter is not signed by all its members yet, missing: {missing}; get their signatures (`entente charter sign`) \
         and put them into the charter (`entente charter assemble`)"
    )]
    NotSigned {
        /// Names of those whose signatures are missing.
        missing: String,
    },
    /// A signature that does not fit.
    #[error(
        "the charter is not signed by {organisation}: its signature is over another charter, or by another key; \
         `entente charter show DRAFT --against` this file says what was changed in it; take the charter as all members have signed it"
    )]
    WrongSignature {
        /// Whose signature is missing or wrong.
        organisation: String,
    },
}

impl Charter {
    /// What [`Charter::checkpoint_rows`] is where nobody says it. It cannot become another number: charters do without it.
    pub const CHECKPOINT_ROWS_DEFAULT: u32 = 250_000;

    /// What [`Charter::window_blocks`] is where nobody says it. It cannot become another number, either.
    pub const WINDOW_BLOCKS_DEFAULT: u32 = 24;

    /// The parameters of a new network; members and signatures are still missing.
    pub fn with_defaults(name: &str, nonce: u64) -> Charter {
        Charter {
            name: name.to_string(),
            nonce,
            version: 0,
            founding: None,
            governance: default_governance(),
            execution_version: ExecutionVersion::CURRENT.number(),
            execution: ExecutionModel::OrderExecute,
            protocol: "harmony".to_string(),
            ordering: "bft".to_string(),
            checkpoint_blocks: 1_000,
            checkpoint_rows: Charter::CHECKPOINT_ROWS_DEFAULT,
            window_blocks: Charter::WINDOW_BLOCKS_DEFAULT,
            expiry_blocks_max: 100_000,
            outcome_quorum: None,
            outcome_lag_blocks: default_outcome_lag(),
            concurrency: ProtocolOptions::default(),
            endorsement: EndorsementOptions::default(),
            block: BlockLimits {
                transactions_max: 4_000,
                bytes_max: 4 * 1024 * 1024,
                transaction_bytes_max: 2 * 1024 * 1024,
                fill_ms: 20,
                idle_ms: 500,
                batch_transactions: 500,
            },
            meter: MeterLimits { transaction_steps: 1_000_000, block_steps: 100_000_000 },
            organisations: Vec::new(),
            signatures: Vec::new(),
        }
    }

    /// Founds the ledger with these rules of execution: what older ones do not know is as it was with them.
    pub fn found_with_version(&mut self, execution_version: u32) {
        self.execution_version = execution_version;
        if !has_transaction_bytes(execution_version) {
            self.block.transaction_bytes_max = limits::TRANSACTION_BYTES_BEFORE;
        }
    }

    /// Names the ledger: of the founding charter, SHA-256 over everything but the signatures; amended ones keep it.
    pub fn ledger(&self) -> Digest {
        if let Some(founding) = self.founding {
            return founding;
        }
        let mut unsigned = self.clone();
        unsigned.signatures.clear();
        sha256(&[b"entente charter 1\0", &encode(&unsigned)])
    }

    /// Signs as member number `organisation`.
    pub fn sign(&mut self, organisation: usize, root: &SecretKey) {
        let signature = root.sign(&self.ledger().0);
        self.signatures.resize(self.organisations.len(), MISSING);
        self.signatures[organisation] = signature;
    }

    /// Position of the member with this node key.
    pub fn member(&self, node_key: &PublicKey) -> Option<usize> {
        let is_it = |organisation: &Organisation| !organisation.removed && organisation.node_key == *node_key;
        self.organisations.iter().position(is_it)
    }

    /// The members, each with its position: all organisations that have not left.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = (u16, &Organisation)> + Clone {
        let all = self.organisations.iter().enumerate().map(|(position, one)| (position as u16, one));
        all.filter(|(_, organisation)| !organisation.removed)
    }

    fn member_names(&self) -> Vec<&str> {
        self.members().map(|(_, organisation)| organisation.name.as_str()).collect()
    }

    /// Who must agree to changes.
    ///
    /// # Errors
    /// What is wrong with the charter's `governance`.
    pub fn governance_policy(&self) -> Result<Policy, PolicyError> {
        let members = self.member_names();
        let of_all = |needed: usize| match members.as_slice() {
            [only] => Policy::parse(&quoted(only)),
            _ => {
                let all: Vec<String> = members.iter().map(|name| quoted(name)).collect();
                Policy::parse(&format!("{needed} of ({})", all.join(", ")))
            }
        };
        let policy = match self.governance.as_str() {
            "any" => of_all(1)?,
            "majority" => of_all(members.len() / 2 + 1)?,
            expression => Policy::parse(expression)?,
        };
        policy.check(&members)?;
        Ok(policy)
    }

    /// How many organisations must come to the same outcome of a block.
    pub fn outcome_quorum(&self) -> usize {
        let members = self.members().count();
        self.outcome_quorum.map_or_else(|| quorum(members), |quorum| quorum as usize)
    }

    /// Up to this height keys expire: above it those that have not are fewer than a quorum, and all members' keys count.
    pub(crate) fn keys_expire_up_to(&self) -> u64 {
        let last = |(_, member): (u16, &Organisation)| member.node_key_expires.unwrap_or(u64::MAX);
        let mut last: Vec<u64> = self.members().map(last).collect();
        last.sort_unstable_by(|one, other| other.cmp(one));
        last.get(self.outcome_quorum().saturating_sub(1)).copied().unwrap_or(0)
    }

    /// Whether what the node key of the organisation at a position attests and endorses about a height counts: it is a
    /// member, and the key has not expired. Where fewer than a quorum of keys would be left, none expires: without a quorum
    /// no key could be replaced any more, and the ledger would have ended.
    pub fn signs_at(&self, position: usize, height: u64) -> bool {
        let member = self.organisations.get(position).filter(|organisation| !organisation.removed);
        member.is_some_and(|member| member.node_key_expires.is_none_or(|last| height <= last))
            || member.is_some() && height > self.keys_expire_up_to()
    }

    /// Whether blocks come to the same for a node that remembers nothing of those before but the state and what has not
    /// expired: otherwise it can come back at checkpoints only, where all nodes forget.
    pub fn blocks_stand_alone(&self) -> bool {
        match self.execution {
            ExecutionModel::OrderExecute => self.concurrency.consistency == Consistency::Strict,
            ExecutionModel::ExecuteOrderValidate => false,
            ExecutionModel::WhateverThenAgree => true,
        }
    }

    /// Who must have endorsed a transaction that nothing else is said of.
    ///
    /// # Errors
    /// What is wrong with the charter's `endorsement.policy`.
    pub fn endorsement_policy(&self) -> Result<Policy, PolicyError> {
        self.endorsement.policy(&self.member_names())
    }

    /// As a file for people.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a charter has no maps with other keys than text")
    }

    /// Reads a charter file and checks it whole: members, limits and every signature.
    ///
    /// # Errors
    /// [`CharterError`] says which part, what was expected and what came.
    pub fn from_toml(text: &str) -> Result<Charter, CharterError> {
        let charter: Charter =
            toml::from_str(text).map_err(|error| CharterError::Malformed(error.to_string()))?;
        charter.check()?;
        Ok(charter)
    }

    /// Checks members, limits and every signature of a founding charter.
    ///
    /// # Errors
    /// As [`Charter::from_toml`].
    pub fn check(&self) -> Result<(), CharterError> {
        self.check_draft()?;
        match self.missing_signatures().as_slice() {
            [] => Ok(()),
            missing => Err(CharterError::NotSigned { missing: missing.join(", ") }),
        }
    }

    /// The same, of a founding charter that not all members have signed yet: signatures may be missing, wrong ones may not be
    /// there.
    ///
    /// # Errors
    /// As [`Charter::from_toml`].
    pub fn check_draft(&self) -> Result<(), CharterError> {
        if self.version != 0 || self.founding.is_some() || self.members().count() != self.organisations.len()
        {
            return Err(CharterError::Amended { version: self.version });
        }
        self.check_rules()?;
        KnownVersions::default().of(self, 0)?;
        if self.signatures.len() > self.organisations.len() {
            return Err(CharterError::Value {
                field: "signatures",
                expected: format!("one of each member, {}", self.organisations.len()),
                found: self.signatures.len().to_string(),
            });
        }
        let ledger = self.ledger();
        for (organisation, signature) in self.organisations.iter().zip(&self.signatures) {
            let signed =
                SignedMessage { key: organisation.root_key, signature: *signature, message: &ledger.0 };
            if *signature != MISSING && !crypto::verify(&signed) {
                return Err(CharterError::WrongSignature { organisation: organisation.name.clone() });
            }
        }
        Ok(())
    }

    /// Checks members and limits of an amended charter, which has no signatures: that it is the ledger's follows from
    /// the outcome of the block that has decided on it.
    ///
    /// # Errors
    /// As [`Charter::from_toml`].
    pub fn check_amended(&self) -> Result<(), CharterError> {
        if self.version == 0 || self.founding.is_none() {
            return Err(CharterError::Founding);
        }
        self.check_rules()
    }

    fn check_rules(&self) -> Result<(), CharterError> {
        let members = self.members().count();
        if self.ordering != "solo" && members < 4 {
            let (ordering, members) = (self.ordering.clone(), members);
            return Err(CharterError::TooFewMembers { ordering, members });
        }
        self.check_values()?;
        let bytes = encode(self).len();
        if bytes > limits::CHARTER_BYTES_MAX {
            let expected = format!("at most {} bytes long (CHARTER_BYTES_MAX)", limits::CHARTER_BYTES_MAX);
            return Err(CharterError::Value {
                field: "the whole",
                expected,
                found: format!("{bytes} bytes"),
            });
        }
        let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for organisation in &self.organisations {
            if !names.insert(&organisation.name) {
                let found = organisation.name.clone();
                return Err(CharterError::Repeated { what: "the name", found });
            }
            for key in [organisation.root_key, organisation.node_key] {
                key.check().map_err(|error| CharterError::Malformed(error.to_string()))?;
                if !keys.insert(key) {
                    return Err(CharterError::Repeated { what: "the key", found: key.to_string() });
                }
            }
        }
        self.governance_policy().map_err(CharterError::Governance)?;
        self.endorsement_policy().map(drop).map_err(CharterError::Policy)
    }

    /// Parameters that later versions have brought are left out in charters of older ones.
    fn check_parameters_of_version(&self) -> Result<(), CharterError> {
        let (version, transaction) = (self.execution_version, self.block.transaction_bytes_max);
        let parameters = [
            (
                "checkpoint_rows",
                3,
                has_rows(version) || self.checkpoint_rows == Charter::CHECKPOINT_ROWS_DEFAULT,
                self.checkpoint_rows,
            ),
            (
                "window_blocks",
                4,
                has_window(version) || self.window_blocks == Charter::WINDOW_BLOCKS_DEFAULT,
                self.window_blocks,
            ),
            (
                "block.transaction_bytes_max",
                14,
                has_transaction_bytes(version) || transaction == default_transaction_bytes_max(),
                transaction,
            ),
        ];
        match parameters.into_iter().find(|(_, _, good, _)| !good) {
            Some((field, since, _, found)) => Err(CharterError::Value {
                field,
                expected: format!("left out before execution version {since}"),
                found: found.to_string(),
            }),
            None => Ok(()),
        }
    }

    fn check_values(&self) -> Result<(), CharterError> {
        let wrong = |field, expected: &str, found: String| {
            Err(CharterError::Value { field, expected: expected.to_string(), found })
        };
        if !["bft", "kafka", "raft", "solo"].contains(&self.ordering.as_str()) {
            return wrong("ordering", "`bft`, `kafka`, `raft` or `solo`", format!("`{}`", self.ordering));
        }
        // Whether this program knows it is asked where blocks are executed: amendments of a newer one are in the ledger before.
        if self.execution_version == 0 {
            return wrong("execution_version", "1 or above", "0".to_string());
        }
        let in_order = ["serial", "block-stm"].contains(&self.protocol.as_str());
        if self.execution == ExecutionModel::WhateverThenAgree && !in_order {
            // Databases execute the scripts of a block in its order.
            let expected = "`serial` or `block-stm` with `execution = \"whatever-then-agree\"`";
            return wrong("protocol", expected, format!("`{}`", self.protocol));
        }
        for organisation in &self.organisations {
            let length = organisation.name.len();
            if length == 0 || length > limits::NAME_BYTES_MAX {
                return wrong("organisation.name", "1 to 63 bytes long", format!("{length} bytes"));
            }
        }
        let block = &self.block;
        let members = self.members().count();
        self.check_parameters_of_version()?;
        let ranges: [(&'static str, u64, u64, u64); 15] = [
            (
                "outcome_quorum",
                self.outcome_quorum() as u64,
                faults_tolerated(members) as u64 + 1,
                members.max(1) as u64,
            ),
            ("outcome_lag_blocks", self.outcome_lag_blocks.into(), 2, 10_000),
            ("organisations", self.organisations.len() as u64, 1, limits::ORGANISATIONS_MAX as u64),
            (
                "block.transactions_max",
                block.transactions_max.into(),
                1,
                limits::BLOCK_TRANSACTIONS_MAX.into(),
            ),
            (
                "block.transaction_bytes_max",
                block.transaction_bytes_max.into(),
                limits::TRANSACTION_BYTES_BEFORE.into(),
                limits::TRANSACTION_BYTES_MAX as u64,
            ),
            (
                "block.bytes_max",
                block.bytes_max.into(),
                u64::from(block.transaction_bytes_max) + 4,
                limits::BLOCK_BYTES_MAX.into(),
            ),
            ("block.fill_ms", block.fill_ms.into(), 0, 1_000),
            ("block.idle_ms", block.idle_ms.into(), 100, 60_000),
            ("block.batch_transactions", block.batch_transactions.into(), 1, 65_535),
            ("checkpoint_blocks", self.checkpoint_blocks.into(), 1, 1_000_000),
            ("checkpoint_rows", self.checkpoint_rows.into(), 1, 1_000_000_000),
            // Votes take two blocks to get into the ledger where everybody is up.
            ("window_blocks", self.window_blocks.into(), 4, 10_000),
            ("expiry_blocks_max", self.expiry_blocks_max.into(), 1, 10_000_000),
            ("meter.transaction_steps", self.meter.transaction_steps, 1_000, 1_000_000_000),
            ("meter.block_steps", self.meter.block_steps, self.meter.transaction_steps, 1_000_000_000_000),
        ];
        match ranges.into_iter().find(|(_, found, low, high)| found < low || found > high) {
            Some((field, found, low, high)) => wrong(field, &format!("{low} to {high}"), found.to_string()),
            None => Ok(()),
        }
    }
}

fn default_outcome_lag() -> u32 {
    100
}

fn default_checkpoint_rows() -> u32 {
    Charter::CHECKPOINT_ROWS_DEFAULT
}

fn is_default_checkpoint_rows(rows: &u32) -> bool {
    *rows == Charter::CHECKPOINT_ROWS_DEFAULT
}

fn default_window_blocks() -> u32 {
    Charter::WINDOW_BLOCKS_DEFAULT
}

fn is_default_window_blocks(blocks: &u32) -> bool {
    *blocks == Charter::WINDOW_BLOCKS_DEFAULT
}

fn default_transaction_bytes_max() -> u32 {
    limits::TRANSACTION_BYTES_BEFORE
}

fn is_default_transaction_bytes_max(bytes: &u32) -> bool {
    *bytes == default_transaction_bytes_max()
}

fn default_governance() -> String {
    "majority".to_string()
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A name as policies can always read it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charter() -> (Charter, Vec<SecretKey>) {
        let mut charter = Charter::with_defaults("test", 7);
        let roots: Vec<_> = (0..4).map(|i| SecretKey::from_bytes([i + 1; 32])).collect();
        for (position, root) in roots.iter().enumerate() {
            charter.organisations.push(Organisation {
                name: format!("org{}", position + 1),
                root_key: root.public_key(),
                node_key: SecretKey::from_bytes([position as u8 + 101; 32]).public_key(),
                address: format!("127.0.0.1:{}", 7000 + position),
                gateway: format!("127.0.0.1:{}", 7200 + position),
                removed: false,
                node_key_expires: None,
            });
        }
        for (position, root) in roots.iter().enumerate() {
            charter.sign(position, root);
        }
        (charter, roots)
    }

    #[test]
    fn charters_round_trip_as_text() {
        let (charter, _) = charter();
        assert_eq!(Charter::from_toml(&charter.to_toml()), Ok(charter));
    }

    #[test]
    fn what_makes_a_charter_useless_is_named() {
        let (good, roots) = charter();
        let mut few = good.clone();
        few.organisations.truncate(3);
        assert_eq!(few.check(), Err(CharterError::TooFewMembers { ordering: "bft".to_string(), members: 3 }));

        let mut changed = good.clone();
        changed.block.fill_ms = 21;
        let mut governed = good.clone();
        governed.governance = "2 of (org1, nobody)".to_string();
        assert!(matches!(governed.check(), Err(CharterError::Governance(_))));
        governed.governance = "any".to_string();
        assert_eq!(governed.governance_policy().expect("any").to_string(), "org1 OR org2 OR org3 OR org4");
        assert_eq!(good.governance_policy().expect("majority").to_string(), "3 of (org1, org2, org3, org4)");
        assert_eq!(changed.check(), Err(CharterError::WrongSignature { organisation: "org1".into() }));

        let mut wrong = good.clone();
        wrong.sign(2, &roots[1]);
        assert_eq!(wrong.check(), Err(CharterError::WrongSignature { organisation: "org3".into() }));

        let mut twice = good.clone();
        twice.organisations[3].node_key = twice.organisations[0].root_key;
        assert!(matches!(twice.check(), Err(CharterError::Repeated { .. })));

        let unknown = good.to_toml().replace("nonce", "nonsense");
        assert!(
            matches!(Charter::from_toml(&unknown), Err(CharterError::Malformed(text)) if text.contains("nonsense"))
        );

        let unknown = good.to_toml().replace("strict", "lenient");
        let Err(CharterError::Malformed(message)) = Charter::from_toml(&unknown) else { panic!("{unknown}") };
        assert!(message.contains("`strict` or `serializable`"), "{message}");
    }
}
