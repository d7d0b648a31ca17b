//! Placing commands: in the order that the protocol decided, each transaction evaluates its steps in program order on
//! the rows as its predecessors left them, and applies all of them or none (`protocols.md`, section 2, rule 4).
//!
//! That is the definition; the result here is the same, with less waiting:
//!
//! - **Judged rows** are those where something may fail: a command that can err, or whose guard somebody looked at.
//!   They connect the transactions that share them. What is not connected is judged in parallel, what is connected
//!   one after the other: [`judge`].
//! - On all **other rows** nothing can happen that changes a verdict. They wait for the verdicts; then each is found
//!   once, given its commands in order, and written once, rows in parallel: [`fold`].
//! - **Additions** (`c = c + 1`) can fail, but many of them on one row are judged together: if the row's value with
//!   all positive amounts and with all negative ones stays in range, so does every selection in every order.
//!
//! To judge guards row by row and drop transactions afterwards would be wrong: later guards have then been judged on
//! top of a command that never happened.

mod fold;
mod judge;

use crate::execution::differs;
use crate::written_rows::WrittenRows;
use rayon::prelude::*;
use state::{AfterImage, Command, Effects, FirstFailure, Snapshot, StoreError};
use types::{Row, SqlError};

/// Rows that one task looks up or folds.
const ROWS_PER_TASK: usize = 32;

/// What became of a placed transaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// All its commands are applied.
    Applied,
    /// A guard did not hold: it has to run again.
    Again,
    /// A business abort.
    Error(Box<SqlError>),
}

/// What became of a batch's accepted transactions.
#[derive(Debug, PartialEq)]
pub(crate) struct Placement {
    /// By place.
    pub(crate) verdicts: Vec<Verdict>,
    /// The rows that are not as they were, by table and key.
    pub(crate) changes: Vec<AfterImage>,
}

/// A command that waits for its turn on a row.
#[derive(Clone, Copy)]
struct QueuedCommand<'a> {
    /// Place of its transaction in the order.
    place: u32,
    command: &'a Command,
}

/// A batch's accepted transactions, their commands queued by row.
struct Queues<'a> {
    effects: &'a [Option<Effects>],
    rows: &'a WrittenRows<'a>,
    order: &'a [u32],
    /// Row by row, each by place and position in the program.
    waiting: Vec<QueuedCommand<'a>>,
    /// Where a row's part of `waiting` begins; one more entry than rows.
    first: Vec<u32>,
}

/// Places the transactions of `order`. Without `coalescing` every row is judged command by command.
pub(crate) fn place(
    effects: &[Option<Effects>],
    rows: &WrittenRows<'_>,
    order: &[u32],
    snapshot: &dyn Snapshot,
    coalescing: bool,
) -> Result<Placement, StoreError> {
    let queues = Queues::new(effects, rows, order);
    let failure = FirstFailure::default();
    // What the rows were, and whether something on them may fail.
    let loaded: Vec<(Option<Row>, bool)> = (0..rows.len() as u32)
        .into_par_iter()
        .with_min_len(ROWS_PER_TASK)
        .map(|row| {
            let queue = queues.of_row(row);
            if queue.is_empty() {
                return (None, false);
            }
            let id = rows.row(row);
            let before = failure.keep(snapshot.get(id.table, &id.key));
            let judged = !coalescing || !fold::cannot_fail(before.as_ref(), queue);
            (before, judged)
        })
        .collect();
    let loaded = failure.check(loaded)?;
    let judgement = judge::judge(&queues, &loaded);
    let ordered = rows.ordered();
    let changes = ordered.par_iter().with_min_len(ROWS_PER_TASK).filter_map(|row| {
        let (before, judged) = &loaded[*row as usize];
        let after = match judged {
            true => judgement.row(*row).cloned(),
            false => fold::fold(before.clone(), queues.of_row(*row), &judgement.verdicts),
        };
        let differs = differs(before.as_ref(), after.as_ref());
        differs.then(|| AfterImage { row: rows.row(*row).clone(), value: after })
    });
    let changes = changes.collect();
    Ok(Placement { verdicts: judgement.verdicts, changes })
}

impl<'a> Queues<'a> {
    fn new(effects: &'a [Option<Effects>], rows: &'a WrittenRows<'a>, order: &'a [u32]) -> Queues<'a> {
        let placed = || {
            order.iter().enumerate().flat_map(|(place, transaction)| {
                let commands = effects[*transaction as usize].iter().flat_map(|effects| &effects.commands);
                let rows = rows.of_transaction(*transaction as usize);
                commands.zip(rows).map(move |(command, row)| {
                    (*row as usize, QueuedCommand { place: place as u32, command })
                })
            })
        };
        let mut first = vec![0u32; rows.len() + 2];
        let mut some = None;
        for (row, waiting) in placed() {
            first[row + 2] += 1;
            some = Some(waiting);
        }
        for row in 1..first.len() {
            first[row] += first[row - 1];
        }
        // `first[row + 1]` is where the row's next command goes; in the end it is where the row's part ends.
        let mut waiting = some.map_or(Vec::new(), |some| vec![some; first[rows.len() + 1] as usize]);
        for (row, command) in placed() {
            waiting[first[row + 1] as usize] = command;
            first[row + 1] += 1;
        }
        first.pop();
        Queues { effects, rows, order, waiting, first }
    }

    fn of_row(&self, row: u32) -> &[QueuedCommand<'a>] {
        &self.waiting[self.first[row as usize] as usize..self.first[row as usize + 1] as usize]
    }

    /// The commands of the transaction at a place, with their rows.
    fn of_place(&self, place: u32) -> impl Iterator<Item = (&'a Command, u32)> + use<'a> {
        let transaction = self.order[place as usize] as usize;
        let commands = self.effects[transaction].iter().flat_map(|effects| &effects.commands);
        commands.zip(self.rows.of_transaction(transaction).iter().copied())
    }
}

#[cfg(test)]
mod tests;
