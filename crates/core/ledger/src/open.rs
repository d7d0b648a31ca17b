//! Opening a data folder: lock, network, segments, and what a crash has torn.

use crate::LedgerError;
use crate::anchor::{self, Anchor};
use crate::disk::{self, Disk};
use crate::ledger_file::{FlushedMark, LedgerFile};
use crate::segment::{SEGMENT_HEAD_BYTES, Segment};
use crypto::Digest;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What opening has found and repaired.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenReport {
    /// Height of the last block and digest of its header, maybe those of the anchor; nothing in an empty ledger.
    pub tip: Option<(u64, Digest)>,
    /// Bytes of torn or unflushed records that were cut off the last file.
    pub bytes_cut: u64,
    /// The file they were cut off.
    pub file_cut: Option<PathBuf>,
    /// Blocks had been flushed up to this height, but are missing above the tip: the file has been shortened or its
    /// end damaged since. The node must fetch them again; this is said once.
    pub flushed_lost: Option<u64>,
    /// Segments whose index files were missing or wrong and are made again.
    pub indexes_rebuilt: usize,
}

/// What opening hands to the ledger.
pub(crate) struct Opened {
    pub(crate) lock: File,
    pub(crate) ledger_file: LedgerFile,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) anchor: Option<Arc<Anchor>>,
    /// End of the last segment's records.
    pub(crate) end: u64,
    /// Segments that lack an index file.
    pub(crate) unindexed: Vec<Arc<Segment>>,
    pub(crate) report: OpenReport,
}

/// Creates or opens a data folder.
pub(crate) fn open_folder(disk: &Disk, folder: &Path, ledger: Digest) -> Result<Opened, LedgerError> {
    disk::create_folder(folder)?;
    let lock = lock_folder(folder)?;
    let names = disk::list(folder)?;
    let mut heights: Vec<u64> = names.iter().filter_map(|name| Segment::height_of_name(name)).collect();
    let (ledger_file, mut mark) = LedgerFile::open(disk, folder, ledger)?;
    if heights.is_empty() && mark == FlushedMark::Unknown {
        mark = FlushedMark::Height(0);
    }
    let mut report = OpenReport::default();
    let anchor = anchor::read(folder, ledger)?;
    if let Some(anchor) = &anchor {
        // A crash came before all of them were.
        anchor::set_aside(folder, anchor, &mut heights)?;
    }
    let tip = anchor.as_ref().map_or((0, ledger), |anchor| (anchor.height(), anchor.header.digest()));
    let mut opened = Segments { folder, ledger, segments: Vec::new(), unindexed: Vec::new(), tip };
    let heights = remove_torn_creation(folder, ledger, heights, &mut report)?;
    let mut end = SEGMENT_HEAD_BYTES;
    if let Some((&last, finished)) = heights.split_last() {
        finished.iter().try_for_each(|&height| opened.open_finished(height))?;
        end = opened.open_last(disk, last, mark, &mut report)?;
    }
    let Segments { segments, unindexed, tip, .. } = opened;
    report.tip = (tip.0 > 0).then_some(tip);
    report.indexes_rebuilt = unindexed.len();
    report.flushed_lost = match mark {
        FlushedMark::Height(flushed) if flushed > tip.0 => Some(flushed),
        _ => None,
    };
    // What was read may have been in the page cache only.
    if let Some(segment) = segments.last() {
        disk.flush(&segment.file, &segment.path)?;
    }
    ledger_file.mark(disk, tip.0)?;
    ledger_file.flush(disk)?;
    let anchor = anchor.map(Arc::new);
    Ok(Opened { lock, ledger_file, segments, anchor, end, unindexed, report })
}

/// So often a lock is tried again that somebody has who may only look.
const LOOKS_WAITED_FOR: usize = 5;
/// A look is over within this time.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Takes the folder for this process; the operating system gives it back when the process ends, however it ends.
fn lock_folder(folder: &Path) -> Result<File, LedgerError> {
    let path = folder.join("LOCK");
    let failed = |error| LedgerError::io("lock", &path, error);
    let mut options = File::options();
    let mut file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    // Who only looks whether the folder is in use ([`in_use`]) has it for an instant.
    let mut locked = file.try_lock();
    for _ in 0..LOOKS_WAITED_FOR {
        if !matches!(locked, Err(std::fs::TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOOK);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            return Err(LedgerError::InUse { path: folder.to_path_buf(), process: holder(file) });
        }
        Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
    }
    // The number is only for messages; on a full disk the folder must still open for reading.
    let _ = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    Ok(file)
}

/// The process that has locked the folder, as the lock's file says: the number is only for messages.
fn holder(lock: File) -> String {
    let mut process = String::new();
    let _ = lock.take(20).read_to_string(&mut process);
    let process = process.trim();
    if process.is_empty() { "?" } else { process }.to_string()
}

