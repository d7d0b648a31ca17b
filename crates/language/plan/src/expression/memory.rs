//! What keeps an execution from filling the memory.
//!
//! One count of bytes: long values are counted where they are made, because nobody knows when their last copy goes;
//! rows as long as a query holds them; what stays, until the transaction ends. The count is the same on every node,
//! so the limit [`EXECUTION_BYTES_MAX`] is the same too. A gateway's reads and blocks also take what they count from
//! what all of them have on this node together ([`types::MemoryPool`]).

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use types::{MemoryShare, SqlError, SqlState, VALUE_BYTES, Value};

/// Bytes that one execution may take, whatever its steps are.
const EXECUTION_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes that it may take for each step that it may take.
const BYTES_PER_STEP: u64 = 512;
/// A value of more bytes is a long one; of shorter ones nothing counts but their place in a row.
const LONG_BYTES: usize = 64;
/// What a row takes besides its values.
const ROW_BYTES: u64 = 48;

/// Counts the bytes that an execution takes: the same on every node, whatever its machine and its caches are.
///
/// Nobody knows when the last copy of a value goes, and copies share their bytes; so a long value counts where it is made, and
/// for good. What counts besides is where values stand: rows of queries as long as the query holds them, and what stays
/// until the transaction ends.
pub struct Memory {
    /// Bytes of the long values that expressions have made.
    made: Cell<u64>,
    /// Bytes of what stays: commands, reads, open cursors.
    kept: Cell<u64>,
    /// Bytes of the rows that queries hold which are running, and of results.
    held: Cell<u64>,
    most: u64,
    /// Up to here nobody needs to be asked.
    granted: Cell<u64>,
    /// Of what all queries of a node have together; nothing where a transaction runs at its place in a block.
    share: RefCell<MemoryShare>,
}

/// What an execution keeps between two statements.
#[derive(Default)]
pub struct KeptMemory {
    made: u64,
    kept: u64,
    share: MemoryShare,
}

impl KeptMemory {
    /// Nothing yet, of what this is a share of.
    pub fn of(share: MemoryShare) -> KeptMemory {
        KeptMemory { share, ..KeptMemory::default() }
    }

    /// What has been made counts no more.
    pub fn forget_made(&mut self) {
        self.made = 0;
    }
}

impl Memory {
    /// For an execution with this limit on steps, which keeps this already.
    pub fn new(step_limit: u64, before: KeptMemory) -> Memory {
        let most = step_limit.saturating_mul(BYTES_PER_STEP).min(EXECUTION_BYTES_MAX);
        let KeptMemory { made, kept, mut share } = before;
        // What the statement before has held its client has got.
        share.shrink_to(made.saturating_add(kept));
        let granted = Cell::new(share.bytes().min(most));
        let (made, kept, held) = (Cell::new(made), Cell::new(kept), Cell::new(0));
        Memory { made, kept, held, most, granted, share: RefCell::new(share) }
    }

    /// What stays when a statement has ended.
    pub fn suspended(&self) -> KeptMemory {
        KeptMemory { made: self.made.get(), kept: self.kept.get(), share: self.share.take() }
    }

    /// Takes note of a value that an expression has made.
    ///
    /// # Errors
    /// `54000` where it is one too many; `53200` where the node has too little memory for all of its queries.
    #[inline]
    pub fn count(&self, value: &Value) -> Result<(), SqlError> {
        match long_bytes(value) {
            0 => Ok(()),
            bytes => self.add(&self.made, bytes),
        }
    }

    /// Something stays until the transaction ends, or is given back.
    ///
    /// # Errors
    /// As [`Memory::count`].
    #[inline]
    pub fn keep(&self, bytes: u64) -> Result<(), SqlError> {
        self.add(&self.kept, bytes)
    }

    /// Something that was kept is gone.
    pub fn give_back(&self, bytes: u64) {
        self.kept.set(self.kept.get().saturating_sub(bytes));
    }

    /// A query holds so many bytes as long as it runs.
    ///
    /// # Errors
    /// As [`Memory::count`].
    #[inline]
    pub fn hold(&self, bytes: u64) -> Result<(), SqlError> {
        self.add(&self.held, bytes)
    }

    /// A query holds a row with so many values.
    ///
    /// # Errors
    /// As [`Memory::count`].
    #[inline]
    pub fn hold_row(&self, width: usize) -> Result<(), SqlError> {
        self.hold(row_space(width))
    }

