//! Binding scripts on a library: their statements become changes of the schema, queries and changes of rows.

use crate::ddl::change::{SchemaChange, call_columns};
use crate::ddl::{bind_change_behind, bind_schema_change};
use crate::given_tables::number_of;
use crate::library::Library;
use crate::script::{BoundScript, Elsewhere, Script, StatementKind, Step};
use plan::expression::shortened;
use plan::logical::{self, Split};
use plan::polymorphic::Actual;
use plan::scope::VariableScope;
use plan::statement::{
    BoundExplain, BoundStatement, bind_logical, bind_statement, changes_rows, explain, no_column,
};
use plan::tables::Tables;
use sqlparser::ast::{CopyOption, CopySource, CopyTarget, DescribeAlias, Query, Statement, UtilityOption};
use std::sync::{Arc, PoisonError};
use syntax::names::{name_of, table_name};
use syntax::parse::{ParsedStatement, is_schema_change};
use types::session_format::{session_format, within_format};
use types::{
    DataType, ExecutionVersion, Function, FunctionResult, GivenTable, Language, OutputColumn, Procedure,
    SqlError, SqlState, Volatility, limits,
};

/// Bytes of a script that is kept; longer ones are rarely repeated.
const SCRIPT_BYTES_MAX: usize = 4 * 1024;

impl Library {
    /// The script, bound for parameters of these types; from the cache where it is there.
    ///
    /// # Errors
    /// What is wrong in the script.
    pub(crate) fn script(&self, sql: &str, types: &[DataType]) -> Result<Arc<BoundScript>, SqlError> {
        let key = (Arc::<str>::from(sql), types.to_vec());
        if let Some(known) = self.scripts.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known);
        }
        let script = Arc::new(bind_script(self, sql, types)?);
        if sql.len() <= SCRIPT_BYTES_MAX && !is_schema_change(sql, self.version()) {
            self.scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(key, script.clone());
        }
        Ok(script)
    }
}

/// Reads and binds a script.
pub(crate) fn bind_script(library: &Library, sql: &str, types: &[DataType]) -> Result<BoundScript, SqlError> {
    bind_parsed(library, Script::parse(sql, library.version())?, types)
}

/// Reads and binds a statement with which tables are given.
pub(crate) fn bind_script_given(
    library: &Library,
    sql: &str,
    types: &[DataType],
    given: &[GivenTable],
) -> Result<BoundScript, SqlError> {
    let script = Script::parse(sql, library.version())?;
    let format = script.settings.format;
    library
        .value_limits()
        .within(|| within_format(format, || bind_within_format(library, script, types, given)))
}

/// Binds the statements of a script.
pub(crate) fn bind_parsed(
    library: &Library,
    script: Script<'_>,
    types: &[DataType],
) -> Result<BoundScript, SqlError> {
    let format = script.settings.format;
    library
        .value_limits()
        .within(|| within_format(format, || bind_within_format(library, script, types, &[])))
}

