//! The ledger as its users see it: one writer, many readers.

use crate::anchor::Anchor;
use crate::disk::{self, Disk, Faults};
use crate::indexer::Indexer;
use crate::open::{OpenReport, open_folder};
use crate::segment::Segment;
use crate::writer::Writer;
use crate::{BlockOutcome, BlockRecord, BlockSummary, LedgerError, redaction_note};
use bytes::Bytes;
use crypto::Digest;
use parking_lot::{Mutex, RwLock};
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Attested, Block, BlockHeader, Handover, Receipt, TransactionId};

/// How a ledger is kept.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// A file takes no more blocks once it has this many bytes; at most 1 GiB. The default is 64 MiB.
    pub segment_bytes: u64,
    /// What a test makes the disk do.
    pub faults: Option<Arc<Faults>>,
}

impl Default for LedgerOptions {
    fn default() -> LedgerOptions {
        LedgerOptions { segment_bytes: 64 << 20, faults: None }
    }
}

/// What readers see.
#[derive(Default)]
pub(crate) struct View {
    /// In the order of heights. Replaced as a whole, so that a reader's copy costs one reference.
    pub(crate) segments: Arc<Vec<Arc<Segment>>>,
    pub(crate) tip: Option<(u64, Digest)>,
    pub(crate) anchor: Option<Arc<Anchor>>,
}

/// The blocks of one network on one node's disk, with certificates and outcomes.
///
/// Shared by reference between one thread that appends and any number that read. Readers see a block as soon as
/// [`Ledger::append`] has returned; it is durable once a [`Ledger::flush`] that began afterwards has returned.
pub struct Ledger {
    pub(crate) folder: PathBuf,
    pub(crate) ledger: Digest,
    pub(crate) segment_bytes: u64,
    pub(crate) disk: Disk,
    pub(crate) view: RwLock<View>,
    pub(crate) writer: Mutex<Writer>,
    /// Ends before the folder's lock is released.
    pub(crate) indexer: Mutex<Indexer>,
    /// Height of the newest block of which something is redacted.
    pub(crate) redacted_to: RwLock<u64>,
    /// Whose turn it is to write finished files anew.
    pub(crate) rewriting: Mutex<()>,
    _lock: File,
}

impl Ledger {
    /// Opens the data folder of the network with this charter digest, creating it if need be.
    ///
    /// A record that a crash has torn off is cut, as are unflushed records behind it; [`OpenReport`] says so.
    ///
    /// # Errors
    /// [`LedgerError::OtherLedger`] for another network's folder, [`LedgerError::InUse`] for one that is open already,
    /// [`LedgerError::Damaged`] for bytes that a crash cannot explain, [`LedgerError::Gap`] for a missing file.
    pub fn open(folder: impl AsRef<Path>, ledger: Digest) -> Result<(Ledger, OpenReport), LedgerError> {
        Ledger::open_with(folder, ledger, LedgerOptions::default())
    }

