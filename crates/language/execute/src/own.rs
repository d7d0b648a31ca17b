//! Rows that the transaction has written itself.

use rustc_hash::FxHashMap;
use state::RowId;
use types::{ColumnSet, Key, Row, TableId};

/// Up to this many rows a look through all of them is quicker than a hash.
const LINEAR_MAX: usize = 16;

/// What a scan, a read, and a command with its row take, without their keys and the row's values.
pub(super) const SCAN_BYTES: u64 = 256;
pub(super) const READ_BYTES: u64 = 32;
pub(super) const COMMAND_BYTES: u64 = 384;

/// What a key takes.
pub(super) fn key_space(key: &Key) -> u64 {
    32 + key.as_bytes().len() as u64
}

/// What a row and its entry in the index count for where memory is limited: the same on every machine.
const COPY_BYTES: u64 = 256;
const _: () = assert!((size_of::<OwnRow>() + size_of::<RowId>()) as u64 <= COPY_BYTES);

/// A row that a command of this transaction has touched.
#[derive(Clone)]
pub(super) struct OwnRow {
    /// Which.
    pub row: RowId,
    /// As it stands now.
    pub value: Option<Row>,
    /// What its commands used.
    pub uses: ColumnSet,
    /// What its commands wrote, each having matched.
    pub written: ColumnSet,
    /// How many of them have matched.
    pub changes: u32,
}

/// The rows in the order in which they were touched first.
#[derive(Clone, Default)]
pub(super) struct OwnRows {
    rows: Vec<OwnRow>,
    index: FxHashMap<RowId, usize>,
}

impl OwnRows {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn position(&self, table: TableId, key: &Key) -> Option<usize> {
        if self.rows.len() <= LINEAR_MAX {
            return self.rows.iter().position(|own| own.row.key == *key && own.row.table == table);
        }
        self.index.get(&RowId { table, key: key.clone() }).copied()
    }

    pub fn get(&self, position: usize) -> &OwnRow {
        &self.rows[position]
    }

    pub fn get_mut(&mut self, position: usize) -> &mut OwnRow {
        &mut self.rows[position]
    }

    /// What a copy of them takes, which shares the rows' values.
    pub fn copy_bytes(&self) -> u64 {
        self.rows.len() as u64 * COPY_BYTES
    }

    pub fn push(&mut self, own: OwnRow) {
        if self.rows.len() == LINEAR_MAX {
            let rows = self.rows.iter().enumerate();
            self.index = rows.map(|(position, own)| (own.row.clone(), position)).collect();
        }
        if self.rows.len() >= LINEAR_MAX {
            self.index.insert(own.row.clone(), self.rows.len());
        }
        self.rows.push(own);
    }

    /// Positions of the table's rows inside of `range`, in key order.
    pub fn in_range(&self, table: TableId, range: &state::KeyRange) -> Vec<usize> {
        let inside = |own: &OwnRow| own.row.table == table && range.contains(&own.row.key);
        let mut found: Vec<usize> =
            (0..self.rows.len()).filter(|position| inside(&self.rows[*position])).collect();
        found.sort_by(|a, b| self.rows[*a].row.key.cmp(&self.rows[*b].row.key));
        found
    }
}

/// The columns of `columns` that are not in `written`. The bit that far columns share is never taken away.
pub fn without(columns: ColumnSet, written: ColumnSet) -> ColumnSet {
    const LAST: usize = ColumnSet::WIDTH - 1;
    let mut rest = ColumnSet::EMPTY;
    for bit in columns.bits() {
        let single = match bit.checked_sub(1) {
            None => ColumnSet::EXISTS,
            Some(ordinal) => ColumnSet::column(ordinal),
        };
        if bit == LAST || !written.intersects(single) {
            rest |= single;
        }
    }
    rest
}
