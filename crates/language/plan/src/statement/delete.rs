//! Binding of DELETE.

use crate::command::DeletePlan;
use crate::condition::Condition;
use crate::expression::{Binder, Source, columns_of};
use crate::row_security::{looks_at_target, restrict_delete};
use crate::statement::Access;
use crate::statement::change::BoundDelete;
use crate::statement::conditions::bind_where;
use crate::statement::from::bind_from_target;
use crate::statement::named_table::single_table;
use crate::statement::only::target_of;
use crate::statement::output::{bind_returning, bind_returning_beside};
use crate::statement::query::finding;
use crate::statement::query_scope::QueryScope;
use crate::statement::update::holds_query;
use crate::statement::view_target::{Change, ViewTarget};
use sqlparser::ast::{self, FromTable, TableFactor, TableWithJoins};
use std::convert::identity;
use std::sync::Arc;
use types::{ColumnSet, Privileges, SqlError, SqlState};

pub(super) fn bind_delete(outer: QueryScope<'_>, delete: &ast::Delete) -> Result<BoundDelete, SqlError> {
    let (tables, scope) = (outer.tables, outer.variables);
    if !delete.tables.is_empty()
        || delete.output.is_some()
        || !delete.order_by.is_empty()
        || delete.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of DELETE"));
    }
    let FromTable::WithFromKeyword(from) = &delete.from else {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error: DELETE without FROM"));
    };
    let [from] = from.as_slice() else {
        return Err(SqlError::unsupported("DELETE from several tables"));
    };
    if let Some((relation, selection)) = target_of(tables, scope, &from.relation, delete.selection.as_ref())?
    {
        let from = TableWithJoins { relation, joins: from.joins.clone() };
        let from = FromTable::WithFromKeyword(vec![from]);
        return bind_delete(outer, &ast::Delete { from, selection, ..delete.clone() });
    }
    if let TableFactor::Table { name, .. } = &from.relation
        && let Some(view) = ViewTarget::find(tables, scope, name, Change::Delete)?
    {
        return view.bind_delete(outer, from, delete);
    }
    let (table, known_as) = single_table(tables, scope, from)?;
    scope.note_use(&table.relation, Privileges::DELETE);
    scope.note_fired(tables.fired_by(table));
    if delete.selection.is_some() || delete.returning.is_some() {
        scope.note_reading(&table.relation);
    }
    let others = delete.using.as_deref().unwrap_or_default();
    let runs = delete.selection.iter().any(|part| holds_query(scope, part)) || table.row_security.is_some();
    if !others.is_empty() || runs {
        return outer.beside(|query, level| {
            let (mut item, names, key) = bind_from_target(query, level, (&from.relation, table), others)?;
            let binder = query.binder(level, Source::Relations(&names));
            let conditions = bind_where(&binder, delete.selection.as_ref())?;
            let mut projection = vec![key];
            let items = delete.returning.as_deref();
            let returning =
                bind_returning_beside(table, &binder, &names, scope, items, identity, &mut projection)?;
            let returned = returning.iter().flat_map(|returning| &returning.projection);
            let is_read = looks_at_target(table, conditions.iter().chain(returned));
            restrict_delete(tables, scope, table, &mut item, is_read)?;
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = Arc::new(DeletePlan::new(table.clone(), Vec::new()));
            Ok(BoundDelete {
                plan,
                access,
                filter: None,
                filter_columns: ColumnSet::EMPTY,
                returning,
                truncation: None,
            })
        });
    }
    let returning = bind_returning(table, &known_as, scope, delete.returning.as_deref())?;
    let binder = Binder::new(scope, Source::Table { table, name: &known_as });
    let conditions = bind_where(&binder, delete.selection.as_ref())?;
    let (access, rest) = Access::plan(table, conditions);
    let filter_columns = columns_of(&rest) | access.columns();
    let (asked_by_command, filter) = match access {
        Access::Key(_) => (rest, None),
        Access::Range(_) | Access::Index(_) | Access::Found(_) => (Vec::new(), Condition::all(rest)),
    };
    let plan = Arc::new(DeletePlan::new(table.clone(), asked_by_command));
    Ok(BoundDelete { plan, access, filter, filter_columns, returning, truncation: None })
}
