//! A target as this crate uses it: files are read and written one after the other, and compared with what their names promise.

use crate::error::BackupError;
use crate::manifest::{MANIFEST_BYTES_MAX, MANIFESTS, Manifest, PIECE_BYTES_MAX, PieceFile};
use bytes::Bytes;
use crypto::sha256;
use std::collections::BTreeSet;
use std::path::Path;
use targets::{Target, TargetError};
use tokio::runtime::Runtime;

/// Where backups are: a [`Target`], read and written one file after the other.
pub struct Place {
    target: Target,
    runtime: Runtime,
}

impl Place {
    /// In this target.
    ///
    /// # Errors
    /// The system gives no more threads or files.
    pub fn new(target: Target) -> Result<Place, BackupError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(BackupError::file("make threads for", target.address()))?;
        Ok(Place { target, runtime })
    }

    /// Its address, for people.
    pub fn address(&self) -> String {
        self.target.address()
    }

    /// Whether it is this folder, or in it.
    pub(crate) fn is_inside(&self, folder: &Path) -> bool {
        let (Ok(folder), Ok(place)) = (folder.canonicalize(), self.target.url().to_file_path()) else {
            return false;
        };
        // What is not there yet will be in what is.
        let place = place.ancestors().find_map(|place| place.canonicalize().ok());
        place.is_some_and(|place| place.starts_with(folder))
    }

    /// Names of the files in one of its folders.
    pub(crate) fn list(&self, folder: &str) -> Result<BTreeSet<String>, TargetError> {
        Ok(self.runtime.block_on(self.target.list(folder))?.into_iter().collect())
    }

    pub(crate) fn write(&self, name: &str, content: Vec<u8>) -> Result<(), TargetError> {
        self.runtime.block_on(self.target.write(name, content))
    }

    /// Writes a file that nobody else has written. False: somebody has.
    pub(crate) fn create(&self, name: &str, content: Vec<u8>) -> Result<bool, TargetError> {
        self.runtime.block_on(self.target.create(name, content))
    }

    pub(crate) fn remove_left(&self, folder: &str, name: &str) -> Result<(), TargetError> {
        self.runtime.block_on(self.target.remove_left(folder, name))
    }

    /// A file's content, if it is not longer than this.
    fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Result<Bytes, u64>>, TargetError> {
        let Some(bytes) = self.runtime.block_on(self.target.size(name))? else { return Ok(None) };
        if bytes > bytes_max {
            return Ok(Some(Err(bytes)));
        }
        Ok(self.runtime.block_on(self.target.read(name))?.map(Ok))
    }

    /// Numbers of the backups, ascending.
    pub(crate) fn numbers(&self) -> Result<Vec<u64>, TargetError> {
        Ok(self.list(MANIFESTS)?.iter().filter_map(|name| Manifest::number_of(name)).collect())
    }

    /// The newest backup, or the one with a number.
    ///
    /// # Errors
    /// There is none, or its manifest is not what was written.
    pub(crate) fn manifest(&self, number: Option<u64>) -> Result<Manifest, BackupError> {
        let numbers = self.numbers()?;
        let target = self.address();
        let newest = || numbers.last().copied().ok_or(BackupError::NoBackup { target: target.clone() });
        let number = number.map_or_else(newest, Ok)?;
        let name = Manifest::name(number);
        let wrong = |what| BackupError::Manifest { target: target.clone(), name: name.clone(), what };
        let content = match self.read(&name, MANIFEST_BYTES_MAX)? {
            None => {
                let known = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                return Err(BackupError::NoNumber { target, number, known });
            }
            Some(Err(bytes)) => {
                return Err(wrong(format!("expected {MANIFEST_BYTES_MAX} bytes at most, found {bytes}")));
            }
            Some(Ok(content)) => content,
        };
        Manifest::from_bytes(number, &content).map_err(wrong)
    }

    /// Writes a piece, unless it is there already, left by a backup that did not come to its end. Gives the bytes written.
    pub(crate) fn write_piece(&self, file: &PieceFile, content: Vec<u8>) -> Result<u64, BackupError> {
        if let Some(Ok(found)) = self.read(&file.name, file.bytes)?
            && found == content
        {
            // Whoever wrote it may have fallen before it was on the disk.
            self.target.flush(&file.name)?;
            return Ok(0);
        }
        self.write(&file.name, content)?;
        Ok(file.bytes)
    }

    /// The content of a piece, which is what was written.
    ///
    /// # Errors
    /// [`BackupError::Missing`], [`BackupError::Length`], [`BackupError::Content`].
    pub(crate) fn piece(&self, file: &PieceFile) -> Result<Bytes, BackupError> {
        let (target, name, expected) = (self.address(), file.name.clone(), file.bytes);
        let content = match self.read(&name, expected.min(PIECE_BYTES_MAX))? {
            None => return Err(BackupError::Missing { target, name, repaired: true }),
            Some(Err(found)) => return Err(BackupError::Length { target, name, expected, found }),
            Some(Ok(content)) => content,
        };
        let found = content.len() as u64;
        if found != expected {
            return Err(BackupError::Length { target, name, expected, found });
        }
        let found = sha256(&[&content]).to_string();
        match found == file.sha256 {
            true => Ok(content),
            false => Err(BackupError::Content { target, name, expected: file.sha256.clone(), found }),
        }
    }
}
