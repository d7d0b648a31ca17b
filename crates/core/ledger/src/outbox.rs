//! What blocks did to the tables that an organisation keeps in a database of its own, until that database has it.
//!
//! ```text
//! net-….log    "EnTxNet1" · ledger (32) · first height u64 · then a record per block:
//!              length of the body u32 · CRC-32 of the body u32 · body (Borsh)
//! ```
//!
//! A block is recorded before the ledger has it, so that whatever the ledger has is here after the end of the process. Nothing is
//! flushed: where a loss of power has taken blocks from here, or the database was away for so long that the oldest went, the rows
//! themselves are compared.

use crate::LedgerError;
use crate::disk::{self, Disk, read_up_to};
use crate::layout::checksum;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Key, Row, TableId, Value};

const MAGIC: [u8; 8] = *b"EnTxNet1";
const HEAD_BYTES: u64 = 48;
/// A file that has so many bytes is followed by another one.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Length and checksum of a record's body.
const RECORD_HEAD_BYTES: usize = 8;

/// What a block has made of a row: one change, however often its transactions have changed the row.
#[derive(Clone, Debug, PartialEq)]
pub struct NetChange {
    /// The row's table.
    pub table: TableId,
    /// Its key.
    pub key: Key,
    /// Its values before the block; `None`: it was not there.
    pub old: Option<Row>,
    /// Its values behind the block; `None`: it is gone.
    pub new: Option<Row>,
}

