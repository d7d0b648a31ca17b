//! UNION, INTERSECT and EXCEPT.

use crate::expression::no_sort_operator;
use crate::logical::LogicalPlan;
use crate::statement::bound_query::BoundQuery;
use crate::statement::level::Level;
use crate::statement::query::{Rows, bind_body};
use crate::statement::query_scope::QueryScope;
use crate::statement::relation::SetOperation;
use crate::unordered::is_unordered;
use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier};
use types::{DataType, OutputColumn, SqlError, SqlState, common_type};

/// UNION, INTERSECT or EXCEPT.
pub(super) fn bind_set(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    operator: SetOperator,
    quantifier: SetQuantifier,
    left: &SetExpr,
    right: &SetExpr,
) -> Result<Rows, SqlError> {
    let (operation, name) = match operator {
        SetOperator::Union => (SetOperation::Union, "UNION"),
        SetOperator::Intersect => (SetOperation::Intersect, "INTERSECT"),
        SetOperator::Except | SetOperator::Minus => (SetOperation::Except, "EXCEPT"),
    };
    let all = match quantifier {
        SetQuantifier::All => true,
        SetQuantifier::None | SetQuantifier::Distinct => false,
        _ => return Err(SqlError::unsupported(format_args!("{name} BY NAME"))),
    };
    let sides = [bind_side(scope, level, left)?, bind_side(scope, level, right)?];
    set_of(scope, (operation, name), all, sides)
}

/// A set operation over these queries. `name`: what errors call it.
pub(super) fn set_of(
    scope: QueryScope<'_>,
    (operation, name): (SetOperation, &str),
    all: bool,
    sides: [BoundQuery; 2],
) -> Result<Rows, SqlError> {
    if sides[0].columns().len() != sides[1].columns().len() {
        let message = format!("each {name} query must have the same number of columns");
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let [left, right] = sides.map(BoundQuery::open_literals);
    let mut columns = Vec::with_capacity(left.columns().len());
    for (left, right) in left.columns().iter().zip(right.columns().iter()) {
        let types = [left.data_type, right.data_type];
        let data_type = common_type(types).ok_or_else(|| cannot_match(name, types.into_iter()))?;
        columns.push(OutputColumn { name: left.name.clone(), data_type });
    }
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
    let known = scope.tables.routines().types();
    if let Some(unordered) = types.iter().find(|found| !all && is_unordered(known, **found)) {
        return Err(known.named_in(no_sort_operator(*unordered, "equality")));
    }
    let left = left.close_literals(scope.variables, &types)?;
    let right = right.close_literals(scope.variables, &types)?;
    let sides = Box::new([left.with_types(&types).plan, right.with_types(&types).plan]);
    Ok((columns.into(), LogicalPlan::Set { operation, all, sides }))
}

/// A side of a set operation. It shares the level: its arguments are those of the whole.
pub(super) fn bind_side(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    side: &SetExpr,
) -> Result<BoundQuery, SqlError> {
    scope.count_query()?;
    let query = Query {
        with: None,
        body: Box::new(side.clone()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    bind_body(scope, level, &query)
}

/// Columns whose types have none in common.
pub(super) fn cannot_match(what: &str, types: impl Iterator<Item = DataType>) -> SqlError {
    let mut families: Vec<String> = Vec::new();
    for data_type in types.filter(|data_type| *data_type != DataType::Unknown) {
        let family = data_type.family().to_string();
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let message = format!("{what} types {} cannot be matched", families.join(" and "));
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}
