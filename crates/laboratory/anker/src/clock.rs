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
    /// How many transactions look at each time.
    transactions: BTreeMap<u64, u32>,
    /// How many questions do.
    questions: BTreeMap<u64, u32>,
}

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// Somebody who may write, and is validated then.
    Transaction,
    Question,
}

/// Somebody who looks at the state of one time, until this is dropped.
#[derive(Debug)]
pub(crate) struct Active<'c> {
    clock: &'c Clock,
    who: Looks,
    pub(crate) at: u64,
    pub(crate) rows: RowCounts,
}

impl Clock {
    /// Somebody looks at the newest state.
    pub(crate) fn begin(&self, who: Looks) -> Active<'_> {
        let mut state = self.0.lock();
        let (at, rows) = (state.now, state.rows);
        *state.active(who).entry(at).or_default() += 1;
        Active { clock: self, who, at, rows }
    }

    /// The newest time, and the rows then.
    pub(crate) fn now(&self) -> (u64, RowCounts) {
        let state = self.0.lock();
        (state.now, state.rows)
    }

    /// When the oldest began who still looks; now, if nobody does.
    pub(crate) fn oldest(&self) -> u64 {
        let state = self.0.lock();
        let questions = state.questions.first_key_value().map_or(state.now, |(at, _)| *at);
        questions.min(state.oldest_transaction())
    }

    /// A commit is complete: whoever begins from here on sees it. Gives the oldest time that a transaction looks at.
    pub(crate) fn publish(&self, now: u64, rows: RowCounts) -> u64 {
        let mut state = self.0.lock();
        assert!(now >= state.now, "commits are published one after the other");
        (state.now, state.rows) = (now, rows);
        state.oldest_transaction()
    }
}

impl State {
    fn oldest_transaction(&self) -> u64 {
        self.transactions.first_key_value().map_or(self.now, |(at, _)| *at)
    }

    fn active(&mut self, who: Looks) -> &mut BTreeMap<u64, u32> {
        match who {
            Looks::Transaction => &mut self.transactions,
            Looks::Question => &mut self.questions,
        }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        let mut state = self.clock.0.lock();
        let active = state.active(self.who);
        if let Some(count) = active.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                active.remove(&self.at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_kept_for_everybody_and_commits_for_transactions() {
        let (clock, rows) = (Clock::default(), RowCounts::default());
        let question = clock.begin(Looks::Question);
        assert_eq!(clock.publish(1, rows), 1);
        let transaction = clock.begin(Looks::Transaction);
        assert_eq!((clock.publish(2, rows), clock.oldest()), (1, 0));
        drop(question);
        assert_eq!(clock.oldest(), 1);
        drop(transaction);
        assert_eq!((clock.oldest(), clock.now().0), (2, 2));
    }
}
