//! Parts on the disk: whoever signs that it holds a part must have it after a crash.
//!
//! ```text
//! parts.log: records, one behind the other, each with a HeldPart
//! ```
//!
//! A record that is damaged is left out at the next start, and one that is torn ends the file. What is missing is asked for again, from
//! other members. After a flush that failed nothing counts as held until the file is opened again, because a flush that is repeated
//! may succeed without having written anything.

use super::records::{self, Place, RecordsEnd, content_of, record};
use crate::NodeError;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::sha256;
use ledger::Disk;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use types::{Part, TransactionId, decode_exactly, encode};

/// Longer than any part with its names.
const RECORD_BYTES_MAX: usize = 256 * 1024;

/// Bytes of the records of parts that are kept in memory.
const RECENT_BYTES_MAX: usize = 16 << 20;

/// A part with what it belongs to.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct HeldPart {
    pub(crate) transaction: TransactionId,
    pub(crate) schema: String,
    pub(crate) part: Part,
}

/// The parts that this node holds.
pub(crate) struct PartStore {
    path: PathBuf,
    disk: Disk,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// Where each part's record stands.
    places: FxHashMap<Name, Place>,
    end: u64,
    /// The newest parts: their blocks come soon.
    recent: Recent,
    /// Something was written that may not survive a crash.
    unflushed: bool,
    /// A flush has failed: what was written before may be lost, whatever a later one says.
    flush_failed: bool,
}

/// Parts in memory, the oldest of which go first.
#[derive(Default)]
struct Recent {
    parts: FxHashMap<Name, Part>,
    oldest: VecDeque<(Name, u32)>,
    bytes: usize,
}

impl Recent {
    fn put(&mut self, name: Name, part: Part, bytes: u32) {
        self.parts.insert(name, part);
        self.oldest.push_back((name, bytes));
        self.bytes += bytes as usize;
        while self.bytes > RECENT_BYTES_MAX {
            let Some((name, bytes)) = self.oldest.pop_front() else { return };
            self.parts.remove(&name);
            self.bytes -= bytes as usize;
        }
    }
}

/// The beginning of a digest of transaction and schema: what the index has of a part, so that its memory is 32 bytes for each.
type Name = [u8; 16];

fn name_of(transaction: &TransactionId, schema: &str) -> Name {
    let mut name = [0; 16];
    name.copy_from_slice(&sha256(&[&transaction.0.0, schema.as_bytes()]).0[..16]);
    name
}

