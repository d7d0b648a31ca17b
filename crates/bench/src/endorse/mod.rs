//! `entente bench endorse`: the experiments of the papers on execute–order–validate.

mod experiments;
mod network;
mod system;

use crate::{EngineBenchError, LatencyMs};
use experiments::{Experiment, Point};
use network::{Counts, Network};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `entente bench endorse`.
#[derive(clap::Args, Clone, Debug)]
pub struct EndorseArguments {
    /// Seed of the workloads
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only points with these values, such as `experiment=fabricplusplus-figure-8,system=occ`: keys are experiment,
    /// system, skew, write_probability; of one key several values may be given
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only the experiments that are marked `quick`, with short rounds: two minutes at most
    #[arg(long)]
    pub quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Seconds of a point [default: 8, with --quick 2.5]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Experiments instead of the built-in docs/endorse.toml
    #[arg(long, value_name = "FILE")]
    pub experiments: Option<PathBuf>,
}

/// One measured point.
#[derive(Clone, Debug, Serialize)]
pub struct EndorseRecord {
    /// Id of the experiment.
    pub experiment: String,
    /// What endorses, orders and validates.
    pub system: String,
    /// What distinguishes the point.
    pub parameters: BTreeMap<String, f64>,
    /// Committed transactions per second.
    pub committed_tps: f64,
    /// Transactions per second that went through a block, whatever became of them.
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

/// Why nothing is measured.
#[derive(Debug, thiserror::Error)]
pub enum EndorseError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {error}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The experiments are none.
    #[error("the experiments cannot be run: {0}")]
    Experiments(String),
    /// `--only` is none.
    #[error("--only expects {expected}, found `{found}`")]
    Only {
        /// What may stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// No point is left.
    #[error("no experiment has a point with these values; leave `--only` or `--quick` out, or correct it")]
    Nothing,
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineBenchError),
    /// The workload.
    #[error(transparent)]
    Workload(#[from] workloads::ParameterError),
}

/// Runs experiments; `progress` is told what is being done, and every record when it is there.
///
/// # Errors
/// Bad options or experiments; a set-up that fails; files that cannot be read or written.
pub fn endorse(
    arguments: &EndorseArguments,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<EndorseRecord>, EndorseError> {
    let text = match &arguments.experiments {
        Some(path) => std::fs::read_to_string(path).map_err(|error| EndorseError::File {
            action: "read",
            path: path.clone(),
            error,
        })?,
        None => experiments::BUILT_IN.to_string(),
    };
    let all = experiments::parse(&text)?;
    let filter = experiments::Filter::parse(&arguments.only)?;
    let seconds = arguments.seconds.unwrap_or(if arguments.quick { 2.5 } else { 8.0 });
    let wanted = all.iter().filter(|experiment| experiment.quick || !arguments.quick);
    let points: Vec<(&Experiment, Point)> = wanted
        .flat_map(|experiment| experiment.points().into_iter().map(move |point| (experiment, point)))
        .filter(|(experiment, point)| filter.accepts(experiment, point))
        .collect();
    if points.is_empty() {
        return Err(EndorseError::Nothing);
    }
    let mut records = Vec::new();
    let mut shown = "";
    for (number, (experiment, point)) in points.iter().enumerate() {
        if shown != experiment.id {
            shown = &experiment.id;
            progress(&experiment.title);
        }
        progress(&format!("{}/{}: {}, {}", number + 1, points.len(), experiment.id, point.describe()));
        let record = measure(experiment, point, seconds, arguments.seed)?;
        progress(&format!("  {}", summary(&record)));
        records.push(record);
    }
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&records).expect("records are plain data");
        std::fs::write(path, text + "\n").map_err(|error| EndorseError::File {
            action: "write",
            path: path.clone(),
            error,
        })?;
    }
    Ok(records)
}

fn measure(
    experiment: &Experiment,
    point: &Point,
    seconds: f64,
    seed: u64,
) -> Result<EndorseRecord, EndorseError> {
    let workload = point.workload()?;
    let mut network = Network::new(&point.system, workload.as_ref())?;
    let name = |record: EndorseRecord| EndorseRecord {
        experiment: experiment.id.clone(),
        system: point.system.name.to_string(),
        parameters: point.parameters(),
        ..record
    };
    if let Some(count) = experiment.endorsed_ahead {
        let transactions = network.endorsed_ahead(workload.as_ref(), count, seed);
        let (committed, seconds) =
            network.commit_all(&transactions, point.block_size, experiment.pipelined)?;
        let nominal_tps = transactions.len() as f64 / seconds;
        let committed_tps = committed as f64 / seconds;
        return Ok(name(EndorseRecord { committed_tps, nominal_tps, ..record(&Counts::nothing()) }));
    }
    let counts = network.run(&point.system, workload.as_ref(), &point.options(experiment, seconds, seed))?;
    Ok(name(record(&counts)))
}

fn record(counts: &Counts) -> EndorseRecord {
    let seconds = if counts.seconds > 0.0 { counts.seconds } else { 1.0 };
    let dropped = counts.dropped_stale + counts.dropped_cycle;
    let endorsed = (counts.ordered + dropped).max(1) as f64;
    let mut cuts = counts.cut_ms.clone();
    cuts.sort_by(f64::total_cmp);
    EndorseRecord {
        experiment: String::new(),
        system: String::new(),
        parameters: BTreeMap::new(),
        committed_tps: counts.committed as f64 / seconds,
        nominal_tps: counts.ordered as f64 / seconds,
        conflict_abort_rate: (counts.conflicts + dropped) as f64 / endorsed,
        latency_ms: (!counts.latency.is_empty()).then(|| LatencyMs::of(&counts.latency)),
        dropped_stale_rate: counts.dropped_stale as f64 / endorsed,
        dropped_cycle_rate: counts.dropped_cycle as f64 / endorsed,
        ran_again_rate: counts.ran_again as f64 / endorsed,
        cut_ms: cuts.get(cuts.len() / 2).copied(),
    }
}

fn summary(record: &EndorseRecord) -> String {
    let latency = record.latency_ms.unwrap_or_default();
    format!(
        "{:.0} committed tps of {:.0} ordered, {:.1} % given up ({:.1} % old, {:.1} % cycles, before ordering), {:.1} % ran \
         again, p50 {:.0} ms, p99 {:.0} ms",
        record.committed_tps,
        record.nominal_tps,
        100.0 * record.conflict_abort_rate,
        100.0 * record.dropped_stale_rate,
        100.0 * record.dropped_cycle_rate,
        100.0 * record.ran_again_rate,
        latency.p50,
        latency.p99
    )
}
