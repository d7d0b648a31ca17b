//! `entente bench shards`: what schemas with members cost, and what it saves that several nodes share an organisation's schemas out.

mod sparse;

use super::figures::median;
use super::measured_network::MeasuredNetwork;
use crate::CommandError;
use crate::demo::load::TRANSACTIONS;
use crate::demo::nodes::RunningNodes;
use crate::demo::prepare::{self, connect, explain};
use crate::demo::screen::Screen;
use bench::{Load, LoadOptions, Pace, PartsLoadOptions, PartsLoadReport, Submit, parts_load};
use clap::Args;
use client::Client;
use futures::SinkExt;
use node::StoreChoice;
use serde::Serialize;
use sparse::{SparseFigures, SparseOptions};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use types::format_value;
use workloads::smallbank::Smallbank;

const NODES: usize = 4;
/// The schemas of all four organisations, each with Smallbank in it.
const ALL: [&str; 2] = ["bank", "fund"];
/// The schema of the first three, which has nothing to do with the fourth one.
const THREE: &str = "three";
/// The member that falls silent: its node orders blocks as ever, and holds no schema.
const SILENT: usize = 3;
/// The schema of the first two, with something that nobody else may see.
const PAIR: &str = "pair";
const CANARY: &str = "CANARY-5f0d2c1b9a";
/// Customers of each of eight banks at most.
const SPARSE_CUSTOMERS_MAX: u64 = 20_000;
const WARM_UP: Duration = Duration::from_secs(3);
/// Submissions under way at each gateway.
const SUBMISSIONS: usize = 2;

