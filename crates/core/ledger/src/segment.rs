//! One file of blocks: its head, where its records start, reading them, and scanning them when the ledger is opened.

use crate::disk::{self, Disk, read_up_to};
use crate::file_head::{FILE_HEAD_BYTES, FileHead};
use crate::kept::{KeptParts, KeptTransaction};
use crate::record::{
    BlockRecord, HEAD_BYTES, Part, RecordHead, RecordPlace, append_pruned, append_redacted, decode_attested,
    decode_block, decode_outcome, decode_places, decode_receipt,
};
use crate::transaction_index::{IndexFile, IndexedSegment, TransactionLocation, TransactionMap};
use crate::{LedgerError, height_index};
use bytes::Bytes;
use crypto::Digest;
use parking_lot::{Mutex, RwLock};
use std::fs::File;
use std::path::{Path, PathBuf};
use types::{Attested, Receipt, TransactionId};

/// Bytes of a segment's head.
pub(crate) const SEGMENT_HEAD_BYTES: u64 = FILE_HEAD_BYTES as u64;
pub(crate) const MAGIC: [u8; 8] = *b"EnBlocks";
/// How much a scan reads at once.
const WINDOW_BYTES: usize = 256 * 1024;

/// Where a segment's transactions are found.
enum TransactionPlaces {
    /// The file is missing or damaged; it is made again when somebody asks or the indexer comes to it.
    Missing,
    /// The segment is being written, or its file is not made yet.
    Memory(TransactionMap),
    File(IndexFile),
}

/// A file of blocks. Written at its end only; what readers see is what `offsets` lists.
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) ledger: Digest,
    pub(crate) first_height: u64,
    /// Its blocks have no transactions and receipts any more. Nothing is appended to such a file.
    pub(crate) pruned: bool,
    /// Where each record starts, from the first height on. Records start below 4 GiB, because a segment takes no
    /// more records once it has its size, which is limited to less.
    offsets: RwLock<Vec<u32>>,
    places: RwLock<TransactionPlaces>,
    /// Held by whoever makes the transaction index again, so that others wait instead of doing the same.
    rebuilding: Mutex<()>,
}

impl Segment {
    /// The file name of the segment that starts with a height.
    pub(crate) fn file_name(first_height: u64) -> String {
        format!("blocks-{first_height:020}.log")
    }

    /// The height in a file name, if it is one of a segment.
    pub(crate) fn height_of_name(name: &str) -> Option<u64> {
        let digits = name.strip_prefix("blocks-")?.strip_suffix(".log")?;
        if digits.len() == 20 { digits.parse().ok() } else { None }
    }

    /// Creates the file with its head; both are durable afterwards.
    pub(crate) fn create(
        disk: &Disk,
        folder: &Path,
        ledger: Digest,
        first_height: u64,
    ) -> Result<Segment, LedgerError> {
        let path = folder.join(Segment::file_name(first_height));
        let file = disk::create(&path)?;
        disk.write_at(&file, &path, &FileHead { magic: MAGIC, ledger, height: first_height }.to_bytes(), 0)?;
        disk.flush(&file, &path)?;
        disk::flush_folder(folder)?;
        let places = TransactionPlaces::Memory(TransactionMap::default());
        Ok(Segment::new(path, file, (ledger, first_height), false, places))
    }

    /// Opens a file and checks its head. Its records are not known yet.
    pub(crate) fn open(folder: &Path, ledger: Digest, first_height: u64) -> Result<Segment, LedgerError> {
        let path = folder.join(Segment::file_name(first_height));
        let file = disk::open(&path)?;
        FileHead { magic: MAGIC, ledger, height: first_height }.check(&file, &path)?;
        // A file is pruned as a whole. What is wrong with its first record is found where it is read.
        let mut first = [0; HEAD_BYTES];
        let read = read_up_to(&file, &mut first, SEGMENT_HEAD_BYTES)
            .map_err(|error| LedgerError::io("read", &path, error))?;
        let pruned =
            read == HEAD_BYTES && RecordHead::from_bytes(&first).is_ok_and(|head| head.summary.pruned);
        Ok(Segment::new(path, file, (ledger, first_height), pruned, TransactionPlaces::Missing))
    }

