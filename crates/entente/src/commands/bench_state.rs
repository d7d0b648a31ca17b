//! `entente bench state` and `entente bench growth`: states of any size in a store.

use crate::CommandError;
use crate::store::StoreArguments;
use bench::{
    ControlGroup, GrowthOptions, JoinedControlGroup, Percentiles, RunRecord, StateOptions, StateRecord,
    grouped, growth, state_bench,
};
use clap::{Args, ValueEnum};
use node::StoreKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The most customers that are loaded.
const CUSTOMERS_MAX: u64 = 100_000_000;

/// What both commands run.
#[derive(Args, Clone)]
struct LoadArguments {
    /// How conflicts are settled
    #[arg(long, default_value = "harmony", value_parser = concurrency::IDS)]
    protocol: String,
    /// Threads of the core; as many as the machine has by default
    #[arg(long)]
    threads: Option<usize>,
    /// Transactions of an execution batch; as in a new charter by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    block: Option<u32>,
    /// Execution batches of a block
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    batches: u32,
    /// Rows that blocks change until there is a checkpoint; as in a new charter by default
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    checkpoint_rows: Option<u32>,
    /// Seed of the workload
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where stores are made; a temporary folder by default, which goes afterwards
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Where to write the record
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measure a state of any size: load it, change it with checkpoints beside as in a node, open it again.
///
/// Rows are loaded in the order of their keys, as those of a store's first version. Then the engine executes Smallbank,
/// without network, signatures and ledger. The clock stands while transactions are made.
///
/// Example: entente bench state --customers 1000000 --store disk --memory-megabytes 64 --seconds 20 --json state.json
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct StateArguments {
    /// Customers, with three rows each
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..=CUSTOMERS_MAX))]
    customers: u64,
    /// Zipf exponent of the choice of customers; 0 is uniform
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// Seconds of execution; 0: rows are only loaded
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[command(flatten)]
    store: StoreArguments,
    /// Close the store and open it again, until the first block is executed
    #[arg(long)]
    reopen: bool,
    /// Rows that are read one by one afterwards, and timed
    #[arg(long, default_value_t = 0)]
    reads: u64,
    /// Leave out counting all money at the end, which reads every row
    #[arg(long)]
    unchecked: bool,
    /// Measure in a memory control group of so many units of 1,048,576 bytes, page cache included
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u64).range(64..=1 << 24))]
    control_group_megabytes: Option<u64>,
    /// The control group that another process has made for this one
    #[arg(long, hide = true, value_name = "FOLDER")]
    within: Option<PathBuf>,
    #[command(flatten)]
    load: LoadArguments,
}

/// Measure what a transaction costs as the state grows, in memory and on the disk.
///
/// Example: entente bench growth --rows-max 1000000 --seconds 3 --json growth.json
#[derive(Args, Clone)]
#[command(verbatim_doc_comment)]
pub(crate) struct GrowthArguments {
    /// Rows of the smallest state; every next one has ten times as many
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(6..))]
    rows_min: u64,
    /// Rows of the largest state
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(6..=3 * CUSTOMERS_MAX))]
    rows_max: u64,
    /// Zipf exponents of the choice of customers
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 0.99])]
    skews: Vec<f64>,
    /// Where rows are
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [GrowthStore::Memory, GrowthStore::Disk])]
    stores: Vec<GrowthStore>,
    /// Memory that the store on the disk may use, in units of 1,048,576 bytes
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(16..=1 << 24))]
    memory_megabytes: u64,
    /// States in memory that need more than so many units of 1,048,576 bytes are left out
    #[arg(long, default_value_t = 8_192, value_name = "MEGABYTES")]
    memory_limit: u64,
    /// Seconds of execution at each point
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Folder of report.html, measurements.csv and measurements.md
    #[arg(long, value_name = "FOLDER", default_value = "entente-bench-growth")]
    out: PathBuf,
    #[command(flatten)]
    load: LoadArguments,
}

#[derive(Clone, Copy, ValueEnum)]
enum GrowthStore {
    Memory,
    Disk,
}

