use super::bench_analytics::{self, AnalyticsArguments};
use super::bench_anker;
use super::bench_attest::{self, AttestArguments};
use super::bench_chainify::{self, ChainifyBenchArguments};
use super::bench_faults::{self, FaultsArguments};
use super::bench_htap::{self, HtapArguments};
use super::bench_join::{self, JoinArguments};
use super::bench_pcp;
use super::bench_scale::{self, ScaleArguments};
use super::bench_shards::{self, ShardsArguments};
use super::bench_soak::{self, SoakArguments};
use super::bench_state::{self, GrowthArguments, StateArguments};
use super::bench_tpch::{self, TpchArguments};
use crate::CommandError;
use crate::store::StoreArguments;
use anker::AnkerArguments;
use bench::{
    EngineOptions, EngineRecord, EngineStore, ExperimentArguments, LaboratoryArguments, LaboratoryCommand,
    TpccArguments, endorse, engine_alone, laboratory, tpcc, tpcc_table,
};
use clap::{Args, Subcommand};
use pcp::PcpArguments;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure.
#[derive(Subcommand)]
pub(crate) enum BenchCommand {
    Engine(EngineArguments),
    /// Compare protocols with one another, with the papers and with PostgreSQL
    ///
    /// Runs the experiments of docs/experiments.toml. Example: entente bench protocols --quick --json protocols.json
    Protocols(LaboratoryArguments),
    /// Measure Harmony with and without its optimisations
    ///
    /// Example: entente bench ablation --quick --json ablation.json
    Ablation(LaboratoryArguments),
    /// Measure execute–order–validate: endorsement, Fabric++, Fabric#, XOX
    ///
    /// Runs the experiments of docs/endorse.toml. Example: entente bench endorse --quick --json endorse.json
    Endorse(ExperimentArguments),
    Tpcc(TpccArguments),
    State(StateArguments),
    Chainify(ChainifyBenchArguments),
    Growth(GrowthArguments),
    Attest(AttestArguments),
    Analytics(AnalyticsArguments),
    Tpch(TpchArguments),
    Htap(HtapArguments),
    Anker(AnkerArguments),
    Join(JoinArguments),
    Faults(FaultsArguments),
    Shards(ShardsArguments),
    Soak(SoakArguments),
    Pcp(PcpArguments),
    Scale(ScaleArguments),
}

