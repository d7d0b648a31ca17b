//! A query that is split: somebody else runs fragments of it, and hands in their rows.
//!
//! What stands below an `Aggregate` reads many rows and gives few. Whoever has the tables in columns makes the groups, and the
//! operators do the rest with them, as they do with groups that they have made themselves: HAVING, outputs, order and limits mean
//! the same. Of a query without groups the rows of FROM and WHERE are [found](super::found_rows) elsewhere.

use crate::aggregate::AggregateFunction;
use crate::expression::{Expression, Kind, Subquery};
use crate::logical::alone::stands_alone;
use crate::logical::found_rows::{may_have_rows, take_rows};
use crate::logical::{LogicalPlan, operators, rules};
use crate::statement::BoundSelect;
use std::sync::Arc;

/// The number of the first fragment of a query among the rows that are kept while a statement runs.
const FIRST_NUMBER: usize = 1 << 40;

/// A query, split.
#[derive(Debug)]
pub struct Split {
    /// What is left of it. The rows of fragments are kept rows of the numbers below.
    pub rest: BoundSelect,
    /// The fragments, as they were bound. Groups are an `Aggregate` and what is below it: their rows have the keys first, then the
    /// aggregates, and come in the order of the keys. Where a query has no groups, its rows before outputs are computed are a
    /// `Project`, with `Limit` and `Sort` where only the first rows are wanted; they come in that order, and in that of the keys
    /// of the tables in FROM.
    pub fragments: Vec<(usize, LogicalPlan)>,
}

impl Split {
    /// Splits a query as it was bound; `None`: nothing in it stands alone.
    pub fn of(plan: &LogicalPlan) -> Option<Split> {
        let (has_groups, may_have_rows) = (has_groups(plan), may_have_rows(plan));
        if !has_groups && !may_have_rows {
            return None;
        }
        let (mut rest, mut fragments) = (plan.clone(), Vec::new());
        if has_groups {
            take_groups(&mut rest, &mut fragments);
        }
        if may_have_rows {
            let number = FIRST_NUMBER + fragments.len();
            fragments.extend(take_rows(&mut rest, number).map(|rows| (number, rows)));
        }
        if fragments.is_empty() {
            return None;
        }
        rules::rewrite(&mut rest);
        Some(Split { rest: operators(rest), fragments })
    }
}

/// Whether groups are made in the blocks that [`take_groups`] looks at.
fn has_groups(node: &LogicalPlan) -> bool {
    let mut inside = false;
    node.visit_expressions(&mut |expression| {
        inside |= expression.any(&mut |inner| match &inner.kind {
            Kind::Subquery(subquery) => subquery.arguments.is_empty() && has_groups(&subquery.logical),
            _ => false,
        });
    });
    inside
        || match node {
            LogicalPlan::Aggregate { .. } => true,
            LogicalPlan::Query(query) => has_groups(&query.plan),
            LogicalPlan::Join(join) => has_groups(&join.left) || has_groups(&join.right),
            LogicalPlan::Set { sides, .. } => sides.iter().any(has_groups),
            other => other.input().is_some_and(has_groups),
        }
}

fn take_groups(node: &mut LogicalPlan, fragments: &mut Vec<(usize, LogicalPlan)>) {
    if matches!(node, LogicalPlan::Aggregate { .. }) && can_be_made_elsewhere(node) {
        let number = FIRST_NUMBER + fragments.len();
        let kept = LogicalPlan::Kept { number, types: node.types() };
        fragments.push((number, std::mem::replace(node, kept)));
        return;
    }
    match node {
        LogicalPlan::Filter { input, conditions } => {
            conditions.iter_mut().for_each(|condition| take_groups_of_queries(condition, fragments));
            take_groups(input, fragments);
        }
        LogicalPlan::Project { input, outputs, .. } => {
            outputs.iter_mut().for_each(|output| take_groups_of_queries(output, fragments));
            take_groups(input, fragments);
        }
        LogicalPlan::Aggregate { input, .. }
        | LogicalPlan::Window { input, .. }
        | LogicalPlan::Sort { input, .. }
        | LogicalPlan::Distinct { input, .. }
        | LogicalPlan::Limit { input, .. } => take_groups(input, fragments),
        LogicalPlan::Query(query) => take_groups(&mut query.plan, fragments),
        LogicalPlan::Join(join) => {
            take_groups(&mut join.left, fragments);
            take_groups(&mut join.right, fragments);
        }
        LogicalPlan::Set { sides, .. } => sides.iter_mut().for_each(|side| take_groups(side, fragments)),
        LogicalPlan::OneRow
        | LogicalPlan::Scan(_)
        | LogicalPlan::Values { .. }
        | LogicalPlan::Function { .. }
        | LogicalPlan::Call { .. }
        | LogicalPlan::Kept { .. }
        | LogicalPlan::Recursive { .. } => {}
    }
}

/// The groups of queries inside of an expression that ask nothing of the rows around them.
fn take_groups_of_queries(expression: &mut Expression, fragments: &mut Vec<(usize, LogicalPlan)>) {
    if let Kind::Subquery(subquery) = &mut expression.kind {
        let Subquery { query, logical, arguments, .. } = subquery.as_mut();
        if arguments.is_empty() && has_groups(logical) {
            let (mut plan, before) = (LogicalPlan::clone(logical), fragments.len());
            take_groups(&mut plan, fragments);
            if fragments.len() > before {
                *logical = Arc::new(plan.clone());
                rules::rewrite(&mut plan);
                *query = Arc::new(BoundSelect { literals: query.literals.clone(), ..operators(plan) });
            }
        }
    }
    expression.operands_mut().into_iter().for_each(|operand| take_groups_of_queries(operand, fragments));
}

/// Whether the groups need nothing but tables, and no order of rows.
fn can_be_made_elsewhere(groups: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate { aggregates, .. } = groups else { return false };
    let follow_order = aggregates.iter().any(|aggregate| {
        let plain = aggregate.second.is_none()
            && aggregate.direct.is_empty()
            && aggregate.order.is_empty()
            && aggregate.user.is_none();
        !plain || !is_known(aggregate.function)
    });
    !follow_order && stands_alone(groups, false)
}

fn is_known(function: AggregateFunction) -> bool {
    use AggregateFunction::{Average, Count, Maximum, Minimum, Sum};
    matches!(function, Count | Sum | Average | Minimum | Maximum)
}
