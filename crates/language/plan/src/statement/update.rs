//! Binding of UPDATE.

use crate::advisory::AdvisoryFunction;
use crate::assets::AssetFunction;
use crate::command::UpdatePlan;
use crate::condition::Condition;
use crate::expression::{Binder, Expression, Source, columns_of, session_word};
use crate::in_execution::draws_or_asks;
use crate::row_security::{looks_at_target, restrict_update};
use crate::scope::VariableScope;
use crate::sequence::draws_value;
use crate::statement::Access;
use crate::statement::assignments::{bind_assignments, sets_running_default};
use crate::statement::change::BoundUpdate;
use crate::statement::column_targets::note_columns;
use crate::statement::conditions::bind_where;
use crate::statement::from::bind_from_target;
use crate::statement::named_table::single_table;
use crate::statement::only::target_of;
use crate::statement::output::{bind_returning, bind_returning_beside};
use crate::statement::query::finding;
use crate::statement::query_scope::QueryScope;
use crate::statement::view_target::{Change, ViewTarget};
use sqlparser::ast::{self, Expr, TableFactor, UpdateTableFromKind};
use std::convert::identity;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{ColumnSet, ExecutionVersion, Privileges, SqlError};

pub(super) fn bind_update(outer: QueryScope<'_>, update: &ast::Update) -> Result<BoundUpdate, SqlError> {
    let (tables, scope) = (outer.tables, outer.variables);
    if update.output.is_some() || update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of UPDATE"));
    }
    let (target, selection) = (&update.table.relation, update.selection.as_ref());
    if let Some((relation, selection)) = target_of(tables, scope, target, selection)? {
        let table = ast::TableWithJoins { relation, joins: update.table.joins.clone() };
        return bind_update(outer, &ast::Update { table, selection, ..update.clone() });
    }
    let others = match &update.from {
        None => &[],
        Some(UpdateTableFromKind::AfterSet(others)) => others.as_slice(),
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
    };
    if let TableFactor::Table { name, .. } = &update.table.relation
        && let Some(view) = ViewTarget::find(tables, scope, name, Change::Update)?
    {
        return view.bind_update(outer, update, others);
    }
    let (table, known_as) = single_table(tables, scope, &update.table)?;
    scope.note_use(&table.relation, Privileges::UPDATE);
    scope.note_fired(tables.fired_by(table));
    let parts = update.assignments.iter().map(|assignment| &assignment.value).chain(&update.selection);
    let runs = parts.into_iter().any(|part| holds_query(scope, part))
        || sets_running_default(table, &update.assignments)
        || table.row_security.is_some();
    if !others.is_empty() || runs {
        return outer.beside(|query, level| {
            let (mut item, names, key) =
                bind_from_target(query, level, (&update.table.relation, table), others)?;
            let binder = query.binder(level, Source::Relations(&names));
            let assignments = bind_assignments(table, &binder, &update.assignments)?;
            note_columns(scope, table, assignments.iter().map(|(ordinal, _)| *ordinal), Privileges::UPDATE);
            let conditions = bind_where(&binder, update.selection.as_ref())?;
            let mut projection = vec![key];
            let found = |(ordinal, value): (u16, Expression)| {
                let slot = Expression::slot(projection.len(), value.data_type);
                projection.push(value);
                (ordinal, slot)
            };
            let assignments = assignments.into_iter().map(found).collect();
            let items = update.returning.as_deref();
            let returning =
                bind_returning_beside(table, &binder, &names, scope, items, identity, &mut projection)?;
            let reads = projection[1..].iter().any(|value| value.columns() != ColumnSet::EMPTY);
            if reads || update.selection.is_some() || update.returning.is_some() {
                scope.note_reading(&table.relation);
            }
            let returned = returning.iter().flat_map(|returning| &returning.projection);
            let looks = projection[1..].iter().chain(&conditions).chain(returned);
            let is_read = looks_at_target(table, looks);
            let row_check = restrict_update(tables, scope, table, &mut item, is_read)?;
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = UpdatePlan::new(table.clone(), Vec::new(), assignments);
            let plan = Arc::new(plan.checking(row_check));
            Ok(BoundUpdate { plan, access, filter: None, filter_columns: ColumnSet::EMPTY, returning })
        });
    }
    let returning = bind_returning(table, &known_as, scope, update.returning.as_deref())?;
    let binder = Binder::new(scope, Source::Table { table, name: &known_as });
    let assignments = bind_assignments(table, &binder, &update.assignments)?;
    note_columns(scope, table, assignments.iter().map(|(ordinal, _)| *ordinal), Privileges::UPDATE);
    let reads = assignments.iter().any(|(_, value)| value.columns() != ColumnSet::EMPTY);
    if reads || update.selection.is_some() || update.returning.is_some() {
        scope.note_reading(&table.relation);
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

/// True where a query or a call of a function of the ledger stands inside.
pub(super) fn holds_query(scope: &VariableScope, expr: &Expr) -> bool {
    let is_routine = |function: &ast::Function| {
        let name = table_name(&function.name).ok().or_else(|| {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            name.and_then(|name| name_of(name).ok())
        });
        let is_asset = scope.version() >= ExecutionVersion::V6 && AssetFunction::called(function).is_some();
        is_asset
            || AdvisoryFunction::own(function, scope.version()).is_some()
            || name.is_some_and(|name| {
                scope.routines().get(&name).is_some()
                    || draws_value(&name)
                    || draws_or_asks(&name, scope.version())
            })
    };
    let flow = ast::visit_expressions(expr, |inner| match inner {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => std::ops::ControlFlow::Break(()),
        // ARRAY(SELECT …), which version 1 did not see.
        Expr::Function(ast::Function { args: ast::FunctionArguments::Subquery(_), .. })
            if scope.version() >= ExecutionVersion::V2 =>
        {
            std::ops::ControlFlow::Break(())
        }
        Expr::Function(function) if is_routine(function) => std::ops::ControlFlow::Break(()),
        Expr::Identifier(name) if scope.version() >= ExecutionVersion::V8 && session_word(name).is_some() => {
            std::ops::ControlFlow::Break(())
        }
        _ => std::ops::ControlFlow::Continue(()),
    });
    flow.is_break()
}
