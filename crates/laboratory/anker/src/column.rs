//! A column: its values, their versions, and the snapshots that are asked of it.

use crate::storage::{self, ColumnStorage, FrozenColumn};
use crate::system::Storage;
use crate::versions::Versions;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use virtual_memory::MemoryError;

/// A column in place.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) storage: Box<dyn ColumnStorage>,
    pub(crate) versions: Versions,
    /// Shared by those who write, exclusive for who makes a snapshot (2.3.2, "Snapshot Consistency").
    lock: RwLock<()>,
    /// A snapshot that was asked for and is not made yet. Nobody writes before it is.
    pending: Mutex<Weak<Slot>>,
    is_pending: AtomicBool,
    /// The newest snapshot; as good as a new one as long as nobody writes.
    newest: Mutex<Weak<Slot>>,
    is_changed: AtomicBool,
}

/// A snapshot of a column that is made when somebody first touches the column: a question that reads it or a transaction that
/// writes it.
#[derive(Debug)]
pub(crate) struct Slot {
    rows: usize,
    made: OnceLock<Result<Box<dyn FrozenColumn>, MemoryError>>,
}

impl Slot {
    /// The values; `None` before [`Column::materialise`].
    pub(crate) fn frozen(&self) -> Option<Result<&dyn FrozenColumn, MemoryError>> {
        self.made.get().map(|made| made.as_deref().map_err(Clone::clone))
    }
}

impl Column {
    pub(crate) fn new(storage: Storage, rows_max: usize) -> Result<Column, MemoryError> {
        Ok(Column {
            storage: storage::column(storage, rows_max)?,
            versions: Versions::new(rows_max),
            lock: RwLock::default(),
            pending: Mutex::default(),
            is_pending: AtomicBool::new(false),
            newest: Mutex::default(),
            is_changed: AtomicBool::new(true),
        })
    }

    /// Asks for a snapshot of the state that is there, without making it. Nobody commits meanwhile.
    pub(crate) fn request(&self, rows: usize) -> Arc<Slot> {
        let mut pending = self.pending.lock();
        // Nobody has written since that one was asked for.
        if let Some(slot) = pending.upgrade() {
            debug_assert_eq!(slot.rows, rows, "rows are appended by writing");
            return slot;
        }
        if !self.is_changed.load(Ordering::Acquire)
            && let Some(slot) = self.newest.lock().upgrade()
        {
            return slot;
        }
        let slot = Arc::new(Slot { rows, made: OnceLock::new() });
        *pending = Arc::downgrade(&slot);
        self.is_pending.store(true, Ordering::Release);
        slot
    }

    /// Whether a snapshot has to be made before somebody may write.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::Acquire)
    }

    /// Makes the snapshot that is asked for, if one is and somebody still wants it.
    pub(crate) fn materialise_pending(&self, oldest: impl FnOnce() -> u64) {
        let slot = self.pending.lock().upgrade();
        match slot {
            Some(slot) => self.materialise(&slot, oldest),
            None => self.clear_pending_if_dropped(),
        }
    }

    /// Makes a snapshot, which takes the version chains over.
    pub(crate) fn materialise(&self, slot: &Arc<Slot>, oldest: impl FnOnce() -> u64) {
        if slot.made.get().is_some() {
            return;
        }
        let _exclusive = self.lock.write();
        // Somebody else may have made it while this one waited.
        if slot.made.get().is_some() || slot.made.set(self.storage.snapshot(slot.rows)).is_err() {
            return;
        }
        self.versions.hand_over(oldest());
        self.is_changed.store(false, Ordering::Release);
        *self.newest.lock() =
            if slot.made.get().is_some_and(Result::is_ok) { Arc::downgrade(slot) } else { Weak::new() };
        let mut pending = self.pending.lock();
        if pending.as_ptr() == Arc::as_ptr(slot) {
            *pending = Weak::new();
            self.is_pending.store(false, Ordering::Release);
        }
    }

    /// A snapshot of the state that is there now, for somebody whose time is past: with what was different then.
    pub(crate) fn touch(
        &self,
        rows: usize,
        oldest: impl FnOnce() -> u64,
    ) -> Result<Box<dyn FrozenColumn>, MemoryError> {
        let _exclusive = self.lock.write();
        let frozen = self.storage.snapshot(rows)?;
        self.versions.hand_over(oldest());
        Ok(frozen)
    }

    /// Keeps snapshots from being made while somebody writes.
    pub(crate) fn share(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read()
    }

    /// Says that a value was written.
    pub(crate) fn change(&self) {
        if !self.is_changed.load(Ordering::Relaxed) {
            self.is_changed.store(true, Ordering::Release);
        }
    }

    fn clear_pending_if_dropped(&self) {
        let pending = self.pending.lock();
        if pending.strong_count() == 0 {
            self.is_pending.store(false, Ordering::Release);
        }
    }
}