/// Measure the engine alone: no network, no signatures, no ledger on the disk.
///
/// Example: entente bench engine --skew 1.5 --json engine.json
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct EngineArguments {
    /// What to run
    #[arg(long, default_value = "smallbank", value_parser = ["smallbank"])]
    workload: String,
    /// How conflicts are settled
    #[arg(long, default_value = "harmony", value_parser = concurrency::IDS)]
    protocol: String,
    /// Customers
    #[arg(long, default_value_t = 100_000)]
    customers: u64,
    /// Zipf exponent of the choice of customers; 0 is uniform
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// Threads of the core; as many as the machine has by default
    #[arg(long)]
    threads: Option<usize>,
    /// Transactions of an execution batch; as in a new charter by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    block: Option<u32>,
    /// Execution batches of a block; those of one block may overlap
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    batches: u32,
    /// What the charter promises of the order of a client's actions; under `serializable` those of two blocks may overlap
    #[arg(long, default_value = "strict", value_parser = ["strict", "serializable"])]
    consistency: String,
    /// Show each block to the engine when the one before is executed, so that batches of two blocks do not overlap
    #[arg(long)]
    one_by_one: bool,
    /// The point in the laboratory's words, such as `protocol=serial,skew=1.5`: keys are protocol, workload, skew,
    /// block_size, threads; they go before the options
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    store: StoreArguments,
    /// Seed of the workload
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Two seconds instead of ten
    #[arg(long)]
    quick: bool,
    /// Where to write the record
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn run(command: &BenchCommand) -> Result<(), CommandError> {
    match command {
        BenchCommand::Analytics(arguments) => bench_analytics::run(arguments),
        BenchCommand::Tpch(arguments) => bench_tpch::run(arguments),
        BenchCommand::Htap(arguments) => bench_htap::run(arguments),
        BenchCommand::Anker(arguments) => bench_anker::run(arguments),
        BenchCommand::Attest(arguments) => bench_attest::run(arguments),
        BenchCommand::Join(arguments) => bench_join::run(arguments),
        BenchCommand::Faults(arguments) => bench_faults::run(arguments),
        BenchCommand::Shards(arguments) => bench_shards::run(arguments),
        BenchCommand::Soak(arguments) => bench_soak::run(arguments),
        BenchCommand::Pcp(arguments) => bench_pcp::run(arguments),
        BenchCommand::Scale(arguments) => bench_scale::run(arguments),
        BenchCommand::State(arguments) => bench_state::run(arguments),
        BenchCommand::Chainify(arguments) => bench_chainify::run(arguments),
        BenchCommand::Growth(arguments) => bench_state::run_growth(arguments),
        BenchCommand::Engine(arguments) => engine(&arguments.narrowed()?),
        BenchCommand::Protocols(arguments) => experiments(LaboratoryCommand::Protocols, arguments),
        BenchCommand::Ablation(arguments) => experiments(LaboratoryCommand::Ablation, arguments),
        BenchCommand::Endorse(arguments) => {
            let measurements = endorse(arguments, &mut |text| eprintln!("{text}"))?;
            print_report(measurements.len(), &arguments.out);
            Ok(())
        }
        BenchCommand::Tpcc(arguments) => {
            let records = tpcc(arguments, &mut |text| eprintln!("{text}"))?;
            println!("{}", tpcc_table(&records));
            match records.iter().find(|record| !record.consistency_holds) {
                None => Ok(()),
                Some(record) => {
                    Err(format!("a consistency condition of TPC-C is broken by {}", record.protocol).into())
                }
            }
        }
    }
}

impl EngineArguments {
    /// With the values that `--only` names.
    fn narrowed(&self) -> Result<EngineArguments, CommandError> {
        let mut narrowed = self.clone();
        for text in &self.only {
            let wrong = |expected: &str| format!("--only expects {expected}, found `{text}`");
            let keys = "key=value with protocol, workload, skew, block_size or threads as key";
            let (key, value) = text.split_once('=').ok_or_else(|| wrong(keys))?;
            let whole = || value.parse().ok().filter(|number| (1..=65_000).contains(number));
            match key.trim() {
                "protocol" if concurrency::IDS.contains(&value) => narrowed.protocol = value.to_string(),
                "protocol" => {
                    return Err(wrong(&format!("as protocol one of {}", concurrency::IDS.join(", "))).into());
                }
                "workload" if value == self.workload => {}
                "workload" => return Err(wrong("smallbank as workload").into()),
                "skew" => narrowed.skew = value.parse().map_err(|_| wrong("a number as skew"))?,
                "block_size" => {
                    narrowed.block = Some(whole().ok_or_else(|| wrong("1 to 65000 as block_size"))?)
                }
                "threads" => {
                    let threads = whole().ok_or_else(|| wrong("1 to 65000 as threads"))?;
                    narrowed.threads = Some(threads as usize);
                }
                _ => return Err(wrong(keys).into()),
            }
        }
        Ok(narrowed)
    }
}

fn experiments(command: LaboratoryCommand, arguments: &LaboratoryArguments) -> Result<(), CommandError> {
    let measurements = laboratory(command, arguments, &mut |text| eprintln!("{text}"))?;
    print_report(measurements.len(), &arguments.run.out);
    Ok(())
}

fn print_report(points: usize, folder: &Path) {
    println!("{points} points; the report is {}", folder.join("report.html").display());
}

fn engine(arguments: &EngineArguments) -> Result<(), CommandError> {
    let default_batch = types::Charter::with_defaults("", 0).block.batch_transactions;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let folder = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let choice = arguments.store.choice();
    let store = EngineStore { name: choice.kind.name(), stores: choice.open(folder.path())? };
    let options = EngineOptions {
        protocol: arguments.protocol.clone(),
        customers: arguments.customers,
        skew: arguments.skew,
        threads: arguments.threads.unwrap_or(cores).max(1),
        block: arguments.block.unwrap_or(default_batch),
        batches: arguments.batches,
        consistency: match arguments.consistency.as_str() {
            "serializable" => types::Consistency::Serializable,
            _ => types::Consistency::Strict,
        },
        one_by_one: arguments.one_by_one,
        store,
        seed: arguments.seed,
        time: Duration::from_secs(if arguments.quick { 2 } else { 10 }),
    };
    let record = engine_alone(&options)?;
    print(&record);
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&record)?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if record.invariant_holds { Ok(()) } else { Err("Smallbank's money invariant is broken".into()) }
}

fn print(record: &EngineRecord) {
    println!(
        "{} by {}: {} customers, skew {}, {} threads, blocks of {} batches of {}",
        record.workload,
        record.protocol,
        record.customers,
        record.skew,
        record.threads,
        record.batches,
        record.block
    );
    println!(
        "{} tps; {} committed, {} business aborts, {} conflict aborts in {:.1} s; {:.3} executions per transaction; {:.0} MB",
        bench::grouped(record.throughput_tps as u64),
        bench::grouped(record.committed),
        bench::grouped(record.business_aborts),
        bench::grouped(record.conflict_aborts),
        record.seconds,
        record.executions_per_transaction,
        record.peak_memory_mb
    );
    let times = &record.times;
    let parts = [
        ("admit", times.admit),
        ("simulate, decide, place", times.protocol),
        ("apply", times.apply),
        ("digest", times.digest),
        ("receipts", times.receipts),
    ];
    let transactions = (record.committed + record.business_aborts + record.conflict_aborts).max(1) as f64;
    for (part, time) in parts {
        println!("  {part:24} {:6.2} µs per transaction", time.as_secs_f64() * 1e6 / transactions);
    }
}
