use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// What `entente bench state` has measured. Megabytes are 10^6 bytes.
#[derive(Clone, Debug, Serialize)]
pub struct StateRecord {
    /// `smallbank`.
    pub workload: &'static str,
    /// How conflicts were settled.
    pub protocol: String,
    /// Where the rows are: `memory` or `disk`.
    pub store: &'static str,
    /// Memory that a store on the disk may use, in units of 1,048,576 bytes; null for one in memory.
    pub memory_megabytes: Option<u64>,
    /// Customers.
    pub customers: u64,
    /// Zipf's exponent.
    pub skew: f64,
    /// Seed of the workload.
    pub seed: u64,
    /// Threads of the core.
    pub threads: usize,
    /// Transactions of an execution batch.
    pub block: u32,
    /// Execution batches of a block.
    pub batches: u32,
    /// Rows that blocks change until there is a checkpoint.
    pub checkpoint_rows: u32,
    /// The control group of the measurement; null without one.
    pub control_group: Option<ControlGroupRecord>,
    /// How the rows came into the store.
    pub load: LoadRecord,
    /// How transactions were executed; null where rows were only loaded.
    pub run: Option<RunRecord>,
    /// Single reads of rows by one thread; null where none were asked for.
    pub reads: Option<ReadRecord>,
    /// How the store came back; null where that was not asked for.
    pub reopen: Option<ReopenRecord>,
    /// Most resident memory of the process at the end, behind reading all rows; `run` and `reopen` have their own.
    pub peak_memory_mb: f64,
    /// Files, sockets and the like that were open at once.
    pub open_files: u64,
    /// Whether no cent was made or lost; null where nobody has looked.
    pub invariant_holds: Option<bool>,
}

/// A control group, and what was used of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ControlGroupRecord {
    /// Its limit, in units of 1,048,576 bytes.
    pub megabytes: u64,
    /// What was used at most, page cache included.
    pub peak_mb: f64,
    /// Page cache at most.
    pub peak_page_cache_mb: f64,
}

/// Loading.
#[derive(Clone, Debug, Serialize)]
pub struct LoadRecord {
    /// Until all rows were in the store.
    pub seconds: f64,
    /// Rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub live_bytes: u64,
    /// Bytes of the store's files behind it.
    pub file_bytes: u64,
    /// Bytes that were written to files.
    pub written_bytes: u64,
    /// From there on until the first root, for which every row is hashed.
    pub first_root_seconds: f64,
    /// Most resident memory of the process until then.
    pub peak_memory_mb: f64,
}

/// Execution.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Seconds of execution: the clock stands while transactions are made.
    pub seconds: f64,
    /// The same by the clock on the wall.
    pub wall_seconds: f64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that the contract ended.
    pub business_aborts: u64,
    /// Transactions given up because of a conflict.
    pub conflict_aborts: u64,
    /// Committed transactions per second of execution.
    pub committed_tps: f64,
    /// The same in every ten seconds of it.
    pub windows_tps: Vec<f64>,
    /// Microseconds of execution per transaction.
    pub wall_us_per_transaction: f64,
    /// Microseconds of processors per transaction, with all that is done beside: writing, merging, hashing.
    pub cpu_us_per_transaction: f64,
    /// How long execution batches took.
    pub batch_ms: TimesMs,
    /// How long blocks took.
    pub block_ms: TimesMs,
    /// Share of the run in which files were being merged.
    pub merging_share: f64,
    /// The longest time that it took to install one batch, with waiting for the disk.
    pub apply_ms_max: f64,
    /// The longest time that the end of a block took, which is when rows are handed over to be written.
    pub hand_over_ms_max: f64,
    /// How long batches have waited for the disk, all together.
    pub waited_seconds: f64,
    /// Bytes of the store's files at the end.
    pub file_bytes: u64,
    /// Those over the bytes of live rows.
    pub space_amplification: f64,
    /// Bytes of rows that batches have changed, and of ids that were admitted, once per durable point.
    pub changed_bytes: u64,
    /// Bytes that the store says it has written to files, those of merging included.
    pub written_bytes: u64,
    /// Written over changed.
    pub write_amplification: f64,
    /// Bytes that the system says the process has written.
    pub system_written_bytes: u64,
    /// Bytes that the system has read from disks for the process, because they were not in the page cache.
    pub system_read_bytes: u64,
    /// Rows that were found in the store's cache.
    pub cache_hits: u64,
    /// Rows that were not.
    pub cache_misses: u64,
    /// Durable points.
    pub durable_points: Vec<DurablePoint>,
    /// Checkpoints.
    pub checkpoints: Vec<CheckpointTime>,
    /// Checkpoints that were left out because the one before was still being made.
    pub checkpoints_left_out: u64,
    /// Most resident memory of the process until its end, loading included.
    pub peak_memory_mb: f64,
}

/// One durable point. It is sampled: what was merged in the same few milliseconds is counted with it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DurablePoint {
    /// Bytes of rows that have changed since the one before, and of ids.
    pub changed_bytes: u64,
    /// Bytes written.
    pub file_bytes: u64,
}

/// One checkpoint.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointTime {
    /// Height of its block.
    pub height: u64,
    /// From when it was asked for until its root was there, with the wait until its rows are durable.
    pub seconds: f64,
    /// Rows that blocks have changed since the one before, each counted once per block.
    pub changed_rows: u64,
    /// Its root.
    pub root: String,
}

/// Times with and without files being merged.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimesMs {
    /// While files were being merged.
    pub merging: Percentiles,
    /// While not.
    pub quiet: Percentiles,
}

/// Percentiles of a time, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// How many were measured.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// Ninety-nine of a hundred are at most this.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Single reads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadRecord {
    /// How many.
    pub count: u64,
    /// Microseconds, mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// Ninety-nine of a hundred are at most this.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Share of the rows that the store has found in its cache; null where it has none.
    pub cache_hit_share: Option<f64>,
}

/// Closing and opening.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReopenRecord {
    /// Until the store was closed.
    pub close_seconds: f64,
    /// Until it was there again.
    pub open_seconds: f64,
    /// From when it begins to open until the first block was executed.
    pub first_block_seconds: f64,
    /// Blocks that a node would have to execute once more before that: what was not durable.
    pub blocks_behind: u64,
    /// Most resident memory of the process meanwhile.
    pub peak_memory_mb: f64,
}

/// Histograms in microseconds, with and without files being merged.
pub(super) struct Times {
    merging: Histogram<u64>,
    quiet: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Times {
        // Microseconds up to ten minutes, three digits.
        let empty = || Histogram::new_with_bounds(1, 600_000_000, 3).expect("valid bounds");
        Times { merging: empty(), quiet: empty() }
    }
}

impl Times {
    pub(super) fn add(&mut self, took: Duration, merging: bool) {
        let histogram = if merging { &mut self.merging } else { &mut self.quiet };
        histogram.saturating_record(took.as_micros() as u64);
    }

    pub(super) fn milliseconds(&self) -> TimesMs {
        let of = |histogram: &Histogram<u64>| {
            let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
            Percentiles { count: histogram.len(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
        };
        TimesMs { merging: of(&self.merging), quiet: of(&self.quiet) }
    }
}
