//! Reading what programs have read that did not know the types of a later execution version: before it their tags are unknown, as they
//! were to them.

use crate::{ExecutionVersion, limits};
use std::cell::Cell;
use std::io;

thread_local! {
    /// The newest version whose types are known.
    static KNOWN: Cell<ExecutionVersion> = const { Cell::new(ExecutionVersion::NEWEST) };
}

/// Puts back what was, also where reading panics.
struct Around(ExecutionVersion);

impl Drop for Around {
    fn drop(&mut self) {
        KNOWN.set(self.0);
    }
}

/// Reads something in which values and types that came with a later version are refused with the words of the programs that did not
/// know them, because receipts have these words.
pub fn with_types_of<R>(version: ExecutionVersion, read: impl FnOnce() -> R) -> R {
    let _around = Around(KNOWN.replace(version));
    read()
}

/// Whether what came with version `since` is known.
pub(crate) fn knows(since: ExecutionVersion) -> bool {
    KNOWN.get() >= since
}

/// How many elements an array may have that is read, and a multirange ranges.
pub(crate) fn array_elements_known() -> usize {
    if knows(ExecutionVersion::V16) { limits::ARRAY_ELEMENTS_MAX } else { limits::ARRAY_ELEMENTS_BEFORE }
}

/// Refuses a tag that came with version `since` where that is not known.
pub(crate) fn check_known(tag: u8, since: ExecutionVersion) -> io::Result<()> {
    if !knows(since) {
        let message = format!("Unexpected variant tag: {tag}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(())
}