/// Measure what schemas with members cost: the same calls on everybody's tables, in a schema of all four organisations, and in two.
///
/// Four nodes and the clients share this machine. Loads take turns, so that whatever else the machine does meets all alike.
/// Afterwards all nodes' files are searched for a value that only two organisations may have.
///
/// Then organisation 4 falls silent in its schemas: what others do in a schema of theirs goes on, and so do transactions in two
/// schemas of which it is a member.
///
/// At last another network: organisation 1 has a validator and four nodes that hold two of eight schemas each; the others' nodes hold
/// everything. What they use of the processor is compared.
///
/// Example: entente bench shards --quick --json shards.json
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShardsArguments {
    /// Customers of each bank
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    customers: u64,
    /// Seconds of each load [default: 10, with --quick 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Rounds, each with a load on everybody's tables and one in the schema [default: 5, with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// First port of the network: Postgres is 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7500)]
    port_base: u16,
    /// Few and short loads: under four minutes
    #[arg(long)]
    quick: bool,
    /// Where to write the record
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What `--json` writes; its keys are an interface.
#[derive(Debug, Serialize)]
struct ShardsRecord {
    /// CPU per transaction of four members' nodes that hold everything by that of a validator and four nodes that hold two of eight
    /// schemas each.
    sparse_cpu_ratio: f64,
    /// Bytes that each of those four is sent by bytes of all transactions.
    block_bytes_ratio: f64,
    /// The first ratio where every transaction touches two schemas.
    cross_cpu_ratio: f64,
    /// Throughput in a schema of all four organisations by that of the same calls on everybody's tables.
    private_throughput_ratio: f64,
    /// Blocks from a transaction with two parts to its decision.
    decision_blocks_median: f64,
    /// Throughput in a schema of three organisations while transactions in two schemas of all four go on: with organisation 4 silent
    /// by without.
    silent_member_ratio: f64,
    /// Files of organisations that are no members in which the value was found.
    canaries_seen: usize,
    /// Transactions per second on everybody's tables, by round.
    shared_tps: Vec<f64>,
    /// Transactions per second in the schema, by round.
    private_tps: Vec<f64>,
    /// The same with parts in two schemas.
    two_parts_tps: Vec<f64>,
    /// Of these, and of those with a silent member, how many were not decided within the window.
    undecided: u64,
    /// Twice their throughput by that of one part: 1 where two parts cost as much as two transactions.
    two_parts_ratio: f64,
    /// What the first three are made of, by round.
    sparse: SparseFigures,
}

/// Transactions per second, by round.
#[derive(Default)]
struct Throughput {
    shared: Vec<f64>,
    private: Vec<f64>,
    two_parts: Vec<f64>,
    decision_blocks: f64,
    undecided: u64,
    /// In a schema of three, beside transactions in two schemas of four.
    beside: Vec<f64>,
    /// The same with a silent member.
    beside_silent: Vec<f64>,
}

struct ShardsNetwork {
    nodes: RunningNodes,
    folders: Vec<PathBuf>,
    clients: Vec<Client>,
    gateways: Vec<SocketAddr>,
    customers: u64,
    loads: u64,
    undecided: u64,
}

pub(crate) fn run(arguments: &ShardsArguments) -> Result<(), CommandError> {
    let folder = tempfile::tempdir()?;
    let (port_base, store) = (arguments.port_base, StoreChoice::default());
    let network = MeasuredNetwork { name: "shards", organisations: NODES, port_base, store };
    let network = network.create(folder.path(), |_| Ok(()))?;
    let nodes = RunningNodes::start(&network.folders, None)?;
    let (clients, gateways) = (nodes.clients(&network.clients)?, nodes.postgres_addresses());
    let (folders, customers) = (network.folders.clone(), arguments.customers);
    let mut shards = ShardsNetwork { nodes, folders, clients, gateways, customers, loads: 0, undecided: 0 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(shards.measure(arguments));
    if measured.is_err() {
        shards.nodes.print_logs();
    }
    let Throughput { shared, private, two_parts, decision_blocks, undecided, beside, beside_silent } =
        measured?;
    shards.nodes.stop();
    let canaries_seen: usize = network.folders[2..].iter().map(|folder| files_with(folder, CANARY)).sum();
    if network.folders[..2].iter().any(|folder| files_with(folder, CANARY) == 0) {
        return Err("a member has not the value that it must have: the search finds nothing".into());
    }
    let sparse = measure_sparse(arguments)?;
    let record = ShardsRecord {
        sparse_cpu_ratio: median(sparse.cpu_ratios.clone()),
        block_bytes_ratio: median(sparse.bytes_ratios.clone()),
        cross_cpu_ratio: median(sparse.cross_cpu_ratios.clone()),
        private_throughput_ratio: median(private.clone()) / median(shared.clone()),
        decision_blocks_median: decision_blocks,
        silent_member_ratio: median(beside_silent) / median(beside),
        canaries_seen,
        undecided,
        two_parts_ratio: 2.0 * median(two_parts.clone()) / median(private.clone()),
        shared_tps: shared,
        private_tps: private,
        two_parts_tps: two_parts,
        sparse,
    };
    println!(
        "a schema of all four: {:.0} tps, everybody's tables: {:.0} tps; ratio {:.2}",
        median(record.private_tps.clone()),
        median(record.shared_tps.clone()),
        record.private_throughput_ratio
    );
    println!(
        "two such schemas in one transaction: {:.0} tps, {:.2} of half of one; decided within {decision_blocks:.0} blocks (median), {undecided} not in time",
        median(record.two_parts_tps.clone()),
        record.two_parts_ratio
    );
    println!("a schema of three while a member of others is silent: {:.2}", record.silent_member_ratio);
    println!("canaries seen: {canaries_seen}");
    println!(
        "eight schemas at four nodes: {:.2} times less CPU than four full nodes, {:.2} of the bytes per node; all calls over two schemas: \
         {:.2} times less",
        record.sparse_cpu_ratio, record.block_bytes_ratio, record.cross_cpu_ratio
    );
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&record)? + "\n";
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// The schemas of one organisation at several nodes, in a network of its own.
fn measure_sparse(arguments: &ShardsArguments) -> Result<SparseFigures, CommandError> {
    let folder = tempfile::tempdir()?;
    let options = SparseOptions {
        customers: arguments.customers.min(SPARSE_CUSTOMERS_MAX),
        rounds: arguments.rounds(),
        time: arguments.time(),
        warm_up: WARM_UP,
        port_base: arguments.port_base,
    };
    sparse::measure(folder.path(), &options)
}

impl ShardsArguments {
    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(if self.quick { 5 } else { 10 }))
    }

    fn rounds(&self) -> u64 {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }
}

