//! Binding of UPDATE and of assignments to columns.

use super::Access;
use super::bind::{bind_where, columns_of, single_table, table_name};
use super::change::BoundUpdate;
use super::fields::{assigned_field, field_target};
use super::from::bind_from;
use super::insert::{default_row, is_default};
use super::output::bind_returning;
use super::query::{finding, in_statement};
use crate::command::UpdatePlan;
use crate::expression::{Binder, Expression, Source};
use crate::predicate::Condition;
use crate::scope::{VariableScope, name_of};
use crate::sequence::draws_value;
use crate::table::{TablePlan, Tables};
use sqlparser::ast::{
    self, AssignmentTarget, Expr, ObjectName, Spanned, TableWithJoins, UpdateTableFromKind,
};
use std::sync::Arc;
use types::{ColumnSet, Privileges, SqlError, SqlState, Value};

/// Ordinal of an assigned column, which must not be among those `assigned` already.
pub(super) fn target_column(
    table: &TablePlan,
    scope: &VariableScope,
    column: &ObjectName,
    assigned: &[usize],
) -> Result<usize, SqlError> {
    let [ast::ObjectNamePart::Identifier(ident)] = column.0.as_slice() else {
        return Err(scope.located(SqlError::unsupported(format_args!("the target {column}")), column.span()));
    };
    let name = name_of(ident)?;
    let Some(ordinal) = table.ordinal(&name) else {
        return Err(scope.located(no_column(table, &name), ident.span));
    };
    if assigned.contains(&ordinal) {
        let message = format!("column \"{name}\" specified more than once");
        return Err(scope.located(SqlError::new(SqlState::DUPLICATE_COLUMN, message), ident.span));
    }
    Ok(ordinal)
}

pub(crate) fn no_column(table: &TablePlan, name: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

pub(super) fn bind_update(
    tables: &Tables,
    scope: &VariableScope,
    update: &ast::Update,
) -> Result<BoundUpdate, SqlError> {
    if update.output.is_some() || update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of UPDATE"));
    }
    let others = match &update.from {
        None => &[],
        Some(UpdateTableFromKind::AfterSet(others)) => others.as_slice(),
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
    };
    let (table, known_as) = single_table(tables, scope, &update.table)?;
    scope.note_use(&table.relation, Privileges::UPDATE);
    scope.note_fired(tables.fired_by(table));
    let returning = bind_returning(table, &known_as, scope, update.returning.as_deref())?;
    let parts = update.assignments.iter().map(|assignment| &assignment.value).chain(&update.selection);
    if !others.is_empty() || parts.into_iter().any(|part| holds_query(scope, part)) {
        return in_statement(tables, scope, |query, level| {
            let from: Vec<TableWithJoins> = [&update.table].into_iter().chain(others).cloned().collect();
            let (item, names) = bind_from(query, level, &from)?;
            let binder = query.binder(level, Source::Relations(&names));
            let assignments = bind_assignments(table, &binder, &update.assignments)?;
            let conditions = bind_where(&binder, update.selection.as_ref())?;
            let mut projection = key_columns(table, "UPDATE")?;
            let found = |(position, (ordinal, value)): (usize, (u16, Expression))| {
                let slot = Expression::slot(table.key.len() + position, value.data_type);
                projection.push(value);
                (ordinal, slot)
            };
            let assignments = assignments.into_iter().enumerate().map(found).collect();
            let item = item.expect("there is a table at least");
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = Arc::new(UpdatePlan::new(table.clone(), Vec::new(), assignments));
            Ok(BoundUpdate { plan, access, filter: None, filter_columns: ColumnSet::EMPTY, returning })
        });
    }
    let binder = Binder::new(scope, Source::Table { table, name: &known_as });
    let assignments = bind_assignments(table, &binder, &update.assignments)?;
    let reads = assignments.iter().any(|(_, value)| value.columns() != ColumnSet::EMPTY);
    if reads || update.selection.is_some() || update.returning.is_some() {
        scope.note_use(&table.relation, Privileges::SELECT);
    }
    let conditions = bind_where(&binder, update.selection.as_ref())?;
    let (access, rest) = Access::plan(table, conditions);
    let filter_columns = columns_of(&rest) | access.columns();
    let (asked_by_command, filter) = match access {
        Access::Key(_) => (rest, None),
        Access::Range(_) | Access::Index(_) | Access::Found(_) => (Vec::new(), Condition::all(rest)),
    };
    let plan = Arc::new(UpdatePlan::new(table.clone(), asked_by_command, assignments));
    Ok(BoundUpdate { plan, access, filter, filter_columns, returning })
}

