//! The sorted files: all that knows of `lsm-tree`.
//!
//! One run is written per durable point, sorted, flushed and made known at once (`lsm-tree` calls this ingestion). Its own
//! write buffer is never used, so it needs no journal. Files are merged when this crate says so, on the thread that says so.
//!
//! Whoever holds the files as they were at one moment ([`FilesAt`]) reads them so for as long as the process runs. What the next
//! process is to find as it was is copied ([`Files::copy_to`]): files do not change, so that copies are links.

use lsm_tree::compaction::{CompactionStrategy, Leveled, PullDown};
use lsm_tree::{
    AbstractTree, AnyIngestion, AnyTree, Cache, Config, DescriptorTable, Guard, SeqNo, SequenceNumberCounter,
};
use parking_lot::{Mutex, MutexGuard};
use state::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where there are so many runs that overlap they are merged into the middle level.
const RUNS_MAX: usize = 12;
/// The levels that are used beside runs.
const MIDDLE: u8 = 5;
const LAST: u8 = 6;
/// A middle level that is smaller than that stays.
const MIDDLE_BYTES_MIN: u64 = 8 << 20;
/// Files that are open at once, at most.
const OPEN_MAX: usize = 128;

/// Bytes in a file.
pub(crate) type Bytes = lsm_tree::Slice;

/// A key and its value; `None`: the key has gone.
pub(crate) type Item = (Vec<u8>, Option<Vec<u8>>);

/// The files of one store.
pub(crate) struct Files {
    tree: AnyTree,
    /// The sequence number from which on the newest run is seen.
    visible: SequenceNumberCounter,
    /// Sequence numbers that somebody reads at, and how many do.
    held: Mutex<BTreeMap<SeqNo, usize>>,
    /// Number of the store that writes: whoever opens the files again takes them over. Held while a run is written.
    owner: Mutex<u64>,
    /// Held while files are merged.
    merging: Mutex<()>,
    /// Bytes that were written since the files were opened.
    written: AtomicU64,
    /// The last to go.
    folder: Folder,
}

/// The folder of a store, which goes with it where another one has taken its place.
struct Folder {
    path: PathBuf,
    superseded: AtomicBool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if *self.superseded.get_mut() {
            // What stays is removed at the next start.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The files as they were at one moment, for as long as this is held.
pub(crate) struct FilesAt {
    files: Arc<Files>,
    sequence: SeqNo,
}

/// Why a run is not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The disk is full: it may be written later.
    NoRoom(StoreError),
    /// Nothing helps.
    Failed(StoreError),
    /// Another store has taken the files over.
    TakenOver,
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> WriteError {
        WriteError::Failed(error)
    }
}

fn failure(folder: &Path, kind: Option<ErrorKind>, error: &dyn std::fmt::Display) -> WriteError {
    let failure = StoreError::write(folder.display(), error);
    match kind {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => WriteError::NoRoom(failure),
        _ => WriteError::Failed(failure),
    }
}

impl WriteError {
    /// For who does not wait for room.
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            WriteError::NoRoom(failure) | WriteError::Failed(failure) => failure,
            WriteError::TakenOver => StoreError::write("the state", "another store has taken its place"),
        }
    }
}

impl Files {
    /// Opens those of a folder, which is made where there is none. `cache`: bytes of memory for blocks.
    pub(crate) fn open(folder: &Path, cache: u64) -> Result<Arc<Files>, StoreError> {
        let (sequence, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let config = Config::new(folder, sequence.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(cache)))
            .use_descriptor_table(Some(Arc::new(DescriptorTable::new(OPEN_MAX))));
        let tree = config.open().map_err(|error| StoreError::read(folder.display(), error))?;
        // Never 0, at which `lsm-tree` shows what was there first, however often that has changed.
        let newest = tree.get_highest_seqno().unwrap_or(0) + 1;
        sequence.fetch_max(newest);
        visible.fetch_max(newest);
        let folder = Folder { path: folder.to_path_buf(), superseded: AtomicBool::new(false) };
        Ok(Arc::new(Files {
            tree,
            visible,
            held: Mutex::default(),
            owner: Mutex::default(),
            merging: Mutex::default(),
            written: AtomicU64::new(0),
            folder,
        }))
    }

