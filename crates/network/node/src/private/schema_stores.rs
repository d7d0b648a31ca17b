//! Where the rows of schemas are kept: each has a store of its own, of the same kind as that of the ledger's state.

use super::opened_store::OpenedFile;
use crate::NodeError;
use crate::store_choice::{MEMORY_MEGABYTES, MEMORY_MEGABYTES_MIN, StoreChoice, StoreKind};
use memory::Memory;
use parking_lot::Mutex;
use state::Stores;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What names of their folders begin with.
const FOLDER: &str = "state-";
/// What the names of empty files begin with that say: do not take this state up.
const DISTRUSTED: &str = "distrusted-";
/// A schema on the disk has such a part of the memory that the ledger's state has.
const MEMORY_PART: u64 = 8;

/// What must be flushed before a schema's store comes back at a height, and the store.
pub(super) struct SchemaFiles {
    pub(super) opened: Arc<OpenedFile>,
    pub(super) stores: Arc<dyn Stores>,
}

/// Makes the stores of schemas, and knows those that are in use.
pub(crate) struct SchemaStores {
    /// `None`: in memory, and gone with the process.
    choice: Option<StoreChoice>,
    folder: PathBuf,
    /// By the schema's number.
    open: Mutex<BTreeMap<u32, Arc<dyn Stores>>>,
}

impl SchemaStores {
    /// Those of a node which keeps its state so, in its folder for schemas.
    pub(crate) fn of(choice: StoreChoice, folder: &Path) -> SchemaStores {
        let megabytes = choice.memory_megabytes.unwrap_or(MEMORY_MEGABYTES) / MEMORY_PART;
        let memory_megabytes =
            (choice.kind == StoreKind::Disk).then_some(megabytes.max(MEMORY_MEGABYTES_MIN));
        SchemaStores::new(Some(StoreChoice { memory_megabytes, ..choice }), folder)
    }

    /// For whoever comes back to nothing.
    pub(crate) fn in_memory() -> SchemaStores {
        SchemaStores::new(None, Path::new(""))
    }

    fn new(choice: Option<StoreChoice>, folder: &Path) -> SchemaStores {
        SchemaStores { choice, folder: folder.to_path_buf(), open: Mutex::default() }
    }

    /// Where the rows of the schema of a number are.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn of_schema(&self, number: u32) -> Result<Arc<dyn Stores>, NodeError> {
        let mut open = self.open.lock();
        if let Some(stores) = open.get(&number) {
            return Ok(stores.clone());
        }
        let stores = match self.choice {
            None => Arc::new(Memory),
            Some(choice) => choice.open(&self.folder_of(number))?,
        };
        open.insert(number, stores.clone());
        Ok(stores)
    }

    /// What this schema came to is not what a quorum of its members has: the next process executes it from its beginning.
    pub(super) fn distrust(&self, number: u32) {
        if self.choice.is_some()
            && let Err(error) = std::fs::write(self.mark_of(number), [])
        {
            tracing::error!(%error, "remove the folder of the schema's state before you start the node again");
        }
    }

    /// Whether an earlier process came to something else than a quorum.
    pub(super) fn is_distrusted(&self, number: u32) -> bool {
        self.choice.is_some() && self.mark_of(number).exists()
    }

    /// The schema begins from what counts.
    pub(super) fn trust(&self, number: u32) {
        if self.choice.is_some()
            && let Err(error) = std::fs::remove_file(self.mark_of(number))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, "the schema is executed from its beginning at the next start, too");
        }
    }

    /// Of these schemas alone the rows stay here: of others the organisation is no member any more, or they are gone.
    pub(super) fn keep_only(&self, is_kept: impl Fn(u32) -> bool) {
        let mut open = self.open.lock();
        open.retain(|number, _| is_kept(*number));
        if self.choice.is_none() {
            return;
        }
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let number_of = |name: &str| name.strip_prefix(FOLDER)?.parse::<u32>().ok();
        for path in entries.map(|entry| entry.path()) {
            let number = path.file_name().and_then(|name| number_of(&name.to_string_lossy()));
            if number.is_some_and(|number| !is_kept(number))
                && let Err(error) = std::fs::remove_dir_all(&path)
            {
                tracing::warn!(folder = %path.display(), %error, "the rows of a schema that is gone cannot be removed");
            }
        }
    }

    fn mark_of(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{DISTRUSTED}{number}"))
    }

    fn folder_of(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{FOLDER}{number}"))
    }
}
