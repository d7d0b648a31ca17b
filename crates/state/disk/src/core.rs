//! What the store, its snapshots and the threads that write have in common.

use crate::files::{Files, FilesAt, WriteError};
use crate::gate::Gate;
use crate::layout::TreeRecord;
use parking_lot::{Condvar, Mutex};
use state::{FirstFailure, Groups, RangeRows, ResumePoint, StoreError, StoreStatistics, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a full disk is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// A checkpoint that was announced and has no tree yet.
pub(crate) struct Announced {
    pub(crate) version: Version,
    pub(crate) point: ResumePoint,
    /// Its rows, once they are durable.
    pub(crate) rows: Option<WrittenRows>,
}

/// Rows that are in files.
#[derive(Clone)]
pub(crate) struct WrittenRows {
    pub(crate) files: Arc<FilesAt>,
    /// The epoch of the row cache that begins with them.
    pub(crate) epoch: u64,
}

/// What is kept in memory of the newest tree.
pub(crate) struct NewestTree {
    /// Which one.
    pub(crate) of: TreeRecord,
    pub(crate) groups: Groups,
    pub(crate) rows: RangeRows,
}

/// What is in the files beside rows.
#[derive(Default)]
pub(crate) struct Written {
    /// The newest durable point: its version, and the height where it is the end of a block.
    pub(crate) durable: Option<(Version, Option<u64>)>,
    pub(crate) durable_since: Option<Instant>,
    pub(crate) announced: BTreeMap<u64, Announced>,
    /// Lists of what has changed, by version, with the number of their parts.
    pub(crate) lists: BTreeMap<u64, u32>,
    /// Heights whose ids are there, with the last height at which one of them is live.
    pub(crate) admitted: BTreeMap<u64, u64>,
    /// Which state the groups are of.
    pub(crate) tree: Option<TreeRecord>,
    /// Points that were handed over and are not written.
    pub(crate) waiting: usize,
    /// There is no room on the disk.
    pub(crate) is_full: bool,
}

/// The files of a store, what of them is known, and who waits for them.
pub(crate) struct Core {
    pub(crate) files: Arc<Files>,
    /// As whom it writes.
    pub(crate) owner: u64,
    pub(crate) gate: Arc<Gate>,
    pub(crate) written: Mutex<Written>,
    /// Something was written, or cannot be.
    pub(crate) changed: Condvar,
    pub(crate) failure: FirstFailure,
    pub(crate) is_closing: AtomicBool,
    /// Once somebody has read it.
    pub(crate) tree: Mutex<Option<NewestTree>>,
    /// Bytes of memory for rows of ranges of that tree.
    range_rows_bytes: u64,
    pub(crate) changed_bytes: AtomicU64,
    pub(crate) points_written: AtomicU64,
}

impl Core {
    /// Takes the files over.
    pub(crate) fn new(files: Arc<Files>, gate: Arc<Gate>, written: Written, range_rows_bytes: u64) -> Core {
        Core {
            owner: files.take_over(),
            files,
            gate,
            written: Mutex::new(written),
            changed: Condvar::new(),
            failure: FirstFailure::default(),
            is_closing: AtomicBool::new(false),
            tree: Mutex::default(),
            range_rows_bytes,
            changed_bytes: AtomicU64::new(0),
            points_written: AtomicU64::new(0),
        }
    }

    /// # Errors
    /// What could not be written.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Something could not be written: whoever waits for it hears of it, and whoever comes later.
    pub(crate) fn fail(&self, failure: StoreError) {
        self.failure.note(failure);
        let _written = self.written.lock();
        self.changed.notify_all();
    }

    /// Nothing more is written.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.gate.wake();
        let _written = self.written.lock();
        self.changed.notify_all();
    }

    /// Nobody waits for anything any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire) || self.failure.get().is_some()
    }

    /// Waits until so few points wait to be written. Gives how long that took.
    pub(crate) fn wait_for_points(&self, most: usize) -> Result<Duration, StoreError> {
        let began = Instant::now();
        let mut written = self.written.lock();
        while written.waiting > most && !self.is_closing() {
            self.changed.wait(&mut written);
        }
        drop(written);
        self.check()?;
        Ok(began.elapsed())
    }

    /// Writes, and tries again for as long as the disk is full. `None`: nobody wants it any more.
    pub(crate) fn when_there_is_room<T>(
        &self,
        mut write: impl FnMut() -> Result<T, WriteError>,
    ) -> Result<Option<T>, WriteError> {
        loop {
            let tried = write();
            let mut written = self.written.lock();
            written.is_full = matches!(tried, Err(WriteError::NoRoom(_)));
            if !written.is_full {
                return tried.map(Some);
            }
            self.changed.notify_all();
            if !self.is_closing() {
                self.changed.wait_for(&mut written, TRY_AGAIN);
            }
            if self.is_closing() {
                return Ok(None);
            }
        }
    }

    /// Room for rows of ranges, without any.
    pub(crate) fn no_range_rows(&self) -> RangeRows {
        RangeRows::new(self.range_rows_bytes)
    }

    /// What it knows of [`StoreStatistics`].
    pub(crate) fn statistics(&self) -> StoreStatistics {
        let written = self.written.lock();
        StoreStatistics {
            file_bytes: self.files.bytes(),
            changed_bytes: self.changed_bytes.load(Ordering::Relaxed),
            written_bytes: self.files.bytes_written(),
            durable_points: self.points_written.load(Ordering::Relaxed),
            durable_height: written.durable.and_then(|(_, height)| height).unwrap_or(0),
            durable_age: written.durable_since.map(|since| since.elapsed()),
            waits_for_room: written.is_full,
            ..StoreStatistics::default()
        }
    }
}

impl Written {
    /// Up to which version lists of changes are of no use for the tree any more. `None`: no list is.
    pub(crate) fn lists_from(&self) -> Option<Version> {
        let announced = self.announced.values().map(|announced| announced.version);
        announced.chain(self.tree.map(|tree| tree.version())).min()
    }
}
