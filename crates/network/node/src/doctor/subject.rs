//! The node that is looked at: each file of its folder by itself, so that one that is wrong does not hide another.

use super::past::Past;
use crate::folder::{open_charter, open_config, open_node_key, open_session};
use crate::{NodeConfig, NodeError};
use crypto::SecretKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Charter, Charters, Identity};

/// What could be read of it.
pub(super) struct Subject {
    pub(super) folder: PathBuf,
    pub(super) charter: Result<Arc<Charter>, NodeError>,
    pub(super) config: Result<NodeConfig, NodeError>,
    pub(super) node_key: Result<SecretKey, NodeError>,
    /// Nothing where there is no charter to hold it against.
    pub(super) session: Option<Result<Identity, NodeError>>,
    /// What its blocks say; nothing where it has none, or no charter.
    pub(super) past: Option<Result<Past, String>>,
    /// The process that has the folder open, as the folder says.
    pub(super) process: Result<Option<String>, NodeError>,
}

impl Subject {
    pub(super) fn read(folder: &Path) -> Subject {
        let charter = open_charter(folder).map(Arc::new);
        let known = charter.as_ref().ok();
        Subject {
            folder: folder.to_path_buf(),
            config: open_config(folder),
            node_key: open_node_key(folder),
            session: known.map(|charter| open_session(folder, charter)),
            past: known.and_then(|charter| Past::read(&folder.join("ledger"), charter)),
            process: ledger::in_use(&folder.join("ledger")).map_err(NodeError::Ledger),
            charter,
        }
    }

    /// Whether the node runs.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.process, Ok(Some(_)))
    }

    /// Its process, where it runs and the folder says which.
    pub(super) fn process(&self) -> Option<u32> {
        self.process.as_ref().ok()?.as_ref()?.parse().ok()
    }

    /// The charters that its blocks name; where they cannot be read, the founding one.
    pub(super) fn charters(&self) -> Option<Charters> {
        let founding = self.charter.as_ref().ok()?;
        match &self.past {
            Some(Ok(past)) => Some(past.charters.clone()),
            _ => Some(Charters::new(founding.clone())),
        }
    }

    /// The newest block that it has recorded; 0 for none.
    pub(super) fn height(&self) -> u64 {
        match &self.past {
            Some(Ok(past)) => past.height,
            _ => 0,
        }
    }
}
