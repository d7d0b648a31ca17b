//! What became of rows, block by block: files of changes, and for each finished one a sorted index by row.
//!
//! ```text
//! since        the height behind which the history begins, u64
//! rows-….log   "EnTxRow1" · ledger (32) · first height u64 · then records, one per change and one that ends each block:
//!              length of the body u32 · CRC-32 of the body u32 · body (Borsh)
//! rows-….idx   "EnTxRow2" · length of the log u64 · then, ascending: hash of table and key u64 · offset of the record u32
//! ```
//!
//! All of it follows from the blocks, so that only `since` and files that are finished are flushed: what a crash tears off the
//! last one is made again when blocks are executed again, for which no checkpoint above [`RowHistory::tip`] may be used. A block is taken once: what is at or
//! below the tip is known already. A change costs its row and key and about 80 bytes.

use crate::LedgerError;
use crate::disk::{self, Disk, read_up_to};
use crate::layout::checksum;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, sha256};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Key, Principal, Row, TableId, TransactionId, Value};

const LOG_MAGIC: [u8; 8] = *b"EnTxRow1";
const INDEX_MAGIC: [u8; 8] = *b"EnTxRow2";
const HEAD_BYTES: u64 = 48;
const INDEX_HEAD_BYTES: u64 = 16;
const INDEX_ENTRY_BYTES: u64 = 12;
/// A file that has so many bytes is finished: its index is what stays of it in no memory.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Length and checksum of a record's body.
const RECORD_HEAD_BYTES: usize = 8;
/// Changes of one row that are given, the newest.
const CHANGES_MAX: usize = 10_000;

/// A change of a row by a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct RowVersion {
    /// Height of the block.
    pub height: u64,
    /// Position of the transaction in it.
    pub index: u32,
    /// The transaction.
    pub transaction: TransactionId,
    /// In whose name it ran.
    pub principal: Principal,
    /// The row was there before.
    pub existed: bool,
    /// The row's values; `None`: it is gone.
    pub value: Option<Row>,
}

/// A change of a row, to be recorded.
pub struct RecordedRow<'a> {
    /// Position of the transaction in the block.
    pub index: u32,
    /// The transaction.
    pub transaction: TransactionId,
    /// In whose name it ran.
    pub principal: &'a Principal,
    /// The row's table.
    pub table: TableId,
    /// Its key.
    pub key: &'a Key,
    /// The row was there before.
    pub existed: bool,
    /// Its values; `None`: it is gone.
    pub value: Option<&'a Row>,
}

#[derive(BorshSerialize, BorshDeserialize)]
enum Stored {
    Row(StoredRow),
    /// All changes of the block at this height stand in front of it.
    End(u64),
}

#[derive(BorshSerialize, BorshDeserialize)]
struct StoredRow {
    height: u64,
    index: u32,
    transaction: [u8; 32],
    organisation: u16,
    role: String,
    table: u32,
    key: Vec<u8>,
    existed: bool,
    value: Option<Vec<Value>>,
}

/// The history of rows in a folder. Dropping it closes the files.
pub struct RowHistory {
    folder: PathBuf,
    ledger: Digest,
    bytes_max: u64,
    disk: Disk,
    inner: RwLock<Inner>,
}

struct Inner {
    finished: Vec<Arc<Finished>>,
    current: Option<Current>,
    /// The newest height whose changes are here.
    tip: u64,
}

/// A file to which nothing is added any more.
struct Finished {
    first_height: u64,
    log: File,
    log_path: PathBuf,
    index: File,
    index_path: PathBuf,
    entries: u64,
    bytes: u64,
}

/// The file that is being written.
struct Current {
    first_height: u64,
    log: Arc<File>,
    path: PathBuf,
    bytes: u64,
    /// Offsets of records, by hash of table and key.
    places: HashMap<u64, Vec<u32>>,
}

/// Where the changes of a row may stand.
fn hash(table: TableId, key: &[u8]) -> u64 {
    let digest = sha256(&[&table.0.to_le_bytes(), key]);
    u64::from_le_bytes(*digest.0.first_chunk().expect("a digest has 32 bytes"))
}

