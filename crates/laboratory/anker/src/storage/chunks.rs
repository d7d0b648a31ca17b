//! Chunks of 8,192 values, copied when they are written while a snapshot has them.

use super::{BLOCK_ROWS, ColumnStorage, FrozenColumn};
use parking_lot::RwLock;
use std::sync::Arc;
use virtual_memory::MemoryError;

/// Values of a chunk, as in crate `columns`.
const CHUNK_ROWS: usize = 8_192;

/// A column in chunks. Chunks that were never written have no values yet.
#[derive(Debug)]
pub(crate) struct Chunks(Vec<RwLock<Arc<[i64]>>>);

#[derive(Debug)]
struct FrozenChunks {
    chunks: Vec<Arc<[i64]>>,
    rows: usize,
}

impl Chunks {
    pub(crate) fn new(rows_max: usize) -> Chunks {
        let empty: Arc<[i64]> = Arc::from([]);
        Chunks((0..rows_max.div_ceil(CHUNK_ROWS)).map(|_| RwLock::new(empty.clone())).collect())
    }
}

/// The chunk has its values for itself.
fn own(chunk: &mut Arc<[i64]>) -> &mut [i64] {
    if chunk.is_empty() {
        *chunk = Arc::from(vec![0; CHUNK_ROWS]);
    }
    Arc::make_mut(chunk)
}

impl ColumnStorage for Chunks {
    fn get(&self, row: usize) -> i64 {
        self.0[row / CHUNK_ROWS].read().get(row % CHUNK_ROWS).copied().unwrap_or(0)
    }

    fn prepare(&self, row: usize) -> Result<(), MemoryError> {
        own(&mut self.0[row / CHUNK_ROWS].write());
        Ok(())
    }

    fn set(&self, row: usize, value: i64) {
        own(&mut self.0[row / CHUNK_ROWS].write())[row % CHUNK_ROWS] = value;
    }

    fn snapshot(&self, rows: usize) -> Result<Box<dyn FrozenColumn>, MemoryError> {
        let chunks = self.0[..rows.div_ceil(CHUNK_ROWS)].iter().map(|chunk| chunk.read().clone()).collect();
        Ok(Box::new(FrozenChunks { chunks, rows }))
    }
}

impl FrozenColumn for FrozenChunks {
    fn block(&self, block: usize) -> &[i64] {
        let from = (block * BLOCK_ROWS).min(self.rows);
        let rows = (self.rows - from).min(BLOCK_ROWS);
        match self.chunks.get(from / CHUNK_ROWS) {
            Some(chunk) if rows > 0 => &chunk[from % CHUNK_ROWS..][..rows],
            _ => &[],
        }
    }
}