pub(crate) fn run(arguments: &StateArguments) -> Result<(), CommandError> {
    if let (Some(megabytes), None) = (arguments.control_group_megabytes, &arguments.within) {
        match ControlGroup::make(megabytes) {
            Ok(group) => return run_within(&group, megabytes),
            Err(why) => eprintln!("there is no memory control group, it goes on without one: {why}"),
        }
    }
    let group = match (&arguments.within, arguments.control_group_megabytes) {
        (Some(folder), Some(megabytes)) => Some(JoinedControlGroup::join(folder, megabytes)?),
        _ => None,
    };
    let temporary = tempfile::tempdir()?;
    let folder = arguments.load.folder.as_deref().unwrap_or(temporary.path()).join("bench-state");
    let choice = arguments.store.choice();
    choice.check()?;
    let options = StateOptions {
        customers: arguments.customers,
        skew: arguments.skew,
        time: seconds(arguments.seconds)?,
        store: match choice.kind {
            StoreKind::Memory => in_memory(),
            StoreKind::Disk => on_disk(choice.memory_megabytes.unwrap_or(node::MEMORY_MEGABYTES)),
        },
        reopen: arguments.reopen,
        reads: arguments.reads,
        counts_money: !arguments.unchecked,
        control_group: group,
        ..options(&arguments.load, folder)
    };
    let record = state_bench(&options, &mut |text| eprintln!("{text}"))?;
    print(&record);
    if let Some(path) = &arguments.load.json {
        write(path, serde_json::to_string_pretty(&record)?)?;
    }
    match record.invariant_holds {
        Some(false) => Err("Smallbank's money invariant is broken".into()),
        _ => Ok(()),
    }
}

/// The same command again in a group, so that this process can remove the group whatever becomes of it.
fn run_within(group: &ControlGroup, megabytes: u64) -> Result<(), CommandError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg("--within").arg(group.folder());
    let status = command.status()?;
    match (status.success(), status.code()) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err("the measurement has failed, as it has said".into()),
        (false, None) => Err(format!(
            "the measurement was ended by the system ({status}): it needs more memory than --control-group-megabytes {megabytes}"
        )
        .into()),
    }
}

pub(crate) fn run_growth(arguments: &GrowthArguments) -> Result<(), CommandError> {
    let temporary = tempfile::tempdir()?;
    let folder = arguments.load.folder.as_deref().unwrap_or(temporary.path()).to_path_buf();
    let each = StateOptions { time: seconds(arguments.seconds)?, ..options(&arguments.load, folder.clone()) };
    let stores = arguments.stores.iter().map(|store| match store {
        GrowthStore::Memory => in_memory(),
        GrowthStore::Disk => on_disk(arguments.memory_megabytes),
    });
    let options = GrowthOptions {
        each,
        rows_min: arguments.rows_min,
        rows_max: arguments.rows_max,
        skews: arguments.skews.clone(),
        stores: stores.collect(),
        memory_limit_bytes: arguments.memory_limit << 20,
        folder,
        out: arguments.out.clone(),
        json: arguments.load.json.clone(),
    };
    let records = growth(&options, &mut |text| eprintln!("{text}"))?;
    for record in &records {
        let state = &record.state;
        let Some(run) = &state.run else { continue };
        println!(
            "{:>11} rows in {:6}, Zipf {:<4}: {:6.2} µs, {:6.2} µs of processors, {} tps",
            grouped(record.rows),
            state.store,
            state.skew,
            run.wall_us_per_transaction,
            run.cpu_us_per_transaction,
            grouped(run.committed_tps as u64)
        );
    }
    println!("{} points; the report is {}", records.len(), arguments.out.join("report.html").display());
    Ok(())
}

fn seconds(seconds: f64) -> Result<Duration, CommandError> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("--seconds: expected 0 or more, found {seconds}").into())
}

fn in_memory() -> bench::DiskOptions {
    bench::DiskOptions { rows_in: bench::RowsIn::Memory, ..bench::DiskOptions::default() }
}

fn on_disk(megabytes: u64) -> bench::DiskOptions {
    bench::DiskOptions { rows_in: bench::RowsIn::Disk, memory_bytes: megabytes << 20 }
}

