//! What the gateway asks, answered by the node's parts.

use crate::charters::DecidedCharters;
use crate::endorsing::{Collector, Endorser};
use crate::history;
use crate::holders::Holders;
use crate::key_watch::KeyWatch;
use crate::live::Live;
use crate::local::{self, LocalExecution, NodeTemporaryTables};
use crate::metrics::NodeMetrics;
use crate::own_database::OwnDatabase;
use crate::own_execution::OwnExecution;
use crate::present::Present;
use crate::private::{self, AnswerWhen, AskedOfOffer, Asking, Bundle, PrivateSchemas, Routed};
use crate::process_memory;
use crate::proving;
use crate::proving_rows::ProvenFrom;
use crate::published::Published;
use crate::redaction;
use crate::submission::{Submitted, Submitter, results_of};
use async_trait::async_trait;
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use gateway::{
    Binding, BlockRow, Database, Executed, Formats, NodeRow, NodeStatus, Notifier, OwnDatabaseStatus,
    PeerStatus, Prepared, StateAt, StoreStatus, TemporaryTables, TransactionFilter, TransactionRow,
};
use ledger::Ledger;
use ordering::Ordering;
use sql::Library;
use state::{StoreStatistics, Stores};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, watch};
use types::{
    AnswerAt, Catalog, Charter, DataType, ExecutionModel, ExecutionVersion, HeldRow, Identity, MemoryPool,
    Organisation, PartSubmission, Payload, Presence, ProposalReply, ProposalRequest, Receipt, RequestId,
    SignedTransaction, SqlError, SqlState, SubmissionRefusal, SubmissionReply, TransactionId,
};

/// How many blocks ahead the expiry height of a session's transaction lies.
const SESSION_EXPIRY_BLOCKS: u64 = 2_000;
/// How long a session waits for its receipt.
const SESSION_WAIT: Duration = Duration::from_secs(60);
/// Who connects under this name, or that of the organisation, is its administrator.
const ADMINISTRATOR: &str = "entente";
/// The parts of a node that answer clients.
pub(crate) struct NodeDatabase {
    pub(crate) charters: Arc<DecidedCharters>,
    /// Says when keys expire.
    pub(crate) keys: Arc<KeyWatch>,
    pub(crate) organisation: usize,
    /// The node's.
    pub(crate) folder: PathBuf,
    pub(crate) session: Identity,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) published: Arc<Published>,
    /// Has the store of the state.
    pub(crate) stores: Arc<dyn Stores>,
    /// Other nodes of the organisation that hold schemas.
    pub(crate) holders: Option<Arc<Holders>>,
    pub(crate) submitter: Arc<Submitter>,
    /// Where transactions are executed before they are ordered.
    pub(crate) endorsing: Option<Endorsing>,
    /// The organisation's own database, where there is one.
    pub(crate) own_database: Option<Arc<OwnDatabase>>,
    pub(crate) own_execution: Option<Arc<dyn OwnExecution>>,
    /// What asks other members of schemas, and proves what has happened in them.
    pub(crate) schemas: (Arc<Asking>, Arc<PrivateSchemas>),
    pub(crate) metrics: Arc<NodeMetrics>,
    /// Tells sessions what transactions notify.
    pub(crate) notifier: Arc<Notifier>,
    /// Settings that may change while the node runs.
    pub(crate) live: Arc<Live>,
    /// Says of this process who it is.
    pub(crate) who: Who,
    pub(crate) started: Instant,
    /// Runs what nobody else has to run.
    pub(crate) local: Arc<LocalExecution>,
}

/// Who this process is.
pub(crate) struct Who {
    /// Drawn when it started.
    pub(crate) process: Digest,
    pub(crate) node_key: SecretKey,
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
        let (execution, library) = (self.charter().execution, self.published.library());
        let (proposals, ready): (Vec<Submitted>, Vec<Submitted>) =
            submitted.partition(|one| is_proposal(execution, &library, &one.bytes));
        endorsing.collector.endorse(proposals);
        if !ready.is_empty() {
            self.submitter.submit(ready);
        }
    }

    fn logged<T: Default>(&self, result: Result<T, ledger::LedgerError>) -> T {
        result.unwrap_or_else(|error| {
            tracing::error!(%error, "the ledger cannot be read");
            T::default()
        })
    }
}

