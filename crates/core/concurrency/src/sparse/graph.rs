//! Who waits for whom: queues of the waiting transactions by the rows that they touch.

use super::early::Heard;
use super::transaction::{SparseTransaction, Version};
use crate::parts::LedgerPosition;
use state::RowId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::TableId;

/// A transaction that is not decided.
pub(super) struct Waiting {
    pub(super) transaction: Arc<SparseTransaction>,
    /// What this peer and others have found.
    pub(super) heard: Heard,
    /// This peer has found its own part valid.
    pub(super) is_validated: bool,
    /// Its block is committed.
    pub(super) is_deferred: bool,
    /// The last one before it that it meets.
    behind: Option<LedgerPosition>,
}

/// Waiting transactions that touch a row.
#[derive(Default)]
struct RowWaiters {
    /// With the version that they read.
    readers: BTreeMap<LedgerPosition, Option<Version>>,
    writers: BTreeSet<LedgerPosition>,
}

/// The transactions that wait, in the order of the ledger.
#[derive(Default)]
pub(super) struct WaitingGraph {
    waiting: BTreeMap<LedgerPosition, Waiting>,
    rows: BTreeMap<RowId, RowWaiters>,
    /// Those that read intervals, by table.
    scanners: BTreeMap<TableId, BTreeMap<LedgerPosition, Arc<SparseTransaction>>>,
    /// Who is behind whom.
    followers: BTreeMap<LedgerPosition, BTreeSet<LedgerPosition>>,
    /// Those that are behind nobody, and not validated.
    ready: BTreeSet<LedgerPosition>,
}

impl WaitingGraph {
    /// Adds a transaction behind all others.
    pub(super) fn add(&mut self, transaction: Arc<SparseTransaction>, mut heard: Heard, is_deferred: bool) {
        let position = transaction.position;
        heard.keep_only(&transaction.contracts);
        for read in transaction.reads() {
            let waiters = self.rows.entry(read.row.clone()).or_default();
            waiters.readers.insert(position, read.version);
        }
        for write in transaction.writes() {
            self.rows.entry(write.row.clone()).or_default().writers.insert(position);
        }
        for interval in transaction.intervals() {
            let scanners = self.scanners.entry(interval.table).or_default();
            scanners.insert(position, transaction.clone());
        }
        let waiting = Waiting { transaction, heard, is_validated: false, is_deferred, behind: None };
        self.waiting.insert(position, waiting);
        self.queue(position);
    }

    /// Takes a transaction out; whoever is behind it looks for another one to be behind.
    pub(super) fn remove(&mut self, position: LedgerPosition) -> Option<Waiting> {
        let removed = self.waiting.remove(&position)?;
        self.ready.remove(&position);
        if let Some(followers) = removed.behind.and_then(|behind| self.followers.get_mut(&behind)) {
            followers.remove(&position);
        }
        let transaction = &removed.transaction;
        let touched = transaction.reads().map(|read| &read.row);
        for row in touched.chain(transaction.writes().map(|write| &write.row)) {
            if let Some(waiters) = self.rows.get_mut(row) {
                waiters.readers.remove(&position);
                waiters.writers.remove(&position);
                if waiters.readers.is_empty() && waiters.writers.is_empty() {
                    self.rows.remove(row);
                }
            }
        }
        for interval in transaction.intervals() {
            if let Some(scanners) = self.scanners.get_mut(&interval.table) {
                scanners.remove(&position);
                if scanners.is_empty() {
                    self.scanners.remove(&interval.table);
                }
            }
        }
        for follower in self.followers.remove(&position).unwrap_or_default() {
            self.queue(follower);
        }
        Some(removed)
    }

    pub(super) fn get(&self, position: LedgerPosition) -> Option<&Waiting> {
        self.waiting.get(&position)
    }

