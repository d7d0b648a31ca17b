//! Endorsements: what a transaction does, found and signed by organisations before it is ordered
//! (execute–order–validate; `protocols.md`, section 3).

use crate::{ColumnSet, Key, Row, StatementResult, TableId, TransactionId, Value, encode, format_value};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, MerkleProof, SecretKey, Sha256Batch, Signature, leaf_hash, sha256};
use std::fmt;
use std::ops::Bound;

const EFFECTS_DOMAIN: &[u8] = b"entente endorsed effects 1\0";
/// What says under which schema a script was agreed to.
const SCHEMA: &str = "entente.schema";
const ENDORSEMENT_DOMAIN: &[u8] = b"entente endorsement 1\0";

/// Columns of a row that were looked at.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct EndorsedRead {
    /// Its table.
    pub table: TableId,
    /// Its primary key.
    pub key: Key,
    /// Which columns.
    pub columns: ColumnSet,
}

/// An interval of keys that was searched.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct EndorsedScan {
    /// Its table.
    pub table: TableId,
    /// Where the interval begins.
    pub start: KeyBound,
    /// Where it ends.
    pub end: KeyBound,
    /// Columns of predicate and projection.
    pub columns: ColumnSet,
    /// Columns of the predicate alone.
    pub predicate_columns: ColumnSet,
    /// Keys of the rows found, ascending.
    pub result: Vec<Key>,
}

/// An end of an interval of keys.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum KeyBound {
    /// With this key.
    Included(Key),
    /// Without this key.
    Excluded(Key),
    /// There is none.
    Unbounded,
}

impl From<Bound<Key>> for KeyBound {
    fn from(bound: Bound<Key>) -> KeyBound {
        match bound {
            Bound::Included(key) => KeyBound::Included(key),
            Bound::Excluded(key) => KeyBound::Excluded(key),
            Bound::Unbounded => KeyBound::Unbounded,
        }
    }
}

impl From<KeyBound> for Bound<Key> {
    fn from(bound: KeyBound) -> Bound<Key> {
        match bound {
            KeyBound::Included(key) => Bound::Included(key),
            KeyBound::Excluded(key) => Bound::Excluded(key),
            KeyBound::Unbounded => Bound::Unbounded,
        }
    }
}

/// A change of one row that is plain data, applied without the contract.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum RowWrite {
    /// The row has these values, whether it was there or not.
    Put(Row),
    /// Columns have these values; ordinal and value, ascending. The row must be there.
    Assign(Vec<(u16, Value)>),
    /// An amount is added to an integer column. The row must be there.
    Add {
        /// Ordinal of the column.
        ordinal: u16,
        /// What is added.
        amount: i64,
    },
    /// The row is gone.
    Delete,
}

impl RowWrite {
    /// The columns that it writes.
    pub fn columns(&self) -> ColumnSet {
        match self {
            RowWrite::Put(_) | RowWrite::Delete => ColumnSet::ALL,
            RowWrite::Add { ordinal, .. } => ColumnSet::column(usize::from(*ordinal)),
            RowWrite::Assign(values) => values.iter().fold(ColumnSet::EMPTY, |columns, (ordinal, _)| {
                columns | ColumnSet::column(usize::from(*ordinal))
            }),
        }
    }
}

/// A change of one row as endorsed.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct EndorsedWrite {
    /// Its table.
    pub table: TableId,
    /// Its primary key.
    pub key: Key,
    /// `Some`: whether a row was there counts; if it is otherwise in the end, the effects do not hold.
    pub guard: Option<bool>,
    /// The change.
    pub write: RowWrite,
}

/// What an oracle said while a transaction was endorsed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub struct OracleValue {
    /// What the contract asked for.
    pub name: String,
    /// The answer.
    pub value: String,
}

/// What a simulation found, as endorsers sign it.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct EndorsedEffects {
    /// Rows looked at.
    pub reads: Vec<EndorsedRead>,
    /// Intervals searched.
    pub scans: Vec<EndorsedScan>,
    /// Changes, in program order.
    pub writes: Vec<EndorsedWrite>,
    /// What the client gets.
    pub results: Vec<StatementResult>,
    /// The time that the contract saw, milliseconds since 1970-01-01 00:00 UTC: that of the snapshot's block.
    pub now_ms: u64,
    /// What oracles said, by name: who runs it again asks nobody.
    pub oracles: Vec<OracleValue>,
}