    /// [`Ledger::open`] with other options.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open_with(
        folder: impl AsRef<Path>,
        ledger: Digest,
        options: LedgerOptions,
    ) -> Result<(Ledger, OpenReport), LedgerError> {
        let folder = folder.as_ref().to_path_buf();
        let disk = Disk::new(options.faults);
        let opened = open_folder(&disk, &folder, ledger)?;
        let redacted_to = redaction_note::read(&folder)?;
        let indexer = Indexer::start(disk.clone())
            .map_err(|error| LedgerError::io("start the indexer of", &folder, error))?;
        opened.unindexed.into_iter().for_each(|segment| indexer.finish(segment));
        let tip = opened.report.tip;
        let writer =
            Writer::new(opened.ledger_file, opened.segments.last().cloned(), opened.end, tip, ledger);
        let ledger = Ledger {
            folder,
            ledger,
            segment_bytes: options.segment_bytes.clamp(1, 1 << 30),
            disk,
            view: RwLock::new(View { segments: Arc::new(opened.segments), tip, anchor: opened.anchor }),
            writer: Mutex::new(writer),
            indexer: Mutex::new(indexer),
            redacted_to: RwLock::new(redacted_to),
            rewriting: Mutex::new(()),
            _lock: opened.lock,
        };
        Ok((ledger, opened.report))
    }

    /// Height of the last appended block and the digest of its header; nothing in an empty ledger.
    pub fn tip(&self) -> Option<(u64, Digest)> {
        self.view.read().tip
    }

    /// Height of the last block that is certainly on the disk, 0 for none.
    pub fn flushed_height(&self) -> u64 {
        self.writer.lock().flushed
    }

    pub(crate) fn segments(&self) -> Arc<Vec<Arc<Segment>>> {
        Arc::clone(&self.view.read().segments)
    }

    /// The segment that holds a height, or would.
    fn segment_of(&self, height: u64) -> Option<Arc<Segment>> {
        let segments = self.segments();
        let behind = segments.partition_point(|segment| segment.first_height <= height);
        Some(Arc::clone(&segments[behind.checked_sub(1)?]))
    }

    /// The segment that holds a height with its transactions and receipts, or would.
    pub(crate) fn segment_with_payload(&self, height: u64) -> Result<Option<Arc<Segment>>, LedgerError> {
        self.check_kept(height)?;
        let segment = self.segment_of(height);
        match segment.as_ref().is_some_and(|segment| segment.pruned && height < segment.next_height()) {
            true => Err(LedgerError::Pruned { height }),
            false => Ok(segment),
        }
    }

    /// Everything about the block of `height`; nothing above the tip.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`] and [`LedgerError::Io`]; [`LedgerError::NotKept`] in front of [`Ledger::first_height`], and
    /// [`LedgerError::Pruned`] in front of [`Ledger::payloads_from`]; [`LedgerError::RedactedBlock`] where something of it is redacted.
    pub fn read(&self, height: u64) -> Result<Option<BlockRecord>, LedgerError> {
        self.segment_with_payload(height)?.map_or(Ok(None), |segment| segment.record(height))
    }

    /// Block and certificate of `height`, as another node wants them that catches up.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn block(&self, height: u64) -> Result<Option<(Block, Bytes)>, LedgerError> {
        self.segment_with_payload(height)?.map_or(Ok(None), |segment| segment.block(height))
    }

    /// The certificates that the block of `height` carries, and the one that proves it to be final. Pruned blocks have them, too.
    ///
    /// # Errors
    /// As [`Ledger::summary`].
    pub fn certificates(&self, height: u64) -> Result<Option<(Attested, Bytes)>, LedgerError> {
        self.check_kept(height)?;
        self.segment_of(height).map_or(Ok(None), |segment| segment.certificates(height))
    }

    /// Header of the block of `height`: of those that the ledger has, and of the one that it begins behind. Reads the
    /// record's head only.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn header(&self, height: u64) -> Result<Option<BlockHeader>, LedgerError> {
        match self.anchor().filter(|anchor| anchor.height() == height) {
            Some(anchor) => Ok(Some(anchor.header.clone())),
            None => Ok(self.summary(height)?.map(|summary| summary.header)),
        }
    }

    /// Receipts and digests of the block of `height`.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn outcome(&self, height: u64) -> Result<Option<BlockOutcome>, LedgerError> {
        self.segment_with_payload(height)?.map_or(Ok(None), |segment| segment.outcome(height))
    }

    /// Header, digests and counts of the block of `height`, pruned or not. Reads the record's head only.
    ///
    /// # Errors
    /// As [`Ledger::read`], without [`LedgerError::Pruned`].
    pub fn summary(&self, height: u64) -> Result<Option<BlockSummary>, LedgerError> {
        self.check_kept(height)?;
        let Some(segment) = self.segment_of(height) else { return Ok(None) };
        Ok(segment.head(height)?.map(|(_, head)| head.summary))
    }

    /// Summaries of the blocks in a range of heights, ascending; heights without a block are left out.
    pub fn summaries(
        &self,
        heights: RangeInclusive<u64>,
    ) -> impl DoubleEndedIterator<Item = Result<BlockSummary, LedgerError>> + '_ {
        let tip = self.tip().map_or(0, |(height, _)| height);
        let (first, last) = ((*heights.start()).max(self.first_height()), (*heights.end()).min(tip));
        (first..=last).filter_map(|height| self.summary(height).transpose())
    }

    /// Summaries of the last `count` blocks, the newest first.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn latest(&self, count: usize) -> Result<Vec<BlockSummary>, LedgerError> {
        self.summaries(1..=u64::MAX).rev().take(count).collect()
    }

    /// The blocks from `height` on, for replay. Ends at the tip, also where that has moved meanwhile, and after an
    /// error.
    pub fn blocks_from(&self, height: u64) -> Blocks<'_> {
        Blocks { ledger: self, next: Some(height.max(1)) }
    }

    /// What proves each amended charter that blocks carry, in their order, also those in front of the first block. Reads a few dozen heads per handover.
    ///
    /// # Errors
    /// As [`Ledger::read`].
    pub fn handovers(&self, ledger: Digest) -> Result<Vec<Handover>, LedgerError> {
        let tip = self.tip().map_or(0, |(height, _)| height);
        let anchor = self.anchor();
        let (mut handovers, mut named, mut known) = match &anchor {
            Some(anchor) => (anchor.handovers.clone(), anchor.header.charters, anchor.height()),
            None => (Vec::new(), ledger, 0),
        };
        loop {
            // What headers name only grows: the first block that names something else than those before carries it.
            let (mut low, mut high) = (known + 1, tip + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                let more = self.header(middle)?.is_some_and(|header| header.charters != named);
                if more { high = middle } else { low = middle + 1 }
            }
            let carrying = if low > tip { None } else { self.certificates(low)? };
            let Some(handover) = carrying.and_then(|(attested, _)| attested.handover()) else {
                return Ok(handovers);
            };
            (named, known) = (handover.certificate.statement.charters, low);
            handovers.push(handover);
        }
    }

    /// Height and position of a transaction: where it was executed, otherwise where it was rejected last.
    ///
    /// # Errors
    /// As [`Ledger::read`]. A damaged index is none: it is made again.
    pub fn locate(&self, id: &TransactionId) -> Result<Option<(u64, u32)>, LedgerError> {
        let mut found = None;
        for segment in self.segments().iter().rev() {
            let Some(place) = segment.find(&self.disk, id)? else { continue };
            let preferred = found
                .map_or(place, |known: crate::transaction_index::TransactionLocation| known.prefer(place));
            found = Some(preferred);
            if preferred.is_final() {
                break;
            }
        }
        Ok(found.map(|place| (place.height, place.index)))
    }

    /// What the ledger says of a transaction; nothing for one that it does not hold. Of one that was submitted several
    /// times, the receipt of its execution, otherwise that of its last rejection.
    ///
    /// # Errors
    /// As [`Ledger::locate`]; [`LedgerError::Redacted`].
    pub fn receipt(&self, id: &TransactionId) -> Result<Option<Receipt>, LedgerError> {
        let Some((height, index)) = self.locate(id)? else { return Ok(None) };
        self.receipt_at(height, index)
    }

    /// The receipt at a position of a block.
    ///
    /// # Errors
    /// As [`Ledger::read`], with [`LedgerError::Redacted`] where it is this transaction that is redacted.
    pub fn receipt_at(&self, height: u64, index: u32) -> Result<Option<Receipt>, LedgerError> {
        self.segment_with_payload(height)?.map_or(Ok(None), |segment| segment.receipt(height, index))
    }

    /// Height of the newest block of which something is redacted; 0 where nothing is.
    pub fn redacted_to(&self) -> u64 {
        *self.redacted_to.read()
    }

    /// Waits until every finished file has its indexes on disk. For tools and tests; nothing depends on it.
    pub fn settle_indexes(&self) {
        let answer = self.indexer.lock().report();
        // An error says that the thread has ended: there is nothing to wait for.
        let _ = answer.recv();
    }

    /// Bytes of all block files.
    ///
    /// # Errors
    /// [`LedgerError::Io`].
    pub fn bytes(&self) -> Result<u64, LedgerError> {
        let segments = self.segments();
        let sizes = segments.iter().map(|segment| {
            let metadata = segment.file.metadata();
            metadata
                .map(|metadata| metadata.len())
                .map_err(|error| LedgerError::io("read", &segment.path, error))
        });
        sizes.sum()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn flush_folder(&self) -> Result<(), LedgerError> {
        disk::flush_folder(&self.folder)
    }
}

/// Blocks in the order of their heights: [`Ledger::blocks_from`].
pub struct Blocks<'a> {
    ledger: &'a Ledger,
    next: Option<u64>,
}

impl Iterator for Blocks<'_> {
    type Item = Result<BlockRecord, LedgerError>;

    fn next(&mut self) -> Option<Self::Item> {
        let height = self.next?;
        let record = self.ledger.read(height).transpose();
        self.next = matches!(record, Some(Ok(_))).then_some(height + 1);
        record
    }
}
