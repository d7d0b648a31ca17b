//! All edges of a batch without looking at pairs: per row, and per class of columns that nobody tells apart, the two
//! smallest writers and the two largest readers.

use super::edges::{Edges, Largest, Number, Smallest};
use super::scans;
use crate::optimistic::Simulated;
use smallvec::{SmallVec, smallvec};
use types::ColumnSet;

/// Columns of one row that every transaction so far has read or written together.
#[derive(Clone, Copy)]
struct Class {
    columns: ColumnSet,
    writers: Smallest,
    readers: Largest,
}

/// Who writes and reads the columns of one row. The classes are disjoint and cover every column: a row of which all
/// transactions use the same columns has two of them, however wide it is.
pub(super) struct RowUse(SmallVec<[Class; 2]>);

impl RowUse {
    fn new() -> RowUse {
        RowUse(smallvec![Class { columns: ColumnSet::ALL, writers: Smallest::NONE, readers: Largest::NONE }])
    }

    /// Visits classes that make up exactly `columns`, splitting those that are partly in it.
    fn for_each_in(&mut self, columns: ColumnSet, mut visit: impl FnMut(&mut Class)) {
        for i in 0..self.0.len() {
            let class = self.0[i];
            if !class.columns.intersects(columns) {
                continue;
            }
            let rest = class.columns.without(columns);
            if !rest.is_empty() {
                self.0.push(Class { columns: rest, ..class });
                self.0[i].columns = class.columns & columns;
            }
            visit(&mut self.0[i]);
        }
    }

    fn write(&mut self, columns: ColumnSet, writer: Number) {
        self.for_each_in(columns, |class| class.writers.add(writer));
    }

    /// Adds a reader; the smallest other writer of what it reads.
    pub(super) fn read(&mut self, columns: ColumnSet, reader: Number) -> Number {
        let mut smallest = Number::MAX;
        self.for_each_in(columns, |class| {
            class.readers.add(reader);
            smallest = smallest.min(class.writers.without(reader));
        });
        smallest
    }

    /// The largest other reader of columns that `writer` writes.
    fn largest_reader(&self, columns: ColumnSet, writer: Number) -> Number {
        let read = self.0.iter().filter(|class| class.columns.intersects(columns));
        read.map(|class| class.readers.without(writer)).max().unwrap_or(Number::MIN)
    }
}

/// `min_out` and `max_in` of every transaction (`protocols.md`, section 2, rules 1 and 2).
pub(super) fn edges(batch: &Simulated<'_>) -> Edges {
    let Simulated { effects, rows, .. } = batch;
    let mut edges = Edges::new(effects.len());
    let mut uses: Vec<RowUse> = (0..rows.len()).map(|_| RowUse::new()).collect();
    for (number, effects) in effects.iter().enumerate() {
        let Some(effects) = effects else { continue };
        for (command, row) in effects.commands.iter().zip(rows.of_transaction(number)) {
            uses[*row as usize].write(command.writes, number as Number);
        }
    }
    for (number, effects) in effects.iter().enumerate() {
        for read in effects.iter().flat_map(|effects| &effects.reads) {
            let Some(row) = rows.number(&read.row) else { continue };
            let writer = uses[row as usize].read(read.columns, number as Number);
            edges.lower_min_out(number as Number, writer);
        }
    }
    if effects.iter().flatten().any(|effects| !effects.scans.is_empty()) {
        scans::add_edges(batch, &mut uses, &mut edges);
    }
    for (number, effects) in effects.iter().enumerate() {
        let Some(effects) = effects else { continue };
        for (command, row) in effects.commands.iter().zip(rows.of_transaction(number)) {
            let reader = uses[*row as usize].largest_reader(command.writes, number as Number);
            edges.raise_max_in(number as Number, reader);
        }
    }
    edges
}
