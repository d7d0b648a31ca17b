//! Kafka is not simulated: four nodes run on this machine, with brokers of their own.

use crate::CommandError;
use crate::commands::measured_network::MeasuredNetwork;
use crate::demo::brokers::Brokers;
use crate::demo::load::TRANSACTIONS;
use crate::demo::nodes::RunningNodes;
use crate::demo::prepare;
use crate::demo::screen::Screen;
use crate::model::OrderingArguments;
use bench::{Load, LoadOptions, LoadReport, Pace, ScaleNetwork, ScaleRecord, Submit};
use client::Client;
use node::StoreChoice;
use std::time::Duration;

/// How many nodes are measured, with the brokers, on one machine.
pub(super) const MEMBERS: usize = 4;
const CUSTOMERS: u64 = 100_000;
const WARM_UP: Duration = Duration::from_secs(3);
/// The simulated period is short; here noise needs more time to even out.
const MEASURED_MIN: Duration = Duration::from_secs(5);
/// Submissions under way at each node, as in `entente demo`.
const SUBMISSIONS: usize = 2;

/// The network that is measured, and how many loads it has had.
struct Measured {
    clients: Vec<Client>,
    loads: u64,
}

/// Starts brokers and nodes, keeps them busy, and asks half of what they did.
///
/// # Errors
/// Brokers that cannot be had, and whatever ends a network.
pub(super) fn measure(port_base: u16, duration: Duration) -> Result<ScaleRecord, CommandError> {
    let folder = tempfile::tempdir()?;
    let ordering = OrderingArguments::kafka();
    let store = StoreChoice::default();
    let network = MeasuredNetwork { name: "scale", organisations: MEMBERS, port_base, store };
    let network = network.create(folder.path(), |charter| ordering.apply(charter, MEMBERS))?;
    let screen = Screen::default();
    let _brokers = Brokers::start(&ordering, &network, &screen)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut nodes = RunningNodes::start(&network.folders, None)?;
    let measured = runtime.block_on(async {
        let clients = nodes.clients(&network.clients)?;
        nodes.wait_until_healthy(&clients, &screen).await?;
        let gateways = nodes.postgres_addresses();
        prepare::create_smallbank(&gateways, &screen).await?;
        prepare::load_customers(&gateways, CUSTOMERS, &screen).await?;
        Measured { clients, loads: 0 }.measure(duration.max(MEASURED_MIN)).await
    });
    if measured.is_err() {
        nodes.print_logs();
    }
    measured
}

impl Measured {
    async fn measure(&mut self, duration: Duration) -> Result<ScaleRecord, CommandError> {
        let busy = Pace::Closed { submissions: SUBMISSIONS, transactions: TRANSACTIONS };
        self.load(busy, WARM_UP).await?;
        let from = self.clients[0].status().await?.height;
        let report = self.load(busy, duration).await?;
        let blocks = (self.clients[0].status().await?.height - from) as f64 / report.seconds;
        let half = Pace::Open { rate: report.throughput_tps / 2.0 };
        let latency_ms = self.load(half, duration).await?.latency_ms;
        Ok(ScaleRecord {
            members: MEMBERS,
            network: ScaleNetwork::Room.name(),
            ordering: "kafka".to_string(),
            throughput_tps: report.throughput_tps,
            latency_ms,
            transactions_per_block: report.throughput_tps / blocks,
            blocks_per_second: blocks,
            leader_bytes_per_transaction: None,
            member_bytes_per_transaction: None,
        })
    }

    async fn load(&mut self, pace: Pace, time: Duration) -> Result<LoadReport, CommandError> {
        self.loads += 1;
        let options =
            LoadOptions { customers: CUSTOMERS, skew: 0.0, pace, seed: self.loads, submit: Submit::Calls };
        let report = Load::new(self.clients.clone(), options)?.run(time, |_| {}).await?;
        match report.unanswered {
            0 => Ok(report),
            some => Err(format!("{some} transactions were refused, or got no receipt").into()),
        }
    }
}
