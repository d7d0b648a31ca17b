//! What was committed since the oldest transaction began, for validation.

use crate::predicate::{Cell, Predicate, Written};
use std::collections::VecDeque;
use std::ops::Range;

/// Commits, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<Committed>);

/// The writes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    at: u64,
    rows: Vec<Row>,
    cells: Vec<Cell>,
    keys: Vec<i64>,
}

#[derive(Debug)]
struct Row {
    table: usize,
    row: u32,
    is_inserted: bool,
    cells: Range<usize>,
    keys: Range<usize>,
}

impl Recent {
    /// Whether a later commit than `begin` would have changed what was read.
    pub(crate) fn meet(&self, begin: u64, predicates: &[Predicate]) -> bool {
        let later = self.0.iter().rev().take_while(|committed| committed.at > begin);
        later.flat_map(Committed::written).any(|written| predicates.iter().any(|one| one.meets(&written)))
    }

    /// Adds a commit and leaves out those that nobody needs who began at `oldest` or later.
    pub(crate) fn add(&mut self, committed: Committed, oldest: u64) {
        self.0.push_back(committed);
        while self.0.front().is_some_and(|committed| committed.at <= oldest) {
            self.0.pop_front();
        }
    }
}

impl Committed {
    pub(crate) fn new(at: u64) -> Committed {
        Committed { at, ..Committed::default() }
    }

    /// Adds a row.
    pub(crate) fn push(
        &mut self,
        (table, row): (usize, u32),
        is_inserted: bool,
        keys: impl IntoIterator<Item = i64>,
        cells: impl IntoIterator<Item = Cell>,
    ) {
        let (first_cell, first_key) = (self.cells.len(), self.keys.len());
        self.cells.extend(cells);
        self.keys.extend(keys);
        let (cells, keys) = (first_cell..self.cells.len(), first_key..self.keys.len());
        self.rows.push(Row { table, row, is_inserted, cells, keys });
    }

    fn written(&self) -> impl Iterator<Item = Written<'_>> {
        self.rows.iter().map(|row| Written {
            table: row.table,
            row: row.row,
            is_inserted: row.is_inserted,
            cells: &self.cells[row.cells.clone()],
            keys: &self.keys[row.keys.clone()],
        })
    }
}
