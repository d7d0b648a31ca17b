//! Harmony (HarmonyBC, section 3).
//!
//! All transactions of a batch run in parallel on one snapshot; rw edges alone decide who is accepted; the accepted
//! ones are placed so that no edge is violated, and write–write conflicts are a matter of order; the others run one
//! after the other at the end of the batch, or go back to the caller.
//!
//! **Inter-block parallelism** (section 3.4): a batch is simulated while the one before it takes effect, on the state
//! that both of them found. Edges between the two batches make up for what it missed. A batch that must forget, or
//! that follows one that ran serially, starts afresh on the newest state.
//!
//! ```text
//!   poll 1:  simulate 1 ┐ commit 1 ──────────┐
//!   poll 2:             └ simulate 2 (on 0)  │ commit 2 (after 1, edges to 1) ─┐
//!   poll 3:                                  └ simulate 3 (on 1)               │ commit 3 …
//! ```

mod decide;
mod edges;
mod previous;
mod scans;

use crate::optimistic::{self, Committed, Decision, Simulated, Simulation};
use crate::{Batch, BatchResult, OnConflict, Protocol, ProtocolOptions, Snapshots, serial};
use edges::Number;
use previous::Previous;
use state::{Snapshot, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) struct Harmony {
    options: ProtocolOptions,
    waiting: VecDeque<Batch>,
    /// The first waiting batch, if it has been simulated already.
    ahead: Option<Simulation>,
    /// What the last batch did, and the state that it found; `None`: the next one starts afresh.
    previous: Option<(Previous, Arc<dyn Snapshot>)>,
    /// The previous batch ran so much twice that the next one runs serially at once.
    crowded: bool,
}

impl Harmony {
    pub(crate) fn new(options: ProtocolOptions) -> Harmony {
        Harmony { options, waiting: VecDeque::new(), ahead: None, previous: None, crowded: false }
    }

    fn is_crowded(&self, result: &BatchResult) -> bool {
        let (again, all) = (result.statistics.reexecuted, result.outcomes.len() as u64);
        let threshold = u64::from(self.options.serial_threshold_percent);
        self.options.on_conflict == OnConflict::Reexecute && again > 0 && again * 100 >= threshold * all
    }

    fn simulate(&self, batch: &Batch, snapshot: &dyn Snapshot) -> Result<Simulation, StoreError> {
        optimistic::simulate(batch, snapshot, self.options.granularity)
    }

    /// Commits the batch while the next one is simulated on the state that it found.
    fn run(&mut self, batch: &Batch, newest: Arc<dyn Snapshot>) -> Result<BatchResult, StoreError> {
        let previous = self.previous.take();
        let simulation = match self.ahead.take() {
            Some(simulation) => simulation,
            None => {
                let found = previous.as_ref().map_or(&newest, |(_, found)| found);
                self.simulate(batch, found.as_ref())?
            }
        };
        let previous = previous.map(|(previous, _)| previous);
        let next = self.waiting.front().filter(|next| self.options.inter_block && !next.forget);
        let (committed, ahead) = rayon::join(
            || {
                let committed = commit(batch, simulation, newest.as_ref(), previous.as_ref(), &self.options);
                optimistic::free(previous.map_or(Vec::new(), |previous| previous.effects));
                committed
            },
            || next.map(|next| self.simulate(next, newest.as_ref())).transpose(),
        );
        self.ahead = ahead?;
        let (committed, backward) = committed?;
        let Committed { result, effects } = committed;
        if self.options.inter_block {
            self.previous = Some((Previous::new(effects, &result, backward), newest));
        } else {
            optimistic::free(effects);
        }
        Ok(result)
    }
}

impl Protocol for Harmony {
    fn id(&self) -> &'static str {
        "harmony"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn lookahead(&self) -> usize {
        if self.options.inter_block { 2 } else { 1 }
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
        let newest = snapshots.newest();
        if batch.forget {
            (self.previous, self.crowded) = (None, false);
        }
        let result = if self.crowded {
            (self.previous, self.ahead) = (None, None);
            serial::run(&batch, newest.as_ref())?
        } else {
            self.run(&batch, newest)?
        };
        self.crowded = !self.crowded && self.is_crowded(&result);
        // They were offered when nobody knew what this one would spend.
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.height == batch.height) {
            waiting.steps_left = waiting.steps_left.saturating_sub(result.steps);
        }
        Ok(Some(result))
    }
}

/// Decides and places a simulated batch. Also tells of every transaction whether it must come before a smaller number.
fn commit(
    batch: &Batch,
    simulation: Simulation,
    newest: &dyn Snapshot,
    previous: Option<&Previous>,
    options: &ProtocolOptions,
) -> Result<(Committed, Vec<bool>), StoreError> {
    let mut backward = Vec::new();
    let committed = optimistic::commit(batch, simulation, newest, options, |simulated| {
        let (decision, found) = decide(simulated, previous, options.reordering);
        backward = found;
        decision
    })?;
    Ok((committed, backward))
}

/// Rules 2 and 3 of `protocols.md`, section 2; with a previous batch also what it says of inter-block parallelism.
fn decide(batch: &Simulated<'_>, previous: Option<&Previous>, reordering: bool) -> (Decision, Vec<bool>) {
    let edges = decide::edges(batch, previous, reordering);
    let count = batch.effects.len() as u32;
    let executed = |number: &u32| batch.effects[*number as usize].is_some();
    let (rejected, mut order): (Vec<u32>, Vec<u32>) =
        (0..count).filter(executed).partition(|number| edges.is_dangerous(*number));
    order.sort_unstable_by_key(|number| (edges.min_out(*number), *number));
    let backward = (0..count).map(|number| edges.min_out(number) < number as Number).collect();
    (Decision { order, rejected }, backward)
}

#[cfg(test)]
pub(crate) mod tests;
