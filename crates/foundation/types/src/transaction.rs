use crate::{
    AgreedPart, EndorsedSimulation, ExecutionVersion, HeldParts, PartCommitment, SchemaCertificate,
    SessionStep, Value, decode_exactly, encode, limits,
};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use crypto::{Digest, PublicKey, SecretKey, Sha256Batch, Signature, SignedMessage, sha256};
use std::fmt;

const TRANSACTION_DOMAIN: &[u8] = b"entente transaction 1\0";
/// Bytes of credential and signature at the end of a signed transaction.
const SIGNED_BYTES: usize = 2 + 64 + 64;
/// Bytes before them that say how long the part is that comes with the transaction.
const LENGTH_BYTES: usize = 4;
const SESSION_SEED_DOMAIN: &[u8] = b"entente session seed 1\0";
const CREDENTIAL_DOMAIN: &[u8] = b"entente client credential 1\0";

/// What identifies a transaction: SHA-256 over domain and canonical encoding, without the signature.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, BorshSerialize, BorshDeserialize,
)]
pub struct TransactionId(pub Digest);

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Chosen by the client, unique per client key among its transactions that have not expired.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, BorshSerialize, BorshDeserialize,
)]
pub struct RequestId(pub [u8; 16]);

/// A client as the live ids know it: key and request.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, BorshSerialize, BorshDeserialize,
)]
pub struct ClientId {
    /// The client's key.
    pub key: PublicKey,
    /// What the client calls this transaction.
    pub request: RequestId,
}

impl ClientId {
    /// What the random values of a transaction block are drawn from: the client sees them before the block has an id, and whoever signs
    /// the block has chosen the request by then.
    pub fn session_seed(&self) -> Digest {
        sha256(&[SESSION_SEED_DOMAIN, &self.key.0, &self.request.0])
    }
}

/// An organisation's word that a key is its client's: the root key's signature under ledger and client key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct Credential {
    /// Position of the organisation in the charter.
    pub organisation: u16,
    /// Signature of the organisation's root key.
    pub signature: Signature,
}

impl Credential {
    /// What the root key signs.
    pub fn message(ledger: &Digest, client: &PublicKey) -> Vec<u8> {
        [CREDENTIAL_DOMAIN, &ledger.0, &client.0].concat()
    }

    /// Makes a credential with the root key of organisation number `organisation`.
    pub fn issue(root: &SecretKey, organisation: u16, ledger: &Digest, client: &PublicKey) -> Credential {
        Credential { organisation, signature: root.sign(&Credential::message(ledger, client)) }
    }

    /// Whether `root` has signed this.
    pub fn verify(&self, root: &PublicKey, ledger: &Digest, client: &PublicKey) -> bool {
        let message = Credential::message(ledger, client);
        crypto::verify(&SignedMessage { key: *root, signature: self.signature, message: &message })
    }
}

