/// Rows of a workload at most, where it has no other bound.
pub(crate) const ROWS_MAX: u64 = 1_000_000_000;

/// Why a workload cannot have these parameters.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum ParameterError {
    /// No workload has this id.
    #[error("expected the id of a workload ({known}), found `{found}`", known = crate::WORKLOADS.join(", "))]
    Workload {
        /// What came.
        found: String,
    },
    /// Customers, keys, wallets, warehouses.
    #[error("{workload} needs {least} to {most} rows, found {found}; change the number of rows")]
    Rows {
        /// Id of the workload.
        workload: &'static str,
        /// The fewest that it can do with.
        least: u64,
        /// The most.
        most: u64,
        /// What came.
        found: u64,
    },
    /// Zipf's exponent.
    #[error("expected a Zipf exponent from 0 (uniform) to 10, found {0}")]
    Skew(f64),
    /// Accounts that a transaction of `hot-accounts` reads and writes.
    #[error("hot-accounts reads and writes 0, 4 or 8 accounts, found {0}")]
    Operations(u32),
    /// A probability or share.
    #[error("a parameter of {workload} is a share or probability: expected 0 to 1, found {found}")]
    Share {
        /// Id of the workload.
        workload: &'static str,
        /// What came.
        found: f64,
    },
}
