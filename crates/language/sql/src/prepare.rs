//! Scripts bound on a library: what the gateway prepares, and what a transaction runs.

use crate::ddl::{SchemaChange, bind_change_behind, bind_schema_change};
use crate::governance;
use crate::library::Library;
use execute::{Context, Execution, check_result_rows};
use plan::expression::shortened;
use plan::logical;
use plan::needs::Needs;
use plan::polymorphic::{Actual, Callee};
use plan::scope::VariableScope;
use plan::statement::{
    BoundExplain, BoundStatement, StatementOutput, bind_logical, bind_statement, changes_rows, explain,
    no_column,
};
use plan::tables::Tables;
use plpgsql::{self, CompiledProcedure};
use sqlparser::ast::{CopyOption, CopySource, CopyTarget, DescribeAlias, Statement, UtilityOption};
use state::Snapshot;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use syntax::names::{name_of, table_name};
use syntax::parse::{ParsedStatement, parse_script};
use types::{
    CompositeTypes, DataType, Function, FunctionResult, Language, MemoryPool, MemoryShare, OutputColumn,
    Principal, Procedure, SearchPath, SqlError, SqlState, StatementResult, TransactionId, Value, Volatility,
    limits, split_search_path,
};

/// What a script does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatementKind {
    /// It reads only: any node answers it from its newest snapshot.
    Read,
    /// It changes rows or calls a procedure: it is a transaction.
    Write,
    /// It changes the catalog: a transaction that runs alone.
    SchemaChange,
    /// `COPY table (columns) FROM STDIN`, in the text format: becomes transactions that insert.
    Copy {
        /// The table.
        table: String,
        /// The columns in the order of the data.
        columns: Vec<OutputColumn>,
    },
    /// It has no statement.
    Empty,
}

/// A script bound on a library.
pub struct Prepared {
    library: Option<Arc<Library>>,
    /// In order.
    pub(crate) steps: Vec<Step>,
    parameters: Vec<DataType>,
    columns: Vec<OutputColumn>,
    kind: StatementKind,
    /// What its statements need, and which procedures and functions they call.
    pub(crate) needs: Needs,
    /// What values of composite types are.
    types: Arc<CompositeTypes>,
}

/// One statement.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few of them, and none is moved once a script is bound")]
pub(crate) enum Step {
    /// A query or a change of rows.
    Statement(BoundStatement),
    /// DO.
    Block(Box<CompiledProcedure>),
    /// DDL.
    Schema(Box<SchemaChange>),
    /// COPY, which does not run here.
    Copy,
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
    /// It ends soon after this is set.
    pub interrupt: Arc<AtomicBool>,
    /// What all queries of the node have together; `None`: there is no such limit.
    pub memory: Option<Arc<MemoryPool>>,
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
    Ok(bind_script(library, sql, parameter_types)?.on(library))
}

/// Binds a query whose syntax tree somebody has changed after [`crate::parse_only_statement`] read it from `sql`, where errors have
/// their positions.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_query(
    library: &Arc<Library>,
    sql: &str,
    statement: Statement,
    parameter_types: &[DataType],
) -> Result<Prepared, SqlError> {
    let statements = vec![ParsedStatement::Sql(Box::new(statement))];
    let script = Script { search_path: SearchPath::default(), source: sql, statements };
    Ok(bind_parsed(library, script, parameter_types)?.on(library))
}

impl Prepared {
    /// With the library that it was bound on.
    pub(crate) fn on(mut self, library: &Arc<Library>) -> Prepared {
        self.library = Some(library.clone());
        self
    }

    /// The procedures and functions that its statements call, or that triggers call which they fire.
    pub(crate) fn calls(&self) -> &[Callee] {
        &self.needs.involved
    }

