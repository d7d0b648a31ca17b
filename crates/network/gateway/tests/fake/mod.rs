//! A database in memory that understands just enough to test what stands in front of it.
#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    clippy::unwrap_used,
    reason = "a stage set for several tests, of which each uses a part and stops where it is broken"
)]

mod blocks;
mod catalog;
mod history;
mod locks;
mod queries;
mod serving;

use async_trait::async_trait;
use bytes::Bytes;
use crypto::{Digest, sha256};
use gateway::{
    Access, Binding, BlockRow, BoundQuery, Database, Executed, FinishedBlock, Formats, NodeRow, NodeStatus,
    Notifier, Prepared, SharedAccess, StateAt, StatementKind, TemporaryTables, TransactionBlock,
    TransactionFilter, TransactionOutcome, TransactionRow,
};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use types::{
    AnswerAt, Array, Catalog, Check, Column, CompositeType, DataType, ElementType, ExecutionVersion, HeldRow,
    Interval, Language, MemoryPool, Notice, Numeric, Outcome, OutputColumn, Parameter, ParameterMode,
    PartSubmission, Payload, Procedure, Proposal, ProposalRefusal, ProposalReply, ProposalRequest, Receipt,
    RequestId, SessionStep, Severity, SignedTransaction, SqlError, SqlState, StatementResult,
    SubmissionRefusal, SubmissionReply, Table, TableId, TransactionId, Trigger, TriggerEvent, TriggerEvents,
    TriggerTime, TypeId, TypeKind, Value,
};

use blocks::FakeTemporaryTables;
pub use catalog::{catalog, every_type};
use catalog::{changed_schema, create_table};
pub use history::transaction_id;
use history::{block, receipt, transaction};
pub use locks::FakeLock;
use locks::without_session;
use queries::{Inside, Plan, binding_of, prepare, tag};
pub use serving::{connect, serve, serve_with, started, started_at};

pub const BLOCKS: u64 = 150_000;

pub struct Fake {
    pub catalog: Arc<Mutex<Arc<Catalog>>>,
    pub payloads: Mutex<Vec<Payload>>,
    pub rows: Mutex<Vec<Vec<Value>>>,
    /// COPY chunks from this one on (counted from 0) fail.
    pub failing_insert: AtomicUsize,
    /// Transaction blocks do not commit.
    pub conflicting: AtomicBool,
    /// The height that the node has come to.
    pub height: AtomicU64,
    /// The catalog changes before so many of the next queries run.
    pub changes: Arc<AtomicUsize>,
    /// Blocks that were begun.
    pub begun: Arc<AtomicUsize>,
    pub not_serving: Mutex<Option<String>>,
    /// When the last submission wanted to be answered.
    pub asked_for: Mutex<Option<AnswerAt>>,
    pub pages: AtomicUsize,
    /// Queries that were ended early.
    pub interrupted: Arc<AtomicUsize>,
    /// What all queries have together.
    pub memory: Arc<MemoryPool>,
    /// Somebody who was handed rows one by one had enough of them.
    pub stopped: Arc<AtomicBool>,
    /// What is slow on temporary tables may come to its end.
    pub released: Arc<AtomicBool>,
    /// Rows that queries have handed out one by one.
    pub handed_out: Arc<AtomicU64>,
    /// A query fails at this one of them.
    pub fails_at: Arc<AtomicU64>,
    /// Tells sessions what a test notifies.
    pub notifier: Arc<Notifier>,
    /// The advisory lock that there is.
    pub lock: Arc<FakeLock>,
}

impl Default for Fake {
    fn default() -> Fake {
        Fake {
            catalog: Arc::new(Mutex::new(Arc::new(catalog()))),
            payloads: Mutex::default(),
            rows: Mutex::default(),
            failing_insert: AtomicUsize::new(usize::MAX),
            conflicting: AtomicBool::new(false),
            height: AtomicU64::new(7),
            changes: Arc::default(),
            begun: Arc::default(),
            not_serving: Mutex::default(),
            asked_for: Mutex::default(),
            pages: AtomicUsize::new(0),
            interrupted: Arc::default(),
            memory: MemoryPool::new(64 << 20),
            stopped: Arc::default(),
            released: Arc::default(),
            handed_out: Arc::default(),
            fails_at: Arc::default(),
            notifier: Arc::default(),
            lock: Arc::default(),
        }
    }
}

impl Fake {
    fn inside(&self) -> Inside {
        Inside {
            catalog: self.catalog.clone(),
            changes: self.changes.clone(),
            begun: self.begun.clone(),
            interrupted: self.interrupted.clone(),
            stopped: self.stopped.clone(),
            released: self.released.clone(),
            handed_out: self.handed_out.clone(),
            fails_at: self.fails_at.clone(),
            lock: self.lock.clone(),
        }
    }

