//! Window functions, run.

mod edges;
mod frame;
mod in_range;
mod partition;
mod written;

use crate::sorting::compare_by;

use frame::resolved;
use partition::{Finder, Partition, PartitionRows, Reached, Role};
use plan::aggregate::AggregateOrder;
use plan::expression::{Environment, Expression, Memory};
use plan::window::WindowCall;
use std::cmp::Ordering;
use types::{SqlError, Value};
use values::broken;

/// The function's value for every row, in the order of the rows, and how many steps that took. What aggregates hold is given back to
/// `memory` as soon as their frame is left; without it, it counts as long as the query runs.
///
/// # Errors
/// What evaluation raises; more steps than `steps_max`.
pub(super) fn window_values(
    call: &WindowCall,
    rows: &[Vec<Value>],
    environment: &Environment<'_>,
    steps_max: u64,
    memory: Option<&Memory>,
) -> Result<(Vec<Value>, u64), SqlError> {
    let mut keyed = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let environment = Environment { row, ..*environment };
        let keys = |expressions: &mut dyn Iterator<Item = &Expression>| {
            expressions.map(|expression| expression.evaluate(&environment)).collect::<Result<Vec<_>, _>>()
        };
        let partition = keys(&mut call.partition.iter())?;
        let order = keys(&mut call.order.iter().map(|key| &key.expression))?;
        keyed.push((partition, order, index));
    }
    // Rows that are equal stay in the order in which they came.
    keyed.sort_by(|left, right| {
        compare_partitions(&left.0, &right.0).then_with(|| compare_by(&call.order, &left.1, &right.1))
    });
    let frame = resolved(&call.frame, environment)?;
    let mut values = vec![Value::Null; rows.len()];
    let mut steps = 0;
    for partition in keyed.chunk_by(|left, right| compare_partitions(&left.0, &right.0).is_eq()) {
        let rows = HeldRows { order: &call.order, keyed: partition, rows, values: &mut values };
        let (start, end) = (Reached::default(), Reached::default());
        let (frame, peers, group) = (&frame, (0, 0), 0);
        Partition { call, rows, environment, frame, steps_max, memory, peers, group, start, end }
            .fill(&mut steps)?;
    }
    Ok((values, steps))
}

fn compare_partitions(left: &[Value], right: &[Value]) -> Ordering {
    let pairs = left.iter().zip(right);
    pairs.map(|(left, right)| left.sort_compare(right)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The partition, order keys and index of a row.
type Keyed = (Vec<Value>, Vec<Value>, usize);

/// Rows of a partition in memory.
struct HeldRows<'a> {
    order: &'a [AggregateOrder],
    /// In the window's order.
    keyed: &'a [Keyed],
    rows: &'a [Vec<Value>],
    /// In the order of the rows.
    values: &'a mut [Value],
}

impl PartitionRows for HeldRows<'_> {
    fn count(&self) -> usize {
        self.keyed.len()
    }

    fn row(&mut self, _: Role, position: usize) -> Result<&[Value], SqlError> {
        Ok(&self.rows[self.keyed[position].2])
    }

    fn key(&mut self, _: Finder, position: usize) -> Result<&Value, SqlError> {
        self.keyed[position].1.first().ok_or_else(|| broken("a window without an order"))
    }

    fn after_peers(&mut self, _: Finder, first: usize) -> Result<usize, SqlError> {
        let keys = &self.keyed[first].1;
        let behind = &self.keyed[first..];
        Ok(first
            + behind.iter().take_while(|(_, other, _)| compare_by(self.order, keys, other).is_eq()).count())
    }

    fn take(&mut self, position: usize, value: Value) -> Result<(), SqlError> {
        let index = self.keyed[position].2;
        *self.values.get_mut(index).ok_or_else(|| broken("a window's row"))? = value;
        Ok(())
    }
}
