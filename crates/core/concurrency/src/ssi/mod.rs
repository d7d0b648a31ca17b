//! Serializable snapshot isolation over blocks: RBC, order-then-execute (Nathan et al.: "Blockchain Meets Database:
//! Design and Implementation of a Blockchain Relational Database", PVLDB 12, 2019, section 3.4; the rules are those of
//! `protocols.md`, section 3).
//!
//! All transactions of a batch run on the state that the batch before left, and commit one after the other in block
//! order. `t → u` means that t read a before-image of what u writes; what a command uses counts as read. When T
//! commits,
//!
//! - nobody who comes later and writes what T wrote can commit: of several writers the first one wins,
//! - every `near → T` that has not committed yet, in block order, is given up if there is a `far → near`, where far is T itself, has
//!   committed or may still commit. Who will lose against a writer is only found when its turn comes; until then it may
//!   still commit.
//!
//! Number 0 always commits. What commits is serializable: on a cycle of edges let T be the first to commit, near the
//! one before it and far the one before that; far commits, so near would have been given up when T committed.
//!
//! **The order.** Let near commit although `near → T` for a T that committed before it. Then nobody who commits has an
//! edge to near. So all such transactions come first, in any order, then the others in block order, whose edges all
//! point forward.

mod readers;

use crate::column_classes::ColumnClasses;
use crate::optimistic::{self, Decision, Simulated};
use crate::scanned_rows::{Met, ScannedRows, TooManyTests};
use crate::{Batch, BatchResult, Protocol, ProtocolOptions, Snapshots};
use readers::{ReaderList, ReaderLists};
use state::StoreError;
use std::collections::VecDeque;

/// SSI over blocks as a protocol.
pub(crate) struct Ssi {
    options: ProtocolOptions,
    waiting: VecDeque<Batch>,
}

impl Ssi {
    pub(crate) fn new(options: ProtocolOptions) -> Ssi {
        Ssi { options, waiting: VecDeque::new() }
    }
}

impl Protocol for Ssi {
    fn id(&self) -> &'static str {
        "ssi"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        let snapshot = snapshots.newest();
        optimistic::run(&batch, snapshot.as_ref(), &self.options, |simulated| {
            decide(simulated, ScannedRows::of(simulated))
        })
        .map(Some)
    }
}

/// A column of a row.
#[derive(Clone, Copy, Default)]
struct Column {
    /// Who writes it has committed.
    is_taken: bool,
    readers: ReaderList,
}

/// What is known of a transaction.
#[derive(Clone, Copy, Default)]
struct TransactionFacts {
    /// It will not commit.
    given_up: bool,
    /// It read a before-image of what a smaller number that has committed wrote.
    backward: bool,
    /// Its scans were not held against what others write.
    untested: bool,
}

/// A batch on its way from the first commit to the last.
struct Commits<'a> {
    batch: &'a Simulated<'a>,
    /// By row.
    rows: Vec<ColumnClasses<Column>>,
    /// By transaction: those who scanned for what it may make of rows outside their results.
    scanners: Vec<Vec<ReaderList>>,
    readers: ReaderLists,
    /// By transaction.
    progress: Vec<TransactionFacts>,
}

fn decide(batch: &Simulated<'_>, scans: ScannedRows<'_, ReaderList>) -> Decision {
    let mut commits = Commits::of(batch, scans);
    let mut rejected = Vec::new();
    let (mut before_all, mut backward, mut forward) = (Vec::new(), Vec::new(), Vec::new());
    for (number, effects) in (0u32..).zip(batch.effects) {
        let Some(effects) = effects else { continue };
        let list = if commits.progress[number as usize].given_up || commits.has_lost(number) {
            commits.progress[number as usize].given_up = true;
            &mut rejected
        } else {
            commits.commit(number);
            match commits.progress[number as usize] {
                TransactionFacts { untested: true, .. } if effects.commands.is_empty() => &mut before_all,
                TransactionFacts { backward: true, .. } => &mut backward,
                _ => &mut forward,
            }
        };
        list.push(number);
    }
    let order = [before_all, backward, forward].concat();
    Decision { order, rejected }
}

