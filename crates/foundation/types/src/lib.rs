//! The words of Entente as data: [`Value`], [`Row`] and [`Key`]; [`Table`] and [`Catalog`]; [`Transaction`],
//! [`Block`], [`Receipt`] and [`Charter`]. No I/O and no threads.
//!
//! **Canonical encoding.** Everything that is signed, hashed, sent or stored is encoded with borsh: fields in the
//! order of declaration, integers little-endian, lengths as `u32`. One value has one encoding, and
//! [`decode_exactly`] refuses trailing bytes, so equal digests mean equal values.
//!
//! **Limits.** Every length that comes from outside is bounded by a constant of [`limits`].

mod access_list;
mod advisory_lock;
mod agreed_part;
mod amendment;
mod arithmetic;
mod array;
mod attestation;
mod bit_string;
mod block;
mod bytes;
mod cast;
mod catalog;
mod charter;
mod charter_encoding;
mod charter_text;
mod charters;
mod citext;
mod column_origin;
mod columns;
mod comment;
mod composite;
mod composite_text;
mod composite_type;
mod concurrency;
mod constraint;
mod cursor;
mod data_type;
mod domain;
mod element_type;
mod endorsement;
mod enum_type;
mod error;
mod execution_model;
mod execution_version;
mod founding;
mod gateway_address;
mod governance;
mod held_parts;
mod hstore;
mod identity;
mod index;
mod json;
mod key;
mod materialized_view;
mod memory;
mod network_address;
mod notification;
mod numeric;
mod outcome;
mod overload;
mod packed_rows;
mod part;
mod partitioning;
mod parts_draft;
mod policy;
mod polymorphic;
mod presence;
mod privilege;
mod proposal;
mod quoted_field;
mod range;
mod real;
mod receipt;
mod role;
mod row_lock;
mod row_security;
mod schema;
mod schema_block_outcome;
mod schema_outcome;
mod script_settings;
mod sequence;
mod session;
mod step_given;
mod submission;
mod table_key;
mod text;
mod transaction;
mod trigger;
mod unknown_types;
mod value;
mod value_limits;
mod view;

pub mod datetime;
pub mod limits;
pub mod session_format;
pub mod text_search;
pub mod time_zone;

