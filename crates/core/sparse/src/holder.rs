//! A node that holds some of its organisation's schemas: it executes what touches these alone, and shows their rows.

use crate::messages::{Ask, FORMAT, Point, Question, Refusal, Said, SentGroup, SentRun, after_images};
use crate::{Placement, held::HeldSnapshot};
use concurrency::{Batch, Protocol, Snapshots};
use crypto::Digest;
use parking_lot::{Mutex, RwLock};
use proofs::state::TreeShape;
use rustc_hash::FxHashSet;
use sql::{CompileOptions, Context, Invocation, Library};
use state::{
    BlockEnd, Filling, KeptState, LiveContent, RowId, Simulate, Snapshot, StateNode, Store, StoreError,
    Stores, Version,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, KnownVersions, TableId};

/// Rows of a scan that one answer has at most; whoever wants more asks again.
const SCANNED_ROWS_MAX: u32 = 10_000;

/// Blocks between two that have anything for a holder.
const HEIGHTS_AHEAD_MAX: u64 = 1 << 40;

/// The state of a holder, and how it answers its validator. Synchronous, like everything that executes blocks: any number of
/// threads may ask at the same time.
pub struct Holder {
    stores: Arc<dyn Stores>,
    placement: Placement,
    number: usize,
    session: RwLock<Session>,
}

/// What one validator, in one of its lives, has of a holder.
#[derive(Default)]
struct Session {
    number: u64,
    filling: Mutex<BTreeMap<u64, Box<dyn Filling>>>,
    open: BTreeMap<u64, Arc<Open>>,
}

/// A state that is open.
struct Open {
    store: Arc<dyn Store>,
    /// After every batch that has changed something here, as far as somebody may still read it.
    versions: RwLock<BTreeMap<Version, Arc<dyn Snapshot>>>,
    /// At checkpoints.
    kept: Mutex<BTreeMap<u64, Arc<dyn Snapshot>>>,
    held: RwLock<Arc<FxHashSet<u32>>>,
    executor: Mutex<Executor>,
}

/// What executes transactions.
#[derive(Default)]
struct Executor {
    library: Option<Arc<Library>>,
    /// The version of the charter that it follows.
    protocol: Option<(u64, Box<dyn Protocol>)>,
}

impl From<StoreError> for Refusal {
    fn from(failure: StoreError) -> Refusal {
        Refusal::Store(failure.to_string())
    }
}

fn question(text: impl Into<String>) -> Refusal {
    Refusal::Question(text.into())
}

impl Holder {
    /// Holder number `number` of a placement, with its own stores.
    pub fn new(stores: Arc<dyn Stores>, placement: Placement, number: usize) -> Holder {
        Holder { stores, placement, number, session: RwLock::default() }
    }

    /// Answers a question of the validator. Whatever comes, something is said.
    pub fn answer(&self, bytes: &[u8]) -> Vec<u8> {
        let said = match borsh::from_slice::<Question>(bytes) {
            Ok(Question { session, state, ask }) => {
                self.say(session, state, ask).unwrap_or_else(Said::Refused)
            }
            Err(error) => Said::Refused(question(format!(
                "expected a question of format {FORMAT}, found {} bytes that are none ({error}): run the same program on all \
                 nodes of the organisation",
                bytes.len()
            ))),
        };
        borsh::to_vec(&said).expect("writing to memory cannot fail")
    }

    fn say(&self, session: u64, state: u64, ask: Ask) -> Result<Said, Refusal> {
        if let Ask::Hello { format, ledger, schemas } = ask {
            return self.begin_session(session, format, ledger, &schemas);
        }
        if self.session.read().number != session {
            return Err(Refusal::Session);
        }
        match ask {
            Ask::Hello { .. } => Err(Refusal::Session),
            Ask::Begin { .. } | Ask::Add(_) | Ask::Finish | Ask::Reopen(_) | Ask::Close => {
                self.open_state((session, state), ask)
            }
            Ask::Left => Ok(Said::Left(self.stores.left()?)),
            Ask::Settle => Ok(self.stores.settle().map(|()| Said::Done)?),
            Ask::KeepCheckpoints(heights) => {
                self.stores.keep_checkpoints(&heights)?;
                let oldest = heights.iter().min().copied().unwrap_or(0);
                for open in self.session.read().open.values() {
                    open.kept.lock().retain(|height, _| *height >= oldest);
                }
                Ok(Said::Done)
            }
            Ask::RemoveCheckpointsBehind(height) => {
                Ok(self.stores.remove_checkpoints_behind(height).map(|()| Said::Done)?)
            }
            Ask::Recorded(height) => {
                self.stores.recorded(height);
                Ok(Said::Done)
            }
            Ask::RecordingEnds => {
                self.stores.recording_ends();
                Ok(Said::Done)
            }
            Ask::KeptCheckpoint { height, shape } => {
                let kept = self.stores.kept_checkpoint(height, shape_of(shape))?;
                Ok(Said::Kept(kept.map(|kept| self.keep(state, height, &kept))))
            }
            ask => self.of_state(state, ask),
        }
    }

