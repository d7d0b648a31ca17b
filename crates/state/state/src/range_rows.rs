//! Leaves of rows as they were hashed last, range by range, in memory: where a row changes, that row is hashed again and no other
//! one of its range is read.

use crate::row_hashes::HashedRow;
use crypto::Digest;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::hash::Hash;
use std::sync::Arc;
use types::{Key, TableId};

/// Bytes of a row in front of its key: length of the key, bytes of the row, its leaf.
const HEAD: usize = 4 + 4 + 32;
/// Bytes that a range takes beside its rows.
const RANGE_BYTES: u64 = 120;
/// Ranges that are expected at most: room for more is made when they come.
const RANGES_EXPECTED_MAX: u64 = 1 << 16;

/// Rows of ranges of a tree, as many as there is room for: about fifty bytes each. They are those of the version that the tree
/// was brought up to last.
pub struct RangeRows {
    ranges: Cache<(TableId, Key), Arc<[u8]>, Weight>,
}

#[derive(Clone)]
struct Weight;

impl Weighter<(TableId, Key), Arc<[u8]>> for Weight {
    fn weight(&self, _: &(TableId, Key), rows: &Arc<[u8]>) -> u64 {
        RANGE_BYTES + rows.len() as u64
    }
}

#[derive(Hash)]
struct Asked<'a>(TableId, &'a Key);

impl equivalent::Equivalent<(TableId, Key)> for Asked<'_> {
    fn equivalent(&self, (table, first): &(TableId, Key)) -> bool {
        self.0 == *table && *self.1 == *first
    }
}

impl RangeRows {
    /// None yet, and at most so many bytes.
    pub fn new(bytes: u64) -> RangeRows {
        let ranges = (bytes / (16 * RANGE_BYTES)).clamp(16, RANGES_EXPECTED_MAX) as usize;
        RangeRows { ranges: Cache::with_weighter(ranges, bytes, Weight) }
    }

    /// Takes the rows of the range with this first key, if they are here.
    pub(crate) fn take(&self, table: TableId, first: &Key) -> Option<Vec<HashedRow>> {
        let (_, rows) = self.ranges.remove(&Asked(table, first))?;
        Some(unpacked(&rows))
    }

    /// A table that has gone.
    pub(crate) fn forget(&self, table: TableId) {
        self.ranges.retain(|(of, _), _| *of != table);
    }

    /// The rows of a range as it is from now on.
    pub(crate) fn put(&self, table: TableId, rows: &[HashedRow]) {
        if let Some(first) = rows.first() {
            self.ranges.insert((table, first.key.clone()), packed(rows));
        }
    }
}

fn packed(rows: &[HashedRow]) -> Arc<[u8]> {
    let bytes = rows.iter().map(|row| HEAD + row.key.as_bytes().len()).sum();
    let mut packed = Vec::with_capacity(bytes);
    for HashedRow { key, leaf, bytes } in rows {
        let key = key.as_bytes();
        packed.extend_from_slice(&(key.len() as u32).to_le_bytes());
        packed.extend_from_slice(&(*bytes as u32).to_le_bytes());
        packed.extend_from_slice(&leaf.0);
        packed.extend_from_slice(key);
    }
    packed.into()
}

fn unpacked(mut packed: &[u8]) -> Vec<HashedRow> {
    let mut rows = Vec::with_capacity(packed.len() / (HEAD + 8));
    while let Some((head, rest)) = packed.split_first_chunk::<HEAD>() {
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let mut leaf = [0; 32];
        leaf.copy_from_slice(&head[8..]);
        let (key, rest) = rest.split_at(number(0));
        rows.push(HashedRow { key: Key::from_bytes(key), leaf: Digest(leaf), bytes: number(4) });
        packed = rest;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Value;

    fn row(number: i64, text: &str) -> HashedRow {
        let key = Key::encode([&Value::BigInt(number), &Value::text(text)]).expect("a key");
        HashedRow { key, leaf: Digest([number as u8; 32]), bytes: text.len() * 1_000 }
    }

    #[test]
    fn rows_come_back_once_as_they_were_put() {
        let ranges = RangeRows::new(1 << 20);
        let rows: Vec<HashedRow> = (0..100).map(|number| row(number, &"x".repeat(number as usize))).collect();
        ranges.put(TableId(1), &rows);
        ranges.put(TableId(2), &rows[3..4]);
        ranges.put(TableId(3), &[]);
        assert!(ranges.take(TableId(3), &rows[0].key).is_none());
        assert!(ranges.take(TableId(1), &rows[1].key).is_none());
        assert_eq!(ranges.take(TableId(1), &rows[0].key), Some(rows));
        assert_eq!(ranges.take(TableId(1), &row(0, "").key), None);
        assert_eq!(ranges.take(TableId(2), &row(3, "xxx").key).map(|rows| rows.len()), Some(1));
        (1..4).for_each(|table| ranges.put(TableId(table), &[row(7, "x")]));
        ranges.forget(TableId(2));
        let left = (1..4).map(|table| ranges.take(TableId(table), &row(7, "x").key).is_some());
        assert_eq!(left.collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn they_stay_within_their_bytes() {
        let ranges = RangeRows::new(100_000);
        (0..10_000).for_each(|number| ranges.put(TableId(1), &[row(number, "x")]));
        let kept = (0..10_000).filter(|number| ranges.take(TableId(1), &row(*number, "x").key).is_some());
        assert!((100..900).contains(&kept.count()));
    }
}