impl<'a> Commits<'a> {
    /// Nobody has committed yet.
    fn of(batch: &'a Simulated<'a>, scans: ScannedRows<'_, ReaderList>) -> Commits<'a> {
        let count = batch.effects.len();
        let mut commits = Commits {
            batch,
            rows: vec![ColumnClasses::new(Column::default()); batch.rows.len()],
            scanners: vec![Vec::new(); count],
            readers: ReaderLists::default(),
            progress: vec![TransactionFacts::default(); count],
        };
        commits.add_readers(scans);
        // Number 0 must commit. If nobody knows who writes what its scans would have found, nobody else may write.
        let alone = commits.progress.first().is_some_and(|first| first.untested);
        for (number, effects) in batch.effects.iter().enumerate().skip(1) {
            let writes = effects.as_ref().is_some_and(|effects| !effects.commands.is_empty());
            let progress = &mut commits.progress[number];
            progress.given_up = writes && (alone || progress.untested);
        }
        commits
    }

    fn add_readers(&mut self, mut scans: ScannedRows<'_, ReaderList>) {
        let rows = self.batch.rows;
        for (number, effects) in (0u32..).zip(self.batch.effects) {
            let Some(effects) = effects else { continue };
            let reads = effects.reads.iter().map(|read| (rows.number(&read.row), read.columns));
            let commands = effects.commands.iter().zip(rows.of_transaction(number as usize));
            let used = commands.map(|(command, row)| (Some(*row), command.uses));
            for (row, columns) in reads.chain(used) {
                if let Some(row) = row {
                    self.rows[row as usize]
                        .for_each_in(columns, |column| self.readers.add(&mut column.readers, number));
                }
            }
            for scan in &effects.scans {
                let tested = scans.meet(scan, |met| match met {
                    Met::InResult(row) => self.rows[row as usize]
                        .for_each_in(scan.columns, |column| self.readers.add(&mut column.readers, number)),
                    Met::MayEnter(form) => self.readers.add(&mut form.value, number),
                });
                if let Err(TooManyTests) = tested {
                    self.progress[number as usize].untested = true;
                }
            }
        }
        for form in scans.forms().filter(|form| !form.value.is_empty()) {
            for member in &form.members {
                self.scanners[*member as usize].push(form.value);
            }
        }
    }

    /// Whether somebody who has committed wrote what this transaction writes.
    fn has_lost(&self, number: u32) -> bool {
        self.writes(number)
            .any(|(row, columns)| self.rows[row].values_in(columns).any(|column| column.is_taken))
    }

    fn commit(&mut self, number: u32) {
        let mut nears = Vec::new();
        let writes: Vec<_> = self.writes(number).collect();
        for (row, columns) in writes {
            self.rows[row].for_each_in(columns, |column| {
                column.is_taken = true;
                nears.extend(self.readers.iter(column.readers));
            });
        }
        for scanners in &self.scanners[number as usize] {
            nears.extend(self.readers.iter(*scanners));
        }
        // In block order: who is given up is no far for the next one.
        nears.sort_unstable();
        nears.dedup();
        for near in nears {
            if near <= number || self.progress[near as usize].given_up {
                continue;
            }
            match self.has_far(near) {
                true => self.progress[near as usize].given_up = true,
                false => self.progress[near as usize].backward = true,
            }
        }
    }

    /// Whether anybody who was not given up has an edge to this transaction.
    fn has_far(&mut self, near: u32) -> bool {
        let Commits { rows, scanners, readers, progress, .. } = self;
        let mut is_read = |list: ReaderList| {
            readers.retain_until(list, |reader| !progress[reader as usize].given_up, |reader| reader != near)
        };
        let effects = self.batch.effects[near as usize].iter();
        let commands = effects.flat_map(|effects| &effects.commands);
        let mut writes = commands.zip(self.batch.rows.of_transaction(near as usize));
        writes.any(|(command, row)| {
            rows[*row as usize].values_in(command.writes).any(|column| is_read(column.readers))
        }) || scanners[near as usize].iter().any(|list| is_read(*list))
    }

    /// Rows and columns that a transaction writes.
    fn writes(&self, number: u32) -> impl Iterator<Item = (usize, types::ColumnSet)> + use<'a> {
        let effects = self.batch.effects[number as usize].iter();
        let commands = effects.flat_map(|effects| &effects.commands);
        let rows = self.batch.rows.of_transaction(number as usize);
        commands.zip(rows).map(|(command, row)| (*row as usize, command.writes))
    }
}

#[cfg(test)]
mod tests;
