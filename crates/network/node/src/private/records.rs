//! Records of a file that grows, each with its length and a checksum: what a crash has torn or a disk has changed is found.
//!
//! ```text
//! record: length of the content (4 bytes) ‖ checksum (8 bytes of SHA-256) ‖ content
//! ```

use crypto::sha256;
use std::io::Read;

pub(super) const HEAD_BYTES: usize = 4 + 8;

/// A record that is written.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// How the records of a file end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordsEnd {
    /// With the last of them.
    Whole,
    /// Here one begins that the file ends in: a crash has torn it, or it is being written.
    Torn(u64),
    /// Here one says that it is longer than any: nobody knows where the next one begins.
    Lost(u64),
}

/// The bytes of a record.
pub(super) fn record(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&sha256(&[content]).0[..8]);
    bytes.extend_from_slice(content);
    bytes
}

/// What a whole record has; `None` for anything else.
pub(super) fn content_of(record: &[u8]) -> Option<&[u8]> {
    let (head, content) = record.split_at_checked(HEAD_BYTES)?;
    let whole = head[..4] == (content.len() as u32).to_le_bytes() && head[4..] == sha256(&[content]).0[..8];
    whole.then_some(content)
}

/// Reads all records, whose contents have at most so many bytes. `visit` gets the content of each; nothing where it is damaged.
///
/// # Errors
/// Those of the file.
pub(super) fn read(
    mut file: impl Read,
    most: usize,
    mut visit: impl FnMut(Place, Option<&[u8]>),
) -> std::io::Result<RecordsEnd> {
    let (mut at, mut record) = (0, Vec::new());
    loop {
        record.resize(4, 0);
        if !filled(&mut file, &mut record)? {
            return Ok(RecordsEnd::Whole);
        }
        let length = u32::from_le_bytes([record[0], record[1], record[2], record[3]]) as usize;
        if length > most {
            return Ok(RecordsEnd::Lost(at));
        }
        record.resize(HEAD_BYTES + length, 0);
        if !filled(&mut file, &mut record[4..])? {
            return Ok(RecordsEnd::Torn(at));
        }
        visit(Place { offset: at, length: record.len() as u32 }, content_of(&record));
        at += record.len() as u64;
    }
}

/// Whether there was enough to fill this.
fn filled(file: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
