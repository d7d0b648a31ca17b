//! What blocks came to in a schema, on the disk of a member: for proofs, and so that a node that starts goes on where its schema's rows
//! stand. All of it follows from the ledger and the parts: where it is damaged, the schema is executed from its beginning.
//!
//! ```text
//! opened-<number of the schema>.log: a record for each block in which something happened
//! record: BlockNote ‖ 0, or 1 ‖ OpenedBlock
//! ```

use super::opened::{Definitions, OpenedBlock};
use super::records::{self, Place, content_of, record};
use crate::NodeError;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use ledger::Disk;
use rustc_hash::FxHashMap;
use state::{AfterImage, RowId};
use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use types::{Receipt, SchemaBlockOutcome, SchemaOutcome, Table, decode_exactly, encode};

/// Longer than what any block comes to.
const RECORD_BYTES_MAX: usize = 1 << 30;
/// Receipts and own words of an earlier process that are remembered.
const REMEMBERED: usize = 20_000;

/// A certificate that stands in the ledger and counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub(super) struct CertifiedAt {
    /// The height that it is about.
    pub(super) height: u64,
    /// The block that it stands in.
    pub(super) block: u64,
    /// The position of its transaction there.
    pub(super) index: u32,
    /// Its own position in the transaction.
    pub(super) number: u32,
}

/// What else a block came to than what can be shown of it.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub(super) struct BlockNote {
    pub(super) height: u64,
    /// The schema's secret behind the block.
    pub(super) secret: Digest,
    /// Definitions of tables that are new in it.
    pub(super) definitions: Vec<Table>,
    /// What this member attests.
    pub(super) attested: Option<SchemaOutcome>,
    /// The certificate in it that covers most.
    pub(super) certified: Option<CertifiedAt>,
}

/// What an earlier process has come to.
pub(super) struct CameBefore {
    /// Of the last block that was noted.
    pub(super) height: u64,
    /// The schema's secret behind it.
    pub(super) secret: Digest,
    pub(super) definitions: Definitions,
    /// The last block in which something happened, with the digest of its outcome.
    pub(super) last: Option<(u64, Digest)>,
    /// The highest height that a certificate in the ledger is about.
    pub(super) certified: u64,
    /// What this member has attested last, by height.
    pub(super) attested: VecDeque<SchemaOutcome>,
    /// The receipts of the last transactions that have ended.
    pub(super) ended: VecDeque<Receipt>,
}

/// The opened blocks of a schema.
pub(super) struct OpenedStore {
    file: Arc<OpenedFile>,
    /// By height.
    places: Vec<OpenedPlace>,
    end: u64,
    /// By height; each covers all blocks up to it.
    certificates: Vec<CertifiedAt>,
    /// In which block each row was written last.
    written: FxHashMap<RowId, u64>,
}

/// The file, as several need it.
pub(super) struct OpenedFile {
    path: PathBuf,
    file: File,
    disk: Disk,
    /// Something was written that may not survive a crash.
    unflushed: AtomicBool,
    /// A flush has failed: what was written before may be lost, whatever a later one says.
    flush_failed: AtomicBool,
}

#[derive(Clone, Copy)]
struct OpenedPlace {
    height: u64,
    record: Place,
    /// Where in the record's content the block stands.
    begin: u32,
}

/// Some opened blocks, by height, to be read by whoever holds nothing else.
pub(super) struct OpenedBlocks {
    file: Arc<OpenedFile>,
    places: Vec<OpenedPlace>,
}

impl OpenedFile {
    fn open((folder, disk): (&Path, &Disk), schema: u32) -> Result<OpenedFile, NodeError> {
        let path = folder.join(format!("opened-{schema}.log"));
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| failed("open", &path, error))?;
        let (unflushed, flush_failed) = Default::default();
        Ok(OpenedFile { path, file, disk: disk.clone(), unflushed, flush_failed })
    }

    fn cut(&self, end: u64) -> Result<(), NodeError> {
        self.file.set_len(end).map_err(|error| failed("cut", &self.path, error))
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    /// Returns once everything that was written survives a crash: `true`. `false`: a flush has failed before.
    ///
    /// # Errors
    /// It fails, for the first time.
    pub(super) fn flush(&self) -> Result<bool, NodeError> {
        if self.unflushed.swap(false, Ordering::AcqRel) && !self.flush_failed.load(Ordering::Acquire) {
            let flushed = self.disk.flush(&self.file, &self.path);
            flushed.inspect_err(|_| self.flush_failed.store(true, Ordering::Release))?;
        }
        Ok(!self.flush_failed.load(Ordering::Acquire))
    }
}

