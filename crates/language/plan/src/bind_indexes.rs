//! Binding of indexes on expressions and with a condition.

use crate::computed_index::ComputedIndex;
use crate::expression::{Binder, Expression, Kind, Source};
use crate::immutable::is_mutable;
use crate::routines::Routines;
use crate::scope::VariableScope;
use crate::table::TablePlan;
use crate::written_sql::{Parentheses, quoted_name, written_key};
use sqlparser::ast::{self, Expr};
use std::ops::ControlFlow;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::{ColumnSet, Index, SqlError, SqlState, Volatility};
use values::broken;

/// Binds one of a table whose columns are bound.
///
/// # Errors
/// What is wrong with its expressions or its predicate.
pub fn bind_index(
    plan: &TablePlan,
    index: &Arc<Index>,
    routines: &Routines,
) -> Result<ComputedIndex, SqlError> {
    let mut expressions = index.details.expressions.iter();
    let (mut keys, mut names) = (Vec::new(), Vec::new());
    for ordinal in index.columns.iter().map(|ordinal| usize::from(*ordinal)) {
        let key = match plan.columns.get(ordinal) {
            Some(column) => {
                names.push(quoted_name(&column.name));
                Expression::column(ordinal, column.data_type)
            }
            None => {
                let sql = expressions.next().ok_or_else(|| broken("an index without its expression"))?;
                names.push(written_key(sql, plan, routines, Parentheses::Few)?);
                bind_key(plan, sql, routines)?
            }
        };
        keys.push(key);
    }
    let predicate = index.details.predicate.as_ref();
    let predicate = predicate.map(|sql| bind_predicate(plan, sql, routines)).transpose()?;
    // Where a row has another key, its entry leads there.
    let key = plan.key.iter().fold(ColumnSet::EXISTS, |set, c| set | ColumnSet::column(usize::from(*c)));
    let columns = keys.iter().chain(&predicate).fold(key, |set, part| set | part.columns());
    Ok(ComputedIndex { index: index.clone(), keys, predicate, names, columns })
}

/// Binds an expression that an index is on.
///
/// # Errors
/// `42P17` where it is not the same for ever; what cannot stand there.
pub fn bind_key(plan: &TablePlan, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    let expr = parse_expression(sql, routines.version())?;
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Table { table: plan, name: &plan.name });
    refuse_queries(&expr, "index expression")?;
    let bound = binder.in_clause(Some("index expressions")).bind_known(&expr)?;
    refuse_changing(&bound, &scope, "index expression")?;
    Ok(bound)
}

/// Binds the WHERE of an index.
///
/// # Errors
/// As [`bind_key`]; `42804` where it is no condition.
pub fn bind_predicate(plan: &TablePlan, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    let expr = parse_expression(sql, routines.version())?;
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Table { table: plan, name: &plan.name });
    refuse_queries(&expr, "index predicate")?;
    let bound = binder.in_clause(Some("index predicates")).bind_condition(&expr, "WHERE")?;
    refuse_changing(&bound, &scope, "index predicate")?;
    Ok(bound)
}

/// Binds what ON CONFLICT says of rows that conflict: an expression, or a condition.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn bind_over_row(
    plan: &TablePlan,
    sql: &str,
    routines: &Routines,
    is_condition: bool,
) -> Result<Expression, SqlError> {
    let expr = parse_expression(sql, routines.version())?;
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Table { table: plan, name: &plan.name });
    refuse_queries(&expr, "index expression")?;
    let binder = binder.in_clause(Some("ON CONFLICT"));
    if is_condition { binder.bind_condition(&expr, "WHERE") } else { binder.bind_known(&expr) }
}

fn refuse_queries(expr: &Expr, place: &str) -> Result<(), SqlError> {
    let has_query = ast::visit_expressions(expr, |inner| match inner {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    match has_query.is_break() {
        true => {
            let message = format!("cannot use subquery in {place}");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        false => Ok(()),
    }
}

/// Refuses what may be another value another time, and what an index cannot run.
fn refuse_changing(bound: &Expression, scope: &VariableScope, place: &str) -> Result<(), SqlError> {
    let calls = bound.any(&mut |inner| match &inner.kind {
        Kind::Call(call) => !is_immutable(scope.routines(), &call.callee.name),
        _ => false,
    });
    if calls || is_mutable(bound) || scope.asks_session() {
        let message = format!("functions in {place} must be marked IMMUTABLE");
        return Err(SqlError::new(SqlState(*b"42P17"), message));
    }
    match bound.runs_anything() {
        false => Ok(()),
        true => Err(SqlError::unsupported(format_args!("a function of the ledger in an {place}"))
            .hint("Write the expression out, or keep the value in a column that a trigger fills.")),
    }
}

fn is_immutable(routines: &Routines, name: &str) -> bool {
    let function = routines.named(name).and_then(|known| known.definition.function.as_ref());
    function.is_some_and(|function| function.volatility == Volatility::Immutable)
}
