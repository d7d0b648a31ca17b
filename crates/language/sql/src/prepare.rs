//! Scripts that the gateway prepares, and what reads outside of transactions.

use crate::bind::{bind_parsed, bind_script};
use crate::fragments::{RunFragments, Runner};
use crate::library::Library;
use crate::script::{BoundScript, Elsewhere, Script, StatementKind, Step};
use execute::{Context, Execution, RowLocks, Scratch, SharedRowLocks};
use plan::logical::Split;
use plan::statement::{BoundSelect, BoundStatement};
use sqlparser::ast::Statement;
use state::Snapshot;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use syntax::parse::ParsedStatement;
use types::session_format::{SessionFormat, within_format};
use types::{
    ColumnOrigin, DataType, MemoryPool, MemoryShare, Notice, OutputColumn, Principal, ScriptSettings,
    Securable, SqlError, SqlState, StatementResult, TransactionId, Value,
};

/// A script bound on a library, which it keeps.
pub struct Prepared {
    library: Arc<Library>,
    script: BoundScript,
}

/// Who reads outside of any transaction, and how.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Whose privileges hold.
    pub principal: Principal,
    /// Logical steps that it may take.
    pub step_limit: u64,
    /// `now()`, in milliseconds since 1970-01-01 00:00 UTC.
    pub timestamp_ms: u64,
    /// What random values are made of: something else for each query.
    pub seed: TransactionId,
    /// It ends soon after this is set.
    pub interrupt: Arc<AtomicBool>,
    /// What all queries of the node have together; `None`: there is no such limit.
    pub memory: Option<Arc<MemoryPool>>,
    /// Where rows go that do not fit into memory; `None`: all must fit.
    pub scratch: Option<Arc<dyn Scratch>>,
    /// Who runs fragments of queries; `None`: queries are run row by row.
    pub fragments: Option<Arc<dyn RunFragments>>,
    /// The locks on rows of the gateway's blocks; `None`: nothing is locked.
    pub row_locks: Option<SharedRowLocks>,
}

impl Reader {
    fn runner<'a>(&'a self, frame: &'a [Value]) -> Option<Runner<'a>> {
        let fragments = self.fragments.as_deref()?;
        Some(Runner { fragments, interrupt: &self.interrupt, memory: self.memory.as_ref(), frame })
    }
}

/// Parses and binds a script. `parameter_types`: the types of `$1`, `$2`, … that the client has said
/// ([`DataType::Unknown`] where it left one open); more of them may be inferred.
///
/// # Errors
/// What is wrong in the script, with its position; `0A000` names what is not supported.
pub fn prepare(
    library: &Arc<Library>,
    sql: &str,
    parameter_types: &[DataType],
) -> Result<Prepared, SqlError> {
    Ok(Prepared::new(library, bind_script(library, sql, parameter_types)?))
}

/// Binds a query whose syntax tree somebody has changed after [`crate::parse_only_statement`] read it from `sql`, where errors have
/// their positions. `format`: in which its values are read and written.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_query(
    library: &Arc<Library>,
    (sql, format): (&str, SessionFormat),
    statement: Statement,
    parameter_types: &[DataType],
) -> Result<Prepared, SqlError> {
    let statements = vec![ParsedStatement::Sql(Box::new(statement))];
    let settings = ScriptSettings { format, ..ScriptSettings::default() };
    let script = Script { settings, source: sql, statements };
    Ok(Prepared::new(library, bind_parsed(library, script, parameter_types)?))
}

impl Prepared {
    /// A script with the library that it was bound on.
    pub(crate) fn new(library: &Arc<Library>, script: BoundScript) -> Prepared {
        Prepared { library: library.clone(), script }
    }

    pub(crate) fn script(&self) -> &BoundScript {
        &self.script
    }

    /// Types of the parameters.
    pub fn parameters(&self) -> &[DataType] {
        &self.script.parameters
    }

