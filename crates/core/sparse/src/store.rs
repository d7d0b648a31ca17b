//! The store of a validator whose organisation has holders: what a batch changes goes to whoever holds it.

use crate::messages::{Ask, images};
use crate::placement::Places;
use crate::remote::Remote;
use crate::snapshot::{At, SharedSnapshot, Versions};
use crate::stores::{KnownHolder, KnownHolders, shape_number};
use crate::{Placement, holder};
use crypto::Digest;
use parking_lot::{Mutex, RwLock};
use proofs::state::TreeShape;
use rayon::prelude::*;
use state::{
    AfterImage, BlockEnd, CheckpointHeader, GroupHead, KeptState, KeyRange, LiveContent, RowId, Simulate,
    Snapshot, StateTree, Store, StoreError, StoreStatistics, Version,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use types::{Catalog, TableId};

/// Rows at the validator and at its holders.
pub(crate) struct SharedStore {
    local: Arc<dyn Store>,
    remotes: Arc<Vec<Remote>>,
    placement: Placement,
    /// What readers see: all of a batch, or nothing.
    newest: RwLock<Published>,
    versions: Arc<Versions>,
    /// Rows of the validator at checkpoints that are to be kept.
    announced: Mutex<BTreeMap<u64, Arc<dyn Snapshot>>>,
    /// What holders said of their stores at the end of the last block: rows, bytes of files, of changes, and written.
    said: Mutex<Vec<[u64; 4]>>,
    known: Arc<dyn KnownHolders>,
}

/// Numbers under which rows stand that follow from no others: of tables, keys in unique indexes, sequences, entries of computed indexes.
pub(crate) fn tables_with_rows(catalog: &Catalog) -> impl Iterator<Item = TableId> + '_ {
    let tables = catalog.tables.values().map(|table| table.id);
    let unique = catalog.indexes.values().flatten().filter(|index| index.unique && !index.is_computed());
    let tables = tables.chain(unique.map(|index| index.unique_entries()));
    tables.chain(catalog.kept_besides_tables().map(|(table, _)| table))
}

/// The newest state, whole.
#[derive(Clone)]
struct Published {
    version: Version,
    local: Arc<dyn Snapshot>,
    places: Arc<Places>,
}

impl SharedStore {
    pub(crate) fn new(
        local: Arc<dyn Store>,
        remotes: Arc<Vec<Remote>>,
        placement: Placement,
        known: Arc<dyn KnownHolders>,
    ) -> SharedStore {
        let places = Arc::new(placement.places(&local.catalog()));
        let newest = RwLock::new(Published { version: local.version(), local: local.snapshot(), places });
        let (versions, announced, said) = Default::default();
        SharedStore { local, remotes, placement, newest, versions, announced, said, known }
    }

    pub(crate) fn places(&self) -> Arc<Places> {
        self.newest.read().places.clone()
    }

    /// What holders have executed has taken effect: what is remembered of their rows may not hold any more, and readers see it from
    /// now on.
    pub(crate) fn holders_have_executed(&self) {
        self.versions.forget_rows();
        self.publish();
    }

    /// From now on readers see what has taken effect at all nodes so far.
    fn publish(&self) {
        let places = self.places();
        self.publish_with(places);
    }

    fn publish_with(&self, places: Arc<Places>) {
        let (version, local) = (self.newest_version(), self.local.snapshot());
        *self.newest.write() = Published { version, local, places };
    }

    fn shared(&self, Published { version, local, places }: Published) -> Arc<dyn Snapshot> {
        let at = At::Version(self.versions.hold(version.number()));
        Arc::new(SharedSnapshot::new(local, places, self.remotes.clone(), at))
    }

    fn send(
        &self,
        version: Version,
        changes: Vec<Vec<AfterImage>>,
        catalog: Option<&Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        for (remote, changes) in self.remotes.iter().zip(changes) {
            if changes.is_empty() && catalog.is_none() {
                continue;
            }
            remote.apply(version.number(), images(changes.clone()), catalog.cloned())?;
            // Not before: whoever reads the state before meanwhile would remember what it was.
            self.versions.changed(&changes);
        }
        Ok(())
    }