/// Whether somebody may have to endorse a transaction before it can be ordered. What is no transaction is not.
pub(crate) fn is_proposal(execution: ExecutionModel, library: &Library, bytes: &Bytes) -> bool {
    if execution == ExecutionModel::WhateverThenAgree && !library.has_table_policies() {
        return false;
    }
    SignedTransaction::from_bytes(bytes).is_ok_and(|signed| {
        signed.endorsed.is_none() && !sql::is_schema_change(&signed.transaction.payload, library.version())
    })
}

/// When a client hears what came of its part.
fn answer_when(answer_at: AnswerAt) -> AnswerWhen {
    AnswerWhen { attested: answer_at == AnswerAt::Attested, within: SESSION_WAIT }
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

#[async_trait]
impl Database for NodeDatabase {
    fn catalog(&self) -> Arc<Catalog> {
        self.published.library().catalog().clone()
    }

    fn prepare(&self, sql: &str, parameter_types: &[DataType]) -> Result<Prepared, SqlError> {
        let library = self.published.library();
        let prepared = sql::prepare(&library, sql, parameter_types)?;
        Ok(local::described(&self.local, prepared, local::binding_of(&library)))
    }

    fn binding(&self) -> Binding {
        local::binding_of(&self.published.library())
    }

    fn query_memory(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.local.query_memory)
    }

    fn transaction_bytes_max(&self) -> usize {
        self.charter().block.transaction_bytes_max as usize
    }

    fn answer_at(&self) -> AnswerAt {
        self.live.answer_at()
    }

    fn formats(&self) -> Formats {
        // Organisations' own databases know one.
        if self.charter().execution == ExecutionModel::WhateverThenAgree {
            return Formats::First;
        }
        match self.published.library().version() {
            version if version < ExecutionVersion::V9 => Formats::First,
            version if version < ExecutionVersion::V15 => Formats::WithoutTextSearch,
            _ => Formats::All,
        }
    }

    fn notifier(&self) -> Arc<Notifier> {
        Arc::clone(&self.notifier)
    }

    fn serving(&self) -> Result<(), SqlError> {
        self.local.serving()
    }

    async fn execute(
        &self,
        role: &str,
        payload: Payload,
        request: RequestId,
        answer_at: AnswerAt,
    ) -> Result<Executed, SqlError> {
        self.serving()?;
        let ahead = SESSION_EXPIRY_BLOCKS.min(u64::from(self.charter().expiry_blocks_max));
        let expires_at = self.published.newest().0 + ahead;
        if let Some(asked) = AskedOfOffer::of(&payload)?
            && self.schemas.1.has_assets()
        {
            return self.answer_offer(asked, role, answer_at).await;
        }
        if let Some(routed) = private::route(self.published.library().catalog(), &payload)? {
            return self.execute_parts(routed, role, (expires_at, answer_at)).await;
        }
        let signed = self.session.sign_request(request, role.to_string(), payload, expires_at);
        let bytes = Bytes::from(signed.to_bytes());
        let (found, limit) = (bytes.len(), self.transaction_bytes_max());
        if found > limit {
            let error = types::TransactionError::TooLarge { found, limit };
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error.to_string()).hint(
                "For many rows use COPY, which makes several transactions outside of a transaction block.",
            ));
        }
        let Receipt { height, outcome, transaction, .. } =
            self.ordered(|replies| self.submit_now(vec![bytes], answer_at, replies)).await?;
        results_of(outcome).map(|results| Executed { results, height, transaction: Some(transaction) })
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
        Box::new(NodeTemporaryTables::none(self.local.clone()))
    }

    fn height(&self) -> u64 {
        self.published.newest().0
    }

    async fn wait_for_height(&self, height: u64) {
        self.published.wait_for(height).await;
    }

    fn rows_left(&self) -> watch::Receiver<u64> {
        self.local.row_locks.left()
    }

    fn are_rows_locked(&self, rows: &[HeldRow]) -> bool {
        self.local.row_locks.are_held(rows)
    }

    async fn submit(&self, transactions: Vec<Bytes>, answer_at: AnswerAt) -> mpsc::Receiver<SubmissionReply> {
        let (replies, receiver) = mpsc::channel(transactions.len().max(1));
        // Signatures are verified here: tell the runtime that this thread is busy for a while.
        tokio::task::block_in_place(|| self.submit_now(transactions, answer_at, &replies));
        receiver
    }

    async fn submit_parts(
        &self,
        submissions: Vec<PartSubmission>,
        answer_at: AnswerAt,
    ) -> mpsc::Receiver<SubmissionReply> {
        let (replies, receiver) = mpsc::channel(submissions.len().max(1));
        let reply = |position: u32, result| {
            // The channel has room for every transaction; an error says that the client has gone.
            let _ = replies.try_send(SubmissionReply { position, result });
        };
        let order = |ready: Vec<Bundle>| {
            let transactions: usize = ready.iter().map(|bundle| bundle.transactions.len()).sum();
            let (replies, receipts) = mpsc::channel(transactions.max(1));
            tokio::task::block_in_place(|| Bundle::submit(ready, &self.submitter, (answer_at, &replies)));
            receipts
        };
        let (height, (asking, _)) = (self.published.newest().0, &self.schemas);
        asking.submit(submissions, (&self.session, height, answer_when(answer_at)), order, reply).await;
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
        let receipt = self.submitter.receipt(id).ok().flatten()?;
        // What a node found that a quorum has not found it takes back.
        let certified = self.published.certified();
        let stands = certified.divergence().is_none() || receipt.height <= certified.height();
        stands.then_some(receipt)
    }

    fn redacted(&self, id: &TransactionId) -> Option<SqlError> {
        self.submitter.receipt(id).err().as_ref().and_then(redaction::told)
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
        let reader = self.local.reader(role, &Arc::default());
        let (_, schemas) = &self.schemas;
        let from = ProvenFrom { published: &self.published, ledger: &self.ledger, schemas };
        // No table has so long a name.
        if let Ok(id) = table.parse() {
            return from.receipt_in_schema(&TransactionId(id), &reader, key);
        }
        from.row(&reader, (table, path), key)
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
            resident_bytes: process_memory::resident_bytes(),
            payloads_from: self.ledger.payloads_from(),
            ledger_bytes: self.ledger.bytes().unwrap_or(0),
            store: self.stores.newest().map(|store| store_status(&store.statistics())),
            database: self.own_database_status(),
            holders: self.holders.as_ref().map(|holders| holders.status()).unwrap_or_default(),
            members: self.members(),
            diverged: self.published.certified().reported(),
            not_serving: self.published.not_serving(),
            warnings: self.warnings(height),
        }
    }

    fn presence(&self, question: &Digest) -> Presence {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let Who { process, node_key } = &self.who;
        Presence::sign(self.charters.ledger(), *process, time.as_millis() as u64, question, node_key)
    }

    fn metrics(&self) -> String {
        if let Some(store) = self.stores.newest() {
            self.metrics.stored(&store.statistics());
        }
        if let Some(own) = self.own_database_status() {
            self.metrics.own_database(&own);
        }
        self.metrics.present(self.present(), &self.folder);
        let holders = self.holders.as_ref().map(|holders| holders.metrics()).unwrap_or_default();
        self.metrics.text() + &self.ordering.metrics() + &holders
    }
}

