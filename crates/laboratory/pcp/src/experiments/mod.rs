//! The experiments: one file for each kind.

mod counting;
mod latency;
mod throughput;

use crate::PcpError;
use crate::arguments::{NAMES, Plan};
use crate::record::PcpRecord;

/// What measures or counts.
type Run = fn(&Plan) -> Result<Vec<PcpRecord>, PcpError>;

/// Who is told what is being done.
pub(crate) type Progress<'p> = dyn FnMut(&str) + 'p;

/// What runs each of [`NAMES`].
const RUNS: [Run; 6] = [
    throughput::figure_5_11,
    latency::figure_5_12,
    counting::rounds,
    counting::variants,
    counting::liar,
    counting::secrets,
];

/// Runs what is planned.
pub(crate) fn run(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<PcpRecord>, PcpError> {
    let mut records = Vec::new();
    for (name, run) in NAMES.into_iter().zip(RUNS).filter(|(name, _)| plan.experiments.contains(name)) {
        progress(name);
        records.extend(run(plan)?);
    }
    Ok(records)
}
