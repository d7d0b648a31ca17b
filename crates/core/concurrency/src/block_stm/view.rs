//! What one execution sees: the state before the batch, with what smaller numbers wrote in front of it.
//!
//! A view keeps what was read through it, with its origin, so that validation can read it again; and it shows every row
//! as it showed it first, so that a contract never sees a row change under its hands. It may still see rows that never
//! were there together; such an execution fails its validation.
//!
//! A snapshot cannot refuse an answer. Who meets an ESTIMATE is therefore given the state before the batch, and the view
//! remembers on whom it has to wait: the execution goes on to its end and is then thrown away.

use super::memory::{Found, Memory, Origin};
use parking_lot::Mutex;
use state::{AfterImage, Changes, KeyRange, Overlay, RowId, Snapshot, StoreError};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// How many of the last scans are looked at to show a row as it was shown first. Whoever sees a row change because it is
/// longer ago fails its validation.
const SCANS_REMEMBERED: usize = 64;

/// An interval that was examined.
struct Scanned {
    table: TableId,
    range: KeyRange,
    /// The rows in it that smaller numbers had written.
    written: Vec<(Key, Origin)>,
}

/// Everything that an execution read, as far as others of the batch might write it.
#[derive(Default)]
pub(super) struct ReadSet {
    rows: Vec<(RowId, Origin)>,
    scans: Vec<Scanned>,
}

/// What reading again shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Validity {
    /// The same.
    Valid,
    /// Something else.
    Invalid,
    /// An ESTIMATE of this number.
    Blocked(u32),
}

impl ReadSet {
    /// Reads everything again.
    pub(super) fn validate(&self, memory: &Memory, reader: u32) -> Validity {
        for (row, origin) in &self.rows {
            match memory.read(row, reader) {
                Found::Estimate(blocking) => return Validity::Blocked(blocking),
                found if origin_of(&found) != Some(*origin) => return Validity::Invalid,
                _ => {}
            }
        }
        for Scanned { table, range, written } in &self.scans {
            let found = memory.scan(*table, range, reader);
            for (_, found) in &found {
                if let Found::Estimate(blocking) = found {
                    return Validity::Blocked(*blocking);
                }
            }
            let same = |((key, origin), (found_key, found)): (&(Key, Origin), &(Key, Found))| {
                key == found_key && origin_of(found) == Some(*origin)
            };
            if written.len() != found.len() || !written.iter().zip(&found).all(same) {
                return Validity::Invalid;
            }
        }
        Validity::Valid
    }
}

fn origin_of(found: &Found) -> Option<Origin> {
    match found {
        Found::Base => Some(Origin::Base),
        Found::Written(incarnation, _) => Some(Origin::Written(*incarnation)),
        Found::Estimate(_) => None,
    }
}

/// What a view has shown so far.
#[derive(Default)]
struct Shown {
    read_set: ReadSet,
    /// Rows as they were first shown.
    rows: BTreeMap<RowId, Option<Row>>,
    /// Whose ESTIMATE was met, the largest if there were several.
    blocking: Option<u32>,
}

impl Shown {
    fn is_scanned(&self, table: TableId, key: &Key) -> bool {
        let scans = self.read_set.scans.iter().rev().take(SCANS_REMEMBERED);
        scans.into_iter().any(|scan| scan.table == table && scan.range.contains(key))
    }

    fn block(&mut self, by: u32) {
        self.blocking = self.blocking.max(Some(by));
    }
}

/// The rows of an interval that may differ from the state before the batch.
struct Changed {
    /// As they are to be shown.
    rows: BTreeMap<Key, Option<Row>>,
    /// Those that smaller numbers had written, by key.
    written: Vec<(Key, Origin)>,
}

/// The state that a transaction sees.
pub(super) struct View<'a> {
    base: &'a dyn Snapshot,
    memory: &'a Memory,
    reader: u32,
    /// Only one thread works with a view; the lock is there because a snapshot must be shareable.
    shown: Mutex<Shown>,
}

impl<'a> View<'a> {
    pub(super) fn new(base: &'a dyn Snapshot, memory: &'a Memory, reader: u32) -> View<'a> {
        View { base, memory, reader, shown: Mutex::default() }
    }

    /// What was read, or the number of a transaction that has to be executed first.
    pub(super) fn into_read_set(self) -> Result<ReadSet, u32> {
        let Shown { read_set, blocking, .. } = self.shown.into_inner();
        blocking.map_or(Ok(read_set), Err)
    }

    fn changed(&self, table: TableId, range: &KeyRange) -> Changed {
        let found = self.memory.scan(table, range, self.reader);
        let mut shown = self.shown.lock();
        let rows = shown.rows.range(range.of_table(table));
        let mut changed: BTreeMap<Key, Option<Row>> =
            rows.map(|(row, value)| (row.key.clone(), value.clone())).collect();
        let mut written = Vec::with_capacity(found.len());
        for (key, found) in found {
            match found {
                Found::Base => {}
                Found::Estimate(by) => shown.block(by),
                Found::Written(incarnation, value) => {
                    if !changed.contains_key(&key) && !shown.is_scanned(table, &key) {
                        changed.insert(key.clone(), value);
                    }
                    written.push((key, Origin::Written(incarnation)));
                }
            }
        }
        Changed { rows: changed, written }
    }
}

impl Snapshot for View<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.base.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        let row = RowId { table, key: key.clone() };
        let mut shown = self.shown.lock();
        if let Some(value) = shown.rows.get(&row) {
            return Ok(value.clone());
        }
        if shown.is_scanned(table, key) {
            // Nobody had written it then.
            return self.base.get(table, key);
        }
        let (origin, value) = match self.memory.read(&row, self.reader) {
            Found::Written(incarnation, value) => (Origin::Written(incarnation), value),
            Found::Base => (Origin::Base, self.base.get(table, key)?),
            Found::Estimate(by) => {
                shown.block(by);
                (Origin::Base, self.base.get(table, key)?)
            }
        };
        shown.read_set.rows.push((row.clone(), origin));
        shown.rows.insert(row, value.clone());
        Ok(value)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let Changed { rows: mut changed, mut written } = self.changed(table, range);
        let mut stopped_at = None;
        let mut visit = |key: &Key, row: &Row| {
            let flow = visit(key, row);
            if flow.is_break() {
                stopped_at = Some(key.clone());
            }
            flow
        };
        if changed.is_empty() {
            self.base.scan(table, range, reverse, &mut visit)?;
        } else {
            let images = changed.iter().map(|(key, value)| AfterImage {
                row: RowId { table, key: key.clone() },
                value: value.clone(),
            });
            Overlay::with_changes(self.base, Changes::of_rows(images))
                .scan(table, range, reverse, &mut visit)?;
        }
        let mut range = range.clone();
        if let Some(key) = stopped_at {
            *(if reverse { &mut range.start } else { &mut range.end }) = Bound::Included(key);
            changed.retain(|key, _| range.contains(key));
            written.retain(|(key, _)| range.contains(key));
        }
        let mut shown = self.shown.lock();
        for (key, value) in changed {
            shown.rows.entry(RowId { table, key }).or_insert(value);
        }
        shown.read_set.scans.push(Scanned { table, range, written });
        Ok(())
    }
}
