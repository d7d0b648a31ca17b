//! Which store keeps the state, where nothing else is given: each node chooses for itself, and all come to the same.

use crate::NodeError;
use disk::{Disk, DiskOptions, RowsIn};
use serde::{Deserialize, Serialize};
use state::Stores;
use std::path::Path;
use std::sync::Arc;

/// What a store on the disk may use where nothing is said, in units of 1,048,576 bytes.
pub const MEMORY_MEGABYTES: u64 = 256;
/// With less, batches would wait for the disk all the time.
pub const MEMORY_MEGABYTES_MIN: u64 = 16;

/// Where the rows of the state are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// All of them in memory.
    #[default]
    Memory,
    /// On the disk, with the newest ones and those that are often read in memory.
    Disk,
}

impl StoreKind {
    /// As `node.toml` and options of commands name it.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Memory => "memory",
            StoreKind::Disk => "disk",
        }
    }
}

/// A kind of store, and the memory that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StoreChoice {
    /// Where the rows are.
    pub kind: StoreKind,
    /// Memory of a store on the disk, in units of 1,048,576 bytes; `None`: [`MEMORY_MEGABYTES`].
    pub memory_megabytes: Option<u64>,
}

impl StoreChoice {
    /// Whether it can be: only a store on the disk takes a limit, and not too small a one.
    ///
    /// # Errors
    /// [`NodeError::Options`], with what was expected.
    pub fn check(self) -> Result<(), NodeError> {
        match (self.kind, self.memory_megabytes) {
            (StoreKind::Memory, Some(_)) => Err(NodeError::Options(
                "memory_megabytes needs store = \"disk\": a store in memory keeps all rows there, however many there are".into(),
            )),
            (StoreKind::Disk, Some(megabytes)) if megabytes < MEMORY_MEGABYTES_MIN => Err(NodeError::Options(
                format!("memory_megabytes: expected {MEMORY_MEGABYTES_MIN} or more, found {megabytes}"),
            )),
            _ => Ok(()),
        }
    }

    /// What makes stores, whose files lie in `folder`, which nothing else uses.
    ///
    /// # Errors
    /// As [`StoreChoice::check`]; the folder cannot be written.
    pub fn open(self, folder: &Path) -> Result<Arc<dyn Stores>, NodeError> {
        self.check()?;
        let rows_in = match self.kind {
            StoreKind::Memory => RowsIn::Memory,
            StoreKind::Disk => RowsIn::Disk,
        };
        let memory_bytes = self.memory_megabytes.unwrap_or(MEMORY_MEGABYTES) << 20;
        Ok(Arc::new(Disk::open(folder, DiskOptions { rows_in, memory_bytes })?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_for_the_disk_and_leaves_room() {
        let refused = |kind, megabytes| {
            let choice = StoreChoice { kind, memory_megabytes: Some(megabytes) };
            choice.check().expect_err("it makes no sense").to_string()
        };
        assert!(refused(StoreKind::Memory, 256).contains("memory_megabytes needs store = \"disk\""));
        let few = refused(StoreKind::Disk, 15);
        assert!(few.contains("memory_megabytes: expected 16 or more, found 15"), "{few}");
        let folder = tempfile::tempdir().expect("a folder");
        for (kind, memory_megabytes) in
            [(StoreKind::Memory, None), (StoreKind::Disk, None), (StoreKind::Disk, Some(16))]
        {
            StoreChoice { kind, memory_megabytes }.open(folder.path()).expect("it makes sense");
        }
    }
}
