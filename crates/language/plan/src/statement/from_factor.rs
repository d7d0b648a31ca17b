//! One relation of FROM: a table, a view, a WITH query, a query, a function, a join in parentheses.

use crate::expression::{Binder, Expression, Relations, Source};
use crate::logical::{LogicalPlan, Scan};
use crate::routines::CallForm;
use crate::row_security::seen;
use crate::sequence::row_of_sequence;
use crate::statement::bind_row_function::{
    Call, bind_row_function, gives_rows_here, plain_arguments, takes_json,
};
use crate::statement::bound_query::BoundQuery;
use crate::statement::common_table::bind_common;
use crate::statement::from::bind_joined;
use crate::statement::level::Level;
use crate::statement::named_table::{find_table, plain_table};
use crate::statement::only::{nothing_of, relation_of};
use crate::statement::past::{bind_history, bind_past, is_history, past_height};
use crate::statement::query::{bind_nested, bind_view};
use crate::statement::query_scope::QueryScope;
use crate::statement::record_columns::asked_columns;
use crate::statement::relation_names::{
    add_relation, set_catalogued, set_primary_key, set_row_type, set_table,
};
use crate::statement::scalar_function::bind_scalar_function;
use crate::tables::Tables;
use sqlparser::ast::{
    self, FunctionArg, Query, SetExpr, Spanned, Statement, TableAlias, TableFactor, TableWithJoins,
};
use syntax::names::{name_of, table_name};
use syntax::parse::parse_plain_statements;
use types::{
    DataType, ExecutionVersion, Function, FunctionResult, Privileges, SqlError, SqlState, object_name,
};
use values::broken;

/// Relations that one FROM may join.
const RELATIONS_MAX: usize = 64;

/// Binds one relation of FROM.
pub(super) fn bind_factor(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    factor: &TableFactor,
) -> Result<LogicalPlan, SqlError> {
    if names.relations.len() >= RELATIONS_MAX {
        let message = format!("a query joins at most {RELATIONS_MAX} relations (RELATIONS_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let (factor, only) = relation_of(factor, query.variables.version());
    let factor = factor.as_ref();
    match factor {
        TableFactor::Table { name, alias, args: Some(arguments), with_ordinality, .. } => {
            if let Some(height) = past_height(&arguments.args) {
                return bind_past(query, names, name, height, alias.as_ref());
            }
            bind_function(query, level, names, (name, &arguments.args, *with_ordinality), alias.as_ref())
        }
        TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
            bind_function(query, level, names, (name, args, *with_ordinality), alias.as_ref())
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
            let arguments = array_exprs.iter().collect();
            let call = Call { name: "unnest".to_string(), arguments, with_ordinality: *with_ordinality };
            bind_row_function(query, level, names, call, alias.as_ref(), factor.span())
        }
        TableFactor::Table { name, alias, .. } => {
            plain_table(factor).map_err(|error| query.variables.located(error, name.span()))?;
            bind_named(query, level, names, (name, only), alias.as_ref())
        }
        TableFactor::Derived { lateral, subquery, alias, sample: None } => {
            if alias.is_none() {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "subquery in FROM must have an alias")
                    .hint("For example, FROM (SELECT ...) [AS] foo.");
                return Err(query.variables.located(error, factor.span()));
            }
            let visible = if *lateral { names.between(0) } else { Relations::default() };
            let around = query.binder(level, Source::Relations(&visible));
            let (bound, arguments) = bind_nested(query, subquery, Some(&around))?;
            derived(query, names, bound, arguments, alias.as_ref(), None)
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            let first = names.width();
            bind_joined(query, level, names, table_with_joins, first)
        }
        // Its relations cannot be named outside: as if it were a query.
        TableFactor::NestedJoin { table_with_joins, alias } => {
            let everything = everything_of(table_with_joins)?;
            let around = query.binder(level, Source::Nothing);
            let (bound, arguments) = bind_nested(query, &everything, Some(&around))?;
            derived(query, names, bound, arguments, alias.as_ref(), None)
        }
        _ => Err(query.variables.located(SqlError::unsupported("this form of FROM"), factor.span())),
    }
}

