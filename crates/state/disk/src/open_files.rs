//! Which files are open, so that a folder's are opened once for all, and go when nobody reads them any more.

use crate::files::{Files, mark_damaged, remove};
use parking_lot::Mutex;
use state::StoreError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Files by folder.
type Open = BTreeMap<PathBuf, Weak<Files>>;

/// Files that somebody has open.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Open>);

impl OpenFiles {
    /// Those of a folder. `blocks`: bytes of memory for their blocks, where they are not open yet.
    pub(crate) fn get(&self, folder: &Path, blocks: u64) -> Result<Arc<Files>, StoreError> {
        open_once(&mut self.0.lock(), folder, blocks)
    }

    /// Those of a folder, unless it has gone meanwhile.
    pub(crate) fn get_left(&self, folder: &Path, blocks: u64) -> Result<Option<Arc<Files>>, StoreError> {
        // With the lock: who removes a folder has it, too.
        let mut open = self.0.lock();
        if !folder.exists() { Ok(None) } else { open_once(&mut open, folder, blocks).map(Some) }
    }

    /// Removes a folder, now or when nobody reads its files any more.
    pub(crate) fn remove(&self, folder: &Path) -> Result<(), StoreError> {
        match self.0.lock().get(folder).and_then(Weak::upgrade) {
            Some(files) => {
                files.supersede();
                Ok(())
            }
            None => remove(folder).map_err(|error| StoreError::write(folder.display(), error)),
        }
    }
}

fn open_once(open: &mut Open, folder: &Path, blocks: u64) -> Result<Arc<Files>, StoreError> {
    if let Some(files) = open.get(folder).and_then(Weak::upgrade) {
        return Ok(files);
    }
    open.retain(|_, files| files.strong_count() > 0);
    let files = Files::open(folder, blocks).inspect_err(|_| mark_damaged(folder))?;
    open.insert(folder.to_path_buf(), Arc::downgrade(&files));
    Ok(files)
}
