//! `entente demo`: four organisations on one machine, in one command.

pub(crate) mod nodes;
pub(crate) mod prepare;
pub(crate) mod report;

use crate::model::ModelArguments;
use crate::{CommandError, terminal};
use bench::{Load, LoadOptions, LoadReport, Pace};
use clap::Args;
use client::Client;
use indicatif::{ProgressBar, ProgressStyle};
use node::{Network, NetworkOptions};
use nodes::RunningNodes;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;
use types::Charter;

/// Run a whole network on this machine: keys, charter, four nodes, Smallbank, load, checks, and psql lines to paste.
///
/// Example: entente demo --skew 1.0 --seconds 10
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DemoArguments {
    /// Organisations
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(4..=16))]
    orgs: u64,
    /// Customers of the bank
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    customers: u64,
    /// Seconds of load
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Zipf exponent of the choice of customers; 0 is uniform
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// Transactions per second, answered or not (open loop); without it as many as get answers (closed loop)
    #[arg(long)]
    rate: Option<f64>,
    #[command(flatten)]
    model: ModelArguments,
    /// Folder of the network; a temporary one, removed at the end, by default
    #[arg(long)]
    dir: Option<PathBuf>,
    /// First port: nodes from here, Postgres 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7000)]
    port_base: u16,
    /// Stop after the run instead of waiting for Ctrl-C
    #[arg(long)]
    exit: bool,
    /// Where to write the result
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Submissions under way at each gateway, and transactions of each, in a closed loop.
const CLOSED_LOOP: Pace = Pace::Closed { submissions: 2, transactions: 400 };

pub(crate) fn run(arguments: &DemoArguments) -> Result<(), CommandError> {
    let skew = arguments.skew;
    workloads::smallbank::Smallbank::new(arguments.customers, skew)?;
    if arguments.rate.is_some_and(|rate| !(1.0..=1e6).contains(&rate)) {
        return Err("--rate: expected 1 to 1000000 transactions per second".into());
    }
    let interruptions = terminal::interruptions()?;
    let folder = DemoFolder::new(arguments.dir.as_deref())?;
    let network = create_network(arguments, &folder.path)?;
    let mut nodes = RunningNodes::start(&network.folders, None)?;
    let outcome = exercise(arguments, &network, &mut nodes, &interruptions);
    if outcome.is_err() {
        nodes.print_logs();
    }
    nodes.stop();
    drop(folder);
    outcome
}

/// Everything that happens while the nodes run.
fn exercise(
    arguments: &DemoArguments,
    network: &Network,
    nodes: &mut RunningNodes,
    interruptions: &Receiver<()>,
) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let clients = nodes.clients(&network.clients)?;
    runtime.block_on(nodes.wait_until_healthy(&clients))?;
    let gateways = nodes.postgres_addresses();
    runtime.block_on(prepare::create_smallbank(&gateways))?;
    runtime.block_on(prepare::load_customers(&gateways, arguments.customers))?;
    let load = runtime.block_on(apply_load(arguments, &clients))?;
    let result = runtime.block_on(report::check(arguments, network, &clients, &gateways, load))?;
    report::print(&result);
    if let Some(path) = &arguments.json {
        report::write_json(&result, path)?;
    }
    report::print_invitation(network, &gateways, arguments.exit);
    result.verdict()?;
    if arguments.exit {
        return Ok(());
    }
    while interruptions.recv_timeout(Duration::from_secs(1)).is_err() {
        nodes.check_alive()?;
    }
    println!("\nstopping the nodes");
    Ok(())
}

fn create_network(arguments: &DemoArguments, path: &Path) -> Result<Network, CommandError> {
    let mut charter = Charter::with_defaults("demo", u64::from_be_bytes(crypto::random_bytes()));
    // So that one terminal is enough to try everything; the demo says so.
    charter.governance = "any".to_string();
    arguments.model.apply(&mut charter)?;
    let options = NetworkOptions {
        organisations: arguments.orgs as usize,
        port_base: arguments.port_base,
        threads: 2,
        pipeline: arguments.model.pipeline(),
        charter,
    };
    let network = Network::create(path, &options)?;
    println!("keys and a charter for {} organisations in {}", arguments.orgs, path.display());
    Ok(network)
}

async fn apply_load(arguments: &DemoArguments, clients: &[Client]) -> Result<LoadReport, CommandError> {
    let options = LoadOptions {
        customers: arguments.customers,
        skew: arguments.skew,
        pace: arguments.rate.map_or(CLOSED_LOOP, |rate| Pace::Open { rate }),
        seed: 1,
    };
    let load = Load::new(clients.to_vec(), options)?;
    let line = ProgressBar::new_spinner();
    line.set_style(ProgressStyle::with_template("{spinner} load       {msg}")?);
    let (mut before, mut second) = (0, 0);
    let seconds = arguments.seconds;
    let report = load
        .run(Duration::from_secs(seconds), |progress| {
            second += 1;
            let text = format!(
                "{second:3}/{seconds} s  height {:6}  {:>7} tps  p50 {:6.1} ms  p99 {:6.1} ms",
                progress.height,
                bench::grouped(progress.committed - before),
                progress.latency_ms.p50,
                progress.latency_ms.p99
            );
            before = progress.committed;
            if line.is_hidden() {
                println!("load       {text}");
            }
            line.set_message(text);
            line.tick();
        })
        .await?;
    line.finish();
    Ok(report)
}

/// The folder of the network; a temporary one disappears with this value.
struct DemoFolder {
    path: PathBuf,
    temporary: bool,
}

impl DemoFolder {
    fn new(chosen: Option<&Path>) -> Result<DemoFolder, CommandError> {
        if let Some(path) = chosen {
            return Ok(DemoFolder { path: path.to_path_buf(), temporary: false });
        }
        let path = std::env::temp_dir().join(format!("entente-demo-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(DemoFolder { path, temporary: true })
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in the system's folder for temporary files.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
