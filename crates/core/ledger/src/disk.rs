//! The few things that are done to a disk, in one place, so that tests can make each of them fail.

use crate::LedgerError;
use parking_lot::Mutex;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where writes tear.
const SECTOR_BYTES: u64 = 512;

/// What a test makes the disk do: run full after some bytes, fail to flush, or lose what was not flushed.
#[derive(Debug)]
pub struct Faults {
    bytes_left: AtomicU64,
    flush_fails: AtomicBool,
    /// Writes that no flush has followed, in their order, where they are to be lost.
    unflushed: Option<Mutex<Vec<Unflushed>>>,
}

/// A write that may be lost.
#[derive(Debug)]
struct Unflushed {
    path: PathBuf,
    offset: u64,
    bytes: Vec<u8>,
    /// What stood there.
    before: Vec<u8>,
    /// Length of the file.
    length_before: u64,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults { bytes_left: AtomicU64::new(u64::MAX), flush_fails: AtomicBool::new(false), unflushed: None }
    }
}

impl Faults {
    /// A disk that [`Faults::lose_unflushed`] can take writes from.
    pub fn losing() -> Faults {
        Faults { unflushed: Some(Mutex::default()), ..Faults::default() }
    }

    /// The power fails: of the writes that no flush has followed each is there, or not, or torn, as `chance` says, which
    /// gives any numbers. Files must not be open for writing any more. Names of files are not lost.
    ///
    /// # Errors
    /// Those of the files.
    pub fn lose_unflushed(&self, mut chance: impl FnMut() -> u64) -> io::Result<u64> {
        let Some(unflushed) = &self.unflushed else { return Ok(0) };
        let unflushed = std::mem::take(&mut *unflushed.lock());
        let open = |path: &Path| match OpenOptions::new().write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        };
        for write in unflushed.iter().rev() {
            let Some(file) = open(&write.path)? else { continue };
            file.write_all_at(&write.before, write.offset)?;
            file.set_len(write.length_before)?;
        }
        let mut lost = 0;
        for write in &unflushed {
            let kept = match chance() % 3 {
                0 => 0,
                1 => write.bytes.len(),
                // A sector is written whole or not at all.
                _ => {
                    let end = write.offset + chance() % (write.bytes.len() as u64 + 1);
                    (end / SECTOR_BYTES * SECTOR_BYTES).saturating_sub(write.offset) as usize
                }
            };
            lost += u64::from(kept < write.bytes.len());
            if let Some(file) = open(&write.path)? {
                file.write_all_at(&write.bytes[..kept], write.offset)?;
            }
        }
        Ok(lost)
    }

    fn note(&self, file: &File, path: &Path, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Some(unflushed) = &self.unflushed else { return Ok(()) };
        let length_before = file.metadata()?.len();
        let mut before = vec![0; bytes.len()];
        let read = read_up_to(file, &mut before, offset)?;
        before.truncate(read);
        let (path, bytes) = (path.to_path_buf(), bytes.to_vec());
        unflushed.lock().push(Unflushed { path, offset, bytes, before, length_before });
        Ok(())
    }

    fn flushed(&self, path: &Path) {
        if let Some(unflushed) = &self.unflushed {
            unflushed.lock().retain(|write| write.path != path);
        }
    }

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
pub struct Disk {
    faults: Option<Arc<Faults>>,
}

impl Disk {
    /// A disk with these faults; with none where nobody tests.
    pub fn new(faults: Option<Arc<Faults>>) -> Disk {
        Disk { faults }
    }

    /// Writes all bytes at a place of a file, which is there after a crash once it is flushed.
    ///
    /// # Errors
    /// [`LedgerError::DiskFull`], [`LedgerError::Io`]; some of the bytes may be written.
    pub fn write_at(&self, file: &File, path: &Path, bytes: &[u8], offset: u64) -> Result<(), LedgerError> {
        let fit = self.faults.as_ref().map_or(bytes.len(), |faults| faults.take(bytes.len()));
        let noted =
            self.faults.as_ref().map_or(Ok(()), |faults| faults.note(file, path, &bytes[..fit], offset));
        let written = noted
            .and_then(|()| file.write_all_at(&bytes[..fit], offset))
            .and_then(|()| if fit < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) });
        written.map_err(|error| LedgerError::io("write", path, error))
    }

    /// Makes the file's content and length durable. What an error leaves open a repetition cannot mend: it may succeed without having
    /// written anything.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn flush(&self, file: &File, path: &Path) -> Result<(), LedgerError> {
        let fails = self.faults.as_ref().is_some_and(|faults| faults.flush_fails.load(Ordering::SeqCst));
        let loses = self.faults.as_ref().is_some_and(|faults| faults.unflushed.is_some());
        let flushed = match fails {
            true => Err(io::Error::other("injected by a test")),
            // Whose power fails only where a test says so need not wait for a real disk.
            false if loses => Ok(()),
            false => file.sync_data(),
        };
        flushed.map_err(|error| LedgerError::io("flush", path, error))?;
        if let Some(faults) = &self.faults {
            faults.flushed(path);
        }
        Ok(())
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
