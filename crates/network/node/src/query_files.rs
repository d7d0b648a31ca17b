//! Temporary files of queries whose rows do not fit into memory.

use sql::{Scratch, ScratchFile};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use types::{MemoryPool, SqlError, SqlState};

/// Megabytes that the files of all queries have together where `node.toml` says nothing.
const QUERY_DISK_MEGABYTES: u64 = 4096;

/// One operator holds this part of the memory of all queries before it writes, within these bounds.
const OF_QUERY_MEMORY: u64 = 16;
const OPERATOR_BYTES_MIN: u64 = 256 << 10;
const OPERATOR_BYTES_MAX: u64 = 64 << 20;

/// Room for the temporary files of all queries of a node.
#[derive(Debug)]
pub(crate) struct QueryFiles {
    /// Where the files are made. They have no names, so that nothing is left of them whatever ends the node.
    folder: PathBuf,
    operator_bytes: u64,
    room: Arc<Room>,
}

#[derive(Debug)]
struct Room {
    most: u64,
    taken: AtomicU64,
}

impl QueryFiles {
    /// Files in a folder, which is made with the first one; `megabytes`: what `node.toml` says. `None`: there are to be none.
    pub fn in_folder(
        folder: PathBuf,
        megabytes: Option<u64>,
        memory: &MemoryPool,
    ) -> Option<Arc<dyn Scratch>> {
        let most = megabytes.unwrap_or(QUERY_DISK_MEGABYTES).saturating_mul(1 << 20);
        let operator_bytes = (memory.most() / OF_QUERY_MEMORY).clamp(OPERATOR_BYTES_MIN, OPERATOR_BYTES_MAX);
        let room = Arc::new(Room { most, taken: AtomicU64::new(0) });
        (most > 0).then(|| Arc::new(QueryFiles { folder, operator_bytes, room }) as Arc<dyn Scratch>)
    }
}

impl Scratch for QueryFiles {
    fn file(&self) -> Result<Box<dyn ScratchFile>, SqlError> {
        let file = nameless(&self.folder).map_err(|error| failed("made", &error))?;
        Ok(Box::new(QueryFile { file, bytes: 0, room: self.room.clone() }))
    }

    fn operator_bytes(&self) -> u64 {
        self.operator_bytes
    }
}

/// A file without a name, for its owner alone: it goes when it is closed.
fn nameless(folder: &PathBuf) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let name = crypto::Digest(crypto::random_bytes()).to_string();
    let path = folder.join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

struct QueryFile {
    file: File,
    bytes: u64,
    room: Arc<Room>,
}

impl ScratchFile for QueryFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        let more = bytes.len() as u64;
        let taken = |taken: u64| taken.checked_add(more).filter(|taken| *taken <= self.room.most);
        self.room.taken.fetch_update(Relaxed, Relaxed, taken).map_err(|_| self.room.exhausted())?;
        self.bytes += more;
        let written = self.file.write_all_at(bytes, self.bytes - more);
        written.map_err(|error| failed("written", &error))
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), SqlError> {
        self.file.read_exact_at(bytes, offset).map_err(|error| failed("read", &error))
    }
}

impl Drop for QueryFile {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Relaxed);
    }
}

impl Room {
    #[cold]
    fn exhausted(&self) -> SqlError {
        let message = format!(
            "the queries of this node have no room left on the disk: all of them together get {} megabytes (query_disk_megabytes)",
            self.most >> 20
        );
        SqlError::new(SqlState::DISK_FULL, message).hint(
            "Ask for fewer rows at a time, wait until other queries have ended, or give them more in node.toml.",
        )
    }
}

#[cold]
fn failed(done: &str, error: &io::Error) -> SqlError {
    let message = format!("a temporary file of the query could not be {done}: {error}");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => SqlError::new(SqlState::DISK_FULL, message)
            .hint("Make room on the disk of the node's folder, or lower query_disk_megabytes in node.toml."),
        _ => SqlError::new(SqlState::IO_ERROR, message)
            .hint("Look at the disk of the node's folder, then ask again."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_names_and_give_their_room_back() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("temporary");
        let memory = MemoryPool::new(1 << 30);
        assert!(QueryFiles::in_folder(folder.clone(), Some(0), &memory).is_none());
        let files = QueryFiles::in_folder(folder.clone(), Some(1), &memory).expect("a megabyte");
        assert_eq!(files.operator_bytes(), 64 << 20);
        let mut one = files.file().expect("a file");
        let mut other = files.file().expect("a file");
        one.append(&[1; 600_000]).expect("room");
        other.append(&[2; 400_000]).expect("room");
        one.append(&[3; 10]).expect("room");
        assert_eq!(std::fs::read_dir(&folder).expect("made").count(), 0);
        let mut bytes = [0; 12];
        one.read(599_998, &mut bytes).expect("written");
        assert_eq!(bytes, [1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!(one.read(599_999, &mut bytes).expect_err("not so much").state, SqlState::IO_ERROR);
        let error = other.append(&[2; 100_000]).expect_err("no room");
        assert_eq!(error.state, SqlState::DISK_FULL);
        assert!(error.message.contains("1 megabytes (query_disk_megabytes)"), "{error:?}");
        drop(one);
        other.append(&[2; 100_000]).expect("room again");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let parent = tempfile::tempdir().expect("a folder");
        let file = parent.path().join("file");
        std::fs::write(&file, "").expect("written");
        let files = QueryFiles::in_folder(file.join("temporary"), None, &MemoryPool::new(0)).expect("files");
        assert_eq!(files.operator_bytes(), OPERATOR_BYTES_MIN);
        let error = files.file().err().expect("no folder");
        assert!(error.message.starts_with("a temporary file of the query could not be made"), "{error:?}");
    }
}
