use crate::shard::{Absence, Shard, ShardReport};
use parking_lot::RwLock;
use rayon::prelude::*;
use state::{AfterImage, KeyHasher, KeyRange, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use types::{Key, Row, TableId};

/// Shards of the rows; a power of two. More shards mean fewer threads that meet at a lock.
const SHARDS: usize = 64;
/// Batches below this size are written by one thread: handing out less work costs more than it saves.
const PARALLEL_ROWS_MIN: usize = 256;
/// Keys that a scan takes from the index at a time: first, and at most. The index is locked for that long.
const SCAN_CHUNK: (usize, usize) = (16, 1024);

/// Rows at the newest version and at every version that somebody holds.
///
/// One thread writes, any number read, all through a shared reference. A row is found by hashing its key to one of the shards,
/// each behind its own lock; an ordered index per table has the keys for scans. Readers never wait for a whole batch: a lock is
/// held for one row, for the rows of a batch that fall into one shard, or for one chunk of a scan.
pub struct VersionedRows {
    hasher: KeyHasher,
    shards: Box<[PaddedShard]>,
    indexes: RwLock<BTreeMap<TableId, Arc<Index>>>,
    absence: Absence,
}

/// Keys of the rows of one table of which something is known.
type Index = RwLock<BTreeSet<Key>>;

/// A shard that shares no cache line with another one.
#[derive(Default)]
#[repr(align(128))]
struct PaddedShard(RwLock<Shard>);

/// One write.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The version that it makes.
    pub version: Version,
    /// After-images, by table and key, one per row.
    pub changes: &'a [AfterImage],
    /// Versions that somebody holds or may still ask for, ascending, the one before this among them.
    pub retained: &'a [Version],
    /// Tables whose rows no version sees any more.
    pub free: &'a [TableId],
    /// Tables that have no rows from this version on.
    pub dropped: &'a [TableId],
}

/// What a write has done, as far as it is known here.
pub struct Written {
    /// By how much the number of rows of each table changed.
    pub counts: Vec<(TableId, i64)>,
    /// Positions of the after-images of rows of which nothing was known, ascending.
    pub new: Vec<u32>,
}

impl VersionedRows {
    /// No rows. `absence`: what is kept of one that goes.
    pub fn new(absence: Absence) -> VersionedRows {
        VersionedRows {
            hasher: KeyHasher::new(),
            shards: (0..SHARDS).map(|_| PaddedShard::default()).collect(),
            indexes: RwLock::default(),
            absence,
        }
    }

    /// Bits of the hash that the tables inside a shard use least.
    #[inline]
    fn shard(hash: u64) -> usize {
        (hash >> 40) as usize % SHARDS
    }

    /// What is known of a row at a version: its values, or that it has gone.
    #[inline]
    pub fn get(&self, version: Version, table: TableId, key: &Key) -> Option<Option<Row>> {
        let hash = self.hasher.hash(key.as_bytes());
        self.shards[VersionedRows::shard(hash)].0.read().get(version, table, key, hash)
    }

