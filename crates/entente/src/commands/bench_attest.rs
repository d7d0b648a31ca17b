//! `entente bench attest`: what agreement on outcomes costs, on two networks of this machine that take turns. One attests,
//! and its clients are answered when outcomes are attested or when they are recorded; the other one attests nothing.

use super::figures::{median, processor_time};
use super::measured_network::MeasuredNetwork;
use crate::CommandError;
use crate::demo::prepare;
use crate::demo::screen::Screen;
use bench::{LatencyMs, Load, LoadOptions, LoadReport, Pace, Submit};
use clap::Args;
use client::Client;
use comfy_table::{Table, presets};
use node::{Node, NodeFolder, NodeOptions, StoreChoice};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use types::AnswerAt;

/// Organisations of each network.
const ORGANISATIONS: usize = 4;
/// As far as a charter lets ordering be ahead: what the network that attests nothing can ever order.
const OUTCOME_LAG_BLOCKS: u32 = 10_000;
/// Submissions under way at each gateway, and transactions of each.
const PACE: Pace = Pace::Closed { submissions: 4, transactions: 400 };

/// Measure what agreement on outcomes costs.
///
/// Example: entente bench attest --quick --json attest.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AttestArguments {
    /// Customers of Smallbank
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    customers: u64,
    /// Rounds in which everybody takes a turn; the figures are medians over them [default: 5, with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// Seconds of a turn [default: 10, with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// First port of the networks: the second one begins 10 higher, Postgres is 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7400)]
    port_base: u16,
    /// Short turns
    #[arg(long)]
    quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One way to agree, or not.
#[derive(Clone, Debug, Serialize)]
struct AttestRecord {
    /// `attested`, `recorded`, or `none`: nothing is attested.
    answer_at: &'static str,
    /// Median over the rounds of committed transactions per second.
    committed_tps: f64,
    /// The same of each round.
    rounds_tps: Vec<f64>,
    /// Throughput as a part of that without attestations: the median over rounds of their ratios.
    ratio: f64,
    /// Median over the rounds of processor time per committed transaction, in microseconds: four nodes and their clients.
    /// It says what attesting costs also on a machine that others use meanwhile.
    cpu_us: f64,
    /// Medians over the rounds, from submission to receipt.
    latency_ms: LatencyMs,
}

/// One load.
struct Turn {
    report: LoadReport,
    cpu_us: f64,
}

struct TestNetwork {
    nodes: Vec<Node>,
    clients: Vec<Client>,
}

pub(crate) fn run(arguments: &AttestArguments) -> Result<(), CommandError> {
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 5 });
    let seconds = arguments.seconds.unwrap_or(if arguments.quick { 3 } else { 10 });
    let folder = std::env::temp_dir().join(format!("entente-attest-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = measure(arguments, &runtime, &folder, (rounds, Duration::from_secs(seconds)));
    // What cannot be removed is in the system's folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    let records = measured?;
    println!("{}", table(&records));
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&records)? + "\n")?;
    }
    Ok(())
}

fn measure(
    arguments: &AttestArguments,
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    (rounds, time): (u64, Duration),
) -> Result<Vec<AttestRecord>, CommandError> {
    let attesting = start(arguments, runtime, &folder.join("attesting"), arguments.port_base, false)?;
    let silent = start(arguments, runtime, &folder.join("silent"), arguments.port_base + 10, true)?;
    let as_asked =
        |moment| attesting.clients.iter().map(|client| client.clone().answered_at(moment)).collect();
    let turns: [(&'static str, Vec<Client>); 3] = [
        ("attested", as_asked(AnswerAt::Attested)),
        ("recorded", as_asked(AnswerAt::Recorded)),
        ("none", silent.clients.clone()),
    ];
    let mut reports: [Vec<Turn>; 3] = Default::default();
    for round in 0..rounds {
        // Who begins changes from round to round.
        for turn in (0..turns.len()).map(|turn| (turn + round as usize) % turns.len()) {
            let (name, clients) = &turns[turn];
            let options = LoadOptions {
                customers: arguments.customers,
                skew: 0.0,
                pace: PACE,
                seed: round * 3 + turn as u64 + 1,
                submit: Submit::Calls,
            };
            let before = processor_time()?;
            let report = runtime.block_on(Load::new(clients.clone(), options)?.run(time, |_| {}))?;
            eprintln!("round {} {name}: {:.0} transactions per second", round + 1, report.throughput_tps);
            let cpu_us = (processor_time()? - before).as_secs_f64() * 1e6 / report.committed.max(1) as f64;
            reports[turn].push(Turn { report, cpu_us });
        }
    }
    for node in attesting.nodes.into_iter().chain(silent.nodes) {
        node.stop();
    }
    let baseline: Vec<f64> = reports[2].iter().map(|turn| turn.report.throughput_tps).collect();
    let names = turns.iter().map(|(name, _)| *name);
    Ok(names.zip(&reports).map(|(name, reports)| record(name, reports, &baseline)).collect())
}

fn start(
    arguments: &AttestArguments,
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    port_base: u16,
    attests_nothing: bool,
) -> Result<TestNetwork, CommandError> {
    let store = StoreChoice::default();
    let network = MeasuredNetwork { name: "attest", organisations: ORGANISATIONS, port_base, store };
    let network = network.create(folder, |charter| {
        charter.outcome_lag_blocks = OUTCOME_LAG_BLOCKS;
        Ok(())
    })?;
    let (mut nodes, mut clients, mut gateways) = (Vec::new(), Vec::new(), Vec::<SocketAddr>::new());
    for (path, identity) in network.folders.iter().zip(&network.clients) {
        let mut folder = NodeFolder::open(path)?;
        if attests_nothing {
            folder.config.answer_at = AnswerAt::Recorded;
        }
        clients.push(Client::new(&format!("http://{}", folder.config.http), identity.clone())?);
        gateways.push(folder.config.postgres);
        nodes.push(Node::start_with(folder, NodeOptions { attests_nothing, ..NodeOptions::default() })?);
    }
    let screen = Screen::default();
    runtime.block_on(prepare::create_smallbank(&gateways, &screen))?;
    runtime.block_on(prepare::load_customers(&gateways, arguments.customers, &screen))?;
    Ok(TestNetwork { nodes, clients })
}

fn record(answer_at: &'static str, turns: &[Turn], baseline: &[f64]) -> AttestRecord {
    let of = |figure: fn(&Turn) -> f64| median(turns.iter().map(figure).collect());
    let ratios = turns.iter().zip(baseline).map(|(turn, baseline)| turn.report.throughput_tps / baseline);
    AttestRecord {
        answer_at,
        committed_tps: of(|turn| turn.report.throughput_tps),
        rounds_tps: turns.iter().map(|turn| turn.report.throughput_tps).collect(),
        ratio: median(ratios.collect()),
        cpu_us: of(|turn| turn.cpu_us),
        latency_ms: LatencyMs {
            p50: of(|turn| turn.report.latency_ms.p50),
            p99: of(|turn| turn.report.latency_ms.p99),
        },
    }
}

fn table(records: &[AttestRecord]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["answered at", "committed tps", "of none", "cpu us", "p50 ms", "p99 ms"]);
    for record in records {
        table.add_row([
            record.answer_at.to_string(),
            format!("{:.0}", record.committed_tps),
            format!("{:.3}", record.ratio),
            format!("{:.0}", record.cpu_us),
            format!("{:.1}", record.latency_ms.p50),
            format!("{:.1}", record.latency_ms.p99),
        ]);
    }
    table
}