impl RowHistory {
    /// Opens the history in `folder`, which is made if it is not there. What lies above `newest`, the ledger's newest block, is
    /// taken off. The oldest files go where all together have more than `bytes_max` bytes.
    ///
    /// # Errors
    /// Errors of the disk; the history of another ledger.
    pub fn open(
        folder: impl Into<PathBuf>,
        ledger: Digest,
        newest: u64,
        bytes_max: u64,
    ) -> Result<RowHistory, LedgerError> {
        let folder = folder.into();
        std::fs::create_dir_all(&folder).map_err(|error| LedgerError::io("create", &folder, error))?;
        let mut firsts = Vec::new();
        let files = std::fs::read_dir(&folder).map_err(|error| LedgerError::io("read", &folder, error))?;
        for file in files {
            let name = file.map_err(|error| LedgerError::io("read", &folder, error))?.file_name();
            let name = name.to_string_lossy();
            let number = name.strip_prefix("rows-").and_then(|name| name.strip_suffix(".log"));
            firsts.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        firsts.sort_unstable();
        let since = since(&folder, newest)?;
        let inner = RwLock::new(Inner { finished: Vec::new(), current: None, tip: since });
        let history = RowHistory { folder, ledger, bytes_max, disk: Disk::default(), inner };
        history.open_files(&firsts, newest)?;
        Ok(history)
    }

    fn open_files(&self, firsts: &[u64], newest: u64) -> Result<(), LedgerError> {
        let mut inner = self.inner.write();
        let mut expected = None;
        for (position, first_height) in firsts.iter().copied().enumerate() {
            // What does not go on where the file before it ends belongs to nothing.
            if first_height > newest || expected.is_some_and(|expected| expected != first_height) {
                self.remove(first_height)?;
                continue;
            }
            let next = firsts.get(position + 1).copied();
            // A file behind which another one begins is whole, if its index says so.
            let known = next.filter(|next| next - 1 <= newest);
            let finished = match known {
                Some(_) => self.open_finished(first_height)?,
                None => None,
            };
            if let (Some(finished), Some(next)) = (finished, known) {
                inner.finished.push(Arc::new(finished));
                (inner.tip, expected) = (next - 1, Some(next));
                continue;
            }
            let Some((current, tip)) = self.read_log(first_height, newest)? else {
                self.remove(first_height)?;
                continue;
            };
            (inner.tip, expected) = (tip, Some(tip + 1));
            match known {
                Some(_) => inner.finished.push(Arc::new(self.finish(current)?)),
                None => inner.current = Some(current),
            }
        }
        Ok(())
    }

    /// Forgets what there is and begins behind `height`, for a ledger that does.
    ///
    /// # Errors
    /// As [`RowHistory::open`].
    pub fn begin_behind(
        folder: impl Into<PathBuf>,
        ledger: Digest,
        height: u64,
        bytes_max: u64,
    ) -> Result<RowHistory, LedgerError> {
        let folder = folder.into();
        disk::create_folder(&folder)?;
        for name in disk::list(&folder)?.iter().filter(|name| name.starts_with("rows-")) {
            disk::remove(&folder.join(name))?;
        }
        disk::remove(&folder.join("since"))?;
        RowHistory::open(folder, ledger, height, bytes_max)
    }

    /// The newest height whose changes are here.
    pub fn tip(&self) -> u64 {
        self.inner.read().tip
    }

    fn path(&self, first_height: u64, kind: &str) -> PathBuf {
        self.folder.join(format!("rows-{first_height:020}.{kind}"))
    }

    fn remove(&self, first_height: u64) -> Result<(), LedgerError> {
        disk::remove(&self.path(first_height, "idx"))?;
        disk::remove(&self.path(first_height, "log"))
    }

    /// Records the changes of a block, in the order in which they took effect; of one that is known already nothing.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn append<'a>(
        &self,
        height: u64,
        rows: impl IntoIterator<Item = RecordedRow<'a>>,
    ) -> Result<(), LedgerError> {
        let mut inner = self.inner.write();
        if height <= inner.tip {
            return Ok(());
        }
        if inner.current.as_ref().is_some_and(|current| current.bytes >= FILE_BYTES)
            && let Some(current) = inner.current.take()
        {
            inner.finished.push(Arc::new(self.finish(current)?));
            self.forget_oldest(&mut inner)?;
        }
        if inner.current.is_none() {
            inner.current = Some(self.begin(height)?);
        }
        let Some(current) = &mut inner.current else { return Ok(()) };
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for row in rows {
            let offset = current.bytes + bytes.len() as u64;
            // So large a block is larger than any that can be made.
            let Ok(offset) = u32::try_from(offset) else { break };
            places.push((hash(row.table, row.key.as_bytes()), offset));
            let stored = StoredRow {
                height,
                index: row.index,
                transaction: row.transaction.0.0,
                organisation: row.principal.organisation,
                role: row.principal.role.clone(),
                table: row.table.0,
                key: row.key.as_bytes().to_vec(),
                existed: row.existed,
                value: row.value.map(|row| row.to_vec()),
            };
            put(&mut bytes, &Stored::Row(stored));
        }
        put(&mut bytes, &Stored::End(height));
        self.disk.write_at(&current.log, &current.path, &bytes, current.bytes)?;
        current.bytes += bytes.len() as u64;
        for (hash, offset) in places {
            current.places.entry(hash).or_default().push(offset);
        }
        inner.tip = height;
        Ok(())
    }

