//! One organisation whose schemas four nodes share out, beside organisations whose node holds everything.

use crate::CommandError;
use crate::commands::measured_network::MeasuredNetwork;
use crate::demo::load::TRANSACTIONS;
use crate::demo::nodes::RunningNodes;
use crate::demo::prepare::{connect, explain};
use crate::demo::screen::Screen;
use bench::{Load, LoadOptions, Pace, Submit, process_seconds};
use client::Client;
use node::{StoreChoice, place};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use workloads::smallbank::Smallbank;

/// Organisations; the first one shares its schemas out.
const NODES: usize = 4;
/// Nodes that hold schemas for it.
const HOLDERS: usize = 4;
/// Schemas, each a bank: two with each of those.
const BANKS: u8 = 8;
/// Submissions under way at each gateway.
const SUBMISSIONS: usize = 2;
/// Of a hundred transactions so many touch two schemas.
const MIXES: [u8; 3] = [10, 30, 60];
/// Transactions per second of the other organisations while a schema goes to another node.
const MOVING_TPS: f64 = 4_000.0;
/// How long a node may take to execute everything again.
const REPLAY_WITHIN: Duration = Duration::from_secs(300);
/// How long nodes may take to be level at the end.
const LEVEL_WITHIN: Duration = Duration::from_secs(60);

/// What was measured, by round.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct SparseFigures {
    /// CPU per transaction of four members' nodes that hold everything by that of the validator and its four holders, together.
    pub(super) cpu_ratios: Vec<f64>,
    /// The same where every transaction touches two schemas.
    pub(super) cross_cpu_ratios: Vec<f64>,
    /// Bytes that a holder is sent, whatever for, by bytes of all transactions in blocks.
    pub(super) bytes_ratios: Vec<f64>,
    /// Microseconds of CPU per transaction: of the validator, of each holder, of a member's node that holds everything; within schemas.
    pub(super) cpu_micros: Vec<[f64; 3]>,
    /// The same where every transaction touches two schemas.
    pub(super) cross_cpu_micros: Vec<[f64; 3]>,
    /// Transactions per second within schemas and over two.
    pub(super) tps: Vec<[f64; 2]>,
    /// The same ratio with so many of a hundred transactions over two schemas (figure 16 of paper 001).
    pub(super) mixes: Vec<Mix>,
    /// One of the eight schemas goes to a fifth holder, under load.
    pub(super) added: Added,
}

/// What a mix of calls within schemas and over two costs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Mix {
    crossing_percent: u8,
    cpu_ratio: f64,
    tps: f64,
}

/// How a schema goes to another node.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Added {
    /// Seconds in which the organisation's gateway did not serve: its validator has stopped in good order and started again with
    /// another holder.
    pub(super) pause_seconds: f64,
    /// Of these, from the start of both nodes on.
    pub(super) start_seconds: f64,
    /// Seconds until it was level with the others, whose load went on.
    pub(super) level_seconds: f64,
    /// Rows that have moved.
    pub(super) rows: u64,
    /// Seconds that a member's node takes that executes all blocks of its ledger again.
    pub(super) replay_seconds: f64,
    /// Blocks and transactions of that ledger.
    pub(super) replayed: [u64; 2],
    /// That by `start_seconds`.
    pub(super) replay_by_start: f64,
}

/// What is measured.
pub(super) struct SparseOptions {
    pub(super) customers: u64,
    pub(super) rounds: u64,
    pub(super) time: Duration,
    pub(super) warm_up: Duration,
    pub(super) port_base: u16,
}

struct SparseNetwork {
    nodes: RunningNodes,
    clients: Vec<Client>,
    gateways: Vec<SocketAddr>,
    customers: u64,
    loads: u64,
    /// Transactions of the loads so far.
    transactions: u64,
    bytes_per_transaction: f64,
    folder: PathBuf,
}

/// Transactions of a load, and what they cost.
struct Cost {
    transactions: f64,
    tps: f64,
    /// CPU seconds of the members' nodes, the validator's first, and of the holders.
    nodes: Vec<f64>,
    holders: Vec<f64>,
    bytes: f64,
}

