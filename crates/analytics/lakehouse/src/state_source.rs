//! Certified checkpoints out of a node's folder, whether the node runs or not.

use crate::LakehouseError;
use ledger::{newest_certificate, read_handovers};
use state::KeptState;
use std::fs::File;
use std::path::{Path, PathBuf};
use types::{Charter, CheckpointCertificate, Handover, decode_exactly};

/// Where a node's folder keeps what exports need for themselves.
const FOLDER: &str = "exporting";
/// How often a checkpoint is looked for again, because the node has removed it meanwhile.
const ATTEMPTS: usize = 8;

/// The state at a checkpoint, with what proves it.
pub struct CertifiedState {
    /// Its rows, and the tree over them.
    pub kept: KeptState,
    /// A quorum's word for the tree's root.
    pub certificate: CheckpointCertificate,
    /// From the founding charter to the one that holds at the height; all that the ledger has, or more than are needed.
    pub handovers: Vec<Handover>,
    /// Where the rows are read from; the last to go.
    _links: Option<Links>,
}

impl CertifiedState {
    /// `kept` is what `certificate` is about.
    ///
    /// # Errors
    /// [`LakehouseError::Different`] where it is not.
    pub fn new(
        kept: KeptState,
        certificate: CheckpointCertificate,
        handovers: Vec<Handover>,
    ) -> Result<CertifiedState, LakehouseError> {
        let (expected, found) = (certificate.statement.state_root, kept.tree().root());
        if expected != found {
            let what = format!("the root of the state of height {}", certificate.statement.height);
            return Err(LakehouseError::different(what, expected, found));
        }
        Ok(CertifiedState { kept, certificate, handovers, _links: None })
    }

    /// Behind which block.
    pub fn height(&self) -> u64 {
        self.certificate.statement.height
    }
}

/// Links to a checkpoint's files, for as long as this is held.
struct Links(PathBuf);

impl Drop for Links {
    fn drop(&mut self) {
        // What stays is removed by the next export.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The folder of a node, of which one process exports at a time. The node's own locks are left alone, so that it may run.
pub struct NodeState {
    path: PathBuf,
    charter: Charter,
    writer: String,
    /// Handovers that were read so far, and how many amended charters they have.
    handovers: (usize, Vec<Handover>),
    /// Locked until the end of the process.
    _lock: File,
}

impl NodeState {
    /// Opens the folder, as `entente init` wrote it.
    ///
    /// # Errors
    /// [`LakehouseError::Folder`], and [`LakehouseError::Running`] where another process exports.
    pub fn open(path: &Path) -> Result<NodeState, LakehouseError> {
        let charter_path = path.join("charter.toml");
        let text = read_text(&charter_path)?;
        let charter = Charter::from_toml(&text).map_err(|error| folder_error(&charter_path, &error))?;
        let folder = path.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|error| folder_error(&folder, &error))?;
        let lock_path = folder.join("LOCK");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(|error| folder_error(&lock_path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(LakehouseError::Running { path: path.display().to_string() });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(folder_error(&lock_path, &error)),
        }
        let writer = writer(&folder)?;
        Ok(NodeState { path: path.to_path_buf(), charter, writer, handovers: (0, Vec::new()), _lock: lock })
    }

    /// The founding charter.
    pub fn charter(&self) -> &Charter {
        &self.charter
    }

    /// What names this folder in targets.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The newest certified checkpoint, where it is above this height.
    ///
    /// # Errors
    /// The node's files cannot be read, or are not what they should be.
    pub fn newest_above(&mut self, height: Option<u64>) -> Result<Option<CertifiedState>, LakehouseError> {
        for _ in 0..ATTEMPTS {
            let Some((newest, bytes)) = newest_certificate(&self.path.join("checkpoints"))? else {
                return Ok(None);
            };
            if height.is_some_and(|height| newest <= height) {
                return Ok(None);
            }
            if let Some(state) = self.read(newest, &bytes)? {
                return Ok(Some(state));
            }
        }
        let what = "its checkpoints come and go too quickly, or an older program has written the newest one; CHECKPOINT makes another";
        Err(folder_error(&self.path.join("checkpoints"), &what))
    }

    /// `None`: it has gone meanwhile.
    fn read(&mut self, height: u64, certificate: &[u8]) -> Result<Option<CertifiedState>, LakehouseError> {
        let certificate: CheckpointCertificate = decode_exactly(certificate).map_err(|error| {
            let what = format!("the certificate of height {height}: {error}");
            folder_error(&self.path.join("checkpoints"), &what)
        })?;
        let links = Links(self.path.join(FOLDER).join("checkpoint"));
        let Some(kept) = disk::copied_checkpoint(&self.path.join("state"), height, &links.0)? else {
            return Ok(None);
        };
        let handovers = self.handovers_of(&kept)?;
        let mut state = CertifiedState::new(kept, certificate, handovers)?;
        state._links = Some(links);
        Ok(Some(state))
    }

    fn handovers_of(&mut self, kept: &KeptState) -> Result<Vec<Handover>, LakehouseError> {
        let (ledger, height) = (self.charter.ledger(), kept.header().height);
        let charters = types::Charters::of(&kept.catalog().governance);
        let amended = charters.map_or(0, |charters| charters.reigns().len().saturating_sub(1));
        // All blocks are read for it, so only where there is something new.
        if self.handovers.0 != amended {
            let read = read_handovers(&self.path.join("ledger"), ledger, height)?;
            self.handovers = (amended, read);
        }
        Ok(self.handovers.1.clone())
    }
}

/// The name of this folder: made once, so that whoever writes into a target is known again.
fn writer(folder: &Path) -> Result<String, LakehouseError> {
    let path = folder.join("writer");
    if path.exists() {
        return Ok(read_text(&path)?.trim().to_string());
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos()).to_le_bytes();
    let place = folder.display().to_string();
    let name = crypto::sha256(&[place.as_bytes(), &now, &std::process::id().to_le_bytes()]).to_string();
    let name = name[..16].to_string();
    std::fs::write(&path, &name).map_err(|error| folder_error(&path, &error))?;
    Ok(name)
}

fn read_text(path: &Path) -> Result<String, LakehouseError> {
    std::fs::read_to_string(path).map_err(|error| folder_error(path, &error))
}

fn folder_error(path: &Path, what: &dyn std::fmt::Display) -> LakehouseError {
    LakehouseError::Folder { path: path.display().to_string(), what: what.to_string() }
}
