//! A tiny database in the test's process: every statement is one transaction, run on a plain state.

#![allow(dead_code)]

pub mod blocks;

use sql::{
    CompileOptions, Context, Invocation, Library, Reader, Scratch, ScratchFile, Session, StatementKind,
    TemporaryTables, bind_endorsed, is_schema_change, prepare,
};
use state::{
    AfterImage, Effects, EndorsedForm, Footprint, PlainState, RowChange, Simulate, Snapshot, apply_command,
    endorsed_effects,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use types::{
    EndorsedEffects, ExecutionVersion, Notifications, Payload, Principal, SessionStep, SqlError, SqlState,
    StatementResult, TransactionId, Value, format_value,
};

/// Steps that a transaction of a test may take, if the test says nothing else.
pub const STEP_LIMIT: u64 = 1_000_000;

/// 2026-11-20 23:00:00 UTC, when the first transaction runs; each later one a second later.
pub const START_MS: u64 = 1_795_215_600_000;

#[derive(Clone)]
pub struct Database {
    pub library: Arc<Library>,
    pub state: PlainState,
    pub height: u64,
    /// Who runs what comes next.
    pub principal: Principal,
    /// Those of the session that [`Database::gateway`] runs statements of.
    pub temporary: TemporaryTables,
    /// Steps that a transaction may take.
    pub step_limit: u64,
    /// Where rows of queries go that do not fit into memory.
    pub scratch: Option<Arc<dyn Scratch>>,
    /// What transactions have notified: channel and payload.
    pub said: Vec<String>,
}

/// Files in memory, for operators that hold so many bytes.
#[derive(Debug, Default)]
pub struct SmallMemory {
    pub operator_bytes: u64,
    /// Bytes that have been written.
    pub written: Arc<AtomicU64>,
    /// Files that there are.
    pub files: Arc<()>,
    /// So many bytes have room.
    pub room: Option<u64>,
    /// Bytes that operators with names have written.
    pub written_by: Arc<Mutex<BTreeMap<&'static str, u64>>>,
}

impl SmallMemory {
    pub fn of(operator_bytes: u64) -> SmallMemory {
        SmallMemory { operator_bytes, ..SmallMemory::default() }
    }
}

impl Scratch for SmallMemory {
    fn file(&self) -> Result<Box<dyn ScratchFile>, SqlError> {
        self.file_for("")
    }

    fn file_for(&self, operator: &'static str) -> Result<Box<dyn ScratchFile>, SqlError> {
        let (written, room) = (self.written.clone(), self.room);
        let written_by = self.written_by.clone();
        let (bytes, _file) = (Vec::new(), self.files.clone());
        Ok(Box::new(FileInMemory { bytes, written, room, operator, written_by, _file }))
    }

    fn operator_bytes(&self) -> u64 {
        self.operator_bytes
    }
}

struct FileInMemory {
    bytes: Vec<u8>,
    written: Arc<AtomicU64>,
    room: Option<u64>,
    operator: &'static str,
    written_by: Arc<Mutex<BTreeMap<&'static str, u64>>>,
    _file: Arc<()>,
}

impl ScratchFile for FileInMemory {
    fn append(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        let written = self.written.fetch_add(bytes.len() as u64, Relaxed) + bytes.len() as u64;
        if self.room.is_some_and(|room| written > room) {
            return Err(SqlError::new(SqlState::DISK_FULL, "no room"));
        }
        let mut written_by = self.written_by.lock().expect("nobody panics with it");
        *written_by.entry(self.operator).or_default() += bytes.len() as u64;
        self.bytes.extend(bytes);
        Ok(())
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), SqlError> {
        let begin = offset as usize;
        bytes.copy_from_slice(&self.bytes[begin..begin + bytes.len()]);
        Ok(())
    }
}

impl Default for Database {
    fn default() -> Database {
        Database::of_version(ExecutionVersion::CURRENT)
    }
}

impl Database {
    /// An empty one with these rules of execution.
    pub fn of_version(version: ExecutionVersion) -> Database {
        let state = PlainState::default();
        let options = CompileOptions { version, ..CompileOptions::default() };
        let library = Library::with_options(state.catalog().clone(), options).expect("an empty catalog");
        let library = Arc::new(library);
        Database {
            library,
            state,
            height: 0,
            principal: Principal::default(),
            temporary: TemporaryTables::default(),
            step_limit: STEP_LIMIT,
            scratch: None,
            said: Vec::new(),
        }
    }

    /// Goes over to other rules, as a ledger does by an amendment.
    pub fn go_over_to(&mut self, version: ExecutionVersion) {
        let library = self.library.with_version(self.state.catalog().clone(), version);
        self.library = Arc::new(library.expect("what one version has stored compiles with the next"));
    }

    /// A database after these scripts.
    pub fn with(scripts: &[&str]) -> Database {
        let mut database = Database::default();
        for script in scripts {
            database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
        }
        database
    }

    /// Who reads here.
    pub fn reader(&self) -> Reader {
        let (principal, timestamp_ms) = (self.principal.clone(), START_MS + 1000 * self.height);
        let scratch = self.scratch.clone();
        Reader { principal, step_limit: self.step_limit, timestamp_ms, scratch, ..Reader::default() }
    }

    /// Where the next transaction runs.
    pub fn context(&self) -> Context {
        Context {
            height: self.height,
            timestamp_ms: START_MS + 1000 * self.height,
            index: 0,
            transaction: TransactionId::default(),
            step_limit: self.step_limit,
        }
    }

    /// What a transaction would do, without doing it. Whatever any test runs must be inside of its footprint.
    pub fn effects(&self, payload: Payload) -> Effects {
        let shown = format!("{payload:?}");
        let invocation =
            Invocation::new(self.library.clone(), self.context(), payload).by(self.principal.clone());
        let effects = invocation.simulate(&self.state).expect("memory can be read");
        if let Ok(footprint) = invocation.footprint(self.state.catalog()) {
            assert!(footprint.covers(&effects), "{shown}: {footprint:#?} and {effects:#?}");
        }
        effects
    }

    /// What a transaction may touch.
    pub fn footprint(&self, payload: Payload) -> Result<Footprint, SqlError> {
        Invocation::new(self.library.clone(), self.context(), payload).footprint(self.state.catalog())
    }

    /// What a script would do.
    pub fn script_effects(&self, sql: &str) -> Effects {
        self.effects(Payload::Script { sql: sql.to_string(), parameters: Vec::new() })
    }

    /// Runs a transaction and applies its commands in order, as a serial protocol does.
    pub fn execute(&mut self, payload: Payload) -> Result<Vec<StatementResult>, SqlError> {
        self.height += 1;
        let schema_change = is_schema_change(&payload, self.library.version());
        let effects = self.effects(payload);
        assert!(effects.catalog.is_none() || schema_change, "a schema change is told before it runs");
        // Every node executes a schema change itself.
        let endorsed = if schema_change { Vec::new() } else { self.after_endorsement(&effects) };
        let mut results = effects.result?;
        let (_, said) = Notifications::split(&results);
        self.said.extend(said.iter().map(|said| format!("{}:{}", said.channel, said.payload)));
        Notifications::take_from(&mut results);
        for command in &effects.commands {
            let current = self.state.get(command.row.table, &command.row.key);
            let change =
                command.function.apply(current.as_ref()).expect("the simulation said that it succeeds");
            if let Some(guard) = command.guard {
                assert_eq!(guard, change != RowChange::Unmatched);
            }
            let value = match change {
                RowChange::Unmatched => continue,
                RowChange::Put(row) => Some(row),
                RowChange::Delete => None,
            };
            self.state.apply(&AfterImage { row: command.row.clone(), value });
        }
        for state in endorsed {
            assert!(state.tables == self.state.tables, "endorsed effects do the same");
        }
        if let Some(catalog) = effects.catalog {
            self.state.change_catalog(catalog.clone());
            let library = self.library.successor(catalog);
            self.library = Arc::new(library.expect("what a schema change made compiles"));
        }
        Ok(results)
    }

    /// The state after what endorsers would sign of this, in each form: sent, read, held against the schema, applied.
    fn after_endorsement(&self, effects: &Effects) -> Vec<PlainState> {
        let forms = [EndorsedForm::Writes, EndorsedForm::Commands];
        let after = |form| {
            let endorsed = endorsed_effects(effects, &self.state, START_MS, form).ok()?;
            let read =
                types::decode_exactly::<EndorsedEffects>(&types::encode(&endorsed)).expect("canonical");
            assert_eq!(read, endorsed);
            let bound = bind_endorsed(&self.library, &read).expect("what was simulated fits the schema");
            let mut state = self.state.clone();
            for command in &bound.commands {
                let current = state.get(command.row.table, &command.row.key);
                let (value, matched) = apply_command(current, command).expect("it has succeeded");
                assert!(command.guard.is_none_or(|guard| guard == matched), "{command:?}");
                state.apply(&AfterImage { row: command.row.clone(), value });
            }
            Some(state)
        };
        forms.into_iter().filter_map(after).collect()
    }

    /// Runs a script with parameters.
    pub fn run_with(&mut self, sql: &str, parameters: Vec<Value>) -> Result<Vec<StatementResult>, SqlError> {
        self.execute(Payload::Script { sql: sql.to_string(), parameters })
    }

    /// Runs a script.
    pub fn run(&mut self, sql: &str) -> Result<Vec<StatementResult>, SqlError> {
        self.run_with(sql, Vec::new())
    }

    /// Calls a procedure.
    pub fn call(&mut self, procedure: &str, arguments: Vec<Value>) -> Result<Vec<StatementResult>, SqlError> {
        self.execute(Payload::Call { procedure: procedure.to_string(), arguments })
    }

    /// Runs a script as the gateway does: reads outside of transactions.
    pub fn gateway(&mut self, sql: &str) -> Result<Vec<StatementResult>, SqlError> {
        let prepared = self.temporary.prepare(&self.library, sql, &[]);
        if prepared
            .is_ok_and(|prepared| prepared.is_some_and(|prepared| self.temporary.are_given_to(&prepared)))
        {
            return self.run_as_block(sql);
        }
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        let context = self.context();
        if let Some(results) =
            self.temporary.run(&self.principal, &self.library, &self.state, &payload, context)
        {
            self.temporary.commit();
            return results.map(|local| local.results);
        }
        let prepared = prepare(&self.library, sql, &[])?;
        match prepared.kind() {
            StatementKind::Read => prepared.query_as(&self.reader(), &self.state, &[]),
            StatementKind::Empty => Ok(Vec::new()),
            _ => self.run(sql),
        }
    }

    /// Runs a statement as a transaction block of its own.
    fn run_as_block(&mut self, sql: &str) -> Result<Vec<StatementResult>, SqlError> {
        let (library, snapshot) = (self.library.clone(), Arc::new(self.state.clone()));
        let context = Context { height: u64::MAX, index: u32::MAX, ..self.context() };
        let (principal, temporary) = (self.principal.clone(), self.temporary.clone());
        let mut block = Session::begin(library, snapshot, context, principal, STEP_LIMIT, false, temporary);
        let result = block.run(step(sql))?;
        let finished = block.finish();
        if let Some(payload) = finished.payload {
            self.execute(payload)?;
        }
        self.temporary = finished.temporary;
        Ok(vec![result])
    }

    /// As a role of the first organisation: the rows of a script's last statement, as text.
    pub fn act(&mut self, role: &str, sql: &str) -> Result<Vec<Vec<String>>, SqlError> {
        self.principal = Principal::new(0, role);
        let results = self.gateway(sql);
        self.principal = Principal::default();
        results.map(|results| results.last().map_or_else(Vec::new, texts))
    }

    /// The rows of a query, as text.
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        let results = self.gateway(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        results.last().map_or_else(Vec::new, texts)
    }

    /// The error that a script ends with.
    pub fn error(&mut self, sql: &str) -> SqlError {
        match self.gateway(sql) {
            Err(error) => error,
            Ok(results) => panic!("{sql}: expected an error, got {results:?}"),
        }
    }
}

/// An empty database with these rules, behind these scripts.
pub fn prepared(version: ExecutionVersion, scripts: &[&str]) -> Database {
    let mut database = Database::of_version(version);
    for script in scripts {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    database
}

/// The tag of the last statement, or the error.
pub fn shown(result: Result<Vec<StatementResult>, SqlError>) -> String {
    match result {
        Ok(results) => results.last().map_or_else(String::new, |result| result.tag.clone()),
        Err(error) => format!("{} {}", error.state, error.message),
    }
}

/// The same, with the rows of a statement that gives some.
pub fn shown_with_rows(result: Result<Vec<StatementResult>, SqlError>) -> String {
    match result.as_ref().ok().and_then(|results| results.last()) {
        Some(last) if !last.columns.is_empty() => {
            texts(last).iter().map(|row| row.join(", ")).collect::<Vec<_>>().join("; ")
        }
        _ => shown(result),
    }
}

/// The rows of a result, NULL as `NULL`.
pub fn texts(result: &StatementResult) -> Vec<Vec<String>> {
    let text = |value: &Value| format_value(value).unwrap_or_else(|| "NULL".to_string());
    result.rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

/// A step of a transaction block from its text: a statement, or SAVEPOINT, ROLLBACK TO and RELEASE.
pub fn step(text: &str) -> SessionStep {
    let name = |prefix: &str| text.strip_prefix(prefix).map(ToString::to_string);
    match (name("SAVEPOINT "), name("ROLLBACK TO "), name("RELEASE ")) {
        (Some(name), _, _) => SessionStep::Savepoint(name),
        (_, Some(name), _) => SessionStep::RollbackTo(name),
        (_, _, Some(name)) => SessionStep::Release(name),
        _ => SessionStep::Run { sql: text.to_string(), parameters: vec![] },
    }
}

/// What a step of a block gives: its rows, its tag where it has none, or its error.
pub fn run_step(session: &mut Session, text: &str) -> String {
    match session.run(step(text)) {
        Ok(result) if result.columns.is_empty() => result.tag,
        Ok(result) => texts(&result).iter().map(|row| row.join(",")).collect::<Vec<_>>().join(";"),
        Err(error) => format!("{} {}", error.state, error.message),
    }
}
