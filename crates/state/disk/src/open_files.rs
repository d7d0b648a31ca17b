//! Which files are open, so that a folder's are opened once for all, and go when nobody reads them any more.

use crate::files::Files;
use parking_lot::Mutex;
use state::StoreError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Files by folder.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<BTreeMap<PathBuf, Weak<Files>>>);

impl OpenFiles {
    /// Those of a folder. `blocks`: bytes of memory for their blocks, where they are not open yet.
    pub(crate) fn get(&self, folder: &Path, blocks: u64) -> Result<Arc<Files>, StoreError> {
        let mut open = self.0.lock();
        if let Some(files) = open.get(folder).and_then(Weak::upgrade) {
            return Ok(files);
        }
        open.retain(|_, files| files.strong_count() > 0);
        let files = Files::open(folder, blocks)?;
        open.insert(folder.to_path_buf(), Arc::downgrade(&files));
        Ok(files)
    }

    /// Removes a folder, now or when nobody reads its files any more.
    pub(crate) fn remove(&self, folder: &Path) -> Result<(), StoreError> {
        match self.0.lock().get(folder).and_then(Weak::upgrade) {
            Some(files) => {
                files.supersede();
                Ok(())
            }
            None => {
                std::fs::remove_dir_all(folder).map_err(|error| StoreError::write(folder.display(), error))
            }
        }
    }
}
