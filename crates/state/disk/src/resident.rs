//! The store with all rows in memory, which are on the disk for the next process only.

use crate::core::{Written, WrittenRows};
use crate::durable::Durable;
use crate::files::{Files, FilesAt};
use crate::filling::DiskFilling;
use crate::gate::Gate;
use crate::layout::Meta;
use crate::options::{Budget, RowsIn};
use crate::points::{Admitted, Changes, Point, put_in_order};
use crypto::Digest;
use parking_lot::Mutex;
use proofs::state::TreeShape;
use state::{
    AfterImage, BlockEnd, CheckpointHeader, Filling, KeptState, KeyRange, LiveContent, ResumePoint, RowId,
    Snapshot, Store, StoreError, StoreStatistics, Version, indexes_made, tables_dropped,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, TableId};

/// So many changed rows are a durable point, at the end of a block.
const CHANGED_ROWS: usize = 100_000;
/// So many points may wait to be written; more changes are gathered in the next one.
const WAITING_MAX: usize = 2;

/// All rows in memory, and in files behind that.
pub(crate) struct ResidentStore {
    rows: Arc<dyn Store>,
    durable: Durable,
    changes: Mutex<Pending>,
}

/// What has changed since the last point.
#[derive(Default)]
struct Pending {
    /// Rows, some of them several times.
    rows: Vec<RowId>,
    /// So many come before those that are there several times go.
    tidy_at: usize,
    dropped: BTreeSet<TableId>,
    admitted: Admitted,
    ended: Option<ResumePoint>,
}

impl Pending {
    /// In order, and each once.
    fn tidy(&mut self) {
        put_in_order(&mut self.rows);
        self.tidy_at = (2 * self.rows.len()).max(CHANGED_ROWS);
    }
}

impl ResidentStore {
    /// `rows`: the same as the files have.
    pub(crate) fn new(
        rows: Arc<dyn Store>,
        (files, gate, written): (Arc<Files>, Arc<Gate>, Written),
    ) -> Result<ResidentStore, StoreError> {
        let durable = Durable::start(files, gate, written, (RowsIn::Memory, Budget::IN_MEMORY))?;
        let changes = Pending { tidy_at: CHANGED_ROWS, ..Pending::default() };
        Ok(ResidentStore { rows, durable, changes: Mutex::new(changes) })
    }

    fn hand_over(&self, pending: &mut Pending, is_checkpoint: bool) {
        let Pending { rows, dropped, admitted, ended, .. } = std::mem::take(pending);
        pending.tidy_at = CHANGED_ROWS;
        pending.ended = ended;
        let (snapshot, version) = (self.rows.snapshot(), self.rows.version());
        let catalog = snapshot.catalog().clone();
        let counts = self.counts(&catalog);
        self.durable.hand_over(Point {
            version,
            changes: Changes::Rows(snapshot, rows),
            dropped,
            catalog,
            meta: Meta::new(ended, counts, false),
            admitted,
            is_checkpoint,
            written: Box::new(|_: &Arc<FilesAt>| 0),
        });
    }

    fn counts(&self, catalog: &Catalog) -> BTreeMap<TableId, u64> {
        let tables = catalog.row_tables().filter(|table| !table.is_index());
        tables.map(|table| (table, self.rows.rows(table))).collect()
    }
}

impl Store for ResidentStore {
    fn version(&self) -> Version {
        self.rows.version()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.rows.catalog()
    }

    fn catalog_digest(&self) -> Digest {
        self.rows.catalog_digest()
    }

    fn rows(&self, table: TableId) -> u64 {
        self.rows.rows(table)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.rows.snapshot()
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        self.rows.snapshot_at(version)
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        let mut pending = self.changes.lock();
        self.durable.core.check()?;
        if let Some(after) = &catalog {
            pending.dropped.extend(tables_dropped(&self.rows.catalog(), after));
        }
        let made = taken_in(&self.rows.catalog(), catalog.as_deref());
        self.rows.apply(version, changes, catalog)?;
        pending.rows.extend(changes.iter().map(|change| change.row.clone()));
        for table in made {
            let snapshot = self.rows.snapshot();
            snapshot.scan(table, &KeyRange::ALL, false, &mut |key, _| {
                pending.rows.push(RowId { table, key: key.clone() });
                ControlFlow::Continue(())
            })?;
        }
        pending.ended = None;
        if pending.rows.len() >= pending.tidy_at {
            pending.tidy();
        }
        Ok(())
    }

    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        let mut pending = self.changes.lock();
        let BlockEnd { point, admitted, is_resumable, is_checkpoint, is_due } = end;
        pending.ended = is_resumable.then_some(point);
        pending.admitted.add(admitted);
        let is_due = (is_due || pending.rows.len() >= CHANGED_ROWS)
            && is_resumable
            && self.durable.core.written.lock().waiting < WAITING_MAX;
        if is_checkpoint || is_due {
            self.hand_over(&mut pending, is_checkpoint);
        }
        self.durable.core.check()
    }

    fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        self.hand_over(&mut self.changes.lock(), false);
        self.durable.newest_point()
    }

    fn keep_checkpoint(
        &self,
        header: &CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        self.durable.seal(header.height, &|_: &WrittenRows| snapshot.clone(), &live, shape)
    }

    fn statistics(&self) -> StoreStatistics {
        let counts = self.counts(&self.rows.catalog());
        let rows = counts.iter().filter(|(table, _)| table.is_made()).map(|(_, rows)| rows).sum();
        StoreStatistics { rows, ..self.durable.core.statistics() }
    }
}

/// Where the keys stand that are taken in unique indexes which are new.
fn taken_in(before: &Catalog, after: Option<&Catalog>) -> Vec<TableId> {
    let made = after.into_iter().flat_map(|after| indexes_made(before, after));
    made.filter(|(_, index)| index.unique).map(|(_, index)| index.unique_entries()).collect()
}

/// A store with all rows in memory that gets those of its first version.
pub(crate) struct ResidentFilling {
    pub(crate) memory: Box<dyn Filling>,
    pub(crate) files: DiskFilling,
}

impl Filling for ResidentFilling {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        self.memory.add(rows)?;
        self.files.add(rows)
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        let ResidentFilling { memory, files } = *self;
        let (files, gate) = files.into_files()?;
        Ok(Arc::new(ResidentStore::new(memory.finish()?, (files, gate, Written::default()))?))
    }
}
