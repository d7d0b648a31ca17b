//! All edges of a batch without looking at pairs: per row, and per class of columns that nobody tells apart, the two
//! smallest writers and the two largest readers.

use super::edges::{Edges, Largest, Number, Smallest};
use super::previous::Previous;
use super::scans::{Scans, Writers};
use crate::column_classes::ColumnClasses;
use crate::optimistic::Simulated;
use crate::written_rows::WrittenRows;
use types::ColumnSet;

/// Who writes and reads a column.
#[derive(Clone, Copy)]
struct Use {
    writers: Smallest,
    readers: Largest,
}

/// Who writes and reads the columns of one row.
pub(super) struct RowUse(ColumnClasses<Use>);

impl RowUse {
    fn new() -> RowUse {
        RowUse(ColumnClasses::new(Use { writers: Smallest::NONE, readers: Largest::NONE }))
    }

    fn write(&mut self, columns: ColumnSet, writer: Number) {
        self.0.for_each_in(columns, |column| column.writers.add(writer));
    }

    /// Adds a reader; the smallest other writer of what it reads.
    pub(super) fn read(&mut self, columns: ColumnSet, reader: Number) -> Number {
        let mut smallest = Number::MAX;
        self.0.for_each_in(columns, |column| {
            column.readers.add(reader);
            smallest = smallest.min(column.writers.without(reader));
        });
        smallest
    }

    /// The largest other reader of columns that `writer` writes.
    fn largest_reader(&self, columns: ColumnSet, writer: Number) -> Number {
        let read = self.0.values_in(columns).map(|column| column.readers.without(writer));
        read.max().unwrap_or(Number::MIN)
    }

    /// Whether a smaller number writes one of these columns.
    fn has_smaller_writer(&self, columns: ColumnSet, writer: Number) -> bool {
        self.0.values_in(columns).any(|column| column.writers.without(writer) < writer)
    }
}

/// `min_out` and `max_in` of every transaction (`protocols.md`, section 2, rules 1 and 2, and inter-block
/// parallelism). Without `reordering`, who writes what a smaller number writes is rejected.
pub(super) fn edges(batch: &Simulated<'_>, previous: Option<&Previous>, reordering: bool) -> Edges {
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
    if let Some(previous) = previous {
        add_observers(previous, rows, &mut uses);
        add_unseen_writers(batch, previous, &mut edges);
    }
    let scanned =
        |effects: &[Option<_>]| effects.iter().flatten().any(|one: &state::Effects| !one.scans.is_empty());
    if scanned(effects) || previous.is_some_and(|previous| scanned(&previous.effects)) {
        add_scans(batch, previous, &mut uses, &mut edges);
    }
    for (number, effects) in effects.iter().enumerate() {
        let Some(effects) = effects else { continue };
        let number = number as Number;
        for (command, row) in effects.commands.iter().zip(rows.of_transaction(number as usize)) {
            let row = &uses[*row as usize];
            edges.raise_max_in(number, row.largest_reader(command.writes, number));
            if !reordering && row.has_smaller_writer(command.writes, number) {
                edges.reject(number);
            }
        }
    }
    edges
}

/// Edges of scans: within the batch, and in both directions between the batches.
fn add_scans(batch: &Simulated<'_>, previous: Option<&Previous>, uses: &mut [RowUse], edges: &mut Edges) {
    let mut scans = Scans::new(batch.effects, batch.rows, batch.snapshot.catalog());
    for (effects, number) in
        previous.iter().flat_map(|previous| previous.effects.iter().zip(&previous.numbers))
    {
        for scan in effects.iter().flat_map(|effects| &effects.scans) {
            if scans.observe(scan, *number, uses).is_err() {
                edges.reject_all();
                return;
            }
        }
    }
    for (number, effects) in batch.effects.iter().enumerate() {
        for scan in effects.iter().flat_map(|effects| &effects.scans) {
            scans.add(scan, number as Number, uses, edges);
        }
    }
    scans.raise_max_in(edges);
}

/// Edges into the batch from who read or used what it writes.
fn add_observers(previous: &Previous, rows: &WrittenRows<'_>, uses: &mut [RowUse]) {
    for (effects, number) in previous.effects.iter().zip(&previous.numbers) {
        let Some(effects) = effects else { continue };
        let reads = effects.reads.iter().map(|read| (&read.row, read.columns));
        let used = effects.commands.iter().map(|command| (&command.row, command.uses));
        for (row, columns) in reads.chain(used) {
            if let Some(row) = rows.number(row) {
                uses[row as usize].read(columns, *number);
            }
        }
    }
}

/// Edges to and from writers of the batch before, whose writes this batch did not see.
fn add_unseen_writers(batch: &Simulated<'_>, previous: &Previous, edges: &mut Edges) {
    let rows = WrittenRows::new(&previous.effects);
    let mut writers: Vec<ColumnClasses<Writers>> =
        (0..rows.len()).map(|_| ColumnClasses::new(Writers::NONE)).collect();
    for (transaction, effects) in previous.effects.iter().enumerate() {
        let Some(effects) = effects else { continue };
        let (number, backward) = (previous.numbers[transaction], previous.backward[transaction]);
        for (command, row) in effects.commands.iter().zip(rows.of_transaction(transaction)) {
            writers[*row as usize].for_each_in(command.writes, |writers| writers.add(number, backward));
        }
    }
    for (number, effects) in batch.effects.iter().enumerate() {
        let Some(effects) = effects else { continue };
        let number = number as Number;
        for read in &effects.reads {
            let Some(row) = rows.number(&read.row) else { continue };
            writers[row as usize].values_in(read.columns).for_each(|unseen| edges.add_unseen(number, unseen));
        }
        for command in &effects.commands {
            let Some(row) = rows.number(&command.row) else { continue };
            for unseen in writers[row as usize].values_in(command.uses | command.writes) {
                edges.raise_max_in(number, unseen.last);
            }
        }
    }
    if batch.effects.iter().flatten().all(|effects| effects.scans.is_empty()) {
        return;
    }
    let mut scans = Scans::new(&previous.effects, &rows, batch.snapshot.catalog());
    for (number, effects) in batch.effects.iter().enumerate() {
        for scan in effects.iter().flat_map(|effects| &effects.scans) {
            scans.add_unseen(scan, number as Number, previous, &writers, edges);
        }
    }
}