    fn new(
        path: PathBuf,
        file: File,
        (ledger, first_height): (Digest, u64),
        pruned: bool,
        places: TransactionPlaces,
    ) -> Segment {
        let (offsets, places, rebuilding) = (RwLock::default(), RwLock::new(places), Mutex::default());
        Segment { path, file, ledger, first_height, pruned, offsets, places, rebuilding }
    }

    /// Height behind the last record.
    pub(crate) fn next_height(&self) -> u64 {
        self.first_height + self.offsets.read().len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.read().is_empty()
    }

    pub(crate) fn offset(&self, height: u64) -> Option<u64> {
        let position = usize::try_from(height.checked_sub(self.first_height)?).ok()?;
        self.offsets.read().get(position).map(|&offset| u64::from(offset))
    }

    /// Makes a record that was written visible, and then its transactions.
    pub(crate) fn push(&self, offset: u64, receipts: &[Receipt]) {
        self.offsets.write().push(u32::try_from(offset).expect("segments end far below 4 GiB"));
        if let TransactionPlaces::Memory(map) = &mut *self.places.write() {
            map.insert(receipts);
        }
    }

    /// What a scan or an index file has found.
    pub(crate) fn set_offsets(&self, offsets: Vec<u32>) {
        *self.offsets.write() = offsets;
    }

    pub(crate) fn set_map(&self, map: TransactionMap) {
        *self.places.write() = TransactionPlaces::Memory(map);
    }

    fn sidecar(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }

    /// Removes the two index files.
    pub(crate) fn remove_sidecars(&self) -> Result<(), LedgerError> {
        disk::remove(&self.sidecar("idx"))?;
        disk::remove(&self.sidecar("txi"))
    }
}

