//! A database in memory that understands just enough to test what stands in front of it.
#![allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    reason = "a stage set for several tests, of which each uses a part and stops where it is broken"
)]

use async_trait::async_trait;
use bytes::Bytes;
use crypto::{Digest, sha256};
use gateway::{
    Access, Binding, BlockRow, BoundQuery, Database, Executed, FinishedBlock, NodeRow, NodeStatus, Prepared,
    StateAt, StatementKind, TemporaryTables, TransactionBlock, TransactionFilter, TransactionOutcome,
    TransactionRow,
};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use types::{
    AnswerAt, Array, Catalog, Check, Column, CompositeType, DataType, ElementType, ExecutionVersion,
    Interval, Language, MemoryPool, Notice, Numeric, Outcome, OutputColumn, Parameter, ParameterMode,
    PartSubmission, Payload, Procedure, Proposal, ProposalRefusal, ProposalReply, ProposalRequest, Receipt,
    RequestId, SessionStep, Severity, SignedTransaction, SqlError, SqlState, StatementResult,
    SubmissionRefusal, SubmissionReply, Table, TableId, TransactionId, Trigger, TriggerEvent, TriggerEvents,
    TriggerTime, TypeId, TypeKind, Value,
};

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
}

fn column(name: &str, data_type: DataType, not_null: bool, default: Option<&str>) -> Column {
    Column { name: name.into(), data_type, not_null, default: default.map(Into::into), generated: false }
}

fn check(name: &str, condition: &str) -> Check {
    Check { name: name.into(), condition: condition.into(), valid: true }
}

pub fn catalog() -> Catalog {
    let accounts = Table {
        id: TableId(1),
        name: "accounts".into(),
        columns: vec![
            column("id", DataType::BigInt, true, None),
            column("owner", DataType::Text(Some(64)), true, Some("'nobody'::character varying")),
            column("balance", DataType::Numeric(Some((12, 2))), false, Some("0")),
            column("active", DataType::Boolean, false, Some("true")),
            column("rate", DataType::Double, false, None),
            column("number", DataType::Integer, false, None),
            column("note", DataType::Text(None), false, None),
            column("changed", DataType::TimestampTz, false, Some("now()")),
        ],
        primary_key: vec![0],
        primary_key_name: "accounts_pkey".into(),
        checks: vec![check("accounts_balance_check", "(balance >= 0)")],
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    let log = Table {
        id: TableId(2),
        name: "Log".into(),
        columns: vec![column("line", DataType::Text(None), false, None)],
        primary_key: Vec::new(),
        primary_key_name: String::new(),
        checks: Vec::new(),
        ..accounts.clone()
    };
    let parameter =
        |name: &str, mode, data_type| Parameter { name: name.into(), mode, data_type, default: None };
    let procedure = Procedure {
        name: "send_payment".into(),
        parameters: vec![
            parameter("source", ParameterMode::In, DataType::BigInt),
            parameter("target", ParameterMode::In, DataType::BigInt),
            parameter("amount", ParameterMode::In, DataType::Numeric(None)),
            parameter("left_over", ParameterMode::InOut, DataType::Numeric(None)),
        ],
        function: None,
        language: Language::PlPgSql,
        search_path: types::SearchPath::default(),
        overload: false,
        body: "\nBEGIN\n  UPDATE accounts SET balance = balance - amount WHERE id = source;\nEND\n".into(),
        endorsement: None,
        security_definer: false,
    };
    let mut catalog = Catalog { version: 1, next_table: 3, ..Catalog::default() };
    catalog.tables.insert(accounts.name.clone(), Arc::new(accounts));
    catalog.tables.insert(log.name.clone(), Arc::new(log));
    catalog.procedures.insert(procedure.name.clone(), Arc::new(procedure));
    let trigger = Trigger {
        name: "noted".into(),
        function: "note".into(),
        arguments: vec!["it's".into()],
        time: TriggerTime::After,
        events: TriggerEvents::default().with(TriggerEvent::Update).with(TriggerEvent::Insert),
        columns: vec!["line".into()],
        per_row: true,
        condition: Some("new.line <> ''".into()),
        old_table: None,
        new_table: None,
        enabled: true,
    };
    let summary = Trigger {
        name: "summary".into(),
        events: TriggerEvents::default().with(TriggerEvent::Delete),
        columns: Vec::new(),
        per_row: false,
        condition: None,
        old_table: Some("gone".into()),
        enabled: false,
        ..trigger.clone()
    };
    let triggers = [trigger, summary].map(|trigger| (trigger.name.clone(), Arc::new(trigger)));
    catalog.triggers.insert(TableId(2), triggers.into());
    catalog
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
        }
    }
}

