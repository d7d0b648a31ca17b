//! `choose_access`: a table is read by its key, or over the narrowest interval of its key and its indexes, because what
//! is read is paid for and registered.

use crate::expression::Expression;
use crate::logical::block::{relative, source_mut};
use crate::logical::{LogicalPlan, Scan};
use crate::statement::AccessPath;

pub(super) fn apply(block: &mut LogicalPlan) {
    choose(source_mut(block), 0);
}

fn choose(relation: &mut LogicalPlan, first: usize) {
    match relation {
        LogicalPlan::Filter { input, .. } => choose(input, first),
        LogicalPlan::Join(join) => {
            choose(&mut join.left, first);
            let middle = first + join.left.width();
            choose(&mut join.right, middle);
        }
        LogicalPlan::Scan(scan) => choose_path(scan, first),
        _ => {}
    }
}

/// What the path says of a row is not asked again.
fn choose_path(scan: &mut Scan, first: usize) {
    let (path, fulfilled) = match first {
        0 => AccessPath::choose(&scan.table, &scan.conditions),
        _ => {
            let conditions = scan.conditions.iter().map(|condition| relative(condition, first));
            AccessPath::choose(&scan.table, &conditions.collect::<Vec<Expression>>())
        }
    };
    scan.path = Some(path);
    if !fulfilled.is_empty() {
        let mut positions = 0..;
        scan.conditions.retain(|_| positions.next().is_none_or(|position| !fulfilled.contains(&position)));
    }
}