impl EndorsedEffects {
    /// Logical steps that holding them against the state costs: one for each thing that they name. What endorsers spent
    /// is no measure: it would let two of them use up everybody's budget.
    pub fn steps(&self) -> u64 {
        let found: usize = self.scans.iter().map(|scan| 1 + scan.result.len()).sum();
        (1 + self.reads.len() + found + self.writes.len()) as u64
    }

    /// What an organisation endorses that agrees to a script: no effects, and as the one thing that is known from elsewhere the
    /// version of the schema under which it has judged the script. So nobody's word counts for a policy or a default that has
    /// come since.
    pub fn agreement(schema_version: u64) -> EndorsedEffects {
        let schema = OracleValue { name: SCHEMA.to_string(), value: schema_version.to_string() };
        EndorsedEffects { oracles: vec![schema], ..EndorsedEffects::default() }
    }

    /// The version of the schema that an agreement names; `None`: these are effects.
    pub fn agreed_schema(&self) -> Option<u64> {
        let version = self.oracles.first()?.value.parse().ok()?;
        (*self == EndorsedEffects::agreement(version)).then_some(version)
    }

    /// What endorsers sign, for one transaction: SHA-256 over domain and canonical encoding.
    pub fn digest(&self) -> Digest {
        sha256(&[EFFECTS_DOMAIN, &encode(self)])
    }
}

impl EndorsedEffects {
    /// Where two simulations of one transaction part, for people: the first change that differs, or what they read, searched,
    /// returned or took for the time. `None`: they are the same. `table` names a table.
    pub fn difference(&self, other: &EndorsedEffects, table: &dyn Fn(TableId) -> String) -> Option<String> {
        let row = |id: TableId, key: &Key| format!("the row of {} with key {key:?}", table(id));
        let change = |write: &EndorsedWrite| format!("{} {}", row(write.table, &write.key), write.write);
        let read = |read: &EndorsedRead| format!("{}, {:?}", row(read.table, &read.key), read.columns);
        let scan = |scan: &EndorsedScan| {
            format!(
                "{} from {:?} to {:?} with {} rows",
                table(scan.table),
                scan.start,
                scan.end,
                scan.result.len()
            )
        };
        let result = |result: &StatementResult| format!("{} with rows {:?}", result.tag, result.rows);
        let oracle = |one: &OracleValue| format!("{} says {}", one.name, one.value);
        first_difference("oracle", &self.oracles, &other.oracles, &oracle)
            .or_else(|| first_difference("change", &self.writes, &other.writes, &change))
            .or_else(|| first_difference("result", &self.results, &other.results, &result))
            .or_else(|| first_difference("read", &self.reads, &other.reads, &read))
            .or_else(|| first_difference("search", &self.scans, &other.scans, &scan))
            .or_else(|| {
                let (mine, others) = (self.now_ms, other.now_ms);
                (mine != others).then(|| format!("the time: {mine} ms against {others} ms"))
            })
    }
}

fn first_difference<T: PartialEq>(
    what: &str,
    mine: &[T],
    others: &[T],
    show: &dyn Fn(&T) -> String,
) -> Option<String> {
    let position = (0..mine.len().max(others.len())).find(|at| mine.get(*at) != others.get(*at))?;
    let shown = |list: &[T]| list.get(position).map_or_else(|| "none".to_string(), |one| excerpt(&show(one)));
    Some(format!("{what} {}: {} against {}", position + 1, shown(mine), shown(others)))
}

/// The beginning of a text that may be long.
fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

impl fmt::Display for RowWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| format_value(value).unwrap_or_else(|| "NULL".to_string());
        match self {
            RowWrite::Put(row) => {
                write!(f, "becomes ({})", row.iter().map(text).collect::<Vec<_>>().join(", "))
            }
            RowWrite::Assign(values) => {
                let assigned: Vec<String> = values
                    .iter()
                    .map(|(ordinal, value)| format!("{} = {}", u32::from(*ordinal) + 1, text(value)))
                    .collect();
                write!(f, "has column {}", assigned.join(", column "))
            }
            RowWrite::Add { ordinal, amount } => {
                write!(f, "gets {amount} added to column {}", u32::from(*ordinal) + 1)
            }
            RowWrite::Delete => f.write_str("is deleted"),
        }
    }
}

