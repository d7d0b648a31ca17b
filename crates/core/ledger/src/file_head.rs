//! The head that files of blocks and checkpoints begin with: what they are, of which network, from which height.

use crate::LedgerError;
use crate::disk::read_up_to;
use crate::layout::{Fields, checksum};
use crypto::Digest;
use std::fs::File;
use std::path::Path;

/// Format of everything in a data folder; one number for all its files.
pub(crate) const FORMAT_VERSION: u32 = 2;
pub(crate) const FILE_HEAD_BYTES: usize = 64;

/// What a file's head says, or must say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHead {
    pub(crate) magic: [u8; 8],
    pub(crate) ledger: Digest,
    /// First height of a file of blocks, height of a checkpoint.
    pub(crate) height: u64,
}

impl FileHead {
    pub(crate) fn to_bytes(self) -> [u8; FILE_HEAD_BYTES] {
        let mut bytes = [0; FILE_HEAD_BYTES];
        bytes[..8].copy_from_slice(&self.magic);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.ledger.0);
        bytes[48..56].copy_from_slice(&self.height.to_le_bytes());
        let crc = checksum(&[&bytes[..60]]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the head of `file` and compares it with this one.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`], [`LedgerError::Version`] and [`LedgerError::OtherLedger`].
    pub(crate) fn check(self, file: &File, path: &Path) -> Result<(), LedgerError> {
        let mut bytes = [0; FILE_HEAD_BYTES];
        let read = read_up_to(file, &mut bytes, 0).map_err(|error| LedgerError::io("read", path, error))?;
        self.check_bytes(&bytes[..read], path)
    }

    /// The same of bytes that a file begins with.
    ///
    /// # Errors
    /// As [`FileHead::check`].
    pub(crate) fn check_bytes(self, begin: &[u8], path: &Path) -> Result<(), LedgerError> {
        let damaged = |offset, what: String| LedgerError::damaged(path, offset, self.height, what);
        let Some(bytes) = begin.first_chunk::<FILE_HEAD_BYTES>() else {
            let what = format!("expected a file head of {FILE_HEAD_BYTES} bytes, found the end of the file");
            return Err(damaged(begin.len() as u64, what));
        };
        let (found, expected) = (checksum(&[&bytes[..60]]), Fields(&bytes[60..]).u32());
        if bytes[..8] != self.magic || expected != found {
            return Err(damaged(
                0,
                format!("expected a file head with checksum {expected:08x}, found {found:08x}"),
            ));
        }
        let mut fields = Fields(&bytes[8..]);
        let (version, _) = (fields.u32(), fields.u32());
        let path = path.to_path_buf();
        if version != FORMAT_VERSION {
            return Err(LedgerError::Version { path, expected: FORMAT_VERSION, found: version });
        }
        let (found, height) = (fields.digest(), fields.u64());
        if found != self.ledger {
            return Err(LedgerError::OtherLedger { path, expected: self.ledger, found });
        }
        if height != self.height {
            return Err(damaged(
                48,
                format!("expected height {} as the file's name says, found {height}", self.height),
            ));
        }
        Ok(())
    }
}
