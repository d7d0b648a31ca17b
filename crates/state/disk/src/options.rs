//! Where a store has its rows, and what its parts may use of its memory.

/// Memory for blocks of files where all rows are in memory, in bytes.
pub(crate) const RESIDENT_BLOCKS: u64 = 8 << 20;

/// Where rows are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RowsIn {
    /// In memory, all of them.
    Memory,
    /// On the disk, but for the newest ones and those that are often read.
    #[default]
    Disk,
}

/// How much memory a store may use, and when it writes.
#[derive(Clone, Copy, Debug)]
pub struct DiskOptions {
    /// Where rows are read.
    pub rows_in: RowsIn,
    /// Of a store with rows on the disk: memory for rows, for blocks of files and for what waits to be written; indexes and
    /// filters of files come on top.
    pub memory_bytes: u64,
}

impl Default for DiskOptions {
    fn default() -> DiskOptions {
        DiskOptions { rows_in: RowsIn::Disk, memory_bytes: 256 << 20 }
    }
}

/// What its parts may use of the memory of a store, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Decoded rows that were read.
    pub(crate) rows: u64,
    /// Blocks of files as they are on the disk.
    pub(crate) blocks: u64,
    /// Rows of ranges of the tree, as they were hashed.
    pub(crate) range_rows: u64,
    /// What batches have written since the last durable point. While that is written out there may be as much again, twice.
    pub(crate) newest: u64,
}

impl Budget {
    /// Of a store that has all rows in memory, and all of them as they were hashed.
    pub(crate) const IN_MEMORY: Budget =
        Budget { rows: 0, blocks: RESIDENT_BLOCKS, range_rows: 1 << 48, newest: 16 << 20 };

    pub(crate) fn of(options: DiskOptions) -> Budget {
        let bytes = options.memory_bytes;
        match options.rows_in {
            RowsIn::Memory => Budget::IN_MEMORY,
            RowsIn::Disk => {
                Budget { rows: bytes / 2, blocks: bytes / 8, range_rows: bytes / 8, newest: bytes / 12 }
            }
        }
    }
}