    pub(super) fn get_mut(&mut self, position: LedgerPosition) -> Option<&mut Waiting> {
        self.waiting.get_mut(&position)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LedgerPosition, &Waiting)> {
        self.waiting.iter().map(|(position, waiting)| (*position, waiting))
    }

    /// Those whose part can be validated, in the order of the ledger.
    pub(super) fn ready(&self) -> impl Iterator<Item = LedgerPosition> {
        self.ready.iter().copied()
    }

    pub(super) fn is_ready(&self, position: LedgerPosition) -> bool {
        self.ready.contains(&position)
    }

    /// Its own part is valid; it waits for what others say, and others wait for it.
    pub(super) fn validated(&mut self, position: LedgerPosition) {
        self.ready.remove(&position);
        if let Some(waiting) = self.waiting.get_mut(&position) {
            waiting.is_validated = true;
        }
    }

    /// Those that have read an older version of what a transaction writes: if it is valid, they are not. Who read the row as absent may
    /// be valid: somebody between them may delete it again.
    pub(super) fn fated_by(&self, transaction: &SparseTransaction) -> BTreeSet<LedgerPosition> {
        let is_older =
            |version: Option<Version>| version.is_some_and(|version| version < transaction.position);
        let behind = (std::ops::Bound::Excluded(transaction.position), std::ops::Bound::Unbounded);
        let mut fated = BTreeSet::new();
        for row in transaction.writes().map(|write| &write.row) {
            let readers = self.rows.get(row).into_iter().flat_map(|waiters| waiters.readers.range(behind));
            fated.extend(readers.filter(|(_, version)| is_older(**version)).map(|(reader, _)| *reader));
            let scanners =
                self.scanners.get(&row.table).into_iter().flat_map(|scanners| scanners.range(behind));
            let has_older = |scanner: &SparseTransaction| {
                let mut intervals = scanner.intervals().filter(|interval| interval.contains(row));
                intervals.any(|interval| is_older(interval.found(&row.key)))
            };
            fated.extend(scanners.filter(|(_, scanner)| has_older(scanner)).map(|(reader, _)| *reader));
        }
        fated
    }

    /// Puts a transaction behind the last one before it that it meets.
    fn queue(&mut self, position: LedgerPosition) {
        let Some(waiting) = self.waiting.get(&position) else { return };
        let behind = self.last_met(&waiting.transaction);
        match behind {
            Some(behind) => drop(self.followers.entry(behind).or_default().insert(position)),
            None => drop(self.ready.insert(position)),
        }
        if let Some(waiting) = self.waiting.get_mut(&position) {
            waiting.behind = behind;
        }
    }

    /// The last waiting transaction before this one that reads or writes what it writes, or writes what it reads, at whatever version.
    fn last_met(&self, transaction: &SparseTransaction) -> Option<LedgerPosition> {
        let before = ..transaction.position;
        let writer = |row| self.rows.get(row).and_then(|waiters| waiters.writers.range(before).next_back());
        let reader = |row| self.rows.get(row).and_then(|waiters| waiters.readers.range(before).next_back());
        let scanner = |row: &RowId| {
            let scanners = self.scanners.get(&row.table)?.range(before).rev();
            let mut meets = scanners
                .filter(|(_, scanner)| scanner.intervals().any(|interval| interval.contains(row)))
                .map(|(scanner, _)| *scanner);
            meets.next()
        };
        let read = transaction.reads().filter_map(|read| writer(&read.row).copied());
        let written = transaction.writes().map(|write| &write.row).filter_map(|row| {
            let readers = reader(row).map(|(reader, _)| *reader);
            writer(row).copied().max(readers).max(scanner(row))
        });
        let scanned = transaction.intervals().filter_map(|interval| {
            let rows = self.rows.range(interval.range.of_table(interval.table));
            rows.filter_map(|(_, waiters)| waiters.writers.range(before).next_back().copied()).max()
        });
        read.chain(written).chain(scanned).max()
    }
}
