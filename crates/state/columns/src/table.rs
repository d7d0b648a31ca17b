//! A table in columns: its rows at positions, in chunks.

use crate::chunk::{CHUNK_ROWS, Chunk};
use crate::keys::Keys;
use crate::values::DoesNotFit;
use state::ColumnBatch;
use types::{DataType, Key, Row, Table};

/// Some columns of all rows of a table at one version.
pub(crate) struct TableColumns {
    /// Ordinals of the columns, ascending.
    ordinals: Vec<usize>,
    types: Vec<DataType>,
    chunks: Vec<Chunk>,
    keys: Keys,
    /// Positions that rows have left, for others.
    free: Vec<usize>,
    positions: usize,
}

impl TableColumns {
    /// These columns of a table, without rows; nothing where it has not all of them.
    fn new(table: &Table, ordinals: &[usize]) -> Option<TableColumns> {
        let types = ordinals.iter().map(|ordinal| Some(table.columns.get(*ordinal)?.data_type));
        Some(TableColumns {
            ordinals: ordinals.to_vec(),
            types: types.collect::<Option<_>>()?,
            chunks: Vec::new(),
            keys: Keys::default(),
            free: Vec::new(),
            positions: 0,
        })
    }

    /// Ordinals of the columns, ascending.
    pub(crate) fn ordinals(&self) -> &[usize] {
        &self.ordinals
    }

    /// Whether it has all of these columns.
    pub(crate) fn has(&self, ordinals: &[usize]) -> bool {
        ordinals.iter().all(|ordinal| self.ordinals.binary_search(ordinal).is_ok())
    }

    /// Rows that are there.
    pub(crate) fn rows(&self) -> usize {
        self.positions - self.free.len()
    }

    /// So many rows have gone that it is better made anew.
    pub(crate) fn is_sparse(&self) -> bool {
        2 * self.free.len() > self.positions
    }

    /// Makes the rows with these keys, each of which is here once, what they are now.
    pub(crate) fn change(&mut self, changes: Vec<(Key, Option<Row>)>) -> Result<(), DoesNotFit> {
        let mut written = Vec::with_capacity(changes.len());
        for (key, row) in changes {
            match row {
                Some(row) => written.push((self.position_of(key), row)),
                None => self.leave(&key),
            }
        }
        written.sort_unstable_by_key(|(position, _)| *position);
        for rows in written.chunk_by_mut(|(one, _), (other, _)| one / CHUNK_ROWS == other / CHUNK_ROWS) {
            let number = rows[0].0 / CHUNK_ROWS;
            rows.iter_mut().for_each(|(position, _)| *position %= CHUNK_ROWS);
            self.make_chunks(number)?;
            self.chunks[number].write(&self.ordinals, rows)?;
        }
        Ok(())
    }

    /// Where a row stands, or where it has room.
    fn position_of(&mut self, key: Key) -> usize {
        self.keys.position(&key).unwrap_or_else(|| {
            let position = self.free.pop().unwrap_or_else(|| {
                self.positions += 1;
                self.positions - 1
            });
            self.keys.insert(key, position);
            position
        })
    }

    fn leave(&mut self, key: &Key) {
        if let Some(position) = self.keys.remove(key) {
            self.free.push(position);
            self.chunks[position / CHUNK_ROWS].leave(position % CHUNK_ROWS);
        }
    }

    /// Makes the chunks up to this one.
    fn make_chunks(&mut self, number: usize) -> Result<(), DoesNotFit> {
        while self.chunks.len() <= number {
            self.chunks.push(Chunk::new(self.types.iter().copied()).ok_or(DoesNotFit)?);
        }
        Ok(())
    }

    /// Columns that it has, in the order in which they are asked for.
    pub(crate) fn lend(&mut self, ordinals: &[usize]) -> Option<Vec<ColumnBatch>> {
        let places = ordinals.iter().map(|ordinal| self.ordinals.binary_search(ordinal).ok());
        let places: Vec<usize> = places.collect::<Option<_>>()?;
        let chunks = self.chunks.iter_mut().filter(|chunk| chunk.rows() > 0);
        Some(chunks.map(|chunk| chunk.lend(&places)).collect())
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let free = self.free.capacity() * size_of::<usize>();
        self.chunks.iter().map(Chunk::bytes).sum::<u64>() + self.keys.bytes() + free as u64
    }
}

/// Columns that are made of the rows of a scan.
pub(crate) struct Building {
    columns: TableColumns,
    /// Rows of the next chunk.
    rows: Vec<(usize, Row)>,
    /// Bytes of the chunks.
    bytes: u64,
}

impl Building {
    /// Begins with these columns of a table; nothing where it has not all of them.
    pub(crate) fn new(table: &Table, ordinals: &[usize]) -> Option<Building> {
        Some(Building { columns: TableColumns::new(table, ordinals)?, rows: Vec::new(), bytes: 0 })
    }

    /// Adds the next row in key order. True: a chunk is full.
    pub(crate) fn add(&mut self, key: &Key, row: &Row) -> Result<bool, DoesNotFit> {
        self.columns.keys.insert(key.clone(), self.columns.positions);
        self.columns.positions += 1;
        self.rows.push((self.rows.len(), row.clone()));
        let is_full = self.rows.len() == CHUNK_ROWS;
        if is_full {
            self.end_chunk()?;
        }
        Ok(is_full)
    }

    fn end_chunk(&mut self) -> Result<(), DoesNotFit> {
        let columns = &mut self.columns;
        let number = columns.chunks.len();
        columns.make_chunks(number)?;
        let chunk = &mut columns.chunks[number];
        chunk.write(&columns.ordinals, &self.rows)?;
        self.bytes += chunk.bytes();
        self.rows.clear();
        Ok(())
    }

    /// Bytes of memory so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes + self.columns.keys.bytes()
    }

    /// All rows are added.
    pub(crate) fn finish(mut self) -> Result<TableColumns, DoesNotFit> {
        if !self.rows.is_empty() {
            self.end_chunk()?;
        }
        Ok(self.columns)
    }
}
