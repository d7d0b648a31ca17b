use crate::rows::Write;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::{SmallVec, smallvec};
use state::{AfterImage, KeyHasher, Version};
use std::collections::BTreeMap;
use types::{Key, Row, TableId};

/// What is kept of a row that has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// Nothing, once no version sees it: what is not here is nowhere.
    Forgotten,
    /// That it has gone: what is not here may be in what stands behind.
    Kept,
}

/// The rows whose keys hash to one shard: the newest value of each, and what retained versions see instead.
///
/// A row that nobody has written since the oldest retained version costs its key, its value and nothing else. A write
/// puts the value that it replaces into `replaced`, marked with the version until which it stood. What no retained
/// version sees any more goes with the next write of the shard.
#[derive(Default)]
pub(crate) struct Shard {
    /// The newest version that wrote here: whoever reads at this version or a later one needs no replaced values.
    last_written: Version,
    /// By id.
    tables: Vec<(TableId, TableRows)>,
    /// Replaced values that `trim` has not looked at yet.
    fresh: Vec<Replaced>,
    /// Replaced values by the smallest retained version that sees them.
    held: BTreeMap<Version, Vec<Replaced>>,
}

struct TableRows {
    /// `None`: it has gone, which is kept.
    rows: HashTable<(Key, Option<Row>)>,
    replaced: HashTable<History>,
    /// The version that dropped the table.
    dropped: Option<Version>,
}

/// The values that a row had.
struct History {
    key: Key,
    /// Until which version a value stood, ascending. `None`: nothing was known of the row.
    images: SmallVec<[(Version, Option<Option<Row>>); 1]>,
    /// Nothing is known of the row now.
    unknown: bool,
}

/// Names one value of a [`History`]: it stood from `start` (or later) until `end`.
struct Replaced {
    table: TableId,
    key: Key,
    start: Version,
    end: Version,
}

/// What a write of one shard did, for indexes and counts, which all shards share.
#[derive(Default)]
pub(crate) struct ShardReport {
    /// Keys that no retained version sees any more.
    pub forgotten: Vec<(TableId, Key)>,
    /// Positions of the after-images whose keys were unknown.
    pub inserted: Vec<u32>,
    /// By how much the number of rows of a table changed.
    pub counts: Vec<(TableId, i64)>,
}

impl Shard {
    /// The row as `version` sees it: what is kept of it, if anything is.
    #[inline]
    pub fn get(&self, version: Version, table: TableId, key: &Key, hash: u64) -> Option<Option<Row>> {
        let table = &self.tables[self.find(table).ok()?].1;
        if table.dropped.is_some_and(|dropped| version >= dropped) {
            return None;
        }
        if version < self.last_written
            && let Some(history) = table.replaced.find(hash, |history| history.key == *key)
            && let Some((_, image)) = history.images.iter().find(|(end, _)| version < *end)
        {
            return image.clone();
        }
        table.rows.find(hash, |(found, _)| found == key).map(|(_, row)| row.clone())
    }

    #[inline]
    fn find(&self, table: TableId) -> Result<usize, usize> {
        self.tables.binary_search_by_key(&table, |(id, _)| *id)
    }

    /// Forgets replaced values that none of `retained` (ascending) sees.
    pub fn trim(&mut self, retained: &[Version], hasher: &KeyHasher, report: &mut ShardReport) {
        let released: SmallVec<[Version; 4]> =
            self.held.keys().filter(|version| retained.binary_search(version).is_err()).copied().collect();
        let mut examined = std::mem::take(&mut self.fresh);
        for version in released {
            examined.extend(self.held.remove(&version).unwrap_or_default());
        }
        for replaced in examined.drain(..) {
            // The last one that sees it: versions that are kept for a while go in their order, so that it is looked at once more.
            let before_end = retained.partition_point(|version| *version < replaced.end);
            let seen_by = before_end.checked_sub(1).map(|last| retained[last]);
            match seen_by {
                Some(version) if version >= replaced.start => {
                    self.held.entry(version).or_default().push(replaced)
                }
                _ => self.forget(replaced, hasher, report),
            }
        }
        // The buffer serves the next batch.
        self.fresh = examined;
        self.fresh.shrink_to(4 * FRESH_KEPT);
    }