/// What a transaction does.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Payload {
    /// Calls a procedure.
    Call {
        /// Its name.
        procedure: String,
        /// One value per IN and INOUT parameter.
        arguments: Vec<Value>,
    },
    /// Runs one SQL statement, or several separated by semicolons, as one transaction.
    Script {
        /// The statements.
        sql: String,
        /// Values of `$1`, `$2`, …
        parameters: Vec<Value>,
    },
    /// Inserts rows: what COPY becomes.
    Insert {
        /// The table.
        table: String,
        /// The columns that `rows` give, in their order.
        columns: Vec<String>,
        /// The rows; bounded by the size of a transaction alone.
        rows: Vec<Vec<Value>>,
    },
    /// A transaction block of a session: runs its steps again, and commits if they give what the client was given.
    Session {
        /// What the session did, in order.
        steps: Vec<SessionStep>,
        /// `now()` in the statements of the session, in milliseconds since 1970-01-01 00:00 UTC. The session's word: it
        /// could as well have written the time as a literal. Routines see the time of the block, as ever.
        now_ms: u64,
        /// [`SessionResults::digest`](crate::SessionResults::digest) of what the client was given.
        results: Digest,
    },
    /// Does something in schemas with members, who alone know what: from execution version 4 on.
    Parts {
        /// One per schema, by its name.
        parts: Vec<PartCommitment>,
    },
    /// Brings outcomes of schemas with members into the ledger, where they decide transactions in several of them: from execution
    /// version 4 on. Whoever signs it says nothing: the members have.
    SchemaOutcomes {
        /// The outcomes: none says that anything moves.
        #[borsh(
            serialize_with = "crate::schema_outcome::write_without_moves",
            deserialize_with = "crate::schema_outcome::read_without_moves"
        )]
        certificates: Vec<SchemaCertificate>,
    },
    /// Says that members of schemas hold their parts of transactions in the same block: from execution version 5 on. Whoever signs it
    /// says nothing: the members have.
    HeldParts {
        /// The members' words.
        held: Vec<HeldParts>,
    },
    /// Brings outcomes as [`Payload::SchemaOutcomes`] does, with what their transactions move between schemas: from execution version
    /// 6 on.
    MovingOutcomes {
        /// The outcomes.
        certificates: Vec<SchemaCertificate>,
    },
    /// What a transaction does in one schema, who agrees to that, and what it shares with its other parts: from execution version 6 on,
    /// in parts alone.
    Agreed(Box<AgreedPart>),
}

impl Payload {
    /// The contract that transactions are grouped by under the block's root: the procedure's name, `""` for scripts.
    pub fn contract(&self) -> &str {
        match self {
            Payload::Call { procedure, .. } => procedure,
            Payload::Script { .. }
            | Payload::Insert { .. }
            | Payload::Session { .. }
            | Payload::Parts { .. }
            | Payload::SchemaOutcomes { .. }
            | Payload::MovingOutcomes { .. }
            | Payload::HeldParts { .. } => "",
            Payload::Agreed(agreed) => agreed.call.contract(),
        }
    }

    /// What a payload does: its own call, where it is a part that somebody agrees to.
    pub fn call(&self) -> &Payload {
        match self {
            Payload::Agreed(agreed) => &agreed.call,
            other => other,
        }
    }

    /// The outcomes of schemas that it brings.
    pub fn schema_outcomes(&self) -> &[SchemaCertificate] {
        match self {
            Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
                certificates
            }
            _ => &[],
        }
    }

    /// Whether nodes make such transactions, of what members of schemas say.
    pub fn is_brought_by_nodes(&self) -> bool {
        matches!(
            self,
            Payload::SchemaOutcomes { .. } | Payload::MovingOutcomes { .. } | Payload::HeldParts { .. }
        )
    }

    /// What brings outcomes into the ledger.
    pub fn of_schema_outcomes(certificates: Vec<SchemaCertificate>) -> Payload {
        match certificates.iter().all(|one| one.statement.moves.is_empty()) {
            true => Payload::SchemaOutcomes { certificates },
            false => Payload::MovingOutcomes { certificates },
        }
    }

    fn sizes(&self) -> Sizes {
        let of = |name, values| Sizes { name, values, ..Sizes::default() };
        match self {
            Payload::Call { procedure, arguments } => of(procedure.len(), arguments.len()),
            Payload::Script { parameters, .. } => Sizes { parameters: parameters.len(), ..Sizes::default() },
            Payload::Insert { table, columns, .. } => of(table.len(), columns.len()),
            Payload::Parts { parts } => {
                of(parts.iter().map(|part| part.schema.len()).max().unwrap_or(0), parts.len())
            }
            Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
                of(0, certificates.len())
            }
            Payload::Agreed(agreed) => agreed.call.sizes(),
            Payload::HeldParts { held } => {
                of(0, held.iter().map(|one| one.holders.len()).max().unwrap_or(0).max(held.len()))
            }
            Payload::Session { steps, .. } => {
                let all = Sizes { steps: steps.len(), ..Sizes::default() };
                steps.iter().fold(all, |sizes, step| sizes.with(step))
            }
        }
    }
}

