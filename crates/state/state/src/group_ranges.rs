//! The ranges of one group, whose rows are read again: for proofs of rows, and for pieces that somebody else has sent.

use crate::row_hashes::hash_rows;
use crypto::{Digest, merkle_root};
use proofs::state::TreeShape;
use types::{Key, Row, TableId};

/// The ranges of a group, whose rows are read again.
pub(crate) struct GroupRanges {
    shape: TreeShape,
    table: TableId,
    /// Of each range, the key of its first row and leaves of all of its rows.
    ranges: Vec<(Key, Vec<Digest>)>,
}

/// Where a row stands in a group.
pub(crate) struct PlaceInGroup<'a> {
    /// Key of the first row of its range, the range's rows, and which one of them it is.
    pub(crate) first: &'a Key,
    pub(crate) rows: &'a [Digest],
    pub(crate) row: usize,
    /// Which one of the ranges that is.
    pub(crate) range: usize,
}

impl GroupRanges {
    pub(crate) fn new(shape: TreeShape, table: TableId, rows: &[(Key, Row)]) -> GroupRanges {
        let mut ranges: Vec<(Key, Vec<Digest>)> = Vec::new();
        let (mut bytes, mut is_open) = (0, false);
        for ((key, _), (leaf, length)) in rows.iter().zip(hash_rows(rows)) {
            if !is_open {
                ranges.push((key.clone(), Vec::new()));
                bytes = 0;
            }
            bytes += length;
            let leaves = ranges.last_mut().map(|(_, leaves)| {
                leaves.push(leaf);
                leaves.len()
            });
            is_open = !shape.ends_range(&leaf, leaves.unwrap_or_default(), bytes);
        }
        GroupRanges { shape, table, ranges }
    }

    /// Leaves of the ranges.
    pub(crate) fn leaves(&self) -> Vec<Digest> {
        let leaf = |(first, leaves): &(Key, Vec<Digest>)| {
            self.shape.range_leaf(self.table, first, &merkle_root(leaves))
        };
        self.ranges.iter().map(leaf).collect()
    }

    /// Leaf of the group.
    pub(crate) fn leaf(&self) -> Digest {
        let first = self.ranges.first().map(|(first, _)| first.clone()).unwrap_or_default();
        self.shape.group_leaf(self.table, &first, &self.leaves())
    }

    /// What its leaf is made of beside table and first key: root over the ranges; over the rows, where ranges stand alone.
    pub(crate) fn content(&self) -> (Key, Digest) {
        let (first, rows) = self.ranges.first().cloned().unwrap_or_default();
        let content = match self.shape {
            TreeShape::Ranges => merkle_root(&rows),
            TreeShape::Groups => merkle_root(&self.leaves()),
        };
        (first, content)
    }

    /// Where the row of this number stands.
    pub(crate) fn place(&self, row: usize) -> Option<PlaceInGroup<'_>> {
        let mut before = 0;
        for (range, (first, rows)) in self.ranges.iter().enumerate() {
            if row < before + rows.len() {
                return Some(PlaceInGroup { first, rows, row: row - before, range });
            }
            before += rows.len();
        }
        None
    }
}