    fn forget(&mut self, replaced: Replaced, hasher: &KeyHasher, report: &mut ShardReport) {
        // The rows of a dropped table may have gone before.
        let Ok(at) = self.find(replaced.table) else { return };
        let table = &mut self.tables[at].1;
        let hash = hasher.hash(replaced.key.as_bytes());
        let found = table.replaced.find_entry(hash, |history| history.key == replaced.key);
        let Ok(mut history) = found else { return };
        history.get_mut().images.retain(|(end, _)| *end != replaced.end);
        if history.get().images.is_empty() {
            if history.get().unknown {
                report.forgotten.push((replaced.table, replaced.key));
            }
            history.remove();
        }
    }

    /// Writes after-images; `batch` names hash and position of each. What is kept of replaced values, and of rows that go:
    /// where nobody reads yet, nothing is kept.
    pub fn write(
        &mut self,
        Write { version, changes, .. }: &Write<'_>,
        batch: &[(u64, u32)],
        (keep_replaced, absence): (bool, Absence),
        hasher: &KeyHasher,
        report: &mut ShardReport,
    ) {
        let version = *version;
        if !batch.is_empty() {
            self.last_written = version;
        }
        for (hash, position) in batch {
            let AfterImage { row: id, value } = &changes[*position as usize];
            let at = self.find(id.table).unwrap_or_else(|at| {
                self.tables.insert(at, (id.table, TableRows::new()));
                at
            });
            let table = &mut self.tables[at].1;
            let before = table.replace(*hash, &id.key, value, absence, hasher);
            let change = i64::from(value.is_some()) - i64::from(matches!(before, Some(Some(_))));
            let unknown = value.is_none() && absence == Absence::Forgotten;
            if unknown && before.is_none() {
                continue;
            }
            if change != 0 {
                match report.counts.last_mut() {
                    Some((table, count)) if *table == id.table => *count += change,
                    _ => report.counts.push((id.table, change)),
                }
            }
            if keep_replaced {
                let unknown_before = before.is_none();
                let (start, first) = table.keep(*hash, &id.key, before, version, unknown, hasher);
                if first && unknown_before {
                    report.inserted.push(*position);
                }
                self.fresh.push(Replaced { table: id.table, key: id.key.clone(), start, end: version });
            } else if before.is_none() {
                report.inserted.push(*position);
            }
        }
    }

    /// From `version` on, the table has no rows.
    pub fn drop_table(&mut self, version: Version, table: TableId) {
        if let Ok(at) = self.find(table) {
            self.tables[at].1.dropped = Some(version);
        }
    }

    /// Frees the rows of a table that no retained version sees.
    pub fn free_table(&mut self, table: TableId) {
        if let Ok(at) = self.find(table) {
            self.tables.remove(at);
        }
    }
}

/// Replaced values for which a shard keeps room.
const FRESH_KEPT: usize = 256;

impl TableRows {
    fn new() -> TableRows {
        TableRows { rows: HashTable::new(), replaced: HashTable::new(), dropped: None }
    }