/// What a block did to the tables that are kept elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNetChanges {
    /// The block's height.
    pub height: u64,
    /// A table has got another shape, or is there for the first time or no longer: the changes do not say everything.
    pub reshaped: bool,
    /// One per row.
    pub changes: Vec<NetChange>,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct StoredBlock {
    height: u64,
    reshaped: bool,
    changes: Vec<StoredChange>,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct StoredChange {
    table: u32,
    key: Vec<u8>,
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
}

/// The changes in a folder. Dropping it closes the files.
pub struct Outbox {
    folder: PathBuf,
    ledger: Digest,
    bytes_max: u64,
    disk: Disk,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Ascending; all but the last one are full.
    files: VecDeque<Segment>,
    /// The newest height that is here.
    tip: u64,
}

/// Where a block's changes stand.
struct Place {
    file: Arc<File>,
    path: PathBuf,
    height: u64,
    bytes: Range<u64>,
}

impl Inner {
    /// Where the blocks behind `height` stand, up to `last` and not many more bytes than `bytes_max`. `None`: not all of them are
    /// here.
    fn places(&self, height: u64, last: u64, bytes_max: u64) -> Option<Vec<Place>> {
        let mut places = Vec::new();
        if height >= last {
            return Some(places);
        }
        // A node that joins from a checkpoint goes on behind blocks whose changes are nowhere.
        if height >= self.tip || self.files.front().is_none_or(|first| first.first_height > height + 1) {
            return None;
        }
        let mut left = bytes_max;
        for segment in self.files.iter().filter(|segment| segment.last_height() > height) {
            for height in segment.first_height.max(height + 1)..=segment.last_height().min(last) {
                if left == 0 {
                    return Some(places);
                }
                let position = (height - segment.first_height) as usize;
                let start = u64::from(segment.places[position].0);
                let end = segment.places.get(position + 1).map_or(segment.bytes, |next| u64::from(next.0));
                left = left.saturating_sub(end - start);
                let (file, path) = (segment.file.clone(), segment.path.clone());
                places.push(Place { file, path, height, bytes: start..end });
            }
        }
        Some(places)
    }
}

struct Segment {
    first_height: u64,
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
    /// Where the record of each height begins, from the first one on, and whether it is reshaped.
    places: Vec<(u32, bool)>,
}

impl Segment {
    fn last_height(&self) -> u64 {
        self.first_height + self.places.len() as u64 - 1
    }
}

impl Outbox {
    /// Opens the changes in `folder`, which is made if it is not there. What lies above `newest`, the ledger's newest block, is taken
    /// off; where blocks up to there are missing the changes begin anew behind it. The oldest files go where all together have
    /// more than `bytes_max` bytes.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn open(
        folder: impl Into<PathBuf>,
        ledger: Digest,
        newest: u64,
        bytes_max: u64,
    ) -> Result<Outbox, LedgerError> {
        let folder = folder.into();
        disk::create_folder(&folder)?;
        let mut outbox = Outbox {
            folder,
            ledger,
            bytes_max,
            disk: Disk::default(),
            inner: Mutex::new(Inner { files: VecDeque::new(), tip: newest }),
        };
        let (mut files, mut expected) = (VecDeque::new(), None);
        for name in disk::list(&outbox.folder)? {
            let number = name.strip_prefix("net-").and_then(|name| name.strip_suffix(".log"));
            let Some(first_height) = number.and_then(|number| number.parse::<u64>().ok()) else { continue };
            let goes_on = first_height <= newest && expected.is_none_or(|expected| expected == first_height);
            let segment = if goes_on { outbox.read_segment(first_height, newest)? } else { None };
            match segment {
                Some(segment) => {
                    expected = Some(segment.last_height() + 1);
                    files.push_back(segment);
                }
                // What does not go on where the file before it ends belongs to nothing.
                None => disk::remove(&outbox.path(first_height))?,
            }
        }
        if files.back().is_some_and(|last| last.last_height() < newest) {
            for segment in files.drain(..) {
                disk::remove(&segment.path)?;
            }
        }
        outbox.inner.get_mut().files = files;
        Ok(outbox)
    }

    /// The newest height that is here.
    pub fn tip(&self) -> u64 {
        self.inner.lock().tip
    }

    /// Adds the next block's changes; of a block that is known already nothing. A block that does not follow the newest one
    /// begins everything anew.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn append(&self, block: &BlockNetChanges) -> Result<(), LedgerError> {
        let mut inner = self.inner.lock();
        if block.height <= inner.tip {
            return Ok(());
        }
        if block.height != inner.tip + 1 {
            self.clear(&mut inner)?;
        }
        if inner.files.back().is_none_or(|last| last.bytes >= FILE_BYTES) {
            let segment = self.begin(block.height)?;
            inner.files.push_back(segment);
            while inner.files.len() > 1
                && inner.files.iter().map(|segment| segment.bytes).sum::<u64>() > self.bytes_max
                && let Some(oldest) = inner.files.pop_front()
            {
                disk::remove(&oldest.path)?;
            }
        }
        let Some(last) = inner.files.back_mut() else { return Ok(()) };
        let Ok(offset) = u32::try_from(last.bytes) else { return Ok(()) };
        let bytes = encode(block);
        self.disk.write_at(&last.file, &last.path, &bytes, last.bytes)?;
        last.places.push((offset, block.reshaped));
        last.bytes += bytes.len() as u64;
        inner.tip = block.height;
        Ok(())
    }

    /// The changes of the blocks behind `height`, ascending, up to `last`, and not many more bytes than `bytes_max`. `None`: not all
    /// of them are here, or not as they were written.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn behind(
        &self,
        height: u64,
        last: u64,
        bytes_max: u64,
    ) -> Result<Option<Vec<BlockNetChanges>>, LedgerError> {
        let Some(places) = self.inner.lock().places(height, last, bytes_max) else { return Ok(None) };
        // Whoever adds a block does not wait for this.
        let mut blocks = Vec::with_capacity(places.len());
        for Place { file, path, height, bytes } in places {
            let mut record = vec![0; (bytes.end - bytes.start) as usize];
            let read = read_up_to(&file, &mut record, bytes.start);
            let read = read.map_err(|error| LedgerError::io("read", &path, error))?;
            record.truncate(read);
            match decode(&record).filter(|(block, _)| block.height == height) {
                Some((block, _)) => blocks.push(block),
                // A byte has changed: that is as if the block were not here.
                None => return Ok(None),
            }
        }
        Ok(Some(blocks))
    }

    /// Whether the changes of all blocks behind `height` up to `last` are here and say everything.
    pub fn tells_all(&self, height: u64, last: u64) -> bool {
        let inner = self.inner.lock();
        if height >= last {
            return true;
        }
        let begins = inner.files.front().is_some_and(|first| first.first_height <= height + 1);
        let is_reshaped = |segment: &Segment| {
            let wanted = (height + 1).max(segment.first_height)..=last.min(segment.last_height());
            wanted.into_iter().any(|height| segment.places[(height - segment.first_height) as usize].1)
        };
        begins
            && last <= inner.tip
            && !inner.files.iter().filter(|segment| segment.last_height() > height).any(is_reshaped)
    }

    /// The database has everything up to here.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn taken(&self, height: u64) -> Result<(), LedgerError> {
        let mut inner = self.inner.lock();
        while inner.files.len() > 1
            && inner.files.front().is_some_and(|first| first.last_height() <= height)
            && let Some(first) = inner.files.pop_front()
        {
            disk::remove(&first.path)?;
        }
        Ok(())
    }

    /// Forgets what blocks above `height` did: they will be executed again.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn take_back(&self, height: u64) -> Result<(), LedgerError> {
        // Nobody removes files meanwhile.
        let mut inner = self.inner.lock();
        let reopened = Outbox::open(&self.folder, self.ledger, height, self.bytes_max)?;
        *inner = reopened.inner.into_inner();
        Ok(())
    }

    fn clear(&self, inner: &mut Inner) -> Result<(), LedgerError> {
        for segment in inner.files.drain(..) {
            disk::remove(&segment.path)?;
        }
        Ok(())
    }

    fn path(&self, first_height: u64) -> PathBuf {
        self.folder.join(format!("net-{first_height:020}.log"))
    }

    fn begin(&self, first_height: u64) -> Result<Segment, LedgerError> {
        let path = self.path(first_height);
        let file = disk::create(&path)?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&self.ledger.0);
        head.extend_from_slice(&first_height.to_le_bytes());
        self.disk.write_at(&file, &path, &head, 0)?;
        Ok(Segment { first_height, path, file: Arc::new(file), bytes: HEAD_BYTES, places: Vec::new() })
    }

    /// Reads a file up to `newest`, and takes off what is behind or torn. Nothing where there is no whole block of this ledger.
    fn read_segment(&self, first_height: u64, newest: u64) -> Result<Option<Segment>, LedgerError> {
        let path = self.path(first_height);
        let file = disk::open(&path)?;
        let content = read_whole(&file, &path)?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&self.ledger.0);
        head.extend_from_slice(&first_height.to_le_bytes());
        if !content.starts_with(&head) {
            return Ok(None);
        }
        let (mut at, mut places) = (HEAD_BYTES as usize, Vec::new());
        while first_height + (places.len() as u64) <= newest
            && let Some((block, length)) = content.get(at..).and_then(decode)
            && block.height == first_height + places.len() as u64
            && let Ok(place) = u32::try_from(at)
        {
            places.push((place, block.reshaped));
            at += length;
        }
        if places.is_empty() {
            return Ok(None);
        }
        let (file, bytes) = (Arc::new(file), at as u64);
        file.set_len(bytes).map_err(|error| LedgerError::io("truncate", &path, error))?;
        Ok(Some(Segment { first_height, path, file, bytes, places }))
    }
}