fn array(element: DataType, values: Vec<Value>) -> Value {
    let element = ElementType::new(element).expect("a type that has arrays");
    Value::Array(Arc::new(Array::new(element, values).expect("small")))
}

/// A row with a value of every type, and one of NULLs.
pub fn every_type() -> (Vec<OutputColumn>, Vec<Vec<Value>>) {
    let columns = [
        ("b", DataType::Boolean),
        ("i", DataType::Integer),
        ("l", DataType::BigInt),
        ("n", DataType::Numeric(Some((10, 3)))),
        ("d", DataType::Double),
        ("t", DataType::Text(None)),
        ("v", DataType::Text(Some(20))),
        ("z", DataType::TimestampTz),
        ("u", DataType::Unknown),
        ("s", DataType::SmallInt),
        ("r", DataType::Real),
        ("a", DataType::Date),
        ("p", DataType::Timestamp),
        ("m", DataType::Time),
        ("e", DataType::Interval),
        ("c", DataType::Char(Some(3))),
        ("y", DataType::Bytea),
        ("q", DataType::Uuid),
        ("ia", DataType::Integer.array().expect("a type that has arrays")),
        ("ta", DataType::Text(None).array().expect("a type that has arrays")),
    ];
    let columns = columns.map(|(name, data_type)| OutputColumn { name: name.into(), data_type }).to_vec();
    let values = vec![
        Value::Boolean(true),
        Value::Integer(-7),
        Value::BigInt(1 << 40),
        Value::Numeric(Numeric::new(-12_345_678, 3)),
        Value::Double(0.1),
        Value::text("naïve\ttext"),
        Value::text("short"),
        Value::TimestampTz(86_400_000_000),
        Value::text("unknown"),
        Value::SmallInt(-2),
        Value::Real(0.1),
        Value::Date(-1),
        Value::Timestamp(86_400_000_001),
        Value::Time(3_600_000_000),
        Value::Interval(Interval { months: 14, days: -3, microseconds: 1 }),
        Value::Char("a  ".into()),
        Value::Bytea([0, 255].into()),
        Value::Uuid([0xa0; 16]),
        array(DataType::Integer, vec![Value::Integer(1), Value::Null]),
        array(DataType::Text(None), vec![Value::text("a b"), Value::text("NULL")]),
    ];
    let nulls = vec![Value::Null; values.len()];
    (columns, vec![values, nulls])
}

/// What queries, blocks and temporary tables have of the database.
#[derive(Clone)]
struct Inside {
    catalog: Arc<Mutex<Arc<Catalog>>>,
    changes: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
    interrupted: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    released: Arc<AtomicBool>,
    handed_out: Arc<AtomicU64>,
    fails_at: Arc<AtomicU64>,
}

impl Inside {
    fn catalog(&self) -> Arc<Catalog> {
        self.catalog.lock().unwrap().clone()
    }

    fn binding(&self) -> Binding {
        binding_of(self.catalog().version)
    }
}

/// The execution version never changes here.
fn binding_of(catalog_version: u64) -> Binding {
    Binding { catalog_version, execution_version: ExecutionVersion::CURRENT }
}