    /// The folder, for messages.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Another store has taken the place of this one: the folder goes with the last who reads it.
    pub(crate) fn supersede(&self) {
        self.folder.superseded.store(true, Ordering::Release);
    }

    /// Whoever has written so far does not any more. Gives the number of the new owner.
    pub(crate) fn take_over(&self) -> u64 {
        let mut owner = self.owner.lock();
        *owner += 1;
        *owner
    }

    /// The files as they are now.
    pub(crate) fn now(self: &Arc<Files>) -> Arc<FilesAt> {
        let mut held = self.held.lock();
        let sequence = self.visible.get();
        *held.entry(sequence).or_default() += 1;
        Arc::new(FilesAt { files: self.clone(), sequence })
    }

    /// Begins a run. Nothing of it is seen before it is finished.
    pub(crate) fn begin(&self) -> Result<Run<'_>, WriteError> {
        let first = self.tree.next_table_id();
        let run = self.tree.ingestion().map_err(|error| self.failed_to_write(error))?;
        Ok(Run { files: self, run, first, items: 0 })
    }

    /// Writes one run, with keys in order. Afterwards it is on the disk, all of it; after an error, or the end of the process,
    /// nothing of it. Gives the files with it.
    pub(crate) fn write(
        self: &Arc<Files>,
        owner: u64,
        items: impl Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<Arc<FilesAt>, WriteError> {
        let mut run = self.begin()?;
        for item in items {
            run.put(item?)?;
        }
        run.finish(owner)?;
        Ok(self.now())
    }

    /// Copies everything as it is now into another folder, without copying bytes. Nobody else writes meanwhile.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(), WriteError> {
        let _writing = self.owner.lock();
        let _merging = self.merging.lock();
        let failed = |error: std::io::Error| failure(folder, Some(error.kind()), &error);
        let unfinished = folder.with_extension("unfinished");
        match std::fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let (tables, version) = (unfinished.join("tables"), self.tree.current_version());
        std::fs::create_dir_all(&tables).map_err(failed)?;
        for table in version.iter_tables() {
            let name = table.id().to_string();
            std::fs::hard_link(self.folder().join("tables").join(&name), tables.join(&name))
                .map_err(failed)?;
        }
        // The list of files is not changed in its place either.
        for name in [format!("v{}", version.id()), "current".into()] {
            match std::fs::hard_link(self.folder().join(&name), unfinished.join(&name)) {
                // There is none before something was written.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                linked => linked.map_err(failed)?,
            }
        }
        let flush = |path: &Path| std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(failed);
        flush(&tables)?;
        flush(&unfinished)?;
        std::fs::rename(&unfinished, folder).map_err(failed)?;
        folder.parent().map_or(Ok(()), flush)
    }

    fn failed_to_write(&self, error: lsm_tree::Error) -> WriteError {
        let kind = match &error {
            lsm_tree::Error::Io(error) => Some(error.kind()),
            _ => None,
        };
        failure(self.folder(), kind, &error)
    }

    /// Removes what an attempt to write has left, so that it takes no room. `first`: number of the first file that it may have
    /// begun.
    fn remove_unfinished(&self, first: u64) {
        let _alone = self.merging.lock();
        let known: BTreeSet<u64> =
            self.tree.current_version().iter_tables().map(|table| table.id()).collect();
        let next = self.tree.next_table_id();
        for number in (first..next).filter(|number| !known.contains(number)) {
            // It goes at the next start at the latest.
            let _ = std::fs::remove_file(self.folder().join("tables").join(number.to_string()));
        }
    }

    /// Merges files while a store gets its first rows, mostly in the order of keys: then files are only moved.
    pub(crate) fn merge_filling(&self) -> Result<(), WriteError> {
        let _alone = self.merging.lock();
        self.compact(Arc::new(Leveled::default()))
    }

    /// Merges files where that is due. Nobody waits for it; what is held stays readable.
    ///
    /// There are three tiers: runs as they were written, a middle level, and the last one. Runs are merged into the middle once
    /// there are many, and the middle into the last one once it is a quarter of that. So a row is written about eight times, where
    /// a level that takes each run at once would be rewritten for each.
    pub(crate) fn merge(&self) -> Result<(), WriteError> {
        loop {
            let _alone = self.merging.lock();
            let Some((from, to)) = self.due() else { return Ok(()) };
            self.compact(Arc::new(PullDown(from, to)))?;
        }
    }

    /// Which level is to be merged into which.
    fn due(&self) -> Option<(u8, u8)> {
        let version = self.tree.current_version();
        let bytes = |level: u8| -> u64 {
            let tables = version.level(usize::from(level)).into_iter().flat_map(|level| level.iter());
            tables.flat_map(|run| run.iter()).map(|table| table.metadata.file_size).sum()
        };
        // What filling has left between.
        if let Some(level) = (1..MIDDLE).rev().find(|level| bytes(*level) > 0) {
            return Some((level, MIDDLE));
        }
        if self.tree.l0_run_count() >= RUNS_MAX {
            return Some((0, MIDDLE));
        }
        (bytes(MIDDLE) > MIDDLE_BYTES_MIN.max(bytes(LAST) / 4)).then_some((MIDDLE, LAST))
    }

    fn compact(&self, strategy: Arc<dyn CompactionStrategy>) -> Result<(), WriteError> {
        let oldest = {
            let held = self.held.lock();
            held.keys().next().copied().unwrap_or_else(|| self.visible.get())
        };
        let first = self.tree.next_table_id();
        let merged = self.tree.compact(strategy, oldest);
        merged.map_err(|error| self.failed_to_write(error))?;
        self.count_from(first);
        Ok(())
    }

    fn count_from(&self, first: u64) {
        let version = self.tree.current_version();
        let new = version.iter_tables().filter(|table| table.id() >= first);
        let bytes: u64 = new.map(|table| table.metadata.file_size).sum();
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Runs that overlap.
    pub(crate) fn overlapping_runs(&self) -> usize {
        self.tree.l0_run_count()
    }

    /// Bytes of the files.
    pub(crate) fn bytes(&self) -> u64 {
        self.tree.disk_space()
    }

    /// Bytes that were written since the files were opened, with those of merging.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// A run that is being written.
pub(crate) struct Run<'f> {
    files: &'f Files,
    run: AnyIngestion<'f>,
    /// Number of the first file that it may begin.
    first: u64,
    items: u64,
}

