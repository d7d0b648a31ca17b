//! Is there any serial order? By trying them all.

use crate::driver::Recorded;
use concurrency::TransactionOutcome;
use state::{AfterImage, PlainState, RowChange, Simulate};
use std::collections::HashSet;

/// Whether some order of the transactions of each batch, one after the other, gives every outcome (with the values
/// that clients saw) and the state after the batch.
pub fn exists(run: &Recorded) -> bool {
    let mut before = run.initial.clone();
    run.batches.iter().all(|(transactions, result)| {
        let mut after = before.clone();
        result.changes.iter().for_each(|change| after.apply(change));
        let transactions: Vec<&dyn Simulate> = transactions.iter().map(|one| one.unrecorded()).collect();
        let mut search =
            Search { transactions, outcomes: &result.outcomes, goal: &after, seen: HashSet::new() };
        let found = search.from(0, &before);
        before = after;
        found
    })
}

/// Whether some order of all transactions that were not given up, of whichever batch, gives every outcome and the
/// final state.
pub fn exists_across_batches(run: &Recorded) -> bool {
    let all = run.batches.iter().flat_map(|(transactions, result)| transactions.iter().zip(&result.outcomes));
    let (transactions, outcomes): (Vec<&dyn Simulate>, Vec<TransactionOutcome>) = all
        .filter(|(_, outcome)| **outcome != TransactionOutcome::Conflict)
        .map(|(transaction, outcome)| (transaction.unrecorded(), outcome.clone()))
        .unzip();
    let mut search = Search { transactions, outcomes: &outcomes, goal: &run.state, seen: HashSet::new() };
    search.from(0, &run.initial)
}

struct Search<'a> {
    transactions: Vec<&'a dyn Simulate>,
    outcomes: &'a [TransactionOutcome],
    goal: &'a PlainState,
    seen: HashSet<(u32, String)>,
}

impl Search<'_> {
    fn from(&mut self, done: u32, state: &PlainState) -> bool {
        let all = self.transactions.len();
        if done.count_ones() as usize == all {
            return same(state, self.goal);
        }
        if !self.seen.insert((done, format!("{:?}", state.tables))) {
            return false;
        }
        (0..all).filter(|next| done >> next & 1 == 0).any(|next| {
            let mut state = state.clone();
            apply(self.transactions[next], &mut state) == self.outcomes[next]
                && self.from(done | 1 << next, &state)
        })
    }
}

/// Runs a transaction on the state, by itself.
pub fn apply(transaction: &dyn Simulate, state: &mut PlainState) -> TransactionOutcome {
    let effects = transaction.simulate(state).unwrap();
    for command in &effects.commands {
        let value = match command.function.apply(state.get(command.row.table, &command.row.key).as_ref()) {
            Ok(RowChange::Unmatched) => continue,
            Ok(RowChange::Put(row)) => Some(row),
            Ok(RowChange::Delete) => None,
            Err(error) => panic!("what succeeded in simulation succeeds on the same state: {error}"),
        };
        state.apply(&AfterImage { row: command.row.clone(), value });
    }
    match effects.result {
        Ok(results) => TransactionOutcome::Committed(results),
        Err(error) => TransactionOutcome::Aborted(error),
    }
}

/// Whether the rows are the same; a table without rows is no difference.
pub fn same(a: &PlainState, b: &PlainState) -> bool {
    let rows = |state: &PlainState| -> Vec<_> {
        let tables = state.tables.iter();
        tables
            .flat_map(|(table, rows)| rows.iter().map(|(key, row)| (*table, key.clone(), row.clone())))
            .collect()
    };
    rows(a) == rows(b)
}