struct FakeQuery {
    inside: Inside,
    plan: Plan,
    columns: Vec<OutputColumn>,
    binding: Binding,
}

impl BoundQuery for FakeQuery {
    fn run(
        &self,
        _: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Option<StatementResult>, SqlError> {
        let Inside { catalog, changes, interrupted, .. } = &self.inside;
        if changes.load(Ordering::SeqCst) > 0 {
            changes.fetch_sub(1, Ordering::SeqCst);
            let mut catalog = catalog.lock().unwrap();
            *catalog = Arc::new(Catalog { version: catalog.version + 1, ..(**catalog).clone() });
        }
        if self.binding != self.inside.binding() {
            return Ok(None);
        }
        let rows = match &self.plan {
            Plan::EveryType => every_type().1,
            Plan::Echo => vec![parameters.to_vec()],
            Plan::Noticed => (1..=2).map(|n| vec![Value::Integer(n)]).collect(),
            Plan::Row(row) => vec![row.clone()],
            Plan::Series(count) => (1..=*count).map(|n| vec![Value::Integer(n)]).collect(),
            Plan::Slow => {
                for _ in 0..6_000 {
                    if interrupt.load(Ordering::Relaxed) {
                        interrupted.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Vec::new()
            }
            Plan::Write => panic!("a write was given to query"),
        };
        let (tag, columns) = (format!("SELECT {}", rows.len()), self.columns.clone());
        Ok(Some(StatementResult { tag, columns, rows, notices: Vec::new() }))
    }

    fn visit_rows(
        &self,
        role: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
        visit: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<Option<Vec<Notice>>, SqlError> {
        let Inside { changes, handed_out, fails_at, stopped, .. } = &self.inside;
        let is_current = changes.load(Ordering::SeqCst) == 0 && self.binding == self.inside.binding();
        let rows: Box<dyn Iterator<Item = Vec<Value>>> = match &self.plan {
            // Nobody has them all.
            Plan::Series(count) if is_current => Box::new((1..=*count).map(|n| vec![Value::Integer(n)])),
            _ => match self.run(role, parameters, interrupt)? {
                Some(result) => Box::new(result.rows.into_iter()),
                None => return Ok(None),
            },
        };
        for row in rows {
            let number = handed_out.fetch_add(1, Ordering::SeqCst) + 1;
            if number == fails_at.load(Ordering::SeqCst) {
                return Err(SqlError::new(SqlState(*b"22012"), "division by zero"));
            }
            if visit(row).is_break() {
                stopped.store(true, Ordering::SeqCst);
                break;
            }
        }
        let report = SqlError::new(SqlState(*b"00000"), "two rows");
        let notice = Notice { severity: Severity::Notice, report };
        Ok(Some(if matches!(self.plan, Plan::Noticed) { vec![notice] } else { Vec::new() }))
    }
}

enum Plan {
    EveryType,
    Echo,
    Noticed,
    Row(Vec<Value>),
    Series(i32),
    Slow,
    Write,
}

/// `VALUES (1 + 1, 'x')`: sums of numbers, and texts.
fn values(lower: &str) -> Option<(Vec<OutputColumn>, Vec<Value>)> {
    let list = lower.strip_prefix("values (")?.strip_suffix(")")?;
    let value = |text: &str| match text.trim().strip_prefix('\'') {
        Some(text) => Value::text(text.trim_end_matches('\'')),
        None => Value::Integer(text.split('+').filter_map(|number| number.trim().parse::<i32>().ok()).sum()),
    };
    let row: Vec<Value> = list.split(',').map(value).collect();
    let column = |(at, value): (usize, &Value)| OutputColumn {
        name: format!("column{}", at + 1),
        data_type: value.data_type(),
    };
    Some((row.iter().enumerate().map(column).collect(), row))
}

/// `SELECT CAST(NULL AS type)`.
fn null_of(lower: &str) -> Option<Result<DataType, SqlError>> {
    let name = lower.strip_prefix("select cast(null as ")?.strip_suffix(")")?;
    Some(match name {
        "int" => Ok(DataType::Integer),
        "text" => Ok(DataType::Text(None)),
        other => {
            let message = format!("type \"{other}\" does not exist");
            Err(SqlError::new(SqlState(*b"42704"), message).at(21))
        }
    })
}

fn tag(sql: &str) -> String {
    let mut words = sql.split_whitespace();
    let first = words.next().unwrap_or_default().to_uppercase();
    match first.as_str() {
        "INSERT" => format!("INSERT 0 {}", sql.matches('(').count().max(1)),
        "CREATE" | "DROP" => format!("{first} {}", words.next().unwrap_or_default().to_uppercase()),
        "UPDATE" | "DELETE" => format!("{first} 1"),
        "SELECT" => "SELECT 1".into(),
        other => other.into(),
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

/// A table of one column with the next number; `definition` is what stands behind CREATE TABLE.
fn create_table(catalog: &mut Catalog, definition: &str) {
    let name = definition.split(['(', ' ']).next().unwrap_or_default().to_string();
    let table = Table {
        id: TableId(catalog.next_table),
        name: name.clone(),
        columns: vec![column("a", DataType::Integer, true, None)],
        primary_key: vec![0],
        primary_key_name: format!("{name}_pkey"),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    catalog.next_table += 1;
    catalog.tables.insert(name, Arc::new(table));
}

/// What a statement makes of the catalog; `None` where it changes no schema.
fn changed_schema(catalog: &Catalog, lower: &str) -> Option<Catalog> {
    let mut next = catalog.clone();
    if let Some(definition) = lower.strip_prefix("create table ") {
        create_table(&mut next, definition);
    } else if let Some(name) = lower.strip_prefix("create type ") {
        let name = name.strip_suffix(" as (a int)")?.to_string();
        let id = TypeId(next.next_type.max(1));
        next.next_type = id.0 + 1;
        let fields = vec![OutputColumn { name: "a".into(), data_type: DataType::Integer }];
        let made = CompositeType { id, name: name.clone(), fields, kind: TypeKind::default() };
        next.types.insert(name, Arc::new(made));
    } else {
        next.tables.remove(lower.strip_prefix("drop table ")?)?;
    }
    Some(next)
}

/// The tables of a catalog, and temporary ones.
fn with_temporary(catalog: &Arc<Catalog>, temporary: &Catalog) -> Arc<Catalog> {
    if temporary.tables.is_empty() {
        return catalog.clone();
    }
    let mut all = Catalog::clone(catalog);
    all.tables.extend(temporary.tables.clone());
    Arc::new(all)
}

/// A block that remembers what was done in it. Its statements give what those of transactions give.
struct FakeBlock {
    inside: Inside,
    catalog: Arc<Catalog>,
    /// Changes of the schema, undone ones too.
    schema_changes: u64,
    read_only: bool,
    writes: bool,
    steps: Vec<SessionStep>,
    /// With the catalog at each.
    savepoints: Vec<(String, Arc<Catalog>)>,
    temporary: Catalog,
}

impl FakeBlock {
    /// As a node counts: from the last of all numbers down, in every block.
    fn version(&self) -> u64 {
        if self.schema_changes == 0 { self.catalog.version } else { u64::MAX - self.schema_changes }
    }
}

impl TransactionBlock for FakeBlock {
    fn binding(&self) -> Binding {
        binding_of(self.version())
    }

    fn prepare(&mut self, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
        prepare(&self.inside, self.version(), sql, types)
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        Ok(with_temporary(&self.catalog, &self.temporary))
    }

    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        self.read_only = read_only;
        Ok(())
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::default()
    }

    fn run(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        self.steps.push(step.clone());
        let result = |tag: &str| Ok(StatementResult { tag: tag.into(), ..StatementResult::default() });
        match step {
            SessionStep::Run { sql, .. } => {
                let lower = sql.to_lowercase();
                if lower.contains("slow") {
                    std::thread::sleep(Duration::from_millis(1_500));
                }
                if lower.contains("fail") {
                    return Err(SqlError::new(
                        SqlState::CHECK_VIOLATION,
                        "new row violates check constraint",
                    ));
                }
                if let Some(count) = lower.strip_prefix("select series ") {
                    let rows = (1..=count.parse().unwrap()).map(|n| vec![Value::Integer(n)]).collect();
                    let columns = vec![OutputColumn { name: "n".into(), data_type: DataType::Integer }];
                    let tag = format!("SELECT {count}");
                    return Ok(StatementResult { tag, columns, rows, notices: Vec::new() });
                }
                if let Some((columns, row)) = values(&lower) {
                    let (tag, notices) = ("SELECT 1".into(), Vec::new());
                    return Ok(StatementResult { tag, columns, rows: vec![row], notices });
                }
                if lower.starts_with("select") {
                    let columns = vec![OutputColumn { name: "n".into(), data_type: DataType::Integer }];
                    let rows = vec![vec![Value::Integer(1)]];
                    return Ok(StatementResult {
                        tag: "SELECT 1".into(),
                        columns,
                        rows,
                        notices: Vec::new(),
                    });
                }
                if self.read_only {
                    let message = "cannot execute this in a read-only transaction";
                    return Err(SqlError::new(SqlState::READ_ONLY_TRANSACTION, message));
                }
                if let Some(name) = lower.strip_prefix("create temp table ") {
                    create_table(&mut self.temporary, name);
                    return result("CREATE TABLE");
                }
                if let Some(next) = changed_schema(&self.catalog, &lower) {
                    self.schema_changes += 1;
                    self.catalog = Arc::new(Catalog { version: self.version(), ..next });
                }
                self.writes = true;
                result(&tag(&sql))
            }
            SessionStep::Insert { rows, .. } => {
                self.writes = true;
                result(&format!("COPY {}", rows.len()))
            }
            SessionStep::Savepoint(name) => {
                self.savepoints.push((name, self.catalog.clone()));
                result("SAVEPOINT")
            }
            SessionStep::RollbackTo(name) | SessionStep::Release(name) => {
                if let Some((_, catalog)) = self.savepoints.iter().rfind(|(known, _)| *known == name) {
                    self.schema_changes += u64::from(self.schema_changes > 0);
                    self.catalog = catalog.clone();
                    return result("ROLLBACK");
                }
                let message = format!("savepoint \"{name}\" does not exist");
                Err(SqlError::new(SqlState::INVALID_SAVEPOINT, message))
            }
        }
    }

    fn finish(self: Box<Self>) -> FinishedBlock {
        let (now_ms, results) = (0, Digest::ZERO);
        let payload = self.writes.then_some(Payload::Session { steps: self.steps, now_ms, results });
        FinishedBlock {
            payload,
            request: RequestId::default(),
            temporary: Box::new(FakeTemporaryTables { inside: self.inside, own: self.temporary }),
        }
    }
}

/// Knows `create temp table`, and `temp slow`, which goes on until it is released, or for a minute, whether anybody waits for it or not.
struct FakeTemporaryTables {
    inside: Inside,
    /// Nothing but these tables.
    own: Catalog,
}

impl TemporaryTables for FakeTemporaryTables {
    fn prepare(&mut self, sql: &str, _: &[DataType]) -> Result<Option<Prepared>, SqlError> {
        let prepared = || {
            let (kind, version) = (StatementKind::Write, catalog().version);
            let prepared = describe(&self.inside, version, Vec::new(), (kind, Vec::new(), Plan::Slow));
            Prepared { temporary: true, ..prepared }
        };
        Ok((sql == "temp slow" || sql.to_lowercase().starts_with("create temp table ")).then(prepared))
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        Ok(with_temporary(&self.inside.catalog(), &self.own))
    }

    fn interrupt(&mut self) -> Arc<AtomicBool> {
        Arc::default()
    }

    fn run(&mut self, _: &str, payload: &Payload) -> Option<Result<Vec<StatementResult>, SqlError>> {
        if let Payload::Script { sql, .. } = payload
            && let Some(definition) = sql.to_lowercase().strip_prefix("create temp table ")
        {
            create_table(&mut self.own, definition);
            return Some(Ok(vec![StatementResult { tag: "CREATE TABLE".into(), ..Default::default() }]));
        }
        for _ in 0..6_000 {
            if self.inside.released.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Ok(vec![StatementResult { tag: "SLOW".into(), ..StatementResult::default() }]))
    }

    fn begin(&self, _: &str, read_only: bool) -> Result<Box<dyn TransactionBlock>, SqlError> {
        let (inside, temporary) = (self.inside.clone(), self.own.clone());
        inside.begun.fetch_add(1, Ordering::SeqCst);
        let catalog = inside.catalog();
        let (schema_changes, writes, steps, savepoints) = (0, false, Vec::new(), Vec::new());
        let block =
            FakeBlock { inside, catalog, schema_changes, read_only, writes, steps, savepoints, temporary };
        Ok(Box::new(block))
    }

    fn clear(&mut self) {
        self.own.tables.clear();
    }
}

fn describe(
    inside: &Inside,
    catalog_version: u64,
    parameters: Vec<DataType>,
    (kind, columns, plan): (StatementKind, Vec<OutputColumn>, Plan),
) -> Prepared {
    let binding = binding_of(catalog_version);
    let query = FakeQuery { inside: inside.clone(), plan, columns: columns.clone(), binding };
    Prepared {
        parameters,
        columns,
        kind,
        temporary: false,
        restricted_for_roles: None,
        restricted_for_administrators: None,
        binding,
        query: Arc::new(query),
    }
}

fn prepare(
    inside: &Inside,
    catalog_version: u64,
    sql: &str,
    types: &[DataType],
) -> Result<Prepared, SqlError> {
    let lower = sql.to_lowercase();
    let number = OutputColumn { name: "n".into(), data_type: DataType::Integer };
    let holes = (1..).take_while(|n| sql.contains(&format!("${n}"))).count().max(types.len());
    let parameters: Vec<DataType> =
        (0..holes).map(|n| types.get(n).copied().unwrap_or(DataType::Unknown)).collect();
    if let Some((columns, row)) = values(&lower).filter(|_| !lower.contains("()") && !lower.contains("(*")) {
        return Ok(describe(
            inside,
            catalog_version,
            parameters,
            (StatementKind::Read, columns, Plan::Row(row)),
        ));
    }
    if let Some(null) = null_of(&lower) {
        let columns = vec![OutputColumn { data_type: null?, ..number }];
        let plan = Plan::Row(vec![Value::Null]);
        return Ok(describe(inside, catalog_version, parameters, (StatementKind::Read, columns, plan)));
    }
    let statement = match lower.as_str() {
        "select every_type" => (StatementKind::Read, every_type().0, Plan::EveryType),
        "select version" => {
            let column = OutputColumn { name: format!("v{catalog_version}"), ..number };
            (StatementKind::Read, vec![column], Plan::Series(1))
        }
        "values (count(*))" => {
            let message = "aggregate functions are not allowed in VALUES";
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message).at(9));
        }
        "values (writes())" => (StatementKind::Write, vec![number], Plan::Write),
        "select noticed" => (StatementKind::Read, vec![number], Plan::Noticed),
        "select slow" => (StatementKind::Read, vec![number], Plan::Slow),
        "select missing" => {
            let error = SqlError::new(SqlState::UNDEFINED_COLUMN, "column \"missing\" does not exist");
            return Err(error.at(8).hint("name another"));
        }
        echo if echo.starts_with("select $1") => {
            let columns = parameters.iter().enumerate();
            let columns = columns.map(|(n, t)| OutputColumn { name: format!("c{n}"), data_type: *t });
            (StatementKind::Read, columns.collect(), Plan::Echo)
        }
        explain if explain.starts_with("explain ") => {
            let from = explain.find("delete").unwrap_or(0);
            let plan = vec![Value::text(format!("plan of {}", &explain[from..]))];
            let column = OutputColumn { name: "QUERY PLAN".into(), data_type: DataType::Text(None) };
            (StatementKind::Read, vec![column], Plan::Row(plan))
        }
        series if series.starts_with("select series ") => {
            let count = series.trim_start_matches("select series ").parse().unwrap_or(0);
            (StatementKind::Read, vec![number], Plan::Series(count))
        }
        call if call.starts_with("call out") => {
            (StatementKind::Write, vec![OutputColumn { name: "x".into(), ..number }], Plan::Write)
        }
        other => match other.split_whitespace().next().unwrap_or_default() {
            "insert" | "update" | "delete" | "call" | "create" | "drop" => {
                (StatementKind::Write, Vec::new(), Plan::Write)
            }
            "select" => (StatementKind::Read, vec![number], Plan::Series(1)),
            word => {
                let message = format!("syntax error at or near \"{word}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(1));
            }
        },
    };
    Ok(describe(inside, catalog_version, parameters, statement))
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

    fn answer_at(&self) -> AnswerAt {
        AnswerAt::Recorded
    }

    fn has_formats(&self) -> bool {
        true
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
                        SessionStep::Run { sql, .. } => {
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
            Payload::Script { sql, .. } => sql.split(';').map(|sql| self.result_of(sql.trim())).collect(),
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
        Ok(Executed { results: results?, height: self.height.fetch_add(1, Ordering::SeqCst) + 1 })
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

fn receipt(transaction: TransactionId) -> Receipt {
    let (columns, rows) = every_type();
    let result = StatementResult { tag: "SELECT 2".into(), columns, rows, notices: Vec::new() };
    Receipt { transaction, height: 5, index: 1, outcome: Outcome::Committed(vec![result]) }
}

fn block(height: u64) -> BlockRow {
    BlockRow {
        height,
        timestamp_ms: 1_700_000_000_000 + height,
        transactions: 3,
        committed: 2,
        aborted: 1,
        proposer: format!("org{}", height % 4),
        digest: sha256(&[b"block", &height.to_le_bytes()]),
        previous: sha256(&[b"block", &(height - 1).to_le_bytes()]),
        receipts_root: Digest::ZERO,
        state_digest: Digest::ZERO,
        bytes: 1_000,
        certified_height: height.saturating_sub(1),
    }
}

pub fn transaction_id(height: u64, index: u32) -> TransactionId {
    TransactionId(sha256(&[&height.to_le_bytes(), &index.to_le_bytes()]))
}

fn transaction(height: u64, index: u32) -> TransactionRow {
    let aborted = index == 2;
    TransactionRow {
        height,
        index,
        id: transaction_id(height, index),
        organisation: format!("org{}", index),
        client: "c".repeat(64),
        request: RequestId([7; 16]),
        call: format!("send_payment({height}, {index}, 300)"),
        outcome: if aborted { TransactionOutcome::Aborted } else { TransactionOutcome::Committed },
        sqlstate: aborted.then(|| "P0001".to_string()),
        message: aborted.then(|| "not enough money".to_string()),
    }
}

/// A gateway in front of `fake`: ports of Postgres and HTTP.
pub async fn serve(fake: Arc<Fake>) -> (u16, u16) {
    serve_with(fake, Access::default()).await
}

/// A gateway that lets in whom `access` says.
pub async fn serve_with(fake: Arc<Fake>, access: Access) -> (u16, u16) {
    let database: Arc<dyn Database> = fake;
    let postgres = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ports = (postgres.local_addr().unwrap().port(), http.local_addr().unwrap().port());
    tokio::spawn(gateway::serve_postgres(postgres, Arc::clone(&database), access));
    tokio::spawn(gateway::serve_http(http, database));
    ports
}
