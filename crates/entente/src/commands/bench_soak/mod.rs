//! `entente bench soak`: a network of processes under a steady load for an hour, while nodes are killed, join again and are stopped, the
//! charter changes, and old blocks are pruned. What has grown is named.
//!
//! ```text
//! minute:  load ───────────────────────────────────▶ latencies
//!            └─ 10 s ─▶ one event at one node         (samples of all nodes every ten seconds)
//! then:    all level ─▶ next minute, next node
//! ```

mod network;
mod process;

use crate::CommandError;
use crate::commands::bench_soak::network::SoakNetwork;
use crate::store::StoreArguments;
use bench::{SoakRecord, grouped, soak_growth, soak_report};
use clap::Args;
use node::PAYLOAD_BLOCKS_MIN;
use std::path::PathBuf;

/// Run a network for an hour and see what grows.
///
/// Four nodes are processes of this program. A load of so many transactions per second runs all the time. Every minute something
/// happens to one node: it is killed and started again, joins again without its ledger, is stopped in good order, asks for a
/// checkpoint, or the charter is amended. All nodes but the first prune. Memory, descriptors, threads, files and latencies are
/// plotted; what has grown from the middle third to the last one is named, and then the command ends with an error.
///
/// Example: entente bench soak --minutes 60 --out soak
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SoakArguments {
    /// How long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// Transactions per second
    #[arg(long, default_value_t = 300.0)]
    rate: f64,
    /// Customers of Smallbank
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    customers: u64,
    /// Of how many blocks all nodes but the first keep transactions
    #[arg(long, default_value_t = PAYLOAD_BLOCKS_MIN, value_parser = clap::value_parser!(u64).range(PAYLOAD_BLOCKS_MIN..))]
    payload_blocks: u64,
    #[command(flatten)]
    store: StoreArguments,
    /// First port of the network: Postgres is 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7600)]
    port_base: u16,
    /// What runs as nodes, such as another build of this program; this one by default
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where to write the record
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder for the page with the plots, and the samples as CSV
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &SoakArguments) -> Result<(), CommandError> {
    if !(1.0..=1e5).contains(&arguments.rate) {
        return Err("--rate: expected 1 to 100000 transactions per second".into());
    }
    let folder = tempfile::tempdir()?;
    let mut network = SoakNetwork::start(folder.path(), arguments)?;
    let soaked = soak(arguments, &mut network);
    if soaked.is_err() {
        network.print_logs();
    }
    let record = soaked?;
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&record)? + "\n";
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if let Some(out) = &arguments.out {
        soak_report(&record, out)?;
        println!("plots: {}", out.join("report.html").display());
    }
    verdict(&record)
}

fn soak(arguments: &SoakArguments, network: &mut SoakNetwork) -> Result<SoakRecord, CommandError> {
    let mut record = SoakRecord {
        nodes: network.nodes(),
        minutes: arguments.minutes,
        rate_tps: arguments.rate,
        payload_blocks: arguments.payload_blocks,
        ..SoakRecord::default()
    };
    for minute in 0..arguments.minutes {
        network.minute(minute, arguments.rate, &mut record)?;
        if let (Some(interval), Some(event)) = (record.intervals.last(), record.events.last()) {
            println!(
                "minute {:>3}: {:>10} at node {}; {:.0} tps, {:.0} and {:.0} ms, pause {:.1} s",
                minute + 1,
                event.kind,
                event.node + 1,
                interval.throughput_tps,
                interval.latency_ms.p50,
                interval.latency_ms.p99,
                interval.longest_pause_seconds
            );
        }
    }
    record.grew = soak_growth(&record.samples, &record.intervals);
    (record.height, record.state_digest) = network.agreed()?;
    Ok(record)
}

fn verdict(record: &SoakRecord) -> Result<(), CommandError> {
    println!("{} blocks; all nodes agree on the state {}", grouped(record.height), record.state_digest);
    if record.grew.is_empty() {
        println!("nothing has grown from the middle third of the time to the last one");
        return Ok(());
    }
    for growth in &record.grew {
        println!("{growth}");
    }
    Err(format!("{} figures have grown", record.grew.len()).into())
}