/// An organisation's word that a transaction has these effects on the state after a block.
///
/// One signature covers every proposal that an endorser answers at once: it stands under the root of a Merkle tree
/// (RFC 9162) whose leaves are [`endorsement_leaf`]s.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Endorsement {
    /// Position of the organisation in the charter; its node's key signs.
    pub organisation: u16,
    /// Height of the block after which the simulation was made.
    pub snapshot: u64,
    /// The way from the leaf to the signed root.
    pub proof: MerkleProof,
    /// Signature under ledger and root.
    pub signature: Signature,
}

/// The leaf of one transaction in an endorser's tree.
pub fn endorsement_leaf(transaction: &TransactionId, snapshot: u64, effects: &Digest) -> Digest {
    leaf_hash(&[&transaction.0.0[..], &snapshot.to_le_bytes(), &effects.0].concat())
}

/// The roots under which the endorsements of many transactions stand, in order; `None` where a proof is none.
pub fn endorsement_roots(simulations: &[(TransactionId, &EndorsedSimulation)]) -> Vec<Vec<Option<Digest>>> {
    let mut effects = Sha256Batch::new();
    for (_, simulation) in simulations {
        effects.push(&[EFFECTS_DOMAIN, &encode(&simulation.effects)]);
    }
    let endorsed: Vec<(&TransactionId, Digest, &[Endorsement])> = simulations
        .iter()
        .zip(effects.finish())
        .map(|((id, simulation), effects)| (id, effects, simulation.endorsements.as_slice()))
        .collect();
    let mut leaves = Sha256Batch::new();
    for (id, effects, endorsements) in &endorsed {
        for endorsement in *endorsements {
            leaves.push(&[&[0], &id.0.0, &endorsement.snapshot.to_le_bytes(), &effects.0]);
        }
    }
    let proofs = endorsed.iter().flat_map(|(_, _, endorsements)| *endorsements).map(|one| &one.proof);
    let mut roots = MerkleProof::roots(proofs.zip(leaves.finish())).into_iter();
    endorsed.iter().map(|(_, _, endorsements)| roots.by_ref().take(endorsements.len()).collect()).collect()
}

/// What an endorser signs.
pub fn endorsement_message(ledger: &Digest, root: &Digest) -> Vec<u8> {
    [ENDORSEMENT_DOMAIN, &ledger.0, &root.0].concat()
}

/// Endorses simulations that were all made on the state after `snapshot`, with one signature: transaction and digest of
/// its effects. One endorsement for each, in order.
pub fn endorse(
    key: &SecretKey,
    organisation: u16,
    ledger: &Digest,
    snapshot: u64,
    simulations: &[(TransactionId, Digest)],
) -> Vec<Endorsement> {
    let leaves: Vec<Digest> =
        simulations.iter().map(|(id, effects)| endorsement_leaf(id, snapshot, effects)).collect();
    let (root, proofs) = MerkleProof::all(&leaves);
    let signature = key.sign(&endorsement_message(ledger, &root));
    let endorsement = |proof| Endorsement { organisation, snapshot, proof, signature };
    proofs.into_iter().map(endorsement).collect()
}

/// What comes with a transaction that was executed before it is ordered; and with a script that organisations have agreed to before a
/// database executes it: no effects, and endorsements of none.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct EndorsedSimulation {
    /// What it does.
    pub effects: EndorsedEffects,
    /// Who says so.
    pub endorsements: Vec<Endorsement>,
}

