//! What an export reads of a folder that a node may have open: the newest certificate of a checkpoint, and what proves amended
//! charters. Takes no lock and changes nothing, not even leftovers, which may be what the node is writing.

use crate::checkpoint::{certificate_name, file_name};
use crate::{LedgerError, LedgerFiles};
use crypto::Digest;
use std::io;
use std::path::Path;
use types::Handover;

/// How often a folder is listed again, because what was newest in it has gone.
const ATTEMPTS: usize = 8;

/// Height and certificate of the newest checkpoint in this folder that is certified, as it was handed over; `None` where none
/// is. What it says is the caller's to check.
///
/// # Errors
/// [`LedgerError::Io`].
pub fn newest_certificate(checkpoints: &Path) -> Result<Option<(u64, Vec<u8>)>, LedgerError> {
    let failed = |error| LedgerError::io("list", checkpoints, error);
    let mut attempt = 0;
    loop {
        let mut newest = None;
        let entries = match std::fs::read_dir(checkpoints) {
            // The node has never run.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let height = name.to_str().and_then(crate::checkpoint::height_of_name);
            let certified = height.filter(|height| checkpoints.join(certificate_name(*height)).exists());
            newest = newest.max(certified);
        }
        let Some(height) = newest else { return Ok(None) };
        let path = checkpoints.join(certificate_name(height));
        match std::fs::read(&path) {
            Ok(bytes) if checkpoints.join(file_name(height)).exists() => return Ok(Some((height, bytes))),
            Err(error) if error.kind() != io::ErrorKind::NotFound || attempt == ATTEMPTS => {
                return Err(LedgerError::io("read", &path, error));
            }
            _ if attempt == ATTEMPTS => return Ok(None),
            // A newer one has taken its place meanwhile.
            _ => attempt += 1,
        }
    }
}

/// Heights and certificates of the certified checkpoints in this folder from a height on, ascending, as they were handed over. What
/// they say is the caller's to check.
///
/// # Errors
/// [`LedgerError::Io`].
pub fn certificates_from(checkpoints: &Path, height: u64) -> Result<Vec<(u64, Vec<u8>)>, LedgerError> {
    let failed = |error| LedgerError::io("list", checkpoints, error);
    let mut heights = Vec::new();
    let entries = match std::fs::read_dir(checkpoints) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        heights.extend(name.to_str().and_then(crate::checkpoint::height_of_name));
    }
    heights.retain(|found| *found >= height);
    heights.sort_unstable();
    heights.dedup();
    let mut found = Vec::new();
    for height in heights {
        let path = checkpoints.join(certificate_name(height));
        match std::fs::read(&path) {
            Ok(bytes) => found.push((height, bytes)),
            // It is not certified, or has gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(LedgerError::io("read", &path, error)),
        }
    }
    Ok(found)
}

/// What proves each amended charter that blocks up to `height` carry, in their order. Reads the first block of each file, and all of
/// the files that carry one.
///
/// # Errors
/// As [`LedgerFiles::open`] and [`crate::Records`].
pub fn read_handovers(folder: &Path, ledger: Digest, height: u64) -> Result<Vec<Handover>, LedgerError> {
    let files = LedgerFiles::open(folder, ledger)?;
    let (mut handovers, mut named) = match files.anchor() {
        Some(anchor) => (anchor.handovers.clone(), anchor.header.charters),
        None => (Vec::new(), ledger),
    };
    for file in 0..files.files().len() {
        let next = files.files().get(file + 1).map_or(u64::MAX, |(first, _)| *first);
        // What headers name only grows: where the next file begins with the same, this one has nothing else.
        if next <= height
            && let Some(first) = files.records_from_file(file + 1).next()
            && first?.summary().header.charters == named
        {
            continue;
        }
        for record in files.records_from_file(file) {
            let record = record?;
            let header = &record.summary().header;
            if header.height > height || header.height >= next {
                break;
            }
            // A block that names something else than the one before carries it.
            if header.charters != named {
                named = header.charters;
                handovers.extend(record.decode_what_is_kept()?.block.attested.handover());
            }
        }
    }
    Ok(handovers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckpointStore;
    use std::io::Write;

    #[test]
    fn the_newest_certificate_is_read_beside_a_node_and_nothing_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(newest_certificate(folder.path()).expect("it can be listed"), None);
        let store = CheckpointStore::open(folder.path(), crypto::sha256(&[b"charter"])).expect("empty");
        for height in [10, 20, 30] {
            store.write(height, |writer| writer.write_all(b"state")).expect("there is room");
        }
        let being_written = folder.path().join("checkpoint.tmp");
        std::fs::write(&being_written, b"half").expect("there is room");
        assert_eq!(newest_certificate(folder.path()).expect("it can be listed"), None);
        store.certify(20, b"twenty").expect("there is room");
        let newest = newest_certificate(folder.path()).expect("it can be listed");
        assert_eq!(newest, Some((20, b"twenty".to_vec())));
        assert!(being_written.exists(), "the node may be writing it");
        assert_eq!(newest_certificate(&folder.path().join("nowhere")).expect("the node has never run"), None);
    }
}
