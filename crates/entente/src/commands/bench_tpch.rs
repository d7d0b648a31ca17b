//! `entente bench tpch`: the 22 queries of TPC-H here, in PostgreSQL and in DuckDB, on the same rows.

use crate::CommandError;
use crate::store::StoreArguments;
use analytics::DataFusion;
use bench::{EntentePlace, TpchOptions, TpchRecord, tpch_table};
use clap::Args;
use node::StoreKind;
use sql::RunFragments;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Measure the 22 queries of TPC-H in Entente, PostgreSQL and DuckDB, on the same rows and with one thread each.
///
/// Entente runs in this process, on a store in memory or on the disk, with no index but the primary keys. PostgreSQL is installed if it is missing
/// and this is root; DuckDB comes through pip and needs python3 and a network. A system that cannot be had is left out, and the
/// command says why. A query that a system refuses, or does not end in time, is a record that says so. Rows that are not
/// PostgreSQL's make the command fail at its end.
///
/// Example: entente bench tpch --scale 0.1 --queries q1,q5 --json tpch.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct TpchArguments {
    /// Scale of TPC-H, 0.001 to 1000: 1 has 8.7 million rows, six of them in lineitem
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Rounds in which every system answers every query, after one to get warm; the figures are medians over them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    /// What is measured
    #[arg(
        long,
        value_delimiter = ',',
        default_values = TpchOptions::SYSTEMS,
        value_parser = TpchOptions::SYSTEMS
    )]
    systems: Vec<String>,
    /// What is asked [default: all]
    #[arg(
        long,
        value_delimiter = ',',
        default_values = TpchOptions::QUERIES,
        hide_default_value = true,
        hide_possible_values = true,
        value_parser = TpchOptions::QUERIES
    )]
    queries: Vec<String>,
    /// Seconds that a query may take in a system
    #[arg(long, default_value_t = 120.0)]
    seconds_max: f64,
    /// Entente reads rows, not columns
    #[arg(long)]
    without_columns: bool,
    #[command(flatten)]
    store: StoreArguments,
    /// Memory that copies of tables in columns may use, in units of 1,048,576 bytes [default: enough for all]
    #[arg(long, value_name = "MEGABYTES")]
    column_memory_megabytes: Option<u64>,
    /// Memory that a query may use, in units of 1,048,576 bytes
    #[arg(long, value_name = "MEGABYTES", default_value_t = 4_096, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    query_memory_megabytes: u64,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl TpchArguments {
    fn fragments(&self) -> Option<Arc<dyn RunFragments>> {
        (!self.without_columns).then(|| Arc::new(DataFusion::default()) as Arc<dyn RunFragments>)
    }

    fn place(&self, folder: &Path) -> Result<EntentePlace, CommandError> {
        let choice = self.store.choice();
        choice.check()?;
        let stores = (choice.kind == StoreKind::Disk).then(|| choice.open(folder)).transpose()?;
        let default = EntentePlace::default();
        let column_bytes = self.column_memory_megabytes.map(|megabytes| megabytes.saturating_mul(1 << 20));
        Ok(EntentePlace {
            stores,
            column_bytes: column_bytes.unwrap_or(default.column_bytes),
            query_bytes: self.query_memory_megabytes << 20,
        })
    }
}

pub(crate) fn run(arguments: &TpchArguments) -> Result<(), CommandError> {
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let options = TpchOptions {
        scale: arguments.scale,
        rounds: arguments.rounds as usize,
        systems: arguments.systems.clone(),
        queries: arguments.queries.clone(),
        seconds_max: arguments.seconds_max,
        fragments: arguments.fragments(),
        place: arguments.place(folder.path())?,
    };
    let records = bench::tpch(&options, &mut |text| eprintln!("{text}"))?;
    println!("{}", tpch_table(&records));
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&records)?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    let differs = |record: &&TpchRecord| record.rows_equal == Some(false);
    let differing: Vec<String> = records
        .iter()
        .filter(differs)
        .map(|record| format!("{} for {}", record.system, record.query))
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    Err(format!("other rows than PostgreSQL has: {}", differing.join(", ")).into())
}