/// What is bounded by more than the bytes of the transaction: the longest name, the most values of one thing, the most parameters of one
/// script, the steps.
#[derive(Clone, Copy, Default)]
struct Sizes {
    name: usize,
    values: usize,
    parameters: usize,
    steps: usize,
}

impl Sizes {
    fn with(self, step: &SessionStep) -> Sizes {
        match step {
            SessionStep::Run { parameters, .. } => {
                Sizes { parameters: self.parameters.max(parameters.len()), ..self }
            }
            SessionStep::RunGiven { given, parameters, .. } => given.tables.iter().fold(
                Sizes {
                    parameters: self.parameters.max(parameters.len()),
                    values: self.values.max(given.tables.len()),
                    ..self
                },
                |sizes, table| Sizes {
                    name: sizes.name.max(table.name.len()),
                    values: sizes.values.max(table.columns.len()),
                    ..sizes
                },
            ),
            SessionStep::Insert { table, columns, .. } => {
                Sizes { name: self.name.max(table.len()), values: self.values.max(columns.len()), ..self }
            }
            SessionStep::Savepoint(name) | SessionStep::RollbackTo(name) | SessionStep::Release(name) => {
                Sizes { name: self.name.max(name.len()), ..self }
            }
        }
    }
}

/// What a client wants done, before it is signed.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Transaction {
    /// Digest of the ledger's charter.
    pub ledger: Digest,
    /// Whose key signs.
    pub client: PublicKey,
    /// Unique per client key.
    pub request: RequestId,
    /// The last height at which it may stand; at most the charter's `expiry_blocks_max` ahead.
    pub expires_at: u64,
    /// The role of the client's organisation in whose name it runs; empty: the organisation's administrator. Whose keys an
    /// organisation vouches for may act as any of its roles: other organisations cannot tell its people apart.
    pub role: String,
    /// What it does.
    pub payload: Payload,
}

impl Transaction {
    /// What identifies the transaction and what the client signs: SHA-256 over domain and canonical encoding.
    pub fn id(&self) -> TransactionId {
        TransactionId(sha256(&[TRANSACTION_DOMAIN, &encode(self)]))
    }

    /// Signs with the client's key.
    ///
    /// # Panics
    /// Where `key` is not the key of `client`: a mistake of the program, not of its input.
    pub fn sign(self, key: &SecretKey, credential: Credential) -> SignedTransaction {
        assert_eq!(key.public_key(), self.client, "a transaction is signed with its client's key");
        let signature = key.sign(&self.id().0.0);
        SignedTransaction { transaction: self, endorsed: None, credential, signature }
    }
}

/// A transaction as it travels.
///
/// ```text
/// transaction ‖ endorsed simulation, if any ‖ its length (4 bytes) ‖ credential ‖ signature
/// └─ the id covers this ─┘
/// ```
///
/// So the same request has the same id whoever endorses it, and can be in the ledger once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedTransaction {
    /// What is signed.
    pub transaction: Transaction,
    /// What it does, where transactions are executed before they are ordered.
    pub endorsed: Option<Box<EndorsedSimulation>>,
    /// Which organisation vouches for the client.
    pub credential: Credential,
    /// The client's signature under the transaction's id.
    pub signature: Signature,
}

/// [`Payload::Parts`] as its encoding begins.
const PARTS: u8 = 4;
/// [`Payload::SchemaOutcomes`] as its encoding begins.
const SCHEMA_OUTCOMES: u8 = 5;
/// [`Payload::MovingOutcomes`] as its encoding begins.
const MOVING_OUTCOMES: u8 = 7;
/// Bytes of a transaction before its role: ledger, client, request and expiry.
const ROLE_AT: usize = 32 + 32 + 16 + 8;

