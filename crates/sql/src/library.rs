//! A catalog with everything compiled.

use crate::execution::no_procedure;
use crate::parse::is_schema_change;
use crate::plpgsql::{self, CompiledProcedure};
use crate::prepare::{Prepared, bind_script};
use crate::sequence::NEXT_VALUE;
use crate::table::{Tables, stored_policy};
use crate::trigger::{CompiledTrigger, Triggers};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use types::{Catalog, DataType, Payload, Policy, Procedure, SessionStep, SqlError, SqlState, TableId, Value};

/// Scripts that a library keeps bound.
const SCRIPTS_MAX: usize = 512;
/// Bytes of a script that is kept; longer ones are rarely repeated.
const SCRIPT_BYTES_MAX: usize = 4 * 1024;

/// Procedures that one call may involve where their policies must hold.
const INVOLVED_MAX: usize = 256;

/// A catalog with everything compiled: tables with their defaults, checks and keys, and procedures.
///
/// It does not change; a schema change makes a new catalog and that a new library.
pub struct Library {
    catalog: Arc<Catalog>,
    options: CompileOptions,
    tables: Tables,
    /// What is wrong with a procedure is said when it is called: a table may have been dropped since it was made.
    procedures: FxHashMap<String, Result<CompiledProcedure, SqlError>>,
    triggers: Triggers,
    /// By procedure, as far as somebody has asked.
    involved: Mutex<FxHashMap<String, Arc<[Involved]>>>,
    scripts: Mutex<ScriptCache>,
}

/// What a transaction may run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Involvement {
    /// The procedures that it calls and what they may call, by name.
    pub procedures: Arc<[Involved]>,
    /// It also does something outside of procedures.
    pub statements: bool,
}

/// A procedure that a transaction involves, and who must endorse that.
#[derive(Clone, Debug, PartialEq)]
pub struct Involved {
    /// Its name.
    pub procedure: String,
    /// `None`: whom the charter names.
    pub policy: Option<Policy>,
}

/// How procedures are compiled. Every node of a ledger must compile alike: what is fused registers fewer reads, and so
/// changes which transactions conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompileOptions {
    /// Whether reading a row, deciding on it and changing it become one command (`plpgsql::fuse`). Off only to measure
    /// and test what it does.
    pub fusion: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { fusion: true }
    }
}

impl Library {
    /// Compiles a catalog.
    ///
    /// # Errors
    /// What is wrong in a default or a check: nothing that a schema change of this crate made.
    pub fn new(catalog: Arc<Catalog>) -> Result<Library, SqlError> {
        Library::with_options(catalog, CompileOptions::default())
    }

    /// Compiles a catalog in another way than ledgers do, for measurements and tests.
    ///
    /// # Errors
    /// As [`Library::new`].
    pub fn with_options(catalog: Arc<Catalog>, options: CompileOptions) -> Result<Library, SqlError> {
        let tables = Tables::new(&catalog)?;
        let compile = |procedure: &Arc<Procedure>| plpgsql::compile(&tables, procedure, options);
        let procedures: FxHashMap<String, Result<CompiledProcedure, SqlError>> =
            catalog.procedures.iter().map(|(name, procedure)| (name.clone(), compile(procedure))).collect();
        let triggers = Triggers::new(&tables, &catalog, options);
        let (involved, scripts) = Default::default();
        Ok(Library { catalog, options, tables, procedures, triggers, involved, scripts })
    }

    /// What a transaction may run, directly or not.
    ///
    /// # Errors
    /// More than 256 procedures; what is wrong with a script.
    pub fn involved(&self, payload: &Payload) -> Result<Involvement, SqlError> {
        let procedure = match payload {
            Payload::Call { procedure, .. } => procedure,
            Payload::Script { sql, parameters } => {
                let (called, statements) = self.called_by_script(sql, parameters)?;
                return Ok(Involvement { procedures: self.find_involved(&called)?, statements });
            }
            Payload::Insert { table, .. } => {
                let procedures = self.find_involved(&self.called_by_insert(table))?;
                return Ok(Involvement { procedures, statements: true });
            }
            Payload::Session { steps, .. } => {
                let (mut all, mut statements) = (Vec::new(), false);
                for step in steps {
                    let (called, more) = match step {
                        SessionStep::Run { sql, parameters } => self.called_by_script(sql, parameters)?,
                        SessionStep::Insert { table, .. } => (self.called_by_insert(table), true),
                        SessionStep::Savepoint(_) | SessionStep::RollbackTo(_) | SessionStep::Release(_) => {
                            continue;
                        }
                    };
                    statements |= more;
                    all.extend(called);
                    // Many statements call the same.
                    all.sort_unstable();
                    all.dedup();
                }
                return Ok(Involvement { procedures: self.find_involved(&all)?, statements });
            }
        };
        if let Some(known) = self.involved.lock().unwrap_or_else(PoisonError::into_inner).get(procedure) {
            return Ok(Involvement { procedures: known.clone(), statements: false });
        }
        let found = self.find_involved(std::slice::from_ref(procedure))?;
        if !found.is_empty() {
            let mut known = self.involved.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(procedure.clone(), found.clone());
        }
        Ok(Involvement { procedures: found, statements: false })
    }

    /// What a script calls, and whether it does anything else.
    fn called_by_script(&self, sql: &str, parameters: &[Value]) -> Result<(Vec<Arc<str>>, bool), SqlError> {
        let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
        let script = self.script(sql, &types)?;
        Ok((script.calls().to_vec(), !script.only_calls()))
    }

