//! One area of memory: of which snapshots are physical copies, or copies of the process, or none.

use super::{ColumnStorage, Copied, FrozenColumn};
use std::sync::atomic::Ordering;
use virtual_memory::{Area, MemoryError};

/// A column in one area.
#[derive(Debug)]
pub(crate) struct InPlace(Area);

impl InPlace {
    pub(crate) fn new(rows_max: usize) -> Result<InPlace, MemoryError> {
        Ok(InPlace(Area::new(rows_max)?))
    }
}

impl ColumnStorage for InPlace {
    fn get(&self, row: usize) -> i64 {
        self.0.numbers()[row].load(Ordering::Acquire)
    }

    fn prepare(&self, _: usize) -> Result<(), MemoryError> {
        Ok(())
    }

    fn set(&self, row: usize, value: i64) {
        self.0.numbers()[row].store(value, Ordering::Release);
    }

    fn snapshot(&self, rows: usize) -> Result<Box<dyn FrozenColumn>, MemoryError> {
        let numbers = &self.0.numbers()[..rows];
        Ok(Box::new(Copied(numbers.iter().map(|number| number.load(Ordering::Relaxed)).collect())))
    }

    fn area(&self) -> Option<&Area> {
        Some(&self.0)
    }
}
