//! `push_conditions`: conditions go down to the first relation that has all they look at, because a row that is not read
//! costs nothing and registers nothing.
//!
//! A condition that also looks at relations to the left of a relation goes down as well: it may say the key of a row
//! there. What it does not help to find, [`lift_conditions`](super::lift_conditions) takes back. An outer join keeps the
//! conditions of its ON apart from those of WHERE.

use crate::expression::Expression;
use crate::logical::block::{looks_before, looks_left, relative, source_mut};
use crate::logical::{Join, LogicalPlan};
use crate::statement::JoinKind;

pub(super) fn apply(block: &mut LogicalPlan) {
    let source = source_mut(block);
    let (relation, conditions) = match std::mem::replace(source, LogicalPlan::OneRow) {
        LogicalPlan::Filter { input, conditions } => (*input, conditions),
        relation => (relation, Vec::new()),
    };
    *source = push(relation, 0, conditions);
}

/// A relation whose columns begin at `first`, under conditions that look at no column behind its own.
fn push(relation: LogicalPlan, first: usize, conditions: Vec<Expression>) -> LogicalPlan {
    match relation {
        LogicalPlan::Scan(mut scan) => {
            let (later, asked): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(|condition| runs_for_each_row(condition, first));
            scan.conditions.extend(asked);
            LogicalPlan::Scan(scan).filtered(later)
        }
        LogicalPlan::Query(mut query) => {
            let (later, now): (Vec<_>, Vec<_>) =
                conditions.into_iter().partition(|condition| looks_left(condition, first));
            query.conditions.extend(now);
            LogicalPlan::Query(query).filtered(later)
        }
        LogicalPlan::Join(join) => push_into_join(*join, first, conditions),
        other => other.filtered(conditions),
    }
}

fn push_into_join(join: Join, first: usize, conditions: Vec<Expression>) -> LogicalPlan {
    let Join { kind, left, right, on, equal, dependent } = join;
    let middle = first + left.width();
    let of_left = |condition: &Expression| looks_before(condition, middle);
    // What is asked of the left side, of the right side, of both, and behind the join.
    let (for_left, for_right, on, behind) = match kind {
        JoinKind::Inner => {
            let (for_left, for_right) = conditions.into_iter().chain(on).partition(of_left);
            (for_left, for_right, Vec::new(), Vec::new())
        }
        JoinKind::Left => {
            let (for_left, behind): (Vec<_>, Vec<_>) = conditions.into_iter().partition(of_left);
            let (on, for_right) = on.into_iter().partition(of_left);
            (for_left, for_right, on, behind)
        }
        JoinKind::Right | JoinKind::Full => (Vec::new(), Vec::new(), on, conditions),
    };
    let left = push(left, first, for_left);
    let right = push(right, middle, for_right);
    LogicalPlan::from(Join { kind, left, right, on, equal, dependent }).filtered(behind)
}

/// Whether a query or a function in it has to run for each row of the relation whose columns begin at `first`.
fn runs_for_each_row(condition: &Expression, first: usize) -> bool {
    condition.any(&mut |inner| inner.is_run() && !relative(inner, first).is_row_independent())
}
