//! The network that runs for long: its load, what happens to its nodes, and what they are like meanwhile.

use super::SoakArguments;
use super::process::{figures, folder_bytes};
use crate::CommandError;
use crate::commands::level;
use crate::commands::measured_network::MeasuredNetwork;
use crate::demo::nodes::RunningNodes;
use crate::demo::prepare;
use crate::demo::screen::Screen;
use bench::{Load, LoadOptions, LoadReport, Pace, SoakEvent, SoakInterval, SoakRecord, SoakSample, Submit};
use client::Client;
use node::NodeFolder;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const NODES: usize = 4;
const MINUTE: Duration = Duration::from_secs(60);
/// How often nodes are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How long a killed node stays away.
const AWAY: Duration = Duration::from_secs(5);
/// What happens, in turn.
const EVENTS: [&str; 5] = ["kill", "amendment", "join", "checkpoint", "restart"];
/// What a node has that joins again: everything but its keys, its charter, its settings, and what it has voted.
const GIVEN_UP: [&str; 4] = ["ledger", "checkpoints", "state", "history"];

pub(super) struct SoakNetwork {
    nodes: RunningNodes,
    folders: Vec<PathBuf>,
    clients: Vec<Client>,
    gateways: Vec<SocketAddr>,
    customers: u64,
    runtime: Runtime,
    /// When the load began.
    began: Instant,
    /// Transactions that have been answered.
    transactions: u64,
}

impl SoakNetwork {
    /// Smallbank is loaded then. All nodes but the first prune.
    pub(super) fn start(folder: &Path, arguments: &SoakArguments) -> Result<SoakNetwork, CommandError> {
        let SoakArguments { port_base, store, payload_blocks, .. } = arguments;
        let network = MeasuredNetwork {
            name: "soak",
            organisations: NODES,
            port_base: *port_base,
            store: store.choice(),
        };
        let network = network.create(folder, |charter| {
            // So few that pruning, which keeps what checkpoints and requests need, shows within minutes.
            (charter.checkpoint_blocks, charter.expiry_blocks_max) = (250, 2_500);
            Ok(())
        })?;
        for pruning in &network.folders[1..] {
            NodeFolder::open(pruning)?.choose_pruning(Some(*payload_blocks), None)?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let nodes = RunningNodes::start(&network.folders, arguments.program.as_deref())?;
        let (clients, gateways) = (nodes.clients(&network.clients)?, nodes.postgres_addresses());
        let (folders, customers) = (network.folders, arguments.customers);
        let (began, transactions) = (Instant::now(), 0);
        let mut network =
            SoakNetwork { nodes, folders, clients, gateways, customers, runtime, began, transactions };
        if let Err(error) = network.set_up() {
            network.print_logs();
            return Err(error);
        }
        Ok(network)
    }

    fn set_up(&mut self) -> Result<(), CommandError> {
        let SoakNetwork { nodes, clients, gateways, runtime, customers, .. } = self;
        let screen = Screen::default();
        runtime.block_on(nodes.wait_until_healthy(clients, &screen))?;
        runtime.block_on(prepare::create_smallbank(gateways, &screen))?;
        runtime.block_on(prepare::load_customers(gateways, *customers, &screen))?;
        self.began = Instant::now();
        Ok(())
    }

    pub(super) fn nodes(&self) -> usize {
        NODES
    }

    pub(super) fn print_logs(&self) {
        self.nodes.print_logs();
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// A minute of load with one event, and what was seen.
    pub(super) fn minute(
        &mut self,
        minute: u64,
        rate: f64,
        record: &mut SoakRecord,
    ) -> Result<(), CommandError> {
        let options = LoadOptions {
            customers: self.customers,
            skew: 0.0,
            pace: Pace::Open { rate },
            // No two minutes submit the same transactions.
            seed: minute + 1,
            submit: Submit::Calls,
        };
        let load = Load::new(self.clients.clone(), options)?;
        let running = self.runtime.spawn(load.run(MINUTE, |_| {}));
        let begun = Instant::now();
        self.sample_until(begun + LOOK, record)?;
        let (kind, node) = (EVENTS[minute as usize % EVENTS.len()], minute as usize % NODES);
        record.events.push(SoakEvent { seconds: self.seconds(), node, kind });
        self.happen(kind, node, minute)?;
        self.sample_until(begun + MINUTE, record)?;
        let report: LoadReport = self.runtime.block_on(running)??;
        if report.unanswered > 0 {
            return Err(format!("{} transactions were refused, or got no receipt", report.unanswered).into());
        }
        self.transactions += report.committed + report.business_aborts + report.conflict_aborts;
        record.intervals.push(SoakInterval {
            seconds: self.seconds(),
            throughput_tps: report.throughput_tps,
            latency_ms: report.latency_ms,
            longest_pause_seconds: report.longest_pause.as_secs_f64(),
            repeated: report.repeated,
        });
        level::await_level(&mut self.nodes, &self.clients, &self.runtime)
    }

    fn happen(&mut self, kind: &str, node: usize, minute: u64) -> Result<(), CommandError> {
        match kind {
            "kill" => {
                self.nodes.kill(node)?;
                std::thread::sleep(AWAY);
                self.nodes.restart(node)
            }
            "restart" => {
                self.nodes.interrupt(node)?;
                self.nodes.restart(node)
            }
            "join" => {
                self.nodes.interrupt(node)?;
                for name in GIVEN_UP {
                    match std::fs::remove_dir_all(self.folders[node].join(name)) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(error.into());
                        }
                        _ => {}
                    }
                }
                self.nodes.restart(node)
            }
            "amendment" => {
                let milliseconds = 1_000 + minute % 500;
                self.execute(node, &format!("SELECT entente.set_charter('block.idle_ms', '{milliseconds}')"))
            }
            _ => self.execute(node, "CHECKPOINT"),
        }
    }

    fn execute(&self, node: usize, statement: &str) -> Result<(), CommandError> {
        self.runtime.block_on(async {
            let session = prepare::connect(self.gateways[node]).await?;
            let done = session.batch_execute(statement).await;
            done.map_err(|error| prepare::explain(statement, &error))
        })
    }

    /// Looks at all nodes now and again.
    fn sample_until(&mut self, end: Instant, record: &mut SoakRecord) -> Result<(), CommandError> {
        loop {
            self.nodes.check_alive()?;
            for node in 0..NODES {
                record.samples.extend(self.sample(node));
            }
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(LOOK));
            if left <= LOOK {
                return Ok(());
            }
        }
    }

    /// Nothing of a node that does not answer.
    fn sample(&self, node: usize) -> Option<SoakSample> {
        let (resident, descriptors, threads) = figures(self.nodes.process_id(node)?)?;
        let status = self.runtime.block_on(self.clients[node].status()).ok()?;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        Some(SoakSample {
            seconds: self.seconds(),
            node,
            resident_mb: megabytes(resident),
            descriptors,
            threads,
            ledger_mb: megabytes(status.ledger_bytes),
            folder_mb: megabytes(folder_bytes(&self.folders[node])),
            transactions: self.transactions,
            payloads_from: status.payloads_from,
        })
    }

    /// Height and state digest on which all nodes agree.
    pub(super) fn agreed(&self) -> Result<(u64, String), CommandError> {
        level::agreed(&self.clients, &self.runtime)
    }
}
