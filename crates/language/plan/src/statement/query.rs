//! Queries inside of one another: WITH in front of a query, parentheses and VALUES, and what stands behind its body.

use crate::expression::{Binder, Expression, NamedRelation, Relations, Source};
use crate::logical::LogicalPlan;
use crate::row_locking::RowLocking;
use crate::scope::VariableScope;
use crate::statement::bound_query::BoundQuery;
use crate::statement::insert::UNEQUAL_ROWS;
use crate::statement::level::{Level, in_statement};
use crate::statement::locking::note_locks;
use crate::statement::output::check_list;
use crate::statement::query_scope::{CommonTable, QueryScope};
use crate::statement::select::BoundSelect;
use crate::statement::select_clauses::{Outputs, bind_limit, bind_order};
use crate::statement::select_query::bind_select;
use crate::statement::set_operation::{bind_set, cannot_match};
use crate::statement::with_change::refuse_change;
use crate::tables::Tables;
use crate::view::ViewPlan;
use sqlparser::ast::{self, Cte, Query, SetExpr, Spanned};
use std::sync::Arc;
use types::session_format::{SessionFormat, within_format};
use types::{DataType, OutputColumn, SearchPath, SqlError, SqlState, common_type};

/// Binds a query that stands alone.
///
/// # Errors
/// As [`crate::statement::bind_statement`].
pub fn bind_query(tables: &Tables, scope: &VariableScope, query: &Query) -> Result<BoundSelect, SqlError> {
    bind_logical(tables, scope, query).map(BoundQuery::operators)
}

/// The same without deciding how its rows are found.
///
/// # Errors
/// As [`bind_query`].
pub fn bind_logical(tables: &Tables, scope: &VariableScope, query: &Query) -> Result<BoundQuery, SqlError> {
    in_statement(tables, scope, |scope, _| bind_nested(scope, query, None)).map(|(bound, _)| bound)
}

/// Binds the query of a view for one use.
///
/// # Errors
/// As [`crate::statement::bind_statement`]: nothing, as long as nothing is altered under the view.
pub(super) fn bind_view(
    scope: QueryScope<'_>,
    view: &ViewPlan,
    locking: Option<RowLocking>,
) -> Result<BoundQuery, SqlError> {
    // Its text has the names of the catalog.
    let tables = scope.tables.with_search_path(&SearchPath::default());
    let variables = VariableScope::for_procedure(None).with_routines(tables.routines());
    let variables = variables.locking_all(locking);
    let inside = QueryScope { tables: &tables, variables: &variables, common: None, ..scope };
    // Its literals are those of a definition.
    let (bound, _) = within_format(SessionFormat::default(), || bind_nested(inside, &view.query, None))?;
    variables.called().iter().for_each(|called| scope.variables.note_call(called));
    bound.lock.into_iter().for_each(|lock| scope.variables.note_lock(lock));
    let types: Vec<DataType> = view.columns.iter().map(|column| column.data_type).collect();
    Ok(bound.with_types(&types).with_columns(view.columns.clone().into()))
}

/// Binds an expression that stands alone: it may hold queries, but names no columns.
///
/// # Errors
/// As [`Binder::bind`].
pub fn bind_expression(
    tables: &Tables,
    scope: &VariableScope,
    expression: &ast::Expr,
) -> Result<Expression, SqlError> {
    in_statement(tables, scope, |query, level| query.binder(level, Source::Nothing).bind(expression))
}

/// The query that finds what an UPDATE or DELETE changes: these outputs over FROM under these conditions.
pub(super) fn finding(
    source: LogicalPlan,
    conditions: Vec<Expression>,
    outputs: Vec<Expression>,
) -> BoundSelect {
    let column = |value: &Expression| OutputColumn { name: String::new(), data_type: value.data_type };
    let columns = outputs.iter().map(column).collect();
    BoundQuery::from(source.filtered(conditions).projected(outputs, columns)).operators()
}

/// Binds a query inside of another one. Gives it with what it is to be handed of the rows around it.
///
/// # Errors
/// As [`crate::statement::bind_statement`].
pub fn bind_nested(
    scope: QueryScope<'_>,
    query: &Query,
    parent: Option<&Binder<'_>>,
) -> Result<(BoundQuery, Vec<Expression>), SqlError> {
    scope.count_query()?;
    let level = Level::new(parent);
    let around = scope.variables.take_lock();
    let common = query.with.as_ref().map_or(&[][..], |with| &with.cte_tables);
    let mut bound = with_common(scope, &level, query, common)?;
    bound.lock = scope.variables.take_lock();
    around.or(bound.lock).into_iter().for_each(|lock| scope.variables.note_lock(lock));
    Ok((bound, level.into_arguments()))
}

/// Makes the WITH queries known one after the other, then binds the query.
fn with_common(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
    rest: &[Cte],
) -> Result<BoundQuery, SqlError> {
    let Some((next, rest)) = rest.split_first() else { return bind_body(scope, level, query) };
    let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
    refuse_change(scope, next)?;
    let common = CommonTable::new(next, recursive, scope)?.inside(level.parent);
    with_common(common.behind(), level, query, rest)
}

