//! Files of blocks that somebody makes of a ledger's records, and reads from memory: for backups, whose pieces are such files.

use crate::LedgerError;
use crate::file_head::{FILE_HEAD_BYTES, FileHead};
use crate::reading::StoredRecord;
use crate::segment::{MAGIC, Segment};
use bytes::Bytes;
use crypto::Digest;
use std::path::Path;
use std::sync::Arc;

/// A file of blocks in memory, as a ledger's folder has it.
///
/// ```
/// use ledger::BlockFile;
/// use std::path::Path;
///
/// let network = crypto::sha256(&[b"charter"]);
/// let file = BlockFile::begin(network, 7);
/// assert!(file.is_empty());
/// let name = Path::new("blocks-00000000000000000007.log");
/// assert_eq!(BlockFile::name(7), name.to_str().unwrap());
/// let records = BlockFile::read(name, (network, 7), file.into_bytes().into())?;
/// assert_eq!(records.count(), 0);
/// # Ok::<(), ledger::LedgerError>(())
/// ```
pub struct BlockFile {
    bytes: Vec<u8>,
}

impl BlockFile {
    /// A file whose first block will be the one of this height.
    pub fn begin(ledger: Digest, first_height: u64) -> BlockFile {
        let head = FileHead { magic: MAGIC, ledger, height: first_height };
        BlockFile { bytes: head.to_bytes().to_vec() }
    }

    /// What such a file is called in a ledger's folder.
    pub fn name(first_height: u64) -> String {
        Segment::file_name(first_height)
    }

    /// Appends the next record.
    pub fn push(&mut self, record: &StoredRecord) {
        record.append_to(&mut self.bytes);
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == FILE_HEAD_BYTES
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The content.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The records of a file with this content, each compared with its checksums. `path` names the file in errors. Ends after
    /// the first error.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`], [`LedgerError::Version`] and [`LedgerError::OtherLedger`] for its head.
    pub fn read(
        path: &Path,
        (ledger, first_height): (Digest, u64),
        content: Bytes,
    ) -> Result<impl Iterator<Item = Result<StoredRecord, LedgerError>> + use<>, LedgerError> {
        FileHead { magic: MAGIC, ledger, height: first_height }.check_bytes(&content, path)?;
        let path: Arc<Path> = path.into();
        let (mut offset, mut height, mut ended) = (FILE_HEAD_BYTES, first_height, false);
        Ok(std::iter::from_fn(move || {
            if ended || offset == content.len() {
                return None;
            }
            let read = StoredRecord::of_bytes(&path, offset, &content).and_then(|record| {
                let found = record.summary().header.height;
                match found == height {
                    true => Ok(record),
                    false => Err(format!("expected height {height}, found height {found}")),
                }
            });
            Some(match read {
                Ok(record) => {
                    offset += record.bytes() as usize;
                    height += 1;
                    Ok(record)
                }
                Err(what) => {
                    ended = true;
                    Err(LedgerError::damaged(&path, offset as u64, height, what))
                }
            })
        }))
    }
}
