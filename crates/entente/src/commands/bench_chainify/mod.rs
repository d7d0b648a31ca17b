//! `entente bench chainify`: databases that execute scripts, alone or in whole networks.

mod experiments;
mod network;
mod record;
mod recovery;

use crate::CommandError;
use bench::{ExecutingOptions, ExecutingPoint, executing};
use chainify::Kind;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Measure how fast organisations' own databases execute scripts, alone or in whole networks.
///
/// Alone, one database at a time executes ChainifyDB's four transactions on Smallbank's tables, with triggers that record every
/// change: parallel and serial, skewed and uniform, by size of block (paper 002, figures 4.13 and 4.14). There is no network, no
/// ordering and no signature, and the clock stands while scripts are made.
///
/// With --network four organisations agree on what their databases did: throughput by clients and policy, beside execution in
/// the nodes and Fabric++ in the same run, what signatures cost, and how an organisation comes back whose rows somebody has
/// changed (figures 4.11 to 4.13, table 4.2). The servers are installed if they are missing, started in temporary folders and
/// stopped.
///
/// Example: entente bench chainify --database postgres,mariadb --seconds 5 --json chainify.json
/// Example: entente bench chainify --network --quick --json network.json
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChainifyBenchArguments {
    /// Kinds of databases that are measured alone
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        default_value = "postgres,mariadb",
        conflicts_with = "network"
    )]
    database: Vec<BenchKind>,
    /// Customers, with a savings and a checking account each
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    customers: u64,
    /// Seconds of each point
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seed of the workload
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure whole networks of four organisations, of which three have a database
    #[arg(long)]
    network: bool,
    /// With --network: the heterogeneous network and Fabric++ only, with the fewest and the most clients
    #[arg(long, requires = "network")]
    quick: bool,
    /// With --network: the first port. Postgres is 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7500, requires = "network")]
    port_base: u16,
    /// Where to write the record
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum BenchKind {
    Postgres,
    Mariadb,
}

pub(crate) fn run(arguments: &ChainifyBenchArguments) -> Result<(), CommandError> {
    if !(0.0..=3_600.0).contains(&arguments.seconds) {
        return Err(format!("--seconds: expected 0 to 3600, found {}", arguments.seconds).into());
    }
    if arguments.network {
        return run_networks(arguments);
    }
    let kind = |kind: &BenchKind| match kind {
        BenchKind::Postgres => Kind::Postgres,
        BenchKind::Mariadb => Kind::MariaDb,
    };
    let options = ExecutingOptions {
        kinds: arguments.database.iter().map(kind).collect(),
        customers: arguments.customers,
        time: Duration::from_secs_f64(arguments.seconds),
        seed: arguments.seed,
    };
    println!("database   Zipf   scripts of a block   connections   as sets   scripts per second   failed");
    let record = executing(&options, show)?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&record)?)?;
    }
    Ok(())
}

fn run_networks(arguments: &ChainifyBenchArguments) -> Result<(), CommandError> {
    let record = experiments::run(&experiments::NetworkExperiments {
        customers: arguments.customers,
        time: Duration::from_secs_f64(arguments.seconds),
        seed: arguments.seed,
        quick: arguments.quick,
        port_base: arguments.port_base,
    })?;
    println!("{}", record::table(&record));
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&record)?)?;
    }
    Ok(())
}

fn show(point: &ExecutingPoint) {
    let ExecutingPoint { database, skew, block, connections, as_sets, tps, failed_share } = point;
    let as_sets = if *as_sets { "yes" } else { "no" };
    let (block, tps) = (bench::grouped(*block as u64), bench::grouped(*tps as u64));
    println!(
        "{database:<9} {skew:>5} {block:>20} {connections:>13} {as_sets:>9} {tps:>20} {:>7.1} %",
        failed_share * 100.0
    );
}
