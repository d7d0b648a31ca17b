//! Networks of up to eighty members on one machine: consensus and execution are the code that nodes run, time is simulated.
//!
//! ```text
//!  clients ─▶ mempool ─▶ ordering (bft or raft) ─▶ block ─▶ execution, on a processor of its own ─▶ outcome, signed
//!     ▲        every message is charged to processors and lines (`ordering::simulation::Machines`)       │
//!     └──────────────────────────── certified by a quorum ◀───────── what the others say ◀───────────────┘
//! ```
//!
//! The engine executes every block once, because it gives every node the same; each node is charged what that costs. What
//! everything costs is measured on this machine before.

mod clients;
mod costs;
mod ledger;
mod member;
mod network;
mod place;
mod plot;
mod record;
mod run;

pub use place::ScaleNetwork;
pub use plot::scale_report;
pub use record::{ScaleRecord, scale_table};

use crate::LaboratoryError;
use costs::NodeCosts;
use run::Run;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ScaleOptions {
    /// Numbers of members.
    pub members: Vec<usize>,
    /// Where they are.
    pub networks: Vec<ScaleNetwork>,
    /// Some of [`ScaleOptions::ORDERINGS`].
    pub orderings: Vec<String>,
    /// Calls on their way at all nodes together while the clients keep the network busy.
    pub calls: usize,
    /// How long the clients keep the network busy, in simulated time; half as long at half of what it did.
    pub duration: Duration,
    /// Seed of everything that is left to chance.
    pub seed: u64,
}

impl ScaleOptions {
    /// Services that can be simulated.
    pub const ORDERINGS: [&str; 2] = ["bft", "raft"];
    /// The greatest number of members.
    pub const MEMBERS_MAX: usize = 80;
    /// What a mempool takes of clients where members have all that the others have.
    pub const CALLS_MAX: usize = 25_000;

    fn check(&self) -> Result<(), LaboratoryError> {
        for members in &self.members {
            if !(4..=ScaleOptions::MEMBERS_MAX).contains(members) {
                return Err(LaboratoryError::option("--members", "4 to 80", members));
            }
        }
        for ordering in &self.orderings {
            if !ScaleOptions::ORDERINGS.contains(&ordering.as_str()) {
                return Err(LaboratoryError::option("--ordering", "bft or raft", ordering));
            }
        }
        if !(100..=ScaleOptions::CALLS_MAX).contains(&self.calls) {
            return Err(LaboratoryError::option("--calls", "100 to 25000", self.calls));
        }
        match (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&self.duration) {
            true => Ok(()),
            false => Err(LaboratoryError::option("--seconds", "1 to 600", self.duration.as_secs())),
        }
    }
}

/// Measures every combination. `progress` is told what is being done.
///
/// # Errors
/// Bad options; a machine that cannot reach itself; a network that does not go on.
pub fn scale(
    options: &ScaleOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<ScaleRecord>, LaboratoryError> {
    options.check()?;
    progress("measuring what messages, signatures and execution cost on this machine");
    let costs = NodeCosts::measure()?;
    progress(&costs.to_string());
    let mut records = Vec::new();
    for network in &options.networks {
        for ordering in &options.orderings {
            for members in &options.members {
                let run = Run {
                    members: *members,
                    network: *network,
                    ordering: ordering.clone(),
                    calls: options.calls,
                    duration: options.duration,
                    seed: options.seed,
                    costs,
                };
                let record = run.measure()?;
                progress(&record.to_string());
                records.push(record);
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests;
