//! The groups of GROUP BY.

use crate::aggregate::{ACCUMULATOR_BYTES, Accumulator};
use crate::sorting::Sortable;
use plan::expression::{Environment, row_space};
use plan::statement::Grouping;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use types::{SqlError, Value};

/// The groups of a query while they are made.
pub(super) struct Groups<'b> {
    grouping: &'b Grouping,
    groups: BTreeMap<Sortable, Vec<Accumulator<'b>>>,
}

impl<'b> Groups<'b> {
    /// No rows yet.
    pub(super) fn new(grouping: &'b Grouping) -> Groups<'b> {
        let mut groups = Groups { grouping, groups: BTreeMap::new() };
        if grouping.keys.is_empty() {
            groups.groups.insert(Sortable(Vec::new()), accumulators(grouping));
        }
        groups
    }

    /// Adds a row.
    pub(super) fn add(&mut self, environment: &Environment<'_>) -> Result<(), SqlError> {
        let keys = self.grouping.keys.iter().map(|key| key.evaluate(environment));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let width = keys.len();
        let group = match self.groups.entry(Sortable(keys)) {
            Entry::Occupied(group) => group.into_mut(),
            Entry::Vacant(group) => {
                let states = ACCUMULATOR_BYTES * self.grouping.aggregates.len() as u64;
                environment.hold(row_space(width) + states)?;
                group.insert(accumulators(self.grouping))
            }
        };
        group.iter_mut().try_for_each(|accumulator| accumulator.add(environment))
    }

    /// A row per group, by the keys: the keys, then the aggregates.
    pub(super) fn finish(self, environment: &Environment<'_>) -> Result<Vec<Vec<Value>>, SqlError> {
        let row = |(Sortable(mut row), group): (Sortable, Vec<Accumulator<'_>>)| {
            for accumulator in group {
                row.push(accumulator.finish(environment)?);
            }
            Ok(row)
        };
        self.groups.into_iter().map(row).collect()
    }
}

fn accumulators(grouping: &Grouping) -> Vec<Accumulator<'_>> {
    grouping.aggregates.iter().map(Accumulator::new).collect()
}