impl PartStore {
    /// Opens the file in this folder of a disk, or makes it.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(crate) fn open(folder: &Path, disk: Disk) -> Result<PartStore, NodeError> {
        let path = folder.join("parts.log");
        let failed = |action: &'static str| {
            let path = path.clone();
            move |error| NodeError::File { action, path, error }
        };
        std::fs::create_dir_all(folder).map_err(failed("make"))?;
        let mut file = File::options()
            .read(true)
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed("open"))?;
        let length = file.metadata().map_err(failed("read"))?.len();
        let ReadParts { places, end, .. } = read(BufReader::new(&mut file)).map_err(failed("read"))?;
        if end < length {
            let lost = length - end;
            tracing::warn!(lost, "the end of parts.log was torn or damaged, and is cut off");
            file.set_len(end).map_err(failed("cut"))?;
        }
        let (recent, unflushed, flush_failed) = (Recent::default(), false, false);
        let inner = Mutex::new(Inner { file, places, end, recent, unflushed, flush_failed });
        Ok(PartStore { path: path.clone(), disk, inner })
    }

    /// Reads the file in this folder as it is, for whoever writes nothing; nothing where there is none.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(super) fn read_only(folder: &Path) -> Result<Option<(PartStore, ReadParts)>, NodeError> {
        let path = folder.join("parts.log");
        let failed = |error| NodeError::File { action: "read", path: path.clone(), error };
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut found = read(BufReader::new(&mut file)).map_err(failed)?;
        let (places, end, recent) = (std::mem::take(&mut found.places), found.end, Recent::default());
        let inner = Inner { file, places, end, recent, unflushed: false, flush_failed: false };
        let (inner, disk) = (Mutex::new(inner), Disk::default());
        Ok(Some((PartStore { path: path.clone(), disk, inner }, found)))
    }

    /// The folder of its file.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().expect("the file was made in a folder")
    }

    /// Whether a transaction's part in a schema is here.
    pub(crate) fn has(&self, transaction: &TransactionId, schema: &str) -> bool {
        self.inner.lock().places.contains_key(&name_of(transaction, schema))
    }

    /// The part of a transaction in a schema. One whose record is damaged is none: it is asked for again.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(crate) fn get(&self, transaction: &TransactionId, schema: &str) -> Result<Option<Part>, NodeError> {
        let mut inner = self.inner.lock();
        let name = name_of(transaction, schema);
        if let Some(part) = inner.recent.parts.get(&name) {
            return Ok(Some(part.clone()));
        }
        let Some(place) = inner.places.get(&name).copied() else { return Ok(None) };
        let mut bytes = vec![0; place.length as usize];
        inner.file.read_exact_at(&mut bytes, place.offset).map_err(|error| self.failed("read", error))?;
        let held = held_in(content_of(&bytes))
            .filter(|held| (held.transaction, held.schema.as_str()) == (*transaction, schema));
        if held.is_none() {
            tracing::warn!(%transaction, schema, "the part in parts.log is damaged; it is asked for again");
            inner.places.remove(&name);
        }
        Ok(held.map(|held| held.part))
    }

    /// Takes parts, which count as held after [`PartStore::flush`]: all of them with one write.
    ///
    /// # Errors
    /// [`NodeError::File`], [`NodeError::Ledger`].
    pub(crate) fn put(&self, held: impl IntoIterator<Item = HeldPart>) -> Result<(), NodeError> {
        let mut inner = self.inner.lock();
        let (mut bytes, mut new, mut names, end) = (Vec::new(), Vec::new(), FxHashSet::default(), inner.end);
        for held in held {
            let name = name_of(&held.transaction, &held.schema);
            if inner.places.contains_key(&name) || !names.insert(name) {
                continue;
            }
            let record = record_of(&held);
            let place = Place { offset: end + bytes.len() as u64, length: record.len() as u32 };
            bytes.extend_from_slice(&record);
            new.push((name, place, held.part));
        }
        if new.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.disk.write_at(&inner.file, &self.path, &bytes, end) {
            // Half a record would hide those behind it at the next start.
            inner.file.set_len(end).map_err(|error| self.failed("cut", error))?;
            return Err(error.into());
        }
        inner.end = end + bytes.len() as u64;
        for (name, place, part) in new {
            inner.places.insert(name, place);
            inner.recent.put(name, part, place.length);
        }
        inner.unflushed = true;
        Ok(())
    }

    /// Returns once everything that was taken survives a crash.
    ///
    /// # Errors
    /// [`NodeError::File`], [`NodeError::Ledger`].
    pub(crate) fn flush(&self) -> Result<(), NodeError> {
        let mut inner = self.inner.lock();
        if inner.flush_failed {
            let error = std::io::Error::other("a flush has failed before; start the node again");
            return Err(self.failed("flush", error));
        }
        if inner.unflushed {
            let flushed = self.disk.flush(&inner.file, &self.path);
            inner.flush_failed = flushed.is_err();
            flushed?;
            inner.unflushed = false;
        }
        Ok(())
    }

    fn failed(&self, action: &'static str, error: std::io::Error) -> NodeError {
        NodeError::File { action, path: self.path.clone(), error }
    }
}

fn record_of(held: &HeldPart) -> Vec<u8> {
    record(&encode(held))
}

/// What a whole record has; `None` for anything else.
fn held_in(content: Option<&[u8]>) -> Option<HeldPart> {
    decode_exactly(content?).ok()
}

/// What a file has.
#[derive(Default)]
pub(super) struct ReadParts {
    /// Where the good records stand.
    places: FxHashMap<Name, Place>,
    /// Where the last of them ends.
    end: u64,
    /// Where damaged records begin.
    pub(super) damaged: Vec<u64>,
    /// Where one begins that the file ends in: a crash has torn it, or it is being written.
    pub(super) torn: Option<u64>,
    /// The schemas of the good ones.
    pub(super) schemas: BTreeSet<String>,
}

