//! Mappings held in reserve. Whoever meets the kernel's limit gives them back first, because an allocator that may not map
//! memory either ends the process.

use crate::mapping::{Mapping, mappings, mappings_max};
use crate::{MemoryError, PAGE_BYTES};
use nix::errno::Errno;
use nix::sys::mman::{ProtFlags, mprotect};
use parking_lot::Mutex;

/// Pages of the reserve. Two neighbours have different rights, so that each is a mapping.
const PAGES: usize = 1_024;

static HELD: Mutex<Option<Mapping>> = Mutex::new(None);

/// Sees to it that there is a reserve. Where the kernel gives none, rewiring will be refused as well, with its error.
pub(crate) fn hold() {
    let mut held = HELD.lock();
    if held.is_some() {
        return;
    }
    let Ok(mapping) = Mapping::anonymous(PAGES, ProtFlags::PROT_NONE) else { return };
    for page in (0..PAGES).step_by(2) {
        // SAFETY: nobody reads or writes the reserve.
        if unsafe { mprotect(mapping.at(page * PAGE_BYTES), PAGE_BYTES, ProtFlags::PROT_READ) }.is_err() {
            return;
        }
    }
    *held = Some(mapping);
}

/// Gives the reserve back if the kernel has refused a mapping, and says why it has.
pub(crate) fn refused(action: &'static str, error: Errno) -> MemoryError {
    let released = HELD.lock().take();
    let reserve = if released.is_some() { PAGES } else { 0 };
    drop(released);
    match (error, mappings_max()) {
        // Other reasons to refuse memory leave mappings to spare.
        (Errno::ENOMEM, Some(limit)) if mappings() + reserve + 16 >= limit => {
            MemoryError::Mappings { mapped: mappings() + reserve, limit }
        }
        _ => MemoryError::System { action, error },
    }
}
