//! Pages of a file in memory, mapped a second time for each snapshot.

use super::{ColumnStorage, Copied, FrozenColumn, block_of};
use virtual_memory::{MemoryError, Rewired, RewiredSnapshot};

/// A column in rewired pages.
#[derive(Debug)]
pub(crate) struct RewiredColumn(Rewired);

impl RewiredColumn {
    pub(crate) fn new(rows_max: usize) -> Result<RewiredColumn, MemoryError> {
        Ok(RewiredColumn(Rewired::new(rows_max)?))
    }
}

impl ColumnStorage for RewiredColumn {
    fn get(&self, row: usize) -> i64 {
        self.0.get(row)
    }

    fn prepare(&self, row: usize) -> Result<(), MemoryError> {
        self.0.make_writable(row)
    }

    fn set(&self, row: usize, value: i64) {
        self.0.write(row, value).expect("the place was prepared, and no snapshot has been made since");
    }

    fn snapshot(&self, rows: usize) -> Result<Box<dyn FrozenColumn>, MemoryError> {
        Ok(if rows == 0 { Box::new(Copied(Vec::new())) } else { Box::new(Frozen(self.0.snapshot(rows)?)) })
    }
}

#[derive(Debug)]
struct Frozen(RewiredSnapshot);

impl FrozenColumn for Frozen {
    fn block(&self, block: usize) -> &[i64] {
        block_of(self.0.numbers(), block)
    }
}
