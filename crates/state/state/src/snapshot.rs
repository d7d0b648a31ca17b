use crate::{ColumnBatch, ReadColumns, RowId, StoreError};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, Key, Row, Table, TableId};

/// An interval of primary keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    /// Where it begins.
    pub start: Bound<Key>,
    /// Where it ends.
    pub end: Bound<Key>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: KeyRange = KeyRange { start: Bound::Unbounded, end: Bound::Unbounded };

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: Key) -> KeyRange {
        let end = prefix.after_prefix().map_or(Bound::Unbounded, Bound::Excluded);
        KeyRange { start: Bound::Included(prefix), end }
    }

    /// The rows of a table with these keys.
    pub fn of_table(&self, table: TableId) -> (Bound<RowId>, Bound<RowId>) {
        let bound = |bound: &Bound<Key>, open: Bound<RowId>| match bound {
            Bound::Included(key) => Bound::Included(RowId { table, key: key.clone() }),
            Bound::Excluded(key) => Bound::Excluded(RowId { table, key: key.clone() }),
            Bound::Unbounded => open,
        };
        let first = Bound::Included(RowId { table, key: Key::default() });
        let last = match table.0.checked_add(1) {
            Some(next) => Bound::Excluded(RowId { table: TableId(next), key: Key::default() }),
            None => Bound::Unbounded,
        };
        (bound(&self.start, first), bound(&self.end, last))
    }

    /// Whether the interval holds `key`.
    pub fn contains(&self, key: &Key) -> bool {
        let after_start = match &self.start {
            Bound::Included(start) => key >= start,
            Bound::Excluded(start) => key > start,
            Bound::Unbounded => true,
        };
        after_start
            && match &self.end {
                Bound::Included(end) => key <= end,
                Bound::Excluded(end) => key < end,
                Bound::Unbounded => true,
            }
    }

    /// Whether a key may be in both.
    pub fn meets(&self, other: &KeyRange) -> bool {
        let before = |end: &Bound<Key>, start: &Bound<Key>| match (end, start) {
            (Bound::Included(end), Bound::Included(start)) => end < start,
            (
                Bound::Included(end) | Bound::Excluded(end),
                Bound::Included(start) | Bound::Excluded(start),
            ) => end <= start,
            _ => false,
        };
        !before(&self.end, &other.start) && !before(&other.end, &self.start)
    }

    /// True where no key can be inside, so that nobody asks an ordered map for a range it would panic on.
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (
                Bound::Included(start) | Bound::Excluded(start),
                Bound::Included(end) | Bound::Excluded(end),
            ) => start >= end,
            _ => false,
        }
    }

    /// The bounds, borrowed, for `BTreeMap::range`.
    pub fn bounds(&self) -> (Bound<&Key>, Bound<&Key>) {
        (self.start.as_ref(), self.end.as_ref())
    }
}

/// Why there is no state of another height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastError {
    /// Nobody can ask for one here: what runs on this snapshot must come to the same on every node.
    Nowhere,
    /// Nothing of the kind is kept.
    Nothing,
    /// It cannot be read.
    Unreadable,
    /// The block has not been applied.
    NotYet {
        /// The first height that is kept.
        oldest: u64,
        /// The last one.
        newest: u64,
    },
    /// It was kept, or never.
    NoMore {
        /// The first height that is kept.
        oldest: u64,
        /// The last one.
        newest: u64,
    },
}

/// A change of a row by a transaction, as its history tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct PastChange {
    /// Height of the transaction's block.
    pub height: u64,
    /// Position of the transaction in it.
    pub index: u32,
    /// Its id, as hexadecimal text.
    pub transaction: String,
    /// The organisation whose client signed it.
    pub organisation: String,
    /// The role that it ran as; empty: the organisation's administrator.
    pub role: String,
    /// The row was there before.
    pub existed: bool,
    /// The row's values behind it; `None`: it is gone.
    pub value: Option<Row>,
}

/// The state at one point of the ledger; it does not change while somebody holds it.
pub trait Snapshot: Send + Sync {
    /// Tables and procedures at this point.
    fn catalog(&self) -> &Arc<Catalog>;

    /// The row with this primary key.
    ///
    /// # Errors
    /// The store cannot read it. That is no answer: whoever asked stops, and so does the node.
    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError>;

    /// The rows with these primary keys, in their order: for who knows before what it will read, so that a store can fetch them
    /// together.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        rows.iter().map(|row| self.get(row.table, &row.key)).collect()
    }

    /// Visits the rows of an interval in key order (backwards if `reverse`), until `visit` breaks.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; some rows may have been visited.
    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Visits the rows of several intervals, which ascend and do not meet, each in key order and with the number of its interval: for
    /// who knows before where it will read, so that a store can read them together.
    ///
    /// # Errors
    /// As [`Snapshot::scan`].
    fn scan_many(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        visit: &mut dyn FnMut(usize, Key, Row),
    ) -> Result<(), StoreError> {
        ranges.iter().enumerate().try_for_each(|(number, range)| {
            self.scan(table, range, false, &mut |key, row| {
                visit(number, key.clone(), row.clone());
                ControlFlow::Continue(())
            })
        })
    }

    /// About how many rows a table has, where that is known: it may count those that have come or gone since.
    fn about_rows(&self, table: TableId) -> Option<u64> {
        let _ = table;
        None
    }

    /// The values of these columns of all rows of a table, in batches, with the rows in any order. `None`: nobody keeps columns
    /// here, or not of such a table; whoever asked reads rows.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        let _ = (table, ordinals);
        Ok(None)
    }

    /// The same columns, made of the rows as they are read: for tables that have no room in columns and for versions whose columns
    /// have gone. `None`: they cannot be made here.
    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        let _ = (table, ordinals);
        None
    }

    /// The state after the block at `height`, where that is kept beside this one.
    ///
    /// # Errors
    /// Why it is not there.
    fn at_height(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        let _ = height;
        Err(PastError::Nowhere)
    }

    /// The changes of a row, the oldest first, where they are kept.
    ///
    /// # Errors
    /// Why they are not there.
    fn row_history(&self, table: TableId, key: &Key) -> Result<Vec<PastChange>, PastError> {
        let _ = (table, key);
        Err(PastError::Nowhere)
    }
}