/// A relation that is named: a WITH query, a table of a trigger, a view or a table.
fn bind_named(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    (name, only): (&ast::ObjectName, bool),
    alias: Option<&TableAlias>,
) -> Result<LogicalPlan, SqlError> {
    if let [part] = name.0.as_slice()
        && let Some(ident) = part.as_ident()
        && let Some(common) = query.common(&name_of(ident)?)
    {
        let known_as = name_of(ident)?;
        let kept = common.kept_rows().map_err(|error| query.variables.located(error, name.span()))?;
        if let Some((number, columns)) = kept {
            let named = columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
            add_relation(query, names, &known_as, alias, named)?;
            let types = columns.iter().map(|column| column.data_type).collect();
            return Ok(LogicalPlan::Kept { number, types });
        }
        let (bound, arguments) = bind_common(common, level)?;
        return derived(query, names, bound, arguments, alias, Some(known_as));
    }
    let called = table_name(name)?;
    if let Some(rows) = query.variables.transition_table(&called) {
        add_relation(query, names, &called, alias, rows.columns.clone())?;
        let types = rows.columns.iter().map(|(_, data_type)| *data_type).collect();
        return Ok(LogicalPlan::Kept { number: rows.number, types });
    }
    let called = query.tables.find(&called);
    query.variables.note_relation(&called, name.span());
    query.variables.note_use(&called, Privileges::SELECT);
    let row_type = query.tables.routines().types().named(&called).map(|known| known.data_type());
    if let Some(view) = query.tables.view(&called) {
        let bound = bind_view(query, view, query.variables.locking(name.span()))?;
        let known_as = Some(object_name(&called).to_string());
        let item = derived(query, names, bound, Vec::new(), alias, known_as)?;
        set_row_type(names, row_type);
        let columns = view.columns.iter().map(|column| column.name.clone()).collect();
        set_catalogued(names, &called, columns);
        return Ok(if only { without_partitions(query.tables, &called, item) } else { item });
    }
    if query.tables.version() >= ExecutionVersion::V16 && query.tables.routines().has_sequence(&called) {
        let around = query.binder(level, Source::Nothing);
        let (bound, arguments) = bind_nested(query, &own_query(&row_of_sequence(&called))?, Some(&around))?;
        return derived(query, names, bound, arguments, alias, Some(object_name(&called).to_string()));
    }
    let table = find_table(query.tables, query.variables, name)?;
    let columns = table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let first = names.width();
    add_relation(query, names, &table.name, alias, columns)?;
    set_row_type(names, row_type);
    set_table(names, table);
    if query.tables.version() >= ExecutionVersion::V13 {
        set_primary_key(names, table);
    }
    let locking = query.variables.locking(name.span());
    if locking.is_some() && table.materialized.is_some() {
        let message = format!("cannot lock rows in materialized view \"{}\"", table.name);
        return Err(SqlError::new(SqlState(*b"42809"), message));
    }
    // Before version 15 rows are asked for as by an UPDATE, and that is all.
    let locked = query.variables.version() >= ExecutionVersion::V15 && !table.id.is_temporary();
    let scan = Scan { locking: locking.filter(|_| locked), ..Scan::of(table.clone()) };
    let rows = seen(query.tables, query.variables, (scan, first), locking.is_some())?;
    Ok(if only { without_partitions(query.tables, &called, rows) } else { rows })
}

/// The rows of a table without those of its partitions.
fn without_partitions(tables: &Tables, name: &str, rows: LogicalPlan) -> LogicalPlan {
    rows.filtered(nothing_of(tables, name, true).into_iter().collect())
}

/// `SELECT * FROM tables`
fn everything_of(tables: &TableWithJoins) -> Result<Query, SqlError> {
    let mut query = own_query("SELECT * FROM tables")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![tables.clone()];
    }
    Ok(query)
}