    /// Whether it consists of CALLs.
    pub(crate) fn only_calls(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Statement(BoundStatement::Call(_))))
    }

    /// Types of the parameters.
    pub fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    /// Columns of the last statement's rows; empty where it returns none.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// What the script does.
    pub fn kind(&self) -> StatementKind {
        self.kind.clone()
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
        let frame = self.frame(parameters)?;
        self.run_steps(&mut execution, &frame, false)
    }

    /// As [`Prepared::query_as`] for one query, whose rows are handed out as they are found until `take` says that it is
    /// enough: only what the query itself needs is in memory.
    ///
    /// # Errors
    /// As [`Prepared::query_as`]; rows may have been handed out before.
    pub fn query_each(
        &self,
        reader: &Reader,
        snapshot: &dyn Snapshot,
        parameters: &[Value],
        take: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<(), SqlError> {
        let [Step::Statement(BoundStatement::Select(select))] = self.steps.as_slice() else {
            let results = self.query_as(reader, snapshot, parameters)?;
            let rows = results.into_iter().next_back().unwrap_or_default().rows;
            let _ = rows.into_iter().try_for_each(take);
            return Ok(());
        };
        let mut execution = self.outside_of_transactions(reader, snapshot)?;
        let frame = self.frame(parameters)?;
        let run = execution.authorise(&self.needs).and_then(|()| execution.select_each(select, &frame, take));
        run.map_err(|error| self.types.named_in(error))
    }

    fn outside_of_transactions<'a>(
        &'a self,
        reader: &Reader,
        snapshot: &'a dyn Snapshot,
    ) -> Result<Execution<'a>, SqlError> {
        let reads = matches!(self.kind, StatementKind::Read | StatementKind::Empty);
        let Some(library) = self.library.as_ref().filter(|_| reads) else {
            let message = "only a script that reads can be run outside of a transaction";
            return Err(SqlError::new(SqlState::READ_ONLY_TRANSACTION, message));
        };
        let Reader { principal, step_limit, timestamp_ms, interrupt, memory } = reader;
        let (timestamp_ms, step_limit) = (*timestamp_ms, *step_limit);
        let context =
            Context { height: 0, timestamp_ms, index: 0, transaction: TransactionId::default(), step_limit };
        let share = memory.as_ref().map_or_else(MemoryShare::default, MemoryShare::of);
        let execution = Execution::new(&**library, snapshot, context).without_registration().sharing(share);
        Ok(execution.acting_as(principal).interrupted_by(interrupt))
    }

    /// The parameters' values with the types that the script was bound for.
    ///
    /// # Errors
    /// `08P01` where there are too few or too many; a value that does not fit.
    pub(crate) fn frame(&self, parameters: &[Value]) -> Result<Vec<Value>, SqlError> {
        if parameters.len() != self.parameters.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement requires {}",
                parameters.len(),
                self.parameters.len()
            );
            return Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
        }
        let values = parameters.iter().zip(&self.parameters);
        values.map(|(value, data_type)| self.types.assign(value.clone(), *data_type)).collect()
    }

    /// Runs the statements in order. The client of a transaction sees every command tag, so row counts are guarded,
    /// and gets its rows in a receipt, so there are not too many.
    pub(crate) fn run_steps(
        &self,
        execution: &mut Execution<'_>,
        frame: &[Value],
        in_receipt: bool,
    ) -> Result<Vec<StatementResult>, SqlError> {
        self.results_of_steps(execution, frame, in_receipt).map_err(|error| self.types.named_in(error))
    }

    fn results_of_steps(
        &self,
        execution: &mut Execution<'_>,
        frame: &[Value],
        in_receipt: bool,
    ) -> Result<Vec<StatementResult>, SqlError> {
        execution.authorise(&self.needs)?;
        let mut results = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let statement = match step {
                Step::Statement(statement) => statement,
                Step::Block(block) => {
                    plpgsql::call(block, "DO", execution, Vec::new())?;
                    let notices = execution.take_notices();
                    results.push(StatementResult { tag: "DO".to_string(), notices, ..Default::default() });
                    continue;
                }
                Step::Schema(_) | Step::Copy => {
                    return Err(SqlError::unsupported("a schema change among other statements"));
                }
            };
            let output = execution.run(statement, frame)?;
            if matches!(statement, BoundStatement::Update(_) | BoundStatement::Delete(_)) {
                execution.look_at_matched();
            }
            if in_receipt {
                check_result_rows(output.rows.len())?;
            }
            execution.hold_result(&output.rows)?;
            results.push(StatementResult {
                tag: statement.tag(output.affected),
                columns: output.columns.to_vec(),
                rows: output.rows,
                notices: execution.take_notices(),
            });
        }
        Ok(results)
    }
}

