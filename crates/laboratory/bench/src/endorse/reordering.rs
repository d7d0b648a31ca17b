//! Fabric++'s micro-benchmarks of its reordering (Sharma et al., SIGMOD 2019, appendix B): batches made for it, without
//! signatures, a network or a state.

use super::network::Counts;
use concurrency::endorsed::{KeySets, reorder};
use serde::Deserialize;
use std::time::{Duration, Instant};

/// Reorderings that are timed, at least and at most.
const TIMES: std::ops::RangeInclusive<usize> = 5..=1_000;

/// What is wrong with a batch.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    /// B.1: half write a key each, half read one of these each; some of the readers stand in front, the others behind.
    Conflicts,
    /// B.2: groups on keys of their own, in which everybody reads what the one before wrote.
    Cycles,
}

impl Shape {
    /// What its steps are called in a record.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Shape::Conflicts => "readers_in_front",
            Shape::Cycles => "cycle_length",
        }
    }

    /// The steps that a batch may have.
    pub(super) fn steps(self, transactions: usize) -> std::ops::RangeInclusive<usize> {
        match self {
            Shape::Conflicts => 0..=transactions / 2,
            Shape::Cycles => 2..=transactions,
        }
    }

    /// The batch of so many transactions at a step of it.
    fn batch(self, transactions: usize, step: usize) -> Vec<KeySets> {
        match self {
            Shape::Conflicts => conflicts(transactions, step),
            Shape::Cycles => cycles(transactions, step),
        }
    }

    /// How a batch fares, reordered or as it comes; a reordering is repeated for a while, and timed.
    pub(super) fn run(self, transactions: usize, step: usize, reordered: bool, time: Duration) -> Counts {
        let batch = self.batch(transactions, step);
        let mut counts = Counts::nothing();
        let order = if reordered {
            let start = Instant::now();
            let mut reordering = reorder(&batch);
            while counts.cut_ms.len() < *TIMES.end()
                && (counts.cut_ms.len() < *TIMES.start() || start.elapsed() < time)
            {
                let start = Instant::now();
                reordering = reorder(&batch);
                counts.cut_ms.push(start.elapsed().as_secs_f64() * 1_000.0);
            }
            reordering.order
        } else {
            (0..transactions as u32).collect()
        };
        counts.blocks = 1;
        counts.ordered = order.len() as u64;
        counts.dropped_cycle = (transactions - order.len()) as u64;
        counts.committed = valid(&batch, &order);
        counts.conflicts = counts.ordered - counts.committed;
        counts
    }
}

/// The last readers stand in front, in the order in which they were behind the others.
fn conflicts(transactions: usize, readers_in_front: usize) -> Vec<KeySets> {
    let keys = (transactions / 2) as u32;
    let reader = |key: u32| KeySets { reads: vec![key], writes: vec![] };
    let behind = keys - (readers_in_front as u32).min(keys);
    let writers = (0..keys).map(|key| KeySets { reads: vec![], writes: vec![key] });
    (behind..keys).map(reader).chain(writers).chain((0..behind).map(reader)).collect()
}

/// In a group of four: r0 w0, r0 w1, r1 w2, r2 w0. What is left over at the end makes a shorter group.
fn cycles(transactions: usize, length: usize) -> Vec<KeySets> {
    let mut batch = Vec::with_capacity(transactions);
    while batch.len() < transactions {
        let first = batch.len() as u32;
        let last = (length.min(transactions - batch.len()) - 1) as u32;
        batch.extend((0..=last).map(|place| KeySets {
            reads: vec![first + place.saturating_sub(1)],
            writes: vec![if place == last { first } else { first + place }],
        }));
    }
    batch
}

/// Who of these is valid in this order: nobody in front of it that is valid wrote what it reads.
fn valid(batch: &[KeySets], order: &[u32]) -> u64 {
    let mut written = std::collections::BTreeSet::new();
    let mut valid = 0;
    for number in order {
        let KeySets { reads, writes } = &batch[*number as usize];
        if !reads.iter().any(|key| written.contains(key)) {
            written.extend(writes.iter().copied());
            valid += 1;
        }
    }
    valid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid_at(shape: Shape, step: usize, reordered: bool) -> u64 {
        shape.run(1_024, step, reordered, Duration::ZERO).committed
    }

    #[test]
    fn without_cycles_everybody_is_valid_once_readers_come_first() {
        for step in [0, 1, 100, 512] {
            assert_eq!(valid_at(Shape::Conflicts, step, false), 512 + step as u64);
            assert_eq!(valid_at(Shape::Conflicts, step, true), 1_024);
        }
    }

    /// The paper says that half are valid as they come; what reordering saves follows from its algorithm: each group
    /// loses one.
    #[test]
    fn every_cycle_costs_one_transaction() {
        for (length, reordered) in [(2, 512), (4, 768), (16, 960), (128, 1_016), (512, 1_022)] {
            assert_eq!(valid_at(Shape::Cycles, length, false), 512, "{length}");
            assert_eq!(valid_at(Shape::Cycles, length, true), reordered, "{length}");
        }
    }

    #[test]
    fn a_batch_has_as_many_transactions_as_are_asked_for() {
        for step in [2, 3, 1_000, 1_024] {
            assert_eq!(cycles(1_024, step).len(), 1_024);
        }
        let text = |sets: &KeySets| format!("r{:?} w{:?}", sets.reads, sets.writes);
        let four: Vec<String> = cycles(4, 4).iter().map(text).collect();
        assert_eq!(four, ["r[0] w[0]", "r[0] w[1]", "r[1] w[2]", "r[2] w[0]"]);
    }
}