/// Reading.
impl Segment {
    fn place(&self, height: u64, offset: u64) -> RecordPlace<'_> {
        RecordPlace { path: &self.path, offset, height }
    }

    fn read_exactly(&self, bytes: &mut [u8], offset: u64, place: RecordPlace<'_>) -> Result<(), LedgerError> {
        let read = read_up_to(&self.file, bytes, offset)
            .map_err(|error| LedgerError::io("read", &self.path, error))?;
        if read == bytes.len() {
            return Ok(());
        }
        Err(place.damaged(format!(
            "expected {} bytes at byte {offset}, found {read}: the file is cut off",
            bytes.len()
        )))
    }

    /// The head of the record of `height`, with its offset; nothing if the segment does not hold it.
    pub(crate) fn head(&self, height: u64) -> Result<Option<(u64, RecordHead)>, LedgerError> {
        let Some(offset) = self.offset(height) else { return Ok(None) };
        let place = self.place(height, offset);
        let mut bytes = [0; HEAD_BYTES];
        self.read_exactly(&mut bytes, offset, place)?;
        let head = RecordHead::from_bytes(&bytes).map_err(|what| place.damaged(what))?;
        if head.height() != height {
            return Err(place.damaged(format!("expected height {height}, found {}", head.height())));
        }
        Ok(Some((offset, head)))
    }

    fn part(&self, offset: u64, head: &RecordHead, part: Part) -> Result<Bytes, LedgerError> {
        let place = self.place(head.height(), offset);
        let (start, length) = head.extent(part);
        let mut bytes = vec![0; length];
        self.read_exactly(&mut bytes, offset + start, place)?;
        head.check(part, &bytes).map_err(|what| place.damaged(what))?;
        Ok(Bytes::from(bytes))
    }

    pub(crate) fn block(&self, height: u64) -> Result<Option<(types::Block, Bytes)>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return Ok(None) };
        let bytes = self.part(offset, &head, Part::Block)?;
        let certificate = self.part(offset, &head, Part::Certificate)?;
        Ok(Some((decode_block(&head, &bytes, self.place(height, offset))?, certificate)))
    }

    /// The certificates that the block carries, and the one that proves it, whether it is pruned or not.
    pub(crate) fn certificates(&self, height: u64) -> Result<Option<(Attested, Bytes)>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return Ok(None) };
        let bytes = self.part(offset, &head, Part::Block)?;
        let certificate = self.part(offset, &head, Part::Certificate)?;
        Ok(Some((decode_attested(&head, &bytes, self.place(height, offset))?, certificate)))
    }

    /// The file as it is without transactions and receipts. Reads and checks all of it.
    pub(crate) fn pruned_bytes(&self) -> Result<Vec<u8>, LedgerError> {
        let head = FileHead { magic: MAGIC, ledger: self.ledger, height: self.first_height };
        let mut bytes = head.to_bytes().to_vec();
        for height in self.first_height..self.next_height() {
            let (head, kept) = (self.head(height)?, self.kept(height)?);
            let (Some((offset, head)), Some(kept)) = (head, kept) else { continue };
            let certificate = self.part(offset, &head, Part::Certificate)?;
            append_pruned(&head, (&kept.attested, &certificate, &kept.digest), &mut bytes);
        }
        Ok(bytes)
    }

    /// The file as it is with the redacted first and last part of a record. Reads and checks all of that, and copies the rest.
    pub(crate) fn bytes_with(
        &self,
        height: u64,
        (block, outcome): (Vec<u8>, Vec<u8>),
    ) -> Result<Vec<u8>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return self.whole_file() };
        let certificate = self.part(offset, &head, Part::Certificate)?;
        let whole = self.whole_file()?;
        let (before, rest) = whole.split_at(offset as usize);
        let mut bytes = before.to_vec();
        append_redacted(&head, [&block, &certificate, &outcome], &mut bytes)?;
        bytes.extend_from_slice(&rest[head.record_bytes() as usize..]);
        Ok(bytes)
    }

    /// What there is of a block whose transactions are not pruned, redacted or not.
    pub(crate) fn kept(&self, height: u64) -> Result<Option<KeptParts>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return Ok(None) };
        if !head.summary.redacted {
            let whole = self.record(height)?;
            return Ok(whole.map(|BlockRecord { block, outcome, .. }| {
                KeptParts::of_whole(block, outcome.receipts, outcome.digest)
            }));
        }
        let block = self.part(offset, &head, Part::Block)?;
        let outcome = self.part(offset, &head, Part::Outcome)?;
        let kept = KeptParts::of_bytes(head.summary.header.transactions, (&block, &outcome));
        kept.map(Some).map_err(|what| self.place(height, offset).damaged(what))
    }

    /// Everything in the file.
    pub(crate) fn whole_file(&self) -> Result<Vec<u8>, LedgerError> {
        let failed = |error| LedgerError::io("read", &self.path, error);
        let mut bytes = vec![0; self.file.metadata().map_err(failed)?.len() as usize];
        self.read_exactly(&mut bytes, 0, self.place(self.first_height, 0))?;
        Ok(bytes)
    }

    pub(crate) fn outcome(&self, height: u64) -> Result<Option<crate::BlockOutcome>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return Ok(None) };
        let bytes = self.part(offset, &head, Part::Outcome)?;
        decode_outcome(&head, &bytes, self.place(height, offset)).map(Some)
    }

    pub(crate) fn record(&self, height: u64) -> Result<Option<BlockRecord>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return Ok(None) };
        let place = self.place(height, offset);
        let block = decode_block(&head, &self.part(offset, &head, Part::Block)?, place)?;
        let certificate = self.part(offset, &head, Part::Certificate)?;
        let outcome = decode_outcome(&head, &self.part(offset, &head, Part::Outcome)?, place)?;
        Ok(Some(BlockRecord { block, certificate, outcome }))
    }

    pub(crate) fn receipt(&self, height: u64, index: u32) -> Result<Option<Receipt>, LedgerError> {
        let Some((offset, head)) = self.head(height)? else { return Ok(None) };
        if head.summary.redacted {
            let kept = self.kept(height)?.and_then(|kept| kept.transactions.into_iter().nth(index as usize));
            return match kept {
                None => Ok(None),
                Some(KeptTransaction::Whole(_, receipt)) => Ok(Some(receipt)),
                Some(KeptTransaction::Redacted(redacted)) => Err(LedgerError::Redacted {
                    transaction: redacted.transaction,
                    height,
                    index,
                    proposal: redacted.proposal,
                }),
            };
        }
        let bytes = self.part(offset, &head, Part::Outcome)?;
        decode_receipt(&bytes, index, self.place(height, offset))
    }
}

