//! Files that hold a snapshot each, opaque to the ledger, checked chunk by chunk when they are read.

use crate::LedgerError;
use crate::disk::{self, Disk, Faults, read_up_to};
use crate::file_head::{FILE_HEAD_BYTES, FileHead};
use crate::layout::{Fields, checksum};
use crypto::{Digest, DigestWriter};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many of the newest checkpoints are kept, besides the newest that is certified.
const KEPT: usize = 2;
/// Bytes of a full chunk; also the memory that writing or reading takes.
const CHUNK_BYTES: usize = 1 << 20;
const MAGIC: [u8; 8] = *b"EnCheckp";
const CHUNK_HEAD_BYTES: usize = 8;
const TRAILER_BYTES: usize = 48;

/// The checkpoints of one node: the two newest stay, and the newest one that is certified.
///
/// ```
/// use ledger::CheckpointStore;
/// use std::io::{Read, Write};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let store = CheckpointStore::open(folder.path(), crypto::sha256(&[b"charter"]))?;
/// store.write(1_000, |writer| writer.write_all(b"all tables"))?;
/// for height in store.newest() {
///     let mut reader = store.read(height)?;
///     let mut snapshot = Vec::new();
///     // On an error, the next older one is tried.
///     if reader.read_to_end(&mut snapshot).is_ok() && reader.finish().is_ok() {
///         assert_eq!(snapshot, b"all tables");
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct CheckpointStore {
    folder: PathBuf,
    ledger: Digest,
    disk: Disk,
    /// Ascending.
    heights: Mutex<Vec<u64>>,
    /// Those that are certified, ascending.
    certified: Mutex<Vec<u64>>,
    /// Held while a checkpoint is written, which may take seconds; nothing else is.
    writing: Mutex<()>,
    /// Held while files come and go, for a moment; taken behind `writing` where both are.
    changing: Mutex<()>,
}

impl CheckpointStore {
    /// Opens the folder of checkpoints, creating it if need be. One process at a time, which the ledger's lock
    /// sees to where the folder lies inside the ledger's.
    ///
    /// # Errors
    /// [`LedgerError::OtherLedger`] where a checkpoint is another network's, [`LedgerError::Io`]. A damaged
    /// checkpoint is no error before it is read.
    pub fn open(folder: impl AsRef<Path>, ledger: Digest) -> Result<CheckpointStore, LedgerError> {
        CheckpointStore::open_with(folder, ledger, None)
    }

    /// [`CheckpointStore::open`] with the disk faults of a test.
    ///
    /// # Errors
    /// As [`CheckpointStore::open`].
    pub fn open_with(
        folder: impl AsRef<Path>,
        ledger: Digest,
        faults: Option<Arc<Faults>>,
    ) -> Result<CheckpointStore, LedgerError> {
        let folder = folder.as_ref().to_path_buf();
        disk::create_folder(&folder)?;
        let names = disk::list(&folder)?;
        let mut heights: Vec<u64> = names.iter().filter_map(|name| height_of_name(name)).collect();
        heights.sort_unstable();
        for &height in &heights {
            let path = folder.join(file_name(height));
            // A damaged one is refused when it is read; the older one may be good.
            let opened = CheckpointReader::open(path, ledger, height);
            if let Err(error @ (LedgerError::OtherLedger { .. } | LedgerError::Version { .. })) = opened {
                return Err(error);
            }
        }
        let certified = |height: &u64| names.iter().any(|name| *name == certificate_name(*height));
        let certified = heights.iter().copied().filter(certified).collect();
        Ok(CheckpointStore {
            folder,
            ledger,
            disk: Disk::new(faults),
            heights: Mutex::new(heights),
            certified: Mutex::new(certified),
            writing: Mutex::default(),
            changing: Mutex::default(),
        })
    }

    /// Heights of the checkpoints, the newest first: the order in which to try them.
    pub fn newest(&self) -> Vec<u64> {
        self.heights.lock().iter().rev().copied().collect()
    }

    /// Heights of the checkpoints that are certified, the newest first.
    pub fn certified(&self) -> Vec<u64> {
        self.certified.lock().iter().rev().copied().collect()
    }

