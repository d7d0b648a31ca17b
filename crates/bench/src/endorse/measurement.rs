use super::network::Counts;
use super::point::Point;
use crate::LatencyMs;
use crate::median::{median, range};
use crate::report::{Metric, Unit};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a point came to, as `--json` writes it.
#[derive(Clone, Debug, Serialize)]
pub struct EndorseRecord {
    /// Id of the experiment.
    pub experiment: String,
    /// What endorses, orders and validates.
    pub system: String,
    /// What distinguishes the point.
    pub parameters: BTreeMap<String, f64>,
    /// Committed transactions per second, median over the rounds.
    pub committed_tps: f64,
    /// Transactions per second that went through a block, whatever became of them; median over the rounds.
    pub nominal_tps: f64,
    /// Share of the endorsed transactions that were given up because of a conflict: by the orderer or by validation.
    pub conflict_abort_rate: f64,
    /// From arrival to the end of the block, of committed transactions; null where none was timed.
    pub latency_ms: Option<LatencyMs>,
    /// Share of the endorsed transactions that the orderer dropped because what they read is old.
    pub dropped_stale_rate: f64,
    /// Share that it dropped because they close a cycle.
    pub dropped_cycle_rate: f64,
    /// Share that ran again after ordering.
    pub ran_again_rate: f64,
    /// Median milliseconds of cutting a block: dropping and reordering.
    pub cut_ms: Option<f64>,
}

/// A record with what only the reports show.
#[derive(Clone, Debug)]
pub struct EndorseMeasurement {
    /// The record.
    pub record: EndorseRecord,
    /// Least and most committed transactions per second over the rounds.
    pub committed_tps_range: Option<(f64, f64)>,
    pub(super) point: Point,
}

pub(super) const METRICS: [Metric<EndorseMeasurement>; 9] = [
    Metric::new("committed_tps", "Committed transactions per second", Unit::Rate, |m| {
        Some(m.record.committed_tps)
    }),
    Metric::new("nominal_tps", "Transactions in blocks per second", Unit::Rate, |m| {
        Some(m.record.nominal_tps)
    }),
    Metric::new("conflict_abort_rate", "Given up because of conflicts", Unit::Share, |m| {
        Some(m.record.conflict_abort_rate)
    }),
    Metric::new("latency_p50", "Latency, median", Unit::Milliseconds, |m| {
        m.record.latency_ms.map(|latency| latency.p50)
    }),
    Metric::new("latency_p99", "Latency, 99th percentile", Unit::Milliseconds, |m| {
        m.record.latency_ms.map(|latency| latency.p99)
    }),
    Metric::new("dropped_stale_rate", "Dropped by the orderer as stale", Unit::Share, |m| {
        Some(m.record.dropped_stale_rate)
    }),
    Metric::new("dropped_cycle_rate", "Dropped by the orderer to break cycles", Unit::Share, |m| {
        Some(m.record.dropped_cycle_rate)
    }),
    Metric::new("ran_again_rate", "Ran again after ordering", Unit::Share, |m| Some(m.record.ran_again_rate)),
    Metric::new("cut_ms", "Cutting a block, median", Unit::Milliseconds, |m| m.record.cut_ms),
];

/// The rounds of a point so far.
pub(super) struct Rounds {
    committed_tps: Vec<f64>,
    nominal_tps: Vec<f64>,
    all: Counts,
}

impl Rounds {
    pub(super) fn none() -> Rounds {
        Rounds { committed_tps: Vec::new(), nominal_tps: Vec::new(), all: Counts::nothing() }
    }

    pub(super) fn add(&mut self, round: &Counts) {
        let seconds = round.seconds.max(1e-9);
        self.committed_tps.push(round.committed as f64 / seconds);
        self.nominal_tps.push(round.ordered as f64 / seconds);
        self.all.add(round);
    }

    /// Throughput is the median over the rounds; shares and latencies are of all of them together.
    pub(super) fn measurement(&self, experiment: &str, point: &Point) -> EndorseMeasurement {
        let Counts { dropped_stale, dropped_cycle, ordered, conflicts, ran_again, .. } = self.all;
        let endorsed = ordered + dropped_stale + dropped_cycle;
        let share = |count: u64| count as f64 / endorsed.max(1) as f64;
        let latency = &self.all.latency;
        let record = EndorseRecord {
            experiment: experiment.to_string(),
            system: point.system.name.to_string(),
            parameters: point.parameters(),
            committed_tps: median(&self.committed_tps).unwrap_or_default(),
            nominal_tps: median(&self.nominal_tps).unwrap_or_default(),
            conflict_abort_rate: share(conflicts + dropped_stale + dropped_cycle),
            latency_ms: (!latency.is_empty()).then(|| LatencyMs::of(latency)),
            dropped_stale_rate: share(dropped_stale),
            dropped_cycle_rate: share(dropped_cycle),
            ran_again_rate: share(ran_again),
            cut_ms: median(&self.all.cut_ms),
        };
        EndorseMeasurement { record, committed_tps_range: range(&self.committed_tps), point: point.clone() }
    }
}

impl EndorseRecord {
    /// In a line, for people.
    pub(super) fn summary(&self) -> String {
        let latency = self.latency_ms.map_or_else(String::new, |latency| {
            format!(", p50 {:.0} ms, p99 {:.0} ms", latency.p50, latency.p99)
        });
        format!(
            "{:.0} committed tps of {:.0} ordered, {:.1} % given up ({:.1} % old, {:.1} % cycles, before ordering), {:.1} % \
             ran again{latency}",
            self.committed_tps,
            self.nominal_tps,
            100.0 * self.conflict_abort_rate,
            100.0 * self.dropped_stale_rate,
            100.0 * self.dropped_cycle_rate,
            100.0 * self.ran_again_rate,
        )
    }
}
