//! Rows that an operator gives.

use crate::lower::estimate::Estimate;
use crate::lower::fields::Fields;
use datafusion_physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Rows that an operator gives.
pub(crate) struct Rows {
    pub(crate) operator: Arc<dyn ExecutionPlan>,
    pub(crate) fields: Fields,
    pub(crate) estimate: Estimate,
}
