//! What a node runs for one session alone: queries, the steps of transaction blocks before they are ordered, and temporary
//! tables. Nobody else runs any of it.

use crate::charters::DecidedCharters;
use crate::past::WithPast;
use crate::published::Published;
use crate::query_files::QueryFiles;
use crate::row_locks::{BlockRowLocks, NodeRowLocks};
use crypto::{Digest, PublicKey};
use gateway::{
    Binding, BoundQuery, FinishedBlock, Prepared, StatementKind, TemporaryTables, TransactionBlock,
};
use sql::{Library, RunFragments, Scratch};
use state::Snapshot;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool, AtomicU64};
use std::time::SystemTime;
use types::{
    Catalog, ClientId, DataType, ExecutionVersion, HeldRow, MemoryPool, MemoryShare, Notice, OutputColumn,
    Payload, Principal, RequestId, SessionStep, SqlError, SqlState, StatementResult, TransactionId, Value,
};

/// Steps that a plain SELECT may take; it runs on this node alone.
const QUERY_STEPS_MAX: u64 = 100_000_000;

/// Megabytes that all queries have together where `node.toml` says nothing.
const QUERY_MEMORY_MEGABYTES: u64 = 1024;

/// What all sessions' own statements run with.
pub(crate) struct LocalExecution {
    organisation: u16,
    /// The key that signs what sessions do.
    session_key: PublicKey,
    charters: Arc<DecidedCharters>,
    published: Arc<Published>,
    /// What the queries of all sessions have together.
    pub(crate) query_memory: Arc<MemoryPool>,
    /// Where their rows go that do not fit into memory.
    scratch: Option<Arc<dyn Scratch>>,
    /// Runs fragments of large queries.
    fragments: Option<Arc<dyn RunFragments>>,
    /// The time of the newest transaction block of a session, in milliseconds since 1970-01-01 00:00 UTC.
    newest_block_ms: AtomicU64,
    /// The rows that transaction blocks have locked.
    pub(crate) row_locks: Arc<NodeRowLocks>,
    /// The same for who locks none.
    seen_row_locks: sql::SharedRowLocks,
}

impl LocalExecution {
    /// What all queries have together, if `node.toml` says so: megabytes of memory, and of files in this folder.
    pub(crate) fn new(
        (organisation, session_key): (usize, PublicKey),
        charters: Arc<DecidedCharters>,
        published: Arc<Published>,
        (memory_megabytes, disk_megabytes, temporary): (Option<u64>, Option<u64>, PathBuf),
        fragments: Option<Arc<dyn RunFragments>>,
    ) -> LocalExecution {
        let query_memory = MemoryPool::new(query_bytes(memory_megabytes));
        let organisation = organisation as u16;
        let scratch = QueryFiles::in_folder(temporary, disk_megabytes, &query_memory);
        let newest_block_ms = AtomicU64::new(0);
        let row_locks: Arc<NodeRowLocks> = Arc::default();
        LocalExecution {
            organisation,
            session_key,
            charters,
            published,
            query_memory,
            scratch,
            fragments,
            newest_block_ms,
            seen_row_locks: row_locks.seen(),
            row_locks,
        }
    }

    /// Whether the node serves clients now.
    ///
    /// # Errors
    /// `57P03` and why not.
    pub(crate) fn serving(&self) -> Result<(), SqlError> {
        match self.published.not_serving() {
            None => Ok(()),
            Some(reason) => Err(SqlError::new(
                SqlState::CANNOT_CONNECT_NOW,
                format!("this node does not serve: {reason}"),
            )
            .hint("Connect to another organisation's node.")),
        }
    }

    /// Somebody of this organisation; an empty role is its administrator.
    pub(crate) fn reader(&self, role: &str, interrupt: &Arc<AtomicBool>) -> sql::Reader {
        let interrupt = Arc::clone(interrupt);
        let (principal, timestamp_ms) = (self.principal(role), now_ms());
        let memory = Some(Arc::clone(&self.query_memory));
        let (scratch, fragments) = (self.scratch.clone(), self.fragments.clone());
        let (step_limit, seed) = (QUERY_STEPS_MAX, random_seed());
        sql::Reader {
            principal,
            step_limit,
            timestamp_ms,
            seed,
            interrupt,
            memory,
            scratch,
            fragments,
            row_locks: Some(self.seen_row_locks.clone()),
        }
    }

    fn principal(&self, role: &str) -> Principal {
        Principal::new(self.organisation, role)
    }