    /// The certificate of the checkpoint of `height`, as it was handed over; `None` where there is none.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn certificate(&self, height: u64) -> Result<Option<Vec<u8>>, LedgerError> {
        let path = self.folder.join(certificate_name(height));
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LedgerError::io("read", &path, error)),
        }
    }

    /// Keeps the certificate of the checkpoint of `height`, which older ones may go for. What it says is the caller's.
    ///
    /// # Errors
    /// [`LedgerError::NoCheckpoint`], [`LedgerError::DiskFull`] and [`LedgerError::Io`].
    pub fn certify(&self, height: u64, certificate: &[u8]) -> Result<(), LedgerError> {
        let _alone = self.changing.lock();
        if !self.heights.lock().contains(&height) {
            return Err(LedgerError::NoCheckpoint { path: self.folder.clone(), height });
        }
        let path = self.folder.join(certificate_name(height));
        self.disk.write_replaceable(&path, certificate)?;
        let mut certified = self.certified.lock();
        certified.retain(|known| *known != height);
        certified.push(height);
        certified.sort_unstable();
        drop(certified);
        self.remove_old()
    }

    /// Writes the checkpoint of `height` from what `fill` writes, makes it durable, and removes all but the two
    /// newest and the newest that is certified. Gives the file's length in bytes. Memory: one chunk of 1 MiB.
    ///
    /// # Errors
    /// [`LedgerError::DiskFull`] and [`LedgerError::Io`], also for an error that `fill` returns; the checkpoints that
    /// there were are untouched.
    pub fn write(
        &self,
        height: u64,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> io::Result<()>,
    ) -> Result<u64, LedgerError> {
        let _alone = self.writing.lock();
        let path = self.folder.join(file_name(height));
        let temporary = disk::temporary_name(&path);
        let bytes = self.write_file(&temporary, height, fill).inspect_err(|_| {
            // The error is what counts; what is left over is removed when the folder is opened next.
            let _ = disk::remove(&temporary);
        })?;
        let _changing = self.changing.lock();
        disk::rename(&temporary, &path)?;
        disk::flush_folder(&self.folder)?;
        let mut heights = self.heights.lock();
        heights.retain(|&known| known != height);
        heights.push(height);
        heights.sort_unstable();
        drop(heights);
        self.remove_old()?;
        Ok(bytes)
    }

    /// The two newest stay, and the newest that is certified: an older one goes only when a newer one is.
    fn remove_old(&self) -> Result<(), LedgerError> {
        let newest_certified = self.certified.lock().last().copied();
        let heights = self.heights.lock().clone();
        let old = heights.len().saturating_sub(KEPT);
        let goes = |height: &&u64| Some(**height) != newest_certified;
        heights[..old].iter().filter(goes).try_for_each(|height| self.remove_one(*height))
    }

    fn remove_one(&self, height: u64) -> Result<(), LedgerError> {
        self.heights.lock().retain(|known| *known != height);
        self.certified.lock().retain(|known| *known != height);
        let certificate = self.folder.join(certificate_name(height));
        if certificate.exists() {
            disk::remove(&certificate)?;
        }
        let checkpoint = self.folder.join(file_name(height));
        if checkpoint.exists() { disk::remove(&checkpoint) } else { Ok(()) }
    }

    fn write_file(
        &self,
        path: &Path,
        height: u64,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> io::Result<()>,
    ) -> Result<u64, LedgerError> {
        let mut writer = CheckpointWriter::create(&self.disk, path, self.ledger, height)?;
        fill(&mut writer).map_err(|error| match error.downcast::<LedgerError>() {
            Ok(error) => error,
            Err(error) => LedgerError::io("write", path, error),
        })?;
        writer.close(height)
    }

    /// Opens the checkpoint of `height`. What is read is checked chunk by chunk; it is whole and right only once
    /// [`CheckpointReader::finish`] has said so.
    ///
    /// # Errors
    /// [`LedgerError::NoCheckpoint`], [`LedgerError::Damaged`], [`LedgerError::OtherLedger`].
    pub fn read(&self, height: u64) -> Result<CheckpointReader, LedgerError> {
        if !self.heights.lock().contains(&height) {
            return Err(LedgerError::NoCheckpoint { path: self.folder.clone(), height });
        }
        CheckpointReader::open(self.folder.join(file_name(height)), self.ledger, height)
    }

    /// Bytes of the checkpoints' files.
    pub fn bytes(&self) -> u64 {
        let bytes = |height: &u64| std::fs::metadata(self.folder.join(file_name(*height)));
        self.heights.lock().iter().filter_map(|height| bytes(height).ok()).map(|file| file.len()).sum()
    }

    /// Removes the checkpoint of `height`, which is damaged.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn remove(&self, height: u64) -> Result<(), LedgerError> {
        let _alone = (self.writing.lock(), self.changing.lock());
        self.remove_one(height)?;
        disk::flush_folder(&self.folder)
    }

    /// Removes the checkpoints above `height`, as healing must when it takes back blocks.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn remove_after(&self, height: u64) -> Result<(), LedgerError> {
        let _alone = (self.writing.lock(), self.changing.lock());
        let above: Vec<u64> = self.heights.lock().iter().copied().filter(|known| *known > height).collect();
        above.into_iter().try_for_each(|height| self.remove_one(height))?;
        disk::flush_folder(&self.folder)
    }
}