    /// A validator comes: what was open is closed, and the store with it.
    fn begin_session(
        &self,
        number: u64,
        format: u32,
        ledger: Digest,
        schemas: &[String],
    ) -> Result<Said, Refusal> {
        let (expected, found) = (self.placement.schemas(self.number), schemas);
        if format != FORMAT {
            return Err(question(format!(
                "expected a validator that speaks format {FORMAT}, found {format}: run the same program on all nodes of the \
                 organisation"
            )));
        }
        if expected != found {
            return Err(question(format!(
                "this node holds the schemas {}, and its validator's node.toml says {}: let both say the same",
                list(expected),
                list(found)
            )));
        }
        let mut session = self.session.write();
        *session = Session { number, ..Session::default() };
        match self.stores.left()?.iter().find(|point| point.header.ledger != ledger) {
            Some(left) => Err(question(format!(
                "expected a folder with states of the ledger {ledger}, found one with states of {}: it belongs to another network; \
                 give this node an empty folder",
                left.header.ledger
            ))),
            None => Ok(Said::Done),
        }
    }

    fn open_state(&self, (number, state): (u64, u64), ask: Ask) -> Result<Said, Refusal> {
        let mut session = self.session.write();
        if session.number != number {
            return Err(Refusal::Session);
        }
        match ask {
            Ask::Begin { version: at, catalog } => {
                let filling = self.stores.begin(Version::of_number(at), catalog)?;
                session.filling.get_mut().insert(state, filling);
                Ok(Said::Done)
            }
            Ask::Add(rows) => {
                let filling = session.filling.get_mut().get_mut(&state);
                let filling = filling.ok_or_else(|| question("rows for a state that was not begun"))?;
                let rows = after_images(rows);
                if !rows.is_sorted_by(|one, next| one.row < next.row) {
                    return Err(question("rows that are not in the order of tables and keys"));
                }
                Ok(filling.add(&rows).map(|()| Said::Done)?)
            }
            Ask::Finish => {
                let filling = session.filling.get_mut().remove(&state);
                let filling = filling.ok_or_else(|| question("the end of a state that was not begun"))?;
                let store = filling.finish()?;
                session.open.insert(state, self.open(store));
                Ok(Said::Done)
            }
            Ask::Reopen(height) => {
                let reopened = self.stores.reopen(height)?;
                let point = reopened.as_ref().map(|reopened| reopened.point);
                if let Some(reopened) = reopened {
                    session.open.insert(state, self.open(reopened.state));
                }
                Ok(Said::Reopened(point))
            }
            Ask::Close => {
                session.filling.get_mut().remove(&state);
                session.open.remove(&state);
                Ok(Said::Done)
            }
            _ => Err(question("this opens no state")),
        }
    }

    fn open(&self, store: Arc<dyn Store>) -> Arc<Open> {
        let held = RwLock::new(Arc::new(self.held(&store.catalog())));
        let versions = BTreeMap::from([(store.version(), store.snapshot())]);
        let (versions, kept, executor) = (RwLock::new(versions), Mutex::default(), Mutex::default());
        Arc::new(Open { store, versions, kept, held, executor })
    }

    fn held(&self, catalog: &Catalog) -> FxHashSet<u32> {
        self.placement.places(catalog).held_by(self.number).collect()
    }

