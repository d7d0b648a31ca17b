use crate::{DataType, EndorsementFault, SqlError, SqlState, TransactionId, Value};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};
use std::fmt;

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct OutputColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

/// What one statement gives its client.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct StatementResult {
    /// PostgreSQL's command tag, for example `INSERT 0 3`.
    pub tag: String,
    /// Columns of the rows; empty where the statement returns none.
    pub columns: Vec<OutputColumn>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// What the statement said on the way, in order.
    pub notices: Vec<Notice>,
}

/// How important a message is that ends nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Severity {
    /// `INFO`
    Info,
    /// `NOTICE`
    Notice,
    /// `WARNING`
    Warning,
}

impl Severity {
    /// As PostgreSQL writes it.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
        }
    }

    /// The code of a message that has none of its own.
    pub fn state(self) -> SqlState {
        match self {
            Severity::Warning => SqlState(*b"01000"),
            Severity::Info | Severity::Notice => SqlState(*b"00000"),
        }
    }
}

/// A message to the client that ends nothing: `RAISE NOTICE`.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Notice {
    /// How important it is.
    pub severity: Severity,
    /// What it says, in the form of an error.
    pub report: SqlError,
}

/// Why a transaction was not executed at all.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum RejectReason {
    /// The bytes are no transaction of this ledger.
    Malformed(String),
    /// Signature or credential is wrong.
    Unsigned(String),
    /// It stands above its expiry height, or the expiry is further ahead than the charter allows.
    Expired {
        /// The height at which it stands.
        height: u64,
        /// Its expiry height.
        expires_at: u64,
    },
    /// The same request of the same client stands at this height already, with the same content.
    Duplicate {
        /// Where the first one stands.
        height: u64,
        /// Its position in that block.
        index: u32,
    },
    /// The client has used this request for something else.
    RequestReused {
        /// Where the first one stands.
        height: u64,
        /// Its position in that block.
        index: u32,
    },
    /// The block's meter budget was spent before its turn.
    BlockBudget,
    /// The endorsements that it came with.
    Endorsement(EndorsementFault),
    /// Its client's organisation is no member at its height: it has left, or does not belong to the ledger yet.
    NoMember {
        /// The organisation's position.
        organisation: u16,
        /// The height at which the transaction stands.
        height: u64,
    },
}

impl RejectReason {
    /// A rejection as an error with SQLSTATE and what to do.
    pub fn to_error(&self) -> SqlError {
        match self {
        RejectReason::Malformed(what) => SqlError::new(SqlState::PROTOCOL_VIOLATION, what.clone()),
        RejectReason::Unsigned(what) => SqlError::new(SqlState::INVALID_AUTHORIZATION, what.clone()),
        RejectReason::Expired { height, expires_at } => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            format!("the transaction may stand up to height {expires_at}, its block is {height}"),
        )
        .hint("Sign it again with an expiry height ahead of the ledger's, but not further than the charter allows."),
        RejectReason::Duplicate { height, index } => SqlError::new(
            SqlState::UNIQUE_VIOLATION,
            format!("the same transaction stands at height {height}, position {index}; it has committed once"),
        ),
        RejectReason::RequestReused { height, index } => SqlError::new(
            SqlState::UNIQUE_VIOLATION,
            format!(
                "the client has used this request id for another transaction, at height {height}, position {index}"
            ),
        )
        .hint("Choose a new request id for each transaction."),
        RejectReason::BlockBudget => SqlError::new(
            SqlState::OUT_OF_MEMORY,
            "the block's meter budget (charter: meter.block_steps) was spent before this transaction's turn",
        )
        .hint("Submit it again later."),
        RejectReason::Endorsement(fault) => SqlError::new(SqlState::INVALID_AUTHORIZATION, fault.to_string())
            .hint("What must be endorsed by whom, the charter and the contract's policy say."),
        RejectReason::NoMember { organisation, height } => SqlError::new(
            SqlState::INVALID_AUTHORIZATION,
            format!("organisation {organisation} is no member of the ledger at height {height}"),
        )
        .hint("entente.charters shows who is a member from which height on."),
    }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_error().message)
    }
}

/// How a transaction ended.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Outcome {
    /// Its effects are in the state.
    Committed(Vec<StatementResult>),
    /// A business abort: the contract or a constraint said no. Nothing of it is in the state.
    Aborted(SqlError),
    /// The protocol gave it up because of a conflict (never with Harmony's re-execution).
    Conflict,
    /// It was not executed.
    Rejected(RejectReason),
}

/// What the ledger says of one transaction.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Receipt {
    /// The transaction.
    pub transaction: TransactionId,
    /// Height of its block.
    pub height: u64,
    /// Position in the block.
    pub index: u32,
    /// How it ended.
    pub outcome: Outcome,
}

impl Receipt {
    /// Leaf of the block's receipts tree.
    pub fn leaf(&self) -> Digest {
        sha256(&[&[0], &crate::encode(self)])
    }
}
