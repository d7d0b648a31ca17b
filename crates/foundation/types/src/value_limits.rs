//! How long values and rows may be. Since execution version 14 they may be longer; what an older version executes keeps the limits that it
//! had, and whoever executes it says so around what runs. What a client asks of one node has those of the newest version.

use crate::{ExecutionVersion, limits};
use std::cell::Cell;

/// The limits of some versions of the rules of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueLengths {
    is_before: bool,
}

thread_local! {
    /// Of what is running on this thread.
    static LENGTHS: Cell<ValueLengths> = const { Cell::new(ValueLengths { is_before: false }) };
}

/// Puts back what held around it, also where something panics.
struct Around(ValueLengths);

impl Drop for Around {
    fn drop(&mut self) {
        LENGTHS.set(self.0);
    }
}

impl ValueLengths {
    /// Those of a version.
    pub fn of(version: ExecutionVersion) -> ValueLengths {
        ValueLengths { is_before: version < ExecutionVersion::V14 }
    }

    /// Those of what is running.
    #[inline]
    pub fn here() -> ValueLengths {
        LENGTHS.get()
    }

    /// Runs something within these limits.
    #[inline]
    pub fn within<R>(self, run: impl FnOnce() -> R) -> R {
        let _around = Around(LENGTHS.replace(self));
        run()
    }
}

/// Bytes of a value of type text, and of others as a text: [`limits::TEXT_BYTES_MAX`].
#[inline]
pub fn text_bytes_max() -> usize {
    if ValueLengths::here().is_before { limits::TEXT_BYTES_BEFORE } else { limits::TEXT_BYTES_MAX }
}

/// Bytes of an encoded row: [`limits::ROW_BYTES_MAX`].
#[inline]
pub fn row_bytes_max() -> usize {
    if ValueLengths::here().is_before { limits::ROW_BYTES_BEFORE } else { limits::ROW_BYTES_MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn limits_hold_for_what_runs_within_them() {
        assert_eq!((text_bytes_max(), row_bytes_max()), (1024 * 1024, 2 * 1024 * 1024));
        ValueLengths::of(ExecutionVersion::V13).within(|| {
            assert_eq!((text_bytes_max(), row_bytes_max()), (128 * 1024, 256 * 1024));
            ValueLengths::of(ExecutionVersion::V14).within(|| assert_eq!(text_bytes_max(), 1024 * 1024));
            let newest = ValueLengths::of(ExecutionVersion::NEWEST);
            let failed = catch_unwind(AssertUnwindSafe(|| newest.within(|| panic!("on purpose"))));
            assert!(failed.is_err());
            assert_eq!(ValueLengths::here(), ValueLengths::of(ExecutionVersion::V1));
        });
        assert_eq!(ValueLengths::here(), ValueLengths::of(ExecutionVersion::NEWEST));
    }
}
