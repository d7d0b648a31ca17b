//! Indexes: the rows that were inserted under a key, in the order of their commits.

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

/// An index of an engine.
#[derive(Debug, Default)]
pub(crate) struct Index(RwLock<FxHashMap<u64, Vec<u32>>>);

impl Index {
    pub(crate) fn add(&self, key: u64, row: u32) {
        self.0.write().entry(key).or_default().push(row);
    }

    /// Looks at the rows that somebody sees for whom the table has `rows_seen` rows.
    pub(crate) fn look<T>(&self, key: u64, rows_seen: u32, with: impl FnOnce(&[u32]) -> T) -> T {
        let map = self.0.read();
        let rows = map.get(&key).map_or(&[][..], Vec::as_slice);
        // Rows are added in ascending order.
        with(&rows[..rows.partition_point(|row| *row < rows_seen)])
    }
}
