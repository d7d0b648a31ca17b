//! The clauses of a SELECT that may refer to its outputs: GROUP BY, DISTINCT ON, ORDER BY; and LIMIT.

use crate::expression::{Binder, Expression, Kind, Source};
use crate::logical::Limits;
use crate::scope::VariableScope;
use crate::statement::output::check_list;
use crate::statement::select::SortKey;
use sqlparser::ast::{
    Expr, Fetch, GroupByExpr, LimitClause, NonBlock, OrderBy, OrderByExpr, OrderByKind, Query, Select,
    Spanned, Value as Literal,
};
use syntax::names::name_of;
use syntax::parse::limit_with_ties;
use types::{DataType, ExecutionVersion, OutputColumn, SqlError, SqlState};

/// The output list, which GROUP BY and ORDER BY may refer to.
pub(super) struct Outputs<'q> {
    /// Their values.
    pub projection: &'q [Expression],
    /// Their names and types.
    pub columns: &'q [OutputColumn],
}

impl Outputs<'_> {
    /// The output of this position, from 1.
    fn at(&self, position: &str, clause: &str) -> Result<usize, SqlError> {
        let index = position.parse::<usize>().ok().and_then(|position| position.checked_sub(1));
        index.filter(|index| *index < self.projection.len()).ok_or_else(|| {
            let message = format!("{clause} position {position} is not in select list");
            SqlError::new(SqlState(*b"42P10"), message)
        })
    }

    /// The output of this name; an error where different ones have it.
    fn named(&self, name: &str, clause: &str) -> Result<Option<usize>, SqlError> {
        let mut found: Option<usize> = None;
        for (index, column) in self.columns.iter().enumerate() {
            if column.name != name {
                continue;
            }
            match found {
                Some(first) if self.projection[first] != self.projection[index] => {
                    let message = format!("{clause} \"{name}\" is ambiguous");
                    return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
                }
                Some(_) => {}
                None => found = Some(index),
            }
        }
        Ok(found)
    }
}

