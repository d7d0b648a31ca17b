use crate::mapping::Mapping;
use crate::page_table::PageTable;
use crate::{MemoryError, NUMBERS_MAX, PAGE_BYTES, PAGE_NUMBERS, ballast};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::ProtFlags;
use nix::unistd::ftruncate;
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Numbers in pages of a file in memory, whose mapping this process changes itself.
///
/// Writes are noticed in software: [`Rewired::write`] asks the table of pages. The thesis protects pages and lets the processor
/// fault, which costs a signal on top.
#[derive(Debug)]
pub struct Rewired {
    mapping: Mapping,
    numbers: usize,
    shared: Arc<Shared>,
}

/// What an area and its snapshots have in common.
#[derive(Debug)]
struct Shared {
    file: OwnedFd,
    /// Held by whoever writes, and while a snapshot is made: pages are never shared in the middle of a write.
    table: Mutex<PageTable>,
}

/// The numbers of a [`Rewired`] as they were.
#[derive(Debug)]
pub struct RewiredSnapshot {
    mapping: Mapping,
    numbers: usize,
    file_pages: Vec<u32>,
    shared: Arc<Shared>,
}

impl Rewired {
    /// An area for so many numbers, which begin as 0 and take memory once they are written.
    ///
    /// # Errors
    /// No numbers, more than [`NUMBERS_MAX`], or a system that gives no file, addresses or mapping.
    pub fn new(numbers: usize) -> Result<Rewired, MemoryError> {
        if !(1..=NUMBERS_MAX).contains(&numbers) {
            return Err(MemoryError::Size { found: numbers });
        }
        ballast::hold();
        let pages = numbers.div_ceil(PAGE_NUMBERS);
        let file = memfd_create("rewired", MFdFlags::MFD_CLOEXEC)
            .map_err(MemoryError::system("create a file in memory"))?;
        ftruncate(&file, (pages * PAGE_BYTES) as i64)
            .map_err(MemoryError::system("enlarge a file in memory"))?;
        let mapping = Mapping::anonymous(pages, ProtFlags::PROT_NONE)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: nobody has the addresses yet.
        unsafe { mapping.map_file(0, &file, (0, pages), protection) }
            .map_err(|error| ballast::refused("map a file in memory", error))?;
        let table = Mutex::new(PageTable::new(pages as u32));
        Ok(Rewired { mapping, numbers, shared: Arc::new(Shared { file, table }) })
    }

    /// A number.
    ///
    /// # Panics
    /// There are not so many.
    pub fn get(&self, index: usize) -> i64 {
        self.number(index).load(Ordering::Acquire)
    }

    /// Sees to it that no snapshot has the page of a number, so that [`Rewired::write`] needs nothing of the kernel before the next
    /// snapshot.
    ///
    /// # Errors
    /// [`MemoryError::Mappings`] if the kernel refuses; the numbers stay as they are.
    pub fn make_writable(&self, index: usize) -> Result<(), MemoryError> {
        self.own(&mut self.shared.table.lock(), index)
    }

    /// Writes a number; a page that a snapshot has is copied before.
    ///
    /// # Errors
    /// [`MemoryError::Mappings`] if the kernel refuses; the number stays as it is.
    pub fn write(&self, index: usize, value: i64) -> Result<(), MemoryError> {
        let mut table = self.shared.table.lock();
        self.own(&mut table, index)?;
        self.number(index).store(value, Ordering::Release);
        Ok(())
    }