impl OpenedStore {
    /// An empty one in this folder of a disk, instead of the one that was there.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(super) fn create(place: (&Path, &Disk), schema: u32) -> Result<OpenedStore, NodeError> {
        let file = OpenedFile::open(place, schema)?;
        file.cut(0)?;
        Ok(OpenedStore::of(file))
    }

    fn of(file: OpenedFile) -> OpenedStore {
        let (places, certificates, written) = Default::default();
        OpenedStore { file: Arc::new(file), places, end: 0, certificates, written }
    }

    /// What an earlier process has left of blocks up to this height, and what it came to. What is behind that, torn or damaged is cut off:
    /// [`CameBefore::height`] says how far it goes.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(super) fn reopen(
        place: (&Path, &Disk),
        schema: u32,
        height: u64,
    ) -> Result<(OpenedStore, CameBefore), NodeError> {
        let mut store = OpenedStore::of(OpenedFile::open(place, schema)?);
        let mut before = CameBefore {
            height: 0,
            secret: Digest::ZERO,
            definitions: Definitions::default(),
            last: None,
            certified: 0,
            attested: VecDeque::new(),
            ended: VecDeque::new(),
        };
        let (file, mut is_over) = (store.file.clone(), false);
        let read = records::read(BufReader::new(&file.file), RECORD_BYTES_MAX, |place, content| {
            let read = content.filter(|_| !is_over).and_then(read_note);
            let read = read
                .filter(|(note, opened, _)| note.height <= height && before.is_next(note, opened.as_ref()));
            let Some((note, opened, begin)) = read else {
                is_over = true;
                return;
            };
            store.take(&note, opened.as_ref(), (place, begin));
            before.take(note, opened, &mut store.written);
        });
        read.map_err(|error| failed("read", &store.file.path, error))?;
        store.file.cut(store.end)?;
        Ok((store, before))
    }

    /// Takes what the next block came to, with the rows that it wrote of tables.
    ///
    /// # Errors
    /// [`NodeError::File`], [`NodeError::Ledger`].
    pub(super) fn put(
        &mut self,
        note: &BlockNote,
        opened: Option<&(OpenedBlock, Vec<AfterImage>)>,
    ) -> Result<(), NodeError> {
        let mut content = encode(note);
        let begin = content.len() as u32 + 1;
        let block = opened.map(|(block, _)| block);
        block.serialize(&mut content).expect("writing to memory cannot fail");
        let (bytes, offset) = (record(&content), self.end);
        let OpenedFile { path, file, disk, unflushed, .. } = &*self.file;
        unflushed.store(true, Ordering::Release);
        disk.write_at(file, path, &bytes, offset)?;
        self.take(note, block, (Place { offset, length: bytes.len() as u32 }, begin));
        let changes = opened.map_or(&[][..], |(_, changes)| changes.as_slice());
        for AfterImage { row, .. } in changes {
            was_written(&mut self.written, row, note.height);
        }
        Ok(())
    }

    /// A block came to this, which stands there.
    fn take(&mut self, note: &BlockNote, opened: Option<&OpenedBlock>, (record, begin): (Place, u32)) {
        self.end = record.offset + u64::from(record.length);
        if opened.is_some() {
            self.places.push(OpenedPlace { height: note.height, record, begin });
        }
        self.certificates.extend(note.certified);
    }

    /// The file, for whoever flushes it.
    pub(super) fn file(&self) -> &Arc<OpenedFile> {
        &self.file
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
        OpenedBlocks { file: self.file.clone(), places }
    }
}

impl CameBefore {
    /// Whether a record follows those before.
    fn is_next(&self, note: &BlockNote, opened: Option<&OpenedBlock>) -> bool {
        let follows =
            |opened: &OpenedBlock| self.last.is_none_or(|(_, last)| opened.outcome.previous == last);
        note.height > self.height && opened.is_none_or(follows)
    }

    fn take(&mut self, note: BlockNote, opened: Option<OpenedBlock>, written: &mut FxHashMap<RowId, u64>) {
        let BlockNote { height, secret, definitions, attested, certified } = note;
        (self.height, self.secret) = (height, secret);
        self.definitions.remember(definitions);
        if let Some(certified) = certified {
            self.certified = certified.height;
        }
        self.attested.extend(attested);
        if let Some(opened) = opened {
            self.last = Some((height, opened.outcome.digest()));
            opened.written(&self.definitions).for_each(|row| was_written(written, &row, height));
            self.ended.extend(opened.ended());
        }
        self.attested.drain(..self.attested.len().saturating_sub(REMEMBERED));
        self.ended.drain(..self.ended.len().saturating_sub(REMEMBERED));
    }
}

fn was_written(written: &mut FxHashMap<RowId, u64>, row: &RowId, height: u64) {
    match written.get_mut(row) {
        Some(last) => *last = height,
        None => drop(written.insert(row.clone(), height)),
    }
}

/// What a record has, and where its block begins.
fn read_note(content: &[u8]) -> Option<(BlockNote, Option<OpenedBlock>, u32)> {
    let mut rest = content;
    let note = BlockNote::deserialize(&mut rest).ok()?;
    let begin = (content.len() - rest.len()) as u32 + 1;
    let opened = decode_exactly(rest).ok()?;
    Some((note, opened, begin))
}