/// Reads all records. One whose content is damaged is left out.
fn read(file: impl Read) -> std::io::Result<ReadParts> {
    let mut found = ReadParts::default();
    let end = records::read(file, RECORD_BYTES_MAX, |place, content| match held_in(content) {
        Some(held) => {
            found.places.insert(name_of(&held.transaction, &held.schema), place);
            found.end = place.offset + u64::from(place.length);
            if !found.schemas.contains(&held.schema) {
                found.schemas.insert(held.schema);
            }
        }
        None => found.damaged.push(place.offset),
    })?;
    match end {
        RecordsEnd::Whole => {}
        RecordsEnd::Torn(at) => found.torn = Some(at),
        RecordsEnd::Lost(at) => found.damaged.push(at),
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use types::Payload;

    fn held(number: u8) -> HeldPart {
        let payload = Payload::Script { sql: format!("UPDATE deal.t SET n = {number}"), parameters: vec![] };
        HeldPart {
            transaction: TransactionId(sha256(&[&[number]])),
            schema: "deal".into(),
            part: Part { salt: [number; 32], payload },
        }
    }

    fn part(store: &PartStore, number: u8, schema: &str) -> Option<Part> {
        let (transaction, is_here) = (held(number).transaction, store.has(&held(number).transaction, schema));
        let part = store.get(&transaction, schema).expect("readable");
        assert_eq!(part.is_some(), is_here);
        part
    }

    #[test]
    fn a_part_that_is_damaged_later_is_none_and_can_be_taken_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = PartStore::open(folder.path(), Disk::default()).expect("opened");
        store.put([held(1)]).expect("written");
        store.flush().expect("flushed");
        let path = folder.path().join("parts.log");
        let mut bytes = std::fs::read(&path).expect("readable");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).expect("writable");
        assert_eq!(part(&store, 1, "deal"), Some(held(1).part), "from memory");
        store.inner.lock().recent = Recent::default();
        assert_eq!(store.get(&held(1).transaction, "deal").expect("readable"), None);
        assert!(!store.has(&held(1).transaction, "deal"));
        store.put([held(1)]).expect("written again");
        assert_eq!(part(&store, 1, "deal"), Some(held(1).part));
    }

    #[test]
    fn memory_of_recent_parts_is_bounded_and_others_come_from_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = PartStore::open(folder.path(), Disk::default()).expect("opened");
        let large = |number: u32| HeldPart {
            transaction: TransactionId(sha256(&[&number.to_le_bytes()])),
            schema: "deal".into(),
            part: Part {
                salt: [7; 32],
                payload: Payload::Script { sql: "x".repeat(40_000), parameters: vec![] },
            },
        };
        for number in 0..500 {
            store.put([large(number)]).expect("written");
        }
        let inner = store.inner.lock();
        assert!(inner.recent.bytes <= RECENT_BYTES_MAX && inner.recent.parts.len() < 450);
        assert_eq!(inner.recent.parts.len(), inner.recent.oldest.len());
        drop(inner);
        for number in [0, 250, 499] {
            let held = large(number);
            assert_eq!(store.get(&held.transaction, "deal").expect("readable"), Some(held.part));
        }
    }

    #[test]
    fn parts_are_there_after_a_start_and_a_damaged_file_ends_in_front_of_the_damage() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = PartStore::open(folder.path(), Disk::default()).expect("opened");
        for number in 0..4 {
            store.put([held(number)]).expect("written");
        }
        store.put([held(2)]).expect("known already");
        store.flush().expect("flushed");
        drop(store);
        let path = folder.path().join("parts.log");
        let whole = std::fs::read(&path).expect("readable");
        let each = whole.len() / 4;
        let known = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("writable");
            let store = PartStore::open(folder.path(), Disk::default()).expect("opened");
            let known: Vec<bool> =
                (0..4).map(|number| part(&store, number, "deal") == Some(held(number).part)).collect();
            // What is written behind a file that was cut is found again.
            store.put([held(9)]).expect("written");
            drop(store);
            let again = PartStore::open(folder.path(), Disk::default()).expect("opened");
            assert_eq!(part(&again, 9, "deal"), Some(held(9).part));
            assert_eq!(part(&again, 9, "other"), None);
            known
        };
        assert_eq!(known(&whole), [true; 4]);
        for length in (0..whole.len()).step_by(7) {
            let expected: Vec<bool> = (1..=4).map(|count| length >= count * each).collect();
            assert_eq!(known(&whole[..length]), expected, "{length} bytes");
        }
        for at in (0..whole.len()).step_by(5) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            // Where a record's length is damaged nobody knows where the next one begins.
            let (record, in_length) = (at / each, at % each < 4);
            let expected: Vec<bool> =
                (0..4).map(|number| number < record || (number > record && !in_length)).collect();
            assert_eq!(known(&damaged), expected, "byte {at}");
        }
    }

    #[test]
    fn what_was_written_before_a_flush_that_failed_is_not_held_whatever_a_later_one_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let faults = Arc::new(ledger::Faults::default());
        let open = || PartStore::open(folder.path(), Disk::new(Some(faults.clone()))).expect("opened");
        let store = open();
        faults.fail_flushes(true);
        store.put([held(1)]).expect("written");
        assert!(store.flush().is_err());
        faults.fail_flushes(false);
        store.put([held(1)]).expect("known");
        assert!(store.flush().is_err(), "nobody knows whether it has reached the disk");
        drop(store);
        let store = open();
        store.put([held(2)]).expect("written");
        assert!(store.flush().is_ok());
    }

    #[test]
    fn a_disk_without_room_takes_half_a_record_and_the_next_one_takes_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let faults = Arc::new(ledger::Faults::default());
        let store = PartStore::open(folder.path(), Disk::new(Some(faults.clone()))).expect("opened");
        faults.leave_space(30);
        assert!(store.put([held(1)]).is_err() && !store.has(&held(1).transaction, "deal"));
        faults.leave_space(u64::MAX);
        store.put([held(2)]).expect("written");
        store.flush().expect("flushed");
        drop(store);
        let store = PartStore::open(folder.path(), Disk::default()).expect("opened");
        assert_eq!(part(&store, 2, "deal"), Some(held(2).part));
    }
}
