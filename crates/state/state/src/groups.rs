//! Rows gathered into ranges, and ranges into groups: the leaves of the tree over all tables.

use crate::tree::hash_rows;
use crypto::{Digest, merkle_root};
use proofs::state::TreeShape;
use types::{Key, Row, TableId};

/// Gathers the rows of a table, which come by key, into groups.
pub(crate) struct Gathering {
    shape: TreeShape,
    group: OpenGroup,
}

/// The ranges since the last end of a group, and the rows since the last end of a range.
#[derive(Default)]
struct OpenGroup {
    first: Key,
    place: u64,
    /// Leaves of the ranges that have ended, how many rows they have, and their bytes.
    ranges: Vec<Digest>,
    rows: usize,
    bytes: usize,
    open: OpenRange,
}

/// The rows since the last end of a range.
#[derive(Default)]
struct OpenRange {
    first: Key,
    leaves: Vec<Digest>,
    bytes: usize,
}

/// A group that has ended.
pub(crate) struct Group {
    /// Key of its first row, and where that stands.
    pub(crate) first: Key,
    pub(crate) place: u64,
    /// How many rows.
    pub(crate) rows: usize,
    pub(crate) leaf: Digest,
}

impl Gathering {
    pub(crate) fn new(shape: TreeShape) -> Gathering {
        Gathering { shape, group: OpenGroup::default() }
    }

    /// The next row of a table. `place`: where it stands. The group that ends behind it, if one does.
    pub(crate) fn add(
        &mut self,
        table: TableId,
        key: Key,
        (leaf, bytes): (Digest, usize),
        place: u64,
    ) -> Option<Group> {
        let (shape, group) = (self.shape, &mut self.group);
        if group.open.leaves.is_empty() {
            if group.ranges.is_empty() {
                (group.first, group.place) = (key.clone(), place);
            }
            group.open.first = key;
        }
        group.open.leaves.push(leaf);
        group.open.bytes += bytes;
        if !shape.ends_range(&leaf, group.open.leaves.len(), group.open.bytes) {
            return None;
        }
        let range = group.end_range(shape, table)?;
        match shape.ends_group(&range, group.ranges.len(), group.rows, group.bytes) {
            true => self.end(table),
            false => None,
        }
    }

    /// Ends the group where the table ends; nothing where no row has come since the last one.
    pub(crate) fn end(&mut self, table: TableId) -> Option<Group> {
        self.group.end_range(self.shape, table);
        let OpenGroup { first, place, ranges, rows, .. } = std::mem::take(&mut self.group);
        let leaf = (!ranges.is_empty()).then(|| self.shape.group_leaf(table, &first, &ranges))?;
        Some(Group { first, place, rows, leaf })
    }
}

impl OpenGroup {
    fn end_range(&mut self, shape: TreeShape, table: TableId) -> Option<Digest> {
        let OpenRange { first, leaves, bytes } = std::mem::take(&mut self.open);
        let leaf = (!leaves.is_empty()).then(|| shape.range_leaf(table, &first, &merkle_root(&leaves)))?;
        self.ranges.push(leaf);
        self.rows += leaves.len();
        self.bytes += bytes;
        Some(leaf)
    }
}

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
