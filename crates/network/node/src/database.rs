//! What the gateway asks, answered by the node's parts.

use crate::charters::DecidedCharters;
use crate::endorsing::{Collector, Endorser};
use crate::history;
use crate::key_watch::KeyWatch;
use crate::metrics::NodeMetrics;
use crate::past::WithPast;
use crate::proving;
use crate::proving_rows;
use crate::published::Published;
use crate::submission::{Submitted, Submitter};
use async_trait::async_trait;
use bytes::Bytes;
use gateway::{
    BlockRow, Database, Executed, FinishedBlock, NodeRow, NodeStatus, Prepared, StateAt, StatementKind,
    TemporaryTables, TransactionBlock, TransactionFilter, TransactionRow,
};
use ledger::Ledger;
use ordering::Ordering;
use state::Snapshot;
use std::any::Any;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool, AtomicU64};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use types::{
    AnswerAt, Catalog, Charter, DataType, Identity, MemoryPool, MemoryShare, Outcome, Payload, Principal,
    ProposalReply, ProposalRequest, Receipt, SessionStep, SignedTransaction, SqlError, SqlState,
    StatementResult, SubmissionRefusal, SubmissionReply, TransactionId, Value,
};

/// How many blocks ahead the expiry height of a session's transaction lies.
const SESSION_EXPIRY_BLOCKS: u64 = 2_000;
/// How long a session waits for its receipt.
const SESSION_WAIT: Duration = Duration::from_secs(60);
/// Who connects under this name, or that of the organisation, is its administrator.
const ADMINISTRATOR: &str = "entente";
/// Steps that a plain SELECT may take; it runs on this node alone.
const QUERY_STEPS_MAX: u64 = 100_000_000;

/// Megabytes that all queries have together where `node.toml` says nothing.
const QUERY_MEMORY_MEGABYTES: u64 = 1024;

/// What all queries of a node have together.
pub(crate) fn query_memory(megabytes: Option<u64>) -> Arc<MemoryPool> {
    MemoryPool::new(megabytes.unwrap_or(QUERY_MEMORY_MEGABYTES).saturating_mul(1 << 20))
}

/// The parts of a node that answer clients.
pub(crate) struct NodeDatabase {
    pub(crate) charters: Arc<DecidedCharters>,
    /// Says when keys expire.
    pub(crate) keys: Arc<KeyWatch>,
    pub(crate) organisation: usize,
    pub(crate) session: Identity,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) published: Arc<Published>,
    pub(crate) submitter: Arc<Submitter>,
    /// Where transactions are executed before they are ordered.
    pub(crate) endorsing: Option<Endorsing>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// When clients are answered who do not say when.
    pub(crate) answer_at: AnswerAt,
    pub(crate) started: Instant,
    /// The time of the newest transaction block of a session, in milliseconds since 1970-01-01 00:00 UTC.
    pub(crate) newest_block_ms: AtomicU64,
    /// What the queries of all sessions have together.
    pub(crate) query_memory: Arc<MemoryPool>,
}

/// What a node does for endorsements.
pub(crate) struct Endorsing {
    /// For other gateways and clients that ask.
    pub(crate) endorser: Arc<Endorser>,
    /// For this node's clients.
    pub(crate) collector: Collector,
}

impl NodeDatabase {
    /// The charter that holds for the next block.
    fn charter(&self) -> Arc<Charter> {
        self.charters.at(self.published.newest().0 + 1)
    }

