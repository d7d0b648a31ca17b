//! Answers questions for columns: makes them at the first one, brings them up at later ones, and lends them.

use crate::column_kind::value_bytes;
use crate::notes::{Changed, are_too_many};
use crate::registry::{Place, Registry, Standing};
use crate::table::Building;
use crate::values::DoesNotFit;
use state::{AfterImage, ColumnBatch, KeyRange, RowId, Snapshot, StoreError, Version};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use types::{Catalog, Key, Table, TableId};

/// About what a key takes that nobody has seen yet.
const KEY_BYTES_GUESSED: u64 = 16;

/// The columns of the tables of one store.
pub(crate) struct Columns {
    registry: Registry,
}

/// Somebody asks for columns.
pub(crate) struct Question<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    /// That of the snapshot.
    pub(crate) version: Version,
    pub(crate) table: &'a Table,
    pub(crate) ordinals: &'a [usize],
    /// About how many rows the table has.
    pub(crate) about_rows: u64,
}

/// What comes of a question.
enum Answer {
    Batches(Vec<ColumnBatch>),
    /// Whoever asks reads rows.
    Nothing,
    /// The columns were forgotten meanwhile.
    Again,
}

/// Why columns were not made or not brought up.
enum Failed {
    /// A row cannot be read.
    Unreadable(StoreError),
    /// A value is none of its column's arrays.
    DoesNotFit,
    /// There is no memory.
    NoRoom,
}

/// Keys that have changed, by batch.
type Batches = Vec<(Version, Vec<Key>)>;

impl Standing {
    /// Writes the rows with these keys as a snapshot has them. False: there are so many that reading all is better; nothing is
    /// written. What an error leaves is neither this version nor the one before.
    fn write(
        &mut self,
        snapshot: &dyn Snapshot,
        version: Version,
        table: TableId,
        batches: Batches,
    ) -> Result<bool, Failed> {
        let from = batches.iter().map(|(version, _)| *version).fold(self.from, Version::max);
        let mut keys: Vec<Key> = batches.into_iter().flat_map(|(_, keys)| keys).collect();
        keys.sort_unstable();
        keys.dedup();
        if are_too_many(keys.len(), self.columns.rows()) {
            return Ok(false);
        }
        if !keys.is_empty() {
            let ids: Vec<RowId> = keys.into_iter().map(|key| RowId { table, key }).collect();
            let rows = snapshot.get_many(&ids)?;
            self.columns.change(ids.into_iter().map(|id| id.key).zip(rows).collect())?;
        }
        (self.from, self.at) = (from, version);
        Ok(true)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed::Unreadable(error)
    }
}

impl From<DoesNotFit> for Failed {
    fn from(_: DoesNotFit) -> Failed {
        Failed::DoesNotFit
    }
}

impl Columns {
    /// No columns, of a store at `version`. All of them together take at most so many bytes, without what is lent.
    pub(crate) fn new(version: Version, memory_bytes_max: Arc<AtomicU64>) -> Columns {
        Columns { registry: Registry::new(version, memory_bytes_max) }
    }

    /// A batch is going to be applied: nobody has a snapshot with it yet.
    pub(crate) fn announce(&self, version: Version, changes: &[AfterImage]) {
        self.registry.announce(version, changes);
    }

    /// The tables that there are from now on.
    pub(crate) fn keep_only(&self, catalog: &Catalog) {
        self.registry.keep_only(catalog);
    }

    /// Nobody knows what the store's rows are.
    pub(crate) fn clear(&self) {
        self.registry.clear();
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.registry.bytes()
    }

    /// The values of columns of all rows of a table.
    pub(crate) fn ask(&self, question: &Question<'_>) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        let columns = &question.table.columns;
        let is_kept =
            |ordinal: &usize| columns.get(*ordinal).and_then(|column| value_bytes(column.data_type));
        if !question.ordinals.iter().all(|ordinal| is_kept(ordinal).is_some()) {
            return Ok(None);
        }
        let table = question.table.id;
        loop {
            let Some(place) = self.registry.place(table) else { return Ok(None) };
            let mut standing = place.lock();
            if !self.registry.is_current(table, &place) {
                continue;
            }
            match self.answer(question, &place, &mut standing) {
                Ok(Answer::Batches(batches)) => return Ok(Some(batches)),
                Ok(Answer::Nothing) => {
                    if standing.is_none() {
                        self.registry.forget(table, &place);
                    }
                    return Ok(None);
                }
                Ok(Answer::Again) => {}
                Err(failed) => {
                    // Nothing that is half made or half brought up stays.
                    *standing = None;
                    return self.fail(question, &place, failed);
                }
            }
        }
    }

