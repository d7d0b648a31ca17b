//! The stores that keep rows on disk: [`RowsIn::Disk`], whose state may be many times larger than memory, and
//! [`RowsIn::Memory`], which reads all rows from memory and has them on the disk for the next process.
//!
//! In the first one memory has what the newest batches have written, and rows that are often read; everything else is in sorted
//! files (`lsm-tree`, which only `files.rs` knows). At every version both show the same rows as crate `memory`, in the same
//! order: what is in memory, and when files are merged, changes nothing but times.
//!
//! ```text
//!  apply ──▶ newest rows ──(enough of them)──▶ rows being written ──▶ sorted files ──merge──┐
//!                 ▲                                  ▲                  ▲        ▲───────────┘
//!  get, scan ─────┴──────────── if unknown ──────────┴── if unknown ────┤
//!                                                       (get) decoded rows in the cache
//! ```
//!
//! Nobody has to wait for one row after the other: what transactions name by key is read before they run (`prefetching.rs`), and
//! all rows where memory has room for them (`warming.rs`).
//!
//! There is no journal: the ledger is one. At a *durable point* one sorted run is written, flushed and made known at once: what
//! has changed, and beside it catalog, live ids and where the state stands. A store comes back at the newest durable point where
//! that is the end of a block, and the ledger has what came behind it. Where one block changes more than the newest rows may have
//! of memory, a point is written within it; until the next one the store comes back at a checkpoint. A *checkpoint* is a durable point whose tree is brought up
//! (`sealing.rs`) and that stays readable beside what is written later, also by the next process. The files of both stores are
//! the same, so that a node may go over from one to the other.
//!
//! [`Disk`] is all that others see; the rest is behind [`state::Store`] and [`state::Snapshot`].
//!
//! ```
//! use disk::{Disk, DiskOptions};
//! use state::{AfterImage, RowId, Stores, Version};
//! use std::sync::Arc;
//! use types::{Key, TableId, Value};
//!
//! # let folder = std::env::temp_dir().join(format!("disk-doc-{}", std::process::id()));
//! let store = Disk::open(&folder, DiskOptions::default())?.create(Arc::default())?;
//! let row = RowId { table: TableId(1), key: Key::encode([&Value::BigInt(7)])? };
//! let image = AfterImage { row: row.clone(), value: Some(Arc::from([Value::BigInt(7), Value::text("seven")])) };
//! store.apply(Version::after_batch(1, 0), &[image], None)?;
//! store.durable_point()?;
//! assert!(store.snapshot().get(row.table, &row.key)?.is_some());
//! # drop(store);
//! # std::fs::remove_dir_all(&folder).ok();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cache;
mod checksums;
mod copied;
mod core;
mod durable;
mod entries;
mod files;
mod files_snapshot;
mod filling;
mod gate;
mod layout;
mod merged;
mod open_files;
mod options;
mod points;
mod prefetching;
mod reopening;
mod resident;
mod sealing;
mod store;
mod view;
mod warming;
mod writer;

pub use copied::copied_checkpoint;
pub use options::{DiskOptions, RowsIn};

