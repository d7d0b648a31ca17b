use crate::AnkerError;
use crate::figures;
use crate::system::System;
use crate::tpcc::Scale;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Repeat AnKerDB's tables and figures: transactions and analytics in one storage, with five kinds of snapshots.
///
/// The paper's own figures stand in brackets beside ours; those of its system call vm_snapshot, which needs a kernel of its own, are quoted only.
/// Under the stock vm.max_map_count rewiring is refused where many pages of many columns are modified, and the table says so.
///
/// Example: entente bench anker --quick --json anker.json
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct AnkerArguments {
    /// What is measured: columns, copy, fork, rewire, see (one engine without snapshots), see-snapshot and see-uncommitted (the same
    /// under snapshot isolation and read uncommitted) [default: all]
    #[arg(long, value_delimiter = ',')]
    pub storage: Vec<String>,
    /// Tables and figures of the paper: table-2-1, table-2-2, figure-2-4, -2-5, -2-6, -2-8, -2-9, -2-10, -2-11 [default: all]
    #[arg(long, value_delimiter = ',')]
    pub experiment: Vec<String>,
    /// Warehouses of TPC-C; one has about 500,000 rows and takes 60 MB [default: 40, with --quick 1]
    #[arg(long)]
    pub warehouses: Option<usize>,
    /// Rows of TPC-H's LINEITEM where tables are scanned and columns snapshotted; ORDERS has a quarter, PART a thirtieth
    /// [default: 6000000, with --quick 300000]
    #[arg(long)]
    pub rows: Option<usize>,
    /// Megabytes of a column where snapshots are created; 200 in the paper [default: 40, with --quick 4]
    #[arg(long)]
    pub column_megabytes: Option<usize>,
    /// Seconds of transactions beside questions; 180 in the paper [default: 10, with --quick 1]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Streams of transactions; 6 in the paper
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Streams of questions
    #[arg(long, default_value_t = 1)]
    pub streams: usize,
    /// The most streams where streams vary [default: 6, with --quick 2]
    #[arg(long)]
    pub streams_max: Option<usize>,
    /// Milliseconds from the beginning of a stream's question to that of its next one
    #[arg(long, default_value_t = 500)]
    pub every_ms: u64,
    /// Rounds where snapshots are created; the figures are medians over them [default: 5, with --quick 2]
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seed of the calls
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Small tables and short runs
    #[arg(long)]
    pub quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What is measured, checked.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) systems: Vec<System>,
    experiments: Vec<&'static str>,
    pub(crate) scale: Scale,
    pub(crate) rows: usize,
    pub(crate) column_megabytes: usize,
    pub(crate) time: Duration,
    pub(crate) threads: usize,
    pub(crate) streams: usize,
    pub(crate) streams_max: usize,
    pub(crate) every: Duration,
    pub(crate) rounds: usize,
    pub(crate) seed: u64,
}

impl AnkerArguments {
    pub(crate) fn plan(&self) -> Result<Plan, AnkerError> {
        let or = |given: Option<usize>, full, quick| given.unwrap_or(if self.quick { quick } else { full });
        let systems = match self.storage.as_slice() {
            [] => System::ALL.to_vec(),
            names => names.iter().map(|name| System::named(name)).collect::<Result<_, _>>()?,
        };
        let seconds = self.seconds.unwrap_or(if self.quick { 1.0 } else { 10.0 });
        if !(0.01..=3_600.0).contains(&seconds) {
            return Err(AnkerError::option("--seconds", "0.01 to 3600", seconds));
        }
        let scale = Scale {
            warehouses: within("--warehouses", or(self.warehouses, 40, 1), 1, 1_000)?,
            customers: if self.quick { 300 } else { 3_000 },
            items: if self.quick { 10_000 } else { 100_000 },
        };
        let megabytes = or(self.column_megabytes, 40, 4);
        Ok(Plan {
            systems,
            experiments: self.experiments()?,
            scale,
            rows: within("--rows", or(self.rows, 6_000_000, 300_000), 1_000, 1_000_000_000)?,
            column_megabytes: within("--column-megabytes", megabytes, 1, 10_000)?,
            time: Duration::from_secs_f64(seconds),
            threads: within("--threads", self.threads, 1, 1_024)?,
            streams: within("--streams", self.streams, 1, 1_024)?,
            streams_max: within("--streams-max", or(self.streams_max, 6, 2), 1, 1_024)?,
            every: Duration::from_millis(within("--every-ms", self.every_ms as usize, 0, 3_600_000)? as u64),
            rounds: within("--rounds", or(self.rounds, 5, 2), 1, 1_000)?,
            seed: self.seed,
        })
    }

    fn experiments(&self) -> Result<Vec<&'static str>, AnkerError> {
        let known = figures::names();
        if self.experiment.is_empty() {
            return Ok(known);
        }
        let named = |name: &String| {
            let found = known.iter().copied().find(|known| known == name);
            let expected = || format!("some of {}", known.join(", "));
            found.ok_or_else(|| AnkerError::option("--experiment", expected(), format_args!("`{name}`")))
        };
        self.experiment.iter().map(named).collect()
    }
}

impl Plan {
    pub(crate) fn has(&self, experiment: &str) -> bool {
        self.experiments.contains(&experiment)
    }
}

fn within(option: &'static str, found: usize, least: usize, most: usize) -> Result<usize, AnkerError> {
    if (least..=most).contains(&found) {
        return Ok(found);
    }
    Err(AnkerError::option(option, format!("{least} to {most}"), found))
}