    /// Changes by holder, and last those of the validator.
    fn by_place(&self, changes: &[AfterImage], places: &Places) -> Vec<Vec<AfterImage>> {
        let mut of: Vec<Vec<AfterImage>> = vec![Vec::new(); self.remotes.len() + 1];
        for change in changes {
            of[places.of(change.row.table).unwrap_or(self.remotes.len())].push(change.clone());
        }
        of
    }

    /// A schema or a table was renamed, so that rows stand with another node from now on: they come before the changes that the
    /// same transaction has made of them.
    fn add_moved(&self, after: &Places, changes: &mut [Vec<AfterImage>]) -> Result<(), StoreError> {
        let (before, snapshot) = (self.places(), self.snapshot());
        let catalog = self.local.catalog();
        let tables = tables_with_rows(&catalog);
        for table in tables.filter(|table| before.of(*table) != after.of(*table)) {
            let place = |place: Option<usize>| place.unwrap_or(self.remotes.len());
            let (from, to) = (place(before.of(table)), place(after.of(table)));
            let mut coming: BTreeMap<RowId, Option<types::Row>> = BTreeMap::new();
            let mut leaving = Vec::new();
            snapshot.scan(table, &KeyRange::ALL, false, &mut |key, row| {
                let id = RowId { table, key: key.clone() };
                leaving.push(AfterImage { row: id.clone(), value: None });
                coming.insert(id, Some(row.clone()));
                ControlFlow::Continue(())
            })?;
            for change in std::mem::take(&mut changes[to]) {
                coming.insert(change.row, change.value);
            }
            changes[to] = coming.into_iter().map(|(row, value)| AfterImage { row, value }).collect();
            changes[from].extend(leaving);
            changes[from].sort_by(|a, b| a.row.cmp(&b.row));
        }
        Ok(())
    }
}

impl Store for SharedStore {
    fn version(&self) -> Version {
        self.newest_version()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.local.catalog()
    }

    fn catalog_digest(&self) -> Digest {
        self.local.catalog_digest()
    }

    fn rows(&self, table: TableId) -> u64 {
        match self.places().of(table) {
            None => self.local.rows(table),
            // Nothing depends on it but what is shown to people.
            Some(holder) => self.remotes[holder].rows(table).unwrap_or(0),
        }
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        // It is held before a block can end that lets it go.
        let newest = self.newest.read();
        self.shared(newest.clone())
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        let local = self.local.snapshot_at(version)?;
        let places = match Arc::ptr_eq(local.catalog(), &self.local.catalog()) {
            true => self.places(),
            false => Arc::new(self.placement.places(local.catalog())),
        };
        Some(self.shared(Published { version, local, places }))
    }

