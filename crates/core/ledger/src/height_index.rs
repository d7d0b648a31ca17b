//! Where each record of a finished segment starts (`blocks-….idx`), so that opening a ledger reads no block of it.

use crate::LedgerError;
use crate::disk::Disk;
use crate::layout::{Fields, checksum};
use crypto::Digest;
use std::path::Path;

const MAGIC: [u8; 8] = *b"EnHeight";
const HEAD_BYTES: usize = 56;

/// Writes the index of one segment.
pub(crate) fn write(
    disk: &Disk,
    path: &Path,
    ledger: Digest,
    first_height: u64,
    offsets: &[u32],
) -> Result<(), LedgerError> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + offsets.len() * 4);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&ledger.0);
    bytes.extend_from_slice(&first_height.to_le_bytes());
    bytes.extend_from_slice(&(offsets.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    offsets.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_le_bytes()));
    let crc = checksum(&[&bytes[..HEAD_BYTES - 4], &bytes[HEAD_BYTES..]]);
    bytes[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
    disk.write_replaceable(path, &bytes)
}

/// Reads the index of the segment that starts with `first_height`; nothing where it is missing, damaged or of another
/// segment, so that the segment must be scanned.
pub(crate) fn read(path: &Path, ledger: Digest, first_height: u64) -> Option<Vec<u32>> {
    let bytes = std::fs::read(path).ok()?;
    if bytes.len() < HEAD_BYTES || bytes[..8] != MAGIC {
        return None;
    }
    let mut fields = Fields(&bytes[8..HEAD_BYTES]);
    let (found_ledger, found_height, count, crc) =
        (fields.digest(), fields.u64(), fields.u32(), fields.u32());
    let body = &bytes[HEAD_BYTES..];
    let good = crc == checksum(&[&bytes[..HEAD_BYTES - 4], body])
        && (found_ledger, found_height) == (ledger, first_height)
        && body.len() == count as usize * 4;
    let mut fields = Fields(body);
    good.then(|| (0..count).map(|_| fields.u32()).collect())
}
