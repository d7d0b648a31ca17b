//! Rows that were read, decoded, so that a hot row costs no more than one in memory.

use equivalent::Equivalent;
use parking_lot::RwLock;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use state::{RowId, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Key, Row, TableId};

/// Bytes that an entry takes beside its key and its values.
const ENTRY_BYTES: u64 = 160;

/// Bytes of memory for a row with such a key, whose values take so many bytes in a file: three times as many decoded, because
/// each has at least 24.
pub(crate) fn row_memory(key: &Key, bytes: usize) -> u64 {
    ENTRY_BYTES + key.as_bytes().len() as u64 + 3 * bytes as u64
}

/// Bytes of the values of a row as they stand in files.
pub(crate) fn bytes_of(row: &Option<Row>) -> usize {
    row.as_ref().map_or(0, |row| borsh::object_length(row).unwrap_or(0))
}

/// Rows as they are on the disk, also that there is none.
///
/// The files change at durable points, each of which begins an *epoch*. An entry says in which epoch it came; what a durable
/// point changes it replaces, so that an entry holds from its epoch on. Who reads the files of an older epoch takes no entry of a
/// newer one.
pub(crate) struct RowCache {
    rows: Cache<RowId, Entry, Weight>,
    /// The newest epoch. Whoever adds what was read holds this, so that nothing of an older epoch comes behind what has
    /// replaced it.
    epoch: RwLock<u64>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Clone)]
struct Entry {
    row: Option<Row>,
    /// Of the values, in bytes of the file.
    bytes: u32,
    epoch: u64,
}

#[derive(Clone)]
struct Weight;

impl Weighter<RowId, Entry> for Weight {
    fn weight(&self, id: &RowId, entry: &Entry) -> u64 {
        row_memory(&id.key, entry.bytes as usize)
    }
}

#[derive(Hash)]
struct Asked<'a> {
    table: TableId,
    key: &'a Key,
}

impl Equivalent<RowId> for Asked<'_> {
    fn equivalent(&self, id: &RowId) -> bool {
        self.table == id.table && *self.key == id.key
    }
}

impl RowCache {
    /// At most so many bytes.
    pub(crate) fn new(bytes: u64) -> RowCache {
        let items = (bytes / (2 * ENTRY_BYTES)).max(16) as usize;
        RowCache {
            rows: Cache::with_weighter(items, bytes, Weight),
            epoch: RwLock::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The row, from here or as `read` finds it in the files of this epoch, with the number of its bytes.
    pub(crate) fn get(
        &self,
        epoch: u64,
        table: TableId,
        key: &Key,
        read: impl FnOnce() -> Result<(Option<Row>, usize), StoreError>,
    ) -> Result<Option<Row>, StoreError> {
        if let Some(entry) = self.rows.get(&Asked { table, key })
            && entry.epoch <= epoch
        {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(entry.row);
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let (row, bytes) = read()?;
        self.put(epoch, table, key, (row.clone(), bytes));
        Ok(row)
    }

    /// Whether something is known of the row, at whatever epoch.
    pub(crate) fn contains(&self, table: TableId, key: &Key) -> bool {
        self.rows.contains_key(&Asked { table, key })
    }

    /// Puts a row here that nobody has asked for, unless it is there.
    pub(crate) fn warm(&self, epoch: u64, table: TableId, key: &Key, row: &Row) {
        if !self.contains(table, key) {
            let row = Some(row.clone());
            let bytes = bytes_of(&row);
            self.put(epoch, table, key, (row, bytes));
        }
    }

    fn put(&self, epoch: u64, table: TableId, key: &Key, (row, bytes): (Option<Row>, usize)) {
        // Where a durable point replaces entries just now, this one can wait for the next reader.
        if let Some(newest) = self.epoch.try_read()
            && *newest == epoch
        {
            let entry = Entry { row, bytes: u32::try_from(bytes).unwrap_or(u32::MAX), epoch };
            self.rows.insert(RowId { table, key: key.clone() }, entry);
        }
    }

    /// How many rows were found here, and how many were not.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Begins the next epoch, in which the files have these rows; gives its number.
    pub(crate) fn begin_epoch(&self, changed: impl Iterator<Item = (RowId, Option<Row>, usize)>) -> u64 {
        let mut newest = self.epoch.write();
        *newest += 1;
        for (id, row, bytes) in changed {
            let entry = Entry { row, bytes: u32::try_from(bytes).unwrap_or(u32::MAX), epoch: *newest };
            // What is not there stays away: it was written, and not read.
            let _ = self.rows.replace(id, entry, false);
        }
        *newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Value;

    fn row(number: i64) -> Option<Row> {
        Some(Row::from([Value::BigInt(number)]))
    }

    #[test]
    fn nobody_reads_an_entry_of_a_newer_epoch_and_none_of_an_older_one_comes_late() {
        let cache = RowCache::new(1 << 20);
        let (table, key) = (TableId(1), Key::encode([&Value::BigInt(7)]).expect("a key"));
        let id = RowId { table, key: key.clone() };
        let read = |epoch, value: Option<Row>| {
            cache.get(epoch, table, &key, || Ok((value.clone(), 8))).expect("nothing fails")
        };
        let never = |epoch| cache.get(epoch, table, &key, || panic!("it is there")).expect("nothing fails");
        assert_eq!(read(0, row(1)), row(1));
        assert_eq!(never(0), row(1));
        assert_eq!(cache.begin_epoch([(id.clone(), row(2), 8)].into_iter()), 1);
        assert_eq!(never(1), row(2));
        assert_eq!(read(0, row(1)), row(1), "it reads the files of its epoch");
        assert_eq!(never(1), row(2), "what is old did not come in");
        assert_eq!(cache.begin_epoch(std::iter::empty()), 2);
        assert_eq!(never(2), row(2), "it has not changed");
        assert_eq!(cache.begin_epoch([(id, None, 0)].into_iter()), 3);
        assert_eq!(never(3), None, "it is known that there is none");
    }

    #[test]
    fn it_stays_within_its_bytes() {
        let cache = RowCache::new(1 << 16);
        for number in 0..10_000 {
            let key = Key::encode([&Value::BigInt(number)]).expect("a key");
            let found = cache.get(0, TableId(1), &key, || Ok((row(number), 9)));
            assert_eq!(found.expect("nothing fails"), row(number));
        }
        assert!(cache.rows.weight() <= 1 << 16 && cache.rows.len() > 100, "{} rows", cache.rows.len());
    }
}
