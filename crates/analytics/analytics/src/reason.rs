//! Why a query stays on rows.

use datafusion_common::DataFusionError;
use state::StoreError;
use std::fmt::{self, Display};
use types::SqlError;

/// Why a query stays on rows.
#[derive(Debug)]
pub(crate) struct OnRows(String);

impl OnRows {
    pub(crate) fn because(reason: impl Display) -> OnRows {
        OnRows(reason.to_string())
    }
}

impl Display for OnRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<DataFusionError> for OnRows {
    fn from(error: DataFusionError) -> OnRows {
        OnRows::because(error)
    }
}

impl From<OnRows> for DataFusionError {
    fn from(reason: OnRows) -> DataFusionError {
        DataFusionError::Execution(reason.0)
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
