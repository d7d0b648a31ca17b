//! What DataFusion's operators take of the memory that all queries of a node have together.

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use std::fmt::{self, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use types::MemoryShare;

/// Operators that can put what they hold into files get three quarters of what the others leave, each as much as the next: the
/// rest is for what operators take without asking whether there is any.
const OF_SPILLING: (usize, usize) = (3, 4);

/// The share of one query.
#[derive(Debug)]
pub(crate) struct QueryMemory {
    pool: Option<Arc<types::MemoryPool>>,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    share: MemoryShare,
    /// Bytes of all operators.
    bytes: usize,
    /// Of those that can put them into files.
    spillable: usize,
    /// How many these are.
    spilling: usize,
}

impl QueryMemory {
    /// Of a node; `None`: there is no limit.
    pub(crate) fn of(pool: Option<&Arc<types::MemoryPool>>) -> QueryMemory {
        let share = pool.map_or_else(MemoryShare::default, MemoryShare::of);
        let held = Held { share, bytes: 0, spillable: 0, spilling: 0 };
        QueryMemory { pool: pool.cloned(), held: Mutex::new(held) }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one operator that can put it into files may hold at most.
    fn of_one_spilling(&self, held: &Held) -> usize {
        let Some(pool) = &self.pool else { return usize::MAX };
        let others = pool.taken().saturating_sub(held.share.bytes());
        let left = pool.most().saturating_sub(others) as usize;
        let left = left.saturating_sub(held.bytes - held.spillable);
        left / OF_SPILLING.1 * OF_SPILLING.0 / held.spilling.max(1)
    }

    fn refuse(&self, reservation: &MemoryReservation) -> DataFusionError {
        let name = reservation.consumer().name();
        DataFusionError::ResourcesExhausted(format!("{name}: its part of the memory of the query is used up"))
    }
}

impl Held {
    fn grow(&mut self, additional: usize, can_spill: bool) -> Result<()> {
        let wanted = self.bytes.saturating_add(additional);
        let grown = self.share.grow_to(wanted as u64);
        grown.map_err(|error| DataFusionError::ResourcesExhausted(error.message))?;
        self.bytes = wanted;
        self.spillable += if can_spill { additional } else { 0 };
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

    fn register(&self, consumer: &MemoryConsumer) {
        self.held().spilling += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.held().spilling -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        // Whoever asks so does not hear a refusal; what it asks for is small.
        let _ = self.held().grow(additional, reservation.consumer().can_spill());
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut held = self.held();
        if reservation.consumer().can_spill() {
            held.spillable = held.spillable.saturating_sub(shrink);
        }
        held.bytes = held.bytes.saturating_sub(shrink);
        let bytes = held.bytes as u64;
        held.share.shrink_to(bytes);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut held = self.held();
        let can_spill = reservation.consumer().can_spill();
        if can_spill && reservation.size().saturating_add(additional) > self.of_one_spilling(&held) {
            return Err(self.refuse(reservation));
        }
        held.grow(additional, can_spill)
    }

    fn reserved(&self) -> usize {
        self.held().bytes
    }
}
