//! Why a query stays on rows.

use datafusion_common::DataFusionError;
use state::StoreError;
use std::fmt::{self, Display};
use types::SqlError;

/// Why a query stays on rows.
#[derive(Debug)]
pub(crate) struct OnRows {
    reason: String,
    /// There was not enough memory for operators that keep rows.
    pub(crate) lacks_memory: bool,
}

impl OnRows {
    pub(crate) fn because(reason: impl Display) -> OnRows {
        OnRows { reason: reason.to_string(), lacks_memory: false }
    }
}

impl Display for OnRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<DataFusionError> for OnRows {
    fn from(error: DataFusionError) -> OnRows {
        let lacks_memory = matches!(error.find_root(), DataFusionError::ResourcesExhausted(_));
        OnRows { lacks_memory, ..OnRows::because(error) }
    }
}

impl From<OnRows> for DataFusionError {
    fn from(reason: OnRows) -> DataFusionError {
        DataFusionError::Execution(reason.reason)
    }
}

impl From<SqlError> for OnRows {
    fn from(error: SqlError) -> OnRows {
        OnRows::because(error.message)
    }
}

impl From<StoreError> for OnRows {
    fn from(error: StoreError) -> OnRows {
        OnRows::because(error)
    }
}
