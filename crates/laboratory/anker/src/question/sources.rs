//! Where a question finds the values of its time.

use crate::clock::RowCounts;
use crate::column::Slot;
use crate::engine::Engine;
use crate::storage::{BLOCK_ROWS, FrozenColumn};
use crate::versions::Overlay;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use virtual_memory::{InChild, MemoryError};

/// A table's number and a column's.
pub(super) type Place = (usize, usize);
/// The values of a block.
pub(super) type Buffer = [i64; BLOCK_ROWS];

/// Values of one time.
pub(super) trait Source {
    /// Rows of a table.
    fn rows(&self, table: usize) -> usize;

    /// Columns of a table.
    fn columns(&self, table: usize) -> usize;

    /// The values of a block, in the buffer or elsewhere.
    fn block<'s>(
        &'s self,
        place: Place,
        block: usize,
        buffer: &'s mut Buffer,
    ) -> Result<&'s [i64], MemoryError>;
}

/// A column of a snapshot.
#[derive(Debug)]
pub(super) enum SnapshotColumn {
    /// It was asked for with the snapshot, and made before anybody wrote.
    Declared(Arc<Slot>),
    /// It was made when it was first touched, and has newer values. The chains that it took over say which.
    Touched(Box<dyn FrozenColumn>, Overlay),
}

/// Snapshots of columns.
pub(super) struct Snapshots<'a> {
    pub(super) engine: &'a Engine,
    pub(super) rows: RowCounts,
    pub(super) columns: &'a BTreeMap<Place, SnapshotColumn>,
}

/// A column that cannot be written any more.
type Frozen<'a> = (Place, &'a [i64]);

/// The memory of a forked process.
pub(super) struct InFork<'a> {
    engine: &'a Engine,
    rows: RowCounts,
    child: &'a InChild,
    /// The columns that were protected already.
    frozen: RefCell<[Option<Frozen<'a>>; 4]>,
}

/// The newest columns, with the versions that somebody sees who began then.
pub(super) struct Versioned<'a> {
    pub(super) engine: &'a Engine,
    pub(super) rows: RowCounts,
    pub(super) begin: u64,
}

/// The newest columns as they are at the moment.
pub(super) struct Newest<'a> {
    pub(super) engine: &'a Engine,
    pub(super) rows: RowCounts,
}

fn rows_of_block(rows: usize, block: usize) -> usize {
    rows.saturating_sub(block * BLOCK_ROWS).min(BLOCK_ROWS)
}

impl Source for Snapshots<'_> {
    fn rows(&self, table: usize) -> usize {
        self.rows[table] as usize
    }

    fn columns(&self, table: usize) -> usize {
        self.engine.tables[table].columns.len()
    }

    fn block<'s>(
        &'s self,
        place: Place,
        block: usize,
        buffer: &'s mut Buffer,
    ) -> Result<&'s [i64], MemoryError> {
        match &self.columns[&place] {
            SnapshotColumn::Declared(slot) => {
                Ok(slot.frozen().expect("columns are made before they are read")?.block(block))
            }
            SnapshotColumn::Touched(frozen, overlay) => {
                let values = frozen.block(block);
                let Some(other) = overlay.get(&block) else { return Ok(values) };
                let values_then = &mut buffer[..values.len()];
                values_then.copy_from_slice(values);
                for (row, value) in other.iter().filter(|(row, _)| *row < values.len()) {
                    values_then[*row] = *value;
                }
                Ok(values_then)
            }
        }
    }
}

impl<'a> InFork<'a> {
    pub(super) fn new(engine: &'a Engine, rows: RowCounts, child: &'a InChild) -> InFork<'a> {
        InFork { engine, rows, child, frozen: RefCell::new([None; 4]) }
    }

    fn frozen(&self, place: Place) -> Result<&'a [i64], MemoryError> {
        let mut known = self.frozen.borrow_mut();
        if let Some((_, values)) = known.iter().flatten().find(|(known, _)| *known == place) {
            return Ok(values);
        }
        let (table, column) = place;
        let storage = &self.engine.tables[table].columns[column].storage;
        let area = storage.area().expect("columns of an engine that forks are areas");
        let values = &area.frozen(self.child)?[..self.rows[table] as usize];
        known.rotate_right(1);
        known[0] = Some((place, values));
        Ok(values)
    }
}

impl Source for InFork<'_> {
    fn rows(&self, table: usize) -> usize {
        self.rows[table] as usize
    }

    fn columns(&self, table: usize) -> usize {
        self.engine.tables[table].columns.len()
    }

    fn block<'s>(&'s self, place: Place, block: usize, _: &'s mut Buffer) -> Result<&'s [i64], MemoryError> {
        let values = self.frozen(place)?;
        Ok(&values[block * BLOCK_ROWS..][..rows_of_block(values.len(), block)])
    }
}

impl Source for Versioned<'_> {
    fn rows(&self, table: usize) -> usize {
        self.rows[table] as usize
    }

    fn columns(&self, table: usize) -> usize {
        self.engine.tables[table].columns.len()
    }

    fn block<'s>(
        &'s self,
        (table, column): Place,
        block: usize,
        buffer: &'s mut Buffer,
    ) -> Result<&'s [i64], MemoryError> {
        let values = &mut buffer[..rows_of_block(self.rows(table), block)];
        let column = &self.engine.tables[table].columns[column];
        column.versions.scan(block, self.begin, values, |row| column.storage.get(row));
        Ok(values)
    }
}

impl Source for Newest<'_> {
    fn rows(&self, table: usize) -> usize {
        self.rows[table] as usize
    }

    fn columns(&self, table: usize) -> usize {
        self.engine.tables[table].columns.len()
    }

    fn block<'s>(
        &'s self,
        (table, column): Place,
        block: usize,
        buffer: &'s mut Buffer,
    ) -> Result<&'s [i64], MemoryError> {
        let values = &mut buffer[..rows_of_block(self.rows(table), block)];
        let storage = &self.engine.tables[table].columns[column].storage;
        values.iter_mut().zip(block * BLOCK_ROWS..).for_each(|(value, row)| *value = storage.get(row));
        Ok(values)
    }
}
