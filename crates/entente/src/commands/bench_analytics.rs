//! `entente bench analytics`: analytical queries here, in PostgreSQL and in DuckDB, on the same rows.

use crate::CommandError;
use analytics::DataFusion;
use bench::{AnalyticsOptions, AnalyticsRecord, analytics_table};
use clap::Args;
use sql::RunFragments;
use std::path::PathBuf;
use std::sync::Arc;

/// Measure analytical queries in Entente, PostgreSQL and DuckDB, on the same rows and with one thread each.
///
/// Five queries read tables of two to five columns, and queries 1 and 6 of TPC-H read its table lineitem. Entente runs in this
/// process, on a store in memory. PostgreSQL is installed if it is missing and this is root; DuckDB comes through pip and needs
/// python3 and a network. A system that cannot be had is left out, and the command says why.
///
/// Example: entente bench analytics --quick --json analytics.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AnalyticsArguments {
    /// Scale 0.1 of TPC-H instead of 1, and five rounds instead of eleven
    #[arg(long)]
    quick: bool,
    /// Rows of each of the two tables that the first five queries read
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: u64,
    /// Rounds in which every system answers every query; the figures are medians over them [default: 11, with --quick 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: Option<u64>,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What is measured
    #[arg(
        long,
        value_delimiter = ',',
        default_values = AnalyticsOptions::SYSTEMS,
        value_parser = AnalyticsOptions::SYSTEMS
    )]
    systems: Vec<String>,
    /// Entente reads rows, not columns
    #[arg(long)]
    without_columns: bool,
}

impl AnalyticsArguments {
    fn fragments(&self) -> Option<Arc<dyn RunFragments>> {
        (!self.without_columns).then(|| Arc::new(DataFusion::default()) as Arc<dyn RunFragments>)
    }
}

pub(crate) fn run(arguments: &AnalyticsArguments) -> Result<(), CommandError> {
    let (scale, rounds) = if arguments.quick { (0.1, 5) } else { (1.0, 11) };
    let options = AnalyticsOptions {
        rows: arguments.rows,
        scale,
        rounds: arguments.rounds.unwrap_or(rounds) as usize,
        systems: arguments.systems.clone(),
        fragments: arguments.fragments(),
    };
    let records = bench::analytics(&options, &mut |text| eprintln!("{text}"))?;
    println!("{}", analytics_table(&records));
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&records)?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let differs = |record: &&AnalyticsRecord| record.rows_equal == Some(false);
    match records.iter().find(differs) {
        None => Ok(()),
        Some(record) => {
            Err(format!("{} has other rows than PostgreSQL for {}", record.system, record.query).into())
        }
    }
}