impl NodeDatabase {
    /// Has a transaction of a session ordered, and waits for its receipt. `submit` hands it on.
    async fn ordered(
        &self,
        submit: impl FnOnce(&mpsc::Sender<SubmissionReply>),
    ) -> Result<Receipt, SqlError> {
        let (replies, mut reply) = mpsc::channel(1);
        submit(&replies);
        drop(replies);
        let result = match tokio::time::timeout(SESSION_WAIT, reply.recv()).await {
            Ok(Some(reply)) => reply.result,
            Ok(None) | Err(_) => Err(SubmissionRefusal::Unknown),
        };
        result.map_err(refused)
    }

    /// The same for a transaction in schemas with members, and what belongs to it.
    async fn ordered_bundle(&self, bundle: Bundle, answer_at: AnswerAt) -> Result<Receipt, SqlError> {
        self.ordered(|replies| Bundle::submit(vec![bundle], &self.submitter, (answer_at, replies))).await
    }

    /// Answers what a session asks about an offer.
    async fn answer_offer(
        &self,
        asked: AskedOfOffer,
        role: &str,
        answer_at: AnswerAt,
    ) -> Result<Executed, SqlError> {
        let (library, charter) = (self.published.library(), self.charter());
        let height = self.published.newest().0;
        let order = async |bundle| self.ordered_bundle(bundle, answer_at).await;
        let (session, when) = ((&self.session, role), answer_when(answer_at));
        let on = (&**library.catalog(), &*charter);
        let (asking, _) = &self.schemas;
        let (results, effective) = asking.offer(asked, session, on, height, when, order).await?;
        Ok(Executed { results, height: effective.unwrap_or(height), transaction: None })
    }

