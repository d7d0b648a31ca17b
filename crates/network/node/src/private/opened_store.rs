//! What blocks came to in a schema, on the disk of a member, for proofs. It follows from the ledger and the parts: it is written
//! anew when the schema is executed anew, and is never read before.
//!
//! ```text
//! opened-<number of the schema>.log: OpenedBlock, one behind the other
//! ```

use super::opened::OpenedBlock;
use crate::NodeError;
use borsh::BorshDeserialize;
use rustc_hash::FxHashMap;
use state::{AfterImage, RowId};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{SchemaBlockOutcome, decode_exactly, encode};

/// A certificate that stands in the ledger and counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CertifiedAt {
    /// The height that it is about.
    pub(super) height: u64,
    /// The block that it stands in.
    pub(super) block: u64,
    /// The position of its transaction there.
    pub(super) index: u32,
    /// Its own position in the transaction.
    pub(super) number: usize,
}

/// The opened blocks of a schema.
pub(super) struct OpenedStore {
    path: PathBuf,
    file: Arc<File>,
    /// By height.
    places: Vec<Place>,
    end: u64,
    /// By height; each covers all blocks up to it.
    certificates: Vec<CertifiedAt>,
    /// In which block each row was written last.
    written: FxHashMap<RowId, u64>,
}

#[derive(Clone, Copy)]
struct Place {
    height: u64,
    offset: u64,
    length: u32,
}

/// Some opened blocks, by height, to be read by whoever holds nothing else.
pub(super) struct OpenedBlocks {
    path: PathBuf,
    file: Arc<File>,
    places: Vec<Place>,
}

impl OpenedStore {
    /// An empty one in this folder, instead of the one that was there.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(super) fn create(folder: &Path, schema: u32) -> Result<OpenedStore, NodeError> {
        let path = folder.join(format!("opened-{schema}.log"));
        let opened = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = opened.map_err(|error| failed("make", &path, error))?;
        let (places, certificates, written) = Default::default();
        Ok(OpenedStore { path, file: Arc::new(file), places, end: 0, certificates, written })
    }

    /// Takes the next block, with the rows that it wrote.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(super) fn put(&mut self, block: &OpenedBlock, changes: &[AfterImage]) -> Result<(), NodeError> {
        let (bytes, height, offset) = (encode(block), block.outcome.height, self.end);
        self.file.write_all_at(&bytes, offset).map_err(|error| failed("write", &self.path, error))?;
        self.end += bytes.len() as u64;
        self.places.push(Place { height, offset, length: bytes.len() as u32 });
        for AfterImage { row, .. } in changes.iter().filter(|image| image.row.table.is_made()) {
            match self.written.get_mut(row) {
                Some(last) => *last = height,
                None => drop(self.written.insert(row.clone(), height)),
            }
        }
        Ok(())
    }

    /// A certificate stands in the ledger: of a greater height than all before.
    pub(super) fn certified(&mut self, certificate: CertifiedAt) {
        self.certificates.push(certificate);
    }

    /// The first certificate that covers a block.
    pub(super) fn covering(&self, height: u64) -> Option<CertifiedAt> {
        let first = self.certificates.partition_point(|certificate| certificate.height < height);
        self.certificates.get(first).copied()
    }

    /// The block that has written a row last.
    pub(super) fn written(&self, row: &RowId) -> Option<u64> {
        self.written.get(row).copied()
    }

    /// The blocks from one height to another.
    pub(super) fn blocks(&self, from: u64, to: u64) -> OpenedBlocks {
        let first = self.places.partition_point(|place| place.height < from);
        let places = self.places[first..].iter().take_while(|place| place.height <= to).copied().collect();
        OpenedBlocks { path: self.path.clone(), file: self.file.clone(), places }
    }
}

impl OpenedBlocks {
    /// Reads one after the other.
    ///
    /// # Errors
    /// [`NodeError::File`], also for what is damaged.
    pub(super) fn read(&self) -> impl Iterator<Item = Result<OpenedBlock, NodeError>> {
        self.places.iter().map(|place| {
            let bytes = self.bytes(*place)?;
            decode_exactly(&bytes)
                .map_err(|error| failed("read", &self.path, std::io::Error::other(error.to_string())))
        })
    }

    /// What members attest of each.
    ///
    /// # Errors
    /// As [`OpenedBlocks::read`].
    pub(super) fn outcomes(&self) -> Result<Vec<SchemaBlockOutcome>, NodeError> {
        let outcome = |place: &Place| {
            let bytes = self.bytes(*place)?;
            // It comes first.
            SchemaBlockOutcome::deserialize(&mut bytes.as_slice())
                .map_err(|error| failed("read", &self.path, error))
        };
        self.places.iter().map(outcome).collect()
    }

    fn bytes(&self, place: Place) -> Result<Vec<u8>, NodeError> {
        let mut bytes = vec![0; place.length as usize];
        let read = self.file.read_exact_at(&mut bytes, place.offset);
        read.map(|()| bytes).map_err(|error| failed("read", &self.path, error))
    }
}

fn failed(action: &'static str, path: &Path, error: std::io::Error) -> NodeError {
    NodeError::File { action, path: path.to_path_buf(), error }
}
