//! The last step: from a logical plan to what `execute` runs.
//!
//! A block becomes a [`BoundSelect`]. The relations of its source become [`Relation`]s, whose expressions look at their own
//! columns and at those to their left ([`Kind::Left`](crate::expression::Kind::Left)).

use crate::condition::{Condition, conjunction};
use crate::expression::{Expression, columns_of};
use crate::logical::block::{make_relative, runs_anything};
use crate::logical::{Join, LogicalPlan, QueryInFrom, Scan};
use crate::statement::{
    Access, AccessPath, BoundSelect, Distinctness, From, Grouping, Interval, Join as BoundJoin, Relation,
    Scanned,
};
use std::sync::Arc;
use types::{ColumnSet, OutputColumn};

/// What runs a plan that the [rules](crate::logical::rules) have rewritten.
pub fn operators(plan: LogicalPlan) -> BoundSelect {
    let has_subqueries = runs_anything(&plan);
    let mut select = BoundSelect { has_subqueries, ..BoundSelect::of_nothing() };
    let node = take_outputs(plan, &mut select);
    let (node, conditions) = match take_rows(node, &mut select) {
        LogicalPlan::Filter { input, conditions } => (*input, conditions),
        other => (other, Vec::new()),
    };
    select.filter = conjunction(conditions);
    select.source = match node {
        LogicalPlan::OneRow => From::Nothing,
        LogicalPlan::Scan(scan) if select.filter.is_none() && !has_subqueries && !scan.keyed => {
            select.reverse = scan.backwards;
            From::Table(scanned(*scan, 0))
        }
        other => From::Relation(Box::new(relation(other, 0))),
    };
    key_locked_rows(&mut select);
    select
}

/// Lets the rows of a block have their keys behind them where they are those of one table, which it locks: so it locks those that it gives,
/// and not all that it has looked at.
fn key_locked_rows(select: &mut BoundSelect) {
    let gives_rows =
        select.grouping.is_none() && select.windows.is_empty() && select.distinct == Distinctness::All;
    if let Some(scanned) = select.source.only_table_mut().filter(|_| gives_rows) {
        scanned.keyed |= scanned.locking.is_some();
    }
}

/// Takes limit, DISTINCT and outputs from the top of a block.
fn take_outputs(mut node: LogicalPlan, select: &mut BoundSelect) -> LogicalPlan {
    loop {
        node = match node {
            LogicalPlan::Limit { input, limit, offset, ties } => {
                (select.limit, select.offset, select.ties) = (limit, offset, ties);
                *input
            }
            LogicalPlan::Distinct { input, on: None } => {
                select.distinct = Distinctness::Distinct;
                *input
            }
            LogicalPlan::Project { input, outputs, columns } => {
                (select.projection, select.columns) = (outputs, columns);
                return *input;
            }
            rows => {
                let columns = rows.columns();
                select.projection = columns.iter().enumerate().map(whole_column).collect();
                select.columns = columns;
                return rows;
            }
        };
    }
}

fn whole_column((ordinal, column): (usize, &OutputColumn)) -> Expression {
    Expression::column(ordinal, column.data_type)
}

/// Takes order, window functions and grouping from below the outputs. What is left is the source.
fn take_rows(mut node: LogicalPlan, select: &mut BoundSelect) -> LogicalPlan {
    let mut having = None;
    loop {
        node = match node {
            LogicalPlan::Distinct { input, on: Some(on) } => {
                select.distinct = Distinctness::On(on);
                *input
            }
            LogicalPlan::Sort { input, keys } => {
                select.order = keys;
                *input
            }
            LogicalPlan::Window { input, calls } => {
                select.windows = calls;
                *input
            }
            LogicalPlan::Filter { input, conditions } if matches!(*input, LogicalPlan::Aggregate { .. }) => {
                having = conjunction(conditions);
                *input
            }
            LogicalPlan::Aggregate { input, keys, aggregates } => {
                select.grouping = Some(Grouping { keys, aggregates, having: having.take() });
                *input
            }
            source => return source,
        };
    }
}

/// A relation whose columns begin at `first`.
fn relation(node: LogicalPlan, first: usize) -> Relation {
    let relative = |mut expressions: Vec<Expression>| {
        expressions.iter_mut().for_each(|expression| make_relative(expression, first));
        expressions
    };
    match node {
        LogicalPlan::Scan(scan) => Relation::Table(scanned(*scan, first)),
        LogicalPlan::Values { rows, types: _ } => Relation::Values(rows),
        LogicalPlan::Function { function, arguments, types: _ } => {
            Relation::Function { function: *function, arguments: relative(arguments) }
        }
        LogicalPlan::Call { mut call, types: _ } => {
            call.arguments = relative(call.arguments);
            Relation::Call(*call)
        }
        LogicalPlan::Kept { number, types: _ } => Relation::Working(number),
        LogicalPlan::Query(query) => {
            let QueryInFrom { plan, arguments, conditions } = *query;
            let filter = conjunction(relative(conditions));
            Relation::Query { query: Arc::new(operators(plan)), arguments: Some(relative(arguments)), filter }
        }
        LogicalPlan::Join(join) => Relation::Join(Box::new(joined(*join, first))),
        LogicalPlan::Set { operation, all, sides } => {
            Relation::Set { operation, all, sides: Box::new(sides.map(operators)) }
        }
        LogicalPlan::Recursive { number, all, sides } => {
            Relation::Recursive { number, all, sides: Box::new(sides.map(operators)) }
        }
        // It is handed what the block around it was handed.
        block => {
            debug_assert!(
                !matches!(block, LogicalPlan::Filter { .. }),
                "lift_conditions leaves none in a source"
            );
            Relation::Query { query: Arc::new(operators(block)), arguments: None, filter: None }
        }
    }
}

fn joined(join: Join, first: usize) -> BoundJoin {
    let Join { kind, left, right, on, equal, dependent } = join;
    let (left_width, right_width) = (left.width(), right.width());
    let middle = first + left_width;
    let at = |mut expression: Expression, first: usize| {
        make_relative(&mut expression, first);
        expression
    };
    BoundJoin {
        kind,
        left: relation(left, first),
        right: relation(right, middle),
        left_width,
        right_width,
        dependent,
        equal: equal.into_iter().map(|(left, right)| (at(left, first), at(right, middle))).collect(),
        condition: conjunction(on.into_iter().map(|condition| at(condition, first)).collect()),
    }
}

/// A table that is read whose columns begin at `first`.
fn scanned(scan: Scan, first: usize) -> Scanned {
    let Scan { table, keyed, locking, past, mut conditions, columns, path, backwards: _ } = scan;
    conditions.iter_mut().for_each(|condition| make_relative(condition, first));
    let access = Access::from(path.unwrap_or(AccessPath::Range(Interval::default())));
    let filter_columns = columns_of(&conditions) | access.columns();
    Scanned {
        table,
        access,
        filter: Condition::all(conditions),
        columns: filter_columns | ColumnSet::EXISTS | columns,
        filter_columns,
        keyed,
        locking,
        past: past.map(Box::new),
    }
}
