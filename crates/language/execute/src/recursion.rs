//! WITH RECURSIVE: a query that runs on the last rows that it has found, until it finds none.

use crate::execution::Execution;
use crate::scratch::{KeyOrder, RowList, Rows, Scratch, SeenRows, Sorter, named};
use crate::sorting::Sortable;
use crate::subqueries::Given;
use plan::expression::{Memory, row_space, rows_space};
use plan::statement::BoundSelect;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use types::{SqlError, Value};

impl Execution<'_> {
    /// All rows that it finds, in the order in which it does.
    pub(super) fn recursive(
        &mut self,
        number: usize,
        all: bool,
        sides: &[BoundSelect; 2],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        self.enter_query()?;
        let rows = match self.on.scratch.clone() {
            None => self.recursive_in_memory(number, all, sides, given)?,
            Some(scratch) => {
                self.recursive_in_files(number, all, sides, given, &named(&scratch, "WITH RECURSIVE"))?
            }
        };
        self.forget_subqueries();
        self.leave_query();
        Ok(rows)
    }

    fn recursive_in_memory(
        &mut self,
        number: usize,
        all: bool,
        [first, then]: &[BoundSelect; 2],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let mut seen: BTreeMap<Sortable, ()> = BTreeMap::new();
        let mut new_ones = |rows: &mut Vec<Vec<Value>>| {
            if !all {
                rows.retain(|row| seen.insert(Sortable(row.clone()), ()).is_none());
            }
        };
        let mut found = self.select_given(first, given, None)?;
        new_ones(&mut found);
        self.meter.memory.hold(rows_space(&found))?;
        let mut rows = found.clone();
        while !found.is_empty() {
            // What subqueries gave on other rows counts no more.
            self.forget_subqueries();
            self.running.working.push((number, Rc::new(found).into()));
            let next = self.select_given(then, given, None);
            self.running.working.pop();
            found = next?;
            new_ones(&mut found);
            self.charge(found.len() as u64)?;
            self.meter.memory.hold(rows_space(&found))?;
            rows.extend(found.iter().cloned());
        }
        Ok(Rows::Held(rows))
    }

    /// With rows that need not fit into memory: neither those of a round, nor all, nor what tells equal ones.
    fn recursive_in_files(
        &mut self,
        number: usize,
        all: bool,
        [first, then]: &[BoundSelect; 2],
        given: Given<'_>,
        scratch: &Arc<dyn Scratch>,
    ) -> Result<Rows, SqlError> {
        let mut found = FoundRows {
            all: RowList::new(Some(scratch.clone())),
            seen: (!all).then(|| SeenRows::new(scratch.clone())),
            newest: RowList::new(Some(scratch.clone())),
        };
        let held = self.meter.memory.held();
        let mut newest = self.round(first, given, &mut found, scratch, held)?;
        while !newest.is_empty() {
            self.forget_subqueries();
            self.running.working.push((number, newest.into()));
            let next = self.round(then, given, &mut found, scratch, held);
            self.running.working.pop();
            newest = next?;
            self.charge(newest.len() as u64)?;
        }
        self.meter.memory.release_to(held + found.all.held());
        found.all.complete()
    }

    /// Runs the query once, and gives what there was not before, in the order in which it came. `held`: what others hold.
    fn round(
        &mut self,
        query: &BoundSelect,
        given: Given<'_>,
        found: &mut FoundRows,
        scratch: &Arc<dyn Scratch>,
        held: u64,
    ) -> Result<Rows, SqlError> {
        let memory = self.meter.memory.clone();
        let sorter = || Sorter::new(KeyOrder::Grouped, Some(scratch.clone()));
        let (mut late, mut count) = (sorter(), 0);
        self.each_row(query, given, &mut |row| match &mut found.seen {
            None => found.take(&memory, row),
            Some(seen) if seen.are_held() => match seen.add(&memory, Sortable(row.clone()))? {
                true => found.take(&memory, row),
                false => Ok(()),
            },
            Some(_) => {
                count += 1;
                late.push(&memory, row, vec![Value::BigInt(count)])
            }
        })?;
        if let (1.., Some(seen)) = (count, &mut found.seen) {
            // Those that may stand in a file are looked for in their order, and come in that in which they were found.
            let (mut late, mut new_ones) = (late.finish()?, sorter());
            while let Some((row, number)) = late.next()? {
                self.charge(0)?;
                if seen.add(&memory, Sortable(row.clone()))? {
                    new_ones.push(&memory, number, row)?;
                }
            }
            let mut new_ones = new_ones.finish()?;
            while let Some((_, row)) = new_ones.next()? {
                self.charge(0)?;
                found.take(&memory, row)?;
            }
        }
        let newest = std::mem::replace(&mut found.newest, RowList::new(Some(scratch.clone())));
        let seen_held = found.seen.as_ref().map_or(0, SeenRows::held);
        // The sorted ones are gone, and so are those of the round before.
        memory.release_to(held + found.all.held() + newest.held() + seen_held);
        newest.complete()
    }
}

/// What a recursive query has found so far.
struct FoundRows {
    all: RowList,
    /// What tells equal rows, where they count once.
    seen: Option<SeenRows>,
    /// Those of this round.
    newest: RowList,
}

impl FoundRows {
    fn take(&mut self, memory: &Memory, row: Vec<Value>) -> Result<(), SqlError> {
        let space = row_space(row.len());
        self.all.push(memory, space, row.clone())?;
        self.newest.push(memory, space, row)
    }
}
