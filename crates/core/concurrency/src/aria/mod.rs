//! Aria (Lu, Yu, Cao, Madden: "Aria: A Fast and Practical Deterministic OLTP Database", PVLDB 13, 2020, sections 4 and
//! 5; `protocols.md`, section 3).
//!
//! All transactions of a batch run on one snapshot. For every column of a row the smallest transaction number that
//! reads it and the smallest that writes it are reserved; what a command uses counts as read, because Aria has values
//! to write and not commands. For a transaction T,
//!
//! - **WAW**: a smaller number writes what T writes,
//! - **RAW**: a smaller number writes what T read,
//! - **WAR**: a smaller number read what T writes.
//!
//! T is given up on WAW, and on RAW and WAR together (with deterministic reordering) or on RAW (without). Who writes
//! nothing is never given up: it comes before everybody. Reservations count whether or not who made them commits, so
//! the decision does not depend on the order in which it is made, and number 0 always commits.
//!
//! **The order.** Write `T → u` where T read a before-image of what u writes. Among accepted transactions
//!
//! - without RAW, `T → u` implies T < u: they take effect in ascending order;
//! - with RAW, hence without WAR, `t → T` implies t > T: they take effect in descending order;
//! - no edge leads from the former to the latter (it would have to point both up and down).
//!
//! So those with RAW, descending, then those without, ascending, is a topological order. As nobody writes what another
//! accepted one writes, this is all that the order has to respect; and as what commands use was read, they turn out at
//! their place as they did in simulation: no guard fails and no constraint is violated that was not violated there.

use crate::column_classes::ColumnClasses;
use crate::optimistic::{self, Decision, Simulated};
use crate::scanned_rows::{Met, ScannedRows, TooManyTests};
use crate::{Batch, BatchResult, Protocol, ProtocolOptions, Snapshots};
use state::{Effects, StoreError};
use std::collections::VecDeque;
use types::ColumnSet;

/// Aria as a protocol.
pub(crate) struct Aria {
    options: ProtocolOptions,
    waiting: VecDeque<Batch>,
}

impl Aria {
    pub(crate) fn new(options: ProtocolOptions) -> Aria {
        Aria { options, waiting: VecDeque::new() }
    }
}

impl Protocol for Aria {
    fn id(&self) -> &'static str {
        "aria"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        let snapshot = snapshots.newest();
        let reordering = self.options.reordering;
        optimistic::run(&batch, snapshot.as_ref(), &self.options, |simulated| {
            decide(simulated, reordering, ScannedRows::of(simulated))
        })
        .map(Some)
    }
}

/// Nobody.
const NONE: u32 = u32::MAX;

/// The smallest numbers that write and read a column of a row.
#[derive(Clone, Copy)]
struct Reservation {
    writer: u32,
    reader: u32,
}

/// The smallest number of which a scan met a form.
#[derive(Clone, Copy)]
struct Scanner(u32);

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner(NONE)
    }
}

/// What stands between a transaction and the smaller numbers.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Conflicts {
    waw: bool,
    raw: bool,
    war: bool,
    /// Its scans were not held against what others write.
    untested: bool,
}

/// The reservations of a batch, and the conflicts that they show.
struct Reservations {
    /// By row.
    rows: Vec<ColumnClasses<Reservation>>,
    /// By transaction.
    conflicts: Vec<Conflicts>,
}

fn decide(batch: &Simulated<'_>, reordering: bool, scans: ScannedRows<'_, Scanner>) -> Decision {
    let conflicts = Reservations::of(batch, scans).conflicts;
    // Number 0 must commit. If nobody knows who writes what its scans would have found, nobody else may write.
    let alone = conflicts.first().is_some_and(|first| first.untested);
    let is_rejected = |number: u32, effects: &Effects| {
        let Conflicts { waw, raw, war, untested } = conflicts[number as usize];
        let others = number > 0 && (alone || untested);
        !effects.commands.is_empty() && (others || waw || raw && (war || !reordering))
    };
    let mut rejected = Vec::new();
    let (mut before_all, mut backward, mut forward) = (Vec::new(), Vec::new(), Vec::new());
    for (number, effects) in (0..).zip(batch.effects) {
        let Some(effects) = effects else { continue };
        let list = match conflicts[number as usize] {
            _ if is_rejected(number, effects) => &mut rejected,
            Conflicts { untested: true, .. } if number > 0 => &mut before_all,
            Conflicts { raw: true, .. } => &mut backward,
            _ => &mut forward,
        };
        list.push(number);
    }
    let mut order = before_all;
    order.extend(backward.into_iter().rev());
    order.extend(forward);
    Decision { order, rejected }
}

impl Reservations {
    /// Makes all reservations of a batch.
    fn of(batch: &Simulated<'_>, scans: ScannedRows<'_, Scanner>) -> Reservations {
        let Simulated { effects, rows, .. } = batch;
        let unreserved = ColumnClasses::new(Reservation { writer: NONE, reader: NONE });
        let mut reservations = Reservations {
            rows: vec![unreserved; rows.len()],
            conflicts: vec![Conflicts::default(); effects.len()],
        };
        let executed = || (0u32..).zip(*effects).filter_map(|(number, one)| Some((number, one.as_ref()?)));
        for (number, effects) in executed() {
            for (command, row) in effects.commands.iter().zip(rows.of_transaction(number as usize)) {
                let row = &mut reservations.rows[*row as usize];
                row.for_each_in(command.writes, |column| column.writer = column.writer.min(number));
            }
        }
        for (number, effects) in executed() {
            for read in &effects.reads {
                if let Some(row) = rows.number(&read.row) {
                    reservations.read(row, read.columns, number);
                }
            }
            for (command, row) in effects.commands.iter().zip(rows.of_transaction(number as usize)) {
                reservations.read(*row, command.uses, number);
            }
        }
        if executed().any(|(_, effects)| !effects.scans.is_empty()) {
            reservations.scan(batch, scans);
        }
        for (number, effects) in executed() {
            let conflicts = &mut reservations.conflicts[number as usize];
            for (command, row) in effects.commands.iter().zip(rows.of_transaction(number as usize)) {
                for column in reservations.rows[*row as usize].values_in(command.writes) {
                    conflicts.waw |= column.writer < number;
                    conflicts.war |= column.reader < number;
                }
            }
        }
        reservations
    }

    /// Reserves columns for a reader. Everybody's writes are there already.
    fn read(&mut self, row: u32, columns: ColumnSet, number: u32) {
        let conflicts = &mut self.conflicts[number as usize];
        self.rows[row as usize].for_each_in(columns, |column| {
            column.reader = column.reader.min(number);
            conflicts.raw |= column.writer < number;
        });
    }

    /// Reserves what scans read: the rows in their results, and the absence of others.
    fn scan(&mut self, batch: &Simulated<'_>, mut scans: ScannedRows<'_, Scanner>) {
        for (number, effects) in (0u32..).zip(batch.effects) {
            for scan in effects.iter().flat_map(|effects| &effects.scans) {
                let tested = scans.meet(scan, |met| match met {
                    Met::InResult(row) => self.read(row, scan.columns, number),
                    Met::MayEnter(form) => {
                        form.value.0 = form.value.0.min(number);
                        self.conflicts[number as usize].raw |= form.members[0] < number;
                    }
                });
                if let Err(TooManyTests) = tested {
                    self.conflicts[number as usize].untested = true;
                }
            }
        }
        for form in scans.forms() {
            for member in &form.members {
                self.conflicts[*member as usize].war |= form.value.0 < *member;
            }
        }
    }
}

#[cfg(test)]
mod tests;
