//! The network that is measured: processes with shares of the processors, killed and started again.

use super::record::{CatchUpRound, SharesRecord};
use super::shares::Shares;
use super::{SUBMISSION_TRANSACTIONS, SUBMISSIONS};
use crate::CommandError;
use crate::commands::figures::processor_time;
use crate::commands::level;
use crate::commands::measured_network::MeasuredNetwork;
use crate::demo::brokers::Brokers;
use crate::demo::nodes::RunningNodes;
use crate::demo::screen::Screen;
use crate::demo::{prepare, turn};
use crate::model::OrderingArguments;
use bench::{LatencyMs, Load, LoadHandle, LoadOptions, LoadReport, Pace, Submit};
use client::Client;
use node::StoreChoice;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use types::AnswerAt;

const NODES: usize = 4;
/// How long an open load goes on at three nodes before the fourth is started again, or the leader killed.
const OPEN_BEFORE: Duration = Duration::from_secs(2);
/// How often heights are looked at while a node catches up.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long clients are watched after a kill: longer than two missed turns of the node that is gone.
const WATCHED: Duration = Duration::from_secs(8);
/// A node that has not caught up by then, or a network in which not all nodes propose by then, has failed.
const PATIENCE: Duration = Duration::from_secs(180);
/// A load that ends when it is stopped.
const ENDLESS: Duration = Duration::from_secs(86_400);

/// Fields go in this order: the nodes leave their groups before those are removed.
pub(super) struct FaultsNetwork {
    nodes: RunningNodes,
    shares: Shares,
    /// Those that order, where a topic does.
    brokers: Option<Brokers>,
    clients: Vec<Client>,
    gateways: Vec<SocketAddr>,
    customers: u64,
    /// Whether nodes lead in turn.
    takes_turns: bool,
    /// Number of the next load, which is its seed: no two submit the same transactions.
    loads: u64,
    runtime: Runtime,
}

/// What a closed load came to.
pub(super) struct ClosedLoad {
    /// Committed transactions per second.
    pub(super) tps: f64,
    /// The part of its share that the load generator used.
    pub(super) busy: Option<f64>,
}

/// An open load that goes on.
struct OpenLoad {
    handle: LoadHandle,
    task: JoinHandle<Result<LoadReport, bench::LoadError>>,
}

impl OpenLoad {
    async fn stop(self) -> Result<LoadReport, CommandError> {
        self.handle.stop();
        Ok(self.task.await??)
    }
}

impl FaultsNetwork {
    /// Smallbank is loaded then. The nodes run `program`, or this one.
    pub(super) fn start(
        folder: &Path,
        (port_base, customers, store): (u16, u64, StoreChoice),
        ordering: &OrderingArguments,
        program: Option<&Path>,
    ) -> Result<FaultsNetwork, CommandError> {
        let network = MeasuredNetwork { name: "faults", organisations: NODES, port_base, store };
        let network = network.create(folder, |charter| ordering.apply(charter, NODES))?;
        let brokers = Brokers::start(ordering, &network, &Screen::default())?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let shares = Shares::new(NODES)?;
        println!("{}", shares.describe());
        let nodes = RunningNodes::start(&network.folders, program)?;
        let (clients, gateways) = (nodes.clients(&network.clients)?, nodes.postgres_addresses());
        let takes_turns = ordering.takes_turns();
        let mut network = FaultsNetwork {
            nodes,
            shares,
            brokers,
            clients,
            gateways,
            customers,
            takes_turns,
            loads: 0,
            runtime,
        };
        match network.set_up() {
            Ok(()) => Ok(network),
            Err(error) => {
                network.print_logs();
                Err(error)
            }
        }
    }

    fn set_up(&mut self) -> Result<(), CommandError> {
        for node in 0..NODES {
            self.bind(node)?;
        }
        let FaultsNetwork { nodes, clients, gateways, runtime, customers, .. } = self;
        let screen = Screen::default();
        runtime.block_on(nodes.wait_until_healthy(clients, &screen))?;
        runtime.block_on(prepare::create_smallbank(gateways, &screen))?;
        runtime.block_on(prepare::load_customers(gateways, *customers, &screen))
    }

    pub(super) fn nodes(&self) -> usize {
        NODES
    }

    pub(super) fn shares(&self) -> SharesRecord {
        SharesRecord { means: self.shares.means, node: self.shares.node, load: self.shares.load }
    }

    pub(super) fn print_logs(&self) {
        self.nodes.print_logs();
    }

    fn bind(&mut self, node: usize) -> Result<(), CommandError> {
        match self.nodes.process_id(node) {
            Some(process) => self.shares.bind(node, process),
            None => Ok(()),
        }
    }

