use super::plan::Point;
use crate::LatencyMs;
use serde::Serialize;

/// What a point came to, as `--json` writes it. A figure that the protocol does not have, or that was not measured, is
/// null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Id of the protocol, or `postgres`.
    pub protocol: String,
    /// In an ablation: which options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Id of the workload.
    pub workload: String,
    /// Zipf's exponent, or the share that the workload puts in its place.
    pub skew: f64,
    /// Transactions of an execution batch; 0 for PostgreSQL.
    pub block_size: u32,
    /// Threads of the core.
    pub threads: usize,
    /// Committed transactions per second, median over the rounds.
    pub committed_tps: Option<f64>,
    /// From submission to the end of the block.
    pub latency_ms: Option<LatencyMs>,
    /// Share of the transactions given up where conflicts abort; between protocols, on the same snapshots.
    pub conflict_abort_rate: Option<f64>,
    /// Share of the transactions given up without need.
    pub false_abort_rate: Option<f64>,
    /// Share of the transactions that Harmony's validation rejects.
    pub dangerous_structure_rate: Option<f64>,
    /// Share of the transactions that ran more than once.
    pub reexecuted_rate: Option<f64>,
    /// Simulations per transaction.
    pub executions_per_transaction: Option<f64>,
}

/// A record with what only the reports show.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The record.
    pub record: Record,
    /// Least and most committed transactions per second over the rounds.
    pub committed_tps_range: Option<(f64, f64)>,
    /// Cores kept busy.
    pub cpu_cores: Option<f64>,
    /// Share of the transactions that the contract ended.
    pub business_abort_rate: Option<f64>,
    pub(super) point: Point,
    /// Ids of the experiments that it belongs to.
    pub(super) experiments: Vec<String>,
}

/// A figure by the name that experiments, CSV and plots use.
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// For people.
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    pub(super) of: fn(&Measurement) -> Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Transactions per second.
    Rate,
    Milliseconds,
    /// A share from 0 to 1, shown in percent.
    Share,
    /// Any number.
    Count,
}

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Measurement) -> Option<f64>,
) -> Metric {
    Metric { name, title, unit, of }
}

pub(super) const METRICS: [Metric; 10] = [
    metric("committed_tps", "Committed transactions per second", Unit::Rate, |m| m.record.committed_tps),
    metric("latency_p50", "Latency, median", Unit::Milliseconds, |m| m.record.latency_ms.map(|l| l.p50)),
    metric("latency_p99", "Latency, 99th percentile", Unit::Milliseconds, |m| {
        m.record.latency_ms.map(|l| l.p99)
    }),
    metric("conflict_abort_rate", "Aborts because of conflicts", Unit::Share, |m| {
        m.record.conflict_abort_rate
    }),
    metric("false_abort_rate", "Aborts without need", Unit::Share, |m| m.record.false_abort_rate),
    metric("dangerous_structure_rate", "Backward dangerous structures", Unit::Share, |m| {
        m.record.dangerous_structure_rate
    }),
    metric("reexecuted_rate", "Transactions that ran again", Unit::Share, |m| m.record.reexecuted_rate),
    metric("executions_per_transaction", "Executions per transaction", Unit::Count, |m| {
        m.record.executions_per_transaction
    }),
    metric("cpu_cores", "Cores kept busy", Unit::Count, |m| m.cpu_cores),
    metric("business_abort_rate", "Refused by the contract", Unit::Share, |m| m.business_abort_rate),
];

impl Unit {
    /// For people; the share in percent.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Unit::Rate if value >= 1_000_000.0 => format!("{:.2} M", value / 1e6),
            Unit::Rate if value >= 10_000.0 => format!("{:.0} k", value / 1e3),
            Unit::Rate if value >= 1_000.0 => format!("{:.1} k", value / 1e3),
            Unit::Rate => format!("{value:.0}"),
            Unit::Milliseconds if value >= 10.0 => format!("{value:.0} ms"),
            Unit::Milliseconds => format!("{value:.2} ms"),
            Unit::Share => format!("{:.1} %", 100.0 * value),
            Unit::Count => format!("{value:.2}"),
        }
    }
}
