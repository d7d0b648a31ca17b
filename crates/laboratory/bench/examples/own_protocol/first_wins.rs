//! A protocol in one file, as `docs/laboratory.md` adds one: of each batch, what no earlier transaction conflicts with
//! commits, and the rest is given up.

use concurrency::{Batch, BatchResult, BatchStatistics, History, Protocol, Snapshots, TransactionOutcome};
use rayon::prelude::*;
use state::{Effects, Overlay, RowChange, RowId, StoreError};
use std::collections::{BTreeSet, VecDeque};

/// The first of a batch to touch a row wins it.
#[derive(Default)]
pub struct FirstWins {
    waiting: VecDeque<Batch>,
}

impl Protocol for FirstWins {
    fn id(&self) -> &'static str {
        "first-wins"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        let snapshot = snapshots.newest();
        let effects: Vec<Effects> = batch
            .transactions
            .par_iter()
            .map(|transaction| transaction.simulate(snapshot.as_ref()))
            .collect::<Result<_, StoreError>>()?;
        let mut state = Overlay::new(snapshot.as_ref());
        let mut written = BTreeSet::new();
        let (mut outcomes, mut history, mut steps) = (Vec::new(), History::default(), 0);
        let executions = effects.len() as u64;
        for (number, effects) in effects.into_iter().enumerate() {
            let outcome = if steps >= batch.steps_left {
                TransactionOutcome::OverBudget
            } else {
                steps += effects.steps;
                commit(effects, &mut state, &mut written)?
            };
            if matches!(outcome, TransactionOutcome::Committed(_) | TransactionOutcome::Aborted(_)) {
                history.placed.push(number as u32);
            }
            outcomes.push(outcome);
        }
        let mut changes = Vec::new();
        for change in state.into_changes() {
            if change.value != snapshot.get(change.row.table, &change.row.key)? {
                changes.push(change);
            }
        }
        let statistics = BatchStatistics { executions, ..BatchStatistics::default() };
        let (height, number) = (batch.height, batch.number);
        Ok(Some(BatchResult { height, number, outcomes, changes, history, steps, statistics }))
    }
}

/// Lets a transaction take effect if everything that it looked at is still as it was in the snapshot.
fn commit(
    effects: Effects,
    state: &mut Overlay<'_>,
    written: &mut BTreeSet<RowId>,
) -> Result<TransactionOutcome, StoreError> {
    let read = effects.reads.iter().any(|read| written.contains(&read.row));
    let used = effects.commands.iter().any(|command| written.contains(&command.row));
    let scanned = effects
        .scans
        .iter()
        .any(|scan| written.iter().any(|row| row.table == scan.table && scan.range.contains(&row.key)));
    if read || used || scanned {
        return Ok(TransactionOutcome::Conflict);
    }
    let results = match effects.result {
        Ok(results) => results,
        Err(error) => return Ok(TransactionOutcome::Aborted(error)),
    };
    for command in effects.commands {
        // On the rows that the simulation met no command fails.
        match command.function.apply(state.current(&command.row)?.as_ref()) {
            Ok(RowChange::Put(row)) => state.set(command.row.clone(), Some(row))?,
            Ok(RowChange::Delete) => state.set(command.row.clone(), None)?,
            Ok(RowChange::Unmatched) => {}
            Err(error) => unreachable!("a command that succeeded fails on the same row: {error:?}"),
        }
        written.insert(command.row);
    }
    Ok(TransactionOutcome::Committed(results))
}
