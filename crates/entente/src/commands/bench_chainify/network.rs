//! Networks that are measured: databases, node processes and loads.

use crate::CommandError;
use crate::commands::measured_network::MeasuredNetwork;
use crate::demo::databases::{DatabaseKind, Databases};
use crate::demo::load::TRANSACTIONS;
use crate::demo::nodes::RunningNodes;
use crate::demo::prepare;
use crate::demo::report;
use crate::demo::screen::Screen;
use bench::{Load, LoadOptions, LoadReport, Pace, Submit};
use client::Client;
use node::{StoreChoice, StoreKind};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use types::Charter;

pub(super) const ORGANISATIONS: usize = 4;

/// Fields go in this order: nodes end before their databases do.
pub(super) struct ChainifyNetwork {
    nodes: RunningNodes,
    databases: Databases,
    clients: Vec<Client>,
    gateways: Vec<SocketAddr>,
    customers: u64,
    submit: Submit,
    /// Number of the next load, which is part of its seed: no two submit the same transactions.
    loads: u64,
    runtime: Runtime,
}

/// What is to be measured.
pub(super) struct ChainifyNetworkOptions<'a> {
    pub(super) folder: &'a Path,
    pub(super) port_base: u16,
    pub(super) customers: u64,
    /// Each organisation's database.
    pub(super) kinds: &'a [DatabaseKind],
    pub(super) submit: Submit,
    pub(super) seed: u64,
}

impl ChainifyNetwork {
    /// Smallbank is loaded then.
    pub(super) fn start(
        options: &ChainifyNetworkOptions<'_>,
        change: impl FnOnce(&mut Charter),
    ) -> Result<ChainifyNetwork, CommandError> {
        let store = StoreChoice { kind: StoreKind::Memory, memory_megabytes: None };
        let port_base = options.port_base;
        let network = MeasuredNetwork { name: "chainify", organisations: ORGANISATIONS, port_base, store };
        let network = network.create(options.folder, |charter| {
            change(charter);
            Ok(())
        })?;
        let screen = Screen::default();
        let databases = Databases::start(options.kinds, &network, &screen)?;
        let nodes = RunningNodes::start(&network.folders, None)?;
        let (clients, gateways) = (nodes.clients(&network.clients)?, nodes.postgres_addresses());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let mut network = ChainifyNetwork {
            nodes,
            databases,
            clients,
            gateways,
            customers: options.customers,
            submit: options.submit,
            loads: options.seed << 16,
            runtime,
        };
        let ready = network.set_up(&screen);
        network.or_logs(ready)?;
        Ok(network)
    }

    fn set_up(&mut self, screen: &Screen) -> Result<(), CommandError> {
        let ChainifyNetwork { nodes, clients, gateways, runtime, customers, submit, .. } = self;
        runtime.block_on(nodes.wait_until_healthy(clients, screen))?;
        runtime.block_on(async {
            match submit {
                Submit::ChainifyScripts => prepare::create_tables(gateways, screen).await?,
                Submit::Calls | Submit::ChainifyCalls | Submit::CallsInSchemas { .. } => {
                    prepare::create_smallbank(gateways, screen).await?;
                }
            }
            prepare::load_customers(gateways, *customers, screen).await
        })
    }

    /// Where something has failed, the ends of all logs say more.
    pub(super) fn or_logs<T>(&self, outcome: Result<T, CommandError>) -> Result<T, CommandError> {
        if outcome.is_err() {
            self.nodes.print_logs();
        }
        outcome
    }

    /// A load of `clients` at all organisations, or all but the last one.
    pub(super) fn prepare_load(
        &mut self,
        clients: usize,
        skew: f64,
        all: bool,
    ) -> Result<Load, CommandError> {
        self.loads += 1;
        let gateways = if all { ORGANISATIONS } else { ORGANISATIONS - 1 };
        let submissions = (clients / gateways).max(1);
        let options = LoadOptions {
            customers: self.customers,
            skew,
            pace: Pace::Closed { submissions, transactions: TRANSACTIONS },
            seed: self.loads,
            submit: self.submit,
        };
        Ok(Load::new(self.clients[..gateways].to_vec(), options)?)
    }

    /// Runs a load to its end.
    pub(super) fn load(
        &mut self,
        clients: usize,
        skew: f64,
        time: Duration,
    ) -> Result<LoadReport, CommandError> {
        let load = self.prepare_load(clients, skew, true)?;
        let report = self.runtime.block_on(load.run(time, |_| {}))?;
        self.nodes.check_alive()?;
        match report.unanswered {
            0 => Ok(report),
            unanswered => Err(format!("{unanswered} transactions were refused, or got no receipt").into()),
        }
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(super) fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// Changes a row in the first organisation's database, behind the ledger's back.
    pub(super) fn change_a_row(&self) -> Result<(), CommandError> {
        // The driver has a runtime of its own, which must not begin within another one.
        std::thread::scope(|scope| scope.spawn(|| self.databases.change_a_row(0)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// As a power cut would end it.
    pub(super) fn kill(&mut self, position: usize) -> Result<(), CommandError> {
        self.nodes.kill(position)
    }

    /// Starts it again.
    pub(super) fn restart(&mut self, position: usize) -> Result<(), CommandError> {
        self.nodes.restart(position)
    }

    /// Returns once all nodes and databases have the same rows.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let (height, digests, _) = self.runtime.block_on(report::common_height(&self.clients))?;
        if digests.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("the nodes differ at height {height}: {digests:?}").into());
        }
        let checked = self.runtime.block_on(self.databases.check(&self.clients, &self.gateways, height))?;
        match checked.iter().find(|database| !database.rows_equal) {
            Some(other) => {
                Err(format!("the database of {} has other rows than the ledger", other.organisation).into())
            }
            None => Ok(()),
        }
    }
}
