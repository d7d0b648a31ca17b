//! Reading a data folder that this process does not have open: without a lock, without writing, and without believing
//! its indexes. For audits of copies, of stopped nodes and, up to the tip at the start, of running ones.

use crate::LedgerError;
use crate::anchor::{self, Anchor};
use crate::file_head::FileHead;
use crate::kept::{KeptParts, KeptTransaction, RedactedTransaction};
use crate::ledger_file;
use crate::record::{
    BlockOutcome, BlockRecord, BlockSummary, HEAD_BYTES, Part, RecordHead, RecordPlace, decode_block,
    decode_outcome,
};
use crate::segment::{MAGIC, SEGMENT_HEAD_BYTES, Segment};
use bytes::Bytes;
use crypto::Digest;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::Block;

/// How much is read ahead.
const BUFFER_BYTES: usize = 256 * 1024;

/// The files of blocks of a folder, as far as they go now.
#[derive(Clone, Debug)]
pub struct LedgerFiles {
    folder: PathBuf,
    ledger: Digest,
    /// First height and length.
    files: Vec<(u64, u64)>,
    anchor: Option<Anchor>,
    /// Height up to which blocks have been flushed, as `LEDGER` says.
    flushed: u64,
}

impl LedgerFiles {
    /// Finds the files of the folder of the network with this charter digest. What is appended afterwards does not
    /// count.
    ///
    /// # Errors
    /// [`LedgerError::Io`], [`LedgerError::OtherLedger`], [`LedgerError::Version`], and [`LedgerError::Damaged`] for a
    /// damaged file `LEDGER`.
    pub fn open(folder: impl AsRef<Path>, ledger: Digest) -> Result<LedgerFiles, LedgerError> {
        let folder = folder.as_ref().to_path_buf();
        // Before the lengths of the files: a node that runs flushes first and marks then.
        let flushed = ledger_file::read_mark(&folder, ledger)?;
        let anchor = anchor::read(&folder, ledger)?;
        let failed = |error| LedgerError::io("list", &folder, error);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Some(height) = entry.file_name().to_str().and_then(Segment::height_of_name) {
                files.push((height, entry.metadata().map_err(failed)?.len()));
            }
        }
        // Those in front of it do not belong to the ledger any more.
        files.retain(|(first, _)| anchor.as_ref().is_none_or(|anchor| *first > anchor.height()));
        files.sort_unstable();
        Ok(LedgerFiles { folder, ledger, files, anchor, flushed })
    }

    /// The block in front of the first one, where the ledger does not begin at height 1.
    pub fn anchor(&self) -> Option<&Anchor> {
        self.anchor.as_ref()
    }

    /// The file that holds it.
    pub fn anchor_path(&self) -> PathBuf {
        anchor::path(&self.folder)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// First height and bytes of each file, in their order.
    pub fn files(&self) -> &[(u64, u64)] {
        &self.files
    }

    /// Height of the first block that the ledger has, or will have.
    pub fn first_height(&self) -> u64 {
        self.anchor.as_ref().map_or(1, |anchor| anchor.height() + 1)
    }

    /// Height of the first block that has its transactions and receipts, or will have.
    ///
    /// # Errors
    /// [`LedgerError::Io`], [`LedgerError::Damaged`].
    pub fn payloads_from(&self) -> Result<u64, LedgerError> {
        let mut from = self.first_height();
        for file in 0..self.files.len() {
            let mut records = self.records_from_file(file);
            let Some(first) = records.next().transpose()? else { break };
            if first.summary().pruned {
                from = match self.files.get(file + 1) {
                    Some((next, _)) => *next,
                    // The last file is never pruned, unless no other was begun behind it.
                    None => records.try_fold(from, |_, record| Ok(record?.summary().header.height + 1))?,
                };
            }
        }
        Ok(from)
    }

    /// The records of one file and of those behind it.
    pub fn records_from_file(&self, file: usize) -> Records {
        let next_height = self.files.get(file).map_or(1, |(first, _)| *first);
        Records {
            files: self.clone(),
            file: None,
            next_file: file,
            next_height,
            behind_pruned: false,
            torn: None,
            ended: false,
        }
    }

    /// The records from this height on; files in front of it are not read.
    pub fn records_from(self, height: u64) -> impl Iterator<Item = Result<StoredRecord, LedgerError>> {
        let records = match self.files.iter().rposition(|(first, _)| *first <= height) {
            Some(begun) if begun > 0 => self.records_from_file(begun),
            // A gap in front of the first file is found where that one is read.
            _ => self.records(),
        };
        let is_before = move |record: &Result<StoredRecord, LedgerError>| {
            record.as_ref().is_ok_and(|record| record.head.height() < height)
        };
        records.skip_while(is_before)
    }

    /// The records, from the first height on.
    pub fn records(self) -> Records {
        let next_height = self.first_height();
        Records {
            files: self,
            file: None,
            next_file: 0,
            next_height,
            behind_pruned: false,
            torn: None,
            ended: false,
        }
    }
}

