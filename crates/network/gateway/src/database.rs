use crate::notifier::Notifier;
use async_trait::async_trait;
use bytes::Bytes;
use crypto::Digest;
use serde::Serialize;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{mpsc, watch};
use types::{
    AnswerAt, Catalog, ColumnOrigin, DataType, ExecutionModel, ExecutionVersion, HeldRow, MemoryPool, Notice,
    OutputColumn, PartSubmission, Payload, Presence, ProposalReply, ProposalRequest, Receipt, RequestId,
    SessionStep, SqlError, StatementResult, SubmissionReply, TransactionId, Value,
};

/// What a statement does with the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// It reads: [`BoundQuery::run`] answers it.
    Read,
    /// It writes (INSERT, UPDATE, DELETE, CALL, CREATE, DROP): it becomes a transaction, [`Payload::Script`].
    Write,
}

/// What a statement is bound to. Where this changes it is to be prepared again: another execution version reads the same
/// statement otherwise, under the same catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// [`Catalog::version`].
    pub catalog_version: u64,
    /// The rules that it runs with.
    pub execution_version: ExecutionVersion,
}

impl Binding {
    /// Whether the catalog is one that only a block has, which has changed the schema. Blocks count such versions from the last of all
    /// numbers down, each anew: that two are equal does not make them the same.
    #[must_use]
    pub fn is_of_block(self) -> bool {
        self.catalog_version > u64::MAX / 2
    }
}

/// A statement that was parsed and bound.
#[derive(Clone)]
pub struct Prepared {
    /// Types of `$1`, `$2`, …
    pub parameters: Vec<DataType>,
    /// Columns of the rows that it returns; empty where it returns none.
    pub columns: Vec<OutputColumn>,
    /// By column, what column of a table or view it is; may be shorter.
    pub origins: Vec<Option<ColumnOrigin>>,
    /// What it does.
    pub kind: StatementKind,
    /// It is a query with FOR UPDATE or its kind, which is called so.
    pub lock: Option<&'static str>,
    /// Whether it concerns the session's temporary tables: [`TemporaryTables::run`] runs it.
    pub temporary: bool,
    /// It writes the ledger and reads temporary tables: it is a step of a transaction block, with which their rows are given.
    pub is_given_rows: bool,
    /// A table whose policies restrict its rows for a role.
    pub restricted_for_roles: Option<String>,
    /// One whose policies restrict them for an administrator.
    pub restricted_for_administrators: Option<String>,
    /// What it was bound to. The gateway prepares again when that has changed.
    pub binding: Binding,
    /// Runs it, where it is a [`StatementKind::Read`] outside of a transaction block.
    pub query: Arc<dyn BoundQuery>,
}

/// A statement that reads, bound and ready to run on the newest applied snapshot. In both methods `parameters` has one value,
/// of the right type or NULL, for each of [`Prepared::parameters`], and the run ends soon after `interrupt` is set: nobody
/// waits any more. `None`, and nothing is run, where statements are no longer bound to what it was bound to: it is to be
/// prepared again.
pub trait BoundQuery: Send + Sync {
    /// All rows.
    ///
    /// # Errors
    /// As PostgreSQL's Execute message.
    fn run(
        &self,
        role: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Option<StatementResult>, SqlError>;

    /// Hands out each row as it is found, until `visit` says that it is enough: what is large is nowhere in memory as a whole,
    /// unless the query needs that itself. Gives the messages of the query.
    ///
    /// # Errors
    /// As [`BoundQuery::run`]; rows may have been handed out before.
    fn visit_rows(
        &self,
        role: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
        visit: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<Option<Vec<Notice>>, SqlError>;
}

/// Rows of the history are asked for by these; everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionFilter {
    /// Heights, both ends included.
    pub heights: Option<RangeInclusive<u64>>,
    /// One transaction.
    pub id: Option<TransactionId>,
}

/// A row of `entente.blocks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// Its height; the first block has 1.
    pub height: u64,
    /// Milliseconds since 1970-01-01 00:00 UTC.
    pub timestamp_ms: u64,
    /// Transactions in it.
    pub transactions: u32,
    /// Those that committed.
    pub committed: u32,
    /// Those that did not.
    pub aborted: u32,
    /// Name of the organisation that proposed it.
    pub proposer: String,
    /// Digest of its header.
    pub digest: Digest,
    /// Digest of the previous block's header.
    pub previous: Digest,
    /// Merkle root over its receipts.
    pub receipts_root: Digest,
    /// State digest after it.
    pub state_digest: Digest,
    /// Length of its encoding.
    pub bytes: u64,
    /// The highest height whose outcome is certified in it or in a block before it.
    pub certified_height: u64,
}

