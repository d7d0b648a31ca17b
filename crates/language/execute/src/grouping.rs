//! The groups of GROUP BY.

use crate::aggregate::{ACCUMULATOR_BYTES, Accumulator};
use crate::scratch::{KeyOrder, Scratch, Sorter};
use crate::sorting::{Sortable, compare_values};
use plan::expression::{Environment, long_bytes, row_space};
use plan::statement::Grouping;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{SqlError, Value};

/// Takes the row of a group.
pub(super) type TakeGroup<'t> = dyn FnMut(Vec<Value>) -> Result<ControlFlow<()>, SqlError> + 't;

/// The groups of a query while they are made.
pub(super) struct Groups<'b> {
    grouping: &'b Grouping,
    groups: BTreeMap<Sortable, Vec<Accumulator<'b>>>,
    bytes: u64,
    scratch: Option<Arc<dyn Scratch>>,
    /// Rows of groups that there is no room for, by the groups' keys.
    late: Option<Sorter<'static>>,
}

impl<'b> Groups<'b> {
    /// No rows yet. Without `scratch` all groups must fit into memory.
    pub(super) fn new(grouping: &'b Grouping, scratch: Option<Arc<dyn Scratch>>) -> Groups<'b> {
        let mut groups = Groups { grouping, groups: BTreeMap::new(), bytes: 0, scratch, late: None };
        if grouping.keys.is_empty() {
            groups.groups.insert(Sortable(Vec::new()), accumulators(grouping));
        }
        groups
    }

    /// Adds a row.
    pub(super) fn add(&mut self, environment: &Environment<'_>) -> Result<(), SqlError> {
        let keys = self.grouping.keys.iter().map(|key| key.evaluate(environment));
        let keys = Sortable(keys.collect::<Result<Vec<_>, _>>()?);
        let width = keys.0.len();
        if let (Some(late), Some(query)) = (&mut self.late, environment.query)
            && !self.groups.contains_key(&keys)
        {
            return late.push(query.memory, keys.0, environment.row.to_vec());
        }
        let group = match self.groups.entry(keys) {
            Entry::Occupied(group) => group.into_mut(),
            Entry::Vacant(group) => {
                let states = ACCUMULATOR_BYTES * self.grouping.aggregates.len() as u64;
                let space = row_space(width) + states;
                let fits = environment.hold(space);
                if let (Some(scratch), Some(query)) = (&self.scratch, environment.query) {
                    self.bytes += space + group.key().0.iter().map(long_bytes).sum::<u64>();
                    if self.bytes >= scratch.operator_bytes() || fits.is_err() {
                        query.memory.release(space);
                        let mut late = Sorter::new(KeyOrder::Grouped, Some(scratch.clone()));
                        late.push(query.memory, group.into_key().0, environment.row.to_vec())?;
                        self.late = Some(late);
                        return Ok(());
                    }
                }
                fits?;
                group.insert(accumulators(self.grouping))
            }
        };
        group.iter_mut().try_for_each(|accumulator| accumulator.add(environment))
    }

    /// Whether there was no room for some groups: [`Groups::finish_each`] gives all.
    pub(super) fn are_late(&self) -> bool {
        self.late.is_some()
    }

    /// A row per group, by the keys: the keys, then the aggregates.
    pub(super) fn finish(self, environment: &Environment<'_>) -> Result<Vec<Vec<Value>>, SqlError> {
        self.groups.into_iter().map(|group| row_of(group, environment)).collect()
    }

    /// The same one by one, until there are enough.
    pub(super) fn finish_each(
        self,
        environment: &Environment<'_>,
        take: &mut TakeGroup<'_>,
    ) -> Result<(), SqlError> {
        let mut held = self.groups.into_iter().peekable();
        if let Some(late) = self.late {
            let mut rows = late.finish()?;
            let mut next = rows.next()?;
            while let Some((keys, row)) = next {
                let keys = Sortable(keys);
                while let Some(group) = held.next_if(|(held, _)| *held < keys) {
                    if take(row_of(group, environment)?)?.is_break() {
                        return Ok(());
                    }
                }
                let mut group = accumulators(self.grouping);
                let mut add = |row: &[Value]| {
                    let environment = Environment { row, ..*environment };
                    group.iter_mut().try_for_each(|accumulator| accumulator.add(&environment))
                };
                add(&row)?;
                next = rows.next()?;
                while let Some((_, row)) = next.take_if(|(same, _)| compare_values(same, &keys.0).is_eq()) {
                    add(&row)?;
                    next = rows.next()?;
                }
                if take(row_of((keys, group), environment)?)?.is_break() {
                    return Ok(());
                }
            }
        }
        for group in held {
            if take(row_of(group, environment)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn row_of(
    (Sortable(mut row), group): (Sortable, Vec<Accumulator<'_>>),
    environment: &Environment<'_>,
) -> Result<Vec<Value>, SqlError> {
    for accumulator in group {
        row.push(accumulator.finish(environment)?);
    }
    Ok(row)
}

fn accumulators(grouping: &Grouping) -> Vec<Accumulator<'_>> {
    grouping.aggregates.iter().map(Accumulator::new).collect()
}
