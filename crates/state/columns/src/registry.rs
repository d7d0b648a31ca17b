//! Which tables have columns, what of them has changed since, and how much memory they may take.
//!
//! One short lock guards all of it. Whoever applies batches takes no other one, and nobody reads rows, copies columns or frees
//! them with it.

use crate::notes::{Changed, Notes};
use crate::table::TableColumns;
use parking_lot::Mutex;
use state::{AfterImage, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use types::{Catalog, TableId};

/// The columns of a table, and the versions whose rows they have.
pub(crate) struct Standing {
    pub(crate) columns: TableColumns,
    /// No row has changed between this version and [`Standing::at`].
    pub(crate) from: Version,
    /// They were brought up to this version.
    pub(crate) at: Version,
}

/// Where the columns of one table are, once they are made. One thread at a time makes them, brings them up or lends them.
pub(crate) type Place = Arc<Mutex<Option<Standing>>>;

/// For so many rounds of keeping up after its last question, a table counts as asked for: five seconds of the thread's.
const ROUNDS_ASKED: u64 = 50;

/// The tables that have columns.
pub(crate) struct Registry {
    bytes_max: Arc<AtomicU64>,
    known: Mutex<Known>,
}

struct Known {
    /// The newest version that is there or being made.
    announced: Version,
    /// Counts the questions.
    questions: u64,
    /// Counts the rounds of keeping up.
    rounds: u64,
    /// Versions of the snapshots whose readers have asked for columns and may ask for more.
    reading: BTreeMap<Version, usize>,
    tables: BTreeMap<TableId, Entry>,
    /// Tables with a value that does not fit.
    refused: BTreeSet<TableId>,
    /// Tables that had no room when they had so many rows, by the ordinals that were asked for.
    too_large: BTreeMap<TableId, BTreeMap<Vec<usize>, u64>>,
}

struct Entry {
    place: Place,
    notes: Notes,
    /// The number of the last question.
    asked: u64,
    /// The round of keeping up that was the last one before that question.
    asked_in: u64,
    bytes: u64,
    rows: usize,
}

/// What was taken out with the lock, to be freed without it.
type Removed = Vec<Entry>;

impl Registry {
    /// No tables, in a store at `version`.
    pub(crate) fn new(version: Version, bytes_max: Arc<AtomicU64>) -> Registry {
        let known = Known {
            announced: version,
            questions: 0,
            rounds: 0,
            reading: BTreeMap::new(),
            tables: BTreeMap::new(),
            refused: BTreeSet::new(),
            too_large: BTreeMap::new(),
        };
        Registry { bytes_max, known: Mutex::new(known) }
    }

    /// A batch is going to be applied, and nobody has a snapshot with it yet: so whoever has one finds noted what it has changed.
    pub(crate) fn announce(&self, version: Version, changes: &[AfterImage]) {
        let mut thrown_away = Vec::new();
        let mut known = self.known.lock();
        known.announced = known.announced.max(version);
        for (table, Entry { notes, rows, .. }) in &mut known.tables {
            let start = changes.partition_point(|change| change.row.table < *table);
            let end = start + changes[start..].partition_point(|change| change.row.table == *table);
            let keys = changes[start..end].iter().map(|change| change.row.key.clone());
            thrown_away.extend(notes.add(version, keys, *rows));
        }
        drop(known);
    }

    /// Forgets the tables that a catalog does not have.
    pub(crate) fn keep_only(&self, catalog: &Catalog) {
        let ids: BTreeSet<TableId> = catalog.tables.values().map(|table| table.id).collect();
        let mut known = self.known.lock();
        known.refused.retain(|table| ids.contains(table));
        known.too_large.retain(|table, _| ids.contains(table));
        let gone: Vec<TableId> = known.tables.keys().filter(|table| !ids.contains(table)).copied().collect();
        let removed: Removed = gone.iter().filter_map(|table| known.tables.remove(table)).collect();
        drop(known);
        drop(removed);
    }

    /// Forgets all tables.
    pub(crate) fn clear(&self) {
        let tables = std::mem::take(&mut self.known.lock().tables);
        drop(tables);
    }

    /// Where the columns of a table are or will be; nothing where it has a value that does not fit. From now on what changes in
    /// it is noted.
    pub(crate) fn place(&self, table: TableId) -> Option<Place> {
        let mut known = self.known.lock();
        if known.refused.contains(&table) {
            return None;
        }
        let thrown_away = known.throw_away(table);
        known.questions += 1;
        let (announced, asked, asked_in) = (known.announced, known.questions, known.rounds);
        let entry = known.tables.entry(table).or_insert_with(|| Entry {
            place: Place::default(),
            notes: Notes::since(announced),
            asked,
            asked_in,
            bytes: 0,
            rows: 0,
        });
        (entry.asked, entry.asked_in) = (asked, asked_in);
        let place = entry.place.clone();
        drop(known);
        drop(thrown_away);
        Some(place)
    }

    /// Somebody with a snapshot of this version has begun to ask for columns.
    pub(crate) fn begin_reading(&self, version: Version) {
        *self.known.lock().reading.entry(version).or_default() += 1;
    }

    /// Somebody with a snapshot of this version asks for no more columns.
    pub(crate) fn end_reading(&self, version: Version) {
        let mut known = self.known.lock();
        if let Some(count) = known.reading.get_mut(&version) {
            *count -= 1;
            if *count == 0 {
                known.reading.remove(&version);
            }
        }
    }

    /// The oldest version of those.
    pub(crate) fn oldest_reading(&self) -> Option<Version> {
        self.known.lock().reading.keys().next().copied()
    }

    /// Begins a round of keeping up: the tables that somebody has asked for lately.
    pub(crate) fn asked_lately(&self) -> Vec<(TableId, Place)> {
        let mut known = self.known.lock();
        known.rounds += 1;
        let rounds = known.rounds;
        let lately = known.tables.iter().filter(|(_, entry)| rounds - entry.asked_in <= ROUNDS_ASKED);
        lately.map(|(table, entry)| (*table, entry.place.clone())).collect()
    }

    /// Whether the columns of a table are there still.
    pub(crate) fn is_current(&self, table: TableId, place: &Place) -> bool {
        self.known.lock().entry(table, place).is_some()
    }

    /// What has changed in a table behind `from` and up to `to`; nothing where its columns are forgotten.
    pub(crate) fn changed(
        &self,
        table: TableId,
        place: &Place,
        from: Version,
        to: Version,
    ) -> Option<Changed> {
        Some(self.known.lock().entry(table, place)?.notes.take(from, to))
    }

    /// The columns of a table are made anew. False: they are forgotten.
    pub(crate) fn begin(&self, table: TableId, place: &Place) -> bool {
        let mut known = self.known.lock();
        let announced = known.announced;
        let Some(entry) = known.entry(table, place) else { return false };
        if entry.notes.are_full() {
            entry.notes = Notes::since(announced);
        }
        true
    }

    /// Asks for so much memory for the columns of a table, all in all: others that nobody has asked for longest go. False: there
    /// is none. Columns that are forgotten need none.
    pub(crate) fn make_room(&self, table: TableId, place: &Place, bytes: u64, rows: usize) -> bool {
        let mut removed = Removed::new();
        let mut known = self.known.lock();
        if known.entry(table, place).is_none() {
            return true;
        }
        // All others may go but those that somebody works on.
        let bytes_max = self.bytes_max.load(Relaxed);
        let fits = known.bytes_but(table, Entry::is_busy).saturating_add(bytes) <= bytes_max;
        while fits && known.bytes_but(table, |_| true).saturating_add(bytes) > bytes_max {
            let Some(oldest) = known.oldest_but(table) else { break };
            removed.extend(known.tables.remove(&oldest));
        }
        if fits && let Some(entry) = known.entry(table, place) {
            (entry.bytes, entry.rows) = (bytes, rows);
        }
        drop(known);
        drop(removed);
        fits
    }

    /// Nobody knows what the columns of a table are.
    pub(crate) fn forget(&self, table: TableId, place: &Place) {
        let mut known = self.known.lock();
        let is_known = known.entry(table, place).is_some();
        let removed = is_known.then(|| known.tables.remove(&table));
        drop(known);
        drop(removed);
    }

    /// A value of a table does not fit.
    pub(crate) fn refuse(&self, table: TableId, place: &Place) {
        self.forget(table, place);
        self.known.lock().refused.insert(table);
    }

    /// These columns of a table with so many rows had no room.
    pub(crate) fn note_too_large(&self, table: TableId, ordinals: &[usize], rows: u64) {
        self.known.lock().too_large.entry(table).or_default().insert(ordinals.to_vec(), rows);
    }

    /// Whether some of these columns had no room when the table had about as many rows.
    pub(crate) fn was_too_large(&self, table: TableId, ordinals: &[usize], rows: u64) -> bool {
        let known = self.known.lock();
        let mut noted = known.too_large.get(&table).into_iter().flatten();
        noted.any(|(others, then)| {
            4 * rows >= 3 * then && others.iter().all(|other| ordinals.binary_search(other).is_ok())
        })
    }

    /// Bytes of all columns.
    pub(crate) fn bytes(&self) -> u64 {
        self.known.lock().tables.values().map(|entry| entry.bytes).sum()
    }
}

impl Known {
    fn entry(&mut self, table: TableId, place: &Place) -> Option<&mut Entry> {
        self.tables.get_mut(&table).filter(|entry| Arc::ptr_eq(&entry.place, place))
    }

    /// The columns of other tables of which too much has changed: they would be read again anyway.
    fn throw_away(&mut self, but: TableId) -> Removed {
        let full = self.tables.iter().filter(|(table, entry)| **table != but && entry.notes.are_full());
        let full: Vec<TableId> = full.map(|(table, _)| *table).collect();
        full.iter().filter_map(|table| self.tables.remove(table)).collect()
    }

    /// Bytes of the columns of other tables.
    fn bytes_but(&self, table: TableId, counts: impl Fn(&Entry) -> bool) -> u64 {
        let others = self.tables.iter().filter(|(id, entry)| **id != table && counts(entry));
        others.map(|(_, entry)| entry.bytes).sum()
    }

    /// The table that nobody has asked for longest and that nobody works on.
    fn oldest_but(&self, table: TableId) -> Option<TableId> {
        let idle = self.tables.iter().filter(|(id, entry)| **id != table && !entry.is_busy());
        let idle = idle.filter(|(_, entry)| entry.bytes > 0);
        idle.min_by_key(|(_, entry)| entry.asked).map(|(id, _)| *id)
    }
}

impl Entry {
    /// Somebody makes the columns, brings them up or borrows them.
    fn is_busy(&self) -> bool {
        self.place.is_locked()
    }
}
