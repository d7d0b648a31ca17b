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
        let left = left.saturating_sub(held.bytes.saturating_sub(held.spillable));
        left / OF_SPILLING.1 * OF_SPILLING.0 / held.spilling.max(1)
    }

    fn refuse(&self, reservation: &MemoryReservation) -> DataFusionError {
        let name = reservation.consumer().name();
        DataFusionError::ResourcesExhausted(format!("{name}: its part of the memory of the query is used up"))
    }
}

impl Held {
    /// So much more is held, whether there is room for it or not.
    fn add(&mut self, additional: usize, can_spill: bool) {
        self.bytes = self.bytes.saturating_add(additional);
        self.spillable += if can_spill { additional } else { 0 };
    }

    fn try_add(&mut self, additional: usize, can_spill: bool) -> Result<()> {
        let grown = self.share.grow_to(self.bytes.saturating_add(additional) as u64);
        grown.map_err(|error| DataFusionError::ResourcesExhausted(error.message))?;
        self.add(additional, can_spill);
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
        // Whoever asks so does not hear a refusal; what it asks for is small. Others are refused until there is room again.
        let mut held = self.held();
        held.add(additional, reservation.consumer().can_spill());
        let bytes = held.bytes as u64;
        let _ = held.share.grow_to(bytes);
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
        held.try_add(additional, can_spill)
    }

    fn reserved(&self) -> usize {
        self.held().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL_BYTES: usize = 4 << 20;

    fn of_pool() -> (Arc<types::MemoryPool>, Arc<dyn MemoryPool>) {
        let pool = types::MemoryPool::new(POOL_BYTES as u64);
        let memory: Arc<dyn MemoryPool> = Arc::new(QueryMemory::of(Some(&pool)));
        (pool, memory)
    }

    #[test]
    fn operators_that_use_files_share_what_the_others_leave() {
        let (pool, memory) = of_pool();
        let fixed = MemoryConsumer::new("fixed").register(&memory);
        let [one, other] =
            ["one", "other"].map(|name| MemoryConsumer::new(name).with_can_spill(true).register(&memory));
        fixed.try_grow(POOL_BYTES / 2).expect("there is room");
        let part = POOL_BYTES / 2 * 3 / 4 / 2;
        one.try_grow(part).expect("its part");
        assert!(one.try_grow(1).is_err(), "the rest is the other one's");
        other.try_grow(part).expect("its part");
        assert!(fixed.try_grow(POOL_BYTES / 2).is_err());
        drop(other);
        one.try_grow(part).expect("nobody else uses files now");
        drop((one, fixed));
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn what_is_taken_without_asking_counts_and_goes_back() {
        let (pool, memory) = of_pool();
        let spilling = MemoryConsumer::new("spilling").with_can_spill(true).register(&memory);
        spilling.try_grow(POOL_BYTES / 2).expect("there is room");
        let fixed = MemoryConsumer::new("fixed").register(&memory);
        fixed.grow(POOL_BYTES);
        assert!(spilling.try_grow(1).is_err(), "there is more than all");
        assert_eq!(memory.reserved(), POOL_BYTES / 2 * 3);
        fixed.shrink(POOL_BYTES);
        assert_eq!(memory.reserved(), POOL_BYTES / 2);
        spilling.try_grow(POOL_BYTES / 8).expect("there is room again");
        drop((spilling, fixed));
        assert_eq!((memory.reserved(), pool.taken()), (0, 0));
    }
}
