//! `drop_unused_columns`: a table registers the columns that somebody looks at and no others, because transactions that
//! change others do not conflict then.
//!
//! What a table is asked itself it registers anyway: here count the columns that are looked at behind it, and those to
//! its left.

use crate::expression::{Expression, Kind};
use crate::logical::LogicalPlan;
use crate::logical::block::{note, parts, source_mut};
use std::collections::BTreeSet;
use types::ColumnSet;

pub(super) fn apply(block: &mut LogicalPlan) {
    let mut used = BTreeSet::new();
    let (above, source) = parts(block);
    for node in above {
        match node {
            // Its counts look at no row.
            LogicalPlan::Limit { .. } => continue,
            // What stands above it looks at groups.
            LogicalPlan::Aggregate { .. } => used.clear(),
            _ => {}
        }
        node.visit_expressions(&mut |expression| note(expression, &mut used));
    }
    note_in_source(source, 0, &mut used);
    keep(source_mut(block), 0, &used);
}

/// Notes what the relations of a source look at behind others. The columns of this one begin at `first`.
fn note_in_source(relation: &LogicalPlan, first: usize, used: &mut BTreeSet<u16>) {
    match relation {
        LogicalPlan::Filter { input, conditions } => {
            conditions.iter().for_each(|condition| note(condition, used));
            note_in_source(input, first, used);
        }
        LogicalPlan::Scan(scan) => {
            scan.conditions.iter().for_each(|condition| note_left(condition, first, used));
        }
        LogicalPlan::Query(query) => query.arguments.iter().for_each(|argument| note(argument, used)),
        LogicalPlan::Join(join) => {
            relation.visit_expressions(&mut |expression| note(expression, used));
            note_in_source(&join.left, first, used);
            note_in_source(&join.right, first + join.left.width(), used);
        }
        LogicalPlan::Function { .. } | LogicalPlan::Call { .. } => {
            relation.visit_expressions(&mut |expression| note(expression, used));
        }
        _ => {}
    }
}

fn note_left(condition: &Expression, first: usize, used: &mut BTreeSet<u16>) {
    condition.any(&mut |inner| {
        if let Kind::Column(ordinal) = inner.kind
            && usize::from(ordinal) < first
        {
            used.insert(ordinal);
        }
        false
    });
}

/// Lets the tables keep what is used.
fn keep(relation: &mut LogicalPlan, first: usize, used: &BTreeSet<u16>) {
    match relation {
        LogicalPlan::Filter { input, .. } => keep(input, first, used),
        LogicalPlan::Scan(scan) => {
            let own = first..first + scan.table.columns.len();
            let used = used.iter().map(|ordinal| usize::from(*ordinal)).filter(|column| own.contains(column));
            scan.columns = used.fold(ColumnSet::EMPTY, |set, column| set | ColumnSet::column(column - first));
        }
        LogicalPlan::Join(join) => {
            keep(&mut join.left, first, used);
            let middle = first + join.left.width();
            keep(&mut join.right, middle, used);
        }
        _ => {}
    }
}