/// The columns of the primary key, as a query that finds rows gives them.
pub(super) fn key_columns(table: &TablePlan, statement: &str) -> Result<Vec<Expression>, SqlError> {
    if table.key.is_empty() {
        let what = format_args!("{statement} by a query on a table without a primary key");
        return Err(SqlError::unsupported(what).hint("Give the table a primary key."));
    }
    let column = |ordinal: &u16| {
        let ordinal = usize::from(*ordinal);
        Expression::column(ordinal, table.columns[ordinal].data_type)
    };
    Ok(table.key.iter().map(column).collect())
}

/// True where a query or a call of a function of the ledger stands inside.
pub(super) fn holds_query(scope: &VariableScope, expr: &Expr) -> bool {
    let is_routine = |function: &ast::Function| {
        let name = table_name(&function.name).ok().or_else(|| {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            name.and_then(|name| name_of(name).ok())
        });
        name.is_some_and(|name| scope.routines().get(&name).is_some() || draws_value(&name))
    };
    let flow = ast::visit_expressions(expr, |inner| match inner {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => std::ops::ControlFlow::Break(()),
        Expr::Function(function) if is_routine(function) => std::ops::ControlFlow::Break(()),
        _ => std::ops::ControlFlow::Continue(()),
    });
    flow.is_break()
}

/// Ordinals and values of SET.
pub(super) fn bind_assignments(
    table: &TablePlan,
    binder: &Binder<'_>,
    list: &[ast::Assignment],
) -> Result<Vec<(u16, Expression)>, SqlError> {
    let mut assigned: Vec<usize> = Vec::new();
    let mut assignments: Vec<(u16, Expression)> = Vec::new();
    // Columns of which fields are assigned.
    let mut fields: Vec<usize> = Vec::new();
    for assignment in list {
        let AssignmentTarget::ColumnName(column) = &assignment.target else {
            return Err(SqlError::unsupported("an assignment to several columns at once"));
        };
        if column.0.len() > 1
            && let Some((ordinal, path)) = field_target(table, binder, column)?
        {
            let value = assigned_field(binder, &path, &assignment.value)?;
            let known = assignments.iter_mut().find(|(known, _)| usize::from(*known) == ordinal);
            match known {
                // Another field of the same column.
                Some((_, row)) if fields.contains(&ordinal) => {
                    let whole = std::mem::replace(row, Expression::constant(Value::Null, row.data_type));
                    *row = Expression::with_field(whole, &path, value);
                }
                Some(_) => {
                    let name = &table.columns[ordinal].name;
                    let message = format!("multiple assignments to same column \"{name}\"");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
                None => {
                    let row = Expression::column(ordinal, table.columns[ordinal].data_type);
                    assignments.push((ordinal as u16, Expression::with_field(row, &path, value)));
                    assigned.push(ordinal);
                    fields.push(ordinal);
                }
            }
            continue;
        }
        let ordinal = target_column(table, binder.scope(), column, &assigned).map_err(assigned_twice)?;
        assigned.push(ordinal);
        let target = &table.columns[ordinal];
        if table.key.contains(&(ordinal as u16)) {
            let what = format_args!("UPDATE of \"{}\", a column of the primary key,", target.name);
            let error = SqlError::unsupported(what).hint("Use DELETE and INSERT.");
            return Err(binder.at(error, column.span()));
        }
        let value = if is_default(&assignment.value) {
            let default = default_row(table).swap_remove(ordinal);
            if default.runs_anything() {
                let what = format_args!("SET {} = DEFAULT, whose default calls a function,", target.name);
                return Err(SqlError::unsupported(what).hint("Call the function instead."));
            }
            default
        } else {
            if target.is_generated {
                let message = format!("column \"{}\" can only be updated to DEFAULT", target.name);
                return Err(SqlError::new(SqlState(*b"428C9"), message));
            }
            let bound = binder.in_clause(Some("UPDATE")).bind_towards(&assignment.value, target.data_type)?;
            binder
                .assign_to_column(bound, &target.name, target.data_type)
                .map_err(|error| binder.at(error, assignment.value.span()))?
        };
        assignments.push((ordinal as u16, value));
    }
    Ok(assignments)
}

/// UPDATE says it in other words than INSERT.
fn assigned_twice(error: SqlError) -> SqlError {
    if error.state != SqlState::DUPLICATE_COLUMN {
        return error;
    }
    let message = error.message.replace("column ", "multiple assignments to same column ");
    let message = message.replace(" specified more than once", "");
    SqlError { state: SqlState::SYNTAX_ERROR, message, ..error }
}
