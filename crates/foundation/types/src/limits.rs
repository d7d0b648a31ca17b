//! Every stated limit on what comes from outside. What exceeds one gets an error that names it.

use crate::{ExecutionVersion, SqlError, SqlState};

/// Bytes of one encoded transaction that a charter may allow. What is allowed is the charter's `block.transaction_bytes_max`.
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of one encoded transaction before execution version 14, and the least that a charter may allow since.
pub const TRANSACTION_BYTES_BEFORE: u32 = 256 * 1024;
/// Bytes of a value of type text, and of others as a text. Expressions ask [`crate::text_bytes_max`], because versions differ.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The same before execution version 14.
pub const TEXT_BYTES_BEFORE: usize = 128 * 1024;
/// Arguments of a call; before execution version 8 also parameters of a script.
pub const ARGUMENTS_MAX: usize = 1_000;
/// Parameters of a script: as many as PostgreSQL's protocol counts.
pub const PARAMETERS_MAX: usize = 65_535;
/// Bytes of the name of a table, column, procedure or organisation (PostgreSQL's `NAMEDATALEN − 1`).
pub const NAME_BYTES_MAX: usize = 63;
/// Columns of a table.
pub const COLUMNS_MAX: usize = 250;
/// Roles of a ledger.
pub const ROLES_MAX: usize = 10_000;

