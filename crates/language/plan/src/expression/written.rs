//! What a syntax tree says of an expression before it is bound.

use sqlparser::ast::{
    self, AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Spanned, UnaryOperator,
};
use sqlparser::tokenizer::Span;
use std::ops::ControlFlow;
use types::SqlError;
use values::Comparison;

/// Where the first query inside of an expression stands.
pub(crate) fn first_subquery(expr: &Expr) -> Option<Span> {
    let found = ast::visit_expressions(expr, |inner| match inner {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(inner.span()),
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// `ARRAY[]` in front of a cast.
pub(super) fn is_empty_array(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_empty_array(inner),
        Expr::Array(array) => array.elem.is_empty(),
        _ => false,
    }
}

/// What an operator compares; `None` where it does something else.
pub(super) fn comparison_of(operator: &BinaryOperator) -> Option<Comparison> {
    Some(match operator {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The digits of a number literal with their sign.
pub(super) fn written_number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => written_number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(text, false) => Some(format!("-{text}")),
                _ => None,
            },
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            ast::Value::Number(text, false) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The values of `(a, b)`.
pub(super) fn row_of(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Nested(inner) => row_of(inner),
        Expr::Tuple(values) if values.len() > 1 => Some(values),
        _ => None,
    }
}

/// The parser gives VARIADIC as an operator that there is not here.
pub(super) fn variadic_operand(argument: &Expr) -> Option<&Expr> {
    match argument {
        Expr::UnaryOp { op: ast::UnaryOperator::AtDashAt, expr } => Some(expr),
        _ => None,
    }
}

pub(super) fn plain_argument(argument: &FunctionArg) -> Result<&Expr, SqlError> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        FunctionArg::Unnamed(_) => Err(SqlError::unsupported("* as an argument")),
        _ => Err(SqlError::unsupported("a named argument").hint("Give the arguments in their order.")),
    }
}

/// The row of `(row).*`, which comes as a field of the name `*`.
pub fn all_fields_of(expr: &Expr) -> Option<Expr> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
    let (AccessExpr::Dot(Expr::Identifier(last)), before) = access_chain.split_last()? else { return None };
    if last.value != "*" {
        return None;
    }
    Some(match before {
        [] => root.as_ref().clone(),
        before => Expr::CompoundFieldAccess { root: root.clone(), access_chain: before.to_vec() },
    })
}

/// True for the functions that stand in front of OVER only.
pub(super) fn is_window_function(name: &str) -> bool {
    matches!(
        name,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
            | "first_value"
            | "last_value"
            | "nth_value"
    )
}
