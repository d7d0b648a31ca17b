use super::plan::Point;
use crate::LatencyMs;
use crate::report::{Metric, Unit};
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
    /// Where rows were in the timed runs: `disk`, `ram-disk`; none: in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<&'static str>,
    /// Memory of that store, in units of 1,048,576 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_megabytes: Option<u64>,
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

pub(super) const METRICS: [Metric<Measurement>; 10] = [
    Metric::new("committed_tps", "Committed transactions per second", Unit::Rate, |m| m.record.committed_tps),
    Metric::new("latency_p50", "Latency, median", Unit::Milliseconds, |m| m.record.latency_ms.map(|l| l.p50)),
    Metric::new("latency_p99", "Latency, 99th percentile", Unit::Milliseconds, |m| {
        m.record.latency_ms.map(|l| l.p99)
    }),
    Metric::new("conflict_abort_rate", "Aborts because of conflicts", Unit::Share, |m| {
        m.record.conflict_abort_rate
    }),
    Metric::new("false_abort_rate", "Aborts without need", Unit::Share, |m| m.record.false_abort_rate),
    Metric::new("dangerous_structure_rate", "Backward dangerous structures", Unit::Share, |m| {
        m.record.dangerous_structure_rate
    }),
    Metric::new("reexecuted_rate", "Transactions that ran again", Unit::Share, |m| m.record.reexecuted_rate),
    Metric::new("executions_per_transaction", "Executions per transaction", Unit::Count, |m| {
        m.record.executions_per_transaction
    }),
    Metric::new("cpu_cores", "Cores kept busy", Unit::Count, |m| m.cpu_cores),
    Metric::new("business_abort_rate", "Refused by the contract", Unit::Share, |m| m.business_abort_rate),
];
