//! The groups of one table, from rows that somebody else has: a copy of the table is right where they have the leaves that the
//! tree has.

use crate::growing::Growing;
use crate::row_hashes::{READ_ROWS, hash_on_all_threads};
use crypto::Digest;
use proofs::state::TreeShape;
use types::{Key, Row, TableId};

/// A group that was made of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HashedGroup {
    /// Key of its first row.
    pub first: Key,
    /// How many rows it has.
    pub rows: u32,
    /// Its leaf.
    pub leaf: Digest,
}

/// Takes the rows of a table in the order of their keys, and gives its groups. Memory: a few thousand rows.
pub struct TableHashing {
    growing: Growing<'static>,
    rows: Vec<(Key, Row)>,
}

impl TableHashing {
    /// `shape`: the one that holds where the rows are from.
    pub fn new(shape: TreeShape, table: TableId) -> TableHashing {
        TableHashing { growing: Growing::new(shape, table, None), rows: Vec::new() }
    }

    /// The next row. Gives the groups that have ended, now and then.
    pub fn add(&mut self, key: Key, row: Row) -> Vec<HashedGroup> {
        self.rows.push((key, row));
        if self.rows.len() < READ_ROWS {
            return Vec::new();
        }
        self.hash();
        self.take()
    }

    /// There are no more rows: gives the last groups.
    pub fn finish(mut self) -> Vec<HashedGroup> {
        self.hash();
        self.growing.end();
        self.take()
    }

    fn hash(&mut self) {
        hash_on_all_threads(&mut self.rows).for_each(|row| self.growing.row(row));
    }

    fn take(&mut self) -> Vec<HashedGroup> {
        let made = self.growing.take_made();
        made.map(|(first, head)| HashedGroup { first, rows: head.rows, leaf: head.leaf }).collect()
    }
}
