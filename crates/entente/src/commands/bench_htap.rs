//! `entente bench htap`: transactions of TPC-C and analytical questions side by side, here and in PostgreSQL.

use crate::CommandError;
use analytics::DataFusion;
use bench::{HtapOptions, HtapRecord, htap, htap_table};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Measure what analytical questions cost the transactions beside them, and the other way round.
///
/// TPC-C runs on one thread of the engine, and one question of the CH-benCHmark comes every --every-ms on another. In every round take
/// turns: transactions on a store without columns, on one with columns that nobody asks, and beside questions; then questions alone.
/// PostgreSQL gets the same transactions and questions.
///
/// Example: entente bench htap --warehouses 2 --json htap.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct HtapArguments {
    /// Warehouses of TPC-C; one has about 500,000 rows
    #[arg(long, default_value_t = 2)]
    warehouses: u64,
    /// What is measured
    #[arg(
        long,
        value_delimiter = ',',
        default_values = HtapOptions::SYSTEMS,
        value_parser = HtapOptions::SYSTEMS
    )]
    systems: Vec<String>,
    /// Rounds in which all loads take turns; the figures are medians over them [default: 5, with --quick 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of a load [default: 10, with --quick 1]
    #[arg(long)]
    seconds: Option<f64>,
    /// Milliseconds from the beginning of a question to that of the next one
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    every_ms: u64,
    /// Threads of the engine
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_024))]
    threads: u64,
    /// Transactions of an execution batch
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    block_size: u32,
    /// Seed of the calls
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small population and short loads
    #[arg(long)]
    quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: &HtapArguments) -> Result<(), CommandError> {
    let quick = arguments.quick;
    let options = HtapOptions {
        warehouses: arguments.warehouses,
        customers: if quick { 100 } else { 3_000 },
        items: if quick { 1_000 } else { 100_000 },
        systems: arguments.systems.clone(),
        rounds: arguments.rounds.unwrap_or(if quick { 1 } else { 5 }),
        seconds: arguments.seconds.unwrap_or(if quick { 1.0 } else { 10.0 }),
        every: Duration::from_millis(arguments.every_ms),
        threads: arguments.threads as usize,
        block_size: arguments.block_size,
        seed: arguments.seed,
        fragments: Arc::new(DataFusion::default()),
    };
    let records = htap(&options, &mut |text| eprintln!("{text}"))?;
    println!("{}", htap_table(&records));
    match &arguments.json {
        Some(path) => write(path, &records),
        None => Ok(()),
    }
}

fn write(path: &Path, records: &[HtapRecord]) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(records)?;
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