    /// Columns of the last statement's rows; empty where it returns none.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.script.columns
    }

    /// By column, what column of a table or view it is; may be shorter.
    pub fn origins(&self) -> &[Option<ColumnOrigin>] {
        &self.script.origins
    }

    /// What the script does.
    pub fn kind(&self) -> StatementKind {
        self.script.kind()
    }

    /// What the first FOR UPDATE or its kind is called that asks for rows of the ledger.
    pub fn lock(&self) -> Option<&'static str> {
        self.script.lock()
    }

    /// A table that it names, itself or through views, whose policies count for a role, or for an administrator.
    pub fn restricted_by_policies(&self, is_administrator: bool) -> Option<&str> {
        let named = self.script.needs.relations.iter().filter_map(|need| match &need.relation {
            Securable::Relation(name) => Some(name.as_str()),
            _ => None,
        });
        let (mut waiting, mut seen): (Vec<&str>, BTreeSet<&str>) = (named.collect(), BTreeSet::new());
        while let Some(name) = waiting.pop() {
            let catalog = self.library.catalog();
            if let Some(view) = catalog.views.get(name).filter(|_| seen.insert(name)) {
                waiting.extend(view.relations.iter().map(String::as_str));
            }
            let security = catalog.tables.get(name).map(|table| (table.object_name(), &table.row_security));
            if let Some((name, security)) = security
                && security.counts_for(is_administrator)
            {
                return Some(name);
            }
        }
        None
    }

    /// As [`Prepared::query_as`], for the administrator.
    ///
    /// # Errors
    /// As [`Prepared::query_as`].
    pub fn query(
        &self,
        snapshot: &dyn Snapshot,
        parameters: &[Value],
        step_limit: u64,
        timestamp_ms: u64,
    ) -> Result<Vec<StatementResult>, SqlError> {
        self.query_as(&Reader { step_limit, timestamp_ms, ..Reader::default() }, snapshot, parameters)
    }

    /// Runs a script of [`StatementKind::Read`] or [`StatementKind::Empty`] on a snapshot, outside of any transaction.
    ///
    /// # Errors
    /// What a statement ends with; `25006` where the script does not only read.
    pub fn query_as(
        &self,
        reader: &Reader,
        snapshot: &dyn Snapshot,
        parameters: &[Value],
    ) -> Result<Vec<StatementResult>, SqlError> {
        let mut execution = self.outside_of_transactions(reader, snapshot)?;
        let frame = self.script.frame(parameters)?;
        let named = |error| self.script.types.named_in(error);
        let rest = within_format(self.script.format, || self.rest_of_split(reader, &mut execution, &frame));
        if let Some(rest) = rest.map_err(named)? {
            return within_format(self.script.format, || self.rows_of(rest, &mut execution, &frame))
                .map_err(named);
        }
        let mut results = self.script.run_steps(&mut execution, &frame, false)?;
        if let Elsewhere::Explained(Split { fragments, .. }) = &self.script.elsewhere
            && let Some(runner) = reader.runner(&frame)
            && let Some(explanation) = results.last_mut()
        {
            let lines = within_format(self.script.format, || runner.explain(fragments, &execution));
            explanation.rows.extend(lines.into_iter().map(|line| vec![Value::text(line)]));
        }
        Ok(results)
    }

    /// What is left of the query once somebody else has run its fragments; nothing where it is to be run as a whole.
    fn rest_of_split(
        &self,
        reader: &Reader,
        execution: &mut Execution<'_>,
        frame: &[Value],
    ) -> Result<Option<&BoundSelect>, SqlError> {
        let Elsewhere::Run(Split { rest, fragments }) = &self.script.elsewhere else { return Ok(None) };
        let Some(runner) = reader.runner(frame) else { return Ok(None) };
        execution.authorise(&self.script.needs)?;
        Ok(runner.run(fragments, execution)?.then_some(rest))
    }

    fn rows_of(
        &self,
        select: &BoundSelect,
        execution: &mut Execution<'_>,
        frame: &[Value],
    ) -> Result<Vec<StatementResult>, SqlError> {
        let rows = execution.select(select, frame, None)?;
        execution.hold_result(&rows)?;
        Ok(vec![StatementResult {
            tag: format!("SELECT {}", rows.len()),
            columns: self.script.columns.clone(),
            rows,
            notices: execution.take_notices(),
        }])
    }

    /// As [`Prepared::query_as`] for one query, whose rows are handed out as they are found until `take` says that it is
    /// enough: only what the query itself needs is in memory. Gives its messages.
    ///
    /// # Errors
    /// As [`Prepared::query_as`]; rows may have been handed out before.
    pub fn query_each(
        &self,
        reader: &Reader,
        snapshot: &dyn Snapshot,
        parameters: &[Value],
        take: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<Vec<Notice>, SqlError> {
        let [Step::Statement(BoundStatement::Select(select))] = self.script.steps.as_slice() else {
            let results = self.query_as(reader, snapshot, parameters)?;
            let StatementResult { rows, notices, .. } = results.into_iter().next_back().unwrap_or_default();
            let _ = rows.into_iter().try_for_each(take);
            return Ok(notices);
        };
        let mut execution = self.outside_of_transactions(reader, snapshot)?;
        let frame = self.script.frame(parameters)?;
        let run = within_format(self.script.format, || {
            execution.authorise(&self.script.needs)?;
            let rest = self.rest_of_split(reader, &mut execution, &frame)?;
            execution.select_each(rest.unwrap_or(select), &frame, take)
        });
        run.map_err(|error| self.script.types.named_in(error))?;
        Ok(execution.take_notices())
    }

    fn outside_of_transactions<'a>(
        &'a self,
        reader: &Reader,
        snapshot: &'a dyn Snapshot,
    ) -> Result<Execution<'a>, SqlError> {
        if !matches!(self.script.kind, StatementKind::Read | StatementKind::Empty) {
            let message = "only a script that reads can be run outside of a transaction";
            return Err(SqlError::new(SqlState::READ_ONLY_TRANSACTION, message));
        }
        let Reader {
            principal, step_limit, timestamp_ms, seed, interrupt, memory, scratch, row_locks, ..
        } = reader;
        let (timestamp_ms, step_limit) = (*timestamp_ms, *step_limit);
        let context = Context { height: 0, timestamp_ms, index: 0, transaction: *seed, step_limit };
        let share = memory.as_ref().map_or_else(MemoryShare::default, MemoryShare::of);
        let mut execution =
            Execution::new(&*self.library, snapshot, context).without_registration().sharing(share);
        execution.know_row_locks(row_locks.clone().map(|locks| Rc::new(locks) as Rc<dyn RowLocks>));
        Ok(execution.acting_as(principal).interrupted_by(interrupt).with_scratch(scratch.clone()))
    }
}
