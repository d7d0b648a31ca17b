//! What a workload says must hold, whatever has committed: held against the state behind every run.

use crate::EngineBenchError;
use crate::chain::{breaks, rows, sum};
use engine::{Engine, ExecutedBlock, VerifiedBlock};
use types::Payload;
use workloads::{Condition, Follower, Invariant, Workload};

/// The invariants of a workload, and what the calls so far mean for them.
pub(super) struct Invariants {
    invariant: Invariant,
    /// By how much the sum must have changed.
    change: i128,
    conditions: Vec<Condition>,
    follower: Option<Box<dyn Follower>>,
}

impl Invariants {
    /// Nothing has been called yet.
    pub(super) fn of(workload: &dyn Workload) -> Invariants {
        let (invariant, conditions) = (workload.invariant(), workload.conditions());
        Invariants { invariant, change: 0, conditions, follower: workload.follower() }
    }

    /// A block of calls was executed.
    pub(super) fn executed(&mut self, block: &VerifiedBlock, executed: &ExecutedBlock) {
        for (judged, receipt) in block.transactions.iter().zip(&executed.receipts) {
            let Ok(transaction) = judged else { continue };
            let Payload::Call { procedure, arguments } = transaction.payload.as_ref() else { continue };
            self.change += (self.invariant.change)(procedure, arguments, &receipt.outcome);
            if let Some(follower) = &mut self.follower {
                follower.ended(block.header.height, procedure, arguments, &receipt.outcome);
            }
        }
    }

    /// Whether the state is what the calls have left.
    ///
    /// # Errors
    /// [`EngineBenchError::Invariant`]: what it is not.
    pub(super) fn check(&self, engine: &Engine) -> Result<(), EngineBenchError> {
        let broken = |what: String| Err(EngineBenchError::Invariant(what));
        let (expected, found) = (self.invariant.initial + self.change, sum(engine, &self.invariant));
        if found != Some(expected) {
            let found = found.map_or("none".to_string(), |found| found.to_string());
            return broken(format!("expected {expected} as the sum of its rows, found {found}"));
        }
        let breaks = breaks(engine, &self.conditions);
        if !breaks.is_empty() {
            return broken(format!("expected {}, found rows that say otherwise", breaks.join(" and ")));
        }
        let Some(follower) = &self.follower else { return Ok(()) };
        let Some(rows) = rows(engine, follower.query()) else {
            return broken(format!("expected rows of `{}`, found none", follower.query()));
        };
        follower.check(&rows).or_else(broken)
    }
}
