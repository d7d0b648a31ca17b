use crate::LaboratoryError;
use crate::arguments::check_positive;
use crate::machine;
use clap::Args;
use std::path::PathBuf;

/// The id of the database beside the protocols.
pub(super) const POSTGRES: &str = "postgres";

/// Measure TPC-C: all protocols and PostgreSQL in one run
///
/// Example: entente bench tpcc --warehouses 1,20 --json tpcc.json
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct TpccArguments {
    /// Numbers of warehouses; one has about 500,000 rows and takes 0.4 GB in the engine
    #[arg(long, value_delimiter = ',', default_value = "1,20")]
    pub warehouses: Vec<u64>,
    /// Protocols, and `postgres`
    #[arg(long, value_delimiter = ',', default_value = "harmony,aria,ssi,block-stm,graph,serial,postgres")]
    pub protocols: Vec<String>,
    /// Transactions of an execution batch. Protocols that abort run what they gave up again in the next one, which takes
    /// Aria and SSI minutes where hundreds of transactions want the rows of one warehouse
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    pub block_size: u32,
    /// Threads of the core; as many as the machine has by default
    #[arg(long)]
    pub threads: Option<usize>,
    /// Rounds in which everybody takes a turn; the figures are medians over them [default: 3, with --quick 1]
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Seconds of a turn [default: 5, with --quick 1]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Customers of a district [default: 3000 as in the specification, with --quick 100]
    #[arg(long)]
    pub customers: Option<u64>,
    /// Items [default: 100000 as in the specification, with --quick 1000]
    #[arg(long)]
    pub items: Option<u64>,
    /// Seed of the calls
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A small population and short turns
    #[arg(long)]
    pub quick: bool,
    /// Where to write the records
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl TpccArguments {
    pub(super) fn check(&self) -> Result<(), LaboratoryError> {
        if let Some(found) = self.warehouses.iter().find(|found| !(1..=10_000).contains(*found)) {
            return Err(LaboratoryError::option("--warehouses", "numbers from 1 to 10000", found));
        }
        let known = |id: &String| id == POSTGRES || concurrency::IDS.contains(&id.as_str());
        if let Some(found) = self.protocols.iter().find(|id| !known(id)) {
            let expected = "protocols (serial, harmony, aria, ssi, graph, block-stm) and postgres";
            return Err(LaboratoryError::option("--protocols", expected, found));
        }
        if let Some(rounds) = self.rounds.filter(|rounds| !(1..=1_000).contains(rounds)) {
            return Err(LaboratoryError::option("--rounds", "1 to 1000", rounds));
        }
        if let Some(threads) = self.threads.filter(|threads| !(1..=1_024).contains(threads)) {
            return Err(LaboratoryError::option("--threads", "1 to 1024", threads));
        }
        check_positive("--seconds", self.seconds, 3_600.0, "more than 0, at most 3600")
    }

    pub(super) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.quick { 1.0 } else { 5.0 })
    }

    pub(super) fn customers(&self) -> u64 {
        self.customers.unwrap_or(if self.quick { 100 } else { 3_000 })
    }

    pub(super) fn items(&self) -> u64 {
        self.items.unwrap_or(if self.quick { 1_000 } else { 100_000 })
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(machine::cores)
    }
}
