//! Appending, flushing and taking back.

use crate::LedgerError;
use crate::disk::{self, Disk};
use crate::ledger::{Ledger, View};
use crate::ledger_file::LedgerFile;
use crate::record::{BlockRecord, encode_record};
use crate::segment::{SEGMENT_HEAD_BYTES, Segment};
use crypto::Digest;
use std::sync::Arc;

/// What a buffer may keep between two blocks; a block that needed more gives it back.
const BUFFER_BYTES_KEPT: usize = 16 << 20;

/// What only the writer knows.
pub(crate) struct Writer {
    ledger_file: LedgerFile,
    active: Option<Arc<Segment>>,
    /// End of the active segment's last record.
    end: u64,
    /// Height and header digest of the last block; the charter before the first.
    tip: (u64, Digest),
    /// Height up to which blocks are on the disk.
    pub(crate) flushed: u64,
    /// Counts what was taken back, so that a flush that overlaps with it claims nothing.
    truncations: u64,
    /// The first failure. Nothing is written after it, because nobody knows what the disk holds: a flush that failed
    /// once may say success the next time without having written anything.
    poisoned: Option<String>,
    buffer: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(
        ledger_file: LedgerFile,
        active: Option<Arc<Segment>>,
        end: u64,
        tip: Option<(u64, Digest)>,
        charter: Digest,
    ) -> Writer {
        let tip = tip.unwrap_or((0, charter));
        let (flushed, truncations, poisoned, buffer) = (tip.0, 0, None, Vec::new());
        // Blocks with their transactions go into a file of their own.
        let active = active.filter(|active| !active.pruned);
        Writer { ledger_file, active, end, tip, flushed, truncations, poisoned, buffer }
    }

    /// Whether the file that is being written holds any block.
    pub(crate) fn has_blocks_in_file(&self) -> bool {
        self.active.as_ref().is_some_and(|active| !active.is_empty())
    }

    /// Height and header digest of the last block.
    pub(crate) fn tip(&self) -> (u64, Digest) {
        self.tip
    }

    /// Goes on behind `tip`, with nothing in front of it.
    pub(crate) fn restart(&mut self, tip: (u64, Digest), end: u64, disk: &Disk) -> Result<(), LedgerError> {
        (self.active, self.end, self.tip, self.flushed) = (None, end, tip, tip.0);
        self.truncations += 1;
        self.ledger_file.mark(disk, tip.0)?;
        self.ledger_file.flush(disk)
    }

