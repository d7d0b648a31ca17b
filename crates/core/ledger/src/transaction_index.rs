//! From a transaction's id to its place: a map for the segment that is being written, a sorted file for each
//! finished one (`blocks-….txi`, laid out in the crate's documentation).
//!
//! Ids are digests, so pages of sorted ids are found through a directory in memory and one positioned read. Files
//! hold half of each id; who finds a candidate confirms it with the receipt. Every page has a checksum, and a file
//! that is damaged is thrown away and made again from the blocks.

use crate::disk::{self, Disk};
use crate::layout::{Fields, checksum};
use crate::{LedgerError, disk::read_up_to};
use crypto::Digest;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use types::{Outcome, Receipt, RejectReason, TransactionId};

const MAGIC: [u8; 8] = *b"EnTxIdx1";
const HEAD_BYTES: usize = 96;
const PAGE_BYTES: usize = 4096;
const PAGE_ENTRIES: usize = (PAGE_BYTES - 8) / ENTRY_BYTES;
const ENTRY_BYTES: usize = 28;
const REJECTED_BIT: u32 = 1 << 31;

/// Where a transaction stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TransactionLocation {
    pub(crate) height: u64,
    pub(crate) index: u32,
    rejected: bool,
}

impl TransactionLocation {
    pub(crate) fn at(height: u64, index: u32, rejected: bool) -> TransactionLocation {
        TransactionLocation { height, index, rejected }
    }

    /// The place that a receipt gives its transaction; a duplicate has its place where the first one stands.
    pub(crate) fn of(receipt: &Receipt) -> Option<TransactionLocation> {
        let rejected = match &receipt.outcome {
            Outcome::Rejected(RejectReason::Duplicate { .. }) => return None,
            Outcome::Rejected(_) => true,
            Outcome::Committed(_) | Outcome::Aborted(_) | Outcome::Conflict => false,
        };
        Some(TransactionLocation { height: receipt.height, index: receipt.index, rejected })
    }

    /// Which of two places of one transaction its client asks for: where it was executed, which it is once;
    /// otherwise where it was rejected last.
    pub(crate) fn prefer(self, other: TransactionLocation) -> TransactionLocation {
        let rank = |place: &TransactionLocation| {
            if place.rejected { (0, place.height, place.index) } else { (1, 0, 0) }
        };
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// No other place can be preferred to this one.
    pub(crate) fn is_final(self) -> bool {
        !self.rejected
    }
}

/// Places by id. Keyed hashing, because clients can choose among ids.
#[derive(Default, Debug)]
pub(crate) struct TransactionMap(HashMap<TransactionId, TransactionLocation>);

impl TransactionMap {
    pub(crate) fn insert(&mut self, receipts: &[Receipt]) {
        self.insert_places(
            receipts.iter().map(|receipt| (receipt.transaction, TransactionLocation::of(receipt))),
        );
    }

    pub(crate) fn insert_places(
        &mut self,
        places: impl IntoIterator<Item = (TransactionId, Option<TransactionLocation>)>,
    ) {
        for (transaction, place) in places {
            let Some(place) = place else { continue };
            self.0.entry(transaction).and_modify(|known| *known = known.prefer(place)).or_insert(place);
        }
    }

    pub(crate) fn get(&self, id: &TransactionId) -> Option<TransactionLocation> {
        self.0.get(id).copied()
    }
}

/// What an index file is made for: a file whose words differ is of other blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexedSegment {
    pub(crate) ledger: Digest,
    pub(crate) first_height: u64,
    /// Digest of the last header, which chains all others.
    pub(crate) last_header: Digest,
}

/// An open index file.
#[derive(Debug)]
pub(crate) struct IndexFile {
    path: PathBuf,
    file: File,
    first_height: u64,
    /// First eight bytes of each page's first id, as a number.
    directory: Vec<u64>,
}

