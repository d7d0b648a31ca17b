//! Reading what programs have read that did not know the types of execution version 7: before it their tags are unknown, as they were to
//! them.

use std::cell::Cell;
use std::io;

thread_local! {
    static IS_UNKNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Puts back what was, also where reading panics.
struct Around(bool);

impl Drop for Around {
    fn drop(&mut self) {
        IS_UNKNOWN.set(self.0);
    }
}

/// Reads something in which values and types of JSON and of enums are refused with the words of the programs that did not know
/// them, because receipts have these words.
pub fn without_types_of_version_7<R>(read: impl FnOnce() -> R) -> R {
    let _around = Around(IS_UNKNOWN.replace(true));
    read()
}

/// Refuses a tag where it is unknown.
pub(crate) fn check_known(tag: u8) -> io::Result<()> {
    if IS_UNKNOWN.get() {
        let message = format!("Unexpected variant tag: {tag}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(())
}
