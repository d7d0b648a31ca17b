//! `lift_conditions`: conditions that a relation cannot ask go back to the join above it, because only tables, queries,
//! joins and whole blocks filter their rows when they run.
//!
//! A table asks what looks to its left only if that says a key: what must be equal finds few rows, a bound alone may find
//! half of the table for every row of the left side.

use crate::expression::{Expression, Kind};
use crate::logical::block::{looks_left, relative, source_mut};
use crate::logical::{LogicalPlan, Scan};
use crate::statement::{AccessPath, JoinKind};

pub(super) fn apply(block: &mut LogicalPlan) {
    let source = source_mut(block);
    let left_over = lift(source, 0);
    if !left_over.is_empty() {
        let relation = std::mem::replace(source, LogicalPlan::OneRow);
        *source = relation.filtered(left_over);
    }
}

/// Takes from a relation whose columns begin at `first` what it cannot ask.
fn lift(relation: &mut LogicalPlan, first: usize) -> Vec<Expression> {
    match relation {
        LogicalPlan::Filter { input, conditions } => {
            let mut lifted = std::mem::take(conditions);
            lifted.extend(lift(input, first));
            *relation = std::mem::replace(input, LogicalPlan::OneRow);
            lifted
        }
        LogicalPlan::Scan(scan) if !helps_to_find(scan, first) => {
            let conditions = std::mem::take(&mut scan.conditions);
            let (lifted, asked) = conditions.into_iter().partition(|condition| looks_left(condition, first));
            scan.conditions = asked;
            lifted
        }
        LogicalPlan::Join(join) => {
            let middle = first + join.left.width();
            let of_left = lift(&mut join.left, first);
            let of_right = lift(&mut join.right, middle);
            join.on.extend(of_right);
            match join.kind {
                JoinKind::Inner => {
                    join.on.extend(of_left);
                    Vec::new()
                }
                JoinKind::Left | JoinKind::Right | JoinKind::Full => of_left,
            }
        }
        _ => Vec::new(),
    }
}

/// Whether nothing of what a table is asked looks to its left, or some of it says what a key is equal to.
fn helps_to_find(scan: &Scan, first: usize) -> bool {
    if !scan.conditions.iter().any(|condition| looks_left(condition, first)) {
        return true;
    }
    let conditions: Vec<Expression> =
        scan.conditions.iter().map(|condition| relative(condition, first)).collect();
    let (path, _) = AccessPath::choose(&scan.table, &conditions);
    let is_left = |inner: &Expression| matches!(inner.kind, Kind::Left(_));
    path.equal().iter().any(|part| part.value.any(&mut |inner| is_left(inner)))
}
