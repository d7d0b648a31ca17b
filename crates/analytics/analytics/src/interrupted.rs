//! Whether somebody still waits for the answer.

use datafusion_common::DataFusionError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set once nobody waits any more.
#[derive(Clone)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub(crate) fn of(interrupt: &Arc<AtomicBool>) -> Interrupted {
        Interrupted(interrupt.clone())
    }

    pub(crate) fn check(&self) -> Result<(), DataFusionError> {
        match self.0.load(Relaxed) {
            true => Err(DataFusionError::Execution("nobody waits any more".into())),
            false => Ok(()),
        }
    }
}
