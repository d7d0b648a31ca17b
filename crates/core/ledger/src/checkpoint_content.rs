//! The content of a checkpoint, read from any place: every chunk is checked when it is read.

use crate::LedgerError;
use crate::checkpoint::{CHUNK_BYTES, CHUNK_HEAD_BYTES, MAGIC, chunk_checksum};
use crate::disk::read_up_to;
use crate::file_head::{FILE_HEAD_BYTES, FileHead};
use crate::layout::Fields;
use crypto::Digest;
use parking_lot::Mutex;
use std::fs::File;
use std::path::PathBuf;

/// The open file of a checkpoint. Memory: the chunk that was read last, 1 MiB.
pub struct CheckpointContent {
    path: PathBuf,
    file: File,
    height: u64,
    /// Number and content of the chunk that was read last.
    newest: Mutex<Option<(u64, Vec<u8>)>>,
}

impl CheckpointContent {
    pub(crate) fn open(path: PathBuf, ledger: Digest, height: u64) -> Result<CheckpointContent, LedgerError> {
        let file = File::open(&path).map_err(|error| LedgerError::io("open", &path, error))?;
        FileHead { magic: MAGIC, ledger, height }.check(&file, &path)?;
        Ok(CheckpointContent { path, file, height, newest: Mutex::new(None) })
    }

    /// Reads content from byte `place` on, at most to the end of the chunk that this is in. Gives how many bytes; none at the
    /// end of the content.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] and [`LedgerError::Io`].
    pub fn read_at(&self, place: u64, bytes: &mut [u8]) -> Result<usize, LedgerError> {
        let (number, within) = (place / CHUNK_BYTES as u64, (place % CHUNK_BYTES as u64) as usize);
        let mut newest = self.newest.lock();
        if newest.as_ref().is_none_or(|(known, _)| *known != number) {
            *newest = Some((number, self.chunk(number)?));
        }
        let chunk = newest.as_ref().map_or(&[][..], |(_, chunk)| chunk);
        let rest = chunk.get(within..).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Content of a chunk; none behind the last.
    fn chunk(&self, number: u64) -> Result<Vec<u8>, LedgerError> {
        let offset = FILE_HEAD_BYTES as u64 + number * (CHUNK_HEAD_BYTES + CHUNK_BYTES) as u64;
        let mut stored = vec![0; CHUNK_HEAD_BYTES + CHUNK_BYTES];
        let read = read_up_to(&self.file, &mut stored, offset)
            .map_err(|error| LedgerError::io("read", &self.path, error))?;
        let damaged = |what: String| LedgerError::damaged(&self.path, offset, self.height, what);
        let Some(content) = stored[..read].get(CHUNK_HEAD_BYTES..) else { return Ok(Vec::new()) };
        let mut fields = Fields(&stored[..CHUNK_HEAD_BYTES]);
        let (length, expected) = (fields.u32(), fields.u32());
        // The trailer has length 0, and nothing that anybody asks for.
        let content = content
            .get(..length as usize)
            .ok_or_else(|| damaged(format!("expected a chunk of {length} bytes, found {}", content.len())))?;
        let found = chunk_checksum(number, length, content);
        if length > 0 && found != expected {
            return Err(damaged(format!("expected a chunk with checksum {expected:08x}, found {found:08x}")));
        }
        Ok(content.to_vec())
    }
}
