//! Edges of scans: each is held against the written rows of its interval, in key order.

use super::decide::RowUse;
use super::edges::{Edges, Largest, Number, Smallest};
use crate::conflict::{RowOutcome, row_outcomes, width};
use crate::optimistic::Simulated;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use state::Scan;
use std::ops::Bound;
use types::{ColumnSet, Key, TableId};

/// Transactions whose commands on one row look the same to every scan that does not have the row in its result.
struct Form {
    outcomes: SmallVec<[RowOutcome; 1]>,
    members: Vec<u32>,
    writers: Smallest,
    readers: Largest,
}

struct Scans<'a> {
    batch: &'a Simulated<'a>,
    /// Written rows by table and key.
    ordered: Vec<u32>,
    /// By row, its writers, ascending; made when first needed.
    writers: Vec<Vec<u32>>,
    /// By row; made when a scan first meets the row outside its result.
    forms: Vec<Option<Vec<Form>>>,
    /// Columns by table.
    widths: FxHashMap<TableId, usize>,
}

/// Adds the edges of all scans. Those to rows in a result count as reads in `uses`.
pub(super) fn add_edges(batch: &Simulated<'_>, uses: &mut [RowUse], edges: &mut Edges) {
    let mut scans = Scans::new(batch);
    for (number, effects) in batch.effects.iter().enumerate() {
        for scan in effects.iter().flat_map(|effects| &effects.scans) {
            scans.add(scan, number as Number, uses, edges);
        }
    }
    // A writer is in one form per row, so this is linear in the commands.
    for form in scans.forms.iter().flatten().flatten() {
        for member in &form.members {
            let member = *member as Number;
            edges.raise_max_in(member, form.readers.without(member));
        }
    }
}

impl<'a> Scans<'a> {
    fn new(batch: &'a Simulated<'a>) -> Scans<'a> {
        let rows = batch.rows;
        let mut ordered: Vec<u32> = (0..rows.len() as u32).collect();
        ordered.sort_unstable_by_key(|number| rows.row(*number));
        let mut writers: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
        for transaction in 0..batch.effects.len() {
            for row in rows.of_transaction(transaction) {
                let writers = &mut writers[*row as usize];
                if writers.last() != Some(&(transaction as u32)) {
                    writers.push(transaction as u32);
                }
            }
        }
        let forms = (0..rows.len()).map(|_| None).collect();
        Scans { batch, ordered, writers, forms, widths: FxHashMap::default() }
    }

    fn add(&mut self, scan: &Scan, number: Number, uses: &mut [RowUse], edges: &mut Edges) {
        let rows = self.batch.rows;
        for position in self.interval(scan) {
            let row = self.ordered[position];
            if scan.result.binary_search(&rows.row(row).key).is_ok() {
                let writer = uses[row as usize].read(scan.columns, number);
                edges.lower_min_out(number, writer);
                continue;
            }
            for form in self.forms_of(row) {
                if form.outcomes.iter().any(|outcome| outcome.may_enter(scan)) {
                    form.readers.add(number);
                    edges.lower_min_out(number, form.writers.without(number));
                }
            }
        }
    }

    /// Positions in `ordered` of the written rows that the scan's interval holds.
    fn interval(&self, scan: &Scan) -> std::ops::Range<usize> {
        let rows = self.batch.rows;
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
        let id = self.batch.rows.row(row);
        let catalog = self.batch.snapshot.catalog();
        let width = *self.widths.entry(id.table).or_insert_with(|| width(catalog, id.table));
        let mut unknown: FxHashMap<ColumnSet, usize> = FxHashMap::default();
        let mut forms: Vec<Form> = Vec::new();
        for writer in &self.writers[row as usize] {
            let Some(effects) = &self.batch.effects[*writer as usize] else { continue };
            let named = self.batch.rows.of_transaction(*writer as usize);
            let commands = effects.commands.iter().zip(named).filter(|(_, named)| **named == row);
            let outcomes = row_outcomes(commands.map(|(command, _)| command), width);
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
            forms[position].members.push(*writer);
            forms[position].writers.add(*writer as Number);
        }
        forms
    }
}