pub(crate) fn file_name(height: u64) -> String {
    format!("checkpoint-{height:020}.state")
}

pub(crate) fn certificate_name(height: u64) -> String {
    format!("checkpoint-{height:020}.certificate")
}

pub(crate) fn height_of_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("checkpoint-")?.strip_suffix(".state")?;
    if digits.len() == 20 { digits.parse().ok() } else { None }
}

fn chunk_checksum(number: u64, length: u32, bytes: &[u8]) -> u32 {
    checksum(&[&number.to_le_bytes(), &length.to_le_bytes(), bytes])
}

/// Takes the content of a checkpoint.
pub struct CheckpointWriter<'a> {
    disk: &'a Disk,
    path: &'a Path,
    file: File,
    /// Length of the file.
    offset: u64,
    /// Content that is no full chunk yet, behind room for the chunk's head.
    chunk: Vec<u8>,
    chunks: u64,
    content_bytes: u64,
    digest: DigestWriter,
}

impl<'a> CheckpointWriter<'a> {
    fn create(
        disk: &'a Disk,
        path: &'a Path,
        ledger: Digest,
        height: u64,
    ) -> Result<CheckpointWriter<'a>, LedgerError> {
        let file = disk::create(path)?;
        disk.write_at(&file, path, &FileHead { magic: MAGIC, ledger, height }.to_bytes(), 0)?;
        let mut chunk = Vec::with_capacity(CHUNK_HEAD_BYTES + CHUNK_BYTES);
        chunk.resize(CHUNK_HEAD_BYTES, 0);
        let (chunks, content_bytes, digest) = (0, 0, DigestWriter::default());
        Ok(CheckpointWriter {
            disk,
            path,
            file,
            offset: FILE_HEAD_BYTES as u64,
            chunk,
            chunks,
            content_bytes,
            digest,
        })
    }

    fn write_chunk(&mut self) -> Result<(), LedgerError> {
        let length = (self.chunk.len() - CHUNK_HEAD_BYTES) as u32;
        if length == 0 {
            return Ok(());
        }
        let crc = chunk_checksum(self.chunks, length, &self.chunk[CHUNK_HEAD_BYTES..]);
        self.chunk[..4].copy_from_slice(&length.to_le_bytes());
        self.chunk[4..CHUNK_HEAD_BYTES].copy_from_slice(&crc.to_le_bytes());
        self.disk.write_at(&self.file, self.path, &self.chunk, self.offset)?;
        self.offset += self.chunk.len() as u64;
        self.chunks += 1;
        self.chunk.truncate(CHUNK_HEAD_BYTES);
        Ok(())
    }

    /// Writes the last chunk and the trailer and makes the file durable.
    fn close(mut self, height: u64) -> Result<u64, LedgerError> {
        self.write_chunk()?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(&self.content_bytes.to_le_bytes());
        trailer.extend_from_slice(&height.to_le_bytes());
        trailer.extend_from_slice(&self.digest.finish().0);
        let crc = chunk_checksum(self.chunks, 0, &trailer);
        let bytes = [&0u32.to_le_bytes(), crc.to_le_bytes().as_slice(), &trailer].concat();
        self.disk.write_at(&self.file, self.path, &bytes, self.offset)?;
        self.disk.flush(&self.file, self.path)?;
        Ok(self.offset + bytes.len() as u64)
    }
}