/// How a transaction of the history ended, without its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// Its effects are in the state.
    Committed,
    /// The contract, a constraint or the protocol said no.
    Aborted,
    /// It was not executed.
    Rejected,
}

impl TransactionOutcome {
    /// As `entente.transactions` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            TransactionOutcome::Committed => "committed",
            TransactionOutcome::Aborted => "aborted",
            TransactionOutcome::Rejected => "rejected",
        }
    }
}

/// A row of `entente.transactions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRow {
    /// Height of its block.
    pub height: u64,
    /// Position in the block.
    pub index: u32,
    /// Its id.
    pub id: TransactionId,
    /// Name of the organisation whose client signed it.
    pub organisation: String,
    /// The client's public key, as hexadecimal text.
    pub client: String,
    /// What the client calls it.
    pub request: RequestId,
    /// What it did, for people: `send_payment(1, 2, 300)`, or the SQL text.
    pub call: String,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// SQLSTATE where it did not commit.
    pub sqlstate: Option<String>,
    /// The error's message where it did not commit.
    pub message: Option<String>,
}

/// A row of `entente.nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Name of the organisation that runs it.
    pub organisation: String,
    /// Where the other nodes reach it.
    pub address: String,
    /// Its public key, as hexadecimal text.
    pub node_key: String,
    /// Whether it is the node that answers.
    pub is_this_node: bool,
    /// The newest height that it has attested, as far as this node knows.
    pub height: Option<u64>,
    /// Its state digest at that height.
    pub state_digest: Option<Digest>,
}

/// The state digest after a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateAt {
    /// The height.
    pub height: u64,
    /// The state digest, as hexadecimal text.
    pub state_digest: String,
}

/// Where a node keeps the rows of the state, and what that costs it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct StoreStatus {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of the store's files, without those that checkpoints alone hold.
    pub file_bytes: u64,
    /// Bytes of rows and ids that blocks have changed since the node started.
    pub changed_bytes: u64,
    /// Bytes that were written to files since then, with those of merging.
    pub written_bytes: u64,
    /// Reads of single rows that the cache has answered, of a store that has one.
    pub cache_hits: u64,
    /// Those that it has not.
    pub cache_misses: u64,
    /// Height of the newest durable point: behind it a node that is killed executes blocks again.
    pub durable_height: u64,
    /// Seconds since that was written; `None`: since the node started there was none.
    pub durable_seconds_ago: Option<u64>,
    /// Milliseconds that blocks have waited for the disk since the node started.
    pub waited_ms: u64,
    /// The disk is full: blocks wait for room.
    pub waits_for_room: bool,
}

/// The database in which an organisation keeps tables of its own, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct OwnDatabaseStatus {
    /// `postgres` or `mariadb`.
    pub kind: String,
    /// Where it is, without a password.
    pub address: String,
    /// The tables.
    pub tables: Vec<String>,
    /// It has everything up to this height.
    pub height: u64,
    /// Certified blocks that it does not have yet.
    pub lag_blocks: u64,
    /// `connecting`, `filling`, `following`, `waiting` or `refused`.
    pub state: String,
    /// Why it waits or is refused, and what to do.
    pub problem: Option<String>,
    /// Rows that were written to it since the node started.
    pub rows_written: u64,
    /// Rows that somebody else has changed there since the node started, each put right.
    pub strange_rows: u64,
    /// The last of them.
    pub last_strange: Option<String>,
    /// Comparisons of all rows since the node started.
    pub scans: u64,
    /// Rows that the last one has compared.
    pub scanned_rows: u64,
    /// How long it took, in milliseconds.
    pub scan_ms: u64,
}

/// Another node of the organisation that holds schemas, as `GET /status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct HolderStatus {
    /// What it is called.
    pub name: String,
    /// Where it listens for this node.
    pub address: String,
    /// The schemas that it holds.
    pub schemas: Vec<String>,
    /// Rows that it had at the end of the last block; `None`: this node has executed none with it.
    pub rows: Option<u64>,
}

