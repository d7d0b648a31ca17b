//! Which parts touch a row: so that a part is held against the few that it can meet, and not against all.

use super::LedgerPosition;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use state::{Effects, Footprint, RowId};
use std::collections::BTreeSet;

/// Parts by the rows that they touch.
#[derive(Clone, Default)]
pub(super) struct Touching {
    rows: FxHashMap<RowId, SmallVec<[LedgerPosition; 2]>>,
    /// Those that touch rows which are not known one by one: intervals.
    broad: BTreeSet<LedgerPosition>,
}

/// The rows that a part touches.
pub(super) struct Touched {
    rows: Vec<RowId>,
    is_broad: bool,
}

impl Touched {
    /// By a simulation.
    pub(super) fn by(effects: &Effects) -> Touched {
        let reads = effects.reads.iter().map(|read| read.row.clone());
        let rows = reads.chain(effects.commands.iter().map(|command| command.row.clone())).collect();
        Touched { rows, is_broad: !effects.scans.is_empty() }
    }

    /// By any execution.
    pub(super) fn within(footprint: &Footprint) -> Touched {
        let regions = || footprint.reads.iter().chain(&footprint.writes);
        let row = |region: &state::Region| Some(RowId { table: region.table, key: region.key()?.clone() });
        let rows: Vec<RowId> = regions().filter_map(row).collect();
        Touched { is_broad: rows.len() < regions().count(), rows }
    }

    /// Nobody knows.
    pub(super) fn anything() -> Touched {
        Touched { rows: Vec::new(), is_broad: true }
    }
}

impl Touching {
    pub(super) fn insert(&mut self, position: LedgerPosition, touched: &Touched) {
        if touched.is_broad {
            self.broad.insert(position);
        }
        for row in &touched.rows {
            self.rows.entry(row.clone()).or_default().push(position);
        }
    }

    pub(super) fn remove(&mut self, position: LedgerPosition, touched: &Touched) {
        self.broad.remove(&position);
        for row in &touched.rows {
            if let Some(positions) = self.rows.get_mut(row) {
                positions.retain(|known| *known != position);
                if positions.is_empty() {
                    self.rows.remove(row);
                }
            }
        }
    }

    /// Those that may meet a part which touches this; `None`: all may.
    pub(super) fn may_meet(&self, touched: &Touched) -> Option<BTreeSet<LedgerPosition>> {
        if touched.is_broad {
            return None;
        }
        let found = touched.rows.iter().filter_map(|row| self.rows.get(row)).flatten();
        Some(found.chain(&self.broad).copied().collect())
    }
}
