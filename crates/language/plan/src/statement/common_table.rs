//! Queries of WITH, bound where they are used.

use crate::expression::{Expression, no_sort_operator};
use crate::logical::LogicalPlan;
use crate::statement::bound_query::BoundQuery;
use crate::statement::level::Level;
use crate::statement::query::{bind_nested, has_order_or_limit, whole};
use crate::statement::query_scope::{CommonSource, CommonTable};
use crate::statement::relation::SetOperation;
use crate::statement::set_operation::{bind_side, set_of};
use crate::unordered::is_unordered;
use sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier};
use types::{DataType, ExecutionVersion, OutputColumn, SqlError, SqlState, common_type};
use values::broken;

/// Binds a query of WITH for one use. Gives it with what it is to be handed by the query of the level that uses it.
///
/// # Errors
/// As [`bind_nested`].
pub(super) fn bind_common(
    common: &CommonTable<'_>,
    level: &Level<'_>,
) -> Result<(BoundQuery, Vec<Expression>), SqlError> {
    let CommonSource::Query(query, recursive) = common.source else {
        return Err(broken("a WITH query whose rows are kept"));
    };
    let (bound, arguments) = match bind_recursive(common, query, recursive)? {
        Some(bound) => bound,
        None => bind_nested(common.scope, query, common.around)?,
    };
    let columns = common.renamed(&bound.columns())?;
    let arguments = match common.around {
        Some(around) => arguments.into_iter().map(|value| level.handed_down(around, value)).collect(),
        None => Ok(Vec::new()),
    };
    Ok((bound.with_columns(columns), arguments?))
}

/// `first UNION [ALL] then`, where the second side names the query itself; `None` where it is none of these. One that does not is a UNION
/// as any other; before version 13 it ran as if it did, for ever.
fn bind_recursive(
    common: &CommonTable<'_>,
    query: &Query,
    recursive: bool,
) -> Result<Option<(BoundQuery, Vec<Expression>)>, SqlError> {
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } = query.body.as_ref()
    else {
        return Ok(None);
    };
    let all = match set_quantifier {
        SetQuantifier::All => true,
        SetQuantifier::None | SetQuantifier::Distinct => false,
        _ => return Ok(None),
    };
    if !recursive || has_order_or_limit(query) || query.with.is_some() {
        return Ok(None);
    }
    let level = Level::new(common.around);
    let first = bind_side(common.scope, &level, left)?;
    let literals = first.clone();
    let mut columns = first.columns().to_vec();
    for (column, name) in columns.iter_mut().zip(&common.columns) {
        column.name.clone_from(name);
    }
    let number = common.scope.queries.get();
    let itself = common.kept(number, Some(&columns));
    let then = bind_side(itself.behind(), &level, right)?;
    if common.scope.tables.version() >= ExecutionVersion::V13 && !itself.is_named() {
        let (columns, plan) = set_of(common.scope, (SetOperation::Union, "UNION"), all, [literals, then])?;
        let plan = plan.projected(whole(&columns), columns);
        return Ok(Some((BoundQuery::from(plan), level.into_arguments())));
    }
    if then.columns().len() != columns.len() {
        let message = "each UNION query must have the same number of columns";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
    let then = then.close_literals(common.scope.variables, &types)?;
    check_types(&common.name, &then.columns(), &types)?;
    check_told_apart(common, all, &types)?;
    let sides = Box::new([first.plan, then.with_types(&types).plan]);
    let outputs = whole(&columns);
    let plan = LogicalPlan::Recursive { number, all, sides };
    Ok(Some((BoundQuery::from(plan.projected(outputs, columns.into())), level.into_arguments())))
}

/// Without ALL rows are told apart, from execution version 8 on only where they can be.
fn check_told_apart(common: &CommonTable<'_>, all: bool, types: &[DataType]) -> Result<(), SqlError> {
    let known = common.scope.tables.routines().types();
    if all || known.rules() < ExecutionVersion::V8 {
        return Ok(());
    }
    match types.iter().find(|found| is_unordered(known, **found)) {
        Some(unordered) => Err(known.named_in(no_sort_operator(*unordered, "equality"))),
        None => Ok(()),
    }
}

/// The second side of a recursive query has the types of the first one.
fn check_types(name: &str, columns: &[OutputColumn], types: &[DataType]) -> Result<(), SqlError> {
    for (position, (column, expected)) in columns.iter().zip(types).enumerate() {
        if common_type([column.data_type, *expected]).map(|common| common.family()) != Some(expected.family())
        {
            let message = format!(
                "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                position + 1,
                expected.family(),
                column.data_type.family()
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("Cast the output of the non-recursive term to the correct type."));
        }
    }
    Ok(())
}
