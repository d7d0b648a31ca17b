//! Binding of TRUNCATE: a DELETE of all rows, of one table after the other.

use crate::command::DeletePlan;
use crate::scope::VariableScope;
use crate::statement::change::{BoundDelete, Truncation};
use crate::statement::named_table::find_table;
use crate::statement::view_target::ViewTarget;
use crate::statement::{Access, Interval};
use crate::table::TablePlan;
use crate::tables::Tables;
use sqlparser::ast;
use std::sync::Arc;
use syntax::names::table_name;
use types::{ColumnSet, ExecutionVersion, Privileges, SqlError, SqlState, object_name};

pub(super) fn bind_truncate(
    tables: &Tables,
    scope: &VariableScope,
    truncate: &ast::Truncate,
) -> Result<BoundDelete, SqlError> {
    if truncate.partitions.is_some() || truncate.if_exists || truncate.on_cluster.is_some() {
        return Err(SqlError::unsupported("this form of TRUNCATE").hint("Use TRUNCATE table, or DELETE."));
    }
    let mut named: Vec<Arc<TablePlan>> = Vec::with_capacity(truncate.table_names.len());
    let mut partitions: Vec<ViewTarget> = Vec::new();
    for target in &truncate.table_names {
        let called = tables.find(&table_name(&target.name)?);
        if target.only && scope.version() >= ExecutionVersion::V14 && tables.is_partitioned(&called) {
            return Err(only_a_partitioned_table());
        }
        if let Some(partition) = ViewTarget::partition(tables, scope, &called)? {
            partitions.push(partition);
            continue;
        }
        let table = find_table(tables, scope, &target.name)?;
        if table.materialized.is_some() {
            let message = format!("\"{}\" is not a table", table.name);
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        if named.iter().all(|known| known.id != table.id) {
            named.push(table.clone());
        }
    }
    let cascades = matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
    let mut next = 0;
    while let Some(table) = named.get(next).cloned() {
        for foreign_key in tables.foreign_keys().of_parent(table.id) {
            let child = &foreign_key.child;
            if named.iter().any(|known| known.id == child.id) {
                continue;
            }
            if !cascades {
                return Err(referenced(&child.name, &table.name));
            }
            named.push(child.clone());
        }
        next += 1;
    }
    for table in &named {
        // Up to version 10 the schema was left out.
        let relation = if scope.version() >= ExecutionVersion::V11 { &table.relation } else { &table.name };
        scope.note_use(relation, Privileges::TRUNCATE);
        scope.note_fired(tables.fired_by(table));
    }
    let restarts = matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart));
    let whole = |table: Arc<TablePlan>| BoundDelete {
        plan: Arc::new(DeletePlan::new(table, Vec::new())),
        access: Access::Range(Interval::default()),
        filter: None,
        filter_columns: ColumnSet::EMPTY,
        returning: None,
        truncation: Some(Truncation { restarts, also: Vec::new() }),
    };
    let mut also: Vec<BoundDelete> = Vec::new();
    for partition in partitions {
        also.push(slice(tables, scope, &partition)?);
    }
    also.extend(children_first(tables, named)?.into_iter().map(whole));
    let last = also.pop();
    let mut last =
        last.ok_or_else(|| SqlError::new(SqlState::SYNTAX_ERROR, "syntax error: TRUNCATE of nothing"))?;
    last.truncation = Some(Truncation { restarts: restarts && last.filter.is_none(), also });
    Ok(last)
}

/// TRUNCATE of a partition: its rows go, and no sequence is the partition's.
fn slice(tables: &Tables, scope: &VariableScope, partition: &ViewTarget) -> Result<BoundDelete, SqlError> {
    let (table, name) = (&partition.table, object_name(&partition.name));
    if let Some(foreign_key) = tables.foreign_keys().of_parent(table.id).first() {
        return Err(referenced(&foreign_key.child.name, name));
    }
    partition.note(tables, scope, Privileges::TRUNCATE);
    let (filter, filter_columns) = partition.filter();
    Ok(BoundDelete {
        plan: Arc::new(DeletePlan::new(table.clone(), Vec::new())),
        access: Access::Range(Interval::default()),
        filter,
        filter_columns,
        returning: None,
        truncation: Some(Truncation { restarts: false, also: Vec::new() }),
    })
}

/// Tables that reference others before those, so that nothing references a row that goes.
fn children_first(tables: &Tables, mut named: Vec<Arc<TablePlan>>) -> Result<Vec<Arc<TablePlan>>, SqlError> {
    let mut ordered = Vec::with_capacity(named.len());
    while !named.is_empty() {
        let is_free = |table: &Arc<TablePlan>| {
            let referencing = tables.foreign_keys().of_parent(table.id);
            let mut waiting = referencing.iter().filter(|foreign_key| foreign_key.child.id != table.id);
            waiting.all(|foreign_key| named.iter().all(|known| known.id != foreign_key.child.id))
        };
        let Some(position) = named.iter().position(is_free) else {
            let what = "TRUNCATE of tables that reference one another in a circle";
            return Err(SqlError::unsupported(what).hint("Use DELETE."));
        };
        ordered.push(named.remove(position));
    }
    Ok(ordered)
}

fn only_a_partitioned_table() -> SqlError {
    let message = "cannot truncate only a partitioned table";
    SqlError::new(SqlState(*b"42809"), message)
        .hint("Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.")
}

fn referenced(child: &str, parent: &str) -> SqlError {
    let message = "cannot truncate a table referenced in a foreign key constraint";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .detail(format!("Table \"{child}\" references \"{parent}\"."))
        .hint(format!("Truncate table \"{child}\" at the same time, or use TRUNCATE ... CASCADE."))
}
