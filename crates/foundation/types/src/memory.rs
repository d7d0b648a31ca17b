//! Memory that many share: what one takes of it the others do not have until it is given back.

use crate::{SqlError, SqlState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shares are taken in pieces of so many bytes, so that the counter of all is touched rarely.
const PIECE_BYTES: u64 = 16 * 1024;

/// So much memory, for all who take shares of it.
#[derive(Debug)]
pub struct MemoryPool {
    most: AtomicU64,
    taken: AtomicU64,
}

impl MemoryPool {
    /// With so many bytes.
    pub fn new(most: u64) -> Arc<MemoryPool> {
        Arc::new(MemoryPool { most: AtomicU64::new(most), taken: AtomicU64::new(0) })
    }

    /// The bytes that there are for all.
    pub fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }

    /// From now on there are so many bytes for all. Who has more keeps what it has.
    pub fn set_most(&self, most: u64) {
        self.most.store(most, Relaxed);
    }

    /// The bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.most());
        self.taken.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    #[cold]
    fn exhausted(&self) -> SqlError {
        let message = format!(
            "the queries of this node have no memory left: all of them together get {} megabytes (query_memory_megabytes)",
            self.most() >> 20
        );
        SqlError::new(SqlState::OUT_OF_MEMORY, message).hint(
            "Ask for fewer rows at a time, wait until other queries have ended, or give them more in node.toml.",
        )
    }
}

/// What somebody has taken of a pool, if there is one; it goes back when this is dropped.
#[derive(Debug, Default)]
pub struct MemoryShare {
    pool: Option<Arc<MemoryPool>>,
    bytes: u64,
}

impl MemoryShare {
    /// Nothing yet.
    pub fn of(pool: &Arc<MemoryPool>) -> MemoryShare {
        MemoryShare { pool: Some(Arc::clone(pool)), bytes: 0 }
    }

    /// The bytes for which nobody needs to be asked; all there are where there is no pool.
    pub fn bytes(&self) -> u64 {
        if self.pool.is_some() { self.bytes } else { u64::MAX }
    }

    /// Is at least so large from now on.
    ///
    /// # Errors
    /// `53200` where the others have left too little; it stays as it is then.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), SqlError> {
        let Some(pool) = &self.pool else { return Ok(()) };
        let wanted = bytes.div_ceil(PIECE_BYTES).saturating_mul(PIECE_BYTES);
        let more = wanted.saturating_sub(self.bytes);
        if more > 0 {
            if !pool.take(more) {
                return Err(pool.exhausted());
            }
            self.bytes = wanted;
        }
        Ok(())
    }

    /// Is no larger than so much, and a piece, from now on.
    pub fn shrink_to(&mut self, bytes: u64) {
        let Some(pool) = &self.pool else { return };
        let wanted = bytes.div_ceil(PIECE_BYTES).saturating_mul(PIECE_BYTES).min(self.bytes);
        pool.taken.fetch_sub(self.bytes - wanted, Relaxed);
        self.bytes = wanted;
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_goes_back() {
        let pool = MemoryPool::new(4 * PIECE_BYTES);
        let mut one = MemoryShare::of(&pool);
        assert_eq!(one.grow_to(1), Ok(()));
        assert_eq!(one.bytes(), PIECE_BYTES);
        assert_eq!(one.grow_to(PIECE_BYTES), Ok(()));
        assert_eq!(pool.taken(), PIECE_BYTES);
        let mut other = MemoryShare::of(&pool);
        let error = other.grow_to(3 * PIECE_BYTES + 1).expect_err("one has the rest");
        assert_eq!((error.state, error.hint.is_some()), (SqlState::OUT_OF_MEMORY, true));
        assert_eq!(other.grow_to(3 * PIECE_BYTES), Ok(()));
        assert!(one.grow_to(PIECE_BYTES + 1).is_err());
        other.shrink_to(PIECE_BYTES + 1);
        assert_eq!(pool.taken(), 3 * PIECE_BYTES);
        drop(other);
        assert_eq!(one.grow_to(4 * PIECE_BYTES), Ok(()));
        drop(one);
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn where_there_is_no_pool_there_is_no_limit() {
        let mut share = MemoryShare::default();
        assert_eq!(share.grow_to(u64::MAX), Ok(()));
        share.shrink_to(0);
        assert_eq!(share.bytes(), u64::MAX);
    }
}
