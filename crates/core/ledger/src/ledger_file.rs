//! The file `LEDGER`: which network a data folder belongs to, and up to which height its blocks have been flushed.

use crate::LedgerError;
use crate::disk::{self, Disk, read_up_to};
use crate::file_head::FORMAT_VERSION;
use crate::layout::{Fields, checksum};
use crypto::Digest;
use std::fs::File;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"EnLedger";
const FILE_BYTES: usize = 64;
pub(crate) const MARK_OFFSET: u64 = 48;
/// What the mark holds before it is set: no height with its checksum.
const UNSET: u8 = 0xff;

/// The open file.
pub(crate) struct LedgerFile {
    path: PathBuf,
    file: File,
}

/// Up to where blocks were flushed, as the file says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushedMark {
    /// At least up to this height.
    Height(u64),
    /// The file is missing or its mark is damaged: any block may have been flushed.
    Unknown,
}

impl FlushedMark {
    /// Whether blocks behind this one have been flushed, so that no crash can have torn it.
    pub(crate) fn is_beyond(self, height: u64) -> bool {
        match self {
            FlushedMark::Height(flushed) => height < flushed,
            FlushedMark::Unknown => true,
        }
    }
}

impl LedgerFile {
    /// Opens or creates the file. A damaged one is written again from `ledger`, which the blocks' own heads confirm.
    ///
    /// # Errors
    /// [`LedgerError::OtherLedger`] and [`LedgerError::Version`].
    pub(crate) fn open(
        disk: &Disk,
        folder: &Path,
        ledger: Digest,
    ) -> Result<(LedgerFile, FlushedMark), LedgerError> {
        let path = path(folder);
        let exists = path.exists();
        let file = if exists { disk::open(&path)? } else { disk::create(&path)? };
        let mut bytes = [0; FILE_BYTES];
        let read = read_up_to(&file, &mut bytes, 0).map_err(|error| LedgerError::io("read", &path, error))?;
        let opened = LedgerFile { path, file };
        let mut fields = Fields(&bytes[8..]);
        let (version, found) = (fields.u32(), fields.digest());
        let good = read == FILE_BYTES && bytes[..8] == MAGIC && fields.u32() == checksum(&[&bytes[..44]]);
        if !good {
            opened.write_identity(disk, ledger)?;
            disk::flush_folder(folder)?;
            return Ok((opened, FlushedMark::Unknown));
        }
        if version != FORMAT_VERSION {
            return Err(LedgerError::Version { path: opened.path, expected: FORMAT_VERSION, found: version });
        }
        if found != ledger {
            return Err(LedgerError::OtherLedger { path: folder.to_path_buf(), expected: ledger, found });
        }
        let (height, crc) = (fields.u64(), fields.u32());
        let whole = crc == checksum(&[&height.to_le_bytes()]);
        Ok((opened, if whole { FlushedMark::Height(height) } else { FlushedMark::Unknown }))
    }

    fn write_identity(&self, disk: &Disk, ledger: Digest) -> Result<(), LedgerError> {
        let mut bytes = [0; FILE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..44].copy_from_slice(&ledger.0);
        let crc = checksum(&[&bytes[..44]]);
        bytes[44..48].copy_from_slice(&crc.to_le_bytes());
        bytes[48..].fill(UNSET);
        disk.write_at(&self.file, &self.path, &bytes, 0)?;
        disk.flush(&self.file, &self.path)
    }

    /// Says that blocks up to `height` have been flushed. The mark itself is not: it may come to the disk later, which
    /// makes the next opening more lenient, never wrong.
    pub(crate) fn mark(&self, disk: &Disk, height: u64) -> Result<(), LedgerError> {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&height.to_le_bytes());
        let crc = checksum(&[&bytes[..8]]);
        bytes[8..].copy_from_slice(&crc.to_le_bytes());
        disk.write_at(&self.file, &self.path, &bytes, MARK_OFFSET)
    }

    /// Makes the mark durable, which must be so before blocks below it are taken away.
    pub(crate) fn flush(&self, disk: &Disk) -> Result<(), LedgerError> {
        disk.flush(&self.file, &self.path)
    }
}

/// Where a data folder has the file.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("LEDGER")
}

/// The mark of a folder that nobody need have open; 0 where it has not been set. Every byte must be what was written.
///
/// # Errors
/// [`LedgerError::Damaged`], [`LedgerError::OtherLedger`] and [`LedgerError::Version`].
pub(crate) fn read_mark(folder: &Path, ledger: Digest) -> Result<u64, LedgerError> {
    let path = path(folder);
    let damaged = |offset, what: &str| Err(LedgerError::damaged(&path, offset, 0, what));
    let (bytes, read) = read_start::<FILE_BYTES>(&path)?;
    if read < FILE_BYTES {
        return damaged(read as u64, "expected 64 bytes, found the end of the file");
    }
    let mut fields = Fields(&bytes[8..]);
    let (version, found, crc) = (fields.u32(), fields.digest(), fields.u32());
    if bytes[..8] != MAGIC || crc != checksum(&[&bytes[..44]]) {
        return damaged(0, "expected the file that names the ledger, with its checksum");
    }
    if version != FORMAT_VERSION {
        return Err(LedgerError::Version { path, expected: FORMAT_VERSION, found: version });
    }
    if found != ledger {
        return Err(LedgerError::OtherLedger { path: folder.to_path_buf(), expected: ledger, found });
    }
    let (mark, rest) = bytes[MARK_OFFSET as usize..].split_at(12);
    if rest.iter().any(|byte| *byte != UNSET) {
        return damaged(60, "expected unused bytes as they were written");
    }
    if mark.iter().all(|byte| *byte == UNSET) {
        return Ok(0);
    }
    let mut fields = Fields(mark);
    let (height, crc) = (fields.u64(), fields.u32());
    if crc != checksum(&[&mark[..8]]) {
        return damaged(
            MARK_OFFSET,
            "expected the height up to which blocks were flushed, with its checksum",
        );
    }
    Ok(height)
}

/// The first bytes of a file, and how many it has of them.
fn read_start<const N: usize>(path: &Path) -> Result<([u8; N], usize), LedgerError> {
    let file = File::open(path).map_err(|error| LedgerError::io("open", path, error))?;
    let mut bytes = [0; N];
    let read = read_up_to(&file, &mut bytes, 0).map_err(|error| LedgerError::io("read", path, error))?;
    Ok((bytes, read))
}
