//! A state whose rows stand at several nodes, to be read as one.

use crate::messages::Point;
use crate::placement::Places;
use crate::remote::Remote;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use state::{
    AfterImage, ColumnBatch, KeyRange, PastChange, PastError, ReadColumns, RowId, Snapshot, StoreError,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use types::{Catalog, Key, Row, Table, TableId};

/// Rows of holders that are remembered at most: those that a block's transactions have read.
const REMEMBERED_ROWS_MAX: usize = 200_000;

/// Which state a snapshot shows.
#[derive(Clone)]
pub(crate) enum At {
    /// After a batch.
    Version(Arc<HeldVersion>),
    /// A checkpoint that every node keeps.
    Checkpoint(u64),
}

/// A version that somebody may still read.
pub(crate) struct HeldVersion {
    number: u64,
    of: Arc<Versions>,
}

/// The versions that somebody may still read, and rows of holders that were read at the newest one.
#[derive(Default)]
pub(crate) struct Versions {
    held: Mutex<BTreeMap<u64, u32>>,
    rows: Mutex<FxHashMap<RowId, Option<Row>>>,
}

impl Versions {
    pub(crate) fn hold(self: &Arc<Self>, number: u64) -> Arc<HeldVersion> {
        *self.held.lock().entry(number).or_default() += 1;
        Arc::new(HeldVersion { number, of: self.clone() })
    }

    /// The oldest; `newest` where nobody holds one.
    pub(crate) fn oldest(&self, newest: u64) -> u64 {
        self.held.lock().keys().next().copied().unwrap_or(newest).min(newest)
    }

    /// Rows of holders have these values now.
    pub(crate) fn changed(&self, changes: &[AfterImage]) {
        let mut rows = self.rows.lock();
        for change in changes {
            if let Some(known) = rows.get_mut(&change.row) {
                known.clone_from(&change.value);
            }
        }
    }

    /// Others have changed rows of holders.
    pub(crate) fn forget_rows(&self) {
        self.rows.lock().clear();
    }
}

impl Drop for HeldVersion {
    fn drop(&mut self) {
        let mut held = self.of.held.lock();
        if let Some(count) = held.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.number);
            }
        }
    }
}

/// The rows of the validator and of its holders, at one version.
#[derive(Clone)]
pub(crate) struct SharedSnapshot {
    local: Arc<dyn Snapshot>,
    places: Arc<Places>,
    remotes: Arc<Vec<Remote>>,
    at: At,
}

impl SharedSnapshot {
    pub(crate) fn new(
        local: Arc<dyn Snapshot>,
        places: Arc<Places>,
        remotes: Arc<Vec<Remote>>,
        at: At,
    ) -> SharedSnapshot {
        SharedSnapshot { local, places, remotes, at }
    }

    fn point(&self) -> Point {
        match &self.at {
            At::Version(held) => Point::Version(held.number),
            At::Checkpoint(height) => Point::Checkpoint(*height),
        }
    }

    /// What is remembered of rows of a holder: that of the newest version, if this snapshot shows that.
    fn remembered(&self, holder: usize) -> Option<&Versions> {
        match &self.at {
            At::Version(held) if held.number >= self.remotes[holder].version.load(Ordering::Acquire) => {
                Some(&held.of)
            }
            _ => None,
        }
    }

    /// Reads rows of one holder, and remembers them.
    fn fetch(&self, holder: usize, rows: &[&RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        let found = self.remotes[holder].get(self.point(), rows)?;
        if let Some(versions) = self.remembered(holder) {
            let mut remembered = versions.rows.lock();
            // A batch may have taken effect meanwhile.
            if self.remembered(holder).is_some() && remembered.len() < REMEMBERED_ROWS_MAX {
                let known = rows.iter().zip(&found).map(|(row, found)| ((*row).clone(), found.clone()));
                remembered.extend(known);
            }
        }
        Ok(found)
    }
}

impl Snapshot for SharedSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        self.local.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        match self.places.of(table) {
            None => self.local.get(table, key),
            Some(_) => {
                let row = RowId { table, key: key.clone() };
                Ok(self.get_many(std::slice::from_ref(&row))?.pop().flatten())
            }
        }
    }

    fn get_many(&self, rows: &[RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        if self.places.is_empty() {
            return self.local.get_many(rows);
        }
        let mut found: Vec<Option<Row>> = vec![None; rows.len()];
        let mut wanted: Vec<Vec<usize>> = vec![Vec::new(); self.remotes.len()];
        let (mut here, mut of_here) = (Vec::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            let Some(holder) = self.places.of(row.table) else {
                here.push(row.clone());
                of_here.push(number);
                continue;
            };
            let known = self.remembered(holder).and_then(|versions| versions.rows.lock().get(row).cloned());
            match known {
                Some(row) => found[number] = row,
                None => wanted[holder].push(number),
            }
        }
        for (number, row) in of_here.into_iter().zip(self.local.get_many(&here)?) {
            found[number] = row;
        }
        for (holder, wanted) in wanted.into_iter().enumerate().filter(|(_, wanted)| !wanted.is_empty()) {
            let asked: Vec<&RowId> = wanted.iter().map(|number| &rows[*number]).collect();
            for (number, row) in wanted.iter().zip(self.fetch(holder, &asked)?) {
                found[*number] = row;
            }
        }
        Ok(found)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(holder) = self.places.of(table) else {
            return self.local.scan(table, range, reverse, visit);
        };
        if range.is_empty() {
            return Ok(());
        }
        self.remotes[holder].scan(self.point(), table, range, reverse, &mut |rows| {
            rows.iter().all(|(key, row)| visit(key, row).is_continue())
        })
    }

    fn scan_many(
        &self,
        table: TableId,
        ranges: &[KeyRange],
        visit: &mut dyn FnMut(usize, Key, Row),
    ) -> Result<(), StoreError> {
        if self.places.of(table).is_none() {
            return self.local.scan_many(table, ranges, visit);
        }
        ranges.iter().enumerate().try_for_each(|(number, range)| {
            self.scan(table, range, false, &mut |key, row| {
                visit(number, key.clone(), row.clone());
                ControlFlow::Continue(())
            })
        })
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        match self.places.of(table) {
            None => self.local.about_rows(table),
            Some(_) => None,
        }
    }

    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        match self.places.of(table.id) {
            None => self.local.columns(table, ordinals),
            Some(_) => Ok(None),
        }
    }

    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        match self.places.of(table.id) {
            None => self.local.read_columns(table, ordinals),
            Some(_) => None,
        }
    }

    fn at_height(&self, height: u64) -> Result<Arc<dyn Snapshot>, PastError> {
        self.local.at_height(height)
    }

    fn row_history(&self, table: TableId, key: &Key) -> Result<Vec<PastChange>, PastError> {
        self.local.row_history(table, key)
    }
}