fn bind_within_format(
    library: &Library,
    script: Script<'_>,
    types: &[DataType],
    given: &[GivenTable],
) -> Result<BoundScript, SqlError> {
    let tables = &library.tables().with_search_path(&script.settings.search_path);
    let mut scope = VariableScope::for_script(types, script.source).with_routines(tables.routines());
    for (position, table) in given.iter().enumerate() {
        scope.add_transition_table(&table.name, number_of(position), &table.columns);
    }
    let mut steps = Vec::new();
    let (mut copy, mut elsewhere) = (None, Elsewhere::default());
    for statement in script.statements {
        if let ParsedStatement::Sql(statement) = &statement
            && let Statement::Copy { .. } = statement.as_ref()
        {
            copy = Some(bind_copy(tables, statement)?);
            steps.push(Step::Copy);
            continue;
        }
        let behind_changes = matches!(steps.last(), Some(Step::Schema(_)));
        let step = bind_step(library, tables, &scope, statement, (behind_changes, &mut elsewhere));
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
    let most = limits::parameters_max(library.version());
    if parameters.len() > most {
        let name = if most == limits::ARGUMENTS_MAX { "ARGUMENTS_MAX" } else { "PARAMETERS_MAX" };
        let message = format!("a script has at most {most} parameters ({name})");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let parameters = parameters.into_iter().map(|data_type| match data_type {
        // What nothing has told is text, as in PostgreSQL.
        DataType::Unknown => DataType::Text(None),
        known => known,
    });
    let columns = steps.last().map_or_else(Vec::new, |step| step_columns(library, step));
    let origins = match steps.last() {
        Some(Step::Statement(statement)) => statement.origins().to_vec(),
        _ => Vec::new(),
    };
    let types = tables.routines().types().clone();
    let elsewhere = if steps.len() == 1 { elsewhere } else { Elsewhere::Nothing };
    Ok(BoundScript {
        format: session_format(),
        advisory: script.settings.advisory,
        steps,
        parameters: parameters.collect(),
        columns,
        origins,
        kind,
        needs,
        types,
        elsewhere,
    })
}

fn bind_step(
    library: &Library,
    tables: &Tables,
    scope: &VariableScope,
    statement: ParsedStatement,
    (behind_changes, elsewhere): (bool, &mut Elsewhere),
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
        ParsedStatement::SetConstraints(set) => {
            let search_path = scope.routines().search_path().clone();
            return Ok(Step::Constraints(set, search_path));
        }
        ParsedStatement::Notify(notify) => return Ok(Step::Notify(notify)),
        ParsedStatement::Cursor(cursor) => return Ok(Step::Cursor(cursor)),
        ParsedStatement::Do(body) => return bind_block(library, tables, scope, body),
        // Changes of the schema, which were bound above.
        _ => return Err(SqlError::unsupported("this statement")),
    };
    match explained(&statement, tables.version()) {
        Some((Explained::Logical, other)) => {
            let explain = explain_logical(tables, scope, other)?;
            return Ok(Step::Statement(BoundStatement::Explain(explain)));
        }
        Some((Explained::Reads, call @ Statement::Call(_))) => {
            return Ok(Step::Statement(BoundStatement::Explain(bind_explain(library, tables, scope, call)?)));
        }
        Some((Explained::Reads, other)) => {
            if let Some(query) = query_alone(tables, other) {
                let split = Split::of(&bind_logical(tables, scope, query)?.plan);
                *elsewhere = split.map_or(Elsewhere::Nothing, Elsewhere::Explained);
            }
            let bound = bind_statement(tables, scope, other)?;
            if let Some(lines) = explain(&bound) {
                let types = scope.routines().types();
                let lines = lines.into_iter().map(|line| types.named_text(line)).collect();
                return Ok(Step::Statement(BoundStatement::Explain(explanation(lines))));
            }
        }
        None => {}
    }
    if let Some(query) = query_alone(tables, &statement) {
        let bound = bind_logical(tables, scope, query)?;
        *elsewhere = Split::of(&bound.plan).map_or(Elsewhere::Nothing, Elsewhere::Run);
        return Ok(Step::Statement(BoundStatement::Select(bound.operators())));
    }
    let mut bound = bind_statement(tables, scope, &statement)?;
    if let BoundStatement::Call(call) = &mut bound
        && let Some(procedure) = library.definition(&call.procedure)
    {
        call.infer(scope, &procedure.parameters);
    }
    Ok(Step::Statement(bound))
}

/// The query that a statement is, where it changes no rows and may be run in fragments.
fn query_alone<'s>(tables: &Tables, statement: &'s Statement) -> Option<&'s Query> {
    match statement {
        Statement::Query(query) => {
            let alone = tables.version() >= ExecutionVersion::V2 && !changes_rows(query, tables.version());
            alone.then_some(query.as_ref())
        }
        _ => None,
    }
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
fn explained(statement: &Statement, version: ExecutionVersion) -> Option<(Explained, &Statement)> {
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
        // Its lines are part of receipts: version 1 had none.
        Some([UtilityOption { name, arg: None }])
            if name.value.eq_ignore_ascii_case("logical") && version >= ExecutionVersion::V2 =>
        {
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
    if changes_rows(query, tables.version()) {
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
            SchemaChange::Governance(call) => call_columns(call),
            _ => Vec::new(),
        },
        // Those of FETCH are the cursor's, which is known when it runs.
        Step::Block(_) | Step::Constraints(..) | Step::Notify(_) | Step::Cursor(_) | Step::Copy => Vec::new(),
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
    let read = |step: &Step| match step {
        Step::Statement(statement) => statement.is_read(),
        step => matches!(step, Step::Constraints(..) | Step::Cursor(_)),
    };
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
    if table.materialized.is_some() {
        let message = format!("cannot change materialized view \"{}\"", table.name);
        return Err(SqlError::new(SqlState(*b"42809"), message));
    }
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