impl ShardsNetwork {
    async fn measure(&mut self, arguments: &ShardsArguments) -> Result<Throughput, CommandError> {
        let (time, rounds) = (arguments.time(), arguments.rounds());
        self.set_up().await?;
        self.shared(WARM_UP).await?;
        self.private(&ALL[..1], WARM_UP).await?;
        self.private(&ALL, WARM_UP).await?;
        let mut measured = Throughput::default();
        for round in 1..=rounds {
            let shared = self.shared(time).await?;
            let (private, two) = (self.private(&ALL[..1], time).await?, self.private(&ALL, time).await?);
            measured.shared.push(shared);
            measured.private.push(private);
            measured.two_parts.push(two);
            eprintln!(
                "round {round}: shared {shared:.0} tps, in a schema of all {private:.0} tps, in two of them {two:.0} tps"
            );
        }
        measured.decision_blocks = self.decision_blocks().await?;
        measured.beside = self.beside(rounds, time).await?;
        self.silence().await?;
        measured.beside_silent = self.beside(rounds, time).await?;
        measured.undecided = self.undecided;
        Ok(measured)
    }

    /// Median of the blocks from transactions to their decisions, over all nodes: the upper end of a histogram's bucket.
    async fn decision_blocks(&self) -> Result<f64, CommandError> {
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for client in &self.clients {
            for line in client.metrics().await?.lines() {
                let bucket = line.strip_prefix("entente_schemas_decision_blocks_bucket{le=\"");
                let Some((end, count)) = bucket.and_then(|bucket| bucket.split_once("\"} ")) else {
                    continue;
                };
                if let Ok(end) = end.parse::<f64>() {
                    *buckets.entry(end as u64).or_default() += count.parse::<u64>()?;
                }
            }
        }
        let all = buckets.values().max().copied().unwrap_or(0);
        let median = buckets.iter().find(|(_, below)| all > 0 && **below * 2 >= all);
        median.map(|(end, _)| *end as f64).ok_or_else(|| "no transaction in two schemas was decided".into())
    }

    async fn set_up(&mut self) -> Result<(), CommandError> {
        let screen = Screen::default();
        self.nodes.wait_until_healthy(&self.clients, &screen).await?;
        prepare::create_smallbank(&self.gateways, &screen).await?;
        prepare::load_customers(&self.gateways, self.customers, &screen).await?;
        let session = connect(self.gateways[0]).await?;
        let run = async |sql: &str| session.batch_execute(sql).await.map_err(|error| explain(sql, &error));
        run(&format!("CREATE SCHEMA {PAIR} MEMBERS (org1, org2)")).await?;
        run(&format!("CREATE TABLE {PAIR}.secrets (id int PRIMARY KEY, text text)")).await?;
        run(&format!("INSERT INTO {PAIR}.secrets VALUES (1, '{CANARY}')")).await?;
        for (schema, members) in ALL
            .map(|schema| (schema, "org1, org2, org3, org4"))
            .into_iter()
            .chain([(THREE, "org1, org2, org3")])
        {
            run(&format!("CREATE SCHEMA {schema} MEMBERS ({members})")).await?;
            run(&format!("SET search_path TO {schema}")).await?;
            for statement in Smallbank::statements() {
                run(statement).await?;
            }
            fill(&session, self.customers).await?;
            run("SET search_path TO public").await?;
        }
        Ok(())
    }