    fn result_of(&self, sql: &str) -> Result<StatementResult, SqlError> {
        let lower = sql.to_lowercase();
        if lower.contains("fail") {
            let error = SqlError::new(SqlState::CHECK_VIOLATION, "new row violates check constraint");
            return Err(error.detail("Failing row contains (1).").hint("do not fail").at(6));
        }
        if let Some(name) = lower.strip_prefix("create table ") {
            let mut catalog = self.catalog.lock().unwrap();
            let mut next = Catalog::clone(&catalog);
            next.version += 1;
            create_table(&mut next, name);
            *catalog = Arc::new(next);
        }
        let mut result = StatementResult { tag: tag(sql), ..StatementResult::default() };
        if lower.starts_with("select") || lower.starts_with("call out") {
            result.columns = vec![OutputColumn { name: "x".into(), data_type: DataType::Integer }];
            result.rows = vec![vec![Value::Integer(1)]];
        }
        Ok(result)
    }
}

#[async_trait]
impl Database for Fake {
    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.lock().unwrap())
    }

    fn binding(&self) -> Binding {
        self.inside().binding()
    }

    fn prepare(&self, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
        if sql == "select created at 9" && self.height() < 9 {
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, "relation \"created\" does not exist"));
        }
        prepare(&self.inside(), self.catalog().version, sql, types)
    }

    fn role_of(&self, user: &str) -> Result<String, SqlError> {
        match user {
            "nobody" => Err(SqlError::new(SqlState::INVALID_AUTHORIZATION, "role \"nobody\" does not exist")),
            user => Ok(user.to_string()),
        }
    }

    fn query_memory(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.memory)
    }

    fn transaction_bytes_max(&self) -> usize {
        types::limits::TRANSACTION_BYTES_BEFORE as usize
    }

    fn answer_at(&self) -> AnswerAt {
        AnswerAt::Recorded
    }

    fn formats(&self) -> Formats {
        Formats::All
    }

    fn notifier(&self) -> Arc<Notifier> {
        Arc::clone(&self.notifier)
    }

    fn serving(&self) -> Result<(), SqlError> {
        match self.not_serving.lock().unwrap().clone() {
            None => Ok(()),
            Some(reason) => Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, reason)),
        }
    }

    async fn execute(
        &self,
        _: &str,
        payload: Payload,
        _: RequestId,
        _: AnswerAt,
    ) -> Result<Executed, SqlError> {
        self.payloads.lock().unwrap().push(payload.clone());
        let results = match payload {
            Payload::Parts { .. }
            | Payload::SchemaOutcomes { .. }
            | Payload::MovingOutcomes { .. }
            | Payload::HeldParts { .. }
            | Payload::Agreed(_) => {
                unreachable!("sessions make no parts")
            }
            Payload::Session { .. } if self.conflicting.load(Ordering::SeqCst) => {
                Err(types::results_have_changed())
            }
            Payload::Session { steps, .. } => {
                let mut catalog = self.catalog.lock().unwrap();
                let (version, mut made, mut saved) = (catalog.version, Catalog::clone(&catalog), Vec::new());
                for step in steps {
                    match step {
                        SessionStep::Run { sql, .. } | SessionStep::RunGiven { sql, .. } => {
                            made = changed_schema(&made, &sql.to_lowercase()).unwrap_or(made);
                        }
                        SessionStep::Savepoint(name) => saved.push((name, made.clone())),
                        SessionStep::RollbackTo(name) => {
                            let known = saved.iter().rfind(|(known, _)| *known == name);
                            made = known.map_or(made, |(_, made)| made.clone());
                        }
                        SessionStep::Insert { .. } | SessionStep::Release(_) => {}
                    }
                }
                if made != **catalog {
                    *catalog = Arc::new(Catalog { version: version + 1, ..made });
                }
                Ok(Vec::new())
            }
            Payload::Script { sql, .. } if self.lock.prepared(&sql).is_some() => {
                self.lock.run(&sql).into_iter().collect()
            }
            Payload::Script { sql, .. } => {
                without_session(&sql).split(';').map(|sql| self.result_of(sql.trim())).collect()
            }
            Payload::Call { .. } => {
                Ok(vec![StatementResult { tag: "CALL".into(), ..StatementResult::default() }])
            }
            Payload::Insert { rows, .. } => {
                let sent = self.payloads.lock().unwrap().len();
                if sent > self.failing_insert.load(Ordering::SeqCst) {
                    return Err(SqlError::new(SqlState::UNIQUE_VIOLATION, "duplicate key"));
                }
                let tag = format!("INSERT 0 {}", rows.len());
                self.rows.lock().unwrap().extend(rows);
                Ok(vec![StatementResult { tag, ..StatementResult::default() }])
            }
        };
        let results = results?;
        let height = self.height.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(Executed { results, height, transaction: None })
    }

    fn temporary_tables(&self) -> Box<dyn TemporaryTables> {
        let own = Catalog { next_table: TableId::FIRST_TEMPORARY.0, ..Catalog::default() };
        Box::new(FakeTemporaryTables { inside: self.inside(), own })
    }

    fn height(&self) -> u64 {
        self.height.load(Ordering::SeqCst)
    }

    async fn wait_for_height(&self, height: u64) {
        while self.height() < height {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn rows_left(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }

    fn are_rows_locked(&self, _: &[HeldRow]) -> bool {
        false
    }

    async fn submit_parts(
        &self,
        submissions: Vec<PartSubmission>,
        answer_at: AnswerAt,
    ) -> mpsc::Receiver<SubmissionReply> {
        let transactions = submissions.into_iter().map(|one| Bytes::from(one.transaction)).collect();
        self.submit(transactions, answer_at).await
    }

    async fn submit(&self, transactions: Vec<Bytes>, answer_at: AnswerAt) -> mpsc::Receiver<SubmissionReply> {
        *self.asked_for.lock().unwrap() = Some(answer_at);
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            // The last first: replies come in any order.
            for (position, bytes) in transactions.into_iter().enumerate().rev() {
                let result = match SignedTransaction::from_bytes(&bytes) {
                    Ok(signed) => Ok(receipt(signed.transaction.id())),
                    Err(_) if bytes.as_ref() == b"full" => Err(SubmissionRefusal::Full),
                    Err(error) => {
                        Err(SubmissionRefusal::Rejected(types::RejectReason::Malformed(error.to_string())))
                    }
                };
                if sender.send(SubmissionReply { position: position as u32, result }).await.is_err() {
                    return;
                }
            }
        });
        receiver
    }

    async fn endorse(&self, request: ProposalRequest) -> Result<ProposalReply, SqlError> {
        match request.height {
            Some(0) => Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, "this node has too much to do")),
            Some(asked) if asked > BLOCKS => Ok(ProposalReply::NoSuchState { oldest: 1, newest: BLOCKS }),
            _ => {
                let refusal = |proposal: Proposal| {
                    let what = format!("{} bytes", proposal.transaction.len());
                    Err(ProposalRefusal::Rejected(types::RejectReason::Malformed(what)))
                };
                let answers = request.proposals.into_iter().map(refusal).collect();
                Ok(ProposalReply::Answers { height: BLOCKS, answers })
            }
        }
    }

    fn receipt(&self, id: &TransactionId) -> Option<Receipt> {
        (*id == TransactionId(sha256(&[b"known"]))).then(|| receipt(*id))
    }

    fn receipt_proof(&self, id: &TransactionId) -> Result<String, SqlError> {
        match self.receipt(id) {
            Some(receipt) => Ok(format!("{{\"transaction\":\"{}\"}}", receipt.transaction)),
            None => Err(SqlError::new(SqlState::NO_DATA_FOUND, format!("no receipt of transaction {id}"))),
        }
    }

    fn row_proof(
        &self,
        role: &str,
        table: &str,
        path: &[String],
        key: &[String],
    ) -> Result<String, SqlError> {
        match table {
            "accounts" => Ok(format!("{{\"row\":\"{role} {path:?} {key:?}\"}}").replace('"', "'")),
            "new" => Err(SqlError::new(SqlState(*b"55000"), "no checkpoint has it").hint("CHECKPOINT")),
            _ => {
                Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{table}\" does not exist")))
            }
        }
    }

    fn blocks(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<BlockRow> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        let (low, high) = (*heights.start().max(&1), *heights.end().min(&BLOCKS));
        (low..=high).rev().take(limit).map(block).collect()
    }

    fn transactions(&self, filter: &TransactionFilter, limit: usize) -> Vec<TransactionRow> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        let heights = filter.heights.clone().unwrap_or(0..=u64::MAX);
        let (low, high) = (*heights.start().max(&1), *heights.end().min(&BLOCKS));
        let rows =
            (low..=high).rev().flat_map(|height| (0..3).rev().map(move |index| transaction(height, index)));
        let rows = rows.filter(|row| filter.id.is_none_or(|id| id == row.id));
        rows.take(limit).collect()
    }

    fn nodes(&self) -> Vec<NodeRow> {
        (0..4)
            .map(|number: u64| NodeRow {
                organisation: format!("org{number}"),
                address: format!("127.0.0.1:{}", 7000 + number),
                node_key: format!("{number:064x}"),
                is_this_node: number == 1,
                height: (number != 3).then_some(BLOCKS - number),
                state_digest: (number != 3).then(|| sha256(&[&number.to_le_bytes()])),
            })
            .collect()
    }

    fn status(&self) -> NodeStatus {
        NodeStatus {
            organisation: "org1".into(),
            height: BLOCKS,
            recent: vec![StateAt { height: BLOCKS, state_digest: Digest::ZERO.to_string() }],
            not_serving: self.not_serving.lock().unwrap().clone(),
            ..NodeStatus::default()
        }
    }

    fn presence(&self, question: &Digest) -> types::Presence {
        let key = crypto::SecretKey::from_bytes([7; 32]);
        types::Presence::sign(Digest::ZERO, Digest([1; 32]), 1_700_000_000_000, question, &key)
    }

    fn metrics(&self) -> String {
        "# HELP entente_height height\nentente_height 150000\n".into()
    }
}