fn options(arguments: &LoadArguments, folder: PathBuf) -> StateOptions {
    let charter = types::Charter::with_defaults("", 0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    StateOptions {
        protocol: arguments.protocol.clone(),
        customers: 2,
        skew: 0.0,
        threads: arguments.threads.unwrap_or(cores).max(1),
        block: arguments.block.unwrap_or(charter.block.batch_transactions),
        batches: arguments.batches,
        seed: arguments.seed,
        time: Duration::ZERO,
        checkpoint_rows: arguments.checkpoint_rows.unwrap_or(charter.checkpoint_rows),
        store: in_memory(),
        folder,
        reopen: false,
        reads: 0,
        counts_money: false,
        control_group: None,
    }
}

fn write(path: &Path, text: String) -> Result<(), CommandError> {
    std::fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

fn print(record: &StateRecord) {
    let load = &record.load;
    println!(
        "{} rows in {} ({:.0} MB of keys and values) after {:.1} s, {:.0} MB of files; first root after {:.1} s more",
        grouped(load.rows),
        record.store,
        megabytes(load.live_bytes),
        load.seconds,
        megabytes(load.file_bytes),
        load.first_root_seconds
    );
    if let Some(run) = &record.run {
        print_run(run);
    }
    if let Some(reads) = &record.reads {
        let share = reads
            .cache_hit_share
            .map_or("no cache".to_string(), |share| format!("{:.1} % found in the cache", 100.0 * share));
        println!(
            "  single reads: {:.2} µs in the mean, {:.2} median, {:.2} at 99 %; {share}",
            reads.mean_us, reads.p50_us, reads.p99_us
        );
    }
    if let Some(reopen) = &record.reopen {
        println!(
            "  closed in {:.2} s, open in {:.2} s, first block after {:.2} s; {} blocks to be executed again; {:.0} MB",
            reopen.close_seconds,
            reopen.open_seconds,
            reopen.first_block_seconds,
            reopen.blocks_behind,
            reopen.peak_memory_mb
        );
    }
    println!("  {:.0} MB resident, {} files open at most", record.peak_memory_mb, record.open_files);
    match &record.control_group {
        Some(group) => println!(
            "  control group of {} MiB: {:.0} MB used at most, page cache at most {:.0} MB",
            group.megabytes, group.peak_mb, group.peak_page_cache_mb
        ),
        None => println!("  no control group"),
    }
}

fn print_run(run: &RunRecord) {
    let windows: Vec<String> = run.windows_tps.iter().map(|tps| format!("{:.0}", tps / 1e3)).collect();
    println!(
        "{} tps; {} committed in {:.1} s; {:.2} µs per transaction, {:.2} µs of processors; by ten seconds: {} thousand",
        grouped(run.committed_tps as u64),
        grouped(run.committed),
        run.seconds,
        run.wall_us_per_transaction,
        run.cpu_us_per_transaction,
        windows.join(" ")
    );
    let times = |times: &Percentiles| format!("{:.1} / {:.1} / {:.1}", times.p50, times.p99, times.max);
    println!(
        "  p50 / p99 / max in ms: batch {} while merging, {} while not; block {} and {}; merging {:.0} % of the time",
        times(&run.batch_ms.merging),
        times(&run.batch_ms.quiet),
        times(&run.block_ms.merging),
        times(&run.block_ms.quiet),
        100.0 * run.merging_share
    );
    println!(
        "  longest: hand-over {:.1} ms, batch installed {:.1} ms; batches waited {:.2} s for the disk",
        run.hand_over_ms_max, run.apply_ms_max, run.waited_seconds
    );
    println!(
        "  {:.0} MB of files, {:.2} times the live rows; {:.0} MB changed, {:.0} MB written ({:.1} times; the system says {:.0} MB), {:.0} MB read from disks",
        megabytes(run.file_bytes),
        run.space_amplification,
        megabytes(run.changed_bytes),
        megabytes(run.written_bytes),
        run.write_amplification,
        megabytes(run.system_written_bytes),
        megabytes(run.system_read_bytes)
    );
    let roots: Vec<f64> = run.checkpoints.iter().map(|checkpoint| checkpoint.seconds).collect();
    let rows = run.checkpoints.iter().map(|checkpoint| checkpoint.changed_rows).max().unwrap_or(0);
    println!(
        "  {} durable points; {} roots in {:.2} s each, {:.2} s at most, of up to {} changed rows; {} checkpoints left out; {:.0} MB",
        run.durable_points.len(),
        roots.len(),
        roots.iter().sum::<f64>() / roots.len().max(1) as f64,
        roots.iter().copied().fold(0.0, f64::max),
        grouped(rows),
        run.checkpoints_left_out,
        run.peak_memory_mb
    );
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
