//! The sorted files: all that knows of `lsm-tree`.
//!
//! One run is written per durable point, sorted, flushed and made known at once (`lsm-tree` calls this ingestion). Its own
//! write buffer is never used, so it needs no journal. Files are merged when this crate says so, on the thread that says so.

use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, Guard, SeqNo, SequenceNumberCounter};
use parking_lot::Mutex;
use state::StoreError;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs that overlap and were not merged yet; where there are so many, merging goes on until there are fewer.
const RUNS_MAX: usize = 8;

/// Bytes in a file.
pub(crate) type Bytes = lsm_tree::Slice;

/// The files of one store.
pub(crate) struct Files {
    tree: AnyTree,
    /// The sequence number from which on the newest run is seen.
    visible: SequenceNumberCounter,
    /// Sequence numbers that somebody reads at, and how many do.
    held: Mutex<BTreeMap<SeqNo, usize>>,
    /// The last to go.
    folder: Folder,
}

/// A folder that goes with its store: a state is made anew from a checkpoint.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is removed at the next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files as they were at one moment, for as long as this is held.
pub(crate) struct FilesAt {
    files: Arc<Files>,
    sequence: SeqNo,
}

impl Files {
    /// Opens those of a folder, which is made where there is none. `cache`: bytes of memory for blocks.
    pub(crate) fn open(folder: &Path, cache: u64) -> Result<Arc<Files>, StoreError> {
        let (sequence, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let config = Config::new(folder, sequence.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(cache)));
        let tree = config.open().map_err(|error| StoreError::read(folder.display(), error))?;
        // Never 0, at which `lsm-tree` shows what was there first, however often that has changed.
        let next = tree.get_highest_seqno().unwrap_or(0) + 1;
        sequence.fetch_max(next);
        visible.fetch_max(next);
        let held = Mutex::new(BTreeMap::new());
        Ok(Arc::new(Files { tree, visible, held, folder: Folder(folder.to_path_buf()) }))
    }

    /// The folder, for messages.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// The files as they are now.
    pub(crate) fn now(self: &Arc<Files>) -> FilesAt {
        let mut held = self.held.lock();
        let sequence = self.visible.get();
        *held.entry(sequence).or_default() += 1;
        FilesAt { files: self.clone(), sequence }
    }

    /// Writes one run, with keys in order; `None`: the key has gone. Afterwards it is on the disk, all of it; after an error, or
    /// the end of the process, nothing of it.
    pub(crate) fn write(
        &self,
        items: impl Iterator<Item = Result<(Vec<u8>, Option<Vec<u8>>), StoreError>>,
    ) -> Result<(), StoreError> {
        let failed = |error: lsm_tree::Error| StoreError::write(self.folder.0.display(), error);
        let mut run = self.tree.ingestion().map_err(failed)?;
        for item in items {
            match item? {
                (key, Some(value)) => run.write(key, value),
                (key, None) => run.write_tombstone(key),
            }
            .map_err(failed)?;
        }
        run.finish().map_err(failed)
    }

    /// Merges files where that is due. Nobody waits for it; what is held stays readable.
    pub(crate) fn merge(&self) -> Result<(), StoreError> {
        let mut runs = usize::MAX;
        loop {
            let oldest = {
                let held = self.held.lock();
                held.keys().next().copied().unwrap_or_else(|| self.visible.get())
            };
            let strategy = Arc::new(Leveled::default());
            let merged = self.tree.compact(strategy, oldest);
            merged.map_err(|error| StoreError::write(self.folder.0.display(), error))?;
            let left = self.tree.l0_run_count();
            if left < RUNS_MAX || left >= runs {
                return Ok(());
            }
            runs = left;
        }
    }
}

impl FilesAt {
    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.files.tree.get(key, self.sequence).map_err(|error| self.failed(error))
    }

    /// Keys and values of an interval, in order, or backwards.
    pub(crate) fn range(
        &self,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        reverse: bool,
    ) -> impl Iterator<Item = Result<(Bytes, Bytes), StoreError>> + '_ {
        let mut found = self.files.tree.range(range, self.sequence, None);
        std::iter::from_fn(move || if reverse { found.next_back() } else { found.next() })
            .map(|item| item.into_inner().map_err(|error| self.failed(error)))
    }

    /// The folder, for messages.
    pub(crate) fn folder(&self) -> &Path {
        &self.files.folder.0
    }

    #[cold]
    fn failed(&self, error: lsm_tree::Error) -> StoreError {
        StoreError::read(self.files.folder.0.display(), error)
    }
}

impl Drop for FilesAt {
    fn drop(&mut self) {
        let mut held = self.files.held.lock();
        if let Some(count) = held.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.sequence);
            }
        }
    }
}
