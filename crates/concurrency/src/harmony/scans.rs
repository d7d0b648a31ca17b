//! Edges of scans: each is held against the written rows of its interval, in key order.
//!
//! Scans and written rows can be many, and a scan of nothing is cheap to execute, so their product is bounded: who scans
//! after [`TESTS_MAX`] is rejected without a look. That is always safe, and the same on every node.

use super::decide::RowUse;
use super::edges::{Edges, Largest, Number, Smallest};
use super::previous::Previous;
use crate::column_classes::ColumnClasses;
use crate::conflict::{RowOutcome, row_outcomes, width};
use crate::written_rows::WrittenRows;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use state::{Command, Effects, Scan};
use std::ops::Bound;
use types::{Catalog, ColumnSet, Key, TableId};

/// How often the scans of a batch may be held against a row or a form of its writers.
const TESTS_MAX: usize = 1 << 21;

/// Transactions of the batch before that wrote something, as edges to and from them need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writers {
    pub(super) first: Number,
    pub(super) last: Number,
    /// One of them must come before a smaller number.
    pub(super) backward: bool,
}

impl Writers {
    pub(super) const NONE: Writers = Writers { first: Number::MAX, last: Number::MIN, backward: false };

    pub(super) fn add(&mut self, number: Number, backward: bool) {
        self.first = self.first.min(number);
        self.last = self.last.max(number);
        self.backward |= backward;
    }
}

/// Transactions whose commands on one row look the same to every scan that does not have the row in its result.
struct Form {
    outcomes: SmallVec<[RowOutcome; 1]>,
    members: Vec<u32>,
    writers: Smallest,
    readers: Largest,
}

/// A written row that matters to a scan.
enum Met<'a> {
    /// The row is in the scan's result.
    InResult(u32),
    /// Writers of these may make it enter the result.
    MayEnter(&'a mut Form),
}

/// The written rows of a batch, ready to be held against scans.
pub(super) struct Scans<'a> {
    rows: &'a WrittenRows<'a>,
    catalog: &'a Catalog,
    /// Written rows by table and key.
    ordered: Vec<u32>,
    /// Transaction and command, row by row, ascending.
    writers: Vec<(u32, &'a Command)>,
    /// Where a row's part of `writers` begins; one more entry than rows.
    first: Vec<u32>,
    /// By row; made when a scan first meets the row outside its result.
    forms: Vec<Option<Vec<Form>>>,
    /// Columns by table.
    widths: FxHashMap<TableId, usize>,
    /// Tests so far.
    tests: usize,
}

impl<'a> Scans<'a> {
    pub(super) fn new(
        effects: &'a [Option<Effects>],
        rows: &'a WrittenRows<'a>,
        catalog: &'a Catalog,
    ) -> Scans<'a> {
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
        Scans { rows, catalog, ordered, writers, first, forms, widths: FxHashMap::default(), tests: 0 }
    }

    /// Adds the edges of a scan by a transaction of this batch. Those to rows in its result count as reads in `uses`.
    pub(super) fn add(&mut self, scan: &Scan, number: Number, uses: &mut [RowUse], edges: &mut Edges) {
        let found = self.visit(scan, |met| match met {
            Met::InResult(row) => {
                let writer = uses[row as usize].read(scan.columns, number);
                edges.lower_min_out(number, writer);
            }
            Met::MayEnter(form) => {
                form.readers.add(number);
                edges.lower_min_out(number, form.writers.without(number));
            }
        });
        if !found {
            edges.reject(number);
        }
    }

    /// Adds the edges of a scan by a transaction of the batch before to those of this one; false if there is no end to
    /// the tests.
    #[must_use]
    pub(super) fn observe(&mut self, scan: &Scan, number: Number, uses: &mut [RowUse]) -> bool {
        self.visit(scan, |met| match met {
            Met::InResult(row) => _ = uses[row as usize].read(scan.columns, number),
            Met::MayEnter(form) => form.readers.add(number),
        })
    }

    /// Adds the edges of a scan by a transaction of the next batch; the rows here are those of `previous`, `writers` by
    /// row.
    pub(super) fn add_unseen(
        &mut self,
        scan: &Scan,
        number: Number,
        previous: &Previous,
        writers: &[ColumnClasses<Writers>],
        edges: &mut Edges,
    ) {
        let found = self.visit(scan, |met| match met {
            Met::InResult(row) => {
                let unseen = writers[row as usize].values_in(scan.columns);
                unseen.for_each(|unseen| edges.add_unseen(number, unseen));
            }
            Met::MayEnter(form) => {
                for member in &form.members {
                    let mut unseen = Writers::NONE;
                    unseen.add(previous.numbers[*member as usize], previous.backward[*member as usize]);
                    edges.add_unseen(number, unseen);
                }
            }
        });
        if !found {
            edges.reject(number);
        }
    }

    /// Adds the edges into the members of forms that scans met. A writer is in one form per row, so this is linear in
    /// the commands.
    pub(super) fn raise_max_in(&self, edges: &mut Edges) {
        for form in self.forms.iter().flatten().flatten() {
            for member in &form.members {
                let member = *member as Number;
                edges.raise_max_in(member, form.readers.without(member));
            }
        }
    }

    /// Holds a scan against the written rows of its interval; false if there were too many tests before it.
    fn visit(&mut self, scan: &Scan, mut visit: impl FnMut(Met<'_>)) -> bool {
        if self.tests >= TESTS_MAX {
            return false;
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
        true
    }

    /// Positions in `ordered` of the written rows that the scan's interval holds.
    fn interval(&self, scan: &Scan) -> std::ops::Range<usize> {
        let rows = self.rows;
        let position = |before: &dyn Fn(&Key) -> bool| {
            self.ordered.partition_point(|number| {
                let row = rows.row(*number);
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

    fn forms_of(&mut self, row: u32) -> &mut [Form] {
        if self.forms[row as usize].is_none() {
            let forms = self.make_forms(row);
            self.forms[row as usize] = Some(forms);
        }
        self.forms[row as usize].as_deref_mut().unwrap_or_default()
    }

    /// Groups the writers of a row. Updates of which no value is known are told apart by their columns alone, so the
    /// many increments of a hot row are one form.
    fn make_forms(&mut self, row: u32) -> Vec<Form> {
        let id = self.rows.row(row);
        let catalog = self.catalog;
        let width = *self.widths.entry(id.table).or_insert_with(|| width(catalog, id.table));
        let mut unknown: FxHashMap<ColumnSet, usize> = FxHashMap::default();
        let mut forms: Vec<Form> = Vec::new();
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
                let (writers, readers) = (Smallest::NONE, Largest::NONE);
                forms.push(Form { outcomes, members: Vec::new(), writers, readers });
            }
            forms[position].members.push(writer);
            forms[position].writers.add(writer as Number);
        }
        forms
    }
}