    pub(crate) fn check_usable(&self) -> Result<(), LedgerError> {
        match &self.poisoned {
            Some(reason) => Err(LedgerError::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Remembers the first failure.
    pub(crate) fn poison<T>(&mut self, result: Result<T, LedgerError>) -> Result<T, LedgerError> {
        if let (Err(error), None) = (&result, &self.poisoned) {
            self.poisoned = Some(error.to_string());
        }
        result
    }

    /// Whether `record` is the next block of this ledger.
    fn check_next(&self, ledger: Digest, record: &BlockRecord) -> Result<(), LedgerError> {
        let (header, receipts) = (&record.block.header, &record.outcome.receipts);
        let (height, previous) = (self.tip.0 + 1, self.tip.1);
        let count = record.block.transactions.len();
        let out_of_place = receipts
            .iter()
            .zip(0u32..)
            .find(|(receipt, index)| (receipt.height, receipt.index) != (height, *index));
        let place = |(height, index): (u64, u32)| format!("{height}/{index}");
        let (found_place, expected_place) = match out_of_place {
            Some((receipt, index)) => (place((receipt.height, receipt.index)), place((height, index))),
            None => Default::default(),
        };
        let checks = [
            ("the ledger", ledger.to_string(), header.ledger.to_string()),
            ("height", height.to_string(), header.height.to_string()),
            ("the previous header", previous.to_string(), header.previous.to_string()),
            ("in its header a count of transactions of", count.to_string(), header.transactions.to_string()),
            ("a count of receipts of", count.to_string(), receipts.len().to_string()),
            ("a receipt for height/index", expected_place, found_place),
            ("an outcome of the block", header.digest().to_string(), record.outcome.header.block.to_string()),
        ];
        match checks.into_iter().find(|(_, expected, found)| expected != found) {
            Some((what, expected, found)) => Err(LedgerError::WrongBlock { what, expected, found }),
            None => Ok(()),
        }
    }
}

impl Ledger {
    /// Adds the next block. Readers see it at once; [`Ledger::flush`] makes it durable.
    ///
    /// # Errors
    /// [`LedgerError::WrongBlock`] for a block that does not follow the tip and [`LedgerError::TooLarge`] change
    /// nothing. [`LedgerError::DiskFull`] and [`LedgerError::Io`] leave what was flushed intact and end all writing
    /// until the folder is opened again, as [`LedgerError::Poisoned`] says from then on.
    pub fn append(&self, record: &BlockRecord) -> Result<(), LedgerError> {
        let mut writer = self.writer.lock();
        writer.check_usable()?;
        writer.check_next(self.ledger, record)?;
        let mut buffer = std::mem::take(&mut writer.buffer);
        let head = encode_record(record, &mut buffer)?;
        let written = self.write(&mut writer, &buffer);
        let (segment, offset) = writer.poison(written)?;
        buffer.shrink_to(BUFFER_BYTES_KEPT);
        writer.buffer = buffer;
        writer.tip = (head.height(), head.summary.header_digest);
        segment.push(offset, &record.outcome.receipts);
        self.view.write().tip = Some(writer.tip);
        Ok(())
    }

    /// Writes a record behind the last one, in a new segment if the active one is full.
    fn write(&self, writer: &mut Writer, bytes: &[u8]) -> Result<(Arc<Segment>, u64), LedgerError> {
        let segment = match &writer.active {
            Some(active) if writer.end < self.segment_bytes || active.is_empty() => Arc::clone(active),
            _ => self.begin_segment(writer)?,
        };
        let offset = writer.end;
        self.disk.write_at(&segment.file, &segment.path, bytes, offset)?;
        writer.end = offset + bytes.len() as u64;
        Ok((segment, offset))
    }

    /// Finishes the active segment, which is durable from now on, and begins the next.
    pub(crate) fn begin_segment(&self, writer: &mut Writer) -> Result<Arc<Segment>, LedgerError> {
        if let Some(finished) = writer.active.take() {
            self.disk.flush(&finished.file, &finished.path)?;
            writer.flushed = writer.tip.0;
            writer.ledger_file.mark(&self.disk, writer.flushed)?;
            self.indexer.lock().finish(finished);
        }
        let segment = Arc::new(Segment::create(&self.disk, &self.folder, self.ledger, writer.tip.0 + 1)?);
        writer.active = Some(Arc::clone(&segment));
        writer.end = SEGMENT_HEAD_BYTES;
        let mut view = self.view.write();
        let mut segments = view.segments.as_ref().clone();
        segments.push(Arc::clone(&segment));
        view.segments = Arc::new(segments);
        Ok(segment)
    }

    /// Makes everything durable that was appended before. Blocks may be appended and read meanwhile.
    ///
    /// # Errors
    /// [`LedgerError::DiskFull`] and [`LedgerError::Io`] as for [`Ledger::append`]: it is unknown which of the blocks
    /// behind [`Ledger::flushed_height`] are on the disk, and flushing again would not tell.
    pub fn flush(&self) -> Result<(), LedgerError> {
        let writer = self.writer.lock();
        writer.check_usable()?;
        let (height, truncations) = (writer.tip.0, writer.truncations);
        let Some(segment) = writer.active.clone() else { return Ok(()) };
        if writer.flushed == height {
            return Ok(());
        }
        // Appending goes on during the flush.
        drop(writer);
        let flushed = self.disk.flush(&segment.file, &segment.path);
        let mut writer = self.writer.lock();
        writer.poison(flushed)?;
        if writer.truncations == truncations && writer.flushed < height {
            writer.flushed = height;
            let marked = writer.ledger_file.mark(&self.disk, height);
            writer.poison(marked)?;
        }
        Ok(())
    }

    /// Takes back the blocks above `height`, so that a node whose history differs from the certified one can fetch it
    /// again. Durable when it returns; a crash in between leaves some of the blocks, so that it must be called again.
    /// Nothing happens where the tip is not above `height`.
    ///
    /// # Errors
    /// As [`Ledger::append`]; also [`LedgerError::Damaged`], and [`LedgerError::Pruned`] for blocks that are.
    pub fn truncate_after(&self, height: u64) -> Result<(), LedgerError> {
        let mut writer = self.writer.lock();
        writer.check_usable()?;
        if height >= writer.tip.0 {
            return Ok(());
        }
        let kept_from = self.payloads_from();
        if height + 1 < kept_from && kept_from > self.first_height() {
            return Err(LedgerError::Pruned { height: height + 1 });
        }
        let truncated = self.truncate(&mut writer, height);
        writer.poison(truncated)
    }

    fn truncate(&self, writer: &mut Writer, height: u64) -> Result<(), LedgerError> {
        let anchor = self.anchor();
        let tip = match (height, &anchor) {
            (0, None) => (0, self.ledger),
            (height, Some(anchor)) if height == anchor.height() => (height, anchor.header.digest()),
            _ => match self.summary(height)? {
                Some(summary) => (height, summary.header_digest),
                None => {
                    return Err(LedgerError::damaged(
                        &self.folder,
                        0,
                        height,
                        "expected a block of this height",
                    ));
                }
            },
        };
        // No index file may be written for what goes away.
        self.settle_indexes();
        writer.truncations += 1;
        writer.flushed = writer.flushed.min(height);
        writer.ledger_file.mark(&self.disk, writer.flushed)?;
        writer.ledger_file.flush(&self.disk)?;
        let mut segments = self.view.read().segments.as_ref().clone();
        while let Some(removed) = segments.pop_if(|segment| segment.first_height > height) {
            removed.remove_sidecars()?;
            disk::remove(&removed.path)?;
            // One after the other, so that a crash leaves no gap.
            self.flush_folder()?;
        }
        writer.active = None;
        if let Some(last) = segments.pop_if(|last| !last.pruned) {
            let (shortened, end) = self.shorten(&last, height)?;
            writer.active = Some(Arc::clone(&shortened));
            writer.end = end;
            segments.push(shortened);
        }
        (writer.tip, writer.flushed) = (tip, height);
        writer.ledger_file.mark(&self.disk, height)?;
        *self.view.write() = View { segments: Arc::new(segments), tip: (height > 0).then_some(tip), anchor };
        Ok(())
    }

    /// Replaces a segment by a copy of its blocks up to `height`. A copy, because readers may be reading the old file,
    /// which the rename leaves to them.
    fn shorten(&self, segment: &Segment, height: u64) -> Result<(Arc<Segment>, u64), LedgerError> {
        let failed = |error| LedgerError::io("copy", &segment.path, error);
        let end = match segment.offset(height + 1) {
            Some(end) => end,
            None => segment.file.metadata().map_err(failed)?.len(),
        };
        let mut bytes = vec![0; end as usize];
        let read = disk::read_up_to(&segment.file, &mut bytes, 0).map_err(failed)?;
        let temporary = disk::temporary_name(&segment.path);
        let copy = disk::create(&temporary)?;
        self.disk.write_at(&copy, &temporary, &bytes[..read], 0)?;
        self.disk.flush(&copy, &temporary)?;
        segment.remove_sidecars()?;
        disk::rename(&temporary, &segment.path)?;
        self.flush_folder()?;
        let shortened = Segment::open(&self.folder, self.ledger, segment.first_height)?;
        let (scan, map) = shortened.scan_everything()?;
        if let Some(damage) = scan.damage {
            return Err(LedgerError::damaged(&shortened.path, damage.offset, damage.height, damage.what));
        }
        shortened.set_offsets(scan.offsets);
        shortened.set_map(map);
        Ok((Arc::new(shortened), scan.end))
    }
}
