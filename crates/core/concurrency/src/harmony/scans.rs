//! Edges of scans. Who scans after there were too many tests is rejected without a look; that is always safe, and the
//! same on every node.

use super::decide::RowUse;
use super::edges::{Edges, Largest, Number};
use super::previous::Previous;
use crate::column_classes::ColumnClasses;
use crate::scanned_rows::{Met, ScannedRows, TooManyTests};
use crate::written_rows::WrittenRows;
use state::{Effects, Scan};
use types::Catalog;

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

/// The written rows of a batch, with the largest readers of what their writers may make of them.
pub(super) struct Scans<'a>(ScannedRows<'a, Largest>);

impl<'a> Scans<'a> {
    pub(super) fn new(
        effects: &'a [Option<Effects>],
        rows: &'a WrittenRows<'a>,
        catalog: &'a Catalog,
    ) -> Scans<'a> {
        Scans(ScannedRows::new(effects, rows, catalog))
    }

    /// Adds the edges of a scan by a transaction of this batch. Those to rows in its result count as reads in `uses`.
    pub(super) fn add(&mut self, scan: &Scan, number: Number, uses: &mut [RowUse], edges: &mut Edges) {
        let tested = self.0.meet(scan, |met| match met {
            Met::InResult(row) => {
                let writer = uses[row as usize].read(scan.columns, number);
                edges.lower_min_out(number, writer);
            }
            Met::MayEnter(form) => {
                form.value.add(number);
                let writers = form.members.iter().map(|member| *member as Number);
                if let Some(writer) = writers.into_iter().find(|writer| *writer != number) {
                    edges.lower_min_out(number, writer);
                }
            }
        });
        if let Err(TooManyTests) = tested {
            edges.reject(number);
        }
    }

    /// Adds the edges of a scan by a transaction of the batch before to those of this one.
    ///
    /// # Errors
    /// There is no end to the tests.
    pub(super) fn observe(
        &mut self,
        scan: &Scan,
        number: Number,
        uses: &mut [RowUse],
    ) -> Result<(), TooManyTests> {
        self.0.meet(scan, |met| match met {
            Met::InResult(row) => _ = uses[row as usize].read(scan.columns, number),
            Met::MayEnter(form) => form.value.add(number),
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
        let tested = self.0.meet(scan, |met| match met {
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
        if let Err(TooManyTests) = tested {
            edges.reject(number);
        }
    }

    /// Adds the edges into the members of forms that scans met.
    pub(super) fn raise_max_in(&self, edges: &mut Edges) {
        for form in self.0.forms() {
            for member in &form.members {
                let member = *member as Number;
                edges.raise_max_in(member, form.value.without(member));
            }
        }
    }
}