/// The part of an encoding that its id and the client's signature cover. Of bytes that are no transaction, all: no two
/// of them have one id.
fn covered(bytes: &[u8]) -> &[u8] {
    split(bytes).map_or(bytes, |(transaction, _, _)| transaction)
}

/// How the encoding of the payload begins.
fn kind_of(bytes: &[u8]) -> Option<u8> {
    let (length, rest) = bytes.get(ROLE_AT..)?.split_first_chunk()?;
    rest.get(u32::from_le_bytes(*length) as usize).copied()
}

/// Transaction, what comes with it, credential and signature.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (rest, signed) = bytes.split_at_checked(bytes.len().checked_sub(SIGNED_BYTES)?)?;
    let (rest, length) = rest.split_last_chunk::<LENGTH_BYTES>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (transaction, endorsed) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
    Some((transaction, endorsed, signed))
}

/// Why bytes are no transaction.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TransactionError {
    /// Longer than the limit.
    #[error(
        "the transaction has {found} bytes, the limit is {limit} (block.transaction_bytes_max of the charter); split it"
    )]
    TooLarge {
        /// Its length.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// Not the canonical encoding.
    #[error("expected the canonical encoding of a signed transaction: {0}")]
    Malformed(String),
    /// A list or a name is longer than its limit.
    #[error("the transaction has {found} {what}, the limit is {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        found: usize,
        /// The limit.
        limit: usize,
    },
}

