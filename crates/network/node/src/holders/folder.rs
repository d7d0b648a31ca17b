//! A holder's folder.

use super::tls::Own;
use crate::NodeError;
use crate::store_choice::{StoreChoice, StoreKind};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use types::Charter;

/// `holder.toml`: where a holder listens for its validator, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HolderOptions {
    /// What it is called.
    pub name: String,
    /// Where it listens for its validator.
    pub listen: SocketAddr,
    /// The schemas that it holds, as the validator's `node.toml` says.
    pub schemas: Vec<String>,
    /// SHA-256 of the certificate that its validator shows, as hexadecimal digits.
    pub validator: String,
    /// Threads that execute transactions.
    pub threads: usize,
    /// Where the rows are: `memory` or `disk`.
    #[serde(default)]
    pub store: StoreKind,
    /// How much memory a store on the disk may use, in units of 1,048,576 bytes; 256 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_megabytes: Option<u64>,
}

/// A holder's folder, read and checked whole.
///
/// ```text
///  charter.toml                the ledger's founding charter
///  holder.toml                 HolderOptions
///  holders.crt, holders.key    what it shows to its validator
///  state/                      the files of the newest state, and of checkpoints
/// ```
pub struct HolderFolder {
    /// The folder.
    pub path: PathBuf,
    /// The founding charter.
    pub charter: Charter,
    /// What `holder.toml` says.
    pub options: HolderOptions,
}

impl HolderFolder {
    /// Whether a folder is a holder's.
    pub fn is_one(path: &Path) -> bool {
        path.join("holder.toml").exists()
    }

    /// Reads and checks everything that starting the holder needs.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<HolderFolder, NodeError> {
        let read = |file: &str| {
            let path = path.join(file);
            std::fs::read_to_string(&path).map_err(|error| NodeError::File { action: "read", path, error })
        };
        let charter = Charter::from_toml(&read("charter.toml")?)
            .map_err(|error| NodeError::Charter { path: path.join("charter.toml"), error })?;
        let options: HolderOptions = toml::from_str(&read("holder.toml")?).map_err(|error| {
            NodeError::Config { path: path.join("holder.toml"), reason: error.to_string() }
        })?;
        Ok(HolderFolder { path: path.to_path_buf(), charter, options })
    }

    /// Writes a new holder's folder, or what an old one holds from its next start on. Gives the digest of its certificate.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(&self) -> Result<String, NodeError> {
        let write = |file: &str, content: &str| {
            let path = self.path.join(file);
            std::fs::write(&path, content).map_err(|error| NodeError::File { action: "write", path, error })
        };
        std::fs::create_dir_all(&self.path).map_err(|error| NodeError::File {
            action: "create",
            path: self.path.clone(),
            error,
        })?;
        write("charter.toml", &self.charter.to_toml())?;
        write("holder.toml", &toml::to_string(&self.options).expect("plain fields"))?;
        Own::ensure(&self.path, &self.options.name)
    }

    pub(super) fn store(&self) -> StoreChoice {
        StoreChoice { kind: self.options.store, memory_megabytes: self.options.memory_megabytes }
    }
}
