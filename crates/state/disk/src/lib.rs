//! The store that keeps rows on disk.
//!
//! Memory has what the newest batches have written, and rows that are often read; everything else is in sorted files
//! (`lsm-tree`, which only `files.rs` knows). A state may so be many times larger than memory. At every version
//! the store shows the same rows as crate `memory`, in the same order: what is in memory, and when files are merged, changes
//! nothing but times.
//!
//! ```text
//!  apply ──▶ newest rows ──(enough of them)──▶ rows being written ──▶ sorted files ──merge──┐
//!                 ▲                                  ▲                  ▲        ▲───────────┘
//!  get, scan ─────┴──────────── if unknown ──────────┴── if unknown ────┤
//!                                                       (get) decoded rows in the cache
//! ```
//!
//! There is no journal: the ledger is one. At a durable point one sorted run is written, flushed and made known at once. Nothing
//! here outlives the process yet: a state comes back from a checkpoint, as in memory.
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
mod files;
mod filling;
mod layout;
mod merged;
mod store;
mod view;
mod writer;

use filling::DiskFilling;
use parking_lot::Mutex;
use state::{Filling, StoreError, Stores, Version};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::Catalog;

/// How much memory a store may use, and when it writes.
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Memory for rows, for blocks of files and for what waits to be written; indexes and filters of files come on top.
    pub memory_bytes: u64,
}

impl Default for DiskOptions {
    fn default() -> DiskOptions {
        DiskOptions { memory_bytes: 256 << 20 }
    }
}

/// What its parts may use of the memory of a store, in bytes.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Decoded rows that were read.
    rows: u64,
    /// Blocks of files as they are on the disk.
    blocks: u64,
    /// What batches have written since the last durable point. While that is written out there may be twice as much.
    newest: u64,
}

impl Budget {
    fn of(options: DiskOptions) -> Budget {
        let bytes = options.memory_bytes;
        Budget { rows: bytes / 2, blocks: bytes / 4, newest: bytes / 8 }
    }
}

/// Makes stores in one folder, each in a folder of its own in there.
pub struct Disk {
    folder: PathBuf,
    options: DiskOptions,
    /// Number of the next store.
    next: Mutex<u64>,
}

impl Disk {
    /// Stores of an earlier process in this folder are removed: a state comes back from a checkpoint.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(folder: &Path, options: DiskOptions) -> Result<Disk, StoreError> {
        let failed = |error: std::io::Error| StoreError::write(folder.display(), error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if layout::is_store(&path) {
                std::fs::remove_dir_all(&path).map_err(failed)?;
            }
        }
        Ok(Disk { folder: folder.to_path_buf(), options, next: Mutex::new(1) })
    }
}

impl Stores for Disk {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        let number = {
            let mut next = self.next.lock();
            *next += 1;
            *next - 1
        };
        let folder = layout::store_folder(&self.folder, number);
        Ok(Box::new(DiskFilling::new(&folder, Budget::of(self.options), version, catalog)?))
    }
}