    async fn shared(&mut self, time: Duration) -> Result<f64, CommandError> {
        self.loads += 1;
        let options = LoadOptions {
            customers: self.customers,
            skew: 0.0,
            pace: Pace::Closed { submissions: SUBMISSIONS, transactions: TRANSACTIONS },
            seed: self.loads,
            submit: Submit::Calls,
        };
        let report = Load::new(self.clients.clone(), options)?.run(time, |_| {}).await?;
        self.nodes.check_alive()?;
        match report.unanswered {
            0 => Ok(report.throughput_tps),
            unanswered => Err(format!("{unanswered} transactions were refused, or got no receipt").into()),
        }
    }

    async fn private(&mut self, schemas: &[&str], time: Duration) -> Result<f64, CommandError> {
        let options = self.parts_options(schemas);
        let report = parts_load(&self.clients, &options, time).await?;
        self.note(&report)?;
        Ok(report.throughput_tps)
    }

    /// Transactions per second in the schema of three, by round, while others go on in two schemas of all four; through gateways of the
    /// three.
    async fn beside(&mut self, rounds: u64, time: Duration) -> Result<Vec<f64>, CommandError> {
        let clients = self.clients[..SILENT].to_vec();
        let mut found = Vec::new();
        for _ in 0..rounds {
            let (own, others) = (self.parts_options(&[THREE]), self.parts_options(&ALL));
            let (own, others) =
                tokio::join!(parts_load(&clients, &own, time), parts_load(&clients, &others, time));
            let (own, others) = (own?, others?);
            self.note(&own)?;
            self.note(&others)?;
            found.push(own.throughput_tps);
        }
        Ok(found)
    }

    /// From now on the last organisation's node holds no schema: it says nothing about parts, votes and outcomes.
    async fn silence(&mut self) -> Result<(), CommandError> {
        self.nodes.kill(SILENT)?;
        let path = self.folders[SILENT].join("node.toml");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, format!("schemas = []\n{text}"))?;
        self.nodes.restart(SILENT)?;
        self.nodes.wait_until_healthy(&self.clients, &Screen::default()).await?;
        Ok(())
    }

    fn parts_options(&mut self, schemas: &[&str]) -> PartsLoadOptions {
        self.loads += 1;
        PartsLoadOptions {
            schemas: schemas.iter().map(|schema| schema.to_string()).collect(),
            customers: self.customers,
            skew: 0.0,
            submissions: SUBMISSIONS,
            transactions: TRANSACTIONS,
            seed: self.loads,
        }
    }

    fn note(&mut self, report: &PartsLoadReport) -> Result<(), CommandError> {
        self.nodes.check_alive()?;
        self.undecided += report.undecided;
        match report.unanswered {
            0 => Ok(()),
            unanswered => Err(format!("{unanswered} transactions in schemas got no receipt").into()),
        }
    }
}

/// Copies the customers into the schema that the session looks into.
async fn fill(session: &tokio_postgres::Client, customers: u64) -> Result<(), CommandError> {
    for rows in Smallbank::new(customers, 0.0)?.rows(1, customers) {
        let mut text = String::new();
        for row in &rows.rows {
            let values: Vec<String> =
                row.iter().map(|value| format_value(value).unwrap_or_else(|| "\\N".to_string())).collect();
            writeln!(text, "{}", values.join("\t"))?;
        }
        let copy = format!("COPY {} ({}) FROM STDIN", rows.table, rows.columns.join(", "));
        let sink = session.copy_in(&copy).await.map_err(|error| explain(&copy, &error))?;
        let mut sink = std::pin::pin!(sink);
        sink.send(bytes::Bytes::from(text)).await?;
        sink.finish().await.map_err(|error| explain(&copy, &error))?;
    }
    Ok(())
}

/// How many files below a folder have this text. What cannot be read has nothing.
fn files_with(folder: &Path, text: &str) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let found = entries.flatten().map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return files_with(&path, text);
        }
        let content = std::fs::read(&path).unwrap_or_default();
        usize::from(content.windows(text.len()).any(|window| window == text.as_bytes()))
    });
    found.sum()
}