    /// Empty before the ledger has an organisation at this node's position.
    fn organisation_name(&self) -> String {
        let charter = self.charters.newest();
        charter.organisations.get(self.organisation).map_or_else(String::new, |own| own.name.clone())
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

    /// Has transactions ordered; endorsed first, if they must be and are not. Verifies signatures, so it is called on a
    /// thread that may work.
    fn submit_now(
        &self,
        transactions: Vec<Bytes>,
        answer_at: AnswerAt,
        replies: &mpsc::Sender<SubmissionReply>,
    ) {
        let submitted = (0..).zip(transactions);
        let submitted = submitted.map(|(position, bytes)| Submitted {
            position,
            bytes,
            answer_at,
            replies: replies.clone(),
        });
        let Some(endorsing) = &self.endorsing else {
            self.submitter.submit(submitted.collect());
            return;
        };
        let (proposals, ready): (Vec<Submitted>, Vec<Submitted>) =
            submitted.partition(|one| is_proposal(&one.bytes));
        endorsing.collector.endorse(proposals);
        if !ready.is_empty() {
            self.submitter.submit(ready);
        }
    }

    /// Somebody of this organisation; an empty role is its administrator.
    fn reader(&self, role: &str, interrupt: &Arc<AtomicBool>) -> sql::Reader {
        let interrupt = Arc::clone(interrupt);
        let (principal, timestamp_ms) = (self.principal(role), now_ms());
        let memory = Some(Arc::clone(&self.query_memory));
        sql::Reader { principal, step_limit: QUERY_STEPS_MAX, timestamp_ms, interrupt, memory }
    }

    fn principal(&self, role: &str) -> Principal {
        Principal { organisation: self.organisation as u16, role: role.to_string() }
    }

    /// A query and the newest snapshot; `None` where the query was bound to another catalog.
    fn to_run<'p>(&self, prepared: &'p Prepared) -> Result<Option<(&'p sql::Prepared, WithPast)>, SqlError> {
        self.serving()?;
        let plan = prepared.plan.downcast_ref::<sql::Prepared>().ok_or_else(|| {
            SqlError::new(SqlState::INTERNAL_ERROR, "the statement was prepared by another database")
        })?;
        let (library, snapshot) = self.published.at_one_height();
        let is_current = library.catalog().version == prepared.catalog_version;
        Ok(is_current.then(|| (plan, self.published.with_past(snapshot))))
    }

    fn logged<T: Default>(&self, result: Result<T, ledger::LedgerError>) -> T {
        result.unwrap_or_else(|error| {
            tracing::error!(%error, "the ledger cannot be read");
            T::default()
        })
    }
}

/// Whether a transaction must be endorsed before it can be ordered. What is no transaction is not.
fn is_proposal(bytes: &Bytes) -> bool {
    SignedTransaction::from_bytes(bytes)
        .is_ok_and(|signed| signed.endorsed.is_none() && !sql::is_schema_change(&signed.transaction.payload))
}

fn refused(refusal: SubmissionRefusal) -> SqlError {
    match refusal {
        SubmissionRefusal::Rejected(reason) => reason.to_error(),
        SubmissionRefusal::Aborted(error) | SubmissionRefusal::NotEndorsed(error) => error,
        SubmissionRefusal::EarlyAbort { .. } => {
            SqlError::new(SqlState::SERIALIZATION_FAILURE, refusal.to_string()).hint("Submit it again.")
        }
        SubmissionRefusal::Full => {
            SqlError::new(SqlState::TOO_MANY_CONNECTIONS, SubmissionRefusal::Full.to_string())
        }
        SubmissionRefusal::TooFast { .. } => {
            SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, refusal.to_string())
                .hint("client_transactions_per_second in node.toml is the limit.")
        }
        SubmissionRefusal::NoMember { .. } => {
            SqlError::new(SqlState::CANNOT_CONNECT_NOW, refusal.to_string())
                .hint("SELECT * FROM entente.organisations shows who is a member, and where.")
        }
        SubmissionRefusal::Unknown => {
            SqlError::new(SqlState::QUERY_CANCELED, SubmissionRefusal::Unknown.to_string())
        }
    }
}

/// This node's clock, in milliseconds since 1970-01-01 00:00 UTC.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// A transaction block of a session, on a snapshot of this node.
struct NodeBlock {
    session: sql::Session,
    published: Arc<Published>,
    organisation: u16,
}

impl TransactionBlock for NodeBlock {
    fn catalog_version(&self) -> u64 {
        self.session.catalog_version()
    }

    fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<Prepared, SqlError> {
        let (prepared, temporary) = self.session.prepare(sql, parameter_types)?;
        Ok(Prepared { temporary, ..described(prepared, self.session.catalog_version()) })
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        self.session.catalog()
    }

    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        self.session.set_read_only(read_only)
    }

    fn run(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        self.session.run(step)
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        self.session.interrupt()
    }

    fn finish(self: Box<Self>) -> FinishedBlock {
        let sql::Finished { payload, temporary } = self.session.finish();
        let (published, organisation) = (self.published, self.organisation);
        let temporary = NodeTemporaryTables { published, organisation, tables: temporary };
        FinishedBlock { payload, temporary: Box::new(temporary) }
    }
}

/// A session's temporary tables, beside this node's newest state.
struct NodeTemporaryTables {
    published: Arc<Published>,
    organisation: u16,
    tables: sql::TemporaryTables,
}

impl TemporaryTables for NodeTemporaryTables {
    fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<Option<Prepared>, SqlError> {
        let library = self.published.library();
        let prepared = self.tables.prepare(&library, sql, parameter_types)?;
        let version = library.catalog().version;
        Ok(prepared.map(|prepared| Prepared { temporary: true, ..described(prepared, version) }))
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        self.tables.visible(&self.published.library())
    }

    fn interrupt(&mut self) -> Arc<AtomicBool> {
        self.tables.interrupt()
    }

    fn run(&mut self, role: &str, payload: &Payload) -> Option<Result<Vec<StatementResult>, SqlError>> {
        let principal = Principal { organisation: self.organisation, role: role.to_string() };
        let (library, snapshot) = self.published.at_one_height();
        let results =
            self.tables.run(&principal, &library, snapshot.as_ref(), payload, QUERY_STEPS_MAX, now_ms())?;
        if results.is_ok() {
            self.tables.commit();
        }
        Some(results.map(|local| local.results))
    }

    fn clear(&mut self) {
        self.tables.clear();
    }
}

/// What the gateway is told of a statement.
fn described(prepared: sql::Prepared, catalog_version: u64) -> Prepared {
    let kind = match prepared.kind() {
        sql::StatementKind::Read | sql::StatementKind::Empty => StatementKind::Read,
        _ => StatementKind::Write,
    };
    Prepared {
        parameters: prepared.parameters().to_vec(),
        columns: prepared.columns().to_vec(),
        kind,
        temporary: false,
        catalog_version,
        plan: Arc::new(prepared),
    }
}

#[async_trait]
impl Database for NodeDatabase {
    fn catalog(&self) -> Arc<Catalog> {
        self.published.library().catalog().clone()
    }

    fn prepare(&self, sql: &str, parameter_types: &[DataType]) -> Result<Prepared, SqlError> {
        let library = self.published.library();
        let prepared = sql::prepare(&library, sql, parameter_types)?;
        Ok(described(prepared, library.catalog().version))
    }

