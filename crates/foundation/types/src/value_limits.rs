//! How large values and rows may be. Since execution version 14 they may be longer, since version 16 arrays may have several dimensions and
//! more elements; what an older version executes keeps the limits that it had, and whoever executes it says so around what runs. What a
//! client asks of one node has those of the newest version.

use crate::{ExecutionVersion, limits};
use std::cell::Cell;

/// The limits of some versions of the rules of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueLimits {
    /// Values are as long as they were before version 14.
    are_short: bool,
    /// Arrays are what they were before version 16.
    arrays_are_plain: bool,
}

thread_local! {
    /// Of what is running on this thread.
    static LIMITS: Cell<ValueLimits> = const { Cell::new(ValueLimits { are_short: false, arrays_are_plain: false }) };
}

/// Puts back what held around it, also where something panics.
struct Around(ValueLimits);

impl Drop for Around {
    fn drop(&mut self) {
        LIMITS.set(self.0);
    }
}

impl ValueLimits {
    /// Those of a version.
    pub fn of(version: ExecutionVersion) -> ValueLimits {
        ValueLimits {
            are_short: version < ExecutionVersion::V14,
            arrays_are_plain: version < ExecutionVersion::V16,
        }
    }

    /// Those of what is running.
    #[inline]
    pub fn here() -> ValueLimits {
        LIMITS.get()
    }

    /// Runs something within these limits.
    #[inline]
    pub fn within<R>(self, run: impl FnOnce() -> R) -> R {
        let _around = Around(LIMITS.replace(self));
        run()
    }
}

/// Bytes of a value of type text, and of others as a text: [`limits::TEXT_BYTES_MAX`].
#[inline]
pub fn text_bytes_max() -> usize {
    if ValueLimits::here().are_short { limits::TEXT_BYTES_BEFORE } else { limits::TEXT_BYTES_MAX }
}

/// Bytes of an encoded row: [`limits::ROW_BYTES_MAX`].
#[inline]
pub fn row_bytes_max() -> usize {
    if ValueLimits::here().are_short { limits::ROW_BYTES_BEFORE } else { limits::ROW_BYTES_MAX }
}

/// Whether arrays have one dimension, which begins at 1.
#[inline]
pub fn arrays_are_plain() -> bool {
    ValueLimits::here().arrays_are_plain
}

/// Elements of an array: [`limits::ARRAY_ELEMENTS_MAX`].
#[inline]
pub fn array_elements_max() -> usize {
    if arrays_are_plain() { limits::ARRAY_ELEMENTS_BEFORE } else { limits::ARRAY_ELEMENTS_MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn limits_hold_for_what_runs_within_them() {
        assert_eq!((text_bytes_max(), row_bytes_max()), (1024 * 1024, 2 * 1024 * 1024));
        ValueLimits::of(ExecutionVersion::V13).within(|| {
            assert_eq!((text_bytes_max(), row_bytes_max()), (128 * 1024, 256 * 1024));
            ValueLimits::of(ExecutionVersion::V14).within(|| assert_eq!(text_bytes_max(), 1024 * 1024));
            let newest = ValueLimits::of(ExecutionVersion::NEWEST);
            let failed = catch_unwind(AssertUnwindSafe(|| newest.within(|| panic!("on purpose"))));
            assert!(failed.is_err());
            assert_eq!(ValueLimits::here(), ValueLimits::of(ExecutionVersion::V1));
        });
        assert_eq!(ValueLimits::here(), ValueLimits::of(ExecutionVersion::NEWEST));
    }
}