impl Run<'_> {
    /// The next key, above those before.
    pub(crate) fn put(&mut self, (key, value): Item) -> Result<(), WriteError> {
        self.items += 1;
        let put = match value {
            Some(value) => self.run.write(key, value),
            None => self.run.write_tombstone(key),
        };
        put.map_err(|error| self.files.failed_to_write(error))
    }

    /// Makes all of it durable and known at once.
    pub(crate) fn finish(self, owner: u64) -> Result<(), WriteError> {
        let Run { files, run, first, items } = self;
        let writing: MutexGuard<'_, u64> = files.owner.lock();
        if *writing != owner {
            drop(run);
            files.remove_unfinished(first);
            return Err(WriteError::TakenOver);
        }
        if items == 0 {
            return Ok(());
        }
        let written = run.finish().map_err(|error| files.failed_to_write(error));
        match written {
            Ok(()) => files.count_from(first),
            Err(_) => files.remove_unfinished(first),
        }
        written
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

    /// The same for keys that begin with a byte.
    pub(crate) fn kind(&self, kind: u8) -> impl Iterator<Item = Result<(Bytes, Bytes), StoreError>> + '_ {
        self.range((Bound::Included(vec![kind]), Bound::Excluded(vec![kind + 1])), false)
    }

    /// The folder, for messages.
    pub(crate) fn folder(&self) -> &Path {
        self.files.folder()
    }

    #[cold]
    fn failed(&self, error: lsm_tree::Error) -> StoreError {
        StoreError::read(self.files.folder().display(), error)
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
