//! The sorted files: all that knows of `lsm-tree`.
//!
//! One run is written per durable point, sorted, flushed and made known at once (`lsm-tree` calls this ingestion). Its own
//! write buffer is never used, so it needs no journal. Files are merged when this crate says so, on the thread that says so.
//!
//! Whoever holds the files as they were at one moment ([`FilesAt`]) reads them so for as long as the process runs. What the next
//! process is to find as it was is copied ([`Files::copy_to`]): files do not change, so that copies are links.

mod intervals;

pub(crate) use intervals::{Interval, VisitItem};

use crate::checksums::check_list;
use crate::layout::damage_mark;
use lsm_tree::compaction::{CompactionStrategy, Leveled, PullDown};
use lsm_tree::{
    AbstractTree, AnyIngestion, AnyTree, Cache, Checksum, Config, DescriptorTable, Guard, SeqNo,
    SequenceNumberCounter, Table,
};
use parking_lot::{Mutex, MutexGuard};
use state::StoreError;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    runs: Mutex<Runs>,
    counted: Mutex<Counted>,
    /// The last to go.
    folder: Folder,
}

/// Runs that are being written, by one thread or several.
#[derive(Default)]
struct Runs {
    open: usize,
    /// Number of the first file that an attempt which failed may have left.
    left_from: Option<u64>,
}

/// Files that were written whole.
struct Counted {
    /// Numbers of all that were known at some time: somebody may still read one that was merged.
    files: BTreeSet<u64>,
    /// Bytes of those that have come since the folder was opened.
    bytes: u64,
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
            let _ = remove(&self.path);
        }
    }
}

/// The files as they were at one moment, for as long as this is held.
pub(crate) struct FilesAt {
    files: Arc<Files>,
    sequence: SeqNo,
    /// Files whose keys ascend from one to the next, run by run.
    runs: Vec<Box<[Table]>>,
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

fn failed_to_read(folder: &Path, error: lsm_tree::Error) -> StoreError {
    match error {
        error @ (lsm_tree::Error::Io(_) | lsm_tree::Error::InvalidVersion(_)) => {
            StoreError::read(folder.display(), error)
        }
        error => StoreError::damaged(folder.display(), error),
    }
}

fn failure(folder: &Path, kind: Option<ErrorKind>, error: &dyn Display) -> WriteError {
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
        let is_new = !folder.exists();
        if !is_new {
            // An earlier process may have ended between a new list and its flush: the older one is removed here.
            flush(folder).map_err(|error| StoreError::write(folder.display(), error))?;
        }
        check_list(folder)?;
        let (sequence, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let config = Config::new(folder, sequence.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(cache)))
            .use_descriptor_table(Some(Arc::new(DescriptorTable::new(OPEN_MAX))));
        let tree = config.open().map_err(|error| failed_to_read(folder, error))?;
        if is_new {
            // `lsm-tree` flushes what is in there.
            flush(beside(folder)).map_err(|error| StoreError::write(folder.display(), error))?;
        }
        // Never 0, at which `lsm-tree` shows what was there first, however often that has changed.
        let newest = tree.get_highest_seqno().unwrap_or(0) + 1;
        sequence.fetch_max(newest);
        visible.fetch_max(newest);
        let folder = Folder { path: folder.to_path_buf(), superseded: AtomicBool::new(false) };
        let known = tree.current_version().iter_tables().map(|table| table.id()).collect();
        Ok(Arc::new(Files {
            tree,
            visible,
            held: Mutex::default(),
            owner: Mutex::default(),
            merging: Mutex::default(),
            runs: Mutex::default(),
            counted: Mutex::new(Counted { files: known, bytes: 0 }),
            folder,
        }))
    }

    /// The folder, for messages.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Where the folders of other stores and of checkpoints stand.
    pub(crate) fn beside(&self) -> &Path {
        beside(self.folder())
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
        // Of one moment: a newer list may have lost what is seen at an older sequence number.
        let (sequence, runs) = loop {
            let (sequence, version) = (self.visible.get(), self.tree.current_version());
            if self.visible.get() == sequence {
                let runs = version.iter_levels().flat_map(|level| level.iter());
                break (sequence, runs.map(|run| run.iter().cloned().collect()).collect());
            }
        };
        *held.entry(sequence).or_default() += 1;
        Arc::new(FilesAt { files: self.clone(), sequence, runs })
    }