    /// The time of a transaction block: now, and later than that of every other one, because it tells the values of
    /// sequences apart that blocks draw.
    fn next_block_ms(&self) -> u64 {
        let now = now_ms();
        let later = |newest: u64| Some(now.max(newest + 1));
        let newest =
            self.newest_block_ms.fetch_update(atomic::Ordering::Relaxed, atomic::Ordering::Relaxed, later);
        newest.map_or(now, |newest| now.max(newest + 1))
    }
}

/// Bytes that all queries have together, of a node whose `node.toml` says so or nothing.
pub(crate) fn query_bytes(megabytes: Option<u64>) -> u64 {
    megabytes.unwrap_or(QUERY_MEMORY_MEGABYTES).saturating_mul(1 << 20)
}

/// This node's clock, in milliseconds since 1970-01-01 00:00 UTC.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// A statement, bound, to be run on the newest state.
struct NodeQuery {
    local: Arc<LocalExecution>,
    prepared: sql::Prepared,
    binding: Binding,
}

impl NodeQuery {
    /// The newest snapshot; `None` where statements are bound to something else now.
    fn snapshot(&self) -> Result<Option<WithPast>, SqlError> {
        self.local.serving()?;
        let published = &self.local.published;
        let (library, snapshot) = published.at_one_height();
        let is_current = binding_of(&library) == self.binding;
        Ok(is_current.then(|| published.with_past(snapshot)))
    }
}

impl BoundQuery for NodeQuery {
    fn run(
        &self,
        role: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Option<StatementResult>, SqlError> {
        let Some(snapshot) = self.snapshot()? else { return Ok(None) };
        let results = self.prepared.query_as(&self.local.reader(role, interrupt), &snapshot, parameters)?;
        Ok(Some(results.into_iter().next_back().unwrap_or_default()))
    }

    fn visit_rows(
        &self,
        role: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
        visit: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<Option<Vec<Notice>>, SqlError> {
        let Some(snapshot) = self.snapshot()? else { return Ok(None) };
        let reader = self.local.reader(role, interrupt);
        self.prepared.query_each(&reader, &snapshot, parameters, visit).map(Some)
    }
}

/// What statements are bound to that are bound with this library.
pub(crate) fn binding_of(library: &Library) -> Binding {
    Binding { catalog_version: library.catalog().version, execution_version: library.version() }
}

/// What the gateway is told of a statement.
pub(crate) fn described(local: &Arc<LocalExecution>, prepared: sql::Prepared, binding: Binding) -> Prepared {
    let kind = match prepared.kind() {
        sql::StatementKind::Read | sql::StatementKind::Empty => StatementKind::Read,
        _ => StatementKind::Write,
    };
    let restricted = |is_administrator| prepared.restricted_by_policies(is_administrator).map(str::to_string);
    let (restricted_for_roles, restricted_for_administrators) = (restricted(false), restricted(true));
    Prepared {
        restricted_for_roles,
        restricted_for_administrators,
        parameters: prepared.parameters().to_vec(),
        columns: prepared.columns().to_vec(),
        origins: prepared.origins().to_vec(),
        kind,
        lock: prepared.lock(),
        temporary: false,
        is_given_rows: false,
        binding,
        query: Arc::new(NodeQuery { local: local.clone(), prepared, binding }),
    }
}

/// A transaction block of a session, on a snapshot of this node.
struct NodeBlock {
    session: sql::Session,
    /// What its transaction is to be called: its random values are drawn from that.
    request: RequestId,
    /// Of the library that it has begun with, which it keeps to its end.
    execution_version: ExecutionVersion,
    local: Arc<LocalExecution>,
    /// What it has locked; nothing where nobody finishes it.
    row_locks: Option<Arc<BlockRowLocks>>,
}

impl TransactionBlock for NodeBlock {
    fn binding(&self) -> Binding {
        let catalog_version = self.session.catalog_version();
        Binding { catalog_version, execution_version: self.execution_version }
    }

    fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<Prepared, SqlError> {
        let (prepared, temporary) = self.session.prepare(sql, parameter_types)?;
        Ok(Prepared { temporary, ..described(&self.local, prepared, self.binding()) })
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        self.session.catalog()
    }

    fn cursor_columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.session.cursor_columns(name)
    }

    fn has_cursors(&self) -> bool {
        self.session.has_cursors()
    }

    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        self.session.set_read_only(read_only)
    }

    fn run(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        self.local.serving()?;
        self.session.run(step)
    }

    fn awaited_rows(&mut self) -> Vec<HeldRow> {
        self.session.awaited_rows()
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        self.session.interrupt()
    }

    fn finish(self: Box<Self>) -> FinishedBlock {
        let sql::Finished { payload, temporary: tables } = self.session.finish();
        let temporary = Box::new(NodeTemporaryTables { local: self.local, tables });
        let row_locks = self.row_locks.filter(|_| payload.is_some());
        row_locks.iter().for_each(|locks| locks.finish());
        FinishedBlock { payload, request: self.request, temporary, row_locks: Box::new(row_locks) }
    }
}

