//! The rows of relations, and joins of them.
//!
//! A join reads its left side, then its right side: once, or, where that looks at the left one, for every row of it. Rows
//! come in the order of the left side, then of the right one; those of the right side that match nothing come last.

use crate::execution::Execution;
use crate::sorting::Sortable;
use crate::subqueries::Given;
use plan::expression::{Expression, rows_space};
use plan::statement::{BoundSelect, Join, JoinKind, Relation, SetOperation};
use std::collections::BTreeMap;
use std::rc::Rc;
use types::{SqlError, Value};
use values::broken;

/// Rows of a relation.
pub(super) type Rows = Vec<Vec<Value>>;

impl Execution<'_> {
    /// The rows of a relation, which the query holds from now on.
    pub(super) fn relation_rows(&mut self, relation: &Relation, given: Given<'_>) -> Result<Rows, SqlError> {
        Ok(match relation {
            Relation::Table(scanned) => self.table_rows(scanned, given)?,
            Relation::Query { query, arguments, filter } => {
                let arguments = match arguments {
                    None => given.arguments.to_vec(),
                    Some(arguments) => self.evaluate_all(arguments, given)?,
                };
                self.enter_query()?;
                let inner = Given { frame: given.frame, arguments: &arguments, left: &[] };
                let rows = self.select_given(query, inner, None);
                self.leave_query();
                match filter {
                    None => rows?,
                    Some(filter) => self.filtered(rows?, filter, given)?,
                }
            }
            Relation::Values(rows) => {
                let rows =
                    rows.iter().map(|row| self.evaluate_all(row, given)).collect::<Result<Rows, _>>()?;
                self.meter.memory.hold(rows_space(&rows))?;
                rows
            }
            Relation::Function { function, arguments } => self.function_rows(function, arguments, given)?,
            Relation::Call(call) => {
                let rows = self.called_rows(call, given)?;
                self.meter.memory.hold(rows_space(&rows))?;
                rows
            }
            Relation::Set { operation, all, sides } => {
                self.enter_query()?;
                let left = self.select_given(&sides[0], given, None);
                let right = left.and_then(|left| Ok((left, self.select_given(&sides[1], given, None)?)));
                self.leave_query();
                let (left, right) = right?;
                self.charge((left.len() + right.len()) as u64)?;
                // What tells equal rows are copies.
                self.meter.memory.hold(rows_space(&left).saturating_add(rows_space(&right)))?;
                combine(*operation, *all, left, right)
            }
            Relation::Recursive { number, all, sides } => self.recursive(*number, *all, sides, given)?,
            Relation::Working(number) => {
                let known = self.running.working.iter().rev().find(|(known, _)| known == number);
                let (_, rows) = known.ok_or_else(|| broken("the rows of a query that is not running"))?;
                let rows = Rc::clone(rows);
                self.charge(rows.len() as u64)?;
                self.meter.memory.hold(rows_space(&rows))?;
                rows.as_ref().clone()
            }
            Relation::Join(join) => self.joined(join, given)?,
        })
    }

    fn recursive(
        &mut self,
        number: usize,
        all: bool,
        [first, then]: &[BoundSelect; 2],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let mut seen: BTreeMap<Sortable, ()> = BTreeMap::new();
        let mut new_ones = |rows: &mut Rows| {
            if !all {
                rows.retain(|row| seen.insert(Sortable(row.clone()), ()).is_none());
            }
        };
        self.enter_query()?;
        let mut found = self.select_given(first, given, None)?;
        new_ones(&mut found);
        self.meter.memory.hold(rows_space(&found))?;
        let mut rows = found.clone();
        while !found.is_empty() {
            // What subqueries gave on other rows counts no more.
            self.forget_subqueries();
            self.running.working.push((number, Rc::new(found)));
            let next = self.select_given(then, given, None);
            self.running.working.pop();
            found = next?;
            new_ones(&mut found);
            self.charge(found.len() as u64)?;
            self.meter.memory.hold(rows_space(&found))?;
            rows.extend(found.iter().cloned());
        }
        self.forget_subqueries();
        self.leave_query();
        Ok(rows)
    }

    pub(super) fn evaluate_all(
        &mut self,
        expressions: &[Expression],
        given: Given<'_>,
    ) -> Result<Vec<Value>, SqlError> {
        self.with_subqueries(&[], given, |environment| {
            expressions.iter().map(|expression| expression.evaluate(environment)).collect()
        })
    }

    fn filtered(&mut self, rows: Rows, filter: &Expression, given: Given<'_>) -> Result<Rows, SqlError> {
        let mut kept = Vec::with_capacity(rows.len());
        for row in rows {
            if self.with_subqueries(&row, given, |environment| filter.is_true(environment))? {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    fn joined(&mut self, join: &Join, given: Given<'_>) -> Result<Rows, SqlError> {
        let left_rows = self.relation_rows(&join.left, given)?;
        if join.dependent {
            return self.joined_row_by_row(join, left_rows, given);
        }
        if left_rows.is_empty() && matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
            // The right side is not read: whatever it holds, there is nothing to join it with.
            return Ok(Vec::new());
        }
        // It looks at nothing of the left side, but its columns are counted from the begin of FROM.
        let prefix = with_nulls(given.left, join.left_width);
        let right_rows = self.relation_rows(&join.right, Given { left: &prefix, ..given })?;
        let index = match join.equal.is_empty() {
            true => None,
            false => Some(self.indexed(&right_rows, join, given)?),
        };
        let mut matched = vec![false; right_rows.len()];
        let width = join.left_width + join.right_width;
        let mut rows = Vec::new();
        for left in &left_rows {
            let candidates: Vec<usize> = match &index {
                None => (0..right_rows.len()).collect(),
                Some(index) => {
                    let keys = join.equal.iter().map(|(left, _)| left);
                    let keys = self.keys(keys, left, given)?;
                    keys.and_then(|keys| index.get(&keys)).cloned().unwrap_or_default()
                }
            };
            self.charge(candidates.len() as u64)?;
            let before = rows.len();
            for candidate in candidates {
                let row = [left.as_slice(), &right_rows[candidate]].concat();
                if self.holds(join.condition.as_ref(), &row, given)? {
                    matched[candidate] = true;
                    self.meter.memory.hold_row(width)?;
                    rows.push(row);
                }
            }
            if rows.len() == before && matches!(join.kind, JoinKind::Left | JoinKind::Full) {
                self.meter.memory.hold_row(width)?;
                rows.push(with_nulls(left, join.right_width));
            }
        }
        if matches!(join.kind, JoinKind::Right | JoinKind::Full) {
            for (right, _) in right_rows.iter().zip(&matched).filter(|(_, matched)| !**matched) {
                self.meter.memory.hold_row(width)?;
                let mut row = vec![Value::Null; join.left_width];
                row.extend(right.iter().cloned());
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn joined_row_by_row(
        &mut self,
        join: &Join,
        left_rows: Rows,
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let mut rows = Vec::new();
        for left in &left_rows {
            let prefix = [given.left, left].concat();
            let held = self.meter.memory.held();
            let right_rows = self.relation_rows(&join.right, Given { left: &prefix, ..given })?;
            let before = rows.len();
            for right in right_rows {
                let row = [left.as_slice(), &right].concat();
                if self.holds(join.condition.as_ref(), &row, given)? {
                    rows.push(row);
                }
            }
            if rows.len() == before && join.kind == JoinKind::Left {
                rows.push(with_nulls(left, join.right_width));
            }
            // The rows of the right side are gone, and those that match have come.
            self.meter.memory.release_to(held);
            self.meter.memory.hold(rows_space(&rows[before..]))?;
        }
        Ok(rows)
    }

    fn holds(
        &mut self,
        condition: Option<&Expression>,
        row: &[Value],
        given: Given<'_>,
    ) -> Result<bool, SqlError> {
        match condition {
            None => Ok(true),
            Some(condition) => self.with_subqueries(row, given, |environment| condition.is_true(environment)),
        }
    }

    /// Positions of rows by what must be equal; NULL equals nothing.
    fn indexed(
        &mut self,
        rows: &[Vec<Value>],
        join: &Join,
        given: Given<'_>,
    ) -> Result<BTreeMap<Sortable, Vec<usize>>, SqlError> {
        let mut index: BTreeMap<Sortable, Vec<usize>> = BTreeMap::new();
        for (position, row) in rows.iter().enumerate() {
            // The right keys look at the right row; what is to its left they take from the same prefix as a condition.
            let keys = self.keys(join.equal.iter().map(|(_, right)| right), row, given)?;
            if let Some(keys) = keys {
                self.meter.memory.hold_row(keys.0.len())?;
                index.entry(keys).or_default().push(position);
            }
        }
        Ok(index)
    }

    fn keys<'e>(
        &mut self,
        expressions: impl Iterator<Item = &'e Expression>,
        row: &[Value],
        given: Given<'_>,
    ) -> Result<Option<Sortable>, SqlError> {
        self.with_subqueries(row, given, |environment| {
            let keys = expressions.map(|expression| expression.evaluate(environment));
            let keys = keys.collect::<Result<Vec<Value>, SqlError>>()?;
            Ok((!keys.iter().any(Value::is_null)).then_some(Sortable(keys)))
        })
    }
}

fn with_nulls(left: &[Value], count: usize) -> Vec<Value> {
    let mut row = left.to_vec();
    row.resize(left.len() + count, Value::Null);
    row
}

/// A set operation. Rows keep the order in which they come first.
fn combine(operation: SetOperation, all: bool, left: Rows, right: Rows) -> Rows {
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
