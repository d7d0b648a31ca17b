//! Compares files with their checksums.

use crate::files::{Files, mark_damaged};
use lsm_tree::checksum::ChecksummedWriter;
use state::StoreError;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that are read between two rests where a file is compared with its checksum.
const VERIFIED_BYTES: usize = 256 << 10;

/// Files that are whole, by device and number: a file may have several names.
pub(crate) type WholeFiles = BTreeSet<(u64, u64)>;

impl Files {
    /// Reads every file and compares it with its checksum, but for those that are known to be `whole`. `rest` hears how many bytes
    /// were read, and says whether to go on.
    ///
    /// # Errors
    /// The first that is another one than was written, or cannot be read.
    pub(crate) fn verify(
        &self,
        whole: &mut WholeFiles,
        rest: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        check_list(self.folder()).inspect_err(|_| mark_damaged(self.folder()))?;
        let mut piece = vec![0; VERIFIED_BYTES];
        for (path, expected) in self.tables() {
            let failed = |what: &dyn Display| {
                mark_damaged(self.folder());
                StoreError::read(path.display(), what)
            };
            let mut file = std::fs::File::open(&path).map_err(|error| failed(&error))?;
            let metadata = file.metadata().map_err(|error| failed(&error))?;
            let file_id = (metadata.dev(), metadata.ino());
            if whole.contains(&file_id) {
                continue;
            }
            let mut hashing = ChecksummedWriter::new(std::io::sink());
            loop {
                let read = file.read(&mut piece).map_err(|error| failed(&error))?;
                if read == 0 {
                    break;
                }
                hashing.write_all(&piece[..read]).map_err(|error| failed(&error))?;
                if rest(read as u64).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let found = hashing.checksum();
            if found != expected {
                mark_damaged(self.folder());
                let what = format_args!("expected a file with checksum {expected}, found {found}");
                return Err(StoreError::damaged(path.display(), what));
            }
            whole.insert(file_id);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Compares the list of files, `v` and a number, with the checksum that stands in `current`: `lsm-tree` writes it and does not
/// compare it.
pub(crate) fn check_list(folder: &Path) -> Result<(), StoreError> {
    let current = folder.join("current");
    let failed = |path: &Path, what: &dyn Display| StoreError::read(path.display(), what);
    let read = || match std::fs::read(&current) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        stored => stored.map(Some).map_err(|error| failed(&current, &error)),
    };
    let mut stored = read()?;
    while let Some(bytes) = stored.take() {
        let parts =
            bytes.split_last_chunk::<17>().and_then(|(number, rest)| Some((number.first_chunk()?, rest)));
        let Some((number, [expected @ .., 0])) = parts else {
            let what = "expected the number of a list, its checksum and a zero";
            return Err(StoreError::damaged(current.display(), what));
        };
        let list = folder.join(format!("v{}", u64::from_le_bytes(*number)));
        let hashed = std::fs::read(&list).and_then(|content| {
            let mut hashing = ChecksummedWriter::new(std::io::sink());
            hashing.write_all(&content)?;
            Ok(hashing.checksum().into_u128().to_le_bytes())
        });
        if hashed.as_ref().is_ok_and(|found| found == expected) {
            return Ok(());
        }
        // There may be another list meanwhile.
        stored = read()?.filter(|now| *now != bytes);
        if stored.is_none() {
            return Err(match hashed {
                Err(error) => failed(&list, &error),
                Ok(_) => {
                    StoreError::damaged(list.display(), "the list of files is not the one that was written")
                }
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(files: &Files) -> Result<(), StoreError> {
        files.verify(&mut WholeFiles::new(), &mut |_| ControlFlow::Continue(())).map(drop)
    }

    #[test]
    fn a_flipped_byte_in_any_place_of_a_file_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::open(&folder.path().join("store-1"), 1 << 20).expect("an empty folder");
        let mut run = files.begin().expect("room");
        (0..200).for_each(|key| run.put((vec![key], Some(vec![key; 100]))).expect("there is room"));
        run.finish(files.take_over()).expect("there is room");
        verify(&files).expect("nothing is damaged");
        let tables = files.folder().join("tables");
        let table = std::fs::read_dir(tables).expect("a folder").next().expect("one").expect("it").path();
        let bytes = std::fs::read(&table).expect("it is there");
        for at in (0..bytes.len()).step_by(bytes.len() / 300 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            std::fs::write(&table, &damaged).expect("it is written");
            let error = verify(&files).expect_err("a byte is another one").to_string();
            assert!(error.contains(&table.display().to_string()), "byte {at}: {error}");
        }
    }
}