    /// As a power cut would end it.
    pub(super) fn kill(&mut self, node: usize) -> Result<(), CommandError> {
        self.nodes.kill(node)?;
        self.shares.keep_free(node)
    }

    fn restart(&mut self, node: usize) -> Result<(), CommandError> {
        self.nodes.restart(node)?;
        self.bind(node)
    }

    /// Height of a node's newest block.
    pub(super) fn height(&self, node: usize) -> Result<u64, CommandError> {
        Ok(self.runtime.block_on(self.clients[node].status())?.height)
    }

    /// Everybody's clients, or those of all but one node.
    fn clients_without(&self, down: Option<usize>) -> Vec<Client> {
        let up = self.clients.iter().enumerate().filter(|(node, _)| Some(*node) != down);
        up.map(|(_, client)| client.clone()).collect()
    }

    fn prepare_load(&mut self, clients: Vec<Client>, pace: Pace) -> Result<Load, CommandError> {
        self.loads += 1;
        let options = LoadOptions {
            customers: self.customers,
            skew: 0.0,
            pace,
            seed: self.loads,
            submit: Submit::Calls,
        };
        Ok(Load::new(clients, options)?)
    }

    /// As much as the nodes that are up answer, with the same number of submissions under way whoever is up.
    pub(super) fn closed_load(
        &mut self,
        down: Option<usize>,
        time: Duration,
    ) -> Result<ClosedLoad, CommandError> {
        let clients = self.clients_without(down);
        let submissions = SUBMISSIONS / clients.len();
        let pace = Pace::Closed { submissions, transactions: SUBMISSION_TRANSACTIONS };
        let load = self.prepare_load(clients, pace)?;
        let (start, before) = (Instant::now(), processor_time()?);
        let report = self.runtime.block_on(load.run(time, |_| {}))?;
        all_answered(&report)?;
        let used = (processor_time()? - before).as_secs_f64() / start.elapsed().as_secs_f64();
        self.nodes.check_alive()?;
        Ok(ClosedLoad { tps: report.throughput_tps, busy: self.shares.load.map(|share| used / share) })
    }

    /// Latencies of an open load with all nodes up.
    pub(super) fn open_load(
        &mut self,
        moment: AnswerAt,
        rate: f64,
        time: Duration,
    ) -> Result<LatencyMs, CommandError> {
        let clients = self.clients.iter().map(|client| client.clone().answered_at(moment)).collect();
        let load = self.prepare_load(clients, Pace::Open { rate })?;
        let report = self.runtime.block_on(load.run(time, |_| {}))?;
        all_answered(&report)?;
        Ok(report.latency_ms)
    }

    /// Begins an open load at all nodes but one.
    fn begin_open_load(&mut self, down: usize, rate: f64) -> Result<OpenLoad, CommandError> {
        let clients = self.clients_without(Some(down));
        let load = self.prepare_load(clients, Pace::Open { rate })?;
        let handle = load.handle();
        let task = self.runtime.spawn(load.run(ENDLESS, |_| {}));
        Ok(OpenLoad { handle, task })
    }

    /// Starts `node`, which was killed at `height`, while an open load goes on at the others, and watches it until it has
    /// the newest block.
    pub(super) fn catch_up(
        &mut self,
        node: usize,
        height: u64,
        rate: f64,
    ) -> Result<CatchUpRound, CommandError> {
        let load = self.begin_open_load(node, rate)?;
        std::thread::sleep(OPEN_BEFORE);
        let other = (node + 1) % NODES;
        let newest = self.height(other)?;
        let start = Instant::now();
        self.restart(node)?;
        let mut first = None;
        let last = loop {
            if start.elapsed() > PATIENCE {
                let reached = self.height(node);
                return Err(format!(
                    "node {} has not caught up within {PATIENCE:?}: it was to reach {}, and found {reached:?}",
                    node + 1,
                    self.height(other)?
                )
                .into());
            }
            self.nodes.check_alive()?;
            let there = self.height(other)?;
            // It does not answer yet.
            if let Ok(here) = self.height(node) {
                let point = Point { at: start.elapsed().as_secs_f64(), here, there };
                if first.is_none() {
                    // The others went on while this answer was waited for.
                    first = Some(Point { there: self.height(other)?, ..point });
                    continue;
                }
                if here >= there {
                    break point;
                }
            }
            std::thread::sleep(LOOK_AGAIN);
        };
        self.runtime.block_on(load.stop()).and_then(|report| all_answered(&report))?;
        let first = first.unwrap_or(last);
        let transactions = |from, to| self.runtime.block_on(self.transactions(other, from, to));
        let (executed, arrived) = (transactions(height, last.here)?, transactions(newest, last.there)?);
        let (executed_answering, arrived_answering) =
            (transactions(first.here, last.here)?, transactions(first.there, last.there)?);
        Ok(CatchUpRound {
            node,
            blocks_behind: newest.saturating_sub(height),
            transactions_behind: transactions(height, newest)?,
            answered_seconds: first.at,
            caught_up_seconds: last.at,
            arriving_tps: arrived as f64 / last.at,
            executed_tps: executed as f64 / last.at,
            ratio: executed as f64 / arrived.max(1) as f64,
            ratio_once_answering: executed_answering as f64 / arrived_answering.max(1) as f64,
        })
    }