    fn query_memory(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.query_memory)
    }

    fn query(
        &self,
        role: &str,
        prepared: &Prepared,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Option<StatementResult>, SqlError> {
        let Some((plan, snapshot)) = self.to_run(prepared)? else { return Ok(None) };
        let results = plan.query_as(&self.reader(role, interrupt), &snapshot, parameters)?;
        Ok(Some(results.into_iter().next_back().unwrap_or_default()))
    }

    fn query_rows(
        &self,
        role: &str,
        prepared: &Prepared,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
        visit: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<Option<()>, SqlError> {
        let Some((plan, snapshot)) = self.to_run(prepared)? else { return Ok(None) };
        plan.query_each(&self.reader(role, interrupt), &snapshot, parameters, visit).map(Some)
    }

    fn answer_at(&self) -> AnswerAt {
        self.answer_at
    }

    fn serving(&self) -> Result<(), SqlError> {
        match self.published.not_serving() {
            None => Ok(()),
            Some(reason) => Err(SqlError::new(
                SqlState::CANNOT_CONNECT_NOW,
                format!("this node does not serve: {reason}"),
            )
            .hint("Connect to another organisation's node.")),
        }
    }

    async fn execute(&self, role: &str, payload: Payload, answer_at: AnswerAt) -> Result<Executed, SqlError> {
        self.serving()?;
        let ahead = SESSION_EXPIRY_BLOCKS.min(u64::from(self.charter().expiry_blocks_max));
        let signed = self.session.sign_as(role.to_string(), payload, self.published.newest().0 + ahead);
        let bytes = Bytes::from(signed.to_bytes());
        if bytes.len() > types::limits::TRANSACTION_BYTES_MAX {
            let error = types::TransactionError::TooLarge { found: bytes.len() };
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error.to_string()));
        }
        let (replies, mut reply) = mpsc::channel(1);
        self.submit_now(vec![bytes], answer_at, &replies);
        drop(replies);
        let result = match tokio::time::timeout(SESSION_WAIT, reply.recv()).await {
            Ok(Some(reply)) => reply.result,
            Ok(None) | Err(_) => Err(SubmissionRefusal::Unknown),
        };
        let Receipt { height, outcome, .. } = result.map_err(refused)?;
        match outcome {
            Outcome::Committed(results) => Ok(Executed { results, height }),
            Outcome::Aborted(error) => Err(error),
            Outcome::Conflict => Err(SqlError::new(
                SqlState::SERIALIZATION_FAILURE,
                "the transaction conflicts with another one of its block",
            )
            .hint("Submit it again.")),
            Outcome::Rejected(reason) => Err(reason.to_error()),
        }
    }

    fn begin(
        &self,
        role: &str,
        read_only: bool,
        temporary: &dyn TemporaryTables,
    ) -> Result<Box<dyn TransactionBlock>, SqlError> {
        self.serving()?;
        let temporary = (temporary as &dyn Any).downcast_ref::<NodeTemporaryTables>().ok_or_else(|| {
            let message = "the session's temporary tables are those of another database";
            SqlError::new(SqlState::INTERNAL_ERROR, message)
        })?;
        let (library, snapshot) = self.published.at_one_height();
        // What nobody runs again may read what other nodes do not keep.
        let snapshot: Arc<dyn Snapshot> = match read_only {
            true => Arc::new(self.published.with_past(snapshot)),
            false => snapshot,
        };
        // Rows without a primary key come last, as they will at the transaction's place.
        let context = sql::Context {
            height: u64::MAX,
            timestamp_ms: self.next_block_ms(),
            index: u32::MAX,
            transaction: TransactionId::default(),
            step_limit: self.charter().meter.transaction_steps,
        };
        let (principal, read_limit) = (self.principal(role), QUERY_STEPS_MAX);
        let tables = temporary.tables.clone();
        let memory = MemoryShare::of(&self.query_memory);
        let session =
            sql::Session::begin(library, snapshot, context, principal, read_limit, read_only, tables)
                .sharing(memory);
        let (published, organisation) = (self.published.clone(), self.organisation as u16);
        Ok(Box::new(NodeBlock { session, published, organisation }))
    }

    fn role_of(&self, user: &str) -> Result<String, SqlError> {
        if user == ADMINISTRATOR || user == self.organisation_name() {
            return Ok(String::new());
        }
        let catalog = self.catalog();
        let Some(role) = catalog.roles.by_name.get(user) else {
            let message = format!("role \"{user}\" does not exist");
            return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION, message)
                .hint("Connect as \"entente\", the administrator of this node's organisation, or CREATE ROLE first."));
        };
        let message = if usize::from(role.organisation) != self.organisation {
            format!("role \"{user}\" belongs to another organisation")
        } else if !role.login {
            format!("role \"{user}\" is not permitted to log in")
        } else {
            return Ok(user.to_string());
        };
        Err(SqlError::new(SqlState::INVALID_AUTHORIZATION, message))
    }

    fn temporary_tables(&self) -> Box<dyn TemporaryTables> {
        Box::new(NodeTemporaryTables {
            published: self.published.clone(),
            organisation: self.organisation as u16,
            tables: sql::TemporaryTables::default().sharing(&self.query_memory),
        })
    }

    fn height(&self) -> u64 {
        self.published.newest().0
    }

    async fn wait_for_height(&self, height: u64) {
        self.published.wait_for(height).await;
    }

    async fn submit(&self, transactions: Vec<Bytes>, answer_at: AnswerAt) -> mpsc::Receiver<SubmissionReply> {
        let (replies, receiver) = mpsc::channel(transactions.len().max(1));
        // Signatures are verified here: tell the runtime that this thread is busy for a while.
        tokio::task::block_in_place(|| self.submit_now(transactions, answer_at, &replies));
        receiver
    }

    async fn endorse(&self, request: ProposalRequest) -> Result<ProposalReply, SqlError> {
        self.serving()?;
        match &self.endorsing {
            Some(endorsing) => endorsing.endorser.answer(request).await,
            None => Err(SqlError::unsupported("endorsement on a ledger that executes after ordering")
                .hint("Submit the transaction.")),
        }
    }

    fn receipt(&self, id: &TransactionId) -> Option<Receipt> {
        let receipt = self.submitter.receipt(id)?;
        // What a node found that a quorum has not found it takes back.
        let certified = self.published.certified();
        let stands = certified.divergence().is_none() || receipt.height <= certified.height();
        stands.then_some(receipt)
    }

    fn receipt_proof(&self, id: &TransactionId) -> Result<String, SqlError> {
        let covering = |height| self.published.certified().covering(height);
        Ok(proving::receipt_proof(&self.ledger, id, covering)?.to_json())
    }

    fn row_proof(
        &self,
        role: &str,
        table: &str,
        path: &[String],
        key: &[String],
    ) -> Result<String, SqlError> {
        self.serving()?;
        let reader = self.reader(role, &Arc::default());
        proving_rows::row_proof((&self.published, &self.ledger), &reader, (table, path), key)
    }

    fn blocks(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<BlockRow> {
        self.logged(history::blocks(&self.charters.newest(), &self.ledger, heights, limit))
    }

    fn transactions(&self, filter: &TransactionFilter, limit: usize) -> Vec<TransactionRow> {
        self.logged(history::transactions(&self.charters.newest(), &self.ledger, filter, limit))
    }

    fn nodes(&self) -> Vec<NodeRow> {
        let newest = self.published.newest();
        let charter = self.charters.newest();
        let members = charter.organisations.iter().enumerate();
        members
            .map(|(position, organisation)| {
                let known = match position == self.organisation {
                    true => Some(newest),
                    false => self.published.certified().told(position),
                };
                NodeRow {
                    organisation: organisation.name.clone(),
                    address: organisation.address.clone(),
                    node_key: organisation.node_key.to_string(),
                    is_this_node: position == self.organisation,
                    height: known.map(|(height, _)| height),
                    state_digest: known.map(|(_, digest)| digest),
                }
            })
            .collect()
    }

    fn status(&self) -> NodeStatus {
        let (height, state_digest) = self.published.newest();
        let recent = self.published.recent().into_iter();
        let charter = self.charter();
        NodeStatus {
            organisation: self.organisation_name(),
            ledger: charter.ledger().to_string(),
            height,
            state_digest: state_digest.to_string(),
            // Outcomes may be certified before they are recorded.
            certified_height: self.published.certified().height().min(height),
            recent: recent
                .map(|(height, digest)| StateAt { height, state_digest: digest.to_string() })
                .collect(),
            pending: self.ordering.status().pending_transactions as u64,
            uptime_seconds: self.started.elapsed().as_secs(),
            execution: charter.execution,
            protocol: charter.protocol.clone(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            execution_version: self.charters.at(height + 1).execution_version,
            execution_version_known: self.charters.known_versions().newest().number(),
            resident_bytes: resident_bytes(),
            diverged: self.published.certified().reported(),
            not_serving: self.published.not_serving(),
            warnings: self.warnings(height),
        }
    }

    fn metrics(&self) -> String {
        self.metrics.text() + &self.ordering.metrics()
    }
}

impl NodeDatabase {
    /// What somebody must do before long: replace a key, or install a newer program.
    fn warnings(&self, height: u64) -> Vec<String> {
        let unknown = self.charters.unknown_version().map(|unknown| unknown.to_string());
        unknown.into_iter().chain(self.keys.warnings(height)).collect()
    }
}

/// Resident memory of this process, 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or(0) * 4096
}