/// The number of the process that has a data folder open, as the folder says; `None` where no process has. Changes nothing.
///
/// # Errors
/// [`LedgerError::Io`].
pub fn in_use(folder: &Path) -> Result<Option<String>, LedgerError> {
    let path = folder.join("LOCK");
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| LedgerError::io("read", &path, error))?,
    };
    match file.try_lock_shared() {
        // Given back with the file.
        Ok(()) => Ok(None),
        Err(std::fs::TryLockError::WouldBlock) => Ok(Some(holder(file))),
        Err(std::fs::TryLockError::Error(error)) => Err(LedgerError::io("lock", &path, error)),
    }
}

/// A file that a crash left while it was created holds no block: heads are flushed before the first one is written.
fn remove_torn_creation(
    folder: &Path,
    ledger: Digest,
    mut heights: Vec<u64>,
    report: &mut OpenReport,
) -> Result<Vec<u64>, LedgerError> {
    if let Some(&last) = heights.last() {
        let path = folder.join(Segment::file_name(last));
        let bytes = path.metadata().map_err(|error| LedgerError::io("read", &path, error))?.len();
        let torn = matches!(Segment::open(folder, ledger, last), Err(LedgerError::Damaged { .. }));
        if bytes <= SEGMENT_HEAD_BYTES && torn {
            disk::remove(&path)?;
            disk::flush_folder(folder)?;
            (report.bytes_cut, report.file_cut) = (bytes, Some(path));
            heights.pop();
        }
    }
    Ok(heights)
}

struct Segments<'a> {
    folder: &'a Path,
    ledger: Digest,
    segments: Vec<Arc<Segment>>,
    unindexed: Vec<Arc<Segment>>,
    /// Height and header digest of the last block so far; the anchor or the charter at first.
    tip: (u64, Digest),
}

impl Segments<'_> {
    fn open(&self, first_height: u64) -> Result<Segment, LedgerError> {
        let segment = Segment::open(self.folder, self.ledger, first_height)?;
        let expected = self.tip.0 + 1;
        if first_height != expected {
            return Err(LedgerError::Gap { path: segment.path, expected, found: first_height });
        }
        Ok(segment)
    }

    /// Checks that the segment continues the one before, and adds it.
    fn push(&mut self, segment: Segment) -> Result<Arc<Segment>, LedgerError> {
        if let Some((offset, head)) = segment.head(segment.first_height)? {
            let (expected, found) = (self.tip.1, head.summary.header.previous);
            if expected != found {
                let what = format!(
                    "expected a block that follows header {expected}, found one that follows {found}"
                );
                return Err(LedgerError::damaged(&segment.path, offset, segment.first_height, what));
            }
        }
        let last = segment.next_height() - 1;
        if let Some((_, head)) = segment.head(last)? {
            self.tip = (last, head.summary.header_digest);
        }
        let segment = Arc::new(segment);
        self.segments.push(Arc::clone(&segment));
        Ok(segment)
    }

    /// A file whose blocks are in the pruned one in front of it, because a crash came before it was removed.
    fn remove_put_together(&self, first_height: u64) -> Result<bool, LedgerError> {
        let before = self.segments.last();
        if !before.is_some_and(|before| before.pruned && first_height < before.next_height()) {
            return Ok(false);
        }
        let path = self.folder.join(Segment::file_name(first_height));
        for extension in ["idx", "txi", "log"] {
            disk::remove(&path.with_extension(extension))?;
        }
        disk::flush_folder(self.folder)?;
        Ok(true)
    }

    fn open_finished(&mut self, first_height: u64) -> Result<(), LedgerError> {
        if self.remove_put_together(first_height)? {
            return Ok(());
        }
        let segment = self.open(first_height)?;
        let heights_good = segment.open_finished()?;
        let transactions_good = segment.open_transaction_index()?;
        let segment = self.push(segment)?;
        if !(heights_good && transactions_good) {
            self.unindexed.push(segment);
        }
        Ok(())
    }

    /// Reads the last segment whole and cuts off what a crash has torn. Gives the end of its last record.
    fn open_last(
        &mut self,
        disk: &Disk,
        first_height: u64,
        mark: FlushedMark,
        report: &mut OpenReport,
    ) -> Result<u64, LedgerError> {
        let segment = self.open(first_height)?;
        let (scan, map) = segment.scan_everything()?;
        if let Some(damage) = scan.damage {
            // Whatever follows a flushed block was written after it was on the disk whole.
            if !damage.at_end && mark.is_beyond(damage.height) {
                return Err(LedgerError::damaged(&segment.path, damage.offset, damage.height, damage.what));
            }
            let failed = |error| LedgerError::io("cut", &segment.path, error);
            report.bytes_cut += segment.file.metadata().map_err(failed)?.len() - scan.end;
            report.file_cut = Some(segment.path.clone());
            segment.file.set_len(scan.end).map_err(failed)?;
            disk.flush(&segment.file, &segment.path)?;
        }
        segment.set_offsets(scan.offsets);
        segment.set_map(map);
        self.push(segment)?;
        Ok(scan.end)
    }
}
