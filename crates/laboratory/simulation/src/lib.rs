//! Whole networks in one process, from a seed: nodes with their real code, ordering with its real code on a simulated
//! network and clock, clients at gateway level; with crashes, losses, partitions, faults of disks and memory, and adversaries;
//! every run checked against a plain map. With schemas that have members, their rows are checked too, and that nobody else sees them
//! (`private`).
//!
//! ```text
//!  seed ──▶ Plan ──▶ Network (ordering::simulation) ──▶ blocks ──▶ SimulatedNode × n ──▶ ledgers on losing disks
//!                        ▲ events                          ▲ replies     │
//!                        └── kills, links                  Clients ──────┴──▶ History ──▶ check: a map replays the blocks
//! ```
//!
//! What is simulated is the environment: time, network, scheduling, the power supply of the disks. What is not are the nodes:
//! verify, execute, record, answer and attest run the code that the threads of a node run. The crate stands above `node` and
//! `ordering` because it needs both with their feature `simulation`, and nothing that is shipped needs it.

mod amendment;
mod chance;
mod clients;
mod history;
mod liar;
mod plan;
mod private;
mod snapshots;
mod workload;
mod world;

pub use amendment::Amendment;
pub use chance::Chance;
pub use liar::Lie;
pub use node::Defence;
pub use ordering::simulation::Adversary;
pub use plan::{Byzantine, Counts, Joiner, Plan};
pub use private::{MemberChange, PlannedSchema, PrivateCounts};

use crypto::Digest;
use ordering::simulation::Network;
use std::sync::Arc;
use world::{TIMEOUT, World};

/// What every node does without, to see that a run finds out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// A defence of the pipeline.
    Node(Defence),
    /// Ordering takes whatever a proposer puts into its block for a transaction.
    AdmitAnything,
    /// Ordering takes the certificates of outcomes in proposed blocks on trust.
    TrustCertificates,
}

/// What a run came to, in counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// What it was made from.
    pub seed: u64,
    /// The id of the protocol of its charter.
    pub protocol: String,
    /// The same for the same seed: of every event, and of every node's blocks.
    pub fingerprint: Digest,
    /// Blocks up to the last one that a client heard of.
    pub blocks: u64,
    /// Transactions that were executed.
    pub transactions: u64,
    /// Those of them that committed.
    pub committed: u64,
    /// Transactions in blocks that were not: repetitions, and such that came too late.
    pub rejected: u64,
    /// Receipts that clients got.
    pub receipts: u64,
    /// Times that a node started.
    pub starts: u64,
    /// Times that a node was killed.
    pub crashes: u64,
    /// Writes that a crash took from a disk, or tore.
    pub writes_lost: u64,
    /// Nodes that found out that their memory was wrong, and healed.
    pub healed: u64,
    /// Times that a node went on from another one's checkpoint.
    pub joined: u64,
    /// What was planned.
    pub counts: Counts,
    /// What became of schemas with members.
    pub private: PrivateCounts,
}

/// Runs the plan of a seed.
///
/// # Errors
/// The first promise that was not kept.
pub fn run(seed: u64) -> Result<Report, String> {
    run_plan(seed, Plan::of(seed), None)
}

/// Runs a plan, maybe with something switched off.
///
/// # Errors
/// The first promise that was not kept.
pub fn run_plan(seed: u64, plan: Plan, mutation: Option<Mutation>) -> Result<Report, String> {
    let adversaries = match plan.byzantine {
        Some(Byzantine::Member(adversary)) => vec![(0, adversary)],
        _ => Vec::new(),
    };
    let network = Network {
        seed,
        charter: Arc::new(plan.charter.clone()),
        nodes: plan.nodes(),
        links: plan.links,
        events: plan.events.clone(),
        scenario: None,
        adversaries,
        withholding: (plan.byzantine == Some(Byzantine::Withholding)).then_some(0).into_iter().collect(),
        trusts_certificates: mutation == Some(Mutation::TrustCertificates),
        slow: plan.joiner.map(|joiner| (joiner.node, joiner.block_time)),
        timeout: TIMEOUT,
    };
    let world = Arc::new(World::new(seed, plan, mutation)?);
    let process = world.clone();
    // An invariant that breaks somewhere is a finding like any other.
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| network.run(process)));
    let ran = ran.unwrap_or_else(|panic| match panic.downcast_ref::<String>() {
        Some(text) => Err(format!("it panicked: {text}")),
        None => Err("it panicked; see above".to_string()),
    });
    world.conclude(&ran)
}
