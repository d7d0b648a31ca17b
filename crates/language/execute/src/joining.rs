//! Joins of relations.
//!
//! A join reads its left side, then its right side: once, or, where that looks at the left one, for every row of it. Rows
//! come in the order of the left side, then of the right one; those of the right side that match nothing come last.

use crate::execution::Execution;
use crate::scratch::{KeyOrder, RowList, Rows, Sorter};
use crate::sorting::Sortable;
use crate::subqueries::Given;
use plan::expression::{Expression, row_space, rows_space};
use plan::statement::{Join, JoinKind};
use std::collections::BTreeMap;
use types::{SqlError, Value};

impl Execution<'_> {
    pub(super) fn joined(&mut self, join: &Join, given: Given<'_>) -> Result<Rows, SqlError> {
        let left_rows = self.relation_rows(&join.left, given)?;
        if join.dependent {
            return self.joined_row_by_row(join, left_rows, given);
        }
        if left_rows.is_empty() && matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
            // The right side is not read: whatever it holds, there is nothing to join it with.
            return Ok(Rows::Held(Vec::new()));
        }
        // It looks at nothing of the left side, but its columns are counted from the begin of FROM.
        let prefix = with_nulls(given.left, join.left_width);
        match self.relation_rows(&join.right, Given { left: &prefix, ..given })? {
            Rows::Held(right_rows) => self.joined_at_once(join, &left_rows, &right_rows, given),
            right_rows => self.joined_in_pieces(join, &left_rows, right_rows, given),
        }
    }

    /// With a right side that is held in memory.
    fn joined_at_once(
        &mut self,
        join: &Join,
        left_rows: &Rows,
        right_rows: &[Vec<Value>],
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let index = self.indexed(right_rows, join, given)?;
        let memory = self.meter.memory.clone();
        let (mut rows, space) =
            (RowList::new(self.on.scratch.clone()), row_space(join.left_width + join.right_width));
        let mut matched = vec![false; right_rows.len()];
        left_rows.each(|left| {
            let mut is_alone = true;
            self.each_match(join, &index, (left, right_rows), given, &mut |candidate, row| {
                (matched[candidate], is_alone) = (true, false);
                rows.push(&memory, space, row)
            })?;
            if is_alone && matches!(join.kind, JoinKind::Left | JoinKind::Full) {
                rows.push(&memory, space, with_nulls(left, join.right_width))?;
            }
            Ok(())
        })?;
        if matches!(join.kind, JoinKind::Right | JoinKind::Full) {
            for (right, _) in right_rows.iter().zip(&matched).filter(|(_, matched)| !**matched) {
                rows.push(&memory, space, behind_nulls(join.left_width, right))?;
            }
        }
        rows.complete()
    }

    /// With a right side of which only a piece at a time fits into memory: the left side is read once for each piece. What comes of the
    /// pieces is sorted into the order of the sides.
    fn joined_in_pieces(
        &mut self,
        join: &Join,
        left_rows: &Rows,
        right_rows: Rows,
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let scratch = self.on.scratch.clone();
        let piece_bytes = scratch.as_ref().map_or(u64::MAX, |scratch| scratch.operator_bytes());
        let memory = self.meter.memory.clone();
        let space = row_space(join.left_width + join.right_width);
        let mut found = Sorter::new(KeyOrder::Grouped, scratch.clone());
        let (mut alone, mut first) = (RowList::new(scratch.clone()), 0);
        let mut has_match = vec![false; left_rows.len()];
        memory.hold(has_match.len() as u64)?;
        let mut right_rows = right_rows.into_each();
        loop {
            let (piece, piece_space) = right_rows.piece(piece_bytes)?;
            if piece.is_empty() {
                break;
            }
            memory.hold(piece_space)?;
            let before = memory.held();
            let index = self.indexed(&piece, join, given)?;
            let index_space = memory.held() - before;
            let (mut matched, mut number) = (vec![false; piece.len()], 0);
            left_rows.each(|left| {
                self.each_match(join, &index, (left, &piece), given, &mut |candidate, row| {
                    (matched[candidate], has_match[number]) = (true, true);
                    found.push(&memory, place(number, first + candidate), row)
                })?;
                number += 1;
                Ok(())
            })?;
            if matches!(join.kind, JoinKind::Right | JoinKind::Full) {
                for (right, _) in piece.iter().zip(&matched).filter(|(_, matched)| !**matched) {
                    alone.push(&memory, space, behind_nulls(join.left_width, right))?;
                }
            }
            first += piece.len();
            memory.release(piece_space + index_space);
        }
        if matches!(join.kind, JoinKind::Left | JoinKind::Full) {
            let mut number = 0;
            left_rows.each(|left| {
                if !has_match[number] {
                    found.push(&memory, place(number, 0), with_nulls(left, join.right_width))?;
                }
                number += 1;
                Ok(())
            })?;
        }
        let mut rows = RowList::new(scratch);
        let mut found = found.finish()?;
        while let Some((_, row)) = found.next()? {
            self.charge(0)?;
            rows.push(&memory, space, row)?;
        }
        let mut alone = alone.complete()?.into_each();
        while let Some(row) = alone.next()? {
            rows.push(&memory, space, row)?;
        }
        rows.complete()
    }

    /// Gives each row of the right side that a row of the left one is joined with: its position, and the row that comes of both.
    fn each_match(
        &mut self,
        join: &Join,
        index: &Option<JoinIndex>,
        (left, right_rows): (&[Value], &[Vec<Value>]),
        given: Given<'_>,
        take: &mut dyn FnMut(usize, Vec<Value>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let candidates: Vec<usize> = match index {
            None => (0..right_rows.len()).collect(),
            Some(index) => {
                let keys = self.keys(join.equal.iter().map(|(left, _)| left), left, given)?;
                keys.and_then(|keys| index.get(&keys)).cloned().unwrap_or_default()
            }
        };
        self.charge(candidates.len() as u64)?;
        for candidate in candidates {
            let row = [left, &right_rows[candidate]].concat();
            if self.holds(join.condition.as_ref(), &row, given)? {
                take(candidate, row)?;
            }
        }
        Ok(())
    }

    fn joined_row_by_row(
        &mut self,
        join: &Join,
        left_rows: Rows,
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let memory = self.meter.memory.clone();
        let mut rows = RowList::new(self.on.scratch.clone());
        let mut left_rows = left_rows.into_each();
        while let Some(left) = left_rows.next()? {
            let prefix = [given.left, &left].concat();
            let held = memory.held();
            let right_rows = self.relation_rows(&join.right, Given { left: &prefix, ..given })?;
            let mut found = Vec::new();
            right_rows.each(|right| {
                let row = [left.as_slice(), right].concat();
                if self.holds(join.condition.as_ref(), &row, given)? {
                    found.push(row);
                }
                Ok(())
            })?;
            if found.is_empty() && join.kind == JoinKind::Left {
                found.push(with_nulls(&left, join.right_width));
            }
            // The rows of the right side are gone, and those that match have come.
            memory.release_to(held);
            let space = rows_space(&found) / (found.len() as u64).max(1);
            found.into_iter().try_for_each(|row| rows.push(&memory, space, row))?;
        }
        rows.complete()
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

    /// Where something must be equal, positions of rows by that; NULL equals nothing.
    fn indexed(
        &mut self,
        rows: &[Vec<Value>],
        join: &Join,
        given: Given<'_>,
    ) -> Result<Option<JoinIndex>, SqlError> {
        if join.equal.is_empty() {
            return Ok(None);
        }
        let mut index = JoinIndex::new();
        for (position, row) in rows.iter().enumerate() {
            // The right keys look at the right row; what is to its left they take from the same prefix as a condition.
            let keys = self.keys(join.equal.iter().map(|(_, right)| right), row, given)?;
            if let Some(keys) = keys {
                self.meter.memory.hold_row(keys.0.len())?;
                index.entry(keys).or_default().push(position);
            }
        }
        Ok(Some(index))
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

/// Positions of rows by the values that must be equal.
type JoinIndex = BTreeMap<Sortable, Vec<usize>>;

/// Where a joined row stands: by the positions of its rows in both sides.
fn place(left: usize, right: usize) -> Vec<Value> {
    vec![Value::BigInt(left as i64), Value::BigInt(right as i64)]
}

fn with_nulls(left: &[Value], count: usize) -> Vec<Value> {
    let mut row = left.to_vec();
    row.resize(left.len() + count, Value::Null);
    row
}

fn behind_nulls(count: usize, right: &[Value]) -> Vec<Value> {
    let mut row = vec![Value::Null; count];
    row.extend(right.iter().cloned());
    row
}