    /// Answers what is about an open state.
    fn of_state(&self, state: u64, ask: Ask) -> Result<Said, Refusal> {
        let open = self.session.read().open.get(&state).cloned();
        let open = open.ok_or_else(|| question("a state that is not open"))?;
        match ask {
            Ask::Execute(run) => open.execute(run),
            Ask::Apply { version: at, changes, catalog } => {
                let at = Version::of_number(at);
                if at <= open.store.version() {
                    return Err(question(format!("version {at:?} behind {:?}", open.store.version())));
                }
                let changes = after_images(changes);
                if !changes.is_sorted_by(|one, next| one.row < next.row) {
                    return Err(question("changes that are not in the order of tables and keys"));
                }
                if let Some(catalog) = &catalog {
                    *open.held.write() = Arc::new(self.held(catalog));
                    open.executor.lock().library = None;
                }
                open.apply(at, &changes, catalog)?;
                Ok(Said::Done)
            }
            Ask::EndBlock { point, is_resumable, is_checkpoint, is_due, oldest } => {
                let admitted = Vec::new();
                open.store.end_block(BlockEnd { point, admitted, is_resumable, is_checkpoint, is_due })?;
                open.forget_before(Version::of_number(oldest));
                let statistics = open.store.statistics();
                Ok(Said::Ended {
                    rows: statistics.rows,
                    file_bytes: statistics.file_bytes,
                    changed_bytes: statistics.changed_bytes,
                    written_bytes: statistics.written_bytes,
                })
            }
            Ask::DurablePoint => Ok(Said::Durable(open.store.durable_point()?)),
            Ask::KeepCheckpoint { header, shape } => {
                let at = Version::after_block(header.height);
                let snapshot =
                    open.version(at).ok_or_else(|| question("a checkpoint of a state that is gone"))?;
                let (live, shape) = (LiveContent::default(), shape_of(shape));
                let kept = open.store.keep_checkpoint(&header, snapshot, live, shape)?;
                Ok(Said::Kept(kept.map(|kept| self.keep(state, header.height, &kept))))
            }
            Ask::Get { at, rows } => {
                let snapshot = open.at(at)?;
                let rows: Vec<RowId> = rows.into_iter().map(|(table, key)| RowId { table, key }).collect();
                Ok(Said::Got(snapshot.get_many(&rows)?))
            }
            Ask::Scan { at, table, range, reverse, rows_max } => {
                let (snapshot, rows_max) = (open.at(at)?, rows_max.min(SCANNED_ROWS_MAX) as usize);
                let mut rows = Vec::new();
                snapshot.scan(table, &range.into(), reverse, &mut |key, row| {
                    rows.push((key.clone(), row.clone()));
                    if rows.len() < rows_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
                Ok(Said::Scanned(rows))
            }
            Ask::Rows(table) => Ok(Said::Rows(open.store.rows(table))),
            _ => Err(question("this is about no open state")),
        }
    }

    /// Keeps a checkpoint to be read; its groups.
    fn keep(&self, state: u64, height: u64, kept: &KeptState) -> Vec<SentGroup> {
        if let Some(open) = self.session.read().open.get(&state) {
            open.kept.lock().insert(height, kept.snapshot().clone());
        }
        groups(kept)
    }
}

fn list(schemas: &[String]) -> String {
    if schemas.is_empty() { "(none)".to_string() } else { schemas.join(", ") }
}

fn shape_of(number: u32) -> TreeShape {
    if number == 0 { TreeShape::Ranges } else { TreeShape::Groups }
}

/// The groups of rows in the tree of a checkpoint.
pub(crate) fn groups(kept: &KeptState) -> Vec<SentGroup> {
    let nodes = kept.tree().nodes().iter().zip(kept.tree().leaves());
    let group = |(node, leaf): (&StateNode, &Digest)| match node {
        StateNode::Group { table, first, rows } => Some((*table, first.clone(), *rows, *leaf)),
        StateNode::Table(_) => None,
    };
    nodes.filter_map(group).collect()
}

/// The newest state, with nothing but what this node holds.
struct Newest<'a>(&'a Open);

impl Snapshots for Newest<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        Arc::new(HeldSnapshot::new(self.0.store.snapshot(), self.0.held.read().clone()))
    }
}

impl Open {
    fn version(&self, at: Version) -> Option<Arc<dyn Snapshot>> {
        let versions = self.versions.read();
        versions.range(..=at).next_back().map(|(_, snapshot)| snapshot.clone())
    }

    fn at(&self, point: Point) -> Result<Arc<dyn Snapshot>, Refusal> {
        let snapshot = match point {
            Point::Version(number) => self.version(Version::of_number(number)),
            Point::Checkpoint(height) => self.kept.lock().get(&height).cloned(),
        };
        snapshot.ok_or_else(|| question(format!("a state that is gone: {point:?}")))
    }

    fn apply(
        &self,
        at: Version,
        changes: &[state::AfterImage],
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        self.store.apply(at, changes, catalog)?;
        self.versions.write().insert(at, self.store.snapshot());
        Ok(())
    }

    /// Snapshots that nobody reads any more.
    fn forget_before(&self, oldest: Version) {
        let mut versions = self.versions.write();
        if let Some((first, _)) = versions.range(..=oldest).next_back() {
            let first = *first;
            *versions = versions.split_off(&first);
        }
    }

