//! A store whose reads and writes fail when a test says so.

use crate::{
    AfterImage, BlockEnd, CheckpointHeader, Filling, KeptState, KeyRange, LiveContent, Reopened, ResumePoint,
    Simulate, Snapshot, Store, StoreError, StoreStatistics, Stores, Version,
};
use crypto::Digest;
use parking_lot::Mutex;
use proofs::state::TreeShape;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, Key, Row, TableId};

/// What fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Reading a row that a snapshot is asked for, by its key or on the way of a scan.
    Read,
    /// The same, because files are damaged. Those of a store that is begun or taken up behind that are not.
    ReadDamaged,
    /// [`Store::apply`], behind half of its changes.
    Apply,
    /// [`Store::durable_point`] and [`Store::keep_checkpoint`].
    DurablePoint,
    /// [`Stores::begin`] and [`Stores::reopen`].
    Begin,
    /// [`Filling::add`].
    Add,
}

/// The file that a store names which was made to fail.
pub const FILE: &str = "rows.of.the.test";
/// What it says about it.
pub const CAUSE: &str = "Input/output error (injected)";

/// When something fails, and whether it has.
#[derive(Debug, Default)]
pub struct Failures(Mutex<Planned>);

#[derive(Debug, Default)]
struct Planned {
    /// What fails, and how often it still works.
    next: Option<(Operation, u64)>,
    struck: bool,
    /// Rows that were asked for.
    reads: u64,
}

impl Failures {
    /// From now on `operation` works `times` times more, and then fails every time.
    pub fn fail(&self, operation: Operation, times: u64) {
        let mut planned = self.0.lock();
        (planned.next, planned.struck) = (Some((operation, times)), false);
    }

    /// Everything works again.
    pub fn mend(&self) {
        self.0.lock().next = None;
    }

    /// Whether something has failed since [`Failures::fail`].
    pub fn have_struck(&self) -> bool {
        self.0.lock().struck
    }

    /// Rows that were asked for so far.
    pub fn reads(&self) -> u64 {
        self.0.lock().reads
    }

    fn meet(&self, operation: Operation) -> Result<(), StoreError> {
        let mut planned = self.0.lock();
        planned.reads += u64::from(operation == Operation::Read);
        let is_damaged = planned.next.is_some_and(|(next, _)| next == Operation::ReadDamaged);
        let operation = match operation {
            Operation::Read if is_damaged => Operation::ReadDamaged,
            Operation::Begin if is_damaged && planned.struck => {
                planned.next = None;
                operation
            }
            operation => operation,
        };
        let Some((_, times)) = planned.next.as_mut().filter(|(next, _)| *next == operation) else {
            return Ok(());
        };
        if *times > 0 {
            *times -= 1;
            return Ok(());
        }
        planned.struck = true;
        Err(match operation {
            Operation::Read => StoreError::read(FILE, CAUSE),
            Operation::ReadDamaged => StoreError::damaged(FILE, CAUSE),
            _ => StoreError::write(FILE, CAUSE),
        })
    }
}

/// Makes stores that fail when their [`Failures`] say so, and are otherwise as those of another kind.
#[derive(Clone)]
pub struct FailingStores {
    inner: Arc<dyn Stores>,
    failures: Arc<Failures>,
}

impl FailingStores {
    /// Stores as `inner` makes them.
    pub fn new(inner: Arc<dyn Stores>, failures: Arc<Failures>) -> FailingStores {
        FailingStores { inner, failures }
    }
}

impl Stores for FailingStores {
    fn begin(&self, version: Version, catalog: Arc<Catalog>) -> Result<Box<dyn Filling>, StoreError> {
        self.failures.meet(Operation::Begin)?;
        let inner = self.inner.begin(version, catalog)?;
        Ok(Box::new(FailingFilling { inner, failures: self.failures.clone() }))
    }

    fn newest(&self) -> Option<Arc<dyn Store>> {
        self.inner.newest()
    }

    fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        self.inner.left()
    }

    fn reopen(&self, height: u64) -> Result<Option<Reopened>, StoreError> {
        self.failures.meet(Operation::Begin)?;
        let reopened = self.inner.reopen(height)?;
        Ok(reopened.map(|Reopened { point, state, live }| {
            let state = Arc::new(FailingStore { inner: state, failures: self.failures.clone() });
            Reopened { point, state, live }
        }))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.inner.settle()
    }

    fn kept_checkpoint(&self, height: u64, shape: TreeShape) -> Result<Option<KeptState>, StoreError> {
        self.inner.kept_checkpoint(height, shape)
    }

    fn keep_checkpoints(&self, heights: &[u64]) -> Result<(), StoreError> {
        self.inner.keep_checkpoints(heights)
    }

    fn remove_checkpoints_behind(&self, height: u64) -> Result<(), StoreError> {
        self.inner.remove_checkpoints_behind(height)
    }

    fn check_files(&self, rest: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.inner.check_files(rest)
    }

    fn recorded(&self, height: u64) {
        self.inner.recorded(height);
    }

    fn recording_ends(&self) {
        self.inner.recording_ends();
    }
}

struct FailingFilling {
    inner: Box<dyn Filling>,
    failures: Arc<Failures>,
}

impl Filling for FailingFilling {
    fn add(&mut self, rows: &[AfterImage]) -> Result<(), StoreError> {
        self.failures.meet(Operation::Add)?;
        self.inner.add(rows)
    }

    fn finish(self: Box<Self>) -> Result<Arc<dyn Store>, StoreError> {
        let FailingFilling { inner, failures } = *self;
        Ok(Arc::new(FailingStore { inner: inner.finish()?, failures }))
    }
}

struct FailingStore {
    inner: Arc<dyn Store>,
    failures: Arc<Failures>,
}

impl FailingStore {
    fn failing(&self, inner: Arc<dyn Snapshot>) -> Arc<dyn Snapshot> {
        Arc::new(FailingSnapshot { inner, failures: self.failures.clone() })
    }
}

impl Store for FailingStore {
    fn version(&self) -> Version {
        self.inner.version()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog()
    }

    fn catalog_digest(&self) -> Digest {
        self.inner.catalog_digest()
    }

    fn rows(&self, table: TableId) -> u64 {
        self.inner.rows(table)
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.failing(self.inner.snapshot())
    }

    fn snapshot_at(&self, version: Version) -> Option<Arc<dyn Snapshot>> {
        self.inner.snapshot_at(version).map(|snapshot| self.failing(snapshot))
    }

    fn prefetch(&self, transactions: &[Arc<dyn Simulate>]) {
        self.inner.prefetch(transactions);
    }

    fn apply(
        &self,
        version: Version,
        changes: &[AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        let met = self.failures.meet(Operation::Apply);
        let written = if met.is_ok() { changes } else { &changes[..changes.len() / 2] };
        self.inner.apply(version, written, catalog)?;
        met
    }

    fn end_block(&self, end: BlockEnd) -> Result<(), StoreError> {
        self.inner.end_block(end)
    }

    fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        self.failures.meet(Operation::DurablePoint)?;
        self.inner.durable_point()
    }

    fn keep_checkpoint(
        &self,
        header: &CheckpointHeader,
        snapshot: Arc<dyn Snapshot>,
        live: LiveContent,
        shape: TreeShape,
    ) -> Result<Option<KeptState>, StoreError> {
        self.failures.meet(Operation::DurablePoint)?;
        self.inner.keep_checkpoint(header, snapshot, live, shape)
    }

    fn statistics(&self) -> StoreStatistics {
        self.inner.statistics()
    }
}

struct FailingSnapshot {
    inner: Arc<dyn Snapshot>,
    failures: Arc<Failures>,
}

impl Snapshot for FailingSnapshot {
    fn catalog(&self) -> &Arc<Catalog> {
        self.inner.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.failures.meet(Operation::Read)?;
        self.inner.get(table, key)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.failures.meet(Operation::Read)?;
        let mut met = Ok(());
        self.inner.scan(table, range, reverse, &mut |key, row| {
            visit(key, row)?;
            // There may be another row behind it.
            met = self.failures.meet(Operation::Read);
            if met.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        met
    }
}