impl IndexFile {
    /// Writes the places of one segment in the order of their ids.
    pub(crate) fn write(
        disk: &Disk,
        path: &Path,
        segment: &IndexedSegment,
        map: &TransactionMap,
    ) -> Result<IndexFile, LedgerError> {
        let mut entries: Vec<([u8; 16], TransactionLocation)> =
            map.0.iter().map(|(id, place)| (prefix(id), *place)).collect();
        entries.sort_unstable_by_key(|(key, place)| (*key, place.height, place.index));
        let pages = entries.len().div_ceil(PAGE_ENTRIES);
        let mut bytes = Vec::with_capacity(HEAD_BYTES + pages * (8 + PAGE_BYTES));
        let directory: Vec<u64> =
            entries.chunks(PAGE_ENTRIES).map(|page| directory_key(&page[0].0)).collect();
        let directory_bytes: Vec<u8> = directory.iter().flat_map(|key| key.to_le_bytes()).collect();
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&segment.ledger.0);
        bytes.extend_from_slice(&segment.last_header.0);
        bytes.extend_from_slice(&segment.first_height.to_le_bytes());
        bytes.extend_from_slice(&(pages as u32).to_le_bytes());
        bytes.extend_from_slice(&checksum(&[&directory_bytes]).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&checksum(&[&bytes]).to_le_bytes());
        assert_eq!(bytes.len(), HEAD_BYTES, "the index head has this length");
        bytes.extend_from_slice(&directory_bytes);
        for (number, page) in entries.chunks(PAGE_ENTRIES).enumerate() {
            append_page(&mut bytes, number as u64, page);
        }
        disk.write_replaceable(path, &bytes)?;
        let file = disk::open(path)?;
        Ok(IndexFile { path: path.to_path_buf(), file, first_height: segment.first_height, directory })
    }

    /// Opens the index of `segment`; nothing where it is missing, damaged or of other blocks, so that it must be made
    /// again.
    pub(crate) fn open(path: &Path, segment: &IndexedSegment) -> Option<IndexFile> {
        let file = File::open(path).ok()?;
        let mut head = [0; HEAD_BYTES];
        if read_up_to(&file, &mut head, 0).ok()? < HEAD_BYTES || &head[..8] != MAGIC.as_slice() {
            return None;
        }
        let mut fields = Fields(&head[8..]);
        let (ledger, last_header, first_height) = (fields.digest(), fields.digest(), fields.u64());
        let (pages, directory_crc, _) = (fields.u32() as usize, fields.u32(), fields.u32());
        let found = IndexedSegment { ledger, first_height, last_header };
        if fields.u32() != checksum(&[&head[..HEAD_BYTES - 4]]) || found != *segment {
            return None;
        }
        if file.metadata().ok()?.len() != (HEAD_BYTES + pages * (8 + PAGE_BYTES)) as u64 {
            return None;
        }
        let mut directory = vec![0; 8 * pages];
        let read = read_up_to(&file, &mut directory, HEAD_BYTES as u64).ok()?;
        if read < directory.len() || checksum(&[&directory]) != directory_crc {
            return None;
        }
        let mut keys = Fields(&directory);
        let directory = (0..pages).map(|_| keys.u64()).collect();
        Some(IndexFile { path: path.to_path_buf(), file, first_height, directory })
    }

    /// Places of the ids that begin like this one; almost always none or one.
    ///
    /// # Errors
    /// A damaged page: the index must be made again.
    pub(crate) fn candidates(&self, id: &TransactionId) -> Result<Vec<TransactionLocation>, LedgerError> {
        let (key, directory_key) = (prefix(id), directory_key(&prefix(id)));
        let mut places = Vec::new();
        let first = self.directory.partition_point(|page| *page < directory_key).saturating_sub(1);
        for page in first..self.directory.len() {
            if self.directory[page] > directory_key {
                break;
            }
            self.search_page(page, &key, &mut places)?;
        }
        Ok(places)
    }

    fn search_page(
        &self,
        page: usize,
        key: &[u8; 16],
        places: &mut Vec<TransactionLocation>,
    ) -> Result<(), LedgerError> {
        let offset = (HEAD_BYTES + 8 * self.directory.len() + page * PAGE_BYTES) as u64;
        let damaged = |what: &str| LedgerError::damaged(&self.path, offset, self.first_height, what);
        let mut bytes = [0; PAGE_BYTES];
        let read = read_up_to(&self.file, &mut bytes, offset)
            .map_err(|error| LedgerError::io("read", &self.path, error))?;
        let mut fields = Fields(&bytes);
        let crc = fields.u32();
        if read < PAGE_BYTES || crc != checksum(&[&(page as u64).to_le_bytes(), &bytes[4..]]) {
            return Err(damaged("expected an index page with the right checksum"));
        }
        let count = (fields.u32() as usize).min(PAGE_ENTRIES);
        let entries = bytes[8..8 + count * ENTRY_BYTES].chunks_exact(ENTRY_BYTES);
        for entry in entries.filter(|entry| &entry[..16] == key) {
            let mut fields = Fields(&entry[16..]);
            let (height, index) = (fields.u64(), fields.u32());
            places.push(TransactionLocation {
                height,
                index: index & !REJECTED_BIT,
                rejected: index & REJECTED_BIT != 0,
            });
        }
        Ok(())
    }
}

fn append_page(bytes: &mut Vec<u8>, number: u64, entries: &[([u8; 16], TransactionLocation)]) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for (key, place) in entries {
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(&place.height.to_le_bytes());
        let flag = if place.rejected { REJECTED_BIT } else { 0 };
        bytes.extend_from_slice(&(place.index | flag).to_le_bytes());
    }
    bytes.resize(start + PAGE_BYTES, 0);
    let crc = checksum(&[&number.to_le_bytes(), &bytes[start + 4..]]);
    bytes[start..start + 4].copy_from_slice(&crc.to_le_bytes());
}

