//! A state of any size in a store: loaded, changed by Smallbank with checkpoints beside it as in a node, read, and opened again.

mod checkpoints;
mod control_group;
mod loading;
mod record;
mod running;
mod watched_store;
mod watching;

pub use control_group::{ControlGroup, JoinedControlGroup};
pub use record::{
    CheckpointTime, ControlGroupRecord, DurablePoint, LoadRecord, Percentiles, ReadRecord, ReopenRecord,
    RunRecord, StateRecord, TimesMs,
};

use crate::EngineBenchError;
use crate::chain::Chain;
use crate::memory::{forget_peak_memory, peak_memory_bytes};
use checkpoints::Checkpoints;
use disk::{Disk, DiskOptions, RowsIn};
use hdrhistogram::Histogram;
use loading::Live;
use rand::SeedableRng;
use rand::rngs::StdRng;
use running::{Ran, Runner};
use state::{KeyRange, Store, StoreError, StoreStatistics, Stores};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use types::{Key, TableId, Value};
use watched_store::WatchedStore;
use watching::{Seen, Watching};
use workloads::smallbank::Smallbank;

/// What to measure.
#[derive(Clone, Debug)]
pub struct StateOptions {
    /// One of [`concurrency::IDS`].
    pub protocol: String,
    /// Customers, with three rows each.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// Threads of the core.
    pub threads: usize,
    /// Transactions of an execution batch.
    pub block: u32,
    /// Execution batches of a block.
    pub batches: u32,
    /// Seed of the workload.
    pub seed: u64,
    /// How long to execute; zero: rows are only loaded.
    pub time: Duration,
    /// Rows that blocks change until there is a checkpoint.
    pub checkpoint_rows: u32,
    /// Where rows are read, and in how much memory.
    pub store: DiskOptions,
    /// Where the store is.
    pub folder: PathBuf,
    /// Whether it is closed and opened again.
    pub reopen: bool,
    /// Rows that are read one by one afterwards.
    pub reads: u64,
    /// Whether all money is counted at the end, for which every row is read.
    pub counts_money: bool,
    /// The control group of this process.
    pub control_group: Option<JoinedControlGroup>,
}

/// Why a state could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum StateBenchError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineBenchError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store has left nothing to be opened again.
    #[error("the store was closed and cannot be opened again: it has left no durable state behind a block")]
    NothingLeft,
    /// A report.
    #[error(transparent)]
    Report(#[from] crate::LaboratoryError),
}