/// A session's temporary tables, beside this node's newest state.
pub(crate) struct NodeTemporaryTables {
    local: Arc<LocalExecution>,
    tables: sql::TemporaryTables,
}

impl NodeTemporaryTables {
    /// Of a session that has none yet.
    pub(crate) fn none(local: Arc<LocalExecution>) -> NodeTemporaryTables {
        let tables = sql::TemporaryTables::default().sharing(&local.query_memory);
        NodeTemporaryTables { local, tables }
    }
}

impl TemporaryTables for NodeTemporaryTables {
    fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<Option<Prepared>, SqlError> {
        let library = self.local.published.library();
        let prepared = self.tables.prepare(&library, sql, parameter_types)?;
        let (local, binding) = (&self.local, binding_of(&library));
        Ok(prepared.map(|prepared| {
            let is_given_rows = self.tables.are_given_to(&prepared);
            Prepared { temporary: true, is_given_rows, ..described(local, prepared, binding) }
        }))
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        self.tables.visible(&self.local.published.library())
    }

    fn interrupt(&mut self) -> Arc<AtomicBool> {
        self.tables.interrupt()
    }

    fn run(&mut self, role: &str, payload: &Payload) -> Option<Result<Vec<StatementResult>, SqlError>> {
        if let Err(error) = self.local.serving() {
            return Some(Err(error));
        }
        let principal = self.local.principal(role);
        let (library, snapshot) = self.local.published.at_one_height();
        let context = sql::Context {
            height: 0,
            timestamp_ms: now_ms(),
            index: 0,
            transaction: random_seed(),
            step_limit: QUERY_STEPS_MAX,
        };
        let results = self.tables.run(&principal, &library, snapshot.as_ref(), payload, context)?;
        if results.is_ok() {
            self.tables.commit();
        }
        Some(results.map(|local| local.results))
    }

    fn begin(&self, role: &str, read_only: bool) -> Result<Box<dyn TransactionBlock>, SqlError> {
        let LocalExecution { row_locks, published, .. } = &*self.local;
        let row_locks = row_locks.begin(published.applied_height(), published);
        let block = self.begin_at((role, read_only), self.local.next_block_ms(), row_locks.clone())?;
        Ok(Box::new(NodeBlock { row_locks: Some(row_locks), ..block }))
    }

    fn begin_trial(&self, role: &str) -> Result<Box<dyn TransactionBlock>, SqlError> {
        // No block gets its time, so that many of them do not run ahead of the clock.
        let seen = self.local.seen_row_locks.clone();
        Ok(Box::new(self.begin_at((role, false), now_ms(), seen)?))
    }

    fn clear(&mut self) {
        self.tables.clear();
    }
}

impl NodeTemporaryTables {
    fn begin_at(
        &self,
        (role, read_only): (&str, bool),
        timestamp_ms: u64,
        row_locks: sql::SharedRowLocks,
    ) -> Result<NodeBlock, SqlError> {
        let LocalExecution { charters, published, query_memory, .. } = &*self.local;
        self.local.serving()?;
        let (library, snapshot) = published.at_one_height();
        // What nobody runs again may read what other nodes do not keep.
        let snapshot: Arc<dyn Snapshot> = match read_only {
            true => Arc::new(published.with_past(snapshot)),
            false => snapshot,
        };
        let charter = charters.at(published.newest().0 + 1);
        let request = RequestId(crypto::random_bytes());
        let client = ClientId { key: self.local.session_key, request };
        // Rows without a primary key come last, as they will at the transaction's place.
        let context = sql::Context {
            height: u64::MAX,
            timestamp_ms,
            index: u32::MAX,
            transaction: TransactionId(client.session_seed()),
            step_limit: charter.meter.transaction_steps,
        };
        let (principal, read_limit) = (self.local.principal(role), QUERY_STEPS_MAX);
        let tables = self.tables.clone();
        let memory = MemoryShare::of(query_memory);
        let execution_version = library.version();
        let session =
            sql::Session::begin(library, snapshot, context, principal, read_limit, read_only, tables)
                .sharing(memory)
                .of_at_most(charter.block.transaction_bytes_max)
                .locking_rows(row_locks);
        let local = self.local.clone();
        Ok(NodeBlock { session, request, execution_version, local, row_locks: None })
    }
}

/// What random values are drawn from where nobody computes them again.
fn random_seed() -> TransactionId {
    TransactionId(Digest(crypto::random_bytes()))
}
