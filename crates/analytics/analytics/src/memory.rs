//! What DataFusion's operators take of the memory that all queries of a node have together.

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryPool, MemoryReservation};
use std::fmt::{self, Display};
use std::sync::{Arc, Mutex, PoisonError};
use types::MemoryShare;

/// The share of one query.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    share: MemoryShare,
    bytes: usize,
}

impl QueryMemory {
    /// Of a node; `None`: there is no limit.
    pub(crate) fn of(pool: Option<&Arc<types::MemoryPool>>) -> QueryMemory {
        let share = pool.map_or_else(MemoryShare::default, MemoryShare::of);
        QueryMemory { held: Mutex::new(Held { share, bytes: 0 }) }
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) -> Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, wanted) = (held.bytes, change(held.bytes));
        if wanted > before {
            let grown = held.share.grow_to(wanted as u64);
            grown.map_err(|error| DataFusionError::ResourcesExhausted(error.message))?;
        } else {
            held.share.shrink_to(wanted as u64);
        }
        held.bytes = wanted;
        Ok(())
    }
}

impl Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory of the node's queries")
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "queries"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        // Whoever asks so does not hear a refusal; what it asks for is small.
        let _ = self.change(|bytes| bytes.saturating_add(additional));
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        let _ = self.change(|bytes| bytes.saturating_sub(shrink));
    }

    fn try_grow(&self, _: &MemoryReservation, additional: usize) -> Result<()> {
        self.change(|bytes| bytes.saturating_add(additional))
    }

    fn reserved(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}