/// Measures. `progress` is told, from time to time, what is being done.
///
/// # Errors
/// Options that make no sense; a store that fails.
pub fn state_bench(
    options: &StateOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<StateRecord, StateBenchError> {
    forget_peak_memory();
    let smallbank = Smallbank::new(options.customers, options.skew).map_err(EngineBenchError::from)?;
    let threads = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build();
    let pool = threads.map_err(|_| EngineBenchError::Threads(options.threads))?;
    let loaded = Loaded::new(options, &smallbank, &pool, progress)?;
    loaded.measure(options, &smallbank, &pool, progress)
}

/// A state with all customers and its first root.
struct Loaded {
    stores: Arc<dyn Stores>,
    watched: Arc<WatchedStore>,
    merging: Arc<AtomicBool>,
    chain: Chain,
    checkpoints: Checkpoints,
    live: Live,
    record: LoadRecord,
}

impl Loaded {
    fn new(
        options: &StateOptions,
        smallbank: &Smallbank,
        pool: &rayon::ThreadPool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Loaded, StateBenchError> {
        // What an earlier measurement has left there would be taken up in the end.
        remove_folder(&options.folder)?;
        let stores: Arc<dyn Stores> = Arc::new(Disk::open(&options.folder, options.store)?);
        let start = Instant::now();
        let chain = loading::schema(options, smallbank)?;
        let (state, live) = loading::load(&chain, stores.as_ref(), smallbank, options.customers, progress)?;
        let seconds = start.elapsed().as_secs_f64();
        progress(&format!("{} rows are in the store after {seconds:.1} s; the first root", live.rows));
        let merging = Arc::new(AtomicBool::new(false));
        let watched = Arc::new(WatchedStore::new(state, merging.clone()));
        let mut checkpoints = Checkpoints::start(stores.clone())?;
        let start = Instant::now();
        let chain = pool.install(|| loading::go_on(chain, watched.clone()))?;
        checkpoints.request(&chain, live.rows);
        // What is measured begins with a tree, as in a node that has been there for long.
        checkpoints.finish()?;
        let first_root_seconds = start.elapsed().as_secs_f64();
        let checkpoints = Checkpoints::start(stores.clone())?;
        let statistics = watched.statistics();
        let record = LoadRecord {
            seconds,
            rows: live.rows,
            live_bytes: live.bytes,
            file_bytes: statistics.file_bytes,
            written_bytes: statistics.written_bytes,
            first_root_seconds,
            peak_memory_mb: peak_memory_bytes() as f64 / 1e6,
        };
        Ok(Loaded { stores, watched, merging, chain, checkpoints, live, record })
    }

    fn measure(
        self,
        options: &StateOptions,
        smallbank: &Smallbank,
        pool: &rayon::ThreadPool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<StateRecord, StateBenchError> {
        let Loaded { stores, watched, merging, chain, mut checkpoints, live, record: load } = self;
        progress(&format!("the first root took {:.1} s", load.first_root_seconds));
        let watching = Watching::start(watched.clone(), merging, options.control_group.clone());
        let watching = watching.map_err(EngineBenchError::Folder)?;
        let before = watched.statistics();
        watched.take();
        let mut runner = Runner::new(chain, smallbank, options, pool);
        let ran = match options.time.is_zero() {
            true => None,
            false => Some(runner.run(&watched, &mut checkpoints, progress)?),
        };
        let left_out = checkpoints.left_out;
        let made = checkpoints.finish()?;
        let after = watched.statistics();
        let seen = watching.finish();
        let run = ran.map(|ran| run_record(ran, (&before, &after), &seen, &watched, (made, left_out), live));
        let (state, money, chain) = (watched.clone(), runner.money, runner.into_chain());
        let reads = match options.reads {
            0 => None,
            count => Some(read_rows(state.as_ref(), smallbank, count, options.seed)?),
        };
        let invariant_holds = match options.counts_money {
            true => Some(money_in(state.as_ref())? == smallbank.initial_total() + money),
            false => None,
        };
        drop((state, watched));
        let reopen = match options.reopen {
            true => {
                progress("the store is closed and opened again");
                Some(reopen(options, smallbank, pool, (chain, stores))?)
            }
            false => None,
        };
        let found = Found { load, run, reads, reopen, invariant_holds };
        Ok(found.record(options, &seen))
    }
}

/// The parts of a record.
struct Found {
    load: LoadRecord,
    run: Option<RunRecord>,
    reads: Option<ReadRecord>,
    reopen: Option<ReopenRecord>,
    invariant_holds: Option<bool>,
}

/// What a kind of store is called.
pub(crate) fn name(rows_in: RowsIn) -> &'static str {
    match rows_in {
        RowsIn::Memory => "memory",
        RowsIn::Disk => "disk",
    }
}

impl Found {
    fn record(self, options: &StateOptions, seen: &Seen) -> StateRecord {
        let Found { load, run, reads, reopen, invariant_holds } = self;
        let group = options.control_group.as_ref();
        let is_on_disk = options.store.rows_in == RowsIn::Disk;
        StateRecord {
            workload: "smallbank",
            protocol: options.protocol.clone(),
            store: name(options.store.rows_in),
            memory_megabytes: is_on_disk.then_some(options.store.memory_bytes >> 20),
            customers: options.customers,
            skew: options.skew,
            seed: options.seed,
            threads: options.threads,
            block: options.block,
            batches: options.batches,
            checkpoint_rows: options.checkpoint_rows,
            control_group: group.map(|group| ControlGroupRecord {
                megabytes: group.megabytes(),
                peak_mb: group.peak_bytes() as f64 / 1e6,
                peak_page_cache_mb: seen.page_cache_bytes as f64 / 1e6,
            }),
            load,
            run,
            reads,
            reopen,
            peak_memory_mb: peak_memory_bytes() as f64 / 1e6,
            open_files: seen.open_files,
            invariant_holds,
        }
    }
}

fn run_record(
    ran: Ran,
    (before, after): (&StoreStatistics, &StoreStatistics),
    seen: &Seen,
    watched: &WatchedStore,
    (checkpoints, checkpoints_left_out): (Vec<CheckpointTime>, u64),
    live: Live,
) -> RunRecord {
    let (noted, seconds) = (watched.take(), ran.time.as_secs_f64());
    let transactions = ran.transactions.max(1) as f64;
    let (changed_bytes, written_bytes) =
        (after.changed_bytes - before.changed_bytes, after.written_bytes - before.written_bytes);
    RunRecord {
        seconds,
        wall_seconds: ran.wall.as_secs_f64(),
        committed: ran.committed,
        business_aborts: ran.business_aborts,
        conflict_aborts: ran.conflict_aborts,
        committed_tps: ran.committed as f64 / seconds,
        windows_tps: ran.windows,
        wall_us_per_transaction: seconds * 1e6 / transactions,
        cpu_us_per_transaction: ran.cpu_seconds * 1e6 / transactions,
        batch_ms: noted.batches.milliseconds(),
        block_ms: noted.blocks.milliseconds(),
        merging_share: seen.looked_while_merging as f64 / seen.looked.max(1) as f64,
        apply_ms_max: noted.apply.as_secs_f64() * 1e3,
        hand_over_ms_max: noted.hand_over.as_secs_f64() * 1e3,
        waited_seconds: (after.waited - before.waited).as_secs_f64(),
        file_bytes: after.file_bytes,
        space_amplification: after.file_bytes as f64 / live.bytes.max(1) as f64,
        changed_bytes,
        written_bytes,
        write_amplification: written_bytes as f64 / changed_bytes.max(1) as f64,
        system_written_bytes: ran.system_written_bytes,
        system_read_bytes: ran.system_read_bytes,
        cache_hits: after.cache_hits - before.cache_hits,
        cache_misses: after.cache_misses - before.cache_misses,
        durable_points: seen.points.clone(),
        checkpoints,
        checkpoints_left_out,
        peak_memory_mb: ran.peak_memory_bytes as f64 / 1e6,
    }
}

/// Removes a folder, if there is one.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), StateBenchError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::LaboratoryError::file("remove", folder)(error).into())
        }
        _ => Ok(()),
    }
}

