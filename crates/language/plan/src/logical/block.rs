//! The parts of a block; see the [module](crate::logical).

use crate::expression::{Expression, Kind};
use crate::logical::LogicalPlan;
use std::collections::BTreeSet;

/// Below the outputs of a block: what they are computed from.
pub(super) fn below_outputs_mut(block: &mut LogicalPlan) -> &mut LogicalPlan {
    match block {
        LogicalPlan::Limit { input, .. } | LogicalPlan::Distinct { input, on: None } => {
            below_outputs_mut(input)
        }
        LogicalPlan::Project { input, .. } => input,
        other => other,
    }
}

/// Whether a node below the outputs belongs to its block. The others are the source with the filter of WHERE.
fn is_of_block(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Sort { .. }
        | LogicalPlan::Window { .. }
        | LogicalPlan::Aggregate { .. }
        | LogicalPlan::Distinct { on: Some(_), .. } => true,
        LogicalPlan::Filter { input, .. } => matches!(**input, LogicalPlan::Aggregate { .. }),
        _ => false,
    }
}

/// The nodes of a block above its source, from the top, and the source with the filter of WHERE above it.
pub(super) fn parts(block: &LogicalPlan) -> (Vec<&LogicalPlan>, &LogicalPlan) {
    let (mut above, mut node, mut has_outputs) = (Vec::new(), block, false);
    while let Some(input) = node.input() {
        let is_own = match node {
            LogicalPlan::Limit { .. } | LogicalPlan::Distinct { on: None, .. } => !has_outputs,
            LogicalPlan::Project { .. } => !std::mem::replace(&mut has_outputs, true),
            _ => is_of_block(node),
        };
        if !is_own {
            break;
        }
        above.push(node);
        node = input;
    }
    (above, node)
}

/// Whether a query or a function runs in an expression of a block outside of its joins.
pub(super) fn runs_anything(block: &LogicalPlan) -> bool {
    let (above, source) = parts(block);
    let mut runs = false;
    let mut look = |expression: &Expression| runs |= expression.runs_anything();
    for node in above.into_iter().filter(|node| !matches!(node, LogicalPlan::Limit { .. })) {
        node.visit_expressions(&mut look);
    }
    let mut relation = source;
    if let LogicalPlan::Filter { input, conditions } = source {
        conditions.iter().for_each(&mut look);
        relation = input;
    }
    if let LogicalPlan::Scan(scan) = relation {
        let found_by = scan.path.iter().flat_map(|path| path.parts()).map(|part| &part.value);
        scan.conditions.iter().chain(found_by).for_each(look);
    }
    runs
}

/// The source of a block, with the filter of WHERE above it.
pub(super) fn source_mut(block: &mut LogicalPlan) -> &mut LogicalPlan {
    fn descend(node: &mut LogicalPlan) -> &mut LogicalPlan {
        match is_of_block(node) {
            true => match node {
                LogicalPlan::Sort { input, .. }
                | LogicalPlan::Window { input, .. }
                | LogicalPlan::Aggregate { input, .. }
                | LogicalPlan::Filter { input, .. }
                | LogicalPlan::Distinct { input, .. } => descend(input),
                other => other,
            },
            false => node,
        }
    }
    descend(below_outputs_mut(block))
}

/// The blocks of a tree, those of queries inside of expressions left out: the outermost first.
pub(super) fn visit_blocks(block: &mut LogicalPlan, visit: &mut dyn FnMut(&mut LogicalPlan)) {
    fn in_source(node: &mut LogicalPlan, visit: &mut dyn FnMut(&mut LogicalPlan)) {
        match node {
            LogicalPlan::Filter { input, .. } => in_source(input, visit),
            LogicalPlan::Query(query) => visit_blocks(&mut query.plan, visit),
            LogicalPlan::Join(join) => {
                in_source(&mut join.left, visit);
                in_source(&mut join.right, visit);
            }
            LogicalPlan::Set { sides, .. } | LogicalPlan::Recursive { sides, .. } => {
                sides.iter_mut().for_each(|side| visit_blocks(side, visit));
            }
            LogicalPlan::OneRow
            | LogicalPlan::Scan(_)
            | LogicalPlan::Values { .. }
            | LogicalPlan::Function { .. }
            | LogicalPlan::Call { .. }
            | LogicalPlan::Kept { .. } => {}
            // A block that stands where a relation may stand.
            LogicalPlan::Aggregate { .. }
            | LogicalPlan::Window { .. }
            | LogicalPlan::Sort { .. }
            | LogicalPlan::Distinct { .. }
            | LogicalPlan::Project { .. }
            | LogicalPlan::Limit { .. } => visit_blocks(node, visit),
        }
    }
    visit(block);
    in_source(source_mut(block), visit);
}

