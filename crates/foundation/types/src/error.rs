use crate::limits;
use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;

/// Five characters of PostgreSQL's Appendix A, for example `23505`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// `0A000` what Entente does not support
    pub const FEATURE_NOT_SUPPORTED: SqlState = SqlState(*b"0A000");
    /// `22000` values that do not go together: `data_exception`
    pub const DATA_EXCEPTION: SqlState = SqlState(*b"22000");
    /// `22001` text longer than its type
    pub const STRING_DATA_RIGHT_TRUNCATION: SqlState = SqlState(*b"22001");
    /// `22003` out of the range of the type
    pub const NUMERIC_VALUE_OUT_OF_RANGE: SqlState = SqlState(*b"22003");
    /// `22008` date or time out of range
    pub const DATETIME_FIELD_OVERFLOW: SqlState = SqlState(*b"22008");
    /// NULL where a value is needed: `null_value_not_allowed`.
    pub const NULL_VALUE_NOT_ALLOWED: SqlState = SqlState(*b"22004");
    /// `22007` text that is no date or time
    pub const INVALID_DATETIME_FORMAT: SqlState = SqlState(*b"22007");
    /// `2202E` a subscript that an array does not have
    pub const ARRAY_SUBSCRIPT_ERROR: SqlState = SqlState(*b"2202E");
    /// `22012` division by zero
    pub const DIVISION_BY_ZERO: SqlState = SqlState(*b"22012");
    /// `22023` a parameter has a value that makes no sense
    pub const INVALID_PARAMETER_VALUE: SqlState = SqlState(*b"22023");
    /// `22P02` text that is no value of the type
    pub const INVALID_TEXT_REPRESENTATION: SqlState = SqlState(*b"22P02");
    /// `22P04` COPY data that does not fit
    pub const BAD_COPY_FILE_FORMAT: SqlState = SqlState(*b"22P04");
    /// `23502` NULL in a NOT NULL column
    pub const NOT_NULL_VIOLATION: SqlState = SqlState(*b"23502");
    /// A row references a key that is not there, or a key goes that a row references.
    pub const FOREIGN_KEY_VIOLATION: SqlState = SqlState(*b"23503");
    /// `23505` a key that exists already
    pub const UNIQUE_VIOLATION: SqlState = SqlState(*b"23505");
    /// `23514` a CHECK that is false
    pub const CHECK_VIOLATION: SqlState = SqlState(*b"23514");
    /// `25001` inside of a transaction block where that cannot be
    pub const ACTIVE_TRANSACTION: SqlState = SqlState(*b"25001");
    /// `25P01` outside of a transaction block where that cannot be
    pub const NO_ACTIVE_TRANSACTION: SqlState = SqlState(*b"25P01");
    /// `25P02` anything but the end of a transaction block, or of a part of it, after an error in it
    pub const IN_FAILED_TRANSACTION: SqlState = SqlState(*b"25P02");
    /// `25P03` a transaction block in which nothing was done for too long
    pub const IDLE_IN_TRANSACTION_TIMEOUT: SqlState = SqlState(*b"25P03");
    /// `3B001` no such savepoint
    pub const INVALID_SAVEPOINT: SqlState = SqlState(*b"3B001");
    /// `25006` a write where only reads are possible
    pub const READ_ONLY_TRANSACTION: SqlState = SqlState(*b"25006");
    /// Whoever asks is not who may: `invalid_authorization_specification`.
    pub const INVALID_AUTHORIZATION: SqlState = SqlState(*b"28000");
    /// `2F005` a function without RETURN
    pub const NO_RETURN: SqlState = SqlState(*b"2F005");
    /// `40000` a transaction in several schemas with members that was decided against
    pub const TRANSACTION_ROLLBACK: SqlState = SqlState(*b"40000");
    /// `40001` the transaction would not be serializable
    pub const SERIALIZATION_FAILURE: SqlState = SqlState(*b"40001");
    /// `42501` not allowed
    pub const INSUFFICIENT_PRIVILEGE: SqlState = SqlState(*b"42501");
    /// `42601` a statement that does not parse
    pub const SYNTAX_ERROR: SqlState = SqlState(*b"42601");
    /// `42602` a name that cannot be one
    pub const INVALID_NAME: SqlState = SqlState(*b"42602");
    /// `42622` a name that is too long
    pub const NAME_TOO_LONG: SqlState = SqlState(*b"42622");
    /// `42701` a column named twice
    pub const DUPLICATE_COLUMN: SqlState = SqlState(*b"42701");
    /// `42702` a name that could be two things
    pub const AMBIGUOUS_COLUMN: SqlState = SqlState(*b"42702");
    /// `42703` no such column
    pub const UNDEFINED_COLUMN: SqlState = SqlState(*b"42703");
    /// `42723` a procedure that exists already
    pub const DUPLICATE_FUNCTION: SqlState = SqlState(*b"42723");
    /// `42803` a column that is neither grouped nor aggregated
    pub const GROUPING_ERROR: SqlState = SqlState(*b"42803");
    /// `42804` types that do not fit
    pub const DATATYPE_MISMATCH: SqlState = SqlState(*b"42804");
    /// `42883` no such function, procedure or operator for these types
    pub const UNDEFINED_FUNCTION: SqlState = SqlState(*b"42883");
    /// Something that has a name and does not exist: `undefined_object`.
    pub const UNDEFINED_OBJECT: SqlState = SqlState(*b"42704");
    /// `42P01` no such table
    pub const UNDEFINED_TABLE: SqlState = SqlState(*b"42P01");
    /// `42P02` no such parameter
    pub const UNDEFINED_PARAMETER: SqlState = SqlState(*b"42P02");
    /// `42P07` a table that exists already
    pub const DUPLICATE_TABLE: SqlState = SqlState(*b"42P07");
    /// `42P16` a table that cannot be
    pub const INVALID_TABLE_DEFINITION: SqlState = SqlState(*b"42P16");
    /// `42P18` a parameter whose type cannot be told
    pub const INDETERMINATE_DATATYPE: SqlState = SqlState(*b"42P18");
    /// `53100` the disk is full
    pub const DISK_FULL: SqlState = SqlState(*b"53100");
    /// `53200` the memory or meter limit is reached
    pub const OUT_OF_MEMORY: SqlState = SqlState(*b"53200");
    /// `53300` too many connections, or too many transactions waiting
    pub const TOO_MANY_CONNECTIONS: SqlState = SqlState(*b"53300");
    /// `53400` more than a node's settings allow
    pub const CONFIGURATION_LIMIT_EXCEEDED: SqlState = SqlState(*b"53400");
    /// `54000` a stated limit of Entente is exceeded
    pub const PROGRAM_LIMIT_EXCEEDED: SqlState = SqlState(*b"54000");
    /// `54001` a statement that is nested too deeply
    pub const STATEMENT_TOO_COMPLEX: SqlState = SqlState(*b"54001");
    /// `55P03` somebody else has a lock
    pub const LOCK_NOT_AVAILABLE: SqlState = SqlState(*b"55P03");
    /// Something is not as it would have to be: a proposal that is closed, a change that others must agree to first.
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: SqlState = SqlState(*b"55000");
    /// `57014` cancelled, or metered out
    pub const QUERY_CANCELED: SqlState = SqlState(*b"57014");
    /// `58030` a file cannot be read or written
    pub const IO_ERROR: SqlState = SqlState(*b"58030");
    /// `57P03` the node cannot answer now
    pub const CANNOT_CONNECT_NOW: SqlState = SqlState(*b"57P03");
    /// Something outside of the database failed: `external_routine_exception`.
    pub const EXTERNAL_ROUTINE_EXCEPTION: SqlState = SqlState(*b"38000");
    /// `08P01` a message that is not of the protocol
    pub const PROTOCOL_VIOLATION: SqlState = SqlState(*b"08P01");
    /// `P0001` RAISE EXCEPTION without a code
    pub const RAISE_EXCEPTION: SqlState = SqlState(*b"P0001");
    /// `P0002` STRICT and no row
    pub const NO_DATA_FOUND: SqlState = SqlState(*b"P0002");
    /// `P0003` STRICT and several rows
    pub const TOO_MANY_ROWS: SqlState = SqlState(*b"P0003");
    /// `XX000` an invariant of Entente is broken
    pub const INTERNAL_ERROR: SqlState = SqlState(*b"XX000");
    /// Nodes that should hold the same data do not: `data_corrupted`.
    pub const DATA_CORRUPTED: SqlState = SqlState(*b"XX001");
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// An error as PostgreSQL reports it: what a statement or a contract ends with when it does not succeed.
///
/// Boxed by those who return it often; the fields are those of the wire protocol's `ErrorResponse`.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    /// The class of the error.
    pub state: SqlState,
    /// What is wrong: what was expected, what came.
    pub message: String,
    /// More about this occurrence.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
}

impl SqlError {
    /// An error with state and message alone.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError { state, message: message.into(), detail: None, hint: None, position: None }
    }

    /// A construct that is refused by name (`0A000`).
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// What a read-only transaction must not run (`25006`), as PostgreSQL says it. `command`: the command's tag without counts, or
    /// `nextval()`.
    pub fn not_in_read_only(command: &str) -> SqlError {
        let message = format!("cannot execute {command} in a read-only transaction");
        SqlError::new(SqlState::READ_ONLY_TRANSACTION, message)
    }

    /// The same error with a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }

    /// The same error with the beginning of its detail, where that has more than [`limits::DETAIL_BYTES_MAX`] bytes: it may show a whole
    /// value.
    #[must_use]
    pub fn with_short_detail(mut self) -> SqlError {
        if let Some(detail) = &mut self.detail
            && detail.len() > limits::DETAIL_BYTES_MAX
        {
            detail.truncate(detail.floor_char_boundary(limits::DETAIL_BYTES_MAX));
            detail.push('…');
        }
        self
    }

    /// The same error with a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    /// The same error at a position in the statement, in characters from 1.
    pub fn at(mut self, position: u32) -> SqlError {
        self.position = Some(position);
        self
    }
}