/// Finding transactions.
impl Segment {
    /// Where this segment holds a transaction.
    pub(crate) fn find(
        &self,
        disk: &Disk,
        id: &TransactionId,
    ) -> Result<Option<TransactionLocation>, LedgerError> {
        loop {
            match &*self.places.read() {
                TransactionPlaces::Memory(map) => return Ok(map.get(id)),
                TransactionPlaces::File(file) => {
                    if let Ok(candidates) = file.candidates(id) {
                        return self.confirm(id, candidates);
                    }
                }
                TransactionPlaces::Missing => {}
            }
            // Missing, or a page is damaged. Afterwards the map or a file just written answers.
            self.rebuild_index(disk, Some(id))?;
        }
    }

    /// The candidate whose receipt has the whole id.
    fn confirm(
        &self,
        id: &TransactionId,
        candidates: Vec<TransactionLocation>,
    ) -> Result<Option<TransactionLocation>, LedgerError> {
        for place in candidates {
            let found = match self.receipt(place.height, place.index) {
                Err(LedgerError::Redacted { transaction, .. }) => Some(transaction),
                receipt => receipt?.map(|receipt| receipt.transaction),
            };
            if found == Some(*id) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Makes the transaction index again from the blocks, unless another thread has just done so; `damaged_at` is the
    /// id at which the present file is known to be damaged.
    fn rebuild_index(&self, disk: &Disk, damaged_at: Option<&TransactionId>) -> Result<(), LedgerError> {
        let _alone = self.rebuilding.lock();
        let good = match &*self.places.read() {
            TransactionPlaces::Missing => false,
            TransactionPlaces::Memory(_) => true,
            TransactionPlaces::File(file) => damaged_at.is_none_or(|id| file.candidates(id).is_ok()),
        };
        if good {
            return Ok(());
        }
        let mut map = TransactionMap::default();
        for height in self.first_height..self.next_height() {
            let Some((offset, head)) = self.head(height)? else { continue };
            let outcome = self.part(offset, &head, Part::Outcome)?;
            map.insert_places(decode_places(&head, &outcome, self.place(height, offset))?);
        }
        let readable = |file: &IndexFile| damaged_at.is_none_or(|id| file.candidates(id).is_ok());
        let written = self.write_index(disk, &map).ok().filter(readable);
        *self.places.write() = written.map_or(TransactionPlaces::Memory(map), TransactionPlaces::File);
        Ok(())
    }

    fn write_index(&self, disk: &Disk, map: &TransactionMap) -> Result<IndexFile, LedgerError> {
        let Some(segment) = self.indexed()? else {
            return Err(LedgerError::damaged(
                &self.path,
                0,
                self.first_height,
                "expected at least one block",
            ));
        };
        IndexFile::write(disk, &self.sidecar("txi"), &segment, map)
    }

    /// What the index files of this segment are bound to; nothing while it has no blocks.
    fn indexed(&self) -> Result<Option<IndexedSegment>, LedgerError> {
        let Some(last) = self.next_height().checked_sub(1) else { return Ok(None) };
        let Some((_, head)) = self.head(last)? else { return Ok(None) };
        let (ledger, first_height) = (self.ledger, self.first_height);
        Ok(Some(IndexedSegment { ledger, first_height, last_header: head.summary.header_digest }))
    }

    /// Opens both index files of a finished segment; `false` says that the transaction index must be made again.
    pub(crate) fn open_transaction_index(&self) -> Result<bool, LedgerError> {
        let file = self.indexed()?.and_then(|segment| IndexFile::open(&self.sidecar("txi"), &segment));
        let found = file.is_some();
        if let Some(file) = file {
            *self.places.write() = TransactionPlaces::File(file);
        }
        Ok(found)
    }

    /// What the indexer does with a finished segment: both index files, if they are not there yet. The map in memory
    /// goes when its file stands.
    pub(crate) fn finish_indexes(&self, disk: &Disk) -> Result<(), LedgerError> {
        height_index::write(
            disk,
            &self.sidecar("idx"),
            self.ledger,
            self.first_height,
            &self.offsets.read(),
        )?;
        self.rebuild_index(disk, None)?;
        let written = match &*self.places.read() {
            TransactionPlaces::Memory(map) => self.write_index(disk, map)?,
            TransactionPlaces::File(_) | TransactionPlaces::Missing => return Ok(()),
        };
        *self.places.write() = TransactionPlaces::File(written);
        Ok(())
    }
}

/// Where and why a scan ended before the end of the file.
pub(crate) struct ScanDamage {
    pub(crate) offset: u64,
    pub(crate) height: u64,
    pub(crate) what: String,
    /// No byte follows the damaged record, as far as its extent is known: a crash may have torn it.
    pub(crate) at_end: bool,
}

/// What a scan has found.
pub(crate) struct Scan {
    pub(crate) offsets: Vec<u32>,
    /// End of the last good record.
    pub(crate) end: u64,
    /// Head of the last good record.
    pub(crate) last: Option<RecordHead>,
    pub(crate) damage: Option<ScanDamage>,
}

/// How much of each record a scan checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanDepth {
    /// Heads: enough to find the records of a finished segment.
    Heads,
    /// Every checksum.
    Everything,
}

impl Segment {
    /// Reads all records in order. `visit` gets each head, the outcome's bytes if everything is read, and the offset.
    pub(crate) fn scan(
        &self,
        depth: ScanDepth,
        mut visit: impl FnMut(&RecordHead, &[u8], u64) -> Result<(), LedgerError>,
    ) -> Result<Scan, LedgerError> {
        let failed = |error| LedgerError::io("read", &self.path, error);
        let file_bytes = self.file.metadata().map_err(failed)?.len();
        let mut window = Window { file: &self.file, bytes: Vec::new(), start: 0 };
        let mut scan = Scan { offsets: Vec::new(), end: SEGMENT_HEAD_BYTES, last: None, damage: None };
        while scan.end < file_bytes {
            let height = self.first_height + scan.offsets.len() as u64;
            let damage = |what: String, at_end| ScanDamage { offset: scan.end, height, what, at_end };
            let bytes = window.read(scan.end, HEAD_BYTES).map_err(failed)?;
            let Some(bytes) = bytes.first_chunk() else {
                scan.damage = Some(damage("expected a record head, found the end of the file".into(), true));
                break;
            };
            let head = match RecordHead::from_bytes(bytes) {
                Ok(head) => head,
                Err(what) => {
                    scan.damage = Some(damage(what, false));
                    break;
                }
            };
            self.check_chain(&head, height, scan.end, scan.last.as_ref())?;
            let end = scan.end + head.record_bytes();
            if end > file_bytes {
                scan.damage = Some(damage(
                    format!("expected the record to end at byte {end}, the file ends at {file_bytes}"),
                    true,
                ));
                break;
            }
            if depth == ScanDepth::Everything {
                let record = window.read(scan.end, head.record_bytes() as usize).map_err(failed)?;
                if let Err(what) = check_parts(&head, record) {
                    scan.damage = Some(damage(what, end == file_bytes));
                    break;
                }
                visit(&head, part_of(&head, record, Part::Outcome), scan.end)?;
            } else {
                visit(&head, &[], scan.end)?;
            }
            scan.offsets.push(u32::try_from(scan.end).map_err(|_| {
                LedgerError::damaged(&self.path, scan.end, height, "expected segments to end below 4 GiB")
            })?);
            (scan.end, scan.last) = (end, Some(head));
        }
        Ok(scan)
    }