pub use access_list::{AccessList, DependentPrivileges, Given, Granted, Memberships};
pub use advisory_lock::{
    AdvisoryHolder, AdvisoryKey, AdvisoryLease, AdvisoryMode, AdvisoryOwner, AdvisorySession,
    HeldAdvisoryLock, advisory_key_of, advisory_lock_is_held, advisory_row, advisory_value, is_advisory_row,
    says_lock_is_held,
};
pub use agreed_part::{AgreedPart, Move, StakeholderSignature, agreement, between_digest, part_core};
pub use amendment::{
    AMENDMENT_MARGIN_BLOCKS, AmendedCharter, CharterChange, accept_membership, membership_message,
};
pub use arithmetic::{
    ArithmeticOperator, OperatorTypes, absolute, add, arithmetic, arithmetic_result, concatenate, divide,
    multiply, negate, operator_types, remainder, subtract,
};
pub use array::{
    Array, Dimension, Dimensions, SliceBounds, check_array_elements, check_dimensions, elements_in,
};
pub use attestation::{
    Attestation, AttestationError, Attested, Certificate, CertificateRules, CheckpointCertificate,
    OutcomeCertificate, Statement,
};
pub use bit_string::BitString;
pub use block::{
    Block, BlockError, BlockHeader, transaction_leaf, transactions_root, transactions_root_of_leaves,
};
pub use bytes::{check_bytea_text, check_bytes_length, format_hexadecimal, parse_escaped, parse_hexadecimal};
pub use cast::{
    assign, can_cast_explicitly, can_cast_implicitly, can_cast_in_assignment, cast, common_type,
    comparison_type,
};
pub use catalog::{
    Catalog, Column, Function, FunctionResult, Language, Parameter, ParameterMode, Procedure, Table, TableId,
    UserAggregate, Volatility,
};
pub use charter::{BlockLimits, Charter, CharterError, MeterLimits, Organisation};
pub use charters::{Charters, Handover, HandoverError, Place, Reign};
pub use column_origin::ColumnOrigin;
pub use columns::ColumnSet;
pub use comment::Commented;
pub use composite::{Composite, TypeId};
pub use composite_type::{CompositeType, CompositeTypes, TypeKind};
pub use concurrency::{Consistency, Granularity, OnConflict, ProtocolOptions};
pub use constraint::{Check, Deferral, ForeignKey, ReferentialAction};
pub use cursor::{CursorPosition, Moved, Movement};
pub use data_type::DataType;
pub use datetime::{Interval, TimeType, TimeTz, round_time};
pub use domain::{Domain, DomainCheck};
pub use element_type::ElementType;
pub use endorsement::{
    EndorsedEffects, EndorsedRead, EndorsedScan, EndorsedSimulation, EndorsedWrite, Endorsement,
    EndorsementFault, KeyBound, OracleValue, RowWrite, endorse, endorsement_leaf, endorsement_message,
    endorsement_roots,
};
pub use enum_type::{EnumPlace, EnumValue};
pub use error::{SqlError, SqlState};
pub use execution_model::{EndorsementOptions, ExecutionModel, Pipeline};
pub use execution_version::{ExecutionVersion, KnownVersions, UnknownVersion};
pub use founding::{CharterSignature, Credentials, Difference, FoundingError, MemberCard, fingerprint};
pub use gateway_address::{GatewayAddress, GatewayScheme, NODE_KEY_ALPN};
pub use governance::{ChangeProposal, Governance, ProposalState, ProposedChange, Redaction};
pub use held_parts::{HeldParts, Holder};
pub use hstore::Hstore;
pub use identity::{Identity, IdentityError};
pub use index::{Index, IndexDetails, IndexMethod, KeyOrder};
pub use json::{
    JsonElements, JsonMembers, JsonNode, JsonPart, JsonText, JsonView, Jsonb, check_json, compare_json_keys,
    json_too_deep, quoted_json, split_json, write_json_string,
};
pub use key::Key;
pub use materialized_view::MaterializedView;
pub use memory::{MemoryPool, MemoryShare};
pub use network_address::NetworkAddress;
pub use notification::{Notification, Notifications};
pub use numeric::{Numeric, NumericDeviations, NumericSum};
pub use outcome::{BlockDigest, CheckpointRoot, OutcomeHeader, TableDigest};
pub use overload::{is_overload_of, overload_range};
pub use packed_rows::PackedRows;
pub use part::{Part, PartCommitment, PartFault, PartSubmission};
pub use partitioning::{
    Partition, PartitionBound, PartitionKey, PartitionStrategy, Partitioning, RangeDatum, shown_datums,
};
pub use parts_draft::{DraftPart, PartsDraft};
pub use policy::{Policy, PolicyError};
pub use polymorphic::Polymorphic;
pub use presence::Presence;
pub use privilege::{Grantee, Privileges};
pub use proposal::{
    PROPOSALS_MAX, Proposal, ProposalAnswer, ProposalRefusal, ProposalReply, ProposalRequest,
};
pub use range::{Bound, Bounds, Multirange, Range, RangeType, Spans};
pub use receipt::{Notice, Outcome, OutputColumn, Receipt, RejectReason, Severity, StatementResult};
pub use role::{Principal, Role, Roles, Securable, Signers};
pub use row_lock::{RowLockMode, row_is_held, says_row_is_held};
pub use row_security::{PolicyCommand, RowPolicy, RowSecurity};
pub use schema::{
    DATABASE, PUBLIC_SCHEMA, Schema, SchemaMembers, SearchPath, as_given, catalog_name, object_name,
    quoted_catalog_name, schema_of, split_catalog_name,
};
pub use schema_block_outcome::{AttestingMembers, SchemaBlockOutcome};
pub use schema_outcome::{
    PartMembers, PartMoves, PartVotes, SchemaAttestation, SchemaCertificate, SchemaOutcome, schema_quorum,
};
pub use script_settings::{ScriptSettings, parse_search_path, split_settings};
pub use sequence::{Counter, Generated, Sequence, SequenceOwner};
pub use session::{SessionResults, SessionStep, results_have_changed};
pub use step_given::{GivenTable, HeldRow, StepGiven};
pub use submission::{
    AnswerAt, FrameError, SUBMISSION_BYTES_MAX, SUBMISSION_REPLY_BYTES_MAX, SUBMISSION_TRANSACTIONS_MAX,
    SubmissionRefusal, SubmissionReply, frame_ranges, read_frame, write_frame,
};
pub use text::{format_value, parse_value};
pub use text_search::{TsQuery, TsVector};
pub use transaction::{
    ClientId, Credential, Payload, RequestId, SignedTransaction, Transaction, TransactionError, TransactionId,
};
pub use trigger::{Trigger, TriggerEvent, TriggerEvents, TriggerTime};
pub use unknown_types::with_types_of;
pub use value::{Row, VALUE_BYTES, Value};
pub use value_limits::{ValueLimits, array_elements_max, arrays_are_plain, row_bytes_max, text_bytes_max};
pub use view::{CheckOption, View};

use borsh::{BorshDeserialize, BorshSerialize};

/// The canonical encoding of `value`.
pub fn encode<T: BorshSerialize + ?Sized>(value: &T) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}

/// Reads one value and refuses trailing bytes, so that one value has one encoding.
///
/// # Errors
/// Says at which offset what was expected.
pub fn decode_exactly<T: BorshDeserialize>(bytes: &[u8]) -> std::io::Result<T> {
    borsh::from_slice(bytes)
}

/// Faults of a set of organisations that agreement survives: `⌊(n − 1) / 3⌋`.
pub fn faults_tolerated(organisations: usize) -> usize {
    organisations.saturating_sub(1) / 3
}

/// Organisations whose equal word decides: `n − ⌊(n − 1) / 3⌋`.
pub fn quorum(organisations: usize) -> usize {
    organisations - faults_tolerated(organisations)
}