    fn prefetch(&self, transactions: &[Arc<dyn Simulate>]) {
        self.local.prefetch(transactions);
        let (places, catalog) = (self.places(), self.catalog());
        if places.is_empty() {
            return;
        }
        let rows_of = |transaction: &Arc<dyn Simulate>| {
            let footprint = transaction.footprint(&catalog).unwrap_or_default();
            let regions = footprint.reads.iter().chain(&footprint.writes);
            let row = |region: &state::Region| {
                let key = region.key().filter(|_| places.of(region.table).is_some())?;
                Some(RowId { table: region.table, key: key.clone() })
            };
            regions.filter_map(row).collect::<Vec<_>>()
        };
        let mut rows: Vec<RowId> = transactions.par_iter().flat_map_iter(rows_of).collect();
        rows.par_sort_unstable();
        rows.dedup();
        // Whoever cannot read a row meets that where it is needed.
        let _ = self.snapshot().get_many(&rows);
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        let places = match &catalog {
            Some(catalog) => Arc::new(self.placement.places(catalog)),
            None => self.places(),
        };
        let mut changes = self.by_place(changes, &places);
        if catalog.is_some() {
            self.add_moved(&places, &mut changes)?;
        }
        let here = changes.pop().unwrap_or_default();
        self.send(version, changes, catalog.as_ref())?;
        if catalog.is_some() {
            self.versions.forget_rows();
        }
        self.local.apply(version, &here, catalog)?;
        self.publish_with(places);
        Ok(())
    }

    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        let BlockEnd { point, is_resumable, is_checkpoint, is_due, .. } = end;
        let height = point.header.height;
        if is_checkpoint {
            self.announced.lock().insert(height, self.local.snapshot());
        }
        let oldest = self.versions.oldest(self.newest_version().number());
        let ended = || Ask::EndBlock { point, is_resumable, is_checkpoint, is_due, oldest };
        let said: Result<Vec<_>, StoreError> =
            self.remotes.iter().map(|remote| remote.end_block(ended())).collect();
        *self.said.lock() = said?;
        // Before the validator can come back here.
        self.remember(height)?;
        self.local.end_block(end)?;
        self.versions.forget_rows();
        self.publish();
        Ok(())
    }

    fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        let mut height = self.local.durable_point()?;
        for remote in self.remotes.iter() {
            let there = remote.durable_point()?;
            height = height.zip(there).map(|(here, there)| here.min(there));
        }
        Ok(height)
    }

    fn keep_checkpoint(
        &self,
        header: &CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        let announced = self.announced.lock().remove(&header.height);
        let local = announced.unwrap_or_else(|| self.local.snapshot());
        // Holders show the state at that version for as long as somebody here holds it.
        let _held = snapshot;
        let Some(local) = self.local.keep_checkpoint(header, local, live, shape)? else { return Ok(None) };
        let ask = || Ask::KeepCheckpoint { header: *header, shape: shape_number(shape) };
        self.compose(local, ask)
    }

    fn statistics(&self) -> StoreStatistics {
        let mut statistics = self.local.statistics();
        for [rows, files, changed, written] in self.said.lock().iter() {
            statistics.rows += rows;
            statistics.file_bytes += files;
            statistics.changed_bytes += changed;
            statistics.written_bytes += written;
        }
        statistics
    }
}

impl SharedStore {
    /// The newest of all nodes.
    fn newest_version(&self) -> Version {
        let there = self.remotes.iter().map(|remote| remote.version.load(Ordering::Acquire));
        let there = there.max().map(Version::of_number).unwrap_or(Version::GENESIS);
        there.max(self.local.version())
    }

    /// A checkpoint of the validator's rows and of those of its holders. `ask`: has a holder say its groups.
    pub(crate) fn compose(
        &self,
        local: KeptState,
        ask: impl Fn() -> Ask,
    ) -> Result<Option<KeptState>, StoreError> {
        let mut groups = holder::groups(&local);
        for remote in self.remotes.iter() {
            match remote.kept(ask())? {
                Some(more) => groups.extend(more),
                None => return Ok(None),
            }
        }
        groups.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let rows = local.snapshot().clone();
        let (places, at) = (self.placement.places(rows.catalog()), At::Checkpoint(local.header().height));
        let snapshot = Arc::new(SharedSnapshot::new(rows, Arc::new(places), self.remotes.clone(), at));
        let live = local.live().clone();
        let group = |(table, key, rows, leaf)| (RowId { table, key }, GroupHead { rows, leaf });
        let (shape, groups) = (local.tree().shape(), groups.into_iter().map(group));
        let tree = StateTree::of_groups(snapshot.catalog(), &live, shape, groups);
        Ok(Some(KeptState::new(*local.header(), snapshot, live, tree)))
    }

    /// Remembers which holders have rows behind the block of this height that had none before.
    fn remember(&self, height: u64) -> Result<(), StoreError> {
        let mut known = self.known.known();
        let before = known.len();
        for (remote, [rows, ..]) in self.remotes.iter().zip(self.said.lock().iter()) {
            if *rows > 0 && !known.iter().any(|holder| holder.name == remote.name()) {
                known.push(KnownHolder { name: remote.name().to_string(), since: height });
            }
        }
        if known.len() == before { Ok(()) } else { self.known.remember(&known) }
    }

    pub(crate) fn rows_by_holder(&self) -> Vec<u64> {
        self.said.lock().iter().map(|[rows, ..]| *rows).collect()
    }

    /// The holders' states.
    pub(crate) fn remotes(&self) -> &Arc<Vec<Remote>> {
        &self.remotes
    }
}