use checksums::WholeFiles;
use files::{Files, WriteError, flush};
use files_snapshot::{FilesSnapshot, read_catalog, read_live, read_meta};
use filling::DiskFilling;
use gate::Gate;
use layout::{checkpoint_of, damage_mark, store_folder, store_number};
use memory::Memory;
use open_files::OpenFiles;
use options::{Budget, RESIDENT_BLOCKS};
use parking_lot::Mutex;
use proofs::state::TreeShape;
use reopening::{point_of, read_written};
use resident::{ResidentFilling, ResidentStore};
use state::{
    AfterImage, Filling, KeptState, KeyRange, Reopened, ResumePoint, RowId, Snapshot, Store, StoreError,
    Stores, Version,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use store::DiskStore;
use types::{Catalog, TableId};

/// Rows that are read into memory at a time.
const PIECE_ROWS: usize = 4_096;
/// Makes stores in one folder, each in a folder of its own in there, and takes up what an earlier process has left.
pub struct Disk {
    folder: PathBuf,
    options: DiskOptions,
    gate: Arc<Gate>,
    /// Files that somebody has open.
    open: OpenFiles,
    newest: Newest,
    numbers: Mutex<Numbers>,
    /// Files that were found whole since somebody has met damage.
    whole: Mutex<WholeFiles>,
}

/// The store that was made or taken up last.
type Newest = Arc<Mutex<Option<Weak<dyn Store>>>>;

/// Numbers of stores in a folder.
struct Numbers {
    next: u64,
    /// The one that was begun or taken up last.
    newest: Option<u64>,
}

impl Disk {
    /// Stores of an earlier process in this folder stay until [`Stores::settle`].
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(folder: &Path, options: DiskOptions) -> Result<Disk, StoreError> {
        let failed = |error: std::io::Error| StoreError::write(folder.display(), error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        // A folder that is new has its name for good once the folder above it is flushed.
        folder.parent().map_or(Ok(()), flush).map_err(failed)?;
        // And what was to be removed keeps its new name.
        flush(folder).map_err(failed)?;
        let paths = paths(folder)?;
        for path in paths.iter().filter(|path| layout::is_unfinished(path)) {
            std::fs::remove_dir_all(path).map_err(failed)?;
        }
        let next = paths.iter().filter_map(|path| store_number(path)).max().unwrap_or(0) + 1;
        Ok(Disk {
            folder: folder.to_path_buf(),
            options,
            gate: Arc::default(),
            open: OpenFiles::default(),
            newest: Newest::default(),
            numbers: Mutex::new(Numbers { next, newest: None }),
            whole: Mutex::default(),
        })
    }

    /// Rows of the newest state that an earlier process has left, without those that indexes are made of; 0 where none is left,
    /// or it cannot be read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn rows_left(&self) -> Result<u64, StoreError> {
        let newest = self.all_left()?.into_iter().max_by_key(|(_, point)| point.header.height);
        let Some((path, _)) = newest else { return Ok(0) };
        let files = self.open.get(&path, RESIDENT_BLOCKS)?;
        let counts = read_meta(&files.now())?.map(|meta| meta.counts).unwrap_or_default();
        Ok(counts.iter().filter(|(table, _)| !table.is_index()).map(|(_, rows)| rows).sum())
    }

    fn budget(&self) -> Budget {
        Budget::of(self.options)
    }

    /// The folder of the next store.
    fn next_folder(&self) -> PathBuf {
        let mut numbers = self.numbers.lock();
        let number = numbers.next;
        (numbers.next, numbers.newest) = (number + 1, Some(number));
        store_folder(&self.folder, number)
    }

    /// Where states can be taken up: the newest store first, then checkpoints. What cannot be read is left out.
    fn all_left(&self) -> Result<Vec<(PathBuf, ResumePoint)>, StoreError> {
        let paths = paths(&self.folder)?;
        let mut stores: Vec<u64> = paths.iter().filter_map(|path| store_number(path)).collect();
        stores.sort_unstable_by(|one, other| other.cmp(one));
        let stores = stores.into_iter().map(|number| store_folder(&self.folder, number));
        let checkpoints = self.checkpoints()?.into_iter().rev().map(|(_, path)| path);
        let (mut left, is_suspect) = (Vec::new(), damage_mark(&self.folder).exists());
        for path in stores.chain(checkpoints) {
            match self.point_left(&path, is_suspect) {
                Ok(point) => left.extend(point.map(|point| (path, point))),
                Err(error) => tracing::warn!(%error, "a state that was left cannot be taken up"),
            }
        }
        Ok(left)
    }

    /// Where the state in this folder can be taken up. `is_suspect`: one of its files may be damaged where nobody has read yet.
    fn point_left(&self, path: &Path, is_suspect: bool) -> Result<Option<ResumePoint>, StoreError> {
        let Some(files) = self.open.get_left(path, RESIDENT_BLOCKS)? else { return Ok(None) };
        if is_suspect {
            let _ = files.verify(&mut self.whole.lock(), &mut |_| ControlFlow::Continue(()))?;
        }
        point_of(&files)
    }

    /// Folders of checkpoints by height, and of one height in the order in which they were made.
    fn checkpoints(&self) -> Result<BTreeMap<(u64, u64), PathBuf>, StoreError> {
        let paths = paths(&self.folder)?.into_iter();
        Ok(paths.filter_map(|path| Some((checkpoint_of(&path)?, path))).collect())
    }

    /// The files of a store that has what is in this folder. The folder of a checkpoint stays as it is.
    fn files_of(&self, path: &Path) -> Result<Arc<Files>, StoreError> {
        if let Some(number) = store_number(path) {
            self.numbers.lock().newest = Some(number);
            return self.open.get(path, self.budget().blocks);
        }
        let folder = self.next_folder();
        let copied = self.open.get(path, RESIDENT_BLOCKS)?.copy_to(&folder);
        copied.map_err(WriteError::into_store_error)?;
        self.open.get(&folder, self.budget().blocks)
    }

    fn take_up(&self, files: Arc<Files>, height: u64) -> Result<Reopened, StoreError> {
        let (now, gate, budget) = (files.now(), self.gate.clone(), self.budget());
        let meta =
            read_meta(&now)?.filter(|meta| meta.point.is_some_and(|point| point.header.height == height));
        let point = meta.as_ref().and_then(|meta| meta.point);
        let (Some(meta), Some(point)) = (meta, point) else {
            return Err(StoreError::damaged(
                files.folder().display(),
                "what its rows are is not what was written",
            ));
        };
        let (catalog, (live, last_live)) = (read_catalog(&now)?, read_live(&now, height)?);
        let written = read_written(&now, last_live)?;
        let version = Version::after_block(height);
        let rows = FilesSnapshot::of(now, catalog.clone());
        let state: Arc<dyn Store> = match self.options.rows_in {
            RowsIn::Memory => {
                let memory = read_into_memory(rows.as_ref(), version)?;
                Arc::new(ResidentStore::new(memory, (files, gate, written))?)
            }
            RowsIn::Disk => {
                let mut counts = meta.counts;
                let mut known: BTreeSet<TableId> = catalog.row_tables().collect();
                known.retain(|table| meta.has_entries || !table.is_index());
                entries::remove_entries_but(&files, &known)?;
                if !meta.has_entries {
                    counts.extend(filling::make_entries((&files, &gate), budget, rows.as_ref())?);
                }
                Arc::new(DiskStore::new((files, gate, written), budget, version, catalog, counts)?)
            }
        };
        *self.newest.lock() = Some(Arc::downgrade(&state));
        Ok(Reopened { point, state, live })
    }

    /// Also those that another one of the same height has followed.
    fn remove_checkpoints(&self, goes: impl Fn(u64) -> bool) -> Result<(), StoreError> {
        let checkpoints = self.checkpoints()?;
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        newest.extend(checkpoints.keys().copied());
        for ((height, number), path) in &checkpoints {
            if goes(*height) || newest.get(height) != Some(number) {
                self.open.remove(path)?;
            }
        }
        Ok(())
    }
}

/// A store that was begun: when it has its rows it is the newest one.
struct Begun {
    inner: Box<dyn Filling>,
    newest: Newest,
}

impl Filling for Begun {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        self.inner.add(rows)
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        let state = self.inner.finish()?;
        *self.newest.lock() = Some(Arc::downgrade(&state));
        Ok(state)
    }
}

