//! Where the values of a column are: one file per kind, behind [`ColumnStorage`].

mod chunks;
mod in_place;
mod rewired;

pub(crate) use chunks::Chunks;
pub(crate) use in_place::InPlace;
pub(crate) use rewired::RewiredColumn;

use crate::system::Storage;
use virtual_memory::{Area, MemoryError};

/// Rows of a block: what scans read at once, and versions are kept by (2.6.1, after HyPer).
pub const BLOCK_ROWS: usize = 1_024;

/// The newest values of a column, and snapshots of them.
///
/// Any thread may read at any time. One thread writes at a time, and none while a snapshot is made; [`crate::Engine`] sees to it.
pub trait ColumnStorage: Send + Sync + std::fmt::Debug {
    /// The newest value of a row.
    fn get(&self, row: usize) -> i64;

    /// Sees to it that no snapshot has the place of a row, so that [`ColumnStorage::set`] cannot fail.
    ///
    /// # Errors
    /// The system gives no memory or no mapping; no value has changed.
    fn prepare(&self, row: usize) -> Result<(), MemoryError>;

    /// Writes a place that was prepared since the last snapshot.
    fn set(&self, row: usize, value: i64);

    /// The first rows as they are now.
    ///
    /// # Errors
    /// The system gives no memory or no mapping.
    fn snapshot(&self, rows: usize) -> Result<Box<dyn FrozenColumn>, MemoryError>;

    /// The memory that a forked process shares; `None` where a fork makes no snapshot.
    fn area(&self) -> Option<&Area> {
        None
    }
}

/// Values of a column that do not change any more.
pub trait FrozenColumn: Send + Sync + std::fmt::Debug {
    /// The values of a block; fewer than [`BLOCK_ROWS`] in the last one, none behind it.
    fn block(&self, block: usize) -> &[i64];
}

/// A column with so many places.
pub(crate) fn column(storage: Storage, rows_max: usize) -> Result<Box<dyn ColumnStorage>, MemoryError> {
    Ok(match storage {
        Storage::Columns => Box::new(Chunks::new(rows_max)),
        Storage::Rewire => Box::new(RewiredColumn::new(rows_max)?),
        Storage::Copy | Storage::Fork | Storage::See => Box::new(InPlace::new(rows_max)?),
    })
}

/// The part of all values that is a block.
fn block_of(values: &[i64], block: usize) -> &[i64] {
    let from = (block * BLOCK_ROWS).min(values.len());
    &values[from..(from + BLOCK_ROWS).min(values.len())]
}

#[derive(Debug)]
struct Copied(Vec<i64>);

impl FrozenColumn for Copied {
    fn block(&self, block: usize) -> &[i64] {
        block_of(&self.0, block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_of_every_kind_stay_as_they_were() {
        for storage in [Storage::Columns, Storage::Copy, Storage::Rewire] {
            let column = column(storage, 30_000).expect("memory");
            let write = |row: usize, value| {
                column.prepare(row).expect("memory");
                column.set(row, value);
            };
            (0..20_000).for_each(|row| write(row, row as i64));
            let snapshot = column.snapshot(20_000).expect("a snapshot");
            write(0, -1);
            write(19_999, -2);
            write(20_000, -3);
            let later = column.snapshot(20_001).expect("a snapshot");
            write(0, -4);
            let all = |frozen: &dyn FrozenColumn| -> Vec<i64> {
                (0..30).flat_map(|block| frozen.block(block).to_vec()).collect()
            };
            let first = all(&*snapshot);
            assert_eq!(first, (0..20_000).collect::<Vec<i64>>(), "{storage:?}");
            let second = all(&*later);
            assert_eq!((second.len(), second[0], second[19_999], second[20_000]), (20_001, -1, -2, -3));
            assert_eq!((column.get(0), column.get(1), column.get(20_000)), (-4, 1, -3), "{storage:?}");
            assert!(all(&*column.snapshot(0).expect("nothing")).is_empty());
        }
    }
}