fn prefix(id: &TransactionId) -> [u8; 16] {
    *id.0.0.first_chunk().expect("an id has 32 bytes")
}

fn directory_key(prefix: &[u8; 16]) -> u64 {
    u64::from_be_bytes(*prefix.first_chunk().expect("a prefix has 16 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;

    fn receipt(id: TransactionId, height: u64, index: u32, outcome: Outcome) -> Receipt {
        Receipt { transaction: id, height, index, outcome }
    }

    fn segment() -> IndexedSegment {
        IndexedSegment { ledger: sha256(&[b"l"]), first_height: 1, last_header: sha256(&[b"h"]) }
    }

    #[test]
    fn an_index_file_finds_what_the_map_finds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txi");
        for count in [0, 1, 145, 146, 147, 3_000] {
            let mut map = TransactionMap::default();
            let ids: Vec<_> = (0..count).map(|i: u32| TransactionId(sha256(&[&i.to_le_bytes()]))).collect();
            for (index, id) in (0..).zip(&ids) {
                map.insert(&[receipt(*id, 7, index, Outcome::Conflict)]);
            }
            IndexFile::write(&Disk::default(), &path, &segment(), &map).expect("writes");
            let file = IndexFile::open(&path, &segment()).expect("opens");
            for id in &ids {
                assert_eq!(file.candidates(id).expect("reads"), vec![map.get(id).expect("inserted")]);
            }
            let absent = TransactionId(sha256(&[b"absent"]));
            assert_eq!(file.candidates(&absent).expect("reads"), vec![]);
        }
        let other = IndexedSegment { last_header: sha256(&[b"other"]), ..segment() };
        assert!(IndexFile::open(&path, &other).is_none());
    }

    #[test]
    fn ids_with_one_beginning_fill_several_pages_and_are_all_candidates() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txi");
        let mut map = TransactionMap::default();
        for index in 0..400u32 {
            let mut id = [9; 32];
            id[28..].copy_from_slice(&index.to_le_bytes());
            map.insert(&[receipt(TransactionId(Digest(id)), 7, index, Outcome::Conflict)]);
        }
        let file = IndexFile::write(&Disk::default(), &path, &segment(), &map).expect("writes");
        assert_eq!(file.candidates(&TransactionId(Digest([9; 32]))).expect("reads").len(), 400);
    }

    #[test]
    fn the_executed_place_wins_and_then_the_last_rejection() {
        let id = TransactionId(sha256(&[b"id"]));
        let rejected = |height| receipt(id, height, 0, Outcome::Rejected(RejectReason::BlockBudget));
        let duplicate = receipt(id, 9, 0, Outcome::Rejected(RejectReason::Duplicate { height: 4, index: 0 }));
        let mut map = TransactionMap::default();
        map.insert(std::slice::from_ref(&duplicate));
        assert_eq!(map.get(&id), None);
        map.insert(&[rejected(2), rejected(3)]);
        assert_eq!(map.get(&id).map(|place| place.height), Some(3));
        map.insert(&[receipt(id, 4, 0, Outcome::Conflict), duplicate, rejected(10)]);
        assert_eq!(map.get(&id).map(|place| place.height), Some(4));
    }

    #[test]
    fn the_file_is_laid_out_as_documented() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txi");
        let mut map = TransactionMap::default();
        let id = |first| TransactionId(Digest([first; 32]));
        map.insert(&[receipt(id(3), 0x0102, 0x0304, Outcome::Conflict)]);
        map.insert(&[receipt(id(2), 5, 6, Outcome::Rejected(RejectReason::BlockBudget))]);
        IndexFile::write(&Disk::default(), &path, &segment(), &map).expect("writes");
        let bytes = std::fs::read(&path).expect("reads");
        assert_eq!(bytes.len(), 96 + 8 + 4096);
        assert_eq!(
            (&bytes[..8], &bytes[72..80], &bytes[80..84]),
            (b"EnTxIdx1".as_slice(), &[1, 0, 0, 0, 0, 0, 0, 0][..], &[1, 0, 0, 0][..])
        );
        assert_eq!(bytes[96..104], [2; 8]);
        let page = &bytes[104..];
        assert_eq!(page[4..8], [2, 0, 0, 0]);
        assert_eq!(page[8..36], [[2; 16].as_slice(), &[5, 0, 0, 0, 0, 0, 0, 0], &[6, 0, 0, 0x80]].concat());
        assert_eq!(page[36..64], [[3; 16].as_slice(), &[2, 1, 0, 0, 0, 0, 0, 0], &[4, 3, 0, 0]].concat());
    }
}
