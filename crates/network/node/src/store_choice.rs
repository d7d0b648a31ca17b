//! Which store keeps the state, where nothing else is given: each node chooses for itself, and all come to the same.

use crate::NodeError;
use crate::process_memory::limit_bytes;
use disk::{Disk, DiskOptions, RowsIn};
use serde::{Deserialize, Serialize};
use state::Stores;
use std::path::Path;
use std::sync::Arc;

/// What a store on the disk may use where nothing is said, in units of 1,048,576 bytes.
pub const MEMORY_MEGABYTES: u64 = 256;
/// With less, batches would wait for the disk all the time.
pub const MEMORY_MEGABYTES_MIN: u64 = 16;

/// What copies of tables in columns may have where nothing is said, in units of 1,048,576 bytes, and at most.
const COLUMN_MEGABYTES: u64 = 1_024;
/// That is at most such a part of what the process may have.
const COLUMN_PART: u64 = 8;

/// No row takes less in memory, however short it is: key, value, place in the tree of its table, leaf.
const BYTES_PER_ROW_MIN: u64 = 200;

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
        let limit = limit_bytes();
        self.check_limit(limit)?;
        let rows_in = match self.kind {
            StoreKind::Memory => RowsIn::Memory,
            StoreKind::Disk => RowsIn::Disk,
        };
        let memory_bytes = self.memory_megabytes.unwrap_or(MEMORY_MEGABYTES) << 20;
        let stores = Disk::open(folder, DiskOptions { rows_in, memory_bytes })?;
        if let (StoreKind::Memory, Some(limit)) = (self.kind, limit) {
            check_rows(stores.rows_left()?, limit)?;
        }
        Ok(Arc::new(stores))
    }

    /// Whether a store on the disk may use so much of what this process may have.
    pub(crate) fn check_limit(self, limit: Option<u64>) -> Result<(), NodeError> {
        let (StoreKind::Disk, Some(limit)) = (self.kind, limit) else { return Ok(()) };
        let (asked, found) = (self.memory_megabytes.unwrap_or(MEMORY_MEGABYTES), limit >> 20);
        match asked.saturating_mul(2) > found {
            true => Err(NodeError::Options(format!(
                "memory_megabytes: expected at most half of what this process may have, which is {found}, found {asked}: blocks, \
                 queries and indexes of files need memory too; set memory_megabytes in node.toml, or allow the process more"
            ))),
            false => Ok(()),
        }
    }
}

/// Bytes that copies of tables in columns may have, of a node whose `node.toml` says so or nothing.
pub(crate) fn column_bytes(megabytes: Option<u64>) -> u64 {
    column_bytes_of(megabytes, limit_bytes())
}

fn column_bytes_of(megabytes: Option<u64>, limit: Option<u64>) -> u64 {
    let usual = limit.map_or(u64::MAX, |limit| limit / COLUMN_PART).min(COLUMN_MEGABYTES << 20);
    megabytes.map_or(usual, |megabytes| megabytes.saturating_mul(1 << 20))
}

/// Whether so many rows can be in memory, with everything that belongs to them.
fn check_rows(rows: u64, limit: u64) -> Result<(), NodeError> {
    let needed = rows.saturating_mul(BYTES_PER_ROW_MIN);
    match needed > limit {
        true => Err(NodeError::Options(format!(
            "store = \"memory\": {rows} rows take {} MB or more, and this process may have {}: run `entente convert-store` with \
             `--store disk`, or allow the process more",
            needed >> 20,
            limit >> 20
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_take_a_small_part_of_what_the_process_may_have() {
        assert_eq!(column_bytes_of(None, None), 1_024 << 20);
        assert_eq!(column_bytes_of(None, Some(750 << 20)), (750 << 20) / 8);
        assert_eq!(column_bytes_of(None, Some(64 << 30)), 1_024 << 20);
        assert_eq!(column_bytes_of(Some(2), Some(64 << 20)), 2 << 20);
        assert_eq!(column_bytes_of(Some(0), None), 0);
    }

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

    #[test]
    fn who_needs_more_memory_than_there_may_be_hears_of_it_at_once() {
        let of = |kind, memory_megabytes| StoreChoice { kind, memory_megabytes };
        let limit = Some(600 << 20);
        of(StoreKind::Disk, Some(300)).check_limit(limit).expect("half of it");
        of(StoreKind::Disk, Some(4_096)).check_limit(None).expect("the system does not tell");
        of(StoreKind::Memory, None).check_limit(Some(1)).expect("rows are counted");
        let much = of(StoreKind::Disk, Some(301)).check_limit(limit).expect_err("more than half");
        assert!(
            much.to_string().contains("at most half of what this process may have, which is 600, found 301")
        );
        let unsaid = of(StoreKind::Disk, None).check_limit(Some(500 << 20)).expect_err("more than half");
        assert!(unsaid.to_string().contains("found 256"), "{unsaid}");
        check_rows(3_000_000, 600 << 20).expect("they fit");
        let many = check_rows(30_000_000, 600 << 20).expect_err("they do not fit").to_string();
        assert!(many.contains("30000000 rows take 5722 MB or more, and this process may have 600"), "{many}");
    }
}
