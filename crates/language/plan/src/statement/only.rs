//! `ONLY table`: no row of a table is outside of its partitions, and every other table has its rows alone.

use crate::expression::Expression;
use crate::scope::VariableScope;
use crate::tables::Tables;
use sqlparser::ast::{self, BinaryOperator, Expr, TableFactor};
use std::borrow::Cow;
use syntax::names::table_name;
use syntax::parse::without_only;
use types::{DataType, ExecutionVersion, SqlError, Value};

/// A relation of FROM without ONLY, and whether it says that. Up to version 13 the word was the name of a function there.
pub(super) fn relation_of(factor: &TableFactor, version: ExecutionVersion) -> (Cow<'_, TableFactor>, bool) {
    match version >= ExecutionVersion::V14 {
        true => without_only(factor),
        false => (Cow::Borrowed(factor), false),
    }
}

/// The only relation of FROM, where nothing is joined to it.
pub(super) fn single_relation(
    select: &ast::Select,
    version: ExecutionVersion,
) -> Option<(Cow<'_, TableFactor>, bool)> {
    match select.from.as_slice() {
        [ast::TableWithJoins { relation, joins }] if joins.is_empty() => Some(relation_of(relation, version)),
        _ => None,
    }
}

/// What is true of the rows of a relation of the catalog that stands behind ONLY (`only`): of a partitioned one, of none.
pub(super) fn nothing_of(tables: &Tables, name: &str, only: bool) -> Option<Expression> {
    let is_empty = only && tables.is_partitioned(name);
    is_empty.then(|| Expression::constant(Value::Boolean(false), DataType::Boolean))
}

/// Whether the relation that SQL calls by this name is partitioned: then ONLY leaves nothing of it.
pub(super) fn is_partitioned(tables: &Tables, name: &ast::ObjectName) -> Result<bool, SqlError> {
    Ok(tables.is_partitioned(&tables.find(&table_name(name)?)))
}

/// The table that an UPDATE or DELETE changes, without ONLY, and the condition that it has then. `None` where it does not say ONLY.
pub(super) fn target_of(
    tables: &Tables,
    scope: &VariableScope,
    target: &TableFactor,
    selection: Option<&Expr>,
) -> Result<Option<(TableFactor, Option<Expr>)>, SqlError> {
    let (Cow::Owned(target), true) = relation_of(target, scope.version()) else { return Ok(None) };
    let is_empty = match &target {
        TableFactor::Table { name, .. } => is_partitioned(tables, name)?,
        _ => false,
    };
    let selection = match (is_empty, selection) {
        (false, selection) => selection.cloned(),
        (true, None) => Some(nothing()),
        (true, Some(selection)) => Some(Expr::BinaryOp {
            left: Box::new(nothing()),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(selection.clone()))),
        }),
    };
    Ok(Some((target, selection)))
}

/// What is true of no row.
fn nothing() -> Expr {
    Expr::value(ast::Value::Boolean(false))
}