/// A record whose bytes are those that were written, not decoded yet.
#[derive(Clone, Debug)]
pub struct StoredRecord {
    path: Arc<Path>,
    offset: u64,
    head: RecordHead,
    parts: [Bytes; Part::ALL.len()],
}

impl StoredRecord {
    /// What its head says.
    pub fn summary(&self) -> &BlockSummary {
        &self.head.summary
    }

    /// The file that holds it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where in the file it begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.head.record_bytes()
    }

    /// Appends its bytes as they stand in the file.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.head.to_bytes());
        self.parts.iter().for_each(|part| bytes.extend_from_slice(part));
    }

    /// The record that begins at an offset of a file's content.
    pub(crate) fn of_bytes(path: &Arc<Path>, offset: usize, content: &Bytes) -> Result<StoredRecord, String> {
        let cut_off = |bytes: u64| {
            format!("expected {bytes} bytes of a record, the file ends at byte {}", content.len())
        };
        let rest = content.get(offset..).unwrap_or_default();
        let head = rest.first_chunk().ok_or_else(|| cut_off(HEAD_BYTES as u64))?;
        let head = RecordHead::from_bytes(head)?;
        if head.record_bytes() > rest.len() as u64 {
            return Err(cut_off(head.record_bytes()));
        }
        let part = |part| {
            let (start, length) = head.extent(part);
            let start = offset + start as usize;
            content.slice(start..start + length)
        };
        let parts = Part::ALL.map(part);
        for (part, bytes) in Part::ALL.into_iter().zip(&parts) {
            head.check(part, bytes)?;
        }
        Ok(StoredRecord { path: path.clone(), offset: offset as u64, head, parts })
    }

    /// Decodes it.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] where the parts are no block and no outcome, or not those of the head;
    /// [`LedgerError::Pruned`], [`LedgerError::RedactedBlock`].
    pub fn decode(&self) -> Result<BlockRecord, LedgerError> {
        let height = self.head.height();
        match (self.head.summary.pruned, self.head.summary.redacted) {
            (true, _) => Err(LedgerError::Pruned { height }),
            (false, true) => Err(LedgerError::RedactedBlock { height }),
            (false, false) => self.decode_what_is_kept(),
        }
    }

    /// Decodes it; a pruned one has neither transactions nor receipts, and of a redacted one those that are redacted lack.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] as [`StoredRecord::decode`].
    pub fn decode_what_is_kept(&self) -> Result<BlockRecord, LedgerError> {
        let place = RecordPlace { path: &self.path, offset: self.offset, height: self.head.height() };
        let [block, certificate, outcome] = &self.parts;
        if self.head.summary.redacted {
            let KeptParts { attested, transactions, digest } = self.kept()?;
            let whole = transactions.into_iter().filter_map(|kept| match kept {
                KeptTransaction::Whole(bytes, receipt) => Some((bytes, receipt)),
                KeptTransaction::Redacted(_) => None,
            });
            let (transactions, receipts) = whole.unzip();
            let (header, certificate) = (self.head.summary.header.clone(), certificate.clone());
            let block = Block { header, attested, transactions };
            let outcome = BlockOutcome { receipts, digest, header: self.head.summary.outcome.clone() };
            return Ok(BlockRecord { block, certificate, outcome });
        }
        Ok(BlockRecord {
            block: decode_block(&self.head, block, place)?,
            certificate: certificate.clone(),
            outcome: decode_outcome(&self.head, outcome, place)?,
        })
    }
}

/// Redacted transactions.
impl StoredRecord {
    /// What is left of the transactions that are redacted, by their positions; none where none is.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] as [`StoredRecord::decode`].
    pub fn redacted(&self) -> Result<Vec<RedactedTransaction>, LedgerError> {
        if !self.head.summary.redacted {
            return Ok(Vec::new());
        }
        let redacted = self.kept()?.transactions.into_iter().filter_map(|kept| match kept {
            KeptTransaction::Whole(..) => None,
            KeptTransaction::Redacted(redacted) => Some(redacted),
        });
        Ok(redacted.collect())
    }

    /// What there is of a redacted record.
    fn kept(&self) -> Result<KeptParts, LedgerError> {
        let [block, _, outcome] = &self.parts;
        let kept = KeptParts::of_bytes(self.head.summary.header.transactions, (block, outcome));
        let place = RecordPlace { path: &self.path, offset: self.offset, height: self.head.height() };
        kept.map_err(|what| place.damaged(what))
    }
}