    /// Begins a run. Nothing of it is seen before it is finished.
    pub(crate) fn begin(&self) -> Result<Run<'_>, WriteError> {
        let attempt = Attempt::begin(self);
        let run = self.tree.ingestion().map_err(|error| self.failed_to_write(error))?;
        Ok(Run { run, items: 0, attempt })
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
        if kind.is_none() {
            // It reads what it merges.
            mark_damaged(self.folder());
            return WriteError::Failed(StoreError::damaged(self.folder().display(), error));
        }
        let failure = failure(self.folder(), kind, &error);
        if matches!(failure, WriteError::Failed(_)) {
            mark_damaged(self.folder());
        }
        failure
    }

    /// Its files of keys and values, with the checksum of each.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (PathBuf, Checksum)> + '_ {
        let tables: Vec<_> = self.tree.current_version().iter_tables().cloned().collect();
        tables.into_iter().map(|table| {
            let path = self.folder().join("tables").join(table.id().to_string());
            (path, table.checksum())
        })
    }

    /// Removes what attempts to write have left, so that it takes no room. `first`: number of the first file of that kind. Nobody
    /// writes meanwhile: what is being written is not known yet either.
    fn remove_unfinished(&self, first: u64) {
        let _alone = self.merging.lock();
        let (known, next) = (self.counted.lock(), self.tree.next_table_id());
        for number in (first..next).filter(|number| !known.files.contains(number)) {
            // It goes at the next start at the latest.
            let _ = std::fs::remove_file(self.folder().join("tables").join(number.to_string()));
        }
    }

    /// Merges files while a store gets its first rows, mostly in the order of keys: then files are only moved.
    pub(crate) fn merge_filling(&self) -> Result<(), WriteError> {
        self.compact(|| Some(Arc::new(Leveled::default()))).map(drop)
    }

    /// Merges files where that is due. Nobody waits for it; what is held stays readable.
    ///
    /// There are three tiers: runs as they were written, a middle level, and the last one. Runs are merged into the middle once
    /// there are many, and the middle into the last one once it is a quarter of that. So a row is written about eight times, where
    /// a level that takes each run at once would be rewritten for each.
    pub(crate) fn merge(&self) -> Result<(), WriteError> {
        let due =
            || self.due().map(|(from, to)| -> Arc<dyn CompactionStrategy> { Arc::new(PullDown(from, to)) });
        while self.compact(due)? {}
        Ok(())
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

    /// Merges files once, if `strategy` says how. False: it does not.
    fn compact(
        &self,
        strategy: impl FnOnce() -> Option<Arc<dyn CompactionStrategy>>,
    ) -> Result<bool, WriteError> {
        let attempt = Attempt::begin(self);
        let alone = self.merging.lock();
        let Some(strategy) = strategy() else {
            attempt.is_done();
            return Ok(false);
        };
        let oldest = {
            let held = self.held.lock();
            held.keys().next().copied().unwrap_or_else(|| self.visible.get())
        };
        let merged = self.tree.compact(strategy, oldest);
        drop(alone);
        merged.map_err(|error| self.failed_to_write(error))?;
        attempt.is_done();
        Ok(true)
    }

    /// Counts files that are new.
    fn count(&self) {
        let mut counted = self.counted.lock();
        for table in self.tree.current_version().iter_tables() {
            if counted.files.insert(table.id()) {
                counted.bytes += table.metadata.file_size;
            }
        }
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
        self.counted.lock().bytes
    }
}

/// Removes the folder of a store or of a checkpoint. Whoever opens it never finds a part of it, which would look damaged.
pub(crate) fn remove(folder: &Path) -> std::io::Result<()> {
    let removed = folder.with_extension("removed.unfinished");
    std::fs::rename(folder, &removed)?;
    flush(beside(folder))?;
    std::fs::remove_dir_all(removed)
}

/// Makes the names in a folder survive a loss of power.
pub(crate) fn flush(folder: &Path) -> std::io::Result<()> {
    // The folder above a relative path of one name.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::fs::File::open(folder)?.sync_all()
}

/// Where the folders of other stores and of checkpoints stand.
fn beside(folder: &Path) -> &Path {
    folder.parent().unwrap_or(folder)
}

/// What is in a folder is read whole before somebody takes it up: a file may be damaged that nobody else meets.
pub(crate) fn mark_damaged(folder: &Path) {
    // Without the mark whoever meets the damage says so again.
    let _ = std::fs::write(damage_mark(beside(folder)), []);
}

/// Somebody writes files, which are known once that is done. Where it is not, what was begun is removed as soon as nobody else
/// writes: numbers of files do not say whose they are.
struct Attempt<'f> {
    files: &'f Files,
    /// Number of the first file that it may begin.
    first: u64,
    is_done: Cell<bool>,
}

impl<'f> Attempt<'f> {
    fn begin(files: &'f Files) -> Attempt<'f> {
        let mut runs = files.runs.lock();
        runs.open += 1;
        Attempt { files, first: files.tree.next_table_id(), is_done: Cell::new(false) }
    }

    /// What was begun is known, or nothing was.
    fn is_done(&self) {
        self.is_done.set(true);
        self.files.count();
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut runs = self.files.runs.lock();
        runs.open -= 1;
        if !self.is_done.get() {
            runs.left_from = Some(runs.left_from.map_or(self.first, |first| first.min(self.first)));
        }
        if runs.open == 0
            && let Some(first) = runs.left_from.take()
        {
            self.files.remove_unfinished(first);
        }
    }
}

/// A run that is being written.
pub(crate) struct Run<'f> {
    run: AnyIngestion<'f>,
    items: u64,
    /// The last to go: what the run has begun is closed then.
    attempt: Attempt<'f>,
}