/// What is wrong with the endorsements of a transaction.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum EndorsementFault {
    /// It has none, or comes to a ledger that asks for none.
    #[error("{0}")]
    Unasked(String),
    /// A signature is not the organisation's, or is under something else.
    #[error(
        "the endorsement of organisation {organisation} is not its signature under this transaction and these \
         effects on the state after block {snapshot}; ask it again"
    )]
    Forged {
        /// Position in the charter.
        organisation: u16,
        /// Height that it names.
        snapshot: u64,
    },
    /// An organisation endorses twice.
    #[error("organisation {organisation} endorses more than once; send each endorsement once")]
    Repeated {
        /// Position in the charter.
        organisation: u16,
    },
    /// There is no such organisation.
    #[error("expected endorsements of organisations 0 to {last}, found one of {found}")]
    Stranger {
        /// The position that it names.
        found: u16,
        /// Position of the charter's last organisation.
        last: u16,
    },
    /// The policy asks for others.
    #[error(
        "the policy `{policy}` of {of} is not satisfied by endorsements of {found}; ask the others as well"
    )]
    Policy {
        /// What has the policy.
        of: String,
        /// The policy.
        policy: String,
        /// Who has endorsed.
        found: String,
    },
    /// Somebody endorsed who has left since, or with a key that has expired or was replaced.
    #[error(
        "the endorsement of organisation {organisation} on the state after block {snapshot} does not count at height {height} \
         any more: it has left the ledger, or its node key has expired or was replaced; have the call endorsed again"
    )]
    Outdated {
        /// Position in the charter.
        organisation: u16,
        /// The least height that an endorsement of the transaction names.
        snapshot: u64,
        /// Of the block.
        height: u64,
    },
    /// Effects that no execution can have: a type, a constraint, a table or column that does not exist.
    #[error("the endorsed effects cannot be: {0}")]
    Effects(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Credential, Payload, RequestId, SignedTransaction, Transaction, decode_exactly};
    use crypto::SignedMessage;

    #[test]
    fn an_agreement_is_no_effects_and_names_a_schema() {
        let agreement = EndorsedEffects::agreement(7);
        assert_eq!(agreement.agreed_schema(), Some(7));
        assert_ne!(agreement.digest(), EndorsedEffects::agreement(8).digest());
        let value = |value: &str| OracleValue { name: SCHEMA.to_string(), value: value.to_string() };
        let others = [
            effects(),
            EndorsedEffects::default(),
            EndorsedEffects { now_ms: 1, ..agreement.clone() },
            EndorsedEffects { oracles: vec![value("7"), value("7")], ..agreement.clone() },
            EndorsedEffects { oracles: vec![value("07")], ..agreement.clone() },
        ];
        assert!(others.iter().all(|other| other.agreed_schema().is_none()), "one encoding of one agreement");
    }

    fn effects() -> EndorsedEffects {
        let key = Key::encode([&Value::BigInt(7)]).expect("a key");
        let table = TableId(3);
        let write = |guard, write| EndorsedWrite { table, key: key.clone(), guard, write };
        EndorsedEffects {
            reads: vec![EndorsedRead { table, key: key.clone(), columns: ColumnSet::column(1) }],
            scans: vec![EndorsedScan {
                table,
                start: KeyBound::Excluded(key.clone()),
                end: KeyBound::Unbounded,
                columns: ColumnSet::ALL,
                predicate_columns: ColumnSet::column(2),
                result: vec![key.clone()],
            }],
            writes: vec![
                write(Some(true), RowWrite::Assign(vec![(1, Value::text("seven"))])),
                write(None, RowWrite::Add { ordinal: 2, amount: -4 }),
                write(None, RowWrite::Put([Value::BigInt(7), Value::Null].into())),
                write(None, RowWrite::Delete),
            ],
            results: vec![StatementResult { tag: "CALL".into(), ..StatementResult::default() }],
            now_ms: 1_800_000_000_000,
            oracles: vec![OracleValue { name: "eur_usd".into(), value: "1.08".into() }],
        }
    }

    fn transaction() -> SignedTransaction {
        let (root, key) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
        let ledger = sha256(&[b"ledger"]);
        let payload = Payload::Call { procedure: "p".into(), arguments: vec![] };
        Transaction {
            ledger,
            client: key.public_key(),
            request: RequestId([7; 16]),
            expires_at: 99,
            role: String::new(),
            payload,
        }
        .sign(&key, Credential::issue(&root, 0, &ledger, &key.public_key()))
    }

    #[test]
    fn one_signature_endorses_many_and_each_is_proved() {
        let key = SecretKey::from_bytes([5; 32]);
        let ledger = sha256(&[b"ledger"]);
        let id = |number: u8| TransactionId(sha256(&[&[number]]));
        for count in [0u8, 1, 2, 3, 7, 8, 13] {
            let simulations: Vec<(TransactionId, Digest)> =
                (0..count).map(|number| (id(number), sha256(&[b"effects", &[number]]))).collect();
            let endorsements = endorse(&key, 2, &ledger, 41, &simulations);
            assert_eq!(endorsements.len(), simulations.len());
            let with = |endorsements| EndorsedSimulation { effects: effects(), endorsements };
            let endorsed: Vec<EndorsedSimulation> =
                endorsements.iter().map(|one| with(vec![one.clone(), one.clone()])).collect();
            let asked: Vec<(TransactionId, &EndorsedSimulation)> =
                simulations.iter().map(|(id, _)| *id).zip(&endorsed).collect();
            let one_by_one = |(id, simulation): &(TransactionId, &EndorsedSimulation)| -> Vec<_> {
                let digest = simulation.effects.digest();
                let leaf = |one: &Endorsement| endorsement_leaf(id, one.snapshot, &digest);
                simulation.endorsements.iter().map(|one| one.proof.root(leaf(one))).collect()
            };
            let expected: Vec<Vec<Option<Digest>>> = asked.iter().map(one_by_one).collect();
            assert_eq!(endorsement_roots(&asked), expected);
            for (endorsement, (id, effects)) in endorsements.iter().zip(&simulations) {
                let root = endorsement.proof.root(endorsement_leaf(id, 41, effects)).expect("a proof");
                let message = endorsement_message(&ledger, &root);
                let (signature, key) = (endorsement.signature, key.public_key());
                assert!(crypto::verify(&SignedMessage { key, signature, message: &message }));
                let other = endorsement.proof.root(endorsement_leaf(id, 40, effects)).expect("a proof");
                assert_ne!(other, root, "another snapshot");
            }
        }
    }

    #[test]
    fn an_endorsed_transaction_has_the_id_of_its_request() {
        let plain = transaction();
        let (id, ledger) = (plain.transaction.id(), plain.transaction.ledger);
        let mut endorsed = plain.clone();
        let endorsements =
            endorse(&SecretKey::from_bytes([5; 32]), 0, &ledger, 3, &[(id, effects().digest())]);
        endorsed.endorsed = Some(Box::new(EndorsedSimulation { effects: effects(), endorsements }));
        let bytes = endorsed.to_bytes();
        assert_eq!(SignedTransaction::from_bytes(&bytes), Ok(endorsed.clone()));
        assert_eq!(SignedTransaction::id_of(&bytes), id);
        assert_eq!(SignedTransaction::id_of(&plain.to_bytes()), id);
        assert_eq!(SignedTransaction::contract_of(&bytes), "p");
        for length in 0..bytes.len() {
            assert!(SignedTransaction::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert_ne!(SignedTransaction::from_bytes(&flipped).as_ref(), Ok(&endorsed), "byte {at}");
        }
    }

    #[test]
    fn effects_have_one_encoding_and_every_byte_counts() {
        let bytes = encode(&effects());
        assert_eq!(decode_exactly::<EndorsedEffects>(&bytes).expect("what was written"), effects());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            if let Ok(read) = decode_exactly::<EndorsedEffects>(&flipped) {
                assert_ne!(read.digest(), effects().digest(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_difference_names_the_first_thing_that_differs() {
        let name = |table: TableId| format!("t{}", table.0);
        let mine = effects();
        assert_eq!(mine.difference(&mine, &name), None);
        let says = |change: &dyn Fn(&mut EndorsedEffects)| {
            let mut other = mine.clone();
            change(&mut other);
            mine.difference(&other, &name).expect("a difference")
        };
        let text = says(&|other| other.writes[0].write = RowWrite::Assign(vec![(1, Value::text("8"))]));
        assert!(text.contains("of t3") && text.contains("column 2 = seven against"), "{text}");
        let text = says(&|other| drop(other.writes.pop()));
        assert!(text.starts_with("change 4:") && text.ends_with("is deleted against none"), "{text}");
        assert!(says(&|other| other.results[0].tag = "x".repeat(1_000)).contains("…"));
        assert!(says(&|other| other.reads[0].columns = ColumnSet::ALL).starts_with("read 1:"));
        assert!(says(&|other| other.scans[0].result.clear()).contains("with 0 rows"));
        assert!(says(&|other| other.now_ms += 1).starts_with("the time"));
        let text = says(&|other| other.oracles[0].value = "1.09".into());
        assert_eq!(text, "oracle 1: eur_usd says 1.08 against eur_usd says 1.09");
    }
}