impl SignedTransaction {
    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = encode(&self.transaction);
        let before = bytes.len();
        if let Some(endorsed) = &self.endorsed {
            bytes.extend(encode(endorsed.as_ref()));
        }
        let length = u32::try_from(bytes.len() - before).expect("effects are bounded");
        bytes.extend(length.to_le_bytes());
        bytes.extend(encode(&(self.credential, self.signature)));
        bytes
    }

    /// [`Payload::contract`] of an encoded transaction, read where it stands: without decoding the rest, which may be
    /// no transaction. `""` where no call's name stands.
    pub fn contract_of(bytes: &[u8]) -> &str {
        let name = || {
            let (length, rest) = bytes.get(ROLE_AT..)?.split_first_chunk()?;
            let (kind, rest) = rest.get(u32::from_le_bytes(*length) as usize..)?.split_first()?;
            let (length, rest) = rest.split_first_chunk()?;
            let name = rest.get(..u32::from_le_bytes(*length) as usize).filter(|_| *kind == 0)?;
            std::str::from_utf8(name).ok()
        };
        name().unwrap_or_default()
    }

    /// How the encoding of an encoded transaction's payload begins, where whatever stands before it can be read: what a
    /// program sees of a payload that it does not know.
    pub fn payload_kind(bytes: &[u8]) -> Option<u8> {
        let (transaction, ..) = split(bytes).filter(|_| bytes.len() <= limits::TRANSACTION_BYTES_MAX)?;
        let (length, rest) = transaction.get(ROLE_AT..)?.split_first_chunk()?;
        let role = rest.get(..u32::from_le_bytes(*length) as usize)?;
        std::str::from_utf8(role).is_ok().then(|| kind_of(transaction))?
    }

    /// Whether an encoded transaction is one in schemas with members, read where it stands as by [`SignedTransaction::contract_of`].
    pub fn has_parts(bytes: &[u8]) -> bool {
        kind_of(bytes) == Some(PARTS)
    }

    /// Whether an encoded transaction brings outcomes of such schemas.
    pub fn has_schema_outcomes(bytes: &[u8]) -> bool {
        matches!(kind_of(bytes), Some(SCHEMA_OUTCOMES | MOVING_OUTCOMES))
    }

    /// Reads the canonical encoding and checks every limit; says nothing about the signature.
    ///
    /// # Errors
    /// [`TransactionError`] says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<SignedTransaction, TransactionError> {
        SignedTransaction::from_bytes_of(bytes, ExecutionVersion::NEWEST)
    }

    /// The same by the limits of a version of the rules of execution.
    ///
    /// # Errors
    /// As [`SignedTransaction::from_bytes`].
    pub fn from_bytes_of(
        bytes: &[u8],
        version: ExecutionVersion,
    ) -> Result<SignedTransaction, TransactionError> {
        if bytes.len() > limits::TRANSACTION_BYTES_MAX {
            return Err(TransactionError::TooLarge {
                found: bytes.len(),
                limit: limits::TRANSACTION_BYTES_MAX,
            });
        }
        let malformed = |error: std::io::Error| TransactionError::Malformed(error.to_string());
        let (transaction, endorsed, rest) = split(bytes)
            .ok_or_else(|| TransactionError::Malformed(format!("{} bytes are too few", bytes.len())))?;
        let transaction: Transaction = decode_exactly(transaction).map_err(malformed)?;
        let (credential, signature) = decode_exactly(rest).map_err(malformed)?;
        let endorsed = match endorsed {
            [] => None,
            endorsed => Some(Box::new(decode_exactly(endorsed).map_err(malformed)?)),
        };
        let signed = SignedTransaction { transaction, endorsed, credential, signature };
        let mut sizes = signed.transaction.payload.sizes();
        if version < ExecutionVersion::V8 {
            // The most of both.
            sizes.values = sizes.values.max(sizes.parameters);
        }
        let limits = [
            ("arguments", sizes.values, limits::ARGUMENTS_MAX),
            ("arguments", sizes.parameters, limits::parameters_max(version)),
            ("bytes in the name of its procedure, table or savepoint", sizes.name, limits::NAME_BYTES_MAX),
            ("steps", sizes.steps, limits::session_steps_max(version)),
            ("bytes in the name of its role", signed.transaction.role.len(), limits::NAME_BYTES_MAX),
        ];
        match limits.into_iter().find(|(_, found, limit)| found > limit) {
            Some((what, found, limit)) => Err(TransactionError::Limit { what, found, limit }),
            None => Ok(signed),
        }
    }

    /// The id of the transaction with this encoding, without decoding it: what stands behind the transaction is no part
    /// of it. For bytes that are no transaction, a digest that names them.
    pub fn id_of(bytes: &[u8]) -> TransactionId {
        TransactionId(sha256(&[TRANSACTION_DOMAIN, covered(bytes)]))
    }

    /// [`SignedTransaction::id_of`] for many, which is several times as quick.
    pub fn ids_of(transactions: &[Bytes]) -> Vec<TransactionId> {
        let mut ids = Sha256Batch::new();
        transactions.iter().for_each(|bytes| ids.push(&[TRANSACTION_DOMAIN, covered(bytes)]));
        ids.finish().into_iter().map(TransactionId).collect()
    }

    /// What stands behind the part of an encoding that its id covers: who verified this as well has verified all.
    pub fn uncovered(bytes: &[u8]) -> &[u8] {
        &bytes[covered(bytes).len()..]
    }

    /// Whether an encoded transaction comes with endorsements of its own, read where it stands.
    pub fn has_endorsements(bytes: &[u8]) -> bool {
        split(bytes).is_some_and(|(_, endorsed, _)| !endorsed.is_empty())
    }

    /// Whether the client signed it. Who the client is, the credential says.
    pub fn verify_signature(&self) -> bool {
        let id = self.transaction.id();
        let message =
            SignedMessage { key: self.transaction.client, signature: self.signature, message: &id.0.0 };
        crypto::verify(&message)
    }

    /// Key and request: what may be in the ledger once.
    pub fn client_id(&self) -> ClientId {
        ClientId { key: self.transaction.client, request: self.transaction.request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PackedRows;

    fn signed() -> SignedTransaction {
        let payload = Payload::Call {
            procedure: "send_payment".into(),
            arguments: vec![Value::BigInt(1), Value::text("naïve"), Value::Null],
        };
        with(payload)
    }

    #[test]
    fn parts_round_trip_and_are_told_by_their_bytes() {
        let commitment = sha256(&[b"part"]);
        let parts = vec![PartCommitment { schema: "deal".into(), commitment }];
        let bytes = with(Payload::Parts { parts }).to_bytes();
        assert!(SignedTransaction::has_parts(&bytes) && !SignedTransaction::has_parts(&signed().to_bytes()));
        assert_eq!(SignedTransaction::from_bytes(&bytes).expect("parts").to_bytes(), bytes);
        assert_eq!(SignedTransaction::contract_of(&bytes), "");
        for length in 0..bytes.len() {
            assert!(SignedTransaction::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
            let _ = SignedTransaction::has_parts(&bytes[..length]);
        }
        let mut endorsed = with(Payload::HeldParts { held: vec![] });
        assert!(!SignedTransaction::has_endorsements(&endorsed.to_bytes()));
        let (effects, endorsements) = (crate::EndorsedEffects::held(), Vec::new());
        endorsed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
        assert!(SignedTransaction::has_endorsements(&endorsed.to_bytes()));
        let bytes = with(Payload::HeldParts { held: vec![] }).to_bytes();
        assert!(!SignedTransaction::has_schema_outcomes(&bytes) && !SignedTransaction::has_parts(&bytes));
        assert_eq!(SignedTransaction::from_bytes(&bytes).expect("words").to_bytes(), bytes);
        let bytes = with(Payload::SchemaOutcomes { certificates: vec![] }).to_bytes();
        assert!(SignedTransaction::has_schema_outcomes(&bytes) && !SignedTransaction::has_parts(&bytes));
        assert_eq!(SignedTransaction::from_bytes(&bytes).expect("outcomes").to_bytes(), bytes);
    }

    fn session(steps: Vec<SessionStep>) -> SignedTransaction {
        with(Payload::Session { steps, now_ms: 1_700_000_000_000, results: sha256(&[b"results"]) })
    }

    fn with(payload: Payload) -> SignedTransaction {
        let (root, key) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
        let ledger = sha256(&[b"ledger"]);
        let credential = Credential::issue(&root, 0, &ledger, &key.public_key());
        assert!(credential.verify(&root.public_key(), &ledger, &key.public_key()));
        assert!(!credential.verify(&root.public_key(), &sha256(&[b"other"]), &key.public_key()));
        Transaction {
            ledger,
            client: key.public_key(),
            request: RequestId([7; 16]),
            expires_at: 99,
            role: "clerk".into(),
            payload,
        }
        .sign(&key, credential)
    }

    #[test]
    fn transactions_round_trip_and_every_flipped_byte_shows() {
        let bytes = signed().to_bytes();
        assert_eq!(SignedTransaction::from_bytes(&bytes), Ok(signed()));
        assert_eq!(SignedTransaction::id_of(&bytes), signed().transaction.id());
        let both = [Bytes::from(bytes.clone()), Bytes::from_static(b"no transaction")];
        assert_eq!(
            SignedTransaction::ids_of(&both),
            both.each_ref().map(|one| SignedTransaction::id_of(one))
        );
        assert!(signed().verify_signature());
        assert_eq!(SignedTransaction::contract_of(&bytes), "send_payment");
        for length in 0..bytes.len() {
            assert!(["", "send_payment"].contains(&SignedTransaction::contract_of(&bytes[..length])));
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            if let Ok(read) = SignedTransaction::from_bytes(&flipped) {
                let credential_only =
                    read.transaction == signed().transaction && read.signature == signed().signature;
                assert_ne!(read, signed());
                assert!(credential_only || !read.verify_signature(), "byte {at}");
            }
        }
    }

    #[test]
    fn sessions_round_trip_and_damaged_ones_are_other_ones_or_none() {
        let name = || "s".to_string();
        let signed = session(vec![
            SessionStep::Savepoint(name()),
            SessionStep::Run { sql: "UPDATE t SET a = $1".into(), parameters: vec![Value::BigInt(1)] },
            SessionStep::RollbackTo(name()),
            SessionStep::Insert {
                table: "t".into(),
                columns: vec!["a".into()],
                rows: PackedRows::pack([
                    vec![Value::text("naïve"), Value::Integer(1)],
                    vec![Value::Null, Value::Integer(2)],
                    vec![Value::Null, Value::Integer(3)],
                    vec![Value::Null, Value::Integer(4)],
                ])
                .expect("rows"),
            },
            SessionStep::Release(name()),
        ]);
        let bytes = signed.to_bytes();
        assert_eq!(SignedTransaction::from_bytes(&bytes), Ok(signed.clone()));
        assert_eq!(SignedTransaction::contract_of(&bytes), "");
        let covered = bytes.len() - SIGNED_BYTES - LENGTH_BYTES;
        for at in 0..bytes.len() {
            assert!(SignedTransaction::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            if let Ok(read) = SignedTransaction::from_bytes(&flipped) {
                assert_ne!(read, signed);
                assert_eq!(read.to_bytes(), flipped, "byte {at}: one encoding of one transaction");
                assert!(at >= covered || !read.verify_signature(), "byte {at}");
            }
        }
    }

    #[test]
    fn sessions_have_limits() {
        let limit = |steps: Vec<SessionStep>| match SignedTransaction::from_bytes(&session(steps).to_bytes())
        {
            Err(TransactionError::Limit { what, found, limit }) => (what, found, limit),
            other => panic!("{other:?}"),
        };
        let steps = vec![SessionStep::Savepoint("s".into()); limits::SESSION_STEPS_MAX + 1];
        assert_eq!(limit(steps), ("steps", limits::SESSION_STEPS_MAX + 1, limits::SESSION_STEPS_MAX));
        let bytes = session(vec![SessionStep::Savepoint("s".into()); 10_001]).to_bytes();
        assert!(SignedTransaction::from_bytes(&bytes).is_ok());
        let before = SignedTransaction::from_bytes_of(&bytes, ExecutionVersion::V13);
        assert_eq!(before, Err(TransactionError::Limit { what: "steps", found: 10_001, limit: 10_000 }));
        let long = vec![SessionStep::Release("s".repeat(64))];
        assert_eq!(limit(long), ("bytes in the name of its procedure, table or savepoint", 64, 63));
        let run = |count| {
            let (sql, parameters) = ("SELECT 1".into(), vec![Value::Null; count]);
            vec![SessionStep::Run { sql, parameters }]
        };
        let most = limits::PARAMETERS_MAX;
        assert_eq!(limit(run(most + 1)), ("arguments", most + 1, most));
        let bytes = session(run(limits::ARGUMENTS_MAX + 1)).to_bytes();
        assert!(SignedTransaction::from_bytes(&bytes).is_ok());
        let before = SignedTransaction::from_bytes_of(&bytes, ExecutionVersion::V7);
        let said = "arguments";
        let (found, limit) = (limits::ARGUMENTS_MAX + 1, limits::ARGUMENTS_MAX);
        assert_eq!(before, Err(TransactionError::Limit { what: said, found, limit }));
    }

    #[test]
    fn truncated_and_padded_bytes_are_refused() {
        let bytes = signed().to_bytes();
        for length in 0..bytes.len() {
            assert!(SignedTransaction::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(SignedTransaction::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
        let oversized = vec![0; limits::TRANSACTION_BYTES_MAX + 1];
        let (found, limit) = (oversized.len(), limits::TRANSACTION_BYTES_MAX);
        assert_eq!(
            SignedTransaction::from_bytes(&oversized),
            Err(TransactionError::TooLarge { found, limit })
        );
    }
}