    /// The first numbers as they are now. Costs a call of the kernel for each mapping of theirs.
    ///
    /// # Errors
    /// No numbers, more than there are, or [`MemoryError::Mappings`].
    pub fn snapshot(&self, numbers: usize) -> Result<RewiredSnapshot, MemoryError> {
        if !(1..=self.numbers).contains(&numbers) {
            return Err(MemoryError::Size { found: numbers });
        }
        ballast::hold();
        let pages = numbers.div_ceil(PAGE_NUMBERS);
        let mapping = Mapping::anonymous(pages, ProtFlags::PROT_NONE)?;
        let mut table = self.shared.table.lock();
        for run in table.runs(pages) {
            // SAFETY: nobody has the addresses yet.
            let mapped = unsafe {
                let from = (run.file_page, run.pages);
                mapping.map_file(run.page, &self.shared.file, from, ProtFlags::PROT_READ)
            };
            if let Err(error) = mapped {
                let refused = ballast::refused("map a snapshot", error);
                drop((table, mapping));
                ballast::hold();
                return Err(refused);
            }
        }
        let file_pages = table.hold(pages);
        Ok(RewiredSnapshot { mapping, numbers, file_pages, shared: self.shared.clone() })
    }

    /// How many mappings the area has.
    pub fn mappings(&self) -> usize {
        self.shared.table.lock().runs(self.numbers.div_ceil(PAGE_NUMBERS)).len()
    }

    fn number(&self, index: usize) -> &AtomicI64 {
        assert!(index < self.numbers, "number {index} of {}", self.numbers);
        let address = self.mapping.at(index * size_of::<i64>()).cast::<AtomicI64>();
        // SAFETY: it lies in pages that are mapped for reading and writing as long as `self` lives. A page that is mapped anew
        // has the same bytes. Only `write` writes, and never into a page that a snapshot lends as plain numbers.
        unsafe { address.as_ref() }
    }

    /// The area alone has the page of a number.
    fn own(&self, table: &mut PageTable, index: usize) -> Result<(), MemoryError> {
        let page = index / PAGE_NUMBERS;
        assert!(index < self.numbers, "number {index} of {}", self.numbers);
        if !table.is_shared(page) {
            return Ok(());
        }
        let (file_page, grows) = table.unused();
        if grows {
            ftruncate(&self.shared.file, (file_page as i64 + 1) * PAGE_BYTES as i64)
                .map_err(MemoryError::system("enlarge a file in memory"))?;
        }
        self.copy(page, file_page)?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the page has the same bytes before and after: they were copied, and writers wait for the table.
        unsafe { self.mapping.map_file(page, &self.shared.file, (file_page as usize, 1), protection) }
            .map_err(|error| ballast::refused("map a copied page", error))?;
        table.replace(page, file_page);
        Ok(())
    }

    /// Copies a page into one of the file that nobody holds.
    fn copy(&self, page: usize, file_page: u32) -> Result<(), MemoryError> {
        let mut bytes = [0_u8; PAGE_BYTES];
        let first = page * PAGE_NUMBERS;
        for (index, to) in bytes.chunks_exact_mut(size_of::<i64>()).enumerate() {
            // The last page of an area may have places behind its last number.
            let index = first + index;
            let value = if index < self.numbers { self.number(index).load(Ordering::Relaxed) } else { 0 };
            to.copy_from_slice(&value.to_ne_bytes());
        }
        let offset = i64::from(file_page) * PAGE_BYTES as i64;
        match nix::sys::uio::pwrite(&self.shared.file, &bytes, offset) {
            Ok(PAGE_BYTES) => Ok(()),
            Ok(_) => Err(MemoryError::System { action: "copy a page", error: nix::Error::EIO }),
            Err(error) => Err(MemoryError::System { action: "copy a page", error }),
        }
    }
}

impl RewiredSnapshot {
    /// The numbers.
    pub fn numbers(&self) -> &[i64] {
        let base = self.mapping.at(0).cast::<i64>();
        // SAFETY: the pages are mapped as long as `self` lives. Nobody writes them: they are in `file_pages`, so the area copies
        // them before, and they are not used again before this snapshot has released them.
        unsafe { std::slice::from_raw_parts(base.as_ptr(), self.numbers) }
    }
}

impl Drop for RewiredSnapshot {
    fn drop(&mut self) {
        self.shared.table.lock().release(&self.file_pages);
    }
}
