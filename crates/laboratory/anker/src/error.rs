use virtual_memory::MemoryError;

/// Why something cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnkerError {
    /// Another transaction has committed what this one read or wrote. It changed nothing and can be run again.
    #[error(
        "expected nobody to change what the transaction read or writes, found that somebody has; run it again"
    )]
    Conflict,
    /// Memory, a mapping or a forked process cannot be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A table has as many rows as it has places.
    #[error("table {table} has all its {rows_max} rows; expected fewer inserts: run for fewer seconds")]
    Full {
        /// Its name.
        table: &'static str,
        /// Its places.
        rows_max: usize,
    },
    /// A table, column or row that does not exist.
    #[error("expected {expected}, found {found}")]
    Unknown {
        /// What would be right.
        expected: String,
        /// What was named.
        found: String,
    },
    /// An option that makes no sense.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Which.
        option: &'static str,
        /// What would be right.
        expected: String,
        /// What came.
        found: String,
    },
    /// A condition that transactions must keep does not hold.
    #[error("{system} has broken a consistency condition of TPC-C: {condition}")]
    Inconsistent {
        /// Which system.
        system: &'static str,
        /// Which condition.
        condition: String,
    },
}

impl AnkerError {
    pub(crate) fn option(
        option: &'static str,
        expected: impl Into<String>,
        found: impl std::fmt::Display,
    ) -> AnkerError {
        AnkerError::Option { option, expected: expected.into(), found: found.to_string() }
    }

    pub(crate) fn unknown(expected: impl Into<String>, found: impl std::fmt::Display) -> AnkerError {
        AnkerError::Unknown { expected: expected.into(), found: found.to_string() }
    }
}
