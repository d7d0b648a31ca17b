//! What every store must do, where everything fits into memory, and where every block goes to the disk.

use disk::{Disk, DiskOptions};
use state::{Filling, StoreError, Stores, Version};
use std::sync::Arc;
use tempfile::TempDir;
use types::Catalog;

mod with_room {
    state::conformance!(super::InFolder::new(64 << 20));
}

mod without_room {
    state::conformance!(super::InFolder::new(40_000));
}

/// Stores in a folder that goes with them.
struct InFolder(Disk, #[expect(dead_code, reason = "it is removed when it is dropped")] TempDir);

impl InFolder {
    fn new(memory_bytes: u64) -> InFolder {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::open(folder.path(), DiskOptions { memory_bytes }).expect("an empty folder");
        InFolder(disk, folder)
    }
}

impl Stores for InFolder {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        self.0.begin(version, catalog)
    }
}
