//! What keeps the expressions of a transaction from filling the memory.

use std::cell::Cell;
use types::{SqlError, SqlState, Value};

/// Bytes of long values that the expressions of one transaction make, whatever its steps are.
const LONG_VALUES_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes of them that a transaction may make for each step that it may take.
const BYTES_PER_STEP: u64 = 256;
/// A value of more bytes is a long one; shorter ones are bounded by the number of values.
const LONG_BYTES: usize = 64;

/// Counts the bytes of long values that expressions make: those that are kept and those that are not, because the same
/// must come out on every node. Copies of values share their bytes and are not counted.
pub(crate) struct LongValues {
    bytes: Cell<u64>,
    most: u64,
}

impl LongValues {
    /// For a transaction with this limit on steps, which has made so many bytes.
    pub fn new(step_limit: u64, bytes: u64) -> LongValues {
        let most = step_limit.saturating_mul(BYTES_PER_STEP).min(LONG_VALUES_BYTES_MAX);
        LongValues { bytes: Cell::new(bytes), most }
    }

    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Takes note of a value that an expression has made.
    ///
    /// # Errors
    /// `54000` where it is one too many.
    #[inline]
    pub fn count(&self, value: &Value) -> Result<(), SqlError> {
        let bytes = long_bytes(value);
        if bytes == 0 {
            return Ok(());
        }
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() <= self.most { Ok(()) } else { Err(self.exceeded()) }
    }

    #[cold]
    fn exceeded(&self) -> SqlError {
        let message = format!(
            "the texts, numbers and arrays that the expressions of the transaction make have more than {} bytes together \
             (LONG_VALUES_BYTES_MAX)",
            self.most
        );
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("Touch fewer rows, or split the work into several transactions.")
    }
}

/// The bytes of a value where those are many, else 0.
#[inline]
pub(crate) fn long_bytes(value: &Value) -> u64 {
    let bytes = match value {
        Value::Text(text) | Value::Char(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Numeric(number) => number.stored_bytes(),
        // What the elements hold was counted when they were made.
        Value::Array(array) => size_of_val(array.values()),
        Value::Composite(row) => size_of_val(row.values()),
        _ => 0,
    };
    if bytes > LONG_BYTES { bytes as u64 } else { 0 }
}
