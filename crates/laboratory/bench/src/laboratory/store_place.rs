//! Where the rows of a timed point are.

use crate::chain::EngineBenchError;
use disk::{Disk, DiskOptions, RowsIn};
use memory::Memory;
use serde::Deserialize;
use state::Stores;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file system in memory, where there is one.
const RAM_DISK: &str = "/dev/shm";

/// Where rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StorePlace {
    /// In memory, and nowhere else.
    #[default]
    Memory,
    /// In files, in the folder for temporary ones.
    Disk,
    /// In files, in a file system that is in memory.
    RamDisk,
}

impl StorePlace {
    /// All of them, as experiments name them.
    pub(super) const NAMES: [&str; 3] = ["memory", "disk", "ram-disk"];

    pub(super) fn name(self) -> &'static str {
        match self {
            StorePlace::Memory => "memory",
            StorePlace::Disk => "disk",
            StorePlace::RamDisk => "ram-disk",
        }
    }

    pub(super) fn has_files(self) -> bool {
        self != StorePlace::Memory
    }

    /// What makes stores there, with the folder that goes afterwards.
    pub(super) fn open(self, megabytes: u64) -> Result<(Box<dyn Stores>, Option<TempDir>), EngineBenchError> {
        let within: PathBuf = match self {
            StorePlace::Memory => return Ok((Box::new(Memory), None)),
            StorePlace::Disk => std::env::temp_dir(),
            StorePlace::RamDisk => Path::new(RAM_DISK).to_path_buf(),
        };
        let folder = tempfile::tempdir_in(within).map_err(EngineBenchError::Folder)?;
        let options = DiskOptions { rows_in: RowsIn::Disk, memory_bytes: megabytes << 20 };
        let disk = Disk::open(folder.path(), options).map_err(engine::EngineError::from)?;
        Ok((Box::new(disk), Some(folder)))
    }
}
