//! What stands alone in a plan: it can be computed by whoever has the tables.

use crate::expression::{Expression, Kind};
use crate::logical::LogicalPlan;

/// Whether it needs nothing but tables: nothing of the rows around it and no call. `inside`: of a query that is handed something
/// of the rows around it.
pub(super) fn stands_alone(node: &LogicalPlan, inside: bool) -> bool {
    let is_foreign = |expression: &Expression| {
        expression.any(&mut |inner| match &inner.kind {
            Kind::Call(_) | Kind::Left(_) | Kind::State(_) => true,
            Kind::Argument(_) => !inside,
            Kind::Subquery(subquery) => !stands_alone(&subquery.logical, true),
            _ => false,
        })
    };
    let mut alone = true;
    node.visit_expressions(&mut |expression| alone &= !is_foreign(expression));
    alone
        && match node {
            // What refuses to be read refuses it where rows are read.
            LogicalPlan::Scan(scan) => {
                scan.past.is_none()
                    && !scan.keyed
                    && scan.locking.is_none()
                    && scan.table.check_filled().is_ok()
            }
            LogicalPlan::Join(join) => stands_alone(&join.left, inside) && stands_alone(&join.right, inside),
            LogicalPlan::Query(query) => stands_alone(&query.plan, true),
            LogicalPlan::Aggregate { input, .. }
            | LogicalPlan::Filter { input, .. }
            | LogicalPlan::Project { input, .. }
            | LogicalPlan::Sort { input, .. }
            | LogicalPlan::Distinct { input, on: None } => stands_alone(input, inside),
            _ => false,
        }
}