/// What stands behind the last record: a crash has torn it, or a node is writing it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornEnd {
    /// The file.
    pub path: PathBuf,
    /// Where the torn record begins.
    pub offset: u64,
    /// Its bytes, and those behind it.
    pub bytes: u64,
    /// What is wrong with it.
    pub what: String,
}

/// The records of a folder in the order of their heights: [`LedgerFiles::records`]. Holds one in memory. Ends after the
/// first error.
#[derive(Debug)]
pub struct Records {
    files: LedgerFiles,
    file: Option<OpenFile>,
    next_file: usize,
    next_height: u64,
    /// The last record was pruned.
    behind_pruned: bool,
    torn: Option<TornEnd>,
    ended: bool,
}

#[derive(Debug)]
struct OpenFile {
    path: Arc<Path>,
    reader: BufReader<io::Take<File>>,
    offset: u64,
    end: u64,
    last: bool,
}

/// Why the bytes at a place are no record.
enum Unreadable {
    Io(io::Error),
    Wrong(String),
}

impl Records {
    /// What was found behind the last record, once that has been read.
    pub fn torn(&self) -> Option<&TornEnd> {
        self.torn.as_ref()
    }

    fn advance(&mut self) -> Result<Option<StoredRecord>, LedgerError> {
        loop {
            let mut file = match self.file.take() {
                Some(file) => file,
                None => match self.open_next()? {
                    Some(file) => file,
                    None => return self.check_end().map(|()| None),
                },
            };
            if file.offset == file.end {
                continue;
            }
            let (offset, height) = (file.offset, self.next_height);
            match file.read() {
                Ok(record) => {
                    if record.head.height() != height {
                        let found = record.head.height();
                        let what = format!("expected height {height}, found height {found}");
                        return Err(LedgerError::damaged(&file.path, offset, height, what));
                    }
                    self.next_height += 1;
                    self.behind_pruned = record.head.summary.pruned;
                    self.file = Some(file);
                    return Ok(Some(record));
                }
                Err(Unreadable::Io(error)) => return Err(LedgerError::io("read", &file.path, error)),
                Err(Unreadable::Wrong(what)) if file.last && height > self.files.flushed => {
                    let (path, bytes) = (file.path.to_path_buf(), file.end - offset);
                    self.torn = Some(TornEnd { path, offset, bytes, what });
                    return self.check_end().map(|()| None);
                }
                Err(Unreadable::Wrong(what)) => {
                    return Err(LedgerError::damaged(&file.path, offset, height, what));
                }
            }
        }
    }

