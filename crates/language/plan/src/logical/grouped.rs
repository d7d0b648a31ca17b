//! Groups that may be made elsewhere: a query whose groups are rows that somebody else hands in.
//!
//! What stands below an `Aggregate` reads many rows and gives few. Whoever has the tables in columns makes the groups, and the
//! operators do the rest with them, as they do with groups that they have made themselves: HAVING, outputs, order and limits mean
//! the same.

use crate::expression::{Expression, Kind};
use crate::logical::{LogicalPlan, operators, rules};
use crate::statement::BoundSelect;

/// The number of the first groups of a query among the rows that are kept while a statement runs.
const FIRST_NUMBER: usize = 1 << 40;

/// A query whose groups are made elsewhere.
#[derive(Debug)]
pub struct Grouped {
    /// The query. Its groups are kept rows of the numbers below.
    pub rest: BoundSelect,
    /// The groups: an `Aggregate` and what is below it, rewritten by the rules that say nothing of keys and indexes. Their rows
    /// have the keys first, then the aggregates, and come in the order of the keys.
    pub groups: Vec<(usize, LogicalPlan)>,
}

impl Grouped {
    /// Takes the groups out of a query as it was bound; `None`: it has none that stand alone.
    pub fn of(plan: &LogicalPlan) -> Option<Grouped> {
        if !has_groups(plan) {
            return None;
        }
        let (mut rest, mut groups) = (plan.clone(), Vec::new());
        take_groups(&mut rest, &mut groups);
        if groups.is_empty() {
            return None;
        }
        for (_, group) in &mut groups {
            rules::rewrite_without_access(group);
        }
        rules::rewrite(&mut rest);
        Some(Grouped { rest: operators(rest), groups })
    }
}

/// Whether groups are made in the blocks that [`take_groups`] looks at.
fn has_groups(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate { .. } => true,
        LogicalPlan::Query(query) => has_groups(&query.plan),
        LogicalPlan::Join(join) => has_groups(&join.left) || has_groups(&join.right),
        LogicalPlan::Set { sides, .. } => sides.iter().any(has_groups),
        other => other.input().is_some_and(has_groups),
    }
}

fn take_groups(node: &mut LogicalPlan, groups: &mut Vec<(usize, LogicalPlan)>) {
    match node {
        LogicalPlan::Aggregate { .. } if stands_alone(node) => {
            let number = FIRST_NUMBER + groups.len();
            let kept = LogicalPlan::Kept { number, types: node.types() };
            groups.push((number, std::mem::replace(node, kept)));
        }
        LogicalPlan::Aggregate { input, .. }
        | LogicalPlan::Filter { input, .. }
        | LogicalPlan::Window { input, .. }
        | LogicalPlan::Sort { input, .. }
        | LogicalPlan::Distinct { input, .. }
        | LogicalPlan::Project { input, .. }
        | LogicalPlan::Limit { input, .. } => take_groups(input, groups),
        LogicalPlan::Query(query) => take_groups(&mut query.plan, groups),
        LogicalPlan::Join(join) => {
            take_groups(&mut join.left, groups);
            take_groups(&mut join.right, groups);
        }
        LogicalPlan::Set { sides, .. } => sides.iter_mut().for_each(|side| take_groups(side, groups)),
        LogicalPlan::OneRow
        | LogicalPlan::Scan(_)
        | LogicalPlan::Values { .. }
        | LogicalPlan::Function { .. }
        | LogicalPlan::Call { .. }
        | LogicalPlan::Kept { .. }
        | LogicalPlan::Recursive { .. } => {}
    }
}

/// Whether it needs nothing but tables: nothing of the rows around it, no query and no call.
fn stands_alone(node: &LogicalPlan) -> bool {
    let is_foreign = |expression: &Expression| {
        expression.any(&mut |inner| {
            inner.is_run() || matches!(inner.kind, Kind::Argument(_) | Kind::Left(_) | Kind::State(_))
        })
    };
    let mut alone = true;
    node.visit_expressions(&mut |expression| alone &= !is_foreign(expression));
    alone
        && match node {
            LogicalPlan::Scan(scan) => scan.past.is_none() && !scan.keyed,
            LogicalPlan::Join(join) => stands_alone(&join.left) && stands_alone(&join.right),
            LogicalPlan::Aggregate { input, .. } | LogicalPlan::Filter { input, .. } => stands_alone(input),
            _ => false,
        }
}