/// A member of the ledger, as `GET /status` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct PeerStatus {
    /// Name of the organisation.
    pub organisation: String,
    /// Its node key, as hexadecimal text.
    pub node_key: String,
    /// Where the other nodes reach its node.
    pub address: String,
    /// Where its node answers HTTP.
    pub gateway: String,
    /// Whether it is the node that answers.
    pub is_this_node: bool,
    /// Whether it was heard from within the last seconds, over a connection on which it has proved its node key.
    pub connected: bool,
    /// The newest height that it has attested, as far as this node knows.
    pub height: Option<u64>,
}

/// What `GET /status` answers.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct NodeStatus {
    /// Name of the organisation.
    pub organisation: String,
    /// Digest of the charter, as hexadecimal text.
    pub ledger: String,
    /// Height of the newest applied block.
    pub height: u64,
    /// State digest after it, as hexadecimal text.
    pub state_digest: String,
    /// Up to this height the node's outcomes are those of a quorum of organisations.
    pub certified_height: u64,
    /// State digests of the last blocks (about a thousand), ascending.
    pub recent: Vec<StateAt>,
    /// Transactions that wait to be ordered.
    pub pending: u64,
    /// Seconds since the node started.
    pub uptime_seconds: u64,
    /// When transactions are executed, and by whom.
    pub execution: ExecutionModel,
    /// The concurrency control of the charter.
    pub protocol: String,
    /// Version of the program.
    pub version: String,
    /// Version of the rules that the next block is executed with (docs/execution-versions.md).
    pub execution_version: u32,
    /// The newest version that the program knows.
    pub execution_version_known: u32,
    /// Resident memory of the process in bytes.
    pub resident_bytes: u64,
    /// Height of the first block that has its transactions and receipts on this node: others are pruned, or in front of the
    /// checkpoint that the node joined from.
    pub payloads_from: u64,
    /// Bytes of the files of blocks.
    pub ledger_bytes: u64,
    /// What the store of the state has; `None` where it does not tell.
    pub store: Option<StoreStatus>,
    /// The organisation's own database; `None` where it keeps no tables in one.
    pub database: Option<OwnDatabaseStatus>,
    /// Other nodes of the organisation that hold schemas.
    pub holders: Vec<HolderStatus>,
    /// Where its outcomes were not those of a quorum the last time that this was so, since it started: from which block on,
    /// and in which tables.
    pub diverged: Option<String>,
    /// The members of the newest charter that the node knows.
    pub members: Vec<PeerStatus>,
    /// Why the node does not serve (it differs from the others, its disk is full, it catches up); `None` when it does.
    pub not_serving: Option<String>,
    /// What somebody must do before long: node keys that expire within 30 days or have expired.
    pub warnings: Vec<String>,
}

/// What a transaction that has committed leaves with its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// One per statement, and behind them what it notifies.
    pub results: Vec<StatementResult>,
    /// Height of its block.
    pub height: u64,
    /// What it is called; `None` where it is several, in schemas with members.
    pub transaction: Option<TransactionId>,
}

/// A transaction block of a session: its statements run on one snapshot and see what those before them have written.
/// Nothing is ordered before [`TransactionBlock::finish`] makes a transaction of it.
pub trait TransactionBlock: Send {
    /// What its statements are bound to: [`Prepared::binding`] of those that are bound now. A block that changes the schema
    /// has versions of the catalog of its own.
    fn binding(&self) -> Binding;

    /// Binds a statement as it would run now; the session's temporary tables are known.
    ///
    /// # Errors
    /// As [`Database::prepare`].
    fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<Prepared, SqlError>;

    /// The tables that its statements know, the session's temporary ones among them.
    ///
    /// # Errors
    /// A temporary table has the name of a table of the ledger.
    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError>;

    /// The columns of a cursor that a function has left open; FETCH, MOVE and CLOSE of it are steps. `None` where there is no such cursor.
    fn cursor_columns(&self, name: &str) -> Option<Arc<[OutputColumn]>>;

    /// Whether functions have left any cursor open.
    fn has_cursors(&self) -> bool;

    /// What ends the step that runs soon after it is set; nothing more is asked of the block then.
    fn interrupt(&self) -> Arc<AtomicBool>;

    /// From now on it may only read (or write again).
    ///
    /// # Errors
    /// It is too late.
    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError>;