impl LogicalPlan {
    /// The node below one that has a single one.
    pub fn input(&self) -> Option<&LogicalPlan> {
        match self {
            LogicalPlan::Filter { input, .. }
            | LogicalPlan::Aggregate { input, .. }
            | LogicalPlan::Window { input, .. }
            | LogicalPlan::Sort { input, .. }
            | LogicalPlan::Distinct { input, .. }
            | LogicalPlan::Project { input, .. }
            | LogicalPlan::Limit { input, .. } => Some(input),
            _ => None,
        }
    }

    /// Visits the expressions of this node, those of the nodes below it left out.
    pub fn visit_expressions<'p>(&'p self, visit: &mut dyn FnMut(&'p Expression)) {
        match self {
            LogicalPlan::Scan(scan) => {
                let found_by = scan.path.iter().flat_map(|path| path.parts()).map(|part| &part.value);
                scan.past.iter().chain(&scan.conditions).chain(found_by).for_each(visit);
            }
            LogicalPlan::Values { rows, .. } => rows.iter().flatten().for_each(visit),
            LogicalPlan::Function { arguments, .. } => arguments.iter().for_each(visit),
            LogicalPlan::Call { call, .. } => call.arguments.iter().for_each(visit),
            LogicalPlan::Query(query) => query.arguments.iter().chain(&query.conditions).for_each(visit),
            LogicalPlan::Join(join) => {
                let equal = join.equal.iter().flat_map(|(left, right)| [left, right]);
                equal.chain(&join.on).for_each(visit);
            }
            LogicalPlan::Filter { conditions, .. } => conditions.iter().for_each(visit),
            LogicalPlan::Aggregate { keys, aggregates, .. } => {
                let aggregated = aggregates.iter().flat_map(|aggregate| aggregate.expressions());
                keys.iter().chain(aggregated).for_each(visit);
            }
            LogicalPlan::Window { calls, .. } => {
                calls.iter().flat_map(|call| call.expressions()).for_each(visit);
            }
            LogicalPlan::Sort { keys, .. } => keys.iter().for_each(|key| visit(&key.expression)),
            LogicalPlan::Distinct { on, .. } => on.iter().flatten().for_each(visit),
            LogicalPlan::Project { outputs, .. } => outputs.iter().for_each(visit),
            LogicalPlan::Limit { limit, offset, .. } => limit.iter().chain(offset).for_each(visit),
            LogicalPlan::OneRow
            | LogicalPlan::Kept { .. }
            | LogicalPlan::Set { .. }
            | LogicalPlan::Recursive { .. } => {}
        }
    }

    /// Visits the expressions of a relation in FROM: its own, those of the sides of a join and of filters between.
    pub fn visit_in_source<'p>(&'p self, visit: &mut dyn FnMut(&'p Expression)) {
        match self {
            LogicalPlan::Filter { input, .. } => {
                self.visit_expressions(visit);
                input.visit_in_source(visit);
            }
            LogicalPlan::Join(join) => {
                self.visit_expressions(visit);
                join.left.visit_in_source(visit);
                join.right.visit_in_source(visit);
            }
            LogicalPlan::Scan(_)
            | LogicalPlan::Values { .. }
            | LogicalPlan::Function { .. }
            | LogicalPlan::Call { .. }
            | LogicalPlan::Query(_) => self.visit_expressions(visit),
            // A block has rows of its own.
            _ => {}
        }
    }
}

/// Notes the columns that an expression looks at.
pub(super) fn note(expression: &Expression, used: &mut BTreeSet<u16>) {
    expression.any(&mut |inner| {
        if let Kind::Column(ordinal) = inner.kind {
            used.insert(ordinal);
        }
        false
    });
}

/// Whether it looks at a column before this one.
pub(super) fn looks_left(expression: &Expression, first: usize) -> bool {
    expression.any(&mut |inner| matches!(inner.kind, Kind::Column(ordinal) if usize::from(ordinal) < first))
}

/// Whether all columns that it looks at stand before this one.
pub(super) fn looks_before(expression: &Expression, end: usize) -> bool {
    !expression.any(&mut |inner| matches!(inner.kind, Kind::Column(ordinal) if usize::from(ordinal) >= end))
}

/// Whether it looks at a column among these.
pub(super) fn looks_among(expression: &Expression, columns: &std::ops::Range<usize>) -> bool {
    expression.any(
        &mut |inner| matches!(inner.kind, Kind::Column(ordinal) if columns.contains(&usize::from(ordinal))),
    )
}

/// An expression over the columns of FROM as a relation sees it whose columns begin at `first`: its own as
/// [`Kind::Column`], those before them as [`Kind::Left`].
pub(super) fn relative(expression: &Expression, first: usize) -> Expression {
    let mut relative = expression.clone();
    make_relative(&mut relative, first);
    relative
}

/// The same in place.
pub(super) fn make_relative(expression: &mut Expression, first: usize) {
    if let Kind::Column(ordinal) = expression.kind {
        expression.kind = match usize::from(ordinal).checked_sub(first) {
            Some(own) => Kind::Column(own as u16),
            None => Kind::Left(ordinal),
        };
        return;
    }
    if first > 0 {
        expression.operands_mut().into_iter().for_each(|operand| make_relative(operand, first));
    }
}
