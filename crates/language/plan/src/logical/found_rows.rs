//! Rows that may be found elsewhere: what stands in FROM and WHERE of a query without groups, where many rows are read and few stay.

use crate::expression::{Expression, Kind};
use crate::logical::alone::stands_alone;
use crate::logical::block::{looks_before, note, parts, source_mut};
use crate::logical::{LogicalPlan, rules};
use crate::statement::{AccessPath, JoinKind, SortKey};
use std::collections::BTreeSet;
use types::{ArithmeticOperator, DataType, OutputColumn, Value};

/// Takes the rows out of a block, as the block `Limit ▸ Project ▸ Sort ▸ source`; what is left has kept rows of this number in
/// their place. Columns that nobody looks at are NULL. The order of rows is that of their keys, of what stands first in FROM first.
/// `None`: they do not stand alone, or keys, indexes and limits say which rows are read.
pub(super) fn take_rows(block: &mut LogicalPlan, number: usize) -> Option<LogicalPlan> {
    let (above, source) = parts(block);
    let mut looked_at = BTreeSet::new();
    for node in &above {
        match node {
            // A key that is an output is looked at there.
            LogicalPlan::Sort { keys, .. } => keys
                .iter()
                .filter(|key| key.output.is_none())
                .for_each(|key| note(&key.expression, &mut looked_at)),
            other => other.visit_expressions(&mut |expression| note(expression, &mut looked_at)),
        }
    }
    if !is_read_by_key(block) {
        return None;
    }
    let types = source.types();
    let output = |(ordinal, data_type): (usize, &DataType)| match looked_at.contains(&(ordinal as u16)) {
        true => Expression::column(ordinal, *data_type),
        false => Expression::constant(Value::Null, *data_type),
    };
    let outputs: Vec<Expression> = types.iter().enumerate().map(output).collect();
    let columns = types.iter().map(|data_type| OutputColumn { name: String::new(), data_type: *data_type });
    let columns = columns.collect();
    let first = first_rows(&above);
    let kept = LogicalPlan::Kept { number, types: types.clone() };
    let source = std::mem::replace(source_mut(block), kept);
    Some(match first {
        Some((keys, limit)) => source.sorted(keys).projected(outputs, columns).limited(Some(limit), None),
        None => source.projected(outputs, columns),
    })
}

/// Whether there may be rows to be taken: a quick look, which leaves out what a key finds.
pub(super) fn may_have_rows(block: &LogicalPlan) -> bool {
    let (above, source) = parts(block);
    let has = |is: fn(&LogicalPlan) -> bool| above.iter().any(|node| is(node));
    let stops_early = has(|node| matches!(node, LogicalPlan::Limit { .. }))
        && !has(|node| matches!(node, LogicalPlan::Sort { .. }));
    let (relation, conditions) = match source {
        LogicalPlan::Filter { input, conditions } => (input.as_ref(), conditions.as_slice()),
        other => (other, [].as_slice()),
    };
    let is_asked = !conditions.is_empty() || matches!(relation, LogicalPlan::Join(_));
    is_asked
        && !stops_early
        && !has(|node| matches!(node, LogicalPlan::Aggregate { .. }))
        && has_order_of_keys(source)
        && !starts_at_key(relation, conditions)
        && stands_alone(source, false)
}

/// Whether a key or an index says where the first table is read.
fn starts_at_key(relation: &LogicalPlan, conditions: &[Expression]) -> bool {
    match relation {
        LogicalPlan::Join(join) => starts_at_key(&join.left, conditions),
        LogicalPlan::Scan(scan) => {
            let own = conditions.iter().flat_map(|condition| condition.clone().into_conjuncts());
            let own: Vec<Expression> =
                own.filter(|condition| looks_before(condition, scan.table.columns.len())).collect();
            !is_whole(&AccessPath::choose(&scan.table, &own).0)
        }
        _ => false,
    }
}

/// Of rows in an order, how many are wanted.
fn first_rows(above: &[&LogicalPlan]) -> Option<(Vec<SortKey>, Expression)> {
    let [
        LogicalPlan::Limit { limit: Some(limit), offset, ties: false, .. },
        LogicalPlan::Project { outputs, .. },
        LogicalPlan::Sort { keys, .. },
    ] = above
    else {
        return None;
    };
    let limit = match offset {
        None => limit.clone(),
        Some(offset) => {
            let kind = Kind::Arithmetic(ArithmeticOperator::Add, Box::new([limit.clone(), offset.clone()]));
            Expression { kind, data_type: limit.data_type }
        }
    };
    let of_row = |key: &SortKey| SortKey {
        output: None,
        expression: key.output.map_or(&key.expression, |output| &outputs[output]).clone(),
        ..key.clone()
    };
    let keys: Vec<SortKey> = keys.iter().map(of_row).collect();
    (!keys.iter().any(|key| key.expression.runs_anything())).then_some((keys, limit))
}

/// Whether rows come in the order of the keys of the tables in FROM.
fn has_order_of_keys(source: &LogicalPlan) -> bool {
    match source {
        LogicalPlan::Scan(scan) => !scan.table.key.is_empty(),
        LogicalPlan::Filter { input, .. } | LogicalPlan::Project { input, .. } => has_order_of_keys(input),
        LogicalPlan::Query(query) => has_order_of_keys(&query.plan),
        LogicalPlan::Join(join) => {
            matches!(join.kind, JoinKind::Inner | JoinKind::Left)
                && has_order_of_keys(&join.left)
                && has_order_of_keys(&join.right)
        }
        _ => false,
    }
}

/// Whether all tables are read forwards by their keys, the first one as a whole, and whether a limit ends no reading.
fn is_read_by_key(block: &LogicalPlan) -> bool {
    let has = |block: &LogicalPlan, is: fn(&LogicalPlan) -> bool| parts(block).0.into_iter().any(is);
    let is_limited = has(block, |node| matches!(node, LogicalPlan::Limit { .. }));
    let mut rewritten = block.clone();
    rules::rewrite(&mut rewritten);
    let is_sorted = has(&rewritten, |node| matches!(node, LogicalPlan::Sort { .. }));
    if is_limited && !is_sorted {
        return false;
    }
    let mut tables = Vec::new();
    note_paths(parts(&rewritten).1, &mut tables);
    let forwards = tables.iter().all(|path| path.is_some_and(|path| !matches!(path, AccessPath::Index(_))));
    forwards && tables.first().is_some_and(|first| first.is_some_and(is_whole))
}

/// Whether all rows of a table are read.
fn is_whole(path: &AccessPath) -> bool {
    match path {
        AccessPath::Range(range) => range.equal.is_empty() && range.lower.is_none() && range.upper.is_none(),
        _ => false,
    }
}

/// The paths of tables in the order of FROM; `None`: backwards.
fn note_paths<'p>(source: &'p LogicalPlan, paths: &mut Vec<Option<&'p AccessPath>>) {
    match source {
        LogicalPlan::Scan(scan) => paths.push(scan.path.as_ref().filter(|_| !scan.backwards)),
        LogicalPlan::Filter { input, .. } | LogicalPlan::Project { input, .. } => note_paths(input, paths),
        LogicalPlan::Query(query) => note_paths(&query.plan, paths),
        LogicalPlan::Join(join) => {
            note_paths(&join.left, paths);
            note_paths(&join.right, paths);
        }
        _ => paths.push(None),
    }
}
