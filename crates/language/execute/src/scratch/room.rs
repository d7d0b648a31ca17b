//! The room itself: what gives files, and when rows go there.

use std::fmt::Debug;
use std::sync::Arc;
use types::{SqlError, Value};

/// Room for rows outside of memory.
pub trait Scratch: Send + Sync + Debug {
    /// A new file, empty. It is gone when it is dropped.
    ///
    /// # Errors
    /// `53100` where there is no room.
    fn file(&self) -> Result<Box<dyn ScratchFile>, SqlError>;

    /// A new file for an operator of this name. Whoever wants to know what writes can tell by it.
    ///
    /// # Errors
    /// As [`Scratch::file`].
    fn file_for(&self, _operator: &'static str) -> Result<Box<dyn ScratchFile>, SqlError> {
        self.file()
    }

    /// Bytes of rows that each operator of a query may hold before it writes them.
    fn operator_bytes(&self) -> u64;
}

/// The same room, for an operator with a name.
pub(crate) fn named(scratch: &Arc<dyn Scratch>, operator: &'static str) -> Arc<dyn Scratch> {
    Arc::new(Named { scratch: scratch.clone(), operator })
}

#[derive(Debug)]
struct Named {
    scratch: Arc<dyn Scratch>,
    operator: &'static str,
}

impl Scratch for Named {
    fn file(&self) -> Result<Box<dyn ScratchFile>, SqlError> {
        self.scratch.file_for(self.operator)
    }

    fn operator_bytes(&self) -> u64 {
        self.scratch.operator_bytes()
    }
}

/// A file of a query.
pub trait ScratchFile {
    /// Writes behind what is there.
    ///
    /// # Errors
    /// `53100` where there is no room, `58030` where the file cannot be written.
    fn append(&mut self, bytes: &[u8]) -> Result<(), SqlError>;

    /// Fills `bytes` with what stands from `offset` on.
    ///
    /// # Errors
    /// `58030` where there is not so much, or it cannot be read.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), SqlError>;
}

/// Less than so much is not written: where others hold all the memory, many small files would not help.
const WRITTEN_MIN: u64 = 32 * 1024;

/// What the values of a row take outside of its places: the bytes that they share with nobody in the worst case.
pub(crate) fn row_bytes(values: &[Value]) -> u64 {
    plan::expression::row_space(values.len()) + values.iter().map(plan::expression::long_bytes).sum::<u64>()
}

/// Whether rows of so many bytes are to be written now.
pub(super) fn is_full(scratch: &Arc<dyn Scratch>, bytes: u64, fits: &Result<(), SqlError>) -> bool {
    bytes >= scratch.operator_bytes() || (fits.is_err() && bytes >= WRITTEN_MIN.min(scratch.operator_bytes()))
}