impl Cost {
    /// CPU of a member's node that holds everything.
    fn full(&self) -> f64 {
        self.nodes[1..].iter().sum::<f64>() / (NODES - 1) as f64
    }

    /// CPU of four such nodes by that of the validator and its four holders.
    fn ratio(&self) -> f64 {
        HOLDERS as f64 * self.full() / (self.nodes[0] + self.holders.iter().sum::<f64>())
    }

    fn micros(&self) -> [f64; 3] {
        let holders = self.holders.iter().sum::<f64>() / HOLDERS as f64;
        [self.nodes[0], holders, self.full()].map(|seconds| seconds * 1e6 / self.transactions)
    }

    /// Bytes to each holder by bytes of all transactions.
    fn bytes_ratio(&self, bytes_per_transaction: f64) -> f64 {
        self.bytes / HOLDERS as f64 / (self.transactions * bytes_per_transaction)
    }
}

pub(super) fn measure(folder: &Path, options: &SparseOptions) -> Result<SparseFigures, CommandError> {
    let (port_base, store) = (options.port_base, StoreChoice::default());
    let network = MeasuredNetwork { name: "sparse", organisations: NODES, port_base, store };
    let network = network.create(folder, |_| Ok(()))?;
    let bank = |number: usize| format!("bank{}", number + 1);
    let mut holders = Vec::new();
    for holder in 0..HOLDERS {
        let at = folder.join(format!("org1-{}", holder + 1));
        let schemas = [bank(2 * holder), bank(2 * holder + 1)];
        place(&network.folders[0], &at, &schemas, (None, StoreChoice::default()))?;
        holders.push(at);
    }
    let mut nodes = RunningNodes::start(&[], None)?;
    holders.iter().try_for_each(|holder| nodes.start_holder(holder))?;
    nodes.start_more(&network.folders)?;
    let clients = nodes.clients(&network.clients)?;
    let gateways = nodes.postgres_addresses();
    let (customers, loads) = (options.customers, 0);
    let bytes_per_transaction = bench::bytes_per_call(&network.clients[0], customers)?;
    let (folder, transactions) = (folder.to_path_buf(), 0);
    let mut sparse = SparseNetwork {
        nodes,
        clients,
        gateways,
        customers,
        loads,
        transactions,
        bytes_per_transaction,
        folder,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(sparse.measure(options));
    if measured.is_err() {
        sparse.nodes.print_logs();
    }
    measured
}

impl SparseNetwork {
    async fn measure(&mut self, options: &SparseOptions) -> Result<SparseFigures, CommandError> {
        self.set_up().await?;
        self.load(0, options.warm_up).await?;
        self.load(100, options.warm_up).await?;
        let mut figures = SparseFigures::default();
        for round in 1..=options.rounds {
            let within = self.load(0, options.time).await?;
            let across = self.load(100, options.time).await?;
            figures.cpu_ratios.push(within.ratio());
            figures.cross_cpu_ratios.push(across.ratio());
            figures.bytes_ratios.push(within.bytes_ratio(self.bytes_per_transaction));
            figures.cpu_micros.push(within.micros());
            figures.cross_cpu_micros.push(across.micros());
            figures.tps.push([within.tps, across.tps]);
            eprintln!(
                "round {round}: within schemas {:.0} tps, CPU {:.2} times less than four full nodes, {:.2} of the bytes; over two schemas \
                 {:.0} tps, {:.2} times less",
                within.tps,
                within.ratio(),
                within.bytes_ratio(self.bytes_per_transaction),
                across.tps,
                across.ratio()
            );
        }
        for crossing_percent in MIXES {
            let cost = self.load(crossing_percent, options.time).await?;
            let mix = Mix { crossing_percent, cpu_ratio: cost.ratio(), tps: cost.tps };
            eprintln!(
                "{crossing_percent} % over two schemas: {:.0} tps, {:.2} times less",
                mix.tps, mix.cpu_ratio
            );
            figures.mixes.push(mix);
        }
        self.check_level().await?;
        figures.added = self.add_holder(options).await?;
        self.check_level().await?;
        Ok(figures)
    }

    /// Gives the last schema to a holder of its own while the other organisations' load goes on; and lets a member execute everything
    /// again.
    async fn add_holder(&mut self, options: &SparseOptions) -> Result<Added, CommandError> {
        let load = LoadOptions {
            customers: self.customers,
            skew: 0.0,
            pace: Pace::Open { rate: MOVING_TPS },
            seed: 1_000,
            submit: Submit::CallsInSchemas { schemas: BANKS, crossing_percent: 10 },
        };
        let load = Load::new(self.clients[1..].to_vec(), load)?;
        let stop = load.handle();
        let running = tokio::spawn(load.run(LEVEL_WITHIN, |_| {}));
        tokio::time::sleep(options.time).await;
        let begin = Instant::now();
        self.nodes.interrupt(0)?;
        let [last, added] = [HOLDERS, HOLDERS + 1].map(|number| self.folder.join(format!("org1-{number}")));
        let bank = |number: u8| [format!("bank{number}")];
        let validator = self.folder.join("org1");
        place(&validator, &last, &bank(BANKS - 1), (None, StoreChoice::default()))?;
        place(&validator, &added, &bank(BANKS), (None, StoreChoice::default()))?;
        let start = Instant::now();
        self.nodes.restart_holder(HOLDERS - 1, &last)?;
        self.nodes.start_holder(&added)?;
        self.nodes.restart(0)?;
        let status = loop {
            match self.clients[0].status().await {
                Ok(status) if status.not_serving.is_none() && status.height > 0 => break status,
                _ if begin.elapsed() > LEVEL_WITHIN => return Err("the validator does not come back".into()),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let (pause, start) = (begin.elapsed(), start.elapsed());
        let moved = status.holders.last().and_then(|holder| holder.rows).unwrap_or(3 * self.customers);
        self.check_level().await?;
        let level = begin.elapsed();
        stop.stop();
        running.await??;
        let mut added = Added {
            pause_seconds: pause.as_secs_f64(),
            start_seconds: start.as_secs_f64(),
            level_seconds: level.as_secs_f64(),
            rows: moved,
            ..Added::default()
        };
        self.replay(&mut added).await?;
        added.replay_by_start = added.replay_seconds / added.start_seconds;
        eprintln!(
            "a schema of {} rows goes to another node: its organisation pauses {:.1} s, {:.1} of them to start; executing {} blocks again takes \
             {:.1} s",
            added.rows, added.pause_seconds, added.start_seconds, added.replayed[0], added.replay_seconds
        );
        Ok(added)
    }

    /// The last member's node loses its state, and executes its whole ledger again.
    async fn replay(&mut self, added: &mut Added) -> Result<(), CommandError> {
        let member = NODES - 1;
        let height = self.clients[member].status().await?.height;
        self.nodes.kill(member)?;
        let folder = self.folder.join(format!("org{NODES}"));
        for lost in ["state", "checkpoints", "history"] {
            std::fs::remove_dir_all(folder.join(lost))?;
        }
        let path = folder.join("node.toml");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, format!("join = \"replay\"\n{text}"))?;
        let start = Instant::now();
        self.nodes.restart(member)?;
        loop {
            match self.clients[member].status().await {
                Ok(status) if status.height >= height => break,
                _ if start.elapsed() > REPLAY_WITHIN => {
                    return Err("a node does not execute its ledger again".into());
                }
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        added.replay_seconds = start.elapsed().as_secs_f64();
        added.replayed = [height, self.transactions];
        Ok(())
    }

    async fn set_up(&mut self) -> Result<(), CommandError> {
        let screen = Screen::default();
        self.nodes.wait_until_healthy(&self.clients, &screen).await?;
        let session = connect(self.gateways[1]).await?;
        let run = async |sql: &str| session.batch_execute(sql).await.map_err(|error| explain(sql, &error));
        for bank in 1..=BANKS {
            run(&format!("CREATE SCHEMA bank{bank}")).await?;
            run(&format!("SET search_path TO bank{bank}")).await?;
            for statement in Smallbank::statements() {
                run(statement).await?;
            }
            super::fill(&session, self.customers).await?;
        }
        for (bank, other) in (1..=BANKS).flat_map(|bank| (1..=BANKS).map(move |other| (bank, other))) {
            if bank == other {
                continue;
            }
            run(&format!(
                "CREATE PROCEDURE bank{bank}.pay_bank{other}(sender bigint, receiver bigint, amount bigint) LANGUAGE plpgsql AS $$ BEGIN
                   UPDATE bank{bank}.checking SET balance = balance - amount WHERE customer_id = sender AND balance >= amount;
                   IF NOT FOUND THEN RAISE EXCEPTION 'customer % cannot pay %', sender, amount; END IF;
                   UPDATE bank{other}.checking SET balance = balance + amount WHERE customer_id = receiver;
                 END $$"
            ))
            .await?;
        }
        Ok(())
    }

    async fn load(&mut self, crossing_percent: u8, time: Duration) -> Result<Cost, CommandError> {
        self.loads += 1;
        let options = LoadOptions {
            customers: self.customers,
            skew: 0.0,
            pace: Pace::Closed { submissions: SUBMISSIONS, transactions: TRANSACTIONS },
            seed: self.loads,
            submit: Submit::CallsInSchemas { schemas: BANKS, crossing_percent },
        };
        let (nodes, holders) = (self.nodes_seconds()?, self.holders_seconds()?);
        let bytes = self.holder_bytes().await?;
        let report = Load::new(self.clients.clone(), options)?.run(time, |_| {}).await?;
        self.nodes.check_alive()?;
        if report.unanswered > 0 {
            return Err(format!("{} transactions were refused, or got no receipt", report.unanswered).into());
        }
        self.transactions += report.committed + report.business_aborts;
        let since = |before: Vec<f64>, now: Vec<f64>| {
            now.iter().zip(before).map(|(now, before)| now - before).collect()
        };
        Ok(Cost {
            transactions: (report.committed + report.business_aborts) as f64,
            tps: report.throughput_tps,
            nodes: since(nodes, self.nodes_seconds()?),
            holders: since(holders, self.holders_seconds()?),
            bytes: self.holder_bytes().await? - bytes,
        })
    }

    fn nodes_seconds(&self) -> Result<Vec<f64>, CommandError> {
        let ids = (0..NODES).filter_map(|node| self.nodes.process_id(node));
        seconds(ids)
    }

    fn holders_seconds(&self) -> Result<Vec<f64>, CommandError> {
        seconds(self.nodes.holder_ids())
    }

    /// Bytes that the validator has sent to its holders.
    async fn holder_bytes(&self) -> Result<f64, CommandError> {
        let metrics = self.clients[0].metrics().await?;
        let sent = metrics.lines().filter(|line| line.starts_with("entente_holder_bytes_total"));
        let sent = sent.filter(|line| line.contains("way=\"sent\""));
        let bytes = sent.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        Ok(bytes.sum())
    }

    /// Who shares out comes to the same state as who does not.
    async fn check_level(&self) -> Result<(), CommandError> {
        let start = Instant::now();
        loop {
            let (one, other) = (self.clients[0].status().await?, self.clients[1].status().await?);
            let same = one.recent.iter().rev().find_map(|at| {
                let there = other.recent.iter().find(|there| there.height == at.height)?;
                Some((at.height, there.state_digest == at.state_digest))
            });
            match same {
                Some((_, true)) if one.diverged.is_none() => return Ok(()),
                Some((height, false)) => {
                    return Err(format!(
                        "the state behind block {height} differs between organisations 1 and 2"
                    )
                    .into());
                }
                _ if start.elapsed() > LEVEL_WITHIN => {
                    return Err("organisation 1 does not come level with organisation 2".into());
                }
                _ => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }
}

fn seconds(ids: impl Iterator<Item = u32>) -> Result<Vec<f64>, CommandError> {
    let of = |id: u32| {
        process_seconds(&id.to_string()).ok_or_else(|| format!("process {id} has no /proc/{id}/stat"))
    };
    Ok(ids.map(of).collect::<Result<_, _>>()?)
}
