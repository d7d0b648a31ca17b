//! Pieces that were fetched, on the disk, so that a node that is killed while it joins goes on where it was. They are kept
//! under the leaves that they hash to: the next checkpoint has most of them too.
//!
//! ```text
//! pieces   records: leaf (32) · length u32 · first bytes of the SHA-256 of the piece u32 · bytes of the piece
//! ```
//!
//! Nothing is flushed and nothing here is believed: a piece is checked like one that has just come.

use crate::NodeError;
use crypto::Digest;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEAD_BYTES: u64 = 40;

/// The folder of pieces.
pub struct Staging {
    folder: PathBuf,
    file: File,
    end: u64,
    places: Places,
}

impl Staging {
    /// Opens or creates it, and finds what is there.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub fn open(folder: &Path) -> Result<Staging, NodeError> {
        let path = folder.join("pieces");
        let failed = |action| {
            let path = path.clone();
            move |error| NodeError::File { action, path, error }
        };
        std::fs::create_dir_all(folder).map_err(failed("create"))?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed("open"))?;
        let (places, end) = scan(&mut file).map_err(failed("read"))?;
        file.set_len(end).map_err(failed("cut"))?;
        Ok(Staging { folder: folder.to_path_buf(), file, end, places })
    }

    /// How many pieces are there.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The piece with this leaf; nothing where there is none, or none that is whole.
    pub fn get(&mut self, leaf: &Digest) -> Option<Vec<u8>> {
        let (offset, length) = *self.places.get(leaf)?;
        let mut bytes = vec![0; length as usize];
        let read = self.file.read_exact_at(&mut bytes, offset);
        if read.is_err() {
            self.forget(leaf);
            return None;
        }
        Some(bytes)
    }

    /// It is not what it should be.
    pub fn forget(&mut self, leaf: &Digest) {
        self.places.remove(leaf);
    }

    /// Keeps a piece that was checked.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub fn put(&mut self, leaf: Digest, bytes: &[u8]) -> Result<(), NodeError> {
        let Ok(length) = u32::try_from(bytes.len()) else { return Ok(()) };
        let mut record = leaf.0.to_vec();
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&checksum(bytes).to_le_bytes());
        record.extend_from_slice(bytes);
        self.file.write_all_at(&record, self.end).map_err(|error| NodeError::File {
            action: "write",
            path: self.folder.join("pieces"),
            error,
        })?;
        self.places.insert(leaf, (self.end + HEAD_BYTES, length));
        self.end += record.len() as u64;
        Ok(())
    }

    /// Everything is where it belongs: the folder goes.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub fn remove(folder: &Path) -> Result<(), NodeError> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(NodeError::File { action: "remove", path: folder.to_path_buf(), error })
            }
            _ => Ok(()),
        }
    }
}

/// A digest cut short: it finds what a disk does, not what somebody means to do.
fn checksum(bytes: &[u8]) -> u32 {
    let digest = crypto::sha256(&[bytes]);
    u32::from_le_bytes(*digest.0.first_chunk().expect("a digest has 32 bytes"))
}

/// Where the bytes with a digest are: place and length.
type Places = HashMap<Digest, (u64, u32)>;

/// Records up to the first that is torn, and where that begins.
fn scan(file: &mut File) -> io::Result<(Places, u64)> {
    let length = file.metadata()?.len();
    let mut places = HashMap::new();
    let mut at = 0;
    file.seek(SeekFrom::Start(0))?;
    let mut reader = io::BufReader::new(&mut *file);
    while at + HEAD_BYTES <= length {
        let mut head = [0; HEAD_BYTES as usize];
        reader.read_exact(&mut head)?;
        let leaf = Digest(*head.first_chunk().expect("the head has these bytes"));
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (bytes, expected) = (word(32), word(36));
        if at + HEAD_BYTES + u64::from(bytes) > length {
            break;
        }
        let mut piece = vec![0; bytes as usize];
        reader.read_exact(&mut piece)?;
        if checksum(&piece) == expected {
            places.insert(leaf, (at + HEAD_BYTES, bytes));
        }
        at += HEAD_BYTES + u64::from(bytes);
    }
    Ok((places, at))
}