    /// Executes what a session wants in schemas with members: these hold it, the ledger has commitments.
    async fn execute_parts(
        &self,
        routed: Routed,
        role: &str,
        (expires_at, answer_at): (u64, AnswerAt),
    ) -> Result<Executed, SqlError> {
        let (heights, (asking, _)) = ((expires_at, self.published.newest().0), &self.schemas);
        let order = async |bundle| self.ordered_bundle(bundle, answer_at).await;
        let ran = asking.run(routed, (&self.session, role), heights, answer_when(answer_at), order).await;
        ran.map(|(results, height)| Executed { results, height, transaction: None })
    }

    /// Who the members are as far as it is decided, and who of them is there.
    fn members(&self) -> Vec<PeerStatus> {
        let (charter, connected) = (self.charters.newest(), self.ordering.connected());
        let own = self.who.node_key.public_key();
        let certified = self.published.certified();
        let of = |(position, member): (u16, &Organisation)| {
            let is_this_node = member.node_key == own;
            let height = match is_this_node {
                true => Some(self.published.newest().0),
                false => certified.told(position.into()).map(|(height, _)| height),
            };
            PeerStatus {
                organisation: member.name.clone(),
                node_key: member.node_key.to_string(),
                address: member.address.clone(),
                gateway: member.gateway.clone(),
                is_this_node,
                connected: connected.contains(&position) && !is_this_node,
                height,
            }
        };
        charter.members().map(of).collect()
    }

    /// Of the database that has copies of tables, or executes scripts.
    fn own_database_status(&self) -> Option<OwnDatabaseStatus> {
        let own = self.own_database.as_ref().map(|own| own.status());
        let status = own.or_else(|| Some(self.own_execution.as_ref()?.status()))?;
        let certified = self.published.certified().height().min(self.published.newest().0);
        Some(OwnDatabaseStatus { lag_blocks: certified.saturating_sub(status.height), ..status })
    }

    /// What metrics say of the moment.
    fn present(&self) -> Present {
        let height = self.published.newest().0;
        let ordering = self.ordering.status();
        let others = self.nodes().into_iter().filter(|node| !node.is_this_node);
        Present {
            organisation: self.organisation_name(),
            serves: self.published.not_serving().is_none(),
            warnings: self.warnings(height).len(),
            uptime_seconds: self.started.elapsed().as_secs(),
            execution_versions: (
                self.charters.at(height + 1).execution_version,
                self.charters.known_versions().newest().number(),
            ),
            waiting_transactions: ordering.pending_transactions,
            connected_members: ordering.connected_peers,
            ledger: (self.ledger.bytes().unwrap_or(0), self.ledger.payloads_from()),
            members: others.map(|node| (node.organisation, node.height.unwrap_or(0))).collect(),
        }
    }

    /// What somebody must do before long: replace a key, make room, or install a newer program.
    fn warnings(&self, height: u64) -> Vec<String> {
        let unknown = self.charters.unknown_version().map(|unknown| unknown.to_string());
        let is_full = self.stores.newest().is_some_and(|store| store.statistics().waits_for_room);
        let is_full =
            is_full.then(|| "the disk of the state is full: blocks wait until there is room".to_string());
        let limit = process_memory::limit_bytes();
        let memory = limit.and_then(|limit| process_memory::warning(process_memory::resident_bytes(), limit));
        let (_, schemas) = &self.schemas;
        let unknown = unknown.into_iter().chain(self.ordering.trouble());
        let own = unknown.chain(is_full).chain(memory).chain(schemas.warnings());
        own.chain(self.keys.warnings(height)).collect()
    }
}

fn store_status(statistics: &StoreStatistics) -> StoreStatus {
    StoreStatus {
        rows: statistics.rows,
        file_bytes: statistics.file_bytes,
        changed_bytes: statistics.changed_bytes,
        written_bytes: statistics.written_bytes,
        cache_hits: statistics.cache_hits,
        cache_misses: statistics.cache_misses,
        durable_height: statistics.durable_height,
        durable_seconds_ago: statistics.durable_age.map(|age| age.as_secs()),
        waited_ms: statistics.waited.as_millis() as u64,
        waits_for_room: statistics.waits_for_room,
    }
}