/// Reads accounts one by one, chosen as calls choose them.
fn read_rows(
    store: &dyn Store,
    smallbank: &Smallbank,
    count: u64,
    seed: u64,
) -> Result<ReadRecord, StateBenchError> {
    let (snapshot, before) = (store.snapshot(), store.statistics());
    let table = balances(store)[0];
    let mut random = StdRng::seed_from_u64(seed ^ 1);
    // Nanoseconds up to ten seconds, three digits.
    let mut times = Histogram::<u64>::new_with_bounds(1, 10_000_000_000, 3).expect("valid bounds");
    for _ in 0..count {
        let call = smallbank.next_call(&mut random);
        let key = Key::encode([&call.arguments[0]]).expect("a number is a key");
        let start = Instant::now();
        let row = snapshot.get(table, &key)?;
        times.saturating_record(start.elapsed().as_nanos() as u64);
        assert!(row.is_some(), "every customer has an account");
    }
    let after = store.statistics();
    let (hits, misses) = (after.cache_hits - before.cache_hits, after.cache_misses - before.cache_misses);
    let microseconds = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    Ok(ReadRecord {
        count,
        mean_us: times.mean() / 1e3,
        p50_us: microseconds(0.5),
        p99_us: microseconds(0.99),
        max_us: microseconds(1.0),
        cache_hit_share: (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64),
    })
}

/// The tables with balances.
fn balances(store: &dyn Store) -> Vec<TableId> {
    let catalog = store.catalog();
    let with_balance = |table: &&Arc<types::Table>| table.ordinal("balance").is_some();
    catalog.tables.values().filter(with_balance).map(|table| table.id).collect()
}

/// All money, row by row.
fn money_in(store: &dyn Store) -> Result<i128, StateBenchError> {
    let (snapshot, mut sum) = (store.snapshot(), 0);
    for table in balances(store) {
        snapshot.scan(table, &KeyRange::ALL, false, &mut |_, row| {
            if let Some(Value::BigInt(balance)) = row.last() {
                sum += i128::from(*balance);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(sum)
}

/// Closes the store as a process that ends does, opens it, and executes a block behind where it stands.
fn reopen(
    options: &StateOptions,
    smallbank: &Smallbank,
    pool: &rayon::ThreadPool,
    (chain, stores): (Chain, Arc<dyn Stores>),
) -> Result<ReopenRecord, StateBenchError> {
    let (height, start) = (chain.engine.height(), Instant::now());
    let chain = chain.without_state().map_err(EngineBenchError::from)?;
    drop(stores);
    let close_seconds = start.elapsed().as_secs_f64();
    forget_peak_memory();
    let start = Instant::now();
    let stores: Arc<dyn Stores> = Arc::new(Disk::open(&options.folder, options.store)?);
    let newest = stores.left()?.into_iter().next().ok_or(StateBenchError::NothingLeft)?;
    let back = stores.reopen(newest.header.height)?.ok_or(StateBenchError::NothingLeft)?;
    stores.settle()?;
    let open_seconds = start.elapsed().as_secs_f64();
    let blocks_behind = height.saturating_sub(back.point.header.height);
    let chain = chain.on_state(back.point, back.state, back.live).map_err(EngineBenchError::from)?;
    let mut runner = Runner::new(chain, smallbank, options, pool);
    runner.run_block()?;
    let first_block_seconds = start.elapsed().as_secs_f64();
    let peak_memory_mb = peak_memory_bytes() as f64 / 1e6;
    Ok(ReopenRecord { close_seconds, open_seconds, first_block_seconds, blocks_behind, peak_memory_mb })
}