    /// Forgets what blocks below a height did, as far as whole files go. The file that is being written ends there, where it has any
    /// such block, so that it can go another time.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn forget_below(&self, height: u64) -> Result<(), LedgerError> {
        let mut inner = self.inner.write();
        while let Some(oldest) = inner.finished.first() {
            let next = match (inner.finished.get(1), &inner.current) {
                (Some(next), _) => next.first_height,
                (None, Some(current)) => current.first_height,
                // The last one says up to where the history goes.
                (None, None) => break,
            };
            if next > height {
                break;
            }
            disk::remove(&oldest.index_path)?;
            disk::remove(&oldest.log_path)?;
            inner.finished.remove(0);
        }
        if let Some(current) = inner.current.take_if(|current| current.first_height < height) {
            let finished = self.finish(current)?;
            inner.finished.push(Arc::new(finished));
        }
        Ok(())
    }

    /// Takes what a transaction did to rows in a block out of the history. Says how many changes went.
    ///
    /// # Errors
    /// Errors of the disk, a damaged file: nothing has changed then.
    pub fn redact(&self, height: u64, transaction: &TransactionId) -> Result<usize, LedgerError> {
        let mut inner = self.inner.write();
        if let Some(current) = inner.current.take_if(|current| current.first_height <= height) {
            let finished = self.finish(current)?;
            inner.finished.push(Arc::new(finished));
        }
        let Some(position) = inner.finished.iter().rposition(|file| file.first_height <= height) else {
            return Ok(0);
        };
        let file = inner.finished[position].clone();
        let content = read_whole(&file.log, &file.log_path)?;
        let (mut at, mut gone) = (HEAD_BYTES as usize, 0);
        let (mut kept, mut places) = (content[..at].to_vec(), HashMap::<u64, Vec<u32>>::new());
        while at < content.len() {
            let Some((stored, length)) = decode_record(&content[at..]) else {
                let what = "expected a change of a row, or the end of a block's changes";
                return Err(LedgerError::damaged(&file.log_path, at as u64, height, what));
            };
            let record = &content[at..at + length as usize];
            at += length as usize;
            match stored {
                Stored::Row(row) if row.height == height && row.transaction == transaction.0.0 => gone += 1,
                Stored::Row(row) => {
                    let hash = hash(TableId(row.table), &row.key);
                    places.entry(hash).or_default().push(kept.len() as u32);
                    kept.extend_from_slice(record);
                }
                Stored::End(_) => kept.extend_from_slice(record),
            }
        }
        if gone == 0 {
            return Ok(0);
        }
        let temporary = disk::temporary_name(&file.log_path);
        let log = disk::create(&temporary)?;
        self.disk.write_at(&log, &temporary, &kept, 0)?;
        self.disk.flush(&log, &temporary)?;
        // Made again when the history is opened, should this end here.
        disk::remove(&file.index_path)?;
        disk::rename(&temporary, &file.log_path)?;
        disk::flush_folder(&self.folder)?;
        let (first_height, path) = (file.first_height, file.log_path.clone());
        let current = Current { first_height, log: Arc::new(log), path, bytes: kept.len() as u64, places };
        inner.finished[position] = Arc::new(self.finish(current)?);
        Ok(gone)
    }

    fn begin(&self, first_height: u64) -> Result<Current, LedgerError> {
        let path = self.path(first_height, "log");
        let log = disk::create(&path)?;
        let mut head = LOG_MAGIC.to_vec();
        head.extend_from_slice(&self.ledger.0);
        head.extend_from_slice(&first_height.to_le_bytes());
        self.disk.write_at(&log, &path, &head, 0)?;
        Ok(Current { first_height, log: Arc::new(log), path, bytes: HEAD_BYTES, places: HashMap::new() })
    }

    fn forget_oldest(&self, inner: &mut Inner) -> Result<(), LedgerError> {
        let mut total: u64 = inner.finished.iter().map(|finished| finished.bytes).sum();
        while total > self.bytes_max && !inner.finished.is_empty() {
            let oldest = inner.finished.remove(0);
            total -= oldest.bytes;
            disk::remove(&oldest.index_path)?;
            disk::remove(&oldest.log_path)?;
        }
        Ok(())
    }

    /// Writes the index of a file that is full.
    fn finish(&self, current: Current) -> Result<Finished, LedgerError> {
        let mut entries: Vec<(u64, u32)> = Vec::new();
        for (hash, offsets) in &current.places {
            entries.extend(offsets.iter().map(|offset| (*hash, *offset)));
        }
        entries.sort_unstable();
        let mut bytes = INDEX_MAGIC.to_vec();
        bytes.extend_from_slice(&current.bytes.to_le_bytes());
        for (hash, offset) in &entries {
            bytes.extend_from_slice(&hash.to_le_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        let index_path = self.path(current.first_height, "idx");
        self.disk.write_replaceable(&index_path, &bytes)?;
        let index = disk::open(&index_path)?;
        self.disk.flush(&current.log, &current.path)?;
        self.disk.flush(&index, &index_path)?;
        Ok(Finished {
            first_height: current.first_height,
            log: disk::open(&current.path)?,
            log_path: current.path,
            index,
            index_path,
            entries: entries.len() as u64,
            bytes: current.bytes + bytes.len() as u64,
        })
    }

    /// A file that has its index; nothing where the index has to be made again.
    fn open_finished(&self, first_height: u64) -> Result<Option<Finished>, LedgerError> {
        let (log_path, index_path) = (self.path(first_height, "log"), self.path(first_height, "idx"));
        let Ok(index) = disk::open(&index_path) else { return Ok(None) };
        let log = disk::open(&log_path)?;
        let length = |file: &File, path: &Path| {
            let metadata = file.metadata().map_err(|error| LedgerError::io("read", path, error));
            metadata.map(|metadata| metadata.len())
        };
        let (log_bytes, index_bytes) = (length(&log, &log_path)?, length(&index, &index_path)?);
        let mut head = [0; INDEX_HEAD_BYTES as usize];
        let read = read_up_to(&index, &mut head, 0);
        let read = read.map_err(|error| LedgerError::io("read", &index_path, error))?;
        let whole = read == head.len()
            && head[..8] == INDEX_MAGIC
            && head[8..] == log_bytes.to_le_bytes()
            && (index_bytes - INDEX_HEAD_BYTES).is_multiple_of(INDEX_ENTRY_BYTES);
        if !self.check_head(&log, &log_path)? || !whole {
            return Ok(None);
        }
        let entries = (index_bytes - INDEX_HEAD_BYTES) / INDEX_ENTRY_BYTES;
        Ok(Some(Finished {
            first_height,
            log,
            log_path,
            index,
            index_path,
            entries,
            bytes: log_bytes + index_bytes,
        }))
    }

    fn check_head(&self, log: &File, path: &Path) -> Result<bool, LedgerError> {
        let mut head = [0; HEAD_BYTES as usize];
        let read = read_up_to(log, &mut head, 0).map_err(|error| LedgerError::io("read", path, error))?;
        if read < head.len() {
            return Ok(false);
        }
        let (name, version) = LOG_MAGIC.split_at(7);
        if &head[..7] == name && head[7].is_ascii_digit() && head[7] > version[0] {
            let [expected, found] = [version[0], head[7]].map(|digit| u32::from(digit - b'0'));
            return Err(LedgerError::Version { path: path.to_path_buf(), expected, found });
        }
        if head[..8] != LOG_MAGIC {
            return Ok(false);
        }
        let found = Digest(*head[8..].first_chunk().expect("the head has these bytes"));
        if found != self.ledger {
            let (path, expected) = (path.to_path_buf(), self.ledger);
            return Err(LedgerError::OtherLedger { path, expected, found });
        }
        Ok(true)
    }

    /// Reads a file from its begin, up to `newest`, and takes off what is behind or torn. Nothing where there is no whole
    /// block.
    fn read_log(&self, first_height: u64, newest: u64) -> Result<Option<(Current, u64)>, LedgerError> {
        let path = self.path(first_height, "log");
        let log = disk::open(&path)?;
        if !self.check_head(&log, &path)? {
            return Ok(None);
        }
        let log = Arc::new(log);
        let mut current = Current { first_height, log, path, bytes: HEAD_BYTES, places: HashMap::new() };
        let (mut at, mut next) = (HEAD_BYTES, first_height);
        let mut places = Vec::new();
        // There are so many small records that to read each by itself would take most of the time of a start.
        let content = read_whole(&current.log, &current.path)?;
        while next <= newest {
            let Some((stored, length)) = content.get(at as usize..).and_then(decode_record) else { break };
            match stored {
                Stored::Row(row) if row.height == next => {
                    places.push((hash(TableId(row.table), &row.key), at as u32));
                    at += length;
                }
                Stored::End(height) if height == next => {
                    at += length;
                    next += 1;
                    current.bytes = at;
                    for (hash, offset) in places.drain(..) {
                        current.places.entry(hash).or_default().push(offset);
                    }
                }
                _ => break,
            }
        }
        let truncated = current.log.set_len(current.bytes);
        truncated.map_err(|error| LedgerError::io("truncate", &current.path, error))?;
        Ok((next > first_height).then_some((current, next - 1)))
    }

    /// The changes of a row that are kept, the oldest first; the newest 10,000 of them.
    ///
    /// # Errors
    /// Errors of the disk, a damaged file.
    pub fn versions(&self, table: TableId, key: &Key) -> Result<Vec<RowVersion>, LedgerError> {
        let wanted = hash(table, key.as_bytes());
        let (finished, current) = {
            let inner = self.inner.read();
            let current = inner.current.as_ref().and_then(|current| {
                let offsets = current.places.get(&wanted)?.clone();
                Some((current.log.clone(), current.path.clone(), offsets))
            });
            (inner.finished.clone(), current)
        };
        // The newest first, as long as there are not enough.
        let mut versions: Vec<RowVersion> = Vec::new();
        let mut take = |log: &File, path: &Path, offset: u32| -> Result<bool, LedgerError> {
            let Some((Stored::Row(row), _)) = read_record(log, path, u64::from(offset))? else {
                return Err(LedgerError::damaged(path, u64::from(offset), 0, "expected a change of a row"));
            };
            if row.table == table.0 && row.key == key.as_bytes() {
                let StoredRow { height, index, transaction, organisation, role, existed, value, .. } = row;
                let transaction = TransactionId(Digest(transaction));
                let (principal, value) = (Principal::new(organisation, role), value.map(Row::from));
                versions.push(RowVersion { height, index, transaction, principal, existed, value });
            }
            Ok(versions.len() < CHANGES_MAX)
        };
        let mut more = true;
        if let Some((log, path, offsets)) = current {
            for offset in offsets.into_iter().rev() {
                more = more && take(&log, &path, offset)?;
            }
        }
        for file in finished.iter().rev() {
            if !more {
                break;
            }
            for offset in file.offsets(wanted)?.into_iter().rev() {
                more = more && take(&file.log, &file.log_path, offset)?;
            }
        }
        versions.reverse();
        Ok(versions)
    }
}

impl Finished {
    /// Offsets of the records that may have changes of a row, ascending.
    fn offsets(&self, wanted: u64) -> Result<Vec<u32>, LedgerError> {
        let entry = |number: u64| -> Result<(u64, u32), LedgerError> {
            let mut bytes = [0; INDEX_ENTRY_BYTES as usize];
            let at = INDEX_HEAD_BYTES + number * INDEX_ENTRY_BYTES;
            let read = read_up_to(&self.index, &mut bytes, at);
            let read = read.map_err(|error| LedgerError::io("read", &self.index_path, error))?;
            if read < bytes.len() {
                return Err(LedgerError::damaged(&self.index_path, at, 0, "expected an entry of the index"));
            }
            let (hash, offset) = bytes.split_first_chunk().expect("an entry has twelve bytes");
            Ok((
                u64::from_le_bytes(*hash),
                u32::from_le_bytes(*offset.first_chunk().expect("and four are left")),
            ))
        };
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if entry(middle)?.0 < wanted { low = middle + 1 } else { high = middle }
        }
        let mut offsets = Vec::new();
        while low < self.entries {
            let (hash, offset) = entry(low)?;
            if hash != wanted {
                break;
            }
            offsets.push(offset);
            low += 1;
        }
        Ok(offsets)
    }
}

