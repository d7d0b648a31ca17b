//! Groups of one table that are being made, from rows and from ranges, and what is recorded of those that are made.

use crate::RangeRows;
use crate::row_hashes::HashedRow;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, merkle_root};
use proofs::state::TreeShape;
use types::{Key, TableId};

/// What is kept of a range.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct RangeRecord {
    /// Key of its first row.
    pub first: Key,
    /// How many rows it has.
    pub rows: u32,
    /// Bytes of these rows.
    pub bytes: u32,
    /// Its leaf.
    pub leaf: Digest,
}

/// What is kept of a group: its ranges, in order, at least one.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct GroupRecord {
    /// Its ranges.
    pub ranges: Vec<RangeRecord>,
}

/// A group as the tree over all tables has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupHead {
    /// How many rows it has.
    pub rows: u32,
    /// Its leaf.
    pub leaf: Digest,
}

impl GroupRecord {
    /// The group as the tree over all tables has it; nothing where it has no ranges, which no group that was made here lacks.
    pub fn head(&self, shape: TreeShape, table: TableId) -> Option<GroupHead> {
        let leaves: Vec<Digest> = self.ranges.iter().map(|range| range.leaf).collect();
        let first = &self.ranges.first()?.first;
        let rows = self.ranges.iter().map(|range| range.rows).fold(0, u32::saturating_add);
        Some(GroupHead { rows, leaf: shape.group_leaf(table, first, &leaves) })
    }
}

/// Groups of a table that are being made, from rows and from ranges, in order.
pub(crate) struct Growing<'a> {
    shape: TreeShape,
    table: TableId,
    /// Gets the rows of ranges that are made of rows.
    kept: Option<&'a RangeRows>,
    range: Option<OpenRange>,
    /// Ranges since the last end of a group.
    ranges: Vec<RangeRecord>,
    made: Vec<GroupRecord>,
}

/// The rows since the last end of a range, at least one.
#[derive(Default)]
struct OpenRange {
    rows: Vec<HashedRow>,
    bytes: usize,
}

impl<'a> Growing<'a> {
    /// No rows yet.
    pub(crate) fn new(shape: TreeShape, table: TableId, kept: Option<&'a RangeRows>) -> Growing<'a> {
        Growing { shape, table, kept, range: None, ranges: Vec::new(), made: Vec::new() }
    }

    /// Takes the groups that have ended: first key, and the rest.
    pub(crate) fn take_made(&mut self) -> impl Iterator<Item = (Key, GroupHead)> + use<> {
        let (shape, table) = (self.shape, self.table);
        std::mem::take(&mut self.made).into_iter().filter_map(move |record| {
            let head = record.head(shape, table)?;
            Some((record.ranges.into_iter().next()?.first, head))
        })
    }

    /// The same with all that is recorded of them.
    pub(crate) fn take_records(&mut self) -> Vec<GroupRecord> {
        std::mem::take(&mut self.made)
    }

    /// No rows have come since the last end of a range.
    pub(crate) fn is_between_ranges(&self) -> bool {
        self.range.is_none()
    }

    /// A group has ended, and none has begun behind it.
    pub(crate) fn is_closed(&self) -> bool {
        self.range.is_none() && self.ranges.is_empty()
    }

    pub(crate) fn row(&mut self, row: HashedRow) {
        let (leaf, open) = (row.leaf, self.range.get_or_insert_default());
        open.bytes += row.bytes;
        open.rows.push(row);
        if self.shape.ends_range(&leaf, open.rows.len(), open.bytes) {
            self.end_range();
        }
    }

    fn end_range(&mut self) {
        let Some(OpenRange { rows, bytes }) = self.range.take() else { return };
        let leaves: Vec<Digest> = rows.iter().map(|row| row.leaf).collect();
        let first = rows[0].key.clone();
        if let Some(kept) = self.kept {
            kept.put(self.table, &rows);
        }
        let leaf = self.shape.range_leaf(self.table, &first, &merkle_root(&leaves));
        self.range(RangeRecord { first, rows: rows.len() as u32, bytes: bytes as u32, leaf });
    }

    pub(crate) fn range(&mut self, range: RangeRecord) {
        let leaf = range.leaf;
        self.ranges.push(range);
        let rows = self.ranges.iter().map(|range| range.rows as usize).sum();
        let bytes = self.ranges.iter().map(|range| range.bytes as usize).sum();
        if self.shape.ends_group(&leaf, self.ranges.len(), rows, bytes) {
            self.end_group();
        }
    }

    fn end_group(&mut self) {
        if !self.ranges.is_empty() {
            self.made.push(GroupRecord { ranges: std::mem::take(&mut self.ranges) });
        }
    }

    /// There are no more rows.
    pub(crate) fn end(&mut self) {
        self.end_range();
        self.end_group();
    }
}
