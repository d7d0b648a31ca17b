use super::costs::NodeCosts;
use super::ledger::ScaleLedger;
use super::network::Members;
use super::place::ScaleNetwork;
use super::record::ScaleRecord;
use crate::{LaboratoryError, LatencyMs};
use ordering::simulation::{LinkQuality, Machines, Network};
use std::sync::Arc;
use std::time::Duration;

/// Simulated time after which a network that is not done never is.
const PATIENCE: Duration = Duration::from_secs(600);

/// One network under one service.
pub(super) struct Run {
    pub members: usize,
    pub network: ScaleNetwork,
    pub ordering: String,
    /// Calls on their way while the clients keep the network busy.
    pub calls: usize,
    pub duration: Duration,
    pub seed: u64,
    pub costs: NodeCosts,
}

impl Run {
    pub(super) fn measure(&self) -> Result<ScaleRecord, LaboratoryError> {
        let Run { members, network, ordering, calls, duration, seed, costs } = self;
        let ledger = Arc::new(ScaleLedger::new(*members, ordering, *seed)?);
        let place = *network;
        let latency = move |from, to| place.latency(from, to);
        let machines = Machines::new(*members, latency, network.bits_per_second(), costs.messages);
        let machines = Arc::new(machines);
        let process = Members::new(ledger.clone(), machines.clone(), (*members, *costs), (*calls, *duration));
        let process = Arc::new(process);
        let simulated = Network {
            seed: *seed,
            charter: ledger.charter().clone(),
            nodes: *members,
            links: LinkQuality::GOOD,
            events: Vec::new(),
            scenario: None,
            adversaries: Vec::new(),
            withholding: Vec::new(),
            // The signatures of certificates in blocks are charged.
            trusts_certificates: true,
            slow: None,
            timeout: PATIENCE,
        };
        let ran = simulated.measure(process.clone(), machines);
        if let Some(violation) = process.violation() {
            return Err(LaboratoryError::Network(violation));
        }
        ran.map_err(LaboratoryError::Network)?;
        let (found, traffic) = process.found();
        let (leader_bytes_per_transaction, bytes_per_transaction) = traffic.per_transaction();
        Ok(ScaleRecord {
            members: *members,
            network: network.name(),
            ordering: ordering.clone(),
            throughput_tps: found.throughput_tps,
            latency_ms: LatencyMs::of(&found.latency),
            transactions_per_block: found.throughput_tps / found.blocks_per_second,
            blocks_per_second: found.blocks_per_second,
            leader_bytes_per_transaction: Some(leader_bytes_per_transaction),
            member_bytes_per_transaction: Some(bytes_per_transaction / *members as f64),
        })
    }
}
