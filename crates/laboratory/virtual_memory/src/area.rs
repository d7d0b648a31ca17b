use crate::mapping::Mapping;
use crate::{InChild, MemoryError, NUMBERS_MAX, PAGE_NUMBERS};
use nix::sys::mman::{MmapAdvise, ProtFlags, madvise, mprotect};
use std::sync::atomic::AtomicI64;

/// Numbers in private pages. They begin as 0 and take memory once they are written.
///
/// A forked process has the same pages until one of the two writes; then the kernel copies that page.
#[derive(Debug)]
pub struct Area {
    mapping: Mapping,
    numbers: usize,
}

impl Area {
    /// An area for so many numbers.
    ///
    /// # Errors
    /// No numbers, more than [`NUMBERS_MAX`], or a system that has no addresses left.
    pub fn new(numbers: usize) -> Result<Area, MemoryError> {
        if !(1..=NUMBERS_MAX).contains(&numbers) {
            return Err(MemoryError::Size { found: numbers });
        }
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let mapping = Mapping::anonymous(numbers.div_ceil(PAGE_NUMBERS), protection)?;
        // Small pages, as in the thesis: a write then copies 4 KB, not 2 MB. A kernel without large pages says no, and has none.
        // SAFETY: advice about the size of pages changes no bytes.
        let _ = unsafe { madvise(mapping.at(0), mapping.bytes(), MmapAdvise::MADV_NOHUGEPAGE) };
        Ok(Area { mapping, numbers })
    }

    /// The numbers.
    pub fn numbers(&self) -> &[AtomicI64] {
        let base = self.mapping.at(0).cast::<AtomicI64>();
        // SAFETY: the pages are mapped for reading and writing as long as `self` lives, begin as zeros, and are only reached as
        // atomic numbers in this process; `frozen` needs another one.
        unsafe { std::slice::from_raw_parts(base.as_ptr(), self.numbers) }
    }

    /// The numbers as they were when this process was forked. They cannot be written in it from now on.
    ///
    /// # Errors
    /// The system does not take the right to write away.
    pub fn frozen<'a>(&'a self, _: &'a InChild) -> Result<&'a [i64], MemoryError> {
        // SAFETY: no thread of this process writes here: it has one, and that is here. Should it try later, the kernel ends it.
        unsafe { mprotect(self.mapping.at(0), self.mapping.bytes(), ProtFlags::PROT_READ) }
            .map_err(MemoryError::system("protect memory"))?;
        let base = self.mapping.at(0).cast::<i64>();
        // SAFETY: the pages are mapped as long as `self` lives, and nothing writes them any more.
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), self.numbers) })
    }
}
