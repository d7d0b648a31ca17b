//! Some thousand rows of a table, column by column, with holes where rows have gone.

use crate::column_kind::no_values;
use crate::marks::Marks;
use crate::values::{DoesNotFit, Placed, Values};
use arrow_array::{Array, ArrayRef, BooleanArray, StringViewArray};
use arrow_select::filter::filter;
use state::ColumnBatch;
use types::DataType;

/// Positions of a chunk. What changes one of them copies so many values of a column that is lent.
pub(crate) const CHUNK_ROWS: usize = 8_192;

/// Rows that stand at neighbouring positions.
pub(crate) struct Chunk {
    columns: Vec<Box<dyn Values>>,
    positions: usize,
    holes: Marks,
    /// Arrays without the holes, since the chunk was changed last.
    filtered: Vec<Option<ArrayRef>>,
}

impl Chunk {
    /// No rows; nothing where columns of such a type are not kept.
    pub(crate) fn new(types: impl Iterator<Item = DataType>) -> Option<Chunk> {
        let columns: Vec<_> = types.map(no_values).collect::<Option<_>>()?;
        let filtered = vec![None; columns.len()];
        Some(Chunk { columns, positions: 0, holes: Marks::default(), filtered })
    }

    /// Writes rows where they stand. `ordinals`: those of the columns.
    pub(crate) fn write(&mut self, ordinals: &[usize], rows: &Placed) -> Result<(), DoesNotFit> {
        for (column, ordinal) in self.columns.iter_mut().zip(ordinals) {
            column.write(*ordinal, rows)?;
        }
        for (at, _) in rows {
            self.holes.remove(*at);
            self.positions = self.positions.max(at + 1);
        }
        self.filtered.fill(None);
        Ok(())
    }

    /// The row that stands there goes. Its values stay until another one comes: there is nothing to copy.
    pub(crate) fn leave(&mut self, at: usize) {
        self.holes.add(at);
        self.filtered.fill(None);
    }

    /// Rows that are there.
    pub(crate) fn rows(&self) -> usize {
        self.positions - self.holes.count()
    }

    /// The columns at these places among all, without holes.
    pub(crate) fn lend(&mut self, places: &[usize]) -> ColumnBatch {
        let rows = self.rows();
        if self.holes.count() == 0 {
            return ColumnBatch {
                rows,
                columns: places.iter().map(|place| self.columns[*place].array()).collect(),
            };
        }
        let mut is_there = None;
        let mut columns = Vec::with_capacity(places.len());
        for place in places {
            let filtered = self.filtered[*place].get_or_insert_with(|| {
                let is_there = is_there.get_or_insert_with(|| {
                    let bits = (0..self.positions).map(|at| !self.holes.has(at)).collect::<Vec<bool>>();
                    BooleanArray::from(bits)
                });
                filter(&self.columns[*place].array(), is_there).expect("there is a bit for each value")
            });
            columns.push(filtered.clone());
        }
        ColumnBatch { rows, columns }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let columns = self.columns.iter().map(|column| column.array().get_buffer_memory_size());
        let filtered = self.filtered.iter().flatten().map(|array| bytes_of_filtered(array.as_ref()));
        columns.chain(filtered).sum::<usize>() as u64 + self.holes.bytes()
    }
}

/// Texts that were left out of others share their blocks.
fn bytes_of_filtered(array: &dyn Array) -> usize {
    let texts = array.as_any().downcast_ref::<StringViewArray>();
    texts.map_or_else(|| array.get_buffer_memory_size(), |texts| texts.views().inner().capacity())
}