fn integer_literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, false) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The keys of GROUP BY.
pub(super) fn bind_group_keys(
    binder: &Binder<'_>,
    scope: &VariableScope,
    select: &Select,
    output: &Outputs<'_>,
) -> Result<Vec<Expression>, SqlError> {
    let exprs = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => exprs,
        _ => return Err(SqlError::unsupported("this form of GROUP BY")),
    };
    let mut keys = Vec::with_capacity(exprs.len());
    for expr in exprs {
        check_list(keys.len())?;
        let key = match (integer_literal(expr), expr) {
            (Some(position), _) => {
                let index =
                    output.at(position, "GROUP BY").map_err(|error| scope.located(error, expr.span()))?;
                output.projection[index].clone()
            }
            (None, Expr::Identifier(name)) => {
                match binder.in_clause(Some("GROUP BY")).bind_known(expr) {
                    Ok(key) => key,
                    // PostgreSQL looks at the table's columns first, then at the output.
                    Err(error) if error.state == SqlState::UNDEFINED_COLUMN => {
                        match output.named(&name_of(name)?, "GROUP BY")? {
                            Some(index) => output.projection[index].clone(),
                            None => return Err(error),
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            _ => binder.in_clause(Some("GROUP BY")).bind_known(expr)?,
        };
        if key.any(&mut |expression| matches!(expression.kind, Kind::Aggregate(_))) {
            let message = "aggregate functions are not allowed in GROUP BY";
            return Err(scope.located(SqlError::new(SqlState::GROUPING_ERROR, message), expr.span()));
        }
        binder.check_sortable(&key, "equality").map_err(|error| scope.located(error, expr.span()))?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    binder.in_clause(None);
    Ok(keys)
}

/// The keys of ORDER BY. `distinct`: they must be outputs.
pub(super) fn bind_order(
    binder: &Binder<'_>,
    scope: &VariableScope,
    order: Option<&OrderBy>,
    output: &Outputs<'_>,
    distinct: bool,
) -> Result<Vec<SortKey>, SqlError> {
    let Some(order) = order else { return Ok(Vec::new()) };
    let OrderByKind::Expressions(exprs) = &order.kind else {
        return Err(SqlError::unsupported("ORDER BY ALL"));
    };
    if order.interpolate.is_some() {
        return Err(SqlError::unsupported("INTERPOLATE"));
    }
    let mut keys = Vec::with_capacity(exprs.len());
    for OrderByExpr { expr, options, with_fill } in exprs {
        check_list(keys.len())?;
        if with_fill.is_some() {
            return Err(SqlError::unsupported("WITH FILL"));
        }
        let position = match (integer_literal(expr), expr) {
            (Some(position), _) => {
                Some(output.at(position, "ORDER BY").map_err(|error| scope.located(error, expr.span()))?)
            }
            (None, Expr::Identifier(name)) => output.named(&name_of(name)?, "ORDER BY")?,
            _ => None,
        };
        let expression = match position {
            Some(position) => output.projection[position].clone(),
            None => binder.in_clause(None).bind_known(expr)?,
        };
        let position = position.or_else(|| output.projection.iter().position(|known| *known == expression));
        if distinct && position.is_none() {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return Err(scope.located(SqlError::new(SqlState(*b"42P10"), message), expr.span()));
        }
        binder.check_sortable(&expression, "ordering").map_err(|error| scope.located(error, expr.span()))?;
        let descending = options.asc == Some(false);
        let nulls_first = options.nulls_first.unwrap_or(descending);
        keys.push(SortKey { output: position, expression, descending, nulls_first });
    }
    Ok(keys)
}

/// LIMIT or FETCH, and OFFSET.
pub(super) fn bind_limit(scope: &VariableScope, query: &Query) -> Result<Limits, SqlError> {
    let binder = Binder::new(scope, Source::Nothing);
    let count = |expr: &Expr, clause: &'static str| {
        let bound = binder.in_clause(Some(clause)).bind(expr)?;
        let found = bound.data_type;
        binder.assign_to_column(bound, clause, DataType::BigInt).map_err(|error| {
            let error = match error.state {
                SqlState::DATATYPE_MISMATCH => {
                    let message =
                        format!("argument of {clause} must be type bigint, not type {}", found.family());
                    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                }
                _ => error,
            };
            scope.located(error, expr.span())
        })
    };
    let knows_ties = scope.version() >= ExecutionVersion::V13;
    let (mut limits, written) = match &query.limit_clause {
        None => (Limits::default(), None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            let written = limit.as_ref().filter(|_| knows_ties).and_then(limit_with_ties);
            let limits = Limits {
                limit: written.or(limit.as_ref()).map(|limit| count(limit, "LIMIT")).transpose()?,
                offset: offset.as_ref().map(|offset| count(&offset.value, "OFFSET")).transpose()?,
                ties: written.is_some(),
            };
            (limits, written)
        }
        Some(_) => return Err(SqlError::unsupported("this form of LIMIT")),
    };
    let mut written = written;
    match &query.fetch {
        None => {}
        Some(Fetch { with_ties, percent: false, quantity })
            if limits.limit.is_none() && (knows_ties || !with_ties) =>
        {
            limits.limit = Some(match quantity {
                Some(quantity) => count(quantity, "LIMIT")?,
                None => Expression::constant(types::Value::BigInt(1), DataType::BigInt),
            });
            (limits.ties, written) = (*with_ties, quantity.as_ref());
        }
        Some(_) => return Err(SqlError::unsupported("this form of FETCH")),
    }
    match limits.ties {
        true => check_ties(query, written).map(|()| limits),
        false => Ok(limits),
    }
}

/// Refuses `WITH TIES` of rows that nothing orders, and of no number.
fn check_ties(query: &Query, count: Option<&Expr>) -> Result<(), SqlError> {
    fn is_null(count: &Expr) -> bool {
        match count {
            Expr::Nested(inner) => is_null(inner),
            Expr::Value(value) => matches!(value.value, Literal::Null),
            _ => false,
        }
    }
    let syntax = |message: &str| Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    if query.order_by.is_none() {
        return syntax("WITH TIES cannot be specified without ORDER BY clause");
    }
    if query.locks.iter().any(|lock| lock.nonblock == Some(NonBlock::SkipLocked)) {
        return syntax("SKIP LOCKED and WITH TIES options cannot be used together");
    }
    if count.is_some_and(is_null) {
        let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
        return Err(SqlError::new(SqlState(*b"2201W"), message));
    }
    Ok(())
}

/// The expressions of DISTINCT ON.
pub(super) fn bind_distinct_on(
    binder: &Binder<'_>,
    scope: &VariableScope,
    expressions: &[Expr],
    output: &Outputs<'_>,
) -> Result<Vec<Expression>, SqlError> {
    let bind = |expr: &Expr| match (integer_literal(expr), expr) {
        (Some(position), _) => {
            let index = output
                .at(position, "SELECT DISTINCT ON")
                .map_err(|error| scope.located(error, expr.span()))?;
            Ok(output.projection[index].clone())
        }
        (None, Expr::Identifier(name)) => match output.named(&name_of(name)?, "DISTINCT ON")? {
            Some(index) => Ok(output.projection[index].clone()),
            None => binder.in_clause(None).bind_known(expr),
        },
        _ => binder.in_clause(None).bind_known(expr),
    };
    expressions.iter().map(bind).collect()
}

/// The order begins with what is to be distinct.
pub(super) fn check_distinct_on(expressions: &[Expression], order: &[SortKey]) -> Result<(), SqlError> {
    let mut leading = order.iter().take_while(|key| expressions.contains(&key.expression)).count();
    leading = leading.min(order.len());
    let covered =
        expressions.iter().all(|expression| order[..leading].iter().any(|key| key.expression == *expression));
    if leading == order.len() || covered {
        return Ok(());
    }
    let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
    Err(SqlError::new(SqlState(*b"42P10"), message))
}