    /// What is known at a version of the rows of an interval, in key order (backwards if `reverse`).
    pub fn scan(&self, version: Version, table: TableId, range: &KeyRange, reverse: bool) -> RowsInOrder<'_> {
        let index = self.indexes.read().get(&table).filter(|_| !range.is_empty()).cloned();
        RowsInOrder {
            rows: self,
            index,
            at: (version, table),
            rest: range.clone(),
            reverse,
            chunk: SCAN_CHUNK.0,
            keys: Vec::new().into_iter(),
        }
    }

    /// Makes a version.
    ///
    /// # Panics
    /// Where the changes are not in order.
    pub fn write(&self, write: &Write<'_>) -> Written {
        self.write_with_keys(write, true)
    }

    /// The same while nobody reads yet: nothing is kept of what was there before.
    ///
    /// # Panics
    /// As [`VersionedRows::write`].
    pub fn fill(&self, version: Version, changes: &[AfterImage]) -> Written {
        let write = Write { version, changes, retained: &[version], free: &[], dropped: &[] };
        self.write_with_keys(&write, false)
    }

    /// Writes rows and keeps the ordered keys of their tables.
    fn write_with_keys(&self, write: &Write<'_>, keep_replaced: bool) -> Written {
        let reports = self.write_shards(write, keep_replaced);
        let new = self.update_keys(write.changes, &reports, write.free);
        Written { counts: reports.into_iter().flat_map(|report| report.counts).collect(), new }
    }

    fn write_shards(&self, write: &Write<'_>, keep_replaced: bool) -> Vec<ShardReport> {
        let (batch, starts) = self.by_shard(write.changes);
        let write_shard = |(number, shard): (usize, &PaddedShard)| {
            let mut report = ShardReport::default();
            let batch = &batch[starts[number]..starts[number + 1]];
            let mut shard = shard.0.write();
            shard.trim(write.retained, &self.hasher, &mut report);
            write.free.iter().for_each(|table| shard.free_table(*table));
            shard.write(write, batch, (keep_replaced, self.absence), &self.hasher, &mut report);
            write.dropped.iter().for_each(|table| shard.drop_table(write.version, *table));
            report
        };
        if write.changes.len() < PARALLEL_ROWS_MIN {
            self.shards.iter().enumerate().map(write_shard).collect()
        } else {
            self.shards.par_iter().enumerate().map(write_shard).collect()
        }
    }

    /// Hash and position of each change, those of one shard side by side and in order; where each shard's begin.
    fn by_shard(&self, changes: &[AfterImage]) -> (Vec<(u64, u32)>, [usize; SHARDS + 1]) {
        assert!(u32::try_from(changes.len()).is_ok(), "a batch has fewer than 2^32 rows");
        assert!(
            changes.is_sorted_by(|a, b| a.row < b.row),
            "after-images stand by table and key, one per row"
        );
        let hashes: Vec<u64> =
            changes.iter().map(|image| self.hasher.hash(image.row.key.as_bytes())).collect();
        let mut starts = [0; SHARDS + 1];
        hashes.iter().for_each(|hash| starts[VersionedRows::shard(*hash) + 1] += 1);
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut next = starts;
        let mut batch = vec![(0, 0); changes.len()];
        for (position, hash) in hashes.into_iter().enumerate() {
            let place = &mut next[VersionedRows::shard(hash)];
            batch[*place] = (hash, position as u32);
            *place += 1;
        }
        (batch, starts)
    }

    /// Gives the positions of rows of which nothing was known.
    fn update_keys(&self, changes: &[AfterImage], reports: &[ShardReport], free: &[TableId]) -> Vec<u32> {
        if !free.is_empty() {
            let mut indexes = self.indexes.write();
            free.iter().for_each(|table| drop(indexes.remove(table)));
        }
        // First out, then in: a key may be forgotten and come again in one write.
        for (table, key) in reports.iter().flat_map(|report| &report.forgotten) {
            if let Some(index) = self.indexes.read().get(table) {
                index.write().remove(key);
            }
        }
        let mut inserted: Vec<u32> = reports.iter().flat_map(|report| &report.inserted).copied().collect();
        inserted.sort_unstable();
        let table_of = |position: u32| changes[position as usize].row.table;
        let runs: Vec<&[u32]> = inserted.chunk_by(|a, b| table_of(*a) == table_of(*b)).collect();
        runs.into_par_iter().for_each(|run| {
            let index = self.index_to_write(table_of(run[0]));
            for chunk in run.chunks(SCAN_CHUNK.1) {
                index
                    .write()
                    .extend(chunk.iter().map(|position| changes[*position as usize].row.key.clone()));
            }
        });
        inserted
    }

    fn index_to_write(&self, table: TableId) -> Arc<Index> {
        if let Some(index) = self.indexes.read().get(&table) {
            return index.clone();
        }
        self.indexes.write().entry(table).or_default().clone()
    }

    /// Tables of which something is known, by number.
    pub fn tables(&self) -> Vec<TableId> {
        self.indexes.read().keys().copied().collect()
    }
}

/// Rows of an interval one after the other: [`VersionedRows::scan`].
pub struct RowsInOrder<'a> {
    rows: &'a VersionedRows,
    index: Option<Arc<Index>>,
    at: (Version, TableId),
    rest: KeyRange,
    reverse: bool,
    /// Keys that are taken next time.
    chunk: usize,
    keys: std::vec::IntoIter<Key>,
}

impl RowsInOrder<'_> {
    /// Takes the next keys from the index; it ends where there are none.
    fn more(&mut self) {
        let Some(shared) = self.index.take() else { return };
        let index = shared.read();
        let found = index.range::<Key, _>(self.rest.bounds());
        let keys: Vec<Key> = match self.reverse {
            true => found.rev().take(self.chunk).cloned().collect(),
            false => found.take(self.chunk).cloned().collect(),
        };
        drop(index);
        if keys.len() == self.chunk
            && let Some(last) = keys.last()
        {
            *(if self.reverse { &mut self.rest.end } else { &mut self.rest.start }) =
                Bound::Excluded(last.clone());
            self.index = Some(shared);
        }
        self.chunk = (self.chunk * 4).min(SCAN_CHUNK.1);
        self.keys = keys.into_iter();
    }
}

impl Iterator for RowsInOrder<'_> {
    type Item = (Key, Option<Row>);

    fn next(&mut self) -> Option<(Key, Option<Row>)> {
        let (version, table) = self.at;
        loop {
            for key in self.keys.by_ref() {
                if let Some(known) = self.rows.get(version, table, &key) {
                    return Some((key, known));
                }
            }
            self.index.as_ref()?;
            self.more();
        }
    }
}