/// A query that is made here.
fn own_query(sql: &str) -> Result<Query, SqlError> {
    match parse_plain_statements(sql, ExecutionVersion::NEWEST)?.pop() {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(broken("a query that was none")),
    }
}

fn derived(
    query: QueryScope<'_>,
    names: &mut Relations,
    BoundQuery { plan, origins, .. }: BoundQuery,
    arguments: Vec<Expression>,
    alias: Option<&TableAlias>,
    known_as: Option<String>,
) -> Result<LogicalPlan, SqlError> {
    let columns = plan.columns().iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let binder = Binder::new(query.variables, Source::Nothing);
    let records = plan.outputs().iter().enumerate().filter(|(_, value)| value.data_type == DataType::Record);
    let records =
        records.filter_map(|(position, value)| Some((position, binder.fields_of(value)?))).collect();
    add_relation(query, names, known_as.as_deref().unwrap_or_default(), alias, columns)?;
    if let Some(relation) = names.relations.last_mut() {
        relation.records = records;
        relation.origins = origins;
    }
    Ok(LogicalPlan::query(plan, arguments))
}

/// A function in FROM.
fn bind_function(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    (name, arguments, with_ordinality): (&ast::ObjectName, &[FunctionArg], bool),
    alias: Option<&TableAlias>,
) -> Result<LogicalPlan, SqlError> {
    if is_history(name) && !with_ordinality {
        return bind_history(query, level, names, (name, arguments), alias);
    }
    let known = table_name(name).ok().and_then(|name| query.tables.routines().get(&name));
    if known.is_none() && gives_rows_here(name, query.variables.version()) || with_ordinality {
        let call = Call { name: name.to_string(), arguments: plain_arguments(arguments)?, with_ordinality };
        return bind_row_function(query, level, names, call, alias, name.span());
    }
    if known.is_some() && takes_json(name, query.variables.version(), arguments.len()) {
        // As in PostgreSQL, a function of the ledger does not hide one of the system.
        let call = Call { name: name.to_string(), arguments: plain_arguments(arguments)?, with_ordinality };
        match bind_row_function(query, level, names, call, alias, name.span()) {
            Err(error) if error.state == SqlState::UNDEFINED_FUNCTION => {}
            bound => return bound,
        }
    }
    let called = table_name(name)?;
    let known_as = object_name(&called).to_string();
    let visible = names.between(0);
    let binder = query.binder(level, Source::Relations(&visible));
    binder.in_clause(Some("functions in FROM"));
    if known.is_none() {
        let own = alias.filter(|alias| alias.columns.is_empty()).map(|alias| alias.name.clone());
        let column = own.unwrap_or_else(|| ast::Ident::with_quote('"', known_as.as_str()));
        if let Some((plan, handed)) = bind_scalar_function(query, (name, arguments), column, &binder)? {
            return derived(query, names, plan.into(), handed, alias, Some(known_as));
        }
    }
    let arguments = binder.bind_arguments(arguments)?;
    let missing = binder.no_routine(&called, &arguments, name.span());
    let found = binder.routine_call(&called, arguments);
    let (routine, mut call) =
        found.map_err(|error| query.variables.located(error, name.span()))?.ok_or(missing)?;
    let columns = match asked_columns(query, &routine, alias)? {
        Some(columns) => {
            call.columns_are_asked = true;
            call.columns = Some(columns.clone());
            columns
        }
        None => routine.columns.clone(),
    };
    let types = columns.iter().map(|column| column.data_type).collect();
    let columns = columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    add_relation(query, names, &known_as, alias, columns)?;
    set_row_type(names, Some(routine.data_type()).filter(|found| matches!(found, DataType::Composite(_))));
    if let (Some(alias), Some(relation)) = (alias, names.relations.last_mut())
        && alias.columns.is_empty()
        && routine.form() == CallForm::Value
        && matches!(routine.definition.function, Some(Function { result: FunctionResult::Value(_), .. }))
    {
        // A function's only column has the name of its alias, unless a parameter names it.
        relation.columns[0].0 = relation.name.clone();
    }
    Ok(LogicalPlan::Call { call: Box::new(call), types })
}
