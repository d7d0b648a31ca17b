//! The written rows of a batch, held against the scans of its transactions.
//!
//! A scan meets a written row in one of two ways: the row is in its result, then the row's columns count as read; or it
//! is not, then the scan has read the absence of what some of the row's writers may make of it (a phantom). Writers
//! that look the same to every scan are one [`Form`], so that the many increments of a hot row are tested once.
//!
//! Scans and written rows can be many, and a scan of nothing is cheap to execute, so their product is bounded: from
//! [`TESTS_MAX`] on [`ScannedRows::meet`] refuses to look, the same on every node, and the protocol has to assume the
//! worst.

use crate::conflict::{RowOutcome, row_outcomes, width};
use crate::optimistic::Simulated;
use crate::written_rows::WrittenRows;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use state::{Command, Effects, Scan};
use std::ops::Bound;
use types::{Catalog, ColumnSet, Key, TableId};

/// How often the scans of a batch may be held against a row or a form of its writers.
const TESTS_MAX: usize = 1 << 21;

/// Transactions whose commands on one row look the same to every scan that does not have the row in its result.
pub(crate) struct Form<T> {
    outcomes: SmallVec<[RowOutcome; 1]>,
    /// Ascending.
    pub(crate) members: Vec<u32>,
    /// What the protocol keeps here.
    pub(crate) value: T,
}

/// A written row that matters to a scan.
pub(crate) enum Met<'a, T> {
    /// The row is in the scan's result.
    InResult(u32),
    /// Writers of this form may make a row enter the result.
    MayEnter(&'a mut Form<T>),
}

/// The scan was not tested, because there were too many tests before it.
#[derive(Debug)]
pub(crate) struct TooManyTests;

/// The written rows of a batch; `T`: what a protocol keeps for every form.
pub(crate) struct ScannedRows<'a, T> {
    rows: &'a WrittenRows<'a>,
    catalog: &'a Catalog,
    /// Written rows by table and key.
    ordered: Vec<u32>,
    /// Transaction and command, row by row, ascending.
    writers: Vec<(u32, &'a Command)>,
    /// Where a row's part of `writers` begins; one more entry than rows.
    first: Vec<u32>,
    /// By row; made when a scan first meets the row outside its result.
    forms: Vec<Option<Vec<Form<T>>>>,
    /// Columns by table.
    widths: FxHashMap<TableId, usize>,
    /// Tests so far, and how many there may be.
    tests: usize,
    tests_max: usize,
}

impl<'a, T: Default> ScannedRows<'a, T> {
    pub(crate) fn new(
        effects: &'a [Option<Effects>],
        rows: &'a WrittenRows<'a>,
        catalog: &'a Catalog,
    ) -> ScannedRows<'a, T> {
        let ordered = rows.ordered();
        let commands = effects.iter().zip(0..).flat_map(|(effects, transaction)| {
            let commands = effects.iter().flat_map(|effects| &effects.commands);
            let rows = rows.of_transaction(transaction as usize);
            commands.zip(rows).map(move |(command, row)| (*row, (transaction, command)))
        });
        let mut by_row: Vec<(u32, (u32, &Command))> = commands.collect();
        by_row.sort_by_key(|(row, _)| *row);
        let mut first = vec![0; rows.len() + 1];
        for (row, _) in &by_row {
            first[*row as usize + 1] += 1;
        }
        for row in 0..rows.len() {
            first[row + 1] += first[row];
        }
        let writers = by_row.into_iter().map(|(_, writer)| writer).collect();
        let forms = (0..rows.len()).map(|_| None).collect();
        let (widths, tests, tests_max) = (FxHashMap::default(), 0, TESTS_MAX);
        ScannedRows { rows, catalog, ordered, writers, first, forms, widths, tests, tests_max }
    }

    /// Those of a simulated batch.
    pub(crate) fn of(batch: &Simulated<'a>) -> ScannedRows<'a, T> {
        ScannedRows::new(batch.effects, batch.rows, batch.snapshot.catalog())
    }

    /// With another bound, so that tests can go beyond it.
    #[cfg(test)]
    pub(crate) fn with_tests_max(self, tests_max: usize) -> ScannedRows<'a, T> {
        ScannedRows { tests_max, ..self }
    }

    /// Holds a scan against the written rows of its interval, in key order.
    pub(crate) fn meet(
        &mut self,
        scan: &Scan,
        mut visit: impl FnMut(Met<'_, T>),
    ) -> Result<(), TooManyTests> {
        if self.tests >= self.tests_max {
            return Err(TooManyTests);
        }
        for position in self.interval(scan) {
            self.tests += 1;
            let row = self.ordered[position];
            if scan.result.binary_search(&self.rows.row(row).key).is_ok() {
                visit(Met::InResult(row));
                continue;
            }
            let forms = self.forms_of(row);
            let count = forms.len();
            for form in forms {
                if form.outcomes.iter().any(|outcome| outcome.may_enter(scan)) {
                    visit(Met::MayEnter(form));
                }
            }
            self.tests += count;
        }
        Ok(())
    }

    /// The forms that scans were held against. A writer is in one form per row, so to look at all their members is
    /// linear in the commands.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &Form<T>> {
        self.forms.iter().flatten().flatten()
    }

    /// Positions in `ordered` of the written rows that the scan's interval holds.
    fn interval(&self, scan: &Scan) -> std::ops::Range<usize> {
        let position = |before: &dyn Fn(&Key) -> bool| {
            self.ordered.partition_point(|number| {
                let row = self.rows.row(*number);
                row.table < scan.table || (row.table == scan.table && before(&row.key))
            })
        };
        let start = match &scan.range.start {
            Bound::Included(start) => position(&|key| key < start),
            Bound::Excluded(start) => position(&|key| key <= start),
            Bound::Unbounded => position(&|_| false),
        };
        let end = match &scan.range.end {
            Bound::Included(end) => position(&|key| key <= end),
            Bound::Excluded(end) => position(&|key| key < end),
            Bound::Unbounded => position(&|_| true),
        };
        start..end.max(start)
    }

    fn forms_of(&mut self, row: u32) -> &mut [Form<T>] {
        if self.forms[row as usize].is_none() {
            let forms = self.make_forms(row);
            self.forms[row as usize] = Some(forms);
        }
        self.forms[row as usize].as_deref_mut().unwrap_or_default()
    }

    /// Groups the writers of a row. Updates of which no value is known are told apart by their columns alone.
    fn make_forms(&mut self, row: u32) -> Vec<Form<T>> {
        let id = self.rows.row(row);
        let catalog = self.catalog;
        let width = *self.widths.entry(id.table).or_insert_with(|| width(catalog, id.table));
        let mut unknown: FxHashMap<ColumnSet, usize> = FxHashMap::default();
        let mut forms: Vec<Form<T>> = Vec::new();
        let writers = &self.writers[self.first[row as usize] as usize..self.first[row as usize + 1] as usize];
        for commands in writers.chunk_by(|one, next| one.0 == next.0) {
            let writer = commands[0].0;
            let outcomes = row_outcomes(commands.iter().map(|(_, command)| *command), width);
            let alike = match outcomes.as_slice() {
                [] => continue,
                [one] if !one.creates && one.known.iter().all(Option::is_none) => Some(one.writes),
                _ => None,
            };
            let position = match alike {
                Some(writes) => *unknown.entry(writes).or_insert(forms.len()),
                None => forms.len(),
            };
            if position == forms.len() {
                forms.push(Form { outcomes, members: Vec::new(), value: T::default() });
            }
            forms[position].members.push(writer);
        }
        forms
    }
}