impl Write for CheckpointWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CHUNK_HEAD_BYTES + CHUNK_BYTES - self.chunk.len();
        let taken = &bytes[..room.min(bytes.len())];
        self.chunk.extend_from_slice(taken);
        self.digest.write_all(taken)?;
        self.content_bytes += taken.len() as u64;
        if self.chunk.len() == CHUNK_HEAD_BYTES + CHUNK_BYTES {
            self.write_chunk().map_err(io::Error::other)?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives the content of a checkpoint. Errors of [`Read`] carry a [`LedgerError`] that names file and offset.
pub struct CheckpointReader {
    path: PathBuf,
    file: File,
    height: u64,
    /// Where the next chunk starts.
    offset: u64,
    chunk: Vec<u8>,
    /// How much of the chunk has been given out.
    given: usize,
    chunks: u64,
    content_bytes: u64,
    digest: DigestWriter,
    /// The trailer has been read and was right.
    complete: bool,
}

impl CheckpointReader {
    fn open(path: PathBuf, ledger: Digest, height: u64) -> Result<CheckpointReader, LedgerError> {
        let file = File::open(&path).map_err(|error| LedgerError::io("open", &path, error))?;
        FileHead { magic: MAGIC, ledger, height }.check(&file, &path)?;
        let (offset, digest) = (FILE_HEAD_BYTES as u64, DigestWriter::default());
        let (chunk, given, chunks, content_bytes, complete) = (Vec::new(), 0, 0, 0, false);
        Ok(CheckpointReader {
            path,
            file,
            height,
            offset,
            chunk,
            given,
            chunks,
            content_bytes,
            digest,
            complete,
        })
    }

    /// Reads what is left and checks the trailer: everything that was read so far is right if this succeeds. Gives the
    /// content's length in bytes.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`]: go to the next older checkpoint.
    pub fn finish(mut self) -> Result<u64, LedgerError> {
        while !self.complete {
            self.next_chunk()?;
        }
        Ok(self.content_bytes)
    }

    fn damaged(&self, what: impl Into<String>) -> LedgerError {
        LedgerError::damaged(&self.path, self.offset, self.height, what)
    }

    fn read_exactly(&self, bytes: &mut [u8], offset: u64) -> Result<(), LedgerError> {
        let read = read_up_to(&self.file, bytes, offset)
            .map_err(|error| LedgerError::io("read", &self.path, error))?;
        if read == bytes.len() {
            return Ok(());
        }
        Err(self.damaged(format!(
            "expected {} bytes at byte {offset}, found {read}: the file is cut off",
            bytes.len()
        )))
    }

    /// Reads and checks the next chunk, or the trailer.
    fn next_chunk(&mut self) -> Result<(), LedgerError> {
        let mut chunk_head = [0; CHUNK_HEAD_BYTES];
        self.read_exactly(&mut chunk_head, self.offset)?;
        let mut fields = Fields(&chunk_head);
        let (length, expected) = (fields.u32(), fields.u32());
        if length as usize > CHUNK_BYTES {
            return Err(
                self.damaged(format!("expected a chunk of at most {CHUNK_BYTES} bytes, found {length}"))
            );
        }
        let stored = if length == 0 { TRAILER_BYTES } else { length as usize };
        self.given = 0;
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(stored, 0);
        self.read_exactly(&mut chunk, self.offset + CHUNK_HEAD_BYTES as u64)?;
        let found = chunk_checksum(self.chunks, length, &chunk);
        if found != expected {
            return Err(
                self.damaged(format!("expected a chunk with checksum {expected:08x}, found {found:08x}"))
            );
        }
        if length == 0 {
            return self.check_trailer(&chunk);
        }
        self.digest.write_all(&chunk).expect("hashing cannot fail");
        self.offset += (CHUNK_HEAD_BYTES + stored) as u64;
        self.content_bytes += u64::from(length);
        self.chunks += 1;
        self.chunk = chunk;
        Ok(())
    }

    fn check_trailer(&mut self, trailer: &[u8]) -> Result<(), LedgerError> {
        let mut fields = Fields(trailer);
        let expected = (fields.u64(), fields.u64(), fields.digest());
        let found = (self.content_bytes, self.height, self.digest.clone().finish());
        if expected != found {
            return Err(self.damaged(format!(
                "expected {} bytes of height {} with digest {}, found {} of height {} with digest {}",
                expected.0, expected.1, expected.2, found.0, found.1, found.2
            )));
        }
        let end = self.offset + (CHUNK_HEAD_BYTES + TRAILER_BYTES) as u64;
        let metadata = self.file.metadata().map_err(|error| LedgerError::io("read", &self.path, error))?;
        if metadata.len() != end {
            return Err(
                self.damaged(format!("expected the file to end at byte {end}, it has {}", metadata.len()))
            );
        }
        self.complete = true;
        Ok(())
    }
}

impl Read for CheckpointReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        while self.given == self.chunk.len() && !self.complete {
            self.next_chunk().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        let rest = &self.chunk[self.given..];
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}