/// Everything in a folder.
fn paths(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |error: std::io::Error| StoreError::read(folder.display(), error);
    std::fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// A store in memory with these rows.
fn read_into_memory(rows: &dyn Snapshot, version: Version) -> Result<Arc<dyn Store>, StoreError> {
    let catalog: Arc<Catalog> = rows.catalog().clone();
    let mut filling = Memory.begin(version, catalog.clone())?;
    for table in catalog.row_tables().filter(|table| !table.is_index()) {
        let (mut piece, mut added) = (Vec::with_capacity(PIECE_ROWS), Ok(()));
        rows.scan(table, &KeyRange::ALL, false, &mut |key, row| {
            piece.push(AfterImage { row: RowId { table, key: key.clone() }, value: Some(row.clone()) });
            if piece.len() == PIECE_ROWS {
                added = filling.add(&piece);
                piece.clear();
            }
            if added.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        added?;
        filling.add(&piece)?;
    }
    filling.finish()
}

impl Stores for Disk {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        let (budget, with_entries) = (self.budget(), self.options.rows_in == RowsIn::Disk);
        let owned = (self.open.get(&self.next_folder(), budget.blocks)?, self.gate.clone());
        let files = DiskFilling::new(owned, with_entries, budget, version, catalog.clone());
        let inner: Box<dyn Filling> = match self.options.rows_in {
            RowsIn::Disk => Box::new(files),
            RowsIn::Memory => Box::new(ResidentFilling { memory: Memory.begin(version, catalog)?, files }),
        };
        Ok(Box::new(Begun { inner, newest: self.newest.clone() }))
    }

    fn newest(&self) -> Option<Arc<dyn Store>> {
        self.newest.lock().as_ref().and_then(Weak::upgrade)
    }

    fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        let points = self.all_left()?.into_iter().map(|(_, point)| (point.header.height, point));
        Ok(points.collect::<BTreeMap<_, _>>().into_values().rev().collect())
    }

    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        let found = self.all_left()?.into_iter().find(|(_, point)| point.header.height == height);
        let Some((path, _)) = found else { return Ok(None) };
        let files = self.files_of(&path)?;
        self.take_up(files, height).map(Some)
    }

    fn settle(&self) -> Result<(), StoreError> {
        let newest = self.numbers.lock().newest;
        let paths = paths(&self.folder)?.into_iter();
        let mut others = paths.filter(|path| store_number(path).is_some_and(|number| Some(number) != newest));
        others.try_for_each(|path| self.open.remove(&path))?;
        let mark = damage_mark(&self.folder);
        if mark.exists() {
            // What was taken up is whole. A checkpoint that is not would be found damaged again and again.
            for path in self.checkpoints()?.into_values() {
                if self.point_left(&path, true).is_err() {
                    self.open.remove(&path)?;
                }
            }
            std::fs::remove_file(&mark).map_err(|error| StoreError::write(mark.display(), error))?;
            self.whole.lock().clear();
        }
        Ok(())
    }

    fn kept_checkpoint(&self, height: u64, shape: TreeShape) -> Result<Option<KeptState>, StoreError> {
        let checkpoints = self.checkpoints()?;
        let found = checkpoints.range((height, 0)..=(height, u64::MAX)).next_back();
        let files = found.map(|(_, path)| self.open.get_left(path, RESIDENT_BLOCKS));
        let Some(files) = files.transpose()?.flatten() else { return Ok(None) };
        let Some(point) = point_of(&files)? else { return Ok(None) };
        sealing::kept_state(files, point, shape).map(Some)
    }

    fn keep_checkpoints(&self, heights: &[u64]) -> Result<(), StoreError> {
        let newest = heights.iter().max().copied().unwrap_or(0);
        // One above these may be on its way.
        self.remove_checkpoints(|height| height < newest && !heights.contains(&height))
    }

    fn remove_checkpoints_behind(&self, height: u64) -> Result<(), StoreError> {
        self.remove_checkpoints(|other| other > height)
    }

    fn check_files(&self, rest: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), StoreError> {
        let newest = self.numbers.lock().newest;
        let newest = newest.map(|number| store_folder(&self.folder, number));
        let mut whole = WholeFiles::new();
        for path in newest.into_iter().chain(self.checkpoints()?.into_values()) {
            let Some(files) = self.open.get_left(&path, RESIDENT_BLOCKS)? else { continue };
            if files.verify(&mut whole, rest)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn recorded(&self, height: u64) {
        self.gate.recorded(height);
    }

    fn recording_ends(&self) {
        self.gate.end();
    }
}