impl Prepared {
    /// Runs it inside of a routine, and gives what its last statement gave.
    ///
    /// # Errors
    /// What its statements end with; `0A000` for what a procedure cannot run.
    pub(crate) fn run_inside(
        &self,
        execution: &mut Execution<'_>,
        values: Vec<Value>,
    ) -> Result<StatementOutput, SqlError> {
        let refused = match self.kind() {
            StatementKind::Read | StatementKind::Write | StatementKind::Empty => None,
            StatementKind::SchemaChange => Some("a schema change"),
            StatementKind::Copy { .. } => Some("COPY"),
        };
        if let Some(what) = refused {
            return Err(SqlError::unsupported(format_args!("{what} in EXECUTE")).hint("Send it on its own."));
        }
        execution.authorise_text(&self.needs, "EXECUTE of a call")?;
        let frame = self.frame(&values)?;
        let mut output = StatementOutput::default();
        for step in &self.steps {
            output = match step {
                Step::Statement(statement) => execution.run(statement, &frame)?,
                Step::Block(block) => {
                    plpgsql::call(block, "DO", execution, Vec::new())?;
                    StatementOutput::default()
                }
                Step::Schema(_) | Step::Copy => StatementOutput::default(),
            };
        }
        Ok(output)
    }
}

/// Binds a script without keeping the library.
pub(crate) fn bind_script(library: &Library, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
    bind_parsed(library, Script::parse(sql)?, types)
}

/// The statements of a script.
pub(crate) struct Script<'s> {
    /// Where names without a schema are looked for.
    pub search_path: SearchPath,
    /// Their text.
    pub source: &'s str,
    /// In order.
    pub statements: Vec<ParsedStatement>,
}

