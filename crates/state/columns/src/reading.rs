//! Columns that nobody keeps, made of rows while somebody reads them.

use crate::chunk::{CHUNK_ROWS, Chunk};
use crate::values::Placed;
use state::{ColumnBatch, ColumnPiece, KeyRange, ReadColumns, Snapshot, StoreError};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{DataType, Key, Table, TableId};

/// Some columns of a table in a snapshot.
pub(crate) struct RowsAsColumns {
    snapshot: Arc<dyn Snapshot>,
    table: TableId,
    ordinals: Vec<usize>,
    types: Vec<DataType>,
}

impl RowsAsColumns {
    /// These columns; nothing where some of them are kept nowhere.
    pub(crate) fn new(
        snapshot: Arc<dyn Snapshot>,
        table: &Table,
        ordinals: &[usize],
    ) -> Option<RowsAsColumns> {
        let types = ordinals.iter().map(|ordinal| Some(table.columns.get(*ordinal)?.data_type));
        let types: Vec<DataType> = types.collect::<Option<_>>()?;
        Chunk::new(types.iter().copied())?;
        Some(RowsAsColumns { snapshot, table: table.id, ordinals: ordinals.to_vec(), types })
    }

    fn batch(&self, rows: &Placed) -> Option<ColumnBatch> {
        let mut chunk = Chunk::new(self.types.iter().copied())?;
        chunk.write(&self.ordinals, rows).ok()?;
        Some(chunk.lend(&Vec::from_iter(0..self.ordinals.len())))
    }
}

impl ReadColumns for RowsAsColumns {
    fn piece(&self, behind: Option<&Key>) -> Result<Option<ColumnPiece>, StoreError> {
        let start = behind.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        let (mut rows, mut last) = (Vec::with_capacity(CHUNK_ROWS), None);
        let range = KeyRange { start, end: Bound::Unbounded };
        self.snapshot.scan(self.table, &range, false, &mut |key, row| {
            rows.push((rows.len(), row.clone()));
            if rows.len() < CHUNK_ROWS {
                return ControlFlow::Continue(());
            }
            last = Some(key.clone());
            ControlFlow::Break(())
        })?;
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(ColumnPiece { last, batch: self.batch(&rows) }))
    }
}
