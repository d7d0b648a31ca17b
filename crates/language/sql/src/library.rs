//! A catalog with everything compiled.

use crate::script::BoundScript;
use crate::triggers::Triggers;
use plan::advisory::AdvisoryFunction;
use plan::assets::AssetFunction;
use plan::notify::NOTIFY;
use plan::overload::{Argument, choose_for_inputs};
use plan::polymorphic::{Actual, Callee, is_polymorphic};
use plan::routines::{Routine, no_procedure};
use plan::sequence::{NEXT_VALUE, SET_VALUE};
use plan::tables::Tables;
use plpgsql::{self, CompileOptions, CompiledProcedure};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use types::session_format::{SessionFormat, within_format};
use types::{Catalog, DataType, ExecutionVersion, Policy, Procedure, SqlError, TableId, Value, ValueLimits};

/// Scripts that a library keeps bound.
const SCRIPTS_MAX: usize = 512;
/// Polymorphic functions that it keeps compiled, each for one set of types.
const INSTANCES_MAX: usize = 1_024;

/// A catalog with everything compiled: tables with their defaults, checks and keys, and procedures.
///
/// It does not change; a schema change makes a new catalog and that a new library.
pub struct Library {
    catalog: Arc<Catalog>,
    options: CompileOptions,
    tables: Tables,
    has_table_policies: bool,
    /// What is wrong with a procedure is said when it is called: a table may have been dropped since it was made.
    procedures: FxHashMap<String, Result<CompiledProcedure, SqlError>>,
    pub(crate) triggers: Triggers,
    /// Polymorphic functions for the types that they have been called with.
    instances: Mutex<Recent<Callee, Result<Arc<CompiledProcedure>, SqlError>>>,
    /// By procedure, as far as somebody has asked.
    pub(crate) involved: Mutex<FxHashMap<String, Arc<[Involved]>>>,
    /// Scripts that were bound last.
    pub(crate) scripts: Mutex<Recent<ScriptKey, Arc<BoundScript>>>,
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
        ValueLimits::of(options.version).within(|| Library::compiled(catalog, options))
    }

    fn compiled(catalog: Arc<Catalog>, options: CompileOptions) -> Result<Library, SqlError> {
        let tables = Tables::new(&catalog, options.version)?;
        let compile = |procedure: &Arc<Procedure>| plpgsql::compile(&tables, procedure, options);
        let plain = catalog.procedures.iter().filter(|(_, procedure)| !is_polymorphic(procedure));
        let procedures: FxHashMap<String, Result<CompiledProcedure, SqlError>> =
            plain.map(|(name, procedure)| (name.clone(), compile(procedure))).collect();
        let triggers = Triggers::new(&tables, &catalog, options);
        let involved = Mutex::default();
        let has_table_policies = catalog.tables.values().any(|table| table.endorsement.is_some());
        let instances = Mutex::new(Recent::new(INSTANCES_MAX));
        let scripts = Mutex::new(Recent::new(SCRIPTS_MAX));
        Ok(Library {
            catalog,
            options,
            tables,
            has_table_policies,
            procedures,
            triggers,
            instances,
            involved,
            scripts,
        })
    }

    /// Whether a procedure or function may change rows, itself or by those that it calls.
    ///
    /// A value of a sequence is drawn in a transaction, at a place in a block, and only a transaction that is ordered notifies or has an
    /// advisory lock, so these are some of them.
    pub(crate) fn may_write(&self, callee: &Callee) -> bool {
        let mut waiting = vec![callee.clone()];
        let mut seen: BTreeSet<Callee> = BTreeSet::new();
        while let Some(next) = waiting.pop() {
            let moves = AssetFunction::named(&next.name).is_some_and(AssetFunction::is_transaction);
            let locks = AdvisoryFunction::named(&next.name).is_some_and(AdvisoryFunction::is_transaction);
            if moves || locks || matches!(next.name.as_ref(), NEXT_VALUE | SET_VALUE | NOTIFY) {
                return true;
            }
            // What does not compile ends with an error before it changes anything.
            let Ok(compiled) = self.routine(&next.name, next.actual) else { continue };
            if !seen.insert(next) {
                continue;
            }
            if compiled.may_write() {
                return true;
            }
            waiting.extend_from_slice(compiled.calls());
        }
        false
    }

    /// Name and policy of a table that has one.
    pub fn table_policy(&self, table: TableId) -> Option<(&str, &Policy)> {
        let of_unique = || Some(self.tables.unique_index(table)?.0);
        let of_computed = || Some(self.tables.computed_index(table)?.0);
        let plan = self.tables.by_id(table).or_else(of_unique).or_else(of_computed)?;
        Some((plan.relation.as_str(), plan.endorsement.as_ref()?))
    }

    /// Whether any table has a policy.
    pub fn has_table_policies(&self) -> bool {
        self.has_table_policies
    }

    /// Compiles another catalog in the same way.
    ///
    /// # Errors
    /// As [`Library::new`].
    pub fn successor(&self, catalog: Arc<Catalog>) -> Result<Library, SqlError> {
        Library::with_options(catalog, self.options)
    }

    /// Compiles a catalog for other rules of execution.
    ///
    /// # Errors
    /// As [`Library::new`].
    pub fn with_version(
        &self,
        catalog: Arc<Catalog>,
        version: ExecutionVersion,
    ) -> Result<Library, SqlError> {
        Library::with_options(catalog, CompileOptions { version, ..self.options })
    }

    /// The rules that transactions are bound and executed with: code that differs between versions asks here.
    pub fn version(&self) -> ExecutionVersion {
        self.options.version
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

    /// The name in the catalog of the procedure that a call of a name with these values means.
    ///
    /// # Errors
    /// `42725` where it may be several.
    pub(crate) fn called_procedure(&self, name: &str, arguments: &[Value]) -> Result<String, SqlError> {
        let candidates = self.tables.routines().candidates(name);
        let given = |value: &Value| Argument {
            name: None,
            is_variadic: false,
            // A text may be a literal of unknown type, as psql sends it.
            data_type: match value.data_type() {
                DataType::Text(_) => DataType::Unknown,
                known => known,
            },
        };
        let given: Vec<Argument> = arguments.iter().map(given).collect();
        let of_inputs = |routine: &Arc<Routine>| routine.definition.function.is_none();
        let procedures: Vec<Arc<Routine>> = candidates.into_iter().filter(of_inputs).collect();
        match procedures.as_slice() {
            [] | [_] => Ok(name.to_string()),
            several => Ok(choose_for_inputs(name, several, &given)?
                .map_or_else(|| name.to_string(), |found| found.key().to_string())),
        }
    }

    /// A procedure or function as callers see it.
    pub(crate) fn definition(&self, name: &str) -> Option<&Arc<Procedure>> {
        self.tables.routines().named(name).map(|routine| &routine.definition)
    }

    /// Runs something within what definitions are compiled within, whoever asks for it.
    fn within_a_definition<R>(&self, run: impl FnOnce() -> R) -> R {
        self.value_limits().within(|| within_format(SessionFormat::default(), run))
    }

    /// How large values may be by its rules.
    pub(crate) fn value_limits(&self) -> ValueLimits {
        ValueLimits::of(self.version())
    }

    /// The compiled procedure or function. `actual`: what its polymorphic types stand for.
    ///
    /// # Errors
    /// `42883` where there is none; what is wrong with it where it does not compile any more, or not with these types.
    pub(crate) fn routine(&self, name: &str, actual: Actual) -> Result<Compiled<'_>, SqlError> {
        match self.procedures.get(name) {
            Some(Ok(procedure)) => return Ok(Compiled::Kept(procedure)),
            Some(Err(error)) => return Err(error.clone()),
            None if actual == Actual::default() => return Err(no_procedure(name, "")),
            None => {}
        }
        let definition = self.catalog.procedures.get(name).ok_or_else(|| no_procedure(name, ""))?;
        let callee = Callee { name: name.into(), actual };
        let known = self.instances.lock().unwrap_or_else(PoisonError::into_inner).get(&callee);
        let compiled = known.unwrap_or_else(|| {
            // Whoever asks for it first: its constants are those of a definition.
            let compiled = self.within_a_definition(|| {
                let definition = actual.applied_to(definition)?;
                plpgsql::compile(&self.tables, &definition, self.options)
            });
            let compiled = compiled.map(Arc::new);
            let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
            instances.insert(callee, compiled.clone());
            compiled
        });
        compiled.map(Compiled::Instance)
    }
}

/// A script's text, and the types of its parameters.
pub(crate) type ScriptKey = (Arc<str>, Vec<DataType>);

/// A compiled procedure or function.
pub(crate) enum Compiled<'l> {
    /// Compiled with the catalog.
    Kept(&'l CompiledProcedure),
    /// Compiled for the types of a call.
    Instance(Arc<CompiledProcedure>),
}

impl Deref for Compiled<'_> {
    type Target = CompiledProcedure;

    fn deref(&self) -> &CompiledProcedure {
        match self {
            Compiled::Kept(procedure) => procedure,
            Compiled::Instance(procedure) => procedure,
        }
    }
}

/// What was made last, up to a number; the oldest goes first.
pub(crate) struct Recent<K, V> {
    most: usize,
    known: FxHashMap<K, V>,
    order: VecDeque<K>,
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    fn new(most: usize) -> Recent<K, V> {
        Recent { most, known: FxHashMap::default(), order: VecDeque::new() }
    }

    pub fn get(&self, key: &K) -> Option<V> {
        self.known.get(key).cloned()
    }

    pub fn insert(&mut self, key: K, value: V) {
        if self.known.insert(key.clone(), value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