    /// Makes the row have this value and gives what was known of it.
    #[inline]
    fn replace(
        &mut self,
        hash: u64,
        key: &Key,
        value: &Option<Row>,
        absence: Absence,
        hasher: &KeyHasher,
    ) -> Option<Option<Row>> {
        if value.is_none() && absence == Absence::Forgotten {
            return self
                .rows
                .find_entry(hash, |(found, _)| found == key)
                .ok()
                .map(|entry| entry.remove().0.1);
        }
        let rehash = |(key, _): &(Key, Option<Row>)| hasher.hash(key.as_bytes());
        match self.rows.entry(hash, |(found, _)| found == key, rehash) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(&mut entry.get_mut().1, value.clone())),
            Entry::Vacant(entry) => {
                entry.insert((key.clone(), value.clone()));
                None
            }
        }
    }

    /// Keeps the value that a row had until `version`. Gives the version from which on it may have stood, and whether
    /// no other value of the row is kept.
    #[inline]
    fn keep(
        &mut self,
        hash: u64,
        key: &Key,
        before: Option<Option<Row>>,
        version: Version,
        unknown: bool,
        hasher: &KeyHasher,
    ) -> (Version, bool) {
        let rehash = |history: &History| hasher.hash(history.key.as_bytes());
        match self.replaced.entry(hash, |history| history.key == *key, rehash) {
            Entry::Occupied(mut entry) => {
                let history = entry.get_mut();
                let start = history.images.last().map_or(Version::GENESIS, |(end, _)| *end);
                assert!(start < version, "a batch writes a row once");
                history.images.push((version, before));
                history.unknown = unknown;
                (start, false)
            }
            Entry::Vacant(entry) => {
                entry.insert(History { key: key.clone(), images: smallvec![(version, before)], unknown });
                (Version::GENESIS, true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use state::RowId;
    use types::Value;

    const TABLE: TableId = TableId(1);

    struct Driver {
        shard: Shard,
        hasher: KeyHasher,
        height: u64,
        forgotten: usize,
    }

    impl Driver {
        fn new() -> Driver {
            Driver { shard: Shard::default(), hasher: KeyHasher::new(), height: 0, forgotten: 0 }
        }

        /// One batch that writes `value` into every row of `keys`, while snapshots of `held` heights live.
        fn write(&mut self, keys: &[u8], value: Option<i64>, held: &[u64]) {
            let version = |height| Version::after_batch(height, 0);
            let retained: Vec<Version> = held.iter().copied().chain([self.height]).map(version).collect();
            self.height += 1;
            let image = |key: &u8| AfterImage {
                row: RowId { table: TABLE, key: Key::from_bytes(&[*key]) },
                value: value.map(|value| Row::from([Value::BigInt(value)])),
            };
            let changes: Vec<AfterImage> = keys.iter().map(image).collect();
            let batch: Vec<(u64, u32)> = (0u32..)
                .zip(&changes)
                .map(|(at, image)| (self.hasher.hash(image.row.key.as_bytes()), at))
                .collect();
            let mut report = ShardReport::default();
            self.shard.trim(&retained, &self.hasher, &mut report);
            let version = version(self.height);
            let write = Write { version, changes: &changes, retained: &retained, free: &[], dropped: &[] };
            self.shard.write(&write, &batch, (true, Absence::Forgotten), &self.hasher, &mut report);
            self.forgotten += report.forgotten.len();
        }

        /// Values that stand beside the newest ones, and notes about them.
        fn kept(&self) -> (usize, usize) {
            let histories = self.shard.tables.iter().flat_map(|(_, table)| table.replaced.iter());
            let notes = self.shard.fresh.len() + self.shard.held.values().map(Vec::len).sum::<usize>();
            (histories.map(|history| history.images.len()).sum(), notes)
        }
    }

    #[test]
    fn a_snapshot_held_for_long_keeps_one_value_per_row_and_not_all_between() {
        let mut driver = Driver::new();
        driver.write(&[1, 2, 3], Some(0), &[]);
        for value in 1..200 {
            driver.write(&[1, 2], Some(value), &[1]);
            let (images, notes) = driver.kept();
            assert!(images <= 2 * 2 + 3 && notes <= 2 * 2 + 3, "{images} values, {notes} notes");
        }
        let read = |driver: &Driver, height| {
            let (version, key) = (Version::after_batch(height, 0), Key::from_bytes(&[1]));
            driver.shard.get(version, TABLE, &key, driver.hasher.hash(key.as_bytes()))
        };
        assert_eq!(read(&driver, 1).flatten().unwrap()[0], Value::BigInt(0));
        assert_eq!(read(&driver, 200).flatten().unwrap()[0], Value::BigInt(199));
        driver.write(&[], None, &[]);
        assert_eq!(driver.kept(), (0, 0), "everything goes with the snapshot");
    }

    #[test]
    fn a_deleted_row_is_forgotten_when_nobody_sees_it() {
        let mut driver = Driver::new();
        driver.write(&[1, 2], Some(0), &[]);
        driver.write(&[1, 2], None, &[1]);
        driver.write(&[2], Some(5), &[1]);
        driver.write(&[3], None, &[1]);
        assert_eq!(driver.forgotten, 0);
        driver.write(&[], None, &[]);
        assert_eq!(driver.forgotten, 1, "row 1; row 2 is there again, row 3 never was");
        assert_eq!(driver.kept(), (0, 0));
    }
}