/// Grants on one object that roles have made, and not administrators.
pub const ROLE_GRANTS_MAX: usize = 1_000;
/// Tables of a ledger.
pub const TABLES_MAX: usize = 10_000;
/// Bytes of what COMMENT ON says.
pub const COMMENT_BYTES_MAX: usize = 16 * 1024;
/// Blocks from one CHECKPOINT to the next at least: every node writes its whole state each time.
pub const CHECKPOINT_BLOCKS_MIN: u64 = 50;
/// Parts of one transaction: schemas with members that it touches.
pub const PARTS_MAX: usize = 16;
/// Signatures of stakeholders that a transaction in schemas with members may have; with more none counts.
pub const SIGNATURES_MAX: usize = 64;
/// Things that a transaction moves from and to one schema with members.
pub const MOVES_MAX: usize = 1_000;
/// Bytes of all that moves.
pub const MOVES_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one encoded part: it travels in one message between members.
pub const PART_BYTES_MAX: usize = 48 * 1024;
/// Votes of a schema's members on parts in one block; what comes behind waits for the next one.
pub const VOTES_MAX: usize = 16 * 1024;
/// Members of a schema.
pub const SCHEMA_MEMBERS_MAX: usize = 64;
/// Schemas of a ledger besides `public`.
pub const SCHEMAS_MAX: usize = 1_000;
/// Procedures of a ledger.
pub const PROCEDURES_MAX: usize = 10_000;
/// Triggers of a table.
pub const TRIGGERS_MAX: usize = 256;
/// Policies of a table.
pub const POLICIES_MAX: usize = 64;
/// Partitions of a table, those of its partitions among them.
pub const PARTITIONS_MAX: usize = 1_000;
/// Partitions that may stand inside of one another.
pub const PARTITIONS_DEEP_MAX: usize = 8;
/// Bytes of an encoded row. Who makes rows asks [`crate::row_bytes_max`], because versions differ.
pub const ROW_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The same before execution version 14.
pub const ROW_BYTES_BEFORE: usize = 256 * 1024;
/// Bytes of an encoded primary key.
pub const KEY_BYTES_MAX: usize = 2_700;
/// Bytes of the columns of an ordered index by which its entries are told apart; longer ones stand side by side.
pub const INDEX_BYTES_MAX: usize = 512;
/// Indexes of a table.
pub const INDEXES_MAX: usize = 32;
/// Columns of an index, as in PostgreSQL.
pub const INDEX_COLUMNS_MAX: usize = 32;
/// Fields of a row constructor, as in PostgreSQL.
pub const FIELDS_MAX: usize = 1_664;
/// Bytes of an error's detail in a receipt; of a longer one it is the beginning.
pub const DETAIL_BYTES_MAX: usize = 8 * 1024;
/// Columns that a query lists of a record, as in PostgreSQL.
pub const LISTED_COLUMNS_MAX: usize = 1_600;
/// Rows in one another inside of a value, and composite types in one another.
pub const COMPOSITE_NESTING_MAX: usize = 16;
/// Types of a ledger that CREATE TYPE has made.
pub const TYPES_MAX: usize = 10_000;
/// Arrays and objects in one another inside of a JSON value.
pub const JSON_NESTING_MAX: usize = 256;
/// Labels of an enum.
pub const ENUM_LABELS_MAX: usize = 1_000;
/// Bytes by which the label of an enum is put between two others: room for more than two hundred on one spot.
pub const ENUM_PLACE_BYTES_MAX: usize = 32;
/// Domains that are of one another, and domains whose conditions cast to one another.
pub const DOMAIN_NESTING_MAX: usize = 16;
/// Conditions that one value of a domain is held against: its own, those of the domains that it is of, and those of the domains
/// that conditions cast to.
pub const DOMAIN_CHECKS_MAX: usize = 256;
/// Elements of an array. Expressions ask [`crate::array_elements_max`], because versions differ.
pub const ARRAY_ELEMENTS_MAX: usize = 128 * 1024;
/// The same before execution version 16.
pub const ARRAY_ELEMENTS_BEFORE: usize = 16 * 1024;
/// Dimensions of an array (PostgreSQL's `MAXDIM`).
pub const ARRAY_DIMENSIONS_MAX: usize = 6;
/// Organisations of a ledger.
pub const ORGANISATIONS_MAX: usize = 128;
/// Bytes of an endorsement policy, as written and in its canonical text.
pub const POLICY_BYTES_MAX: usize = 16 * 1024;
/// Mentions of organisations in one endorsement policy, each counted.
pub const POLICY_MENTIONS_MAX: usize = 512;
/// Amendments of a ledger's charter in its life: nodes keep them all.
pub const AMENDMENTS_MAX: usize = 1_000;
/// Amendments that are decided and do not hold yet: a block can carry all of them.
pub const AMENDMENTS_PENDING_MAX: usize = 16;
/// Bytes of a charter's canonical encoding.
pub const CHARTER_BYTES_MAX: usize = 64 * 1024;
/// Blocks for which a proposal can be approved.
pub const PROPOSAL_BLOCKS_MAX: u64 = 10_000_000;
/// Proposals of one organisation that are open at a time.
pub const PROPOSALS_OPEN_MAX: usize = 64;
/// Bytes of their texts together.
pub const PROPOSALS_OPEN_BYTES_MAX: usize = 256 * 1024;
/// Closed proposals that can be read.
pub const PROPOSALS_CLOSED_MAX: usize = 256;
/// Bytes of their texts together.
pub const PROPOSALS_CLOSED_BYTES_MAX: usize = 512 * 1024;
/// Redactions that a ledger's members have agreed to, in its life: nodes keep them all.
pub const REDACTIONS_MAX: usize = 10_000;
/// Bytes of the reason of a redaction.
pub const REDACTION_REASON_BYTES_MAX: usize = 500;
/// Mentions that the search for a smallest set of endorsers visits before it settles for a minimal one.
pub const POLICY_CHOICE_WORK_MAX: usize = 1_000_000;
/// Oracles that one transaction may ask.
pub const ORACLES_MAX: usize = 16;
/// Bytes of what an oracle says.
pub const ORACLE_BYTES_MAX: usize = 4 * 1024;
/// Transactions of a block that a charter may allow.
pub const BLOCK_TRANSACTIONS_MAX: u32 = 65_000;
/// Bytes of a block that a charter may allow.
pub const BLOCK_BYTES_MAX: u32 = 8 * 1024 * 1024;
/// Digits of a numeric value before the point, as in PostgreSQL.
pub const NUMERIC_WHOLE_DIGITS_MAX: u32 = 131_072;
/// Digits of a numeric value after the point, as in PostgreSQL.
pub const NUMERIC_SCALE_MAX: u16 = 16_383;
/// The precision that a numeric type may name, and its scale in both directions, as in PostgreSQL.
pub const NUMERIC_PRECISION_MAX: u16 = 1_000;
/// Digits of the shorter of two numeric values that have their greatest common divisor computed: that takes as many
/// divisions as they have digits.
pub const NUMERIC_DIVISOR_DIGITS_MAX: u32 = 16_384;
/// Rows that one statement returns to a client through a receipt.
pub const RESULT_ROWS_MAX: usize = 10_000;
/// Messages that one transaction sends to its client.
pub const NOTICES_MAX: usize = 100;
/// Bytes of these messages together.
pub const NOTICES_BYTES_MAX: usize = 16 * 1024;
/// Bytes of what one notification says: as many as PostgreSQL takes.
pub const NOTIFICATION_BYTES_MAX: usize = 7_999;
/// Notifications of one transaction.
pub const NOTIFICATIONS_MAX: usize = 10_000;
/// Bytes of these notifications together: they stand in the receipt, which every node keeps.
pub const NOTIFICATIONS_BYTES_MAX: usize = 512 * 1024;
/// Advisory locks that one session holds.
pub const ADVISORY_LOCKS_MAX: usize = 512;
/// Sessions of one organisation that hold advisory locks.
pub const ADVISORY_SESSIONS_MAX: usize = 1_000;
/// Sessions that hold one advisory lock, shared.
pub const ADVISORY_HOLDERS_MAX: usize = 1_000;
/// The shortest time for which advisory locks stay without being renewed, in milliseconds.
pub const ADVISORY_LEASE_MS_MIN: u32 = 5_000;
/// The longest.
pub const ADVISORY_LEASE_MS_MAX: u32 = 600_000;
/// Rows that COPY brings in one transaction; each takes at least a step.
pub const PACKED_ROWS_MAX: u32 = 1_000_000_000;
/// Rows that a transaction block locks for the others of its gateway, and of which one of its statements is told that others have locked
/// them: more count as free.
pub const HELD_ROWS_MAX: usize = 10_000;
/// Statements and savepoints of one transaction block.
pub const SESSION_STEPS_MAX: usize = 100_000;
/// The same before execution version 14.
const SESSION_STEPS_BEFORE: usize = 10_000;
/// Savepoints of a transaction block at the same time.
pub const SAVEPOINTS_MAX: usize = 1_000;
/// Checks of constraints that one transaction may put off to its end.
pub const DEFERRED_CHECKS_MAX: usize = 250_000;
/// Nesting of expressions, blocks and calls.
pub const NESTING_MAX: usize = 64;

/// Parameters that a script may have by these rules of execution.
pub fn parameters_max(version: ExecutionVersion) -> usize {
    if version >= ExecutionVersion::V8 { PARAMETERS_MAX } else { ARGUMENTS_MAX }
}

/// Statements and savepoints that a transaction block may have by these rules of execution.
pub fn session_steps_max(version: ExecutionVersion) -> usize {
    if version >= ExecutionVersion::V14 { SESSION_STEPS_MAX } else { SESSION_STEPS_BEFORE }
}

/// Whether a name is not too long.
///
/// # Errors
/// `42622` where it is longer than [`NAME_BYTES_MAX`].
pub fn check_name_length(name: &str) -> Result<(), SqlError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let (bytes, limit) = (name.len(), NAME_BYTES_MAX);
    let message = format!("identifier \"{name}\" has {bytes} bytes, the limit is {limit} (NAME_BYTES_MAX)");
    Err(SqlError::new(SqlState::NAME_TOO_LONG, message))
}