/// Binds a query without its WITH.
pub(super) fn bind_body(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
) -> Result<BoundQuery, SqlError> {
    note_locks(scope, query)?;
    refuse_query_forms(scope.variables, query)?;
    match query.body.as_ref() {
        SetExpr::Select(select) => bind_select(scope, level, query, select),
        SetExpr::Query(inner) => {
            let (bound, arguments) = bind_nested_in(scope, level, inner)?;
            match has_order_or_limit(query) {
                false if arguments.is_empty() => Ok(bound),
                _ => {
                    let (columns, origins) = (bound.columns(), bound.origins);
                    let whole = around(scope, query, (columns, LogicalPlan::query(bound.plan, arguments)))?;
                    Ok(BoundQuery { origins, ..whole })
                }
            }
        }
        SetExpr::SetOperation { op, set_quantifier, left, right } => {
            around(scope, query, bind_set(scope, level, *op, *set_quantifier, left, right)?)
        }
        SetExpr::Values(values) => around(scope, query, bind_values(scope, level, values)?),
        SetExpr::Table(_) => Err(scope.variables.located(SqlError::unsupported("TABLE"), query.span())),
        _ => Err(scope.variables.located(SqlError::unsupported("this form of query"), query.span())),
    }
}

/// Whether an order or a limit stands behind the body of a query.
pub(super) fn has_order_or_limit(query: &Query) -> bool {
    query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some()
}

/// Binds a query at the same place as this level: what it needs from around, this one needs.
fn bind_nested_in(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
) -> Result<(BoundQuery, Vec<Expression>), SqlError> {
    let nothing = Relations::default();
    let binder = scope.binder(level, Source::Relations(&nothing));
    bind_nested(scope, query, Some(&binder))
}

/// The output columns of a relation, and the relation.
pub(super) type Rows = (Arc<[OutputColumn]>, LogicalPlan);

/// All columns of a relation, in the order and within the limits that a query sets.
fn around(scope: QueryScope<'_>, query: &Query, (columns, relation): Rows) -> Result<BoundQuery, SqlError> {
    let projection = whole(&columns);
    let named = columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let names = Relations {
        relations: vec![NamedRelation {
            name: String::new(),
            table: None,
            schema: None,
            catalogued: None,
            columns: named,
            first: 0,
            hidden: Vec::new(),
            keyed: false,
            may_be_missing: false,
            row_type: None,
            records: Vec::new(),
            origins: Vec::new(),
        }],
        merged: Vec::new(),
        joins: Vec::new(),
    };
    let binder = Binder::new(scope.variables, Source::Relations(&names));
    let output = Outputs { projection: &projection, columns: &columns };
    let order = bind_order(&binder, scope.variables, query.order_by.as_ref(), &output, false)?;
    let limits = bind_limit(scope.variables, query)?;
    Ok(BoundQuery::from(relation.sorted(order).projected(projection, columns).within(limits)))
}

/// All columns, as they are.
pub(super) fn whole(columns: &[OutputColumn]) -> Vec<Expression> {
    let column = |(ordinal, column): (usize, &OutputColumn)| Expression::column(ordinal, column.data_type);
    columns.iter().enumerate().map(column).collect()
}

fn bind_values(scope: QueryScope<'_>, level: &Level<'_>, values: &ast::Values) -> Result<Rows, SqlError> {
    let nothing = Relations::default();
    let binder = scope.binder(level, Source::Relations(&nothing));
    binder.in_clause(Some("VALUES"));
    let mut rows: Vec<Vec<Expression>> = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        check_list(row.content.len().saturating_sub(1))?;
        let row = row.content.iter().map(|value| binder.bind(value)).collect::<Result<Vec<_>, _>>()?;
        if rows.first().is_some_and(|first| first.len() != row.len()) {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, UNEQUAL_ROWS));
        }
        rows.push(row);
    }
    let width = rows.first().map_or(0, Vec::len);
    let mut columns = Vec::with_capacity(width);
    for position in 0..width {
        let types = rows.iter().map(|row| row[position].data_type);
        let data_type = common_type(types.clone()).ok_or_else(|| cannot_match("VALUES", types))?;
        for row in &mut rows {
            let null = Expression::constant(types::Value::Null, data_type);
            let value = std::mem::replace(&mut row[position], null);
            row[position] = binder.cast_to(value, data_type)?;
        }
        columns.push(OutputColumn { name: format!("column{}", position + 1), data_type });
    }
    let types = columns.iter().map(|column: &OutputColumn| column.data_type).collect();
    Ok((columns.into(), LogicalPlan::Values { rows, types }))
}

fn refuse_query_forms(scope: &VariableScope, query: &Query) -> Result<(), SqlError> {
    let plain = query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty();
    match plain {
        true => Ok(()),
        false => Err(scope.located(SqlError::unsupported("this form of SELECT"), query.span())),
    }
}