impl OpenedBlocks {
    /// Reads one after the other.
    ///
    /// # Errors
    /// [`NodeError::File`], also for what is damaged.
    pub(super) fn read(&self) -> impl Iterator<Item = Result<OpenedBlock, NodeError>> {
        self.places.iter().map(|place| self.block(*place, OpenedBlock::deserialize))
    }

    /// What members attest of each.
    ///
    /// # Errors
    /// As [`OpenedBlocks::read`].
    pub(super) fn outcomes(&self) -> Result<Vec<SchemaBlockOutcome>, NodeError> {
        // It comes first.
        self.places.iter().map(|place| self.block(*place, SchemaBlockOutcome::deserialize)).collect()
    }

    fn block<T>(
        &self,
        OpenedPlace { record, begin, .. }: OpenedPlace,
        read: impl FnOnce(&mut &[u8]) -> std::io::Result<T>,
    ) -> Result<T, NodeError> {
        let OpenedFile { path, file, .. } = &*self.file;
        let mut bytes = vec![0; record.length as usize];
        file.read_exact_at(&mut bytes, record.offset).map_err(|error| failed("read", path, error))?;
        let content = content_of(&bytes).and_then(|content| content.get(begin as usize..));
        let damaged = || std::io::Error::other("it is damaged");
        content
            .ok_or_else(damaged)
            .and_then(|mut block| read(&mut block))
            .map_err(|error| failed("read", path, error))
    }
}

fn failed(action: &'static str, path: &Path, error: std::io::Error) -> NodeError {
    NodeError::File { action, path: path.to_path_buf(), error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;
    use types::{Outcome, TransactionId};

    const LAST: u64 = 5;

    /// Of heights 2 to 5, one behind the other; gives the path of the file and what is in it.
    fn written(folder: &Path) -> (PathBuf, Vec<OpenedBlock>) {
        let (mut store, mut blocks) =
            (OpenedStore::create((folder, &Disk::default()), 7).expect("made"), Vec::new());
        let mut before = sha256(&[b"the first"]);
        for height in 2..=LAST {
            let secret = Digest([height as u8; 32]);
            let ended = [(TransactionId(secret), Outcome::Committed(Vec::new()))];
            let changes = (&[][..], &Definitions::default());
            let opened = OpenedBlock::new((height, before, height), (&secret, Digest::ZERO), &ended, changes);
            before = opened.outcome.digest();
            let certified = CertifiedAt { height: height - 1, block: height, index: 0, number: 1 };
            let (definitions, certified) = (Vec::new(), Some(certified));
            let note = BlockNote { height, secret, definitions, attested: None, certified };
            store.put(&note, Some(&(opened, Vec::new()))).expect("written");
            blocks.extend(store.blocks(height, height).read().map(|block| block.expect("readable")));
        }
        assert!(store.file().flush().expect("flushed"));
        (folder.join("opened-7.log"), blocks)
    }

    /// Up to which height it goes, where everything up to there is what was written.
    fn goes_up_to(folder: &Path, blocks: &[OpenedBlock], height: u64) -> u64 {
        let (store, before) = OpenedStore::reopen((folder, &Disk::default()), 7, height).expect("read");
        let found = store.blocks(0, u64::MAX).read().collect::<Result<Vec<_>, _>>().expect("readable");
        assert_eq!(found, blocks[..found.len()]);
        let last = found.last().map_or(0, |block| block.outcome.height);
        assert_eq!((before.height, before.ended.len()), (last, found.len()));
        assert_eq!(before.secret, Digest([last as u8; 32]));
        assert_eq!(before.certified, last.saturating_sub(1));
        assert_eq!(store.covering(last.max(2) - 1).map(|at| at.height), (last > 0).then(|| last - 1));
        last
    }

    #[test]
    fn what_was_written_is_there_up_to_a_height_and_goes_on_from_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let (_, blocks) = written(folder.path());
        assert_eq!(goes_up_to(folder.path(), &blocks, u64::MAX), LAST);
        assert_eq!(goes_up_to(folder.path(), &blocks, 3), 3);
        assert_eq!(goes_up_to(folder.path(), &blocks, u64::MAX), 3, "what was behind it is cut off");
        assert_eq!(goes_up_to(folder.path(), &blocks, 1), 0);
    }

    #[test]
    fn wherever_it_is_torn_or_a_byte_is_another_one_it_ends_in_front_of_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, blocks) = written(folder.path());
        let whole = std::fs::read(&path).expect("it is there");
        let record = whole.len() / blocks.len();
        assert_eq!(whole.len(), record * blocks.len(), "all are as long");
        for at in 0..whole.len() {
            let intact = at / record;
            let expected = if intact == 0 { 0 } else { intact as u64 + 1 };
            let mut flipped = whole.clone();
            flipped[at] ^= 0x40;
            for damaged in [&flipped[..], &whole[..at]] {
                std::fs::write(&path, damaged).expect("written");
                assert_eq!(goes_up_to(folder.path(), &blocks, u64::MAX), expected, "byte {at}");
            }
        }
    }
}
