//! `entente bench chainify`: databases that execute scripts, alone.

use crate::CommandError;
use bench::{ExecutingOptions, ExecutingPoint, executing};
use chainify::Kind;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Measure how fast an organisation's own database executes scripts: parallel and serial, skewed and uniform, by size of block.
///
/// One database at a time, without network, ordering and signatures: ChainifyDB's four transactions on Smallbank's tables, with
/// triggers that record every change (paper 002, figures 4.13 and 4.14). The servers are installed if they are missing, started
/// in temporary folders and stopped. The clock stands while scripts are made.
///
/// Example: entente bench chainify --database postgres,mariadb --seconds 5 --json chainify.json
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChainifyBenchArguments {
    /// Kinds of databases
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "postgres,mariadb")]
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

fn show(point: &ExecutingPoint) {
    let ExecutingPoint { database, skew, block, connections, as_sets, tps, failed_share } = point;
    let as_sets = if *as_sets { "yes" } else { "no" };
    let (block, tps) = (bench::grouped(*block as u64), bench::grouped(*tps as u64));
    println!(
        "{database:<9} {skew:>5} {block:>20} {connections:>13} {as_sets:>9} {tps:>20} {:>7.1} %",
        failed_share * 100.0
    );
}