    /// Executes transactions as the engine executes batches, and lets each batch take effect.
    fn execute(&self, run: SentRun) -> Result<Said, Refusal> {
        let mut executor = self.executor.lock();
        let height = run.header.height;
        let newest = self.store.version().height();
        if height < newest || height > newest + HEIGHTS_AHEAD_MAX {
            return Err(question(format!("transactions of block {height} behind block {newest}")));
        }
        if u64::from(run.first) + run.batches.len() as u64 >= u64::from(Version::BATCHES_MAX) {
            return Err(question(format!("{} batches from number {} on", run.batches.len(), run.first)));
        }
        let library = executor.library(&self.store.catalog(), height)?;
        let SentRun { header, step_limit, steps_left, first, batches } = run;
        let invocation = |sent: crate::messages::SentTransaction| -> Arc<dyn Simulate> {
            let context = Context {
                height,
                timestamp_ms: header.timestamp_ms,
                index: sent.index,
                transaction: sent.id,
                step_limit,
            };
            let (principal, client, payload) = (sent.principal(), sent.client, sent.payload);
            Arc::new(Invocation::new(library.clone(), context, payload).by(principal).signed_by(client))
        };
        let batches = batches.into_iter().map(|batch| batch.into_iter().map(invocation).collect());
        let batches: Vec<Vec<Arc<dyn Simulate>>> = batches.collect();
        let protocol = executor.protocol(&self.store.catalog(), height)?;
        let (mut results, mut offered, mut spent) = (Vec::new(), 0, 0u64);
        let mut batches: VecDeque<_> = batches.into();
        let count = batches.len();
        while results.len() < count {
            while offered < count && offered - results.len() < protocol.lookahead().max(1) {
                let transactions = batches.pop_front().unwrap_or_default();
                self.store.prefetch(&transactions);
                protocol.offer(Batch {
                    height,
                    number: first + offered as u32,
                    transactions,
                    steps_left: steps_left.saturating_sub(spent),
                    forget: offered == 0,
                    oldest_snapshot: height,
                });
                offered += 1;
            }
            let Some(result) = protocol.poll(&Newest(self))? else { break };
            spent = spent.saturating_add(result.steps);
            self.check_held(&result.changes)?;
            let at = Version::after_batch(height, result.number);
            if !result.changes.is_empty() {
                self.apply(at, &result.changes, None)?;
            }
            results.push(result.into());
        }
        Ok(Said::Executed(results))
    }

    /// A transaction that writes what stands elsewhere should not have come here.
    fn check_held(&self, changes: &[state::AfterImage]) -> Result<(), Refusal> {
        let held = self.held.read().clone();
        match changes.iter().find(|change| !held.contains(&change.row.table.number())) {
            Some(change) => Err(elsewhere(change.row.table).into()),
            None => Ok(()),
        }
    }
}

/// What was asked for stands at another node.
pub(crate) fn elsewhere(table: TableId) -> StoreError {
    StoreError::lost(format_args!("rows of table number {}", table.number()), "another node holds them")
}

impl Executor {
    /// The catalog, compiled as the engine compiles it for the block of this height.
    fn library(&mut self, catalog: &Arc<Catalog>, height: u64) -> Result<Arc<Library>, Refusal> {
        let charter =
            catalog.governance.charter_at(height).ok_or_else(|| question("a state without a charter"))?;
        let version = KnownVersions::default().of(charter, height);
        let version = version.map_err(|error| question(error.to_string()))?;
        if let Some(library) = self.library.as_ref().filter(|library| library.version() == version) {
            return Ok(library.clone());
        }
        let options = CompileOptions { version, ..CompileOptions::default() };
        let library = Library::with_options(catalog.clone(), options);
        let library = Arc::new(library.map_err(|error| question(error.message))?);
        self.library = Some(library.clone());
        Ok(library)
    }

    /// The protocol of the charter that holds at this height.
    fn protocol(&mut self, catalog: &Catalog, height: u64) -> Result<&mut dyn Protocol, Refusal> {
        let charter =
            catalog.governance.charter_at(height).ok_or_else(|| question("a state without a charter"))?;
        if self.protocol.as_ref().is_none_or(|(version, _)| *version != charter.version) {
            let protocol = concurrency::protocol(&charter.protocol, charter.concurrency);
            let protocol = protocol.map_err(|error| question(error.to_string()))?;
            self.protocol = Some((charter.version, protocol));
        }
        let protocol = self.protocol.as_mut().map(|(_, protocol)| protocol.as_mut());
        Ok(protocol.expect("it was made where there was none"))
    }
}