fn read_whole(file: &File, path: &Path) -> Result<Vec<u8>, LedgerError> {
    let io = |error| LedgerError::io("read", path, error);
    let mut content = vec![0; file.metadata().map_err(io)?.len() as usize];
    let read = read_up_to(file, &mut content, 0).map_err(io)?;
    content.truncate(read);
    Ok(content)
}

fn encode(block: &BlockNetChanges) -> Vec<u8> {
    let stored = |change: &NetChange| StoredChange {
        table: change.table.0,
        key: change.key.as_bytes().to_vec(),
        old: change.old.as_ref().map(|row| row.to_vec()),
        new: change.new.as_ref().map(|row| row.to_vec()),
    };
    let changes = block.changes.iter().map(stored).collect();
    let stored = StoredBlock { height: block.height, reshaped: block.reshaped, changes };
    let body = borsh::to_vec(&stored).expect("writing to memory cannot fail");
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&checksum(&[&body]).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// The record that `bytes` begin with, and its length; nothing where it is not whole.
fn decode(bytes: &[u8]) -> Option<(BlockNetChanges, usize)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (crc, rest) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let body = rest.get(..length)?;
    if u32::from_le_bytes(*crc) != checksum(&[body]) {
        return None;
    }
    let StoredBlock { height, reshaped, changes } = borsh::from_slice(body).ok()?;
    let change = |stored: StoredChange| NetChange {
        table: TableId(stored.table),
        key: Key::from_bytes(&stored.key),
        old: stored.old.map(Row::from),
        new: stored.new.map(Row::from),
    };
    let changes = changes.into_iter().map(change).collect();
    Some((BlockNetChanges { height, reshaped, changes }, RECORD_HEAD_BYTES + length))
}
