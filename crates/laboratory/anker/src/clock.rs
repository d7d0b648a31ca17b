//! Time, counted in commits: how many rows each table has, and who still looks at which time.

use crate::table::TABLES_MAX;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// How many rows each table has at a time.
pub(crate) type RowCounts = [u32; TABLES_MAX];

/// The clock of an engine.
#[derive(Debug, Default)]
pub(crate) struct Clock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    now: u64,
    rows: RowCounts,
    /// How many look at each time.
    active: BTreeMap<u64, u32>,
}

/// Somebody who looks at the state of one time, until this is dropped.
#[derive(Debug)]
pub(crate) struct Active<'c> {
    clock: &'c Clock,
    pub(crate) at: u64,
    pub(crate) rows: RowCounts,
}

impl Clock {
    /// Somebody looks at the newest state.
    pub(crate) fn begin(&self) -> Active<'_> {
        let mut state = self.0.lock();
        let (at, rows) = (state.now, state.rows);
        *state.active.entry(at).or_default() += 1;
        Active { clock: self, at, rows }
    }

    /// The newest time, and the rows then.
    pub(crate) fn now(&self) -> (u64, RowCounts) {
        let state = self.0.lock();
        (state.now, state.rows)
    }

    /// When the oldest began who still looks; now, if nobody does.
    pub(crate) fn oldest(&self) -> u64 {
        self.0.lock().oldest()
    }

    /// A commit is complete: whoever begins from here on sees it. Gives the oldest time that somebody looks at.
    pub(crate) fn publish(&self, now: u64, rows: RowCounts) -> u64 {
        let mut state = self.0.lock();
        assert!(now >= state.now, "commits are published one after the other");
        (state.now, state.rows) = (now, rows);
        state.oldest()
    }
}

impl State {
    fn oldest(&self) -> u64 {
        self.active.first_key_value().map_or(self.now, |(at, _)| *at)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        let mut state = self.clock.0.lock();
        if let Some(count) = state.active.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                state.active.remove(&self.at);
            }
        }
    }
}