impl<'s> Script<'s> {
    /// Reads a script, with what says where its names are looked for.
    ///
    /// # Errors
    /// `42601` with the position behind that.
    pub fn parse(sql: &'s str) -> Result<Script<'s>, SqlError> {
        let (search_path, source) = split_search_path(sql)?;
        Ok(Script { search_path, source, statements: parse_script(source)? })
    }
}

/// Binds the statements of a script.
pub(crate) fn bind_parsed(
    library: &Library,
    script: Script<'_>,
    types: &[DataType],
) -> Result<Prepared, SqlError> {
    let tables = &library.tables().with_search_path(&script.search_path);
    let scope = VariableScope::for_script(types, script.source).with_routines(tables.routines());
    let mut steps = Vec::new();
    let mut copy = None;
    for statement in script.statements {
        if let ParsedStatement::Sql(statement) = &statement
            && let Statement::Copy { .. } = statement.as_ref()
        {
            copy = Some(bind_copy(tables, statement)?);
            steps.push(Step::Copy);
            continue;
        }
        let behind_changes = matches!(steps.last(), Some(Step::Schema(_)));
        let step = bind_step(library, tables, &scope, statement, behind_changes);
        steps.push(step.map_err(|error| scope.routines().types().named_in(error))?);
    }
    let needs = scope.needs();
    let called = &needs.called;
    let explains = steps.iter().all(|step| matches!(step, Step::Statement(BoundStatement::Explain(_))));
    let writes = !explains && called.iter().any(|called| library.may_write(called));
    let kind = match kind_of(&steps, copy)? {
        StatementKind::Read if writes => StatementKind::Write,
        kind => kind,
    };
    if let Some(what) = scope.reads_past().filter(|_| kind != StatementKind::Read) {
        return Err(SqlError::unsupported(format_args!("{what} in a statement that writes"))
            .hint("Other nodes may keep less of the past. Read first, and write what was found."));
    }
    let parameters = scope.parameter_types();
    if parameters.len() > limits::ARGUMENTS_MAX {
        let message = format!("a script has at most {} parameters (ARGUMENTS_MAX)", limits::ARGUMENTS_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let parameters = parameters.into_iter().map(|data_type| match data_type {
        // What nothing has told is text, as in PostgreSQL.
        DataType::Unknown => DataType::Text(None),
        known => known,
    });
    let columns = steps.last().map_or_else(Vec::new, |step| step_columns(library, step));
    let types = tables.routines().types().clone();
    Ok(Prepared { library: None, steps, parameters: parameters.collect(), columns, kind, needs, types })
}

fn bind_step(
    library: &Library,
    tables: &Tables,
    scope: &VariableScope,
    statement: ParsedStatement,
    behind_changes: bool,
) -> Result<Step, SqlError> {
    let types = scope.routines().types();
    let change = match behind_changes {
        true => bind_change_behind(types, &statement)?,
        false => bind_schema_change(types, &statement)?,
    };
    if let Some(change) = change {
        return Ok(Step::Schema(Box::new(change)));
    }
    let statement = match statement {
        ParsedStatement::Sql(statement) => statement,
        ParsedStatement::Do(body) => return bind_block(library, tables, scope, body),
        ParsedStatement::CreateRoutine(_)
        | ParsedStatement::CreateTableAs(_)
        | ParsedStatement::CreateAggregate(_)
        | ParsedStatement::DropAggregate(_)
        | ParsedStatement::Role(_)
        | ParsedStatement::SetSchema(_)
        | ParsedStatement::Comment(_)
        | ParsedStatement::Checkpoint
        | ParsedStatement::Governance(_)
        | ParsedStatement::Sequence(_)
        | ParsedStatement::Trigger(_) => {
            return Err(SqlError::unsupported("this statement"));
        }
    };
    match explained(&statement) {
        Some((Explained::Logical, other)) => {
            let explain = explain_logical(tables, scope, other)?;
            return Ok(Step::Statement(BoundStatement::Explain(explain)));
        }
        Some((Explained::Reads, call @ Statement::Call(_))) => {
            return Ok(Step::Statement(BoundStatement::Explain(bind_explain(library, tables, scope, call)?)));
        }
        Some((Explained::Reads, other)) => {
            let bound = bind_statement(tables, scope, other)?;
            if let Some(lines) = explain(&bound) {
                let types = scope.routines().types();
                let lines = lines.into_iter().map(|line| types.named_text(line)).collect();
                return Ok(Step::Statement(BoundStatement::Explain(explanation(lines))));
            }
        }
        None => {}
    }
    let mut bound = bind_statement(tables, scope, &statement)?;
    if let BoundStatement::Call(call) = &mut bound
        && let Some(procedure) = library.definition(&call.procedure)
    {
        call.infer(scope, &procedure.parameters);
    }
    Ok(Step::Statement(bound))
}

/// DO: a procedure without a name and arguments.
fn bind_block(
    library: &Library,
    tables: &Tables,
    scope: &VariableScope,
    body: String,
) -> Result<Step, SqlError> {
    let function = Function {
        result: FunctionResult::Void,
        is_set: false,
        volatility: Volatility::Volatile,
        is_strict: false,
    };
    let procedure = Procedure {
        name: "inline_code_block".to_string(),
        parameters: Vec::new(),
        function: Some(function),
        language: Language::PlPgSql,
        body,
        endorsement: None,
        security_definer: false,
        search_path: tables.routines().search_path().clone(),
        overload: false,
    };
    let compiled = plpgsql::compile(library.tables(), &procedure, library.options())?;
    compiled.needs.called.iter().for_each(|called| scope.note_call(called));
    scope.note_fired(compiled.needs.involved.iter().cloned());
    Ok(Step::Block(Box::new(compiled)))
}

/// What EXPLAIN shows.
enum Explained {
    /// What a statement would read, and what that registers.
    Reads,
    /// The logical plan of a query.
    Logical,
}

/// What EXPLAIN explains, where its options are known.
fn explained(statement: &Statement) -> Option<(Explained, &Statement)> {
    let Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze: false,
        verbose: false,
        query_plan: false,
        estimate: false,
        statement,
        format: None,
        options,
    } = statement
    else {
        return None;
    };
    match options.as_deref() {
        None => Some((Explained::Reads, statement)),
        Some([UtilityOption { name, arg: None }]) if name.value.eq_ignore_ascii_case("logical") => {
            Some((Explained::Logical, statement))
        }
        Some(_) => None,
    }
}

/// EXPLAIN (LOGICAL): the logical plan as it is bound and as it is run, and the rules between.
fn explain_logical(
    tables: &Tables,
    scope: &VariableScope,
    statement: &Statement,
) -> Result<BoundExplain, SqlError> {
    let Statement::Query(query) = statement else { return Err(no_logical_plan()) };
    if changes_rows(query) {
        return Err(no_logical_plan());
    }
    let lines = logical::explain(bind_logical(tables, scope, query)?.plan);
    let types = scope.routines().types();
    Ok(explanation(lines.into_iter().map(|line| types.named_text(line)).collect()))
}

#[cold]
fn no_logical_plan() -> SqlError {
    SqlError::unsupported("EXPLAIN (LOGICAL) of anything but a query")
        .hint("Use EXPLAIN without options: it shows what any statement would read and register.")
}

fn explanation(lines: Vec<String>) -> BoundExplain {
    let column = OutputColumn { name: "QUERY PLAN".to_string(), data_type: DataType::Text(None) };
    BoundExplain { columns: [column].into(), lines }
}

/// EXPLAIN CALL runs nothing: it shows the compiled procedure, whatever the arguments are, and refuses what CALL
/// would refuse.
fn bind_explain(
    library: &Library,
    tables: &Tables,
    scope: &VariableScope,
    call: &Statement,
) -> Result<BoundExplain, SqlError> {
    let BoundStatement::Call(mut call) = bind_statement(tables, scope, call)? else {
        return Err(SqlError::unsupported("EXPLAIN of anything but CALL"));
    };
    let definition = library.definition(&call.procedure);
    if let Some(definition) = definition {
        call.infer(scope, &definition.parameters);
    }
    let Some(definition) = definition.filter(|definition| call.fits(&definition.parameters)) else {
        return Err(call.no_procedure());
    };
    let lines = plpgsql::explain(definition, &*library.routine(&call.procedure, Actual::default())?);
    let types = scope.routines().types();
    let lines = lines.into_iter().map(|line| types.named_text(line)).collect();
    Ok(explanation(lines))
}

/// Columns of CALL are known from the procedure.
fn step_columns(library: &Library, step: &Step) -> Vec<OutputColumn> {
    match step {
        Step::Statement(BoundStatement::Call(call)) => {
            library.definition(&call.procedure).map_or_else(Vec::new, |procedure| {
                let outputs = procedure.parameters.iter().enumerate();
                let outputs = outputs.filter(|(_, parameter)| parameter.mode.is_output());
                outputs
                    .map(|(position, parameter)| plan::routines::output_column(position, parameter))
                    .collect()
            })
        }
        Step::Statement(statement) => statement.columns().to_vec(),
        Step::Schema(change) => match change.as_ref() {
            SchemaChange::Governance(call) => governance::columns(call),
            _ => Vec::new(),
        },
        Step::Block(_) | Step::Copy => Vec::new(),
    }
}

fn kind_of(steps: &[Step], copy: Option<StatementKind>) -> Result<StatementKind, SqlError> {
    if let Some(copy) = copy {
        return match steps {
            [_] => Ok(copy),
            _ => Err(SqlError::unsupported("COPY among other statements").hint("Send it alone.")),
        };
    }
    let changes = steps.iter().filter(|step| matches!(step, Step::Schema(_))).count();
    if changes > 0 {
        return match changes == steps.len() {
            true => Ok(StatementKind::SchemaChange),
            false => Err(SqlError::unsupported("a schema change among other statements")
                .hint("Send CREATE and DROP in a script of their own.")),
        };
    }
    let read = |step: &Step| matches!(step, Step::Statement(statement) if statement.is_read());
    Ok(match steps {
        [] => StatementKind::Empty,
        steps if steps.iter().all(read) => StatementKind::Read,
        _ => StatementKind::Write,
    })
}

fn bind_copy(tables: &Tables, statement: &Statement) -> Result<StatementKind, SqlError> {
    let Statement::Copy { source, to, target, options, legacy_options, values } = statement else {
        return Err(SqlError::unsupported("this form of COPY"));
    };
    let CopySource::Table { table_name: name, columns } = source else {
        return Err(SqlError::unsupported("COPY of a query"));
    };
    if *to {
        return Err(SqlError::unsupported("COPY TO").hint("Use SELECT."));
    }
    if *target != CopyTarget::Stdin {
        return Err(
            SqlError::unsupported("COPY FROM a file").hint("Use COPY … FROM STDIN, or \\copy in psql.")
        );
    }
    let text = |option: &CopyOption| matches!(option, CopyOption::Format(format) if format.value.eq_ignore_ascii_case("text"));
    if let Some(option) = options.iter().find(|option| !text(option)) {
        return Err(SqlError::unsupported(format_args!("COPY with {}", shortened(&option.to_string())))
            .hint("Send the text format with its defaults."));
    }
    if let Some(option) = legacy_options.first() {
        return Err(SqlError::unsupported(format_args!("COPY with {}", shortened(&option.to_string())))
            .hint("Send the text format with its defaults."));
    }
    if !values.is_empty() {
        return Err(SqlError::unsupported("data in the text of COPY"));
    }
    let table = tables.get(&tables.find(&table_name(name)?))?;
    let column = |column: &plan::table::ColumnPlan| OutputColumn {
        name: column.name.clone(),
        data_type: column.data_type,
    };
    let mut found: Vec<OutputColumn> = Vec::new();
    for ident in columns {
        let name = name_of(ident)?;
        let ordinal = table.ordinal(&name).ok_or_else(|| no_column(table, &name))?;
        if found.iter().any(|known| known.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        found.push(column(&table.columns[ordinal]));
    }
    if columns.is_empty() {
        found = table.columns.iter().map(column).collect();
    }
    Ok(StatementKind::Copy { table: table.relation.clone(), columns: found })
}
