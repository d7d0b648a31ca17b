use nix::errno::Errno;

/// Why memory cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// No numbers, or too many.
    #[error("expected memory for 1 to {} numbers (NUMBERS_MAX), found {found}", crate::NUMBERS_MAX)]
    Size {
        /// How many were asked for.
        found: usize,
    },
    /// The kernel has given this process as many mappings as it gives anyone.
    #[error(
        "the kernel refuses another mapping: this process has {mapped}, and vm.max_map_count allows {limit}; \
         rewire fewer or smaller columns, or raise the limit with `sysctl vm.max_map_count`"
    )]
    Mappings {
        /// Mappings of the process when it was refused.
        mapped: usize,
        /// `vm.max_map_count`.
        limit: usize,
    },
    /// The system says no to something else.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system says.
        error: Errno,
    },
    /// A forked process took too long. It has been ended.
    #[error(
        "expected an answer of the forked process within {milliseconds} ms, found none; it has been ended"
    )]
    Late {
        /// What it was given.
        milliseconds: u128,
    },
    /// A forked process is gone, and has not answered.
    #[error("expected an answer of the forked process, found that it has ended: {how}")]
    Ended {
        /// How it ended.
        how: String,
    },
}

impl MemoryError {
    pub(crate) fn system(action: &'static str) -> impl FnOnce(Errno) -> MemoryError {
        move |error| MemoryError::System { action, error }
    }
}