    /// Runs the next step. After an error only [`SessionStep::RollbackTo`] can be next.
    ///
    /// # Errors
    /// What the step ends with.
    fn run(&mut self, step: SessionStep) -> Result<StatementResult, SqlError>;

    /// The rows that its first step waits for, which has ended with [`types::row_is_held`]: the block is to begin anew once nobody has them.
    fn awaited_rows(&mut self) -> Vec<HeldRow>;

    /// It is to be committed.
    fn finish(self: Box<Self>) -> FinishedBlock;
}

/// What a transaction block leaves that is to be committed.
pub struct FinishedBlock {
    /// What is to be ordered; `None` where the block has changed nothing of the ledger.
    pub payload: Option<Payload>,
    /// What that is to be called: its random values are drawn from this.
    pub request: RequestId,
    /// The session's temporary tables once it is final.
    pub temporary: Box<dyn TemporaryTables>,
    /// Its locks on rows, which other blocks see until this is dropped: once its outcome is known.
    pub row_locks: Box<dyn Send>,
}

/// The temporary tables of one session. What concerns them runs at the gateway's node alone, and nothing of it is ordered.
pub trait TemporaryTables: Send {
    /// Binds a statement where they are known; `None` where it does not concern them.
    ///
    /// # Errors
    /// What is wrong in the statement.
    fn prepare(&mut self, sql: &str, parameter_types: &[DataType]) -> Result<Option<Prepared>, SqlError>;

    /// The ledger's newest tables and these.
    ///
    /// # Errors
    /// One has the name of a table of the ledger.
    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError>;

    /// What ends the next run soon after it is set.
    fn interrupt(&mut self) -> Arc<AtomicBool>;

    /// Runs what concerns them, in the name of `role`, and ends its transaction; `None` where the ledger has to run it.
    fn run(&mut self, role: &str, payload: &Payload) -> Option<Result<Vec<StatementResult>, SqlError>>;

    /// A transaction block begins on the newest applied snapshot, with a copy of these tables.
    ///
    /// # Errors
    /// The node does not serve now.
    fn begin(&self, role: &str, read_only: bool) -> Result<Box<dyn TransactionBlock>, SqlError>;

    /// The same of a block that nobody finishes: what statements would give on the newest applied snapshot.
    ///
    /// # Errors
    /// The node does not serve now.
    fn begin_trial(&self, role: &str) -> Result<Box<dyn TransactionBlock>, SqlError>;

    /// Drops them all.
    fn clear(&mut self);
}

/// In which formats a database's statements may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Formats {
    /// The one that sessions begin with.
    #[default]
    First,
    /// Any; texts are searched with the one configuration that sessions begin with.
    WithoutTextSearch,
    /// Any.
    All,
}

