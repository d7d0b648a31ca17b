//! A node's folder, of which one process makes backups. The node's own locks are left alone, so that it may run.

use crate::error::BackupError;
use node::{FolderParts, NodeFolder, founding};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::Charter;

/// Where the folder keeps what backups need for themselves.
const FOLDER: &str = "backing-up";

/// The folder of a node.
pub(crate) struct NodeSource {
    pub(crate) path: PathBuf,
    pub(crate) charter: Arc<Charter>,
    /// The file `node.toml`.
    pub(crate) node: String,
    pub(crate) organisation: String,
    pub(crate) position: u16,
    /// Locked until this is dropped.
    _lock: File,
}

impl NodeSource {
    /// Opens the folder, as `entente init` or `entente keys` wrote it.
    ///
    /// # Errors
    /// It is no node's, or another process makes a backup of it.
    pub(crate) fn open(path: &Path) -> Result<NodeSource, BackupError> {
        let folder = NodeFolder::open(path)?;
        let config = path.join("node.toml");
        let node = std::fs::read_to_string(&config).map_err(BackupError::file("read", &config))?;
        let own = path.join(FOLDER);
        std::fs::create_dir_all(&own).map_err(BackupError::file("make", &own))?;
        let lock_path = own.join("LOCK");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(BackupError::file("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(BackupError::Running { path: path.to_path_buf() });
            }
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(BackupError::file("lock", &lock_path)(error));
            }
        }
        let position = folder.organisation as u16;
        let organisation = match folder.charter.organisations.get(folder.organisation) {
            Some(founder) => founder.name.clone(),
            // Whoever came later has its card.
            None => match founding::read_card(&path.join("card.toml")) {
                Ok(card) => card.name,
                Err(_) => format!("organisation {position}"),
            },
        };
        let charter = Arc::new(folder.charter);
        Ok(NodeSource { path: path.to_path_buf(), charter, node, organisation, position, _lock: lock })
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path.join("ledger")
    }

    /// Where files of a checkpoint are linked while they are read.
    pub(crate) fn links(&self) -> PathBuf {
        self.path.join(FOLDER).join("checkpoint")
    }

    /// What of the folder a backup leaves out although no other member may have it, in sentences.
    pub(crate) fn left_out(&self) -> Result<Vec<String>, BackupError> {
        let mut left_out = Vec::new();
        if let Some(parts) = FolderParts::open(&self.path)?.filter(|parts| !parts.schemas().is_empty()) {
            let names: Vec<&str> = parts.schemas().iter().map(String::as_str).collect();
            left_out.push(format!(
                "the rows of {}, which only their members may read: a restored node asks the other members for them",
                names.join(", ")
            ));
        }
        Ok(left_out)
    }
}
