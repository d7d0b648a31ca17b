//! UNION, INTERSECT and EXCEPT. Rows come in the order of the left side, then of the right one; of equal ones the first stays.

use crate::distinct::DistinctRows;
use crate::execution::Execution;
use crate::scratch::{KeyOrder, RowList, Rows, Scratch, Sorter, named};
use crate::sorting::{Sortable, compare_values};
use crate::subqueries::Given;
use plan::expression::{row_space, rows_space};
use plan::statement::{BoundSelect, SetOperation};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{SqlError, Value};

impl Execution<'_> {
    /// The rows of a set operation.
    pub(super) fn combined(
        &mut self,
        operation: SetOperation,
        all: bool,
        sides: &[BoundSelect; 2],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        self.enter_query()?;
        let rows = match (self.on.scratch.clone(), operation) {
            (None, _) => self.combined_in_memory(operation, all, sides, given),
            (Some(scratch), SetOperation::Union) => self.united(all, sides, given, &named(&scratch, "UNION")),
            (Some(scratch), SetOperation::Intersect) => {
                self.compared(true, all, sides, given, &named(&scratch, "INTERSECT"))
            }
            (Some(scratch), SetOperation::Except) => {
                self.compared(false, all, sides, given, &named(&scratch, "EXCEPT"))
            }
        };
        self.leave_query();
        rows
    }

    fn combined_in_memory(
        &mut self,
        operation: SetOperation,
        all: bool,
        sides: &[BoundSelect; 2],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let left = self.select_given(&sides[0], given, None)?;
        let right = self.select_given(&sides[1], given, None)?;
        self.charge((left.len() + right.len()) as u64)?;
        // What tells equal rows are copies.
        self.meter.memory.hold(rows_space(&left).saturating_add(rows_space(&right)))?;
        Ok(Rows::Held(combine(operation, all, left, right)))
    }

    /// UNION of rows that need not fit into memory.
    fn united(
        &mut self,
        all: bool,
        sides: &[BoundSelect; 2],
        given: Given<'_>,
        scratch: &Arc<dyn Scratch>,
    ) -> Result<Rows, SqlError> {
        let memory = self.meter.memory.clone();
        let (held, mut count) = (memory.held(), 0);
        let mut rows = RowList::new(Some(scratch.clone()));
        let mut distinct = DistinctRows::new(Some(scratch.clone()));
        for side in sides {
            self.each_row(side, given, &mut |row| {
                count += 1;
                let is_first = if all { Some(true) } else { distinct.is_first(&memory, &row)? };
                match is_first {
                    Some(true) => rows.push(&memory, row_space(row.len()), row),
                    Some(false) => Ok(()),
                    None => distinct.put_off(&memory, row, Vec::new()),
                }
            })?;
        }
        self.charge(count)?;
        distinct.later(&memory, &mut |row, _| {
            self.charge(0)?;
            rows.push(&memory, row_space(row.len()), row)?;
            Ok(ControlFlow::Continue(()))
        })?;
        memory.release_to(held + rows.held());
        rows.complete()
    }

    /// INTERSECT and EXCEPT of rows that need not fit into memory: both sides are sorted by their values, and what is left of the left one by
    /// when it came.
    fn compared(
        &mut self,
        is_intersection: bool,
        all: bool,
        [left, right]: &[BoundSelect; 2],
        given: Given<'_>,
        scratch: &Arc<dyn Scratch>,
    ) -> Result<Rows, SqlError> {
        let memory = self.meter.memory.clone();
        let (held, mut count) = (memory.held(), 0);
        let sorter = || Sorter::new(KeyOrder::Grouped, Some(scratch.clone()));
        let (mut lefts, mut rights, mut kept) = (sorter(), sorter(), sorter());
        self.each_row(left, given, &mut |row| {
            count += 1;
            lefts.push(&memory, row, vec![Value::BigInt(count)])
        })?;
        self.each_row(right, given, &mut |row| {
            count += 1;
            rights.push(&memory, row, Vec::new())
        })?;
        self.charge(count as u64)?;
        let (mut lefts, mut rights) = (lefts.finish()?, rights.finish()?);
        let mut other = rights.next()?;
        // Of rows like the one before: that row, how many have come, and how many the right side has.
        let (mut like, mut position, mut matches) = (None, 0, 0);
        while let Some((row, number)) = lefts.next()? {
            self.charge(0)?;
            if like.as_ref().is_none_or(|like: &Vec<Value>| compare_values(like, &row).is_ne()) {
                (position, matches) = (0, 0);
                while let Some((known, _)) = &other {
                    match compare_values(known, &row) {
                        Ordering::Less => {}
                        Ordering::Equal => matches += 1,
                        Ordering::Greater => break,
                    }
                    other = rights.next()?;
                }
                like = Some(row.clone());
            }
            let is_found = if all { position < matches } else { matches > 0 };
            if is_found == is_intersection && (all || position == 0) {
                kept.push(&memory, number, row)?;
            }
            position += 1;
        }
        let (mut kept, mut rows) = (kept.finish()?, RowList::new(Some(scratch.clone())));
        while let Some((_, row)) = kept.next()? {
            self.charge(0)?;
            rows.push(&memory, row_space(row.len()), row)?;
        }
        memory.release_to(held + rows.held());
        rows.complete()
    }
}

/// A set operation of rows in memory.
fn combine(
    operation: SetOperation,
    all: bool,
    left: Vec<Vec<Value>>,
    right: Vec<Vec<Value>>,
) -> Vec<Vec<Value>> {
    let mut counts: BTreeMap<Sortable, usize> = BTreeMap::new();
    match operation {
        SetOperation::Union => {
            let mut rows = left;
            rows.extend(right);
            if !all {
                rows.retain(|row| counts.insert(Sortable(row.clone()), 1).is_none());
            }
            rows
        }
        SetOperation::Intersect | SetOperation::Except => {
            for row in right {
                *counts.entry(Sortable(row)).or_default() += 1;
            }
            let keep = operation == SetOperation::Intersect;
            let mut seen: BTreeMap<Sortable, ()> = BTreeMap::new();
            let mut rows = left;
            rows.retain(|row| {
                let row = Sortable(row.clone());
                let count = counts.get_mut(&row);
                let found = match (count, all) {
                    (Some(count), true) if *count > 0 => {
                        *count -= 1;
                        true
                    }
                    (Some(_), true) | (None, _) => false,
                    (Some(_), false) => true,
                };
                found == keep && (all || seen.insert(row, ()).is_none())
            });
            rows
        }
    }
}