    /// Checks every byte and collects the transactions: what the segment that is written to needs.
    pub(crate) fn scan_everything(&self) -> Result<(Scan, TransactionMap), LedgerError> {
        let mut map = TransactionMap::default();
        let scan = self.scan(ScanDepth::Everything, |head, outcome, offset| {
            map.insert_places(decode_places(head, outcome, self.place(head.height(), offset))?);
            Ok(())
        })?;
        Ok((scan, map))
    }

    /// A record whose checksum is right but which does not belong here was not torn by a crash.
    fn check_chain(
        &self,
        head: &RecordHead,
        height: u64,
        offset: u64,
        last: Option<&RecordHead>,
    ) -> Result<(), LedgerError> {
        let place = self.place(height, offset);
        if head.height() != height {
            return Err(place.damaged(format!("expected height {height}, found height {}", head.height())));
        }
        let (previous, last) = (head.summary.header.previous, last.map(|last| last.summary.header_digest));
        match last {
            Some(expected) if expected != previous => Err(place.damaged(format!(
                "expected a block that follows header {expected}, found one that follows {previous}"
            ))),
            _ => Ok(()),
        }
    }

    /// Opens the records of a finished segment: by its index file, or by its heads if that is missing or wrong.
    /// `false` says that the index file must be made again.
    pub(crate) fn open_finished(&self) -> Result<bool, LedgerError> {
        let file_bytes =
            self.file.metadata().map_err(|error| LedgerError::io("read", &self.path, error))?.len();
        if let Some(offsets) = height_index::read(&self.sidecar("idx"), self.ledger, self.first_height) {
            self.set_offsets(offsets);
            let last = self.next_height().saturating_sub(1);
            // An index of other blocks points at places where no record of that height starts or ends.
            let good = matches!(self.head(self.first_height), Ok(Some((SEGMENT_HEAD_BYTES, _))))
                && matches!(self.head(last), Ok(Some((offset, head))) if offset + head.record_bytes() == file_bytes);
            if good {
                return Ok(true);
            }
        }
        let scan = self.scan(ScanDepth::Heads, |_, _, _| Ok(()))?;
        if let Some(damage) = scan.damage {
            return Err(LedgerError::damaged(&self.path, damage.offset, damage.height, damage.what));
        }
        self.set_offsets(scan.offsets);
        Ok(false)
    }
}

fn part_of<'a>(head: &RecordHead, record: &'a [u8], part: Part) -> &'a [u8] {
    let (start, length) = head.extent(part);
    record.get(start as usize..start as usize + length).unwrap_or_default()
}

fn check_parts(head: &RecordHead, record: &[u8]) -> Result<(), String> {
    Part::ALL.into_iter().try_for_each(|part| head.check(part, part_of(head, record, part)))
}

/// A part of a file in memory, so that a scan of small records is not one read per record.
struct Window<'a> {
    file: &'a File,
    bytes: Vec<u8>,
    start: u64,
}

impl Window<'_> {
    /// The bytes from `offset` on, `length` of them or as many as the file has.
    fn read(&mut self, offset: u64, length: usize) -> std::io::Result<&[u8]> {
        let inside = offset >= self.start && offset + length as u64 <= self.start + self.bytes.len() as u64;
        if !inside {
            self.bytes.resize(length.max(WINDOW_BYTES), 0);
            let read = read_up_to(self.file, &mut self.bytes, offset)?;
            self.bytes.truncate(read);
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        let to = (from + length).min(self.bytes.len());
        Ok(&self.bytes[from..to])
    }
}
