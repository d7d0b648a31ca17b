//! Harmony (HarmonyBC, section 3), on the snapshot of the previous batch.

mod decide;
mod edges;
mod scans;

use crate::optimistic::{self, Decision, Simulated};
use crate::{Batch, BatchResult, Protocol, ProtocolOptions, Snapshots, serial};
use std::collections::VecDeque;

/// All transactions of a batch run in parallel on one snapshot; rw edges alone decide who is accepted; the accepted
/// ones are placed so that no edge is violated, and write–write conflicts are a matter of order; the others run one
/// after the other at the end of the batch.
pub(crate) struct Harmony {
    serial_threshold_percent: u64,
    waiting: VecDeque<Batch>,
    /// The previous batch ran so much twice that the next one runs serially at once.
    crowded: bool,
}

impl Harmony {
    pub(crate) fn new(options: ProtocolOptions) -> Harmony {
        let serial_threshold_percent = options.serial_threshold_percent.into();
        Harmony { serial_threshold_percent, waiting: VecDeque::new(), crowded: false }
    }

    fn is_crowded(&self, result: &BatchResult) -> bool {
        let (again, all) = (result.statistics.reexecuted, result.outcomes.len() as u64);
        again > 0 && again * 100 >= self.serial_threshold_percent * all
    }
}

impl Protocol for Harmony {
    fn id(&self) -> &'static str {
        "harmony"
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Option<BatchResult> {
        let batch = self.waiting.pop_front()?;
        let snapshot = snapshots.newest();
        let serially = self.crowded && !batch.forget;
        let result = if serially {
            serial::run(&batch, snapshot.as_ref())
        } else {
            optimistic::run(&batch, snapshot.as_ref(), decide)
        };
        self.crowded = self.is_crowded(&result);
        Some(result)
    }
}

/// Rules 2 and 3 of `protocols.md`, section 2.
fn decide(batch: &Simulated<'_>) -> Decision {
    let edges = decide::edges(batch);
    let executed = |number: &u32| batch.effects[*number as usize].is_some();
    let (rejected, mut order): (Vec<u32>, Vec<u32>) =
        (0..batch.effects.len() as u32).filter(executed).partition(|number| edges.is_dangerous(*number));
    order.sort_unstable_by_key(|number| (edges.min_out(*number), *number));
    Decision { order, rejected }
}

#[cfg(test)]
mod tests;
