//! A range of addresses that is given back when it is dropped, and how many mappings there are.

use crate::{MemoryError, PAGE_BYTES};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io::Read;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Whole pages of addresses.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<c_void>,
    bytes: NonZeroUsize,
}

// SAFETY: addresses belong to the process, not to a thread; what may be read and written there is up to the owner.
unsafe impl Send for Mapping {}
// SAFETY: as above; the methods that change mappings are `unsafe`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Private pages of zeros, which take memory once they are written.
    pub(crate) fn anonymous(pages: usize, protection: ProtFlags) -> Result<Mapping, MemoryError> {
        let bytes = bytes(pages)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: the kernel chooses addresses that nobody has.
        let base = unsafe { mmap_anonymous(None, bytes, protection, flags) };
        Ok(Mapping { base: base.map_err(MemoryError::system("map memory"))?, bytes })
    }

    /// The address of a byte.
    pub(crate) fn at(&self, byte: usize) -> NonNull<c_void> {
        assert!(byte < self.bytes.get(), "byte {byte} of {}", self.bytes);
        // SAFETY: the sum is inside of the range, as asserted.
        unsafe { self.base.byte_add(byte) }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Maps pages of a file in the place of some of these.
    ///
    /// # Safety
    /// Whoever reads the addresses meanwhile must be content with the bytes before and those after it.
    pub(crate) unsafe fn map_file(
        &self,
        page: usize,
        file: impl AsFd,
        (file_page, pages): (usize, usize),
        protection: ProtFlags,
    ) -> Result<(), nix::Error> {
        let length = bytes(pages).map_err(|_| nix::Error::EINVAL)?;
        let address = self.at(page * PAGE_BYTES);
        assert!((page + pages) * PAGE_BYTES <= self.bytes.get(), "pages outside of the range");
        let address = NonZeroUsize::new(address.as_ptr() as usize);
        let offset = (file_page * PAGE_BYTES) as i64;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
        // SAFETY: the addresses are inside of this range, which this process has reserved.
        unsafe { mmap(address, length, protection, flags, file, offset) }.map(drop)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this owner's, and nothing borrowed from it outlives the owner.
        let result = unsafe { munmap(self.base, self.bytes.get()) };
        debug_assert_eq!(result, Ok(()), "whole ranges can always be given back");
    }
}

fn bytes(pages: usize) -> Result<NonZeroUsize, MemoryError> {
    pages.checked_mul(PAGE_BYTES).and_then(NonZeroUsize::new).ok_or(MemoryError::Size { found: 0 })
}

/// How many mappings this process has; 0 where the system does not tell. Takes no memory for it, because there may be none.
pub fn mappings() -> usize {
    let Ok(mut file) = std::fs::File::open("/proc/self/maps") else { return 0 };
    let (mut buffer, mut lines) = ([0_u8; 8_192], 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) | Err(_) => return lines,
            Ok(bytes) => lines += buffer[..bytes].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}

/// How many mappings a process may have (`vm.max_map_count`); `None` where the system does not tell.
pub fn mappings_max() -> Option<usize> {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}
