//! The few things that are done to a disk, in one place, so that tests can make each of them fail.

use crate::LedgerError;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a test makes the disk do: run full after some bytes, or fail to flush.
#[derive(Debug)]
pub struct Faults {
    bytes_left: AtomicU64,
    flush_fails: AtomicBool,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults { bytes_left: AtomicU64::new(u64::MAX), flush_fails: AtomicBool::new(false) }
    }
}

impl Faults {
    /// The disk takes `bytes` more; the write that exceeds them is cut short with `ENOSPC`. `u64::MAX` is no limit.
    pub fn leave_space(&self, bytes: u64) {
        self.bytes_left.store(bytes, Ordering::SeqCst);
    }

    /// Whether flushes fail with `EIO` from now on.
    pub fn fail_flushes(&self, fail: bool) {
        self.flush_fails.store(fail, Ordering::SeqCst);
    }

    /// How many of `length` bytes still fit; they count as used.
    fn take(&self, length: usize) -> usize {
        let left = self.bytes_left.load(Ordering::SeqCst);
        let fit = left.min(length as u64);
        if left != u64::MAX {
            self.bytes_left.store(left - fit, Ordering::SeqCst);
        }
        fit as usize
    }
}

/// Writes and flushes, with the faults of a test if there are any.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    faults: Option<Arc<Faults>>,
}

impl Disk {
    pub(crate) fn new(faults: Option<Arc<Faults>>) -> Disk {
        Disk { faults }
    }

    pub(crate) fn write_at(
        &self,
        file: &File,
        path: &Path,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), LedgerError> {
        let fit = self.faults.as_ref().map_or(bytes.len(), |faults| faults.take(bytes.len()));
        let written = file
            .write_all_at(&bytes[..fit], offset)
            .and_then(|()| if fit < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) });
        written.map_err(|error| LedgerError::io("write", path, error))
    }

    /// Makes the file's content and length durable.
    pub(crate) fn flush(&self, file: &File, path: &Path) -> Result<(), LedgerError> {
        let fails = self.faults.as_ref().is_some_and(|faults| faults.flush_fails.load(Ordering::SeqCst));
        let flushed = if fails { Err(io::Error::other("injected by a test")) } else { file.sync_data() };
        flushed.map_err(|error| LedgerError::io("flush", path, error))
    }

    /// Creates or replaces a whole file: temporary file, rename. Nothing is flushed, so this is only for files that
    /// have a checksum and can be made again.
    pub(crate) fn write_replaceable(&self, path: &Path, bytes: &[u8]) -> Result<(), LedgerError> {
        let temporary = temporary_name(path);
        let file = create(&temporary)?;
        self.write_at(&file, &temporary, bytes, 0).inspect_err(|_| {
            // The error is what counts; what is left over is removed when the folder is opened next.
            let _ = fs::remove_file(&temporary);
        })?;
        rename(&temporary, path)
    }
}

/// Where a file is prepared before it is renamed to `path`; such files are removed when the folder is opened.
pub(crate) fn temporary_name(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// A new empty file, in place of an old one.
pub(crate) fn create(path: &Path) -> Result<File, LedgerError> {
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
    options.map_err(|error| LedgerError::io("create", path, error))
}

/// An existing file for reading and writing.
pub(crate) fn open(path: &Path) -> Result<File, LedgerError> {
    OpenOptions::new().read(true).write(true).open(path).map_err(|error| LedgerError::io("open", path, error))
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), LedgerError> {
    fs::rename(from, to).map_err(|error| LedgerError::io("rename to", to, error))
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<(), LedgerError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LedgerError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Makes a folder's entries durable: a file that was created, renamed or removed is so after a power failure, too.
pub(crate) fn flush_folder(path: &Path) -> Result<(), LedgerError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| LedgerError::io("flush", path, error))
}

/// Creates a folder with those above it and makes its entry durable.
pub(crate) fn create_folder(path: &Path) -> Result<(), LedgerError> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path).map_err(|error| LedgerError::io("create", path, error))?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => flush_folder(parent),
        _ => Ok(()),
    }
}

/// Names of the files in a folder, sorted; leftovers of interrupted writes are removed.
pub(crate) fn list(folder: &Path) -> Result<Vec<String>, LedgerError> {
    let failed = |error| LedgerError::io("list", folder, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(".tmp") {
            remove(&folder.join(name))?;
        } else {
            names.push(name.to_string());
        }
    }
    names.sort();
    Ok(names)
}

/// Reads up to `bytes.len()` bytes; fewer only at the end of the file.
pub(crate) fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