    /// What is held now.
    pub fn held(&self) -> u64 {
        self.held.get()
    }

    /// What has been held since then is gone.
    pub fn release_to(&self, held: u64) {
        self.held.set(held);
    }

    /// So many bytes of what is held are gone.
    pub fn release(&self, bytes: u64) {
        self.held.set(self.held.get().saturating_sub(bytes));
    }

    #[inline]
    fn add(&self, counter: &Cell<u64>, bytes: u64) -> Result<(), SqlError> {
        counter.set(counter.get().saturating_add(bytes));
        let all = self.made.get().saturating_add(self.kept.get()).saturating_add(self.held.get());
        if all <= self.granted.get() { Ok(()) } else { self.ask_for(all) }
    }

    #[cold]
    fn ask_for(&self, bytes: u64) -> Result<(), SqlError> {
        if bytes > self.most {
            return Err(self.exceeded());
        }
        let mut share = self.share.borrow_mut();
        share.grow_to(bytes)?;
        self.granted.set(share.bytes().min(self.most));
        Ok(())
    }

    fn exceeded(&self) -> SqlError {
        let message = format!(
            "the transaction takes more than {} bytes of memory, with the values that it makes and the rows that it holds \
             (EXECUTION_BYTES_MAX)",
            self.most
        );
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("Touch fewer rows, or split the work into several transactions.")
    }
}

/// What a row with so many values takes, without the bytes of its long ones.
pub fn row_space(width: usize) -> u64 {
    ROW_BYTES + width as u64 * VALUE_BYTES
}

/// The same for several rows.
pub fn rows_space(rows: &[Vec<Value>]) -> u64 {
    row_space(rows.first().map_or(0, Vec::len)).saturating_mul(rows.len() as u64)
}

/// The bytes of a value where those are many, else 0.
#[inline]
pub fn long_bytes(value: &Value) -> u64 {
    let bytes = match value {
        Value::Text(text) | Value::Char(text) | Value::Citext(text) => text.len(),
        Value::Hstore(store) => store.bytes().len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Json(text) => text.len(),
        Value::Jsonb(value) => value.bytes().len(),
        Value::Numeric(number) => number.stored_bytes(),
        Value::Bit(bits) | Value::VarBit(bits) => bits.bytes().len(),
        Value::Range(range) => range.bytes(),
        Value::Multirange(ranges) => ranges.bytes(),
        // What the elements hold was counted when they were made.
        Value::Array(array) => size_of_val(array.values()),
        Value::Composite(row) => size_of_val(row.values()),
        _ => 0,
    };
    if bytes > LONG_BYTES { bytes as u64 } else { 0 }
}

/// The bytes of a row's long values that are no copies of values of another row.
pub fn new_long_bytes(row: &[Value], other: &[Value]) -> u64 {
    let is_copy = |value: &Value| other.iter().any(|known| share_bytes(value, known));
    row.iter().filter(|value| long_bytes(value) > 0 && !is_copy(value)).map(long_bytes).sum()
}

fn share_bytes(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Text(left) | Value::Char(left), Value::Text(right) | Value::Char(right)) => {
            Arc::ptr_eq(left, right)
        }
        (Value::Bytea(left), Value::Bytea(right)) => Arc::ptr_eq(left, right),
        (Value::Json(left), Value::Json(right)) => Arc::ptr_eq(left, right),
        (Value::Citext(left), Value::Citext(right)) => Arc::ptr_eq(left, right),
        (Value::Hstore(left), Value::Hstore(right)) => left.shares_bytes(right),
        (Value::Jsonb(left), Value::Jsonb(right)) => left.shares_bytes(right),
        (Value::Array(left), Value::Array(right)) => Arc::ptr_eq(left, right),
        (Value::Composite(left), Value::Composite(right)) => Arc::ptr_eq(left, right),
        (Value::Bit(left) | Value::VarBit(left), Value::Bit(right) | Value::VarBit(right)) => {
            Arc::ptr_eq(left, right)
        }
        (Value::Range(left), Value::Range(right)) => Arc::ptr_eq(left, right),
        (Value::Multirange(left), Value::Multirange(right)) => Arc::ptr_eq(left, right),
        _ => false,
    }
}