impl Run<'_> {
    /// The next key, above those before.
    pub(crate) fn put(&mut self, (key, value): Item) -> Result<(), WriteError> {
        self.items += 1;
        let put = match value {
            Some(value) => self.run.write(key, value),
            None => self.run.write_tombstone(key),
        };
        put.map_err(|error| self.attempt.files.failed_to_write(error))
    }

    /// Makes all of it durable and known at once.
    pub(crate) fn finish(self, owner: u64) -> Result<(), WriteError> {
        let Run { run, items, attempt } = self;
        let files = attempt.files;
        let writing: MutexGuard<'_, u64> = files.owner.lock();
        if *writing != owner {
            drop((writing, run));
            return Err(WriteError::TakenOver);
        }
        // The file of a run without items was begun too.
        if items > 0 {
            run.finish().map_err(|error| files.failed_to_write(error))?;
            attempt.is_done();
        }
        Ok(())
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
        range: Interval,
        reverse: bool,
    ) -> impl Iterator<Item = Result<(Bytes, Bytes), StoreError>> + '_ {
        let mut found = self.files.tree.range(range, self.sequence, None);
        std::iter::from_fn(move || if reverse { found.next_back() } else { found.next() })
            .map(|item| item.into_inner().map_err(|error| self.failed(error)))
    }

    /// The same for many intervals in one go, which ascend and do not meet: `visit` gets the number of each interval too.
    pub(crate) fn intervals(
        &self,
        intervals: &[Interval],
        visit: &mut VisitItem<'_>,
    ) -> Result<(), StoreError> {
        intervals::visit_intervals(&self.runs, self.sequence, intervals, &|error| self.failed(error), visit)
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
        mark_damaged(self.files.folder());
        failed_to_read(self.files.folder(), error)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn items(files: &Arc<Files>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = files.now();
        let items = all.range((Bound::Unbounded, Bound::Unbounded), false);
        items
            .map(|item| item.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect::<Result<_, _>>()
            .expect("nothing is damaged")
    }

    fn item(key: u8) -> (Vec<u8>, Vec<u8>) {
        (vec![key], vec![key; 100])
    }

    fn put(run: &mut Run<'_>, key: u8) {
        let (key, value) = item(key);
        run.put((key, Some(value))).expect("there is room");
    }

    fn tables(files: &Files) -> usize {
        std::fs::read_dir(files.folder().join("tables")).expect("a folder").count()
    }

    #[test]
    fn a_run_that_is_given_up_takes_nothing_of_those_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(&folder.path().join("store-1"), 1 << 20).expect("an empty folder");
        let (former, owner) = (files.take_over(), files.take_over());
        for round in 0..4 {
            let (mut given_up, mut other) = (files.begin().expect("room"), files.begin().expect("room"));
            put(&mut given_up, 1);
            put(&mut other, 2 + round);
            match round {
                0 => assert!(matches!(given_up.finish(former), Err(WriteError::TakenOver))),
                _ => drop(given_up),
            }
            other.finish(owner).expect("there is room");
            assert_eq!(items(&files), (2..=2 + round).map(item).collect::<Vec<_>>());
            assert_eq!(tables(&files), usize::from(round) + 1, "what was given up takes no room");
        }
        drop(files);
        let files = Files::open(&folder.path().join("store-1"), 1 << 20).expect("what was written");
        assert_eq!(items(&files), (2..6).map(item).collect::<Vec<_>>());
        assert!(!damage_mark(files.beside()).exists());
    }

    #[test]
    fn what_is_written_counts_once_whoever_writes_beside() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(&folder.path().join("store-1"), 1 << 20).expect("an empty folder");
        let owner = files.take_over();
        let mut runs: Vec<Run<'_>> = (0..14).map(|_| files.begin().expect("room")).collect();
        (0..).zip(&mut runs).for_each(|(last, run)| (0..=last).for_each(|key| put(run, key)));
        runs.into_iter().for_each(|run| run.finish(owner).expect("there is room"));
        assert_eq!((files.bytes_written(), files.overlapping_runs()), (files.bytes(), 14));
        let before = files.bytes();
        files.merge().expect("there is room");
        assert_eq!(files.overlapping_runs(), 0);
        assert_eq!(files.bytes_written(), before + files.bytes());
        assert_eq!(items(&files), (0..14).map(item).collect::<Vec<_>>());
    }
}
