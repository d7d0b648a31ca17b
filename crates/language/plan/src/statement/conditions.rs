//! The conditions of a WHERE.

use crate::expression::{Binder, Expression};
use sqlparser::ast::Expr;
use types::SqlError;

/// The conditions of a WHERE, all of which must be true.
pub(super) fn bind_where(binder: &Binder<'_>, selection: Option<&Expr>) -> Result<Vec<Expression>, SqlError> {
    let Some(selection) = selection else { return Ok(Vec::new()) };
    let condition = binder.in_clause(Some("WHERE")).bind_condition(selection, "WHERE")?;
    Ok(condition.into_conjuncts())
}
