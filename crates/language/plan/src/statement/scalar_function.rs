//! A function of the system in FROM that gives one value: a relation of one row.

use crate::expression::{Binder, Expression};
use crate::logical::LogicalPlan;
use crate::statement::query::bind_nested;
use crate::statement::query_scope::QueryScope;
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgumentList, FunctionArguments, Query, SelectItem, SetExpr, Statement,
};
use syntax::parse::parse_plain_statements;
use types::{ExecutionVersion, SqlError, SqlState};
use values::broken;

/// Binds `name(arguments)` as a query of one value, which has this name. `around`: what stands to its left in FROM. `None` where there is
/// no such function.
///
/// # Errors
/// Those of the call.
pub(super) fn bind_scalar_function(
    query: QueryScope<'_>,
    (name, arguments): (&ast::ObjectName, &[FunctionArg]),
    known_as: ast::Ident,
    around: &Binder<'_>,
) -> Result<Option<(LogicalPlan, Vec<Expression>)>, SqlError> {
    if query.tables.version() < ExecutionVersion::V13 {
        return Ok(None);
    }
    let call = Expr::Function(ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    });
    match bind_nested(query, &value_of(call, known_as)?, Some(around)) {
        Ok((bound, arguments)) if is_of_one_row(&bound.plan) => Ok(Some((bound.plan, arguments))),
        Ok(_) => {
            let message = "aggregate functions are not allowed in functions in FROM";
            Err(SqlError::new(SqlState::GROUPING_ERROR, message))
        }
        Err(error) if error.state == SqlState::UNDEFINED_FUNCTION => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a query computes something of nothing, and no aggregate.
fn is_of_one_row(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Project { input, .. } if matches!(**input, LogicalPlan::OneRow))
}

/// `SELECT expression AS name`
fn value_of(expr: Expr, alias: ast::Ident) -> Result<Query, SqlError> {
    let parsed = parse_plain_statements("SELECT 1", ExecutionVersion::NEWEST)?.pop();
    let Some(Statement::Query(mut query)) = parsed else { return Err(broken("a query that was none")) };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::ExprWithAlias { expr, alias }];
    }
    Ok(*query)
}
