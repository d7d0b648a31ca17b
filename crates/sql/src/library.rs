//! A catalog with everything compiled.

use crate::execution::no_procedure;
use crate::parse::is_schema_change;
use crate::plpgsql::{self, CompiledProcedure};
use crate::prepare::{Prepared, bind_script};
use crate::table::Tables;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use types::{Catalog, DataType, Procedure, SqlError};

/// Scripts that a library keeps bound.
const SCRIPTS_MAX: usize = 512;
/// Bytes of a script that is kept; longer ones are rarely repeated.
const SCRIPT_BYTES_MAX: usize = 4 * 1024;

/// A catalog with everything compiled: tables with their defaults, checks and keys, and procedures.
///
/// It does not change; a schema change makes a new catalog and that a new library.
pub struct Library {
    catalog: Arc<Catalog>,
    options: CompileOptions,
    tables: Tables,
    /// What is wrong with a procedure is said when it is called: a table may have been dropped since it was made.
    procedures: FxHashMap<String, Result<CompiledProcedure, SqlError>>,
    scripts: Mutex<ScriptCache>,
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
        let tables = Tables::new(catalog.tables.values())?;
        let compile = |procedure: &Arc<Procedure>| plpgsql::compile(&tables, procedure, options);
        let procedures =
            catalog.procedures.iter().map(|(name, procedure)| (name.clone(), compile(procedure))).collect();
        Ok(Library { catalog, options, tables, procedures, scripts: Mutex::default() })
    }

    /// Compiles another catalog in the same way.
    ///
    /// # Errors
    /// As [`Library::new`].
    pub fn successor(&self, catalog: Arc<Catalog>) -> Result<Library, SqlError> {
        Library::with_options(catalog, self.options)
    }

    /// What was compiled.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
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
