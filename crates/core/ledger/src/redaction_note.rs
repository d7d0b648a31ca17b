//! The file `REDACTED`: up to which height blocks may have something redacted, so that they cannot be executed again.

use crate::LedgerError;
use crate::disk::{self, Disk};
use crate::layout::{Fields, checksum};
use std::path::{Path, PathBuf};

const NOTE_MAGIC: [u8; 8] = *b"EnRedact";
const NOTE_BYTES: usize = 20;

fn note_path(folder: &Path) -> PathBuf {
    folder.join("REDACTED")
}

/// Height of the newest block of which something is redacted, as the note in the folder says; 0 without one.
pub(crate) fn read(folder: &Path) -> Result<u64, LedgerError> {
    let path = note_path(folder);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        bytes => bytes.map_err(|error| LedgerError::io("read", &path, error))?,
    };
    let bytes: Option<[u8; NOTE_BYTES]> = bytes.try_into().ok();
    let height = bytes.and_then(|bytes| {
        let mut fields = Fields(&bytes[8..]);
        let (height, crc) = (fields.u64(), fields.u32());
        (bytes[..8] == NOTE_MAGIC && crc == checksum(&[&bytes[..16]])).then_some(height)
    });
    height.ok_or_else(|| {
        let what = "expected the height of the newest redacted block, with its checksum; if the file is removed, the node \
                    writes it again";
        LedgerError::damaged(&path, 0, 0, what)
    })
}

/// Durable when it returns.
pub(crate) fn write(disk: &Disk, folder: &Path, height: u64) -> Result<(), LedgerError> {
    let mut bytes = NOTE_MAGIC.to_vec();
    bytes.extend_from_slice(&height.to_le_bytes());
    bytes.extend_from_slice(&checksum(&[&bytes]).to_le_bytes());
    let path = note_path(folder);
    let temporary = disk::temporary_name(&path);
    let file = disk::create(&temporary)?;
    disk.write_at(&file, &temporary, &bytes, 0)?;
    disk.flush(&file, &temporary)?;
    disk::rename(&temporary, &path)?;
    disk::flush_folder(folder)
}