    /// What the defaults of a table's columns call, and its triggers.
    fn called_by_insert(&self, table: &str) -> Vec<Arc<str>> {
        let mut called = Vec::new();
        if let Ok(table) = self.tables.get(table) {
            called.extend(self.tables.fired_by(table));
        }
        let columns = self.tables.get(table).map_or(&[][..], |table| &table.columns);
        for default in columns.iter().filter_map(|column| column.default.as_ref()) {
            default.visit_calls(&mut |call| called.push(call.name.clone()));
        }
        called
    }

    fn find_involved(&self, called: &[impl AsRef<str>]) -> Result<Arc<[Involved]>, SqlError> {
        let mut waiting: Vec<&str> = called.iter().map(AsRef::as_ref).collect();
        let mut found: BTreeSet<&str> = BTreeSet::new();
        while let Some(next) = waiting.pop() {
            let Some((name, _)) = self.catalog.procedures.get_key_value(next) else { continue };
            if !found.insert(name) {
                continue;
            }
            if found.len() > INVOLVED_MAX {
                let message = format!(
                    "the transaction may involve more than {INVOLVED_MAX} procedures, whose policies would have to hold"
                );
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
            if let Some(Ok(compiled)) = self.procedures.get(next) {
                waiting.extend(compiled.calls());
            }
            self.triggers.visit_calls(next, &mut |called| waiting.push(called));
        }
        let involve = |name: &str| {
            let text = self.catalog.procedures[name].endorsement.as_deref();
            Ok(Involved { procedure: name.to_string(), policy: text.map(stored_policy).transpose()? })
        };
        found.into_iter().map(involve).collect()
    }

    /// Of these procedures and functions and those that they call, one that has an endorsement policy of its own.
    ///
    /// # Errors
    /// As [`Library::involved`].
    pub(crate) fn with_a_policy(&self, called: &[Arc<str>]) -> Result<Option<String>, SqlError> {
        let involved = self.find_involved(called)?;
        Ok(involved.iter().find(|involved| involved.policy.is_some()).map(|found| found.procedure.clone()))
    }

    /// Whether a procedure or function may change rows, itself or by those that it calls.
    ///
    /// A value of a sequence is drawn in a transaction, at a place in a block, so that is one of them.
    pub(crate) fn may_write(&self, name: &str) -> bool {
        let mut waiting = vec![name];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(next) = waiting.pop() {
            if next == NEXT_VALUE {
                return true;
            }
            // What does not compile ends with an error before it changes anything.
            let Some(Ok(compiled)) = self.procedures.get(next) else { continue };
            if !seen.insert(next) {
                continue;
            }
            if compiled.may_write() {
                return true;
            }
            waiting.extend(compiled.calls());
        }
        false
    }

    /// Name and policy of a table that has one.
    pub fn table_policy(&self, table: TableId) -> Option<(&str, &Policy)> {
        let plan = self.tables.by_id(table).or_else(|| Some(self.tables.unique_index(table)?.0))?;
        Some((plan.name.as_str(), plan.endorsement.as_ref()?))
    }

    /// Compiles another catalog in the same way.
    ///
    /// # Errors
    /// As [`Library::new`].
    pub fn successor(&self, catalog: Arc<Catalog>) -> Result<Library, SqlError> {
        Library::with_options(catalog, self.options)
    }

    /// How it was compiled.
    pub(crate) fn options(&self) -> CompileOptions {
        self.options
    }

    /// What was compiled.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The triggers that fire at changes of a table, in the order of their names.
    pub(crate) fn triggers_of(&self, table: TableId) -> &[Arc<CompiledTrigger>] {
        self.triggers.of(table)
    }

    pub(crate) fn definition(&self, name: &str) -> Option<&Arc<Procedure>> {
        self.catalog.procedures.get(name)
    }

    /// The compiled procedure.
    ///
    /// # Errors
    /// `42883` where there is none; what is wrong with it where it does not compile any more.
    pub(crate) fn procedure(&self, name: &str) -> Result<&CompiledProcedure, SqlError> {
        match self.procedures.get(name) {
            Some(Ok(procedure)) => Ok(procedure),
            Some(Err(error)) => Err(error.clone()),
            None => Err(no_procedure(name, "")),
        }
    }

    /// The script, bound for parameters of these types; from the cache where it is there.
    ///
    /// # Errors
    /// What is wrong in the script.
    pub(crate) fn script(&self, sql: &str, types: &[DataType]) -> Result<Arc<Prepared>, SqlError> {
        let key = (Arc::<str>::from(sql), types.to_vec());
        if let Some(known) = self.scripts.lock().unwrap_or_else(PoisonError::into_inner).known.get(&key) {
            return Ok(known.clone());
        }
        let script = Arc::new(bind_script(self, sql, types)?);
        if sql.len() <= SCRIPT_BYTES_MAX && !is_schema_change(sql) {
            self.scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(key, script.clone());
        }
        Ok(script)
    }
}

type ScriptKey = (Arc<str>, Vec<DataType>);

/// The scripts bound last; the oldest goes first.
#[derive(Default)]
struct ScriptCache {
    known: FxHashMap<ScriptKey, Arc<Prepared>>,
    order: VecDeque<ScriptKey>,
}

impl ScriptCache {
    fn insert(&mut self, key: ScriptKey, script: Arc<Prepared>) {
        if self.known.insert(key.clone(), script).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > SCRIPTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