    /// Kills `node` when its turn to lead comes, or whichever leads where nodes do not take turns, or the broker that does, under an
    /// open load at the others, starts it again, and gives the longest time that one of the others' gateways had no answer for its
    /// clients. One node fails at a time: the one before has caught up by then.
    pub(super) fn kill_leader(&mut self, node: usize, rate: f64) -> Result<Duration, CommandError> {
        if let Some(brokers) = self.brokers.clone().filter(Brokers::are_own) {
            let load = self.begin_open_load(node, rate)?;
            std::thread::sleep(OPEN_BEFORE);
            load.handle.forget_pauses();
            self.runtime.block_on(async { brokers.kill_leader(WATCHED).await?.wait().await })?;
            let report = self.runtime.block_on(load.stop())?;
            all_answered(&report)?;
            return Ok(report.longest_pause);
        }
        let node = if self.takes_turns { node } else { self.runtime.block_on(self.leader())? };
        let load = self.begin_open_load(node, rate)?;
        std::thread::sleep(OPEN_BEFORE);
        level::await_level(&mut self.nodes, &self.clients, &self.runtime)?;
        if self.takes_turns {
            self.runtime.block_on(self.await_turn(node))?;
        }
        load.handle.forget_pauses();
        self.kill(node)?;
        std::thread::sleep(WATCHED);
        let report = self.runtime.block_on(load.stop())?;
        all_answered(&report)?;
        self.restart(node)?;
        // It executes first what it had recorded, then what it missed. The next load is submitted there as well.
        level::await_level(&mut self.nodes, &self.clients, &self.runtime)?;
        Ok(report.longest_pause)
    }

    /// Returns when all nodes take part and the newest block is of the node before `node`.
    async fn await_turn(&self, node: usize) -> Result<(), CommandError> {
        let session = prepare::connect(self.gateways[(node + 1) % NODES]).await?;
        let name = self.organisation_of(node).await?;
        turn::await_turn(&session, (&name, NODES), PATIENCE).await
    }

    /// The node that leads, as the first one that answers says.
    async fn leader(&self) -> Result<usize, CommandError> {
        let name = turn::leader(&prepare::connect(self.gateways[0]).await?).await?;
        for node in 0..NODES {
            if self.organisation_of(node).await? == name {
                return Ok(node);
            }
        }
        Err(format!("expected a leader among the nodes, found {name}").into())
    }

    /// Name of a node's organisation, from the node itself once it answers.
    async fn organisation_of(&self, node: usize) -> Result<String, CommandError> {
        let start = Instant::now();
        loop {
            match self.clients[node].status().await {
                Ok(status) => return Ok(status.organisation),
                Err(error) if start.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Transactions in blocks above `from`, up to `to`.
    async fn transactions(&self, node: usize, from: u64, to: u64) -> Result<u64, CommandError> {
        let session = prepare::connect(self.gateways[node]).await?;
        let statement =
            format!("SELECT sum(transactions) FROM entente.blocks WHERE height > {from} AND height <= {to}");
        let rows =
            session.simple_query(&statement).await.map_err(|error| prepare::explain(&statement, &error))?;
        // The sum of no blocks is null.
        Ok(rows.iter().find_map(prepare::first_column).map_or(Ok(0), |sum| sum.parse())?)
    }

    /// The state digest that all nodes have at a height that all have reached.
    pub(super) fn agreed(&self) -> Result<String, CommandError> {
        Ok(level::agreed(&self.clients, &self.runtime)?.1)
    }
}

/// How far the node and the others were at a time.
#[derive(Clone, Copy)]
struct Point {
    at: f64,
    here: u64,
    there: u64,
}

/// Everything was submitted at nodes that were up all the time.
fn all_answered(report: &LoadReport) -> Result<(), CommandError> {
    match (report.unanswered, report.repeated) {
        (0, 0) => Ok(()),
        (0, repeated) => Err(format!("{repeated} transactions had to be submitted again elsewhere").into()),
        (unanswered, _) => Err(format!("{unanswered} transactions were refused, or got no receipt").into()),
    }
}
