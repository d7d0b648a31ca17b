use super::network::Counts;
use super::point::{Measured, Point};
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
    /// Committed transactions per second, median over the rounds; null where a batch is only reordered.
    pub committed_tps: Option<f64>,
    /// Transactions per second that went through a block, whatever became of them; median over the rounds.
    pub nominal_tps: Option<f64>,
    /// Share of the endorsed transactions that were given up because of a conflict: by the orderer or by validation.
    pub conflict_abort_rate: f64,
    /// From arrival to the end of the block, of committed transactions; of a committer alone, from when it takes a block
    /// up until that is durable; null where nothing was timed.
    pub latency_ms: Option<LatencyMs>,
    /// Share of the endorsed transactions that the orderer dropped because what they read is old.
    pub dropped_stale_rate: f64,
    /// Share that it dropped because they close a cycle.
    pub dropped_cycle_rate: f64,
    /// Share that ran again after ordering.
    pub ran_again_rate: f64,
    /// Median milliseconds of cutting a block: dropping and reordering.
    pub cut_ms: Option<f64>,
    /// One minus the nominal throughput divided by that of the experiment's baseline at the same parameters.
    pub overhead: Option<f64>,
    /// Of a batch that is only reordered: transactions that are valid in the order that comes out.
    pub valid: Option<f64>,
    /// What was measured: `network`, `committer` or `reordering`.
    pub kind: &'static str,
    /// Name of the committer where an experiment has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
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

pub(super) const METRICS: [Metric<EndorseMeasurement>; 11] = [
    Metric::new("committed_tps", "Committed transactions per second", Unit::Rate, |m| m.record.committed_tps),
    Metric::new("nominal_tps", "Transactions in blocks per second", Unit::Rate, |m| m.record.nominal_tps),
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
    Metric::new("overhead", "Throughput lost to the baseline", Unit::Share, |m| m.record.overhead),
    Metric::new("valid", "Valid transactions of a batch", Unit::Whole, |m| m.record.valid),
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
        if round.seconds > 0.0 {
            self.committed_tps.push(round.committed as f64 / round.seconds);
            self.nominal_tps.push(round.ordered as f64 / round.seconds);
        }
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
            committed_tps: median(&self.committed_tps),
            nominal_tps: median(&self.nominal_tps),
            conflict_abort_rate: share(conflicts + dropped_stale + dropped_cycle),
            latency_ms: (!latency.is_empty()).then(|| LatencyMs::of(latency)),
            dropped_stale_rate: share(dropped_stale),
            dropped_cycle_rate: share(dropped_cycle),
            ran_again_rate: share(ran_again),
            cut_ms: median(&self.all.cut_ms),
            overhead: None,
            valid: matches!(point.measured, Measured::Reordering(..))
                .then(|| self.all.committed as f64 / self.all.blocks.max(1) as f64),
            kind: match point.measured {
                Measured::Network => "network",
                Measured::Committer(_) => "committer",
                Measured::Reordering(..) => "reordering",
            },
            variant: (!point.variant().is_empty()).then(|| point.variant().to_string()),
        };
        EndorseMeasurement { record, committed_tps_range: range(&self.committed_tps), point: point.clone() }
    }
}

/// Compares every record of an experiment with the one of this system at the same parameters.
pub(super) fn compare_with(baseline: &str, records: &mut [&mut EndorseRecord]) {
    let of_baseline = |record: &&mut EndorseRecord| record.system == baseline;
    let bases: Vec<EndorseRecord> =
        records.iter().filter(|record| of_baseline(record)).map(|record| (**record).clone()).collect();
    for record in records.iter_mut().filter(|record| !of_baseline(record)) {
        let same =
            |base: &&EndorseRecord| base.parameters == record.parameters && base.variant == record.variant;
        let base = bases.iter().find(same).and_then(|base| base.nominal_tps);
        record.overhead = base.zip(record.nominal_tps).map(|(base, own)| 1.0 - own / base.max(1e-9));
    }
}

impl EndorseRecord {
    /// In a line, for people.
    pub(super) fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let (Some(committed), Some(nominal)) = (self.committed_tps, self.nominal_tps) {
            parts.push(format!("{committed:.0} committed tps of {nominal:.0} ordered"));
        }
        parts.extend(self.valid.map(|valid| format!("{valid:.0} valid")));
        parts.push(format!(
            "{:.1} % given up ({:.1} % old, {:.1} % cycles, before ordering)",
            100.0 * self.conflict_abort_rate,
            100.0 * self.dropped_stale_rate,
            100.0 * self.dropped_cycle_rate,
        ));
        if self.ran_again_rate > 0.0 {
            parts.push(format!("{:.1} % ran again", 100.0 * self.ran_again_rate));
        }
        parts.extend(
            self.latency_ms.map(|latency| format!("p50 {:.1} ms, p99 {:.1} ms", latency.p50, latency.p99)),
        );
        parts.extend(self.cut_ms.map(|cut| format!("a cut {cut:.2} ms")));
        parts.join(", ")
    }
}