/// The height behind which the history begins: where the ledger was when there was none.
fn since(folder: &Path, newest: u64) -> Result<u64, LedgerError> {
    let path = folder.join("since");
    if let Ok(bytes) = std::fs::read(&path)
        && let Some(bytes) = bytes.first_chunk()
    {
        return Ok(u64::from_le_bytes(*bytes));
    }
    let file = disk::create(&path)?;
    let disk = Disk::default();
    disk.write_at(&file, &path, &newest.to_le_bytes(), 0)?;
    disk.flush(&file, &path)?;
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| LedgerError::io("flush", folder, error))?;
    Ok(newest)
}

fn put(bytes: &mut Vec<u8>, stored: &Stored) {
    let body = borsh::to_vec(stored).expect("writing to memory cannot fail");
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&checksum(&[&body]).to_le_bytes());
    bytes.extend_from_slice(&body);
}

/// The record at an offset, and its length; nothing where none stands there whole.
fn read_record(log: &File, path: &Path, offset: u64) -> Result<Option<(Stored, u64)>, LedgerError> {
    let io = |error| LedgerError::io("read", path, error);
    let mut record = vec![0; RECORD_HEAD_BYTES];
    if read_up_to(log, &mut record, offset).map_err(io)? < record.len() {
        return Ok(None);
    }
    let Some((length, _)) = record_head(&record) else { return Ok(None) };
    // So that a damaged length asks for no more memory than there is file.
    let left = log.metadata().map_err(io)?.len().saturating_sub(offset + RECORD_HEAD_BYTES as u64);
    if length > left {
        return Ok(None);
    }
    record.resize(RECORD_HEAD_BYTES + length as usize, 0);
    let body = &mut record[RECORD_HEAD_BYTES..];
    let read = read_up_to(log, body, offset + RECORD_HEAD_BYTES as u64).map_err(io)?;
    Ok(if read < body.len() { None } else { decode_record(&record) })
}

/// All records of a log with what stands in front of them.
fn read_whole(log: &File, path: &Path) -> Result<Vec<u8>, LedgerError> {
    let io = |error| LedgerError::io("read", path, error);
    let mut content = vec![0; log.metadata().map_err(io)?.len() as usize];
    let read = read_up_to(log, &mut content, 0).map_err(io)?;
    content.truncate(read);
    Ok(content)
}

/// Length and checksum of a record's body.
fn record_head(bytes: &[u8]) -> Option<(u64, u32)> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (crc, _) = rest.split_first_chunk()?;
    Some((u64::from(u32::from_le_bytes(*length)), u32::from_le_bytes(*crc)))
}

/// The record that `bytes` begin with, and its length; nothing where it is not whole.
fn decode_record(bytes: &[u8]) -> Option<(Stored, u64)> {
    let (length, crc) = record_head(bytes)?;
    let body = bytes[RECORD_HEAD_BYTES..].get(..usize::try_from(length).ok()?)?;
    if crc != checksum(&[body]) {
        return None;
    }
    borsh::from_slice(body).ok().map(|stored| (stored, RECORD_HEAD_BYTES as u64 + length))
}