/// What the gateway asks of a node. The gateway executes nothing itself.
///
/// Synchronous methods may use the CPU for long; the gateway calls them on threads where that does no harm.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// The catalog of the newest applied snapshot.
    fn catalog(&self) -> Arc<Catalog>;

    /// What statements are bound to now: [`Prepared::binding`] of what [`Database::prepare`] gives.
    fn binding(&self) -> Binding;

    /// The role that somebody who connects under this name acts as, which the other methods are handed; empty for the
    /// organisation's administrator, who may do everything.
    ///
    /// # Errors
    /// `28000` nobody may connect under this name.
    fn role_of(&self, user: &str) -> Result<String, SqlError>;

    /// Parses and binds one statement on the current catalog. `parameter_types` gives the types of the first
    /// parameters; [`DataType::Unknown`] means: infer it.
    ///
    /// # Errors
    /// As PostgreSQL's Parse message; positions are in characters of `sql`, from 1.
    fn prepare(&self, sql: &str, parameter_types: &[DataType]) -> Result<Prepared, SqlError>;

    /// What all queries of this node have together, with their results as long as clients have not got them.
    fn query_memory(&self) -> Arc<MemoryPool>;

    /// Bytes that a transaction may have now: the charter's `block.transaction_bytes_max`.
    fn transaction_bytes_max(&self) -> usize;

    /// Signs with the session's key, orders, and waits until the transaction is final and what `answer_at` says. The
    /// result has one entry per statement; [`Payload::Insert`] gives one.
    ///
    /// Dropping the future stops the wait, not the transaction.
    ///
    /// # Errors
    /// The contract's error where it aborts; a fitting SQLSTATE where it is rejected or cannot be accepted.
    async fn execute(
        &self,
        role: &str,
        payload: Payload,
        request: RequestId,
        answer_at: AnswerAt,
    ) -> Result<Executed, SqlError>;

    /// When clients are answered who do not say when.
    fn answer_at(&self) -> AnswerAt;

    /// In which formats statements may be: [`types::ScriptSettings::format`].
    fn formats(&self) -> Formats;

    /// Who tells sessions that listen what is notified.
    fn notifier(&self) -> Arc<Notifier>;

    /// Whether the node serves clients now.
    ///
    /// # Errors
    /// `57P03` and why not.
    fn serving(&self) -> Result<(), SqlError>;

    /// A session's temporary tables: none yet.
    fn temporary_tables(&self) -> Box<dyn TemporaryTables>;

    /// The newest height whose effects [`BoundQuery::run`] and [`TemporaryTables::begin`] see for sure.
    fn height(&self) -> u64;

    /// Waits until [`Database::height`] is at least `height`.
    async fn wait_for_height(&self, height: u64);

    /// Takes canonical bytes of [`types::SignedTransaction`]s from a client with its own key. One reply per transaction
    /// arrives as soon as `answer_at` allows, in any order; the channel closes after the last.
    async fn submit(&self, transactions: Vec<Bytes>, answer_at: AnswerAt) -> mpsc::Receiver<SubmissionReply>;

    /// The same for transactions in schemas with members: their parts are handed to the members first. A receipt says what came of
    /// the part.
    async fn submit_parts(
        &self,
        submissions: Vec<PartSubmission>,
        answer_at: AnswerAt,
    ) -> mpsc::Receiver<SubmissionReply>;

    /// Executes proposals on one state and endorses what they do, as [`ProposalRequest`] asks.
    ///
    /// # Errors
    /// The node does not endorse now, and why; nothing was executed.
    async fn endorse(&self, request: ProposalRequest) -> Result<ProposalReply, SqlError>;

    /// The receipt of a transaction that is final here.
    fn receipt(&self, id: &TransactionId) -> Option<Receipt>;

    /// Why the ledger has no receipt of a transaction any more, where its members have agreed to redact it.
    fn redacted(&self, _id: &TransactionId) -> Option<SqlError> {
        None
    }

    /// Proves to anybody who has the charter how a transaction has ended: JSON, as `docs/proofs.md` says.
    ///
    /// # Errors
    /// `P0002` there is no receipt, `55000` its outcome is not certified yet.
    fn receipt_proof(&self, id: &TransactionId) -> Result<String, SqlError>;

    /// Proves to anybody who has the charter what stood under a primary key at the newest certified checkpoint: JSON, as
    /// `docs/proofs.md` says. `table`: its name as SQL has it; `path`: schemas in which it is looked for; `key`: the values of
    /// the primary key as text. In a schema with members it is what the block has left that wrote the row last. Where `table` is a
    /// transaction's id and `key` the name of such a schema, it proves how the transaction has ended there.
    ///
    /// # Errors
    /// `42P01` no such table, `42501` the role may not read it, or the organisation is no member of the schema, `42809` it has no
    /// primary key, `22023` and `22P02` the key is none, `P0002` nothing of it was ever in the schema, `55000` it is not certified yet.
    fn row_proof(&self, role: &str, table: &str, path: &[String], key: &[String])
    -> Result<String, SqlError>;

    /// Blocks whose height is in `heights`, the newest first, at most `limit`.
    fn blocks(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<BlockRow>;

    /// Transactions that pass `filter`, the newest first, at most `limit`.
    fn transactions(&self, filter: &TransactionFilter, limit: usize) -> Vec<TransactionRow>;

    /// The nodes of the ledger in the order of the charter.
    fn nodes(&self) -> Vec<NodeRow>;

    /// Changes whenever a transaction block leaves rows that it has locked.
    fn rows_left(&self) -> watch::Receiver<u64>;

    /// Whether any transaction block has locked one of these rows.
    fn are_rows_locked(&self, rows: &[HeldRow]) -> bool;

    /// What `GET /status` answers.
    fn status(&self) -> NodeStatus;

    /// Who answers, and what its clock shows.
    fn presence(&self, question: &Digest) -> Presence;

    /// Prometheus text exposition of the node's metrics.
    fn metrics(&self) -> String;
}
