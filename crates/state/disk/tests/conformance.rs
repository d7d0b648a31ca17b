//! What every store must do, where everything fits into memory, and where every block goes to the disk.

use disk::{Disk, DiskOptions, RowsIn};
use proofs::state::TreeShape;
use state::{Filling, KeptState, Reopened, ResumePoint, StoreError, Stores, Version};
use std::sync::Arc;
use tempfile::TempDir;
use types::Catalog;

mod with_room {
    state::conformance!(super::InFolder::new(super::RowsIn::Disk, 64 << 20));
}

mod without_room {
    state::conformance!(super::InFolder::new(super::RowsIn::Disk, 40_000));
}

mod in_memory {
    state::conformance!(super::InFolder::new(super::RowsIn::Memory, 0));
}

/// Stores in a folder that goes with them.
struct InFolder(Disk, #[expect(dead_code, reason = "it is removed when it is dropped")] TempDir);

impl InFolder {
    fn new(rows_in: RowsIn, memory_bytes: u64) -> InFolder {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::open(folder.path(), DiskOptions { rows_in, memory_bytes }).expect("an empty folder");
        InFolder(disk, folder)
    }
}

impl Stores for InFolder {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        self.0.begin(version, catalog)
    }

    fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        self.0.left()
    }

    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        self.0.reopen(height)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.0.settle()
    }

    fn kept_checkpoint(&self, height: u64, shape: TreeShape) -> Result<Option<KeptState>, StoreError> {
        self.0.kept_checkpoint(height, shape)
    }

    fn keep_checkpoints(&self, heights: &[u64]) -> Result<(), StoreError> {
        self.0.keep_checkpoints(heights)
    }

    fn remove_checkpoints_behind(&self, height: u64) -> Result<(), StoreError> {
        self.0.remove_checkpoints_behind(height)
    }
}