    fn open_next(&mut self) -> Result<Option<OpenFile>, LedgerError> {
        // A node that prunes puts files together: what the one in front of a file has that file does not have any more.
        while self.behind_pruned
            && self.files.files.get(self.next_file).is_some_and(|(first, _)| *first < self.next_height)
        {
            self.next_file += 1;
        }
        let Some(&(first_height, end)) = self.files.files.get(self.next_file) else { return Ok(None) };
        self.next_file += 1;
        let path = self.files.folder.join(Segment::file_name(first_height));
        if first_height != self.next_height {
            return Err(LedgerError::Gap { path, expected: self.next_height, found: first_height });
        }
        let last = self.next_file == self.files.files.len();
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.open_put_together(),
            file => file.map_err(|error| LedgerError::io("open", &path, error))?,
        };
        let head = FileHead { magic: MAGIC, ledger: self.files.ledger, height: first_height };
        match head.check(&file, &path) {
            // A crash came between the file's creation and the flush of its head.
            Err(LedgerError::Damaged { offset, what, .. })
                if last && end <= SEGMENT_HEAD_BYTES && first_height > self.files.flushed =>
            {
                self.torn = Some(TornEnd { path, offset, bytes: end, what });
                return Ok(None);
            }
            checked => checked?,
        }
        // A node that runs may have pruned a file meanwhile: then it is shorter, and whole.
        let now = file.metadata().map_err(|error| LedgerError::io("read", &path, error))?.len();
        // One that has been finished since the folder was listed may be redacted: then it has another length, and is whole.
        let is_written = last && !self.has_file_behind(first_height)?;
        let end = if is_written { end.min(now) } else { now };
        let mut rest = file;
        io::Seek::seek(&mut rest, io::SeekFrom::Start(SEGMENT_HEAD_BYTES))
            .map_err(|error| LedgerError::io("read", &path, error))?;
        let end = end.max(SEGMENT_HEAD_BYTES);
        let reader = BufReader::with_capacity(BUFFER_BYTES, rest.take(end - SEGMENT_HEAD_BYTES));
        Ok(Some(OpenFile { path: path.into(), reader, offset: SEGMENT_HEAD_BYTES, end, last }))
    }

    /// Whether the folder has a file of blocks behind the one that begins with a height, now.
    fn has_file_behind(&self, first_height: u64) -> Result<bool, LedgerError> {
        let failed = |error| LedgerError::io("list", &self.files.folder, error);
        for entry in std::fs::read_dir(&self.files.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name.to_str().and_then(Segment::height_of_name).is_some_and(|height| height > first_height) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The file into which the next one was put since the folder was listed, at the next height.
    fn open_put_together(&mut self) -> Result<Option<OpenFile>, LedgerError> {
        let (folder, ledger) = (self.files.folder.clone(), self.files.ledger);
        let now = LedgerFiles::open(&folder, ledger)?;
        let holding = now.files.iter().rfind(|(first, _)| *first <= self.next_height);
        let Some(&(first_height, _)) = holding.filter(|(first, _)| *first < self.next_height) else {
            let path = folder.join(Segment::file_name(self.next_height));
            return Err(LedgerError::io("open", &path, io::ErrorKind::NotFound.into()));
        };
        let path = folder.join(Segment::file_name(first_height));
        let failed = |error| LedgerError::io("open", &path, error);
        let file = File::open(&path).map_err(failed)?;
        FileHead { magic: MAGIC, ledger, height: first_height }.check(&file, &path)?;
        let end = file.metadata().map_err(failed)?.len();
        let mut rest = file;
        io::Seek::seek(&mut rest, io::SeekFrom::Start(SEGMENT_HEAD_BYTES)).map_err(failed)?;
        let reader = BufReader::with_capacity(
            BUFFER_BYTES,
            rest.take(end.max(SEGMENT_HEAD_BYTES) - SEGMENT_HEAD_BYTES),
        );
        let mut opened =
            OpenFile { path: path.clone().into(), reader, offset: SEGMENT_HEAD_BYTES, end, last: false };
        for height in first_height..self.next_height {
            opened.read().map_err(|unreadable| match unreadable {
                Unreadable::Io(error) => LedgerError::io("read", &path, error),
                Unreadable::Wrong(what) => LedgerError::damaged(&path, SEGMENT_HEAD_BYTES, height, what),
            })?;
        }
        Ok(Some(opened))
    }

    /// Blocks that were flushed must be there.
    fn check_end(&self) -> Result<(), LedgerError> {
        let (tip, flushed) = (self.next_height - 1, self.files.flushed);
        if flushed <= tip {
            return Ok(());
        }
        let what = format!("expected blocks up to height {flushed}, which were flushed; the last is {tip}");
        let path = ledger_file::path(&self.files.folder);
        Err(LedgerError::damaged(&path, ledger_file::MARK_OFFSET, self.next_height, what))
    }
}

impl OpenFile {
    fn read(&mut self) -> Result<StoredRecord, Unreadable> {
        let cut_off = |bytes: u64, end: u64| {
            Unreadable::Wrong(format!("expected {bytes} bytes of a record, the file ends at byte {end}"))
        };
        let rest = self.end - self.offset;
        if rest < HEAD_BYTES as u64 {
            return Err(cut_off(HEAD_BYTES as u64, self.end));
        }
        let mut bytes = [0; HEAD_BYTES];
        self.exactly(&mut bytes)?;
        let head = RecordHead::from_bytes(&bytes).map_err(Unreadable::Wrong)?;
        if head.record_bytes() > rest {
            return Err(cut_off(head.record_bytes(), self.end));
        }
        let mut content = vec![0; (head.record_bytes() - HEAD_BYTES as u64) as usize];
        self.exactly(&mut content)?;
        let content = Bytes::from(content);
        let part = |part| {
            let (start, length) = head.extent(part);
            let start = start as usize - HEAD_BYTES;
            content.slice(start..start + length)
        };
        let parts = Part::ALL.map(part);
        for (part, bytes) in Part::ALL.into_iter().zip(&parts) {
            head.check(part, bytes).map_err(Unreadable::Wrong)?;
        }
        let offset = self.offset;
        self.offset += head.record_bytes();
        Ok(StoredRecord { path: self.path.clone(), offset, head, parts })
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<(), Unreadable> {
        self.reader.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Unreadable::Wrong("expected more bytes, the file has been shortened meanwhile".to_string())
            }
            _ => Unreadable::Io(error),
        })
    }
}

impl Iterator for Records {
    type Item = Result<StoredRecord, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.advance().transpose();
        self.ended = !matches!(record, Some(Ok(_)));
        record
    }
}