    fn fail(
        &self,
        question: &Question<'_>,
        place: &Place,
        failed: Failed,
    ) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        self.forget(question.table.id, place, &failed);
        match failed {
            Failed::Unreadable(error) => Err(error),
            Failed::DoesNotFit | Failed::NoRoom => Ok(None),
        }
    }

    fn forget(&self, table: TableId, place: &Place, failed: &Failed) {
        match failed {
            Failed::DoesNotFit => self.registry.refuse(table, place),
            Failed::NoRoom | Failed::Unreadable(_) => self.registry.forget(table, place),
        }
    }

    fn answer(
        &self,
        question: &Question<'_>,
        place: &Place,
        standing: &mut Option<Standing>,
    ) -> Result<Answer, Failed> {
        let Some(known) = standing.as_ref() else { return self.make(question, place, standing, &[]) };
        let (has_all, from, at) = (known.columns.has(question.ordinals), known.from, known.at);
        let ordinals = known.columns.ordinals().to_vec();
        if question.version < from {
            return Ok(Answer::Nothing);
        }
        if question.version <= at {
            if !has_all {
                let made = self.make(question, place, standing, &ordinals)?;
                // The rows are the same at all these versions.
                standing.iter_mut().for_each(|standing| (standing.from, standing.at) = (from, at));
                return Ok(made);
            }
            return self.lend(question, place, standing);
        }
        if !has_all {
            return self.make(question, place, standing, &ordinals);
        }
        match self.registry.changed(question.table.id, place, at, question.version) {
            None => Ok(Answer::Again),
            Some(Changed::Unknown) => self.make(question, place, standing, &ordinals),
            Some(Changed::Keys(batches)) => self.bring_up(question, place, standing, batches),
        }
    }

    /// Writes what has changed, and lends.
    fn bring_up(
        &self,
        question: &Question<'_>,
        place: &Place,
        standing: &mut Option<Standing>,
        batches: Batches,
    ) -> Result<Answer, Failed> {
        let Some(known) = standing else { return Ok(Answer::Again) };
        let ordinals = known.columns.ordinals().to_vec();
        let written = known.write(question.snapshot, question.version, question.table.id, batches)?;
        if !written {
            return self.make(question, place, standing, &ordinals);
        }
        if known.columns.is_sparse()
            && let made @ Answer::Batches(_) = self.make(question, place, standing, &ordinals)?
        {
            return Ok(made);
        }
        self.lend(question, place, standing)
    }

    /// Somebody with a snapshot of this version begins to ask.
    pub(crate) fn begin_reading(&self, version: Version) {
        self.registry.begin_reading(version);
    }

    /// Somebody with a snapshot of this version asks no more.
    pub(crate) fn end_reading(&self, version: Version) {
        self.registry.end_reading(version);
    }

    /// Whether somebody who has begun to ask needs columns that are older than this version.
    pub(crate) fn are_read_before(&self, version: Version) -> bool {
        self.registry.oldest_reading().is_some_and(|oldest| oldest < version)
    }

    /// Tables that somebody has asked for lately, counted in calls of this.
    pub(crate) fn asked_lately(&self) -> Vec<(TableId, Place)> {
        self.registry.asked_lately()
    }

    /// Brings the columns of a table up to a snapshot, so that the next question finds less to do. Where somebody works on them,
    /// or where they would be made anew, they are left as they are.
    pub(crate) fn keep_up(
        &self,
        (table, place): &(TableId, Place),
        version: Version,
        snapshot: &dyn Snapshot,
    ) {
        let Some(mut standing) = place.try_lock() else { return };
        let Some(at) = standing.as_ref().map(|known| known.at).filter(|at| *at < version) else { return };
        let Some(Changed::Keys(batches)) = self.registry.changed(*table, place, at, version) else { return };
        let Some(known) = standing.as_mut() else { return };
        match known.write(snapshot, version, *table, batches) {
            Ok(_) => self.keep_within_room(*table, place, &mut standing),
            Err(failed) => {
                // Nothing that is half brought up stays. Whoever asks next meets what cannot be read.
                *standing = None;
                self.forget(*table, place, &failed);
            }
        }
    }

    /// Lends columns that are there.
    fn lend(
        &self,
        question: &Question<'_>,
        place: &Place,
        standing: &mut Option<Standing>,
    ) -> Result<Answer, Failed> {
        let Some(Standing { columns, .. }) = standing.as_mut() else { return Ok(Answer::Again) };
        let Some(batches) = columns.lend(question.ordinals) else { return Ok(Answer::Nothing) };
        self.keep_within_room(question.table.id, place, standing);
        Ok(Answer::Batches(batches))
    }

    /// Forgets the columns of a table where they have grown beyond what they may take.
    fn keep_within_room(&self, table: TableId, place: &Place, standing: &mut Option<Standing>) {
        let Some(Standing { columns, .. }) = standing.as_ref() else { return };
        if !self.registry.make_room(table, place, columns.bytes(), columns.rows()) {
            self.registry.note_too_large(table, columns.ordinals(), columns.rows() as u64);
            *standing = None;
            self.registry.forget(table, place);
        }
    }

    /// Makes the columns that are asked for of all rows, and where there is room those with the other ordinals. Where there is
    /// room for neither, what stands there stays.
    fn make(
        &self,
        question: &Question<'_>,
        place: &Place,
        standing: &mut Option<Standing>,
        others: &[usize],
    ) -> Result<Answer, Failed> {
        let Some((ordinals, bytes)) = self.ordinals_with_room(question, place, others) else {
            return Ok(Answer::Nothing);
        };
        let has_room = |building: &Building| {
            let (bytes, rows) = (bytes.max(building.bytes()), question.about_rows as usize);
            self.registry.make_room(question.table.id, place, bytes, rows)
        };
        *standing = None;
        if !self.registry.begin(question.table.id, place) {
            return Ok(Answer::Again);
        }
        let Some(mut building) = Building::new(question.table, &ordinals) else { return Ok(Answer::Nothing) };
        let (mut failed, mut rows) = (None, 0);
        question.snapshot.scan(question.table.id, &KeyRange::ALL, false, &mut |key, row| {
            rows += 1;
            let added = match building.add(key, row) {
                Ok(true) if !has_room(&building) => Err(Failed::NoRoom),
                added => added.map_err(Failed::from),
            };
            failed = added.err();
            if failed.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(failed) = failed {
            if matches!(failed, Failed::NoRoom) {
                self.registry.note_too_large(question.table.id, &ordinals, question.about_rows.max(rows));
            }
            return Err(failed);
        }
        let columns = building.finish()?;
        *standing = Some(Standing { columns, from: question.version, at: question.version });
        self.lend(question, place, standing)
    }

    /// The ordinals of the columns that are made, and about how many bytes they take.
    fn ordinals_with_room(
        &self,
        question: &Question<'_>,
        place: &Place,
        others: &[usize],
    ) -> Option<(Vec<usize>, u64)> {
        let asked: BTreeSet<usize> = question.ordinals.iter().copied().collect();
        let all: BTreeSet<usize> = others.iter().copied().chain(asked.iter().copied()).collect();
        let (table, rows) = (question.table.id, question.about_rows);
        [all, asked].into_iter().find_map(|ordinals| {
            let ordinals = Vec::from_iter(ordinals);
            let bytes = estimate(question, &ordinals)?;
            let has_room = !self.registry.was_too_large(table, &ordinals, rows)
                && self.registry.make_room(table, place, bytes, rows as usize);
            has_room.then_some((ordinals, bytes))
        })
    }
}

/// About how many bytes these columns take; nothing where some are not kept.
fn estimate(question: &Question<'_>, ordinals: &[usize]) -> Option<u64> {
    let columns = &question.table.columns;
    let widths = ordinals.iter().map(|ordinal| value_bytes(columns.get(*ordinal)?.data_type));
    let width = widths.sum::<Option<u64>>()?;
    Some(question.about_rows.saturating_mul(width + KEY_BYTES_GUESSED))
}
