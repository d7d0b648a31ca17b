//! One registry; names are `entente_<stage>_<what>_<unit>`.

use crate::joining::FetchProgress;
use crate::present::{Present, PresentGauges};
use crate::schema_counts::SchemaCounts;
use crate::traces::Traces;
use engine::ExecutedBlock;
use gateway::OwnDatabaseStatus;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use state::StoreStatistics;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct StageLabel {
    stage: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct FoundLabel {
    what: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct FragmentLabel {
    from: &'static str,
}

/// What a node counts and measures.
pub(crate) struct NodeMetrics {
    registry: Registry,
    transactions: Family<OutcomeLabel, Counter>,
    reexecuted: Counter,
    executions: Counter,
    blocks: Counter,
    flushes: Counter,
    collected: Family<OutcomeLabel, Counter>,
    diverging: Counter,
    height: Gauge,
    clock_difference: Gauge<f64, AtomicU64>,
    certified: Gauge,
    diverged: Counter,
    contradicted: Counter,
    join_height: Gauge,
    join_offered: Gauge,
    join_pieces: Gauge,
    join_checked: Gauge,
    join_bytes: Gauge,
    join_liars: Gauge,
    checkpoint: Gauge,
    scrubbed: Counter,
    scrub_found: Family<FoundLabel, Counter>,
    pruned: Counter,
    redacted: Counter,
    fragments: Family<FragmentLabel, Counter>,
    store: StoreGauges,
    database: DatabaseGauges,
    present: PresentGauges,
    /// Of schemas with members.
    pub(crate) schemas: SchemaCounts,
    queue: Family<StageLabel, Gauge>,
    latency: Family<StageLabel, Histogram>,
    /// Notes when stages worked, where transactions are traced.
    traces: Option<Arc<Traces>>,
}

/// The parts of a block's way that have a latency of their own.
pub(crate) const VERIFY: &str = "verify";
pub(crate) const EXECUTE: &str = "execute";
pub(crate) const RECORD: &str = "record";
pub(crate) const ATTEST: &str = "attest";
pub(crate) const ANSWER: &str = "answer";
/// Taking a snapshot for a checkpoint: all that the pipeline does for it.
pub(crate) const CHECKPOINT_SNAPSHOT: &str = "checkpoint_snapshot";
pub(crate) const CHECKPOINT_WRITE: &str = "checkpoint_write";
pub(crate) const CHECKPOINT_ROOT: &str = "checkpoint_root";

/// What fragments of queries may be run on.
const FRAGMENTS_FROM: [&str; 2] = ["columns", "rows"];
/// What may become of an endorsement.
const COLLECTED: [&str; 5] = ["aborted", "endorsed", "not_endorsed", "rejected", "stale"];
/// What reading again may find damaged.
const DAMAGED: [&str; 3] = ["block", "checkpoint", "state"];

/// What the store of the state has, as it was when somebody last asked.
#[derive(Default)]
struct StoreGauges {
    rows: Gauge,
    file_bytes: Gauge,
    changed_bytes: Gauge,
    written_bytes: Gauge,
    cache_hits: Gauge,
    cache_misses: Gauge,
    durable_points: Gauge,
    durable_height: Gauge,
    durable_age_seconds: Gauge,
    waited_milliseconds: Gauge,
    waits_for_room: Gauge,
}

/// What the organisation's own database has, as it was when somebody last asked.
#[derive(Default)]
struct DatabaseGauges {
    height: Gauge,
    lag_blocks: Gauge,
    follows: Gauge,
    rows_written: Gauge,
    strange_rows: Gauge,
    scans: Gauge,
    scan_milliseconds: Gauge,
}

impl DatabaseGauges {
    fn register(&self, registry: &mut Registry) {
        let gauges = [
            ("entente_database_height", "Height that the organisation's own database has", &self.height),
            ("entente_database_lag_blocks", "Certified blocks that it does not have", &self.lag_blocks),
            ("entente_database_follows", "1 where it is connected and brought up", &self.follows),
            ("entente_database_rows_written", "Rows written to it since the start", &self.rows_written),
            (
                "entente_database_strange_rows",
                "Rows that somebody else has changed there, each put right",
                &self.strange_rows,
            ),
            ("entente_database_scans", "Comparisons of all its rows", &self.scans),
            ("entente_database_scan_milliseconds", "How long the last one took", &self.scan_milliseconds),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
    }

    fn set(&self, status: &OwnDatabaseStatus) {
        self.height.set(status.height as i64);
        self.lag_blocks.set(status.lag_blocks as i64);
        self.follows.set(i64::from(status.state == "following"));
        self.rows_written.set(status.rows_written as i64);
        self.strange_rows.set(status.strange_rows as i64);
        self.scans.set(status.scans as i64);
        self.scan_milliseconds.set(status.scan_ms as i64);
    }
}

impl StoreGauges {
    fn register(&self, registry: &mut Registry) {
        let gauges = [
            ("entente_store_rows", "Rows of all tables", &self.rows),
            ("entente_store_file_bytes", "Bytes of the files of the state", &self.file_bytes),
            (
                "entente_store_changed_bytes",
                "Bytes of rows and ids that blocks have changed",
                &self.changed_bytes,
            ),
            (
                "entente_store_written_bytes",
                "Bytes written to files, with those of merging; by bytes changed: the write amplification",
                &self.written_bytes,
            ),
            ("entente_store_cache_hits", "Reads of rows that the cache has answered", &self.cache_hits),
            ("entente_store_cache_misses", "Reads of rows that it has not", &self.cache_misses),
            ("entente_store_durable_points", "Durable points since the start", &self.durable_points),
            ("entente_store_durable_height", "Height of the newest durable point", &self.durable_height),
            (
                "entente_store_durable_age_seconds",
                "Time since the newest durable point",
                &self.durable_age_seconds,
            ),
            (
                "entente_store_waited_milliseconds",
                "How long blocks have waited for the disk",
                &self.waited_milliseconds,
            ),
            ("entente_store_waits_for_room", "1 where the disk is full", &self.waits_for_room),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
    }

    fn set(&self, statistics: &StoreStatistics) {
        let age = statistics.durable_age.map_or(0, |age| age.as_secs());
        for (gauge, value) in [
            (&self.rows, statistics.rows),
            (&self.file_bytes, statistics.file_bytes),
            (&self.changed_bytes, statistics.changed_bytes),
            (&self.written_bytes, statistics.written_bytes),
            (&self.cache_hits, statistics.cache_hits),
            (&self.cache_misses, statistics.cache_misses),
            (&self.durable_points, statistics.durable_points),
            (&self.durable_height, statistics.durable_height),
            (&self.durable_age_seconds, age),
            (&self.waited_milliseconds, statistics.waited.as_millis() as u64),
            (&self.waits_for_room, u64::from(statistics.waits_for_room)),
        ] {
            gauge.set(value as i64);
        }
    }
}

impl NodeMetrics {
    pub(crate) fn new() -> NodeMetrics {
        let mut registry = Registry::default();
        let metrics = NodeMetrics {
            transactions: Family::default(),
            reexecuted: Counter::default(),
            executions: Counter::default(),
            blocks: Counter::default(),
            flushes: Counter::default(),
            collected: Family::default(),
            diverging: Counter::default(),
            height: Gauge::default(),
            clock_difference: Gauge::default(),
            certified: Gauge::default(),
            diverged: Counter::default(),
            contradicted: Counter::default(),
            join_height: Gauge::default(),
            join_offered: Gauge::default(),
            join_pieces: Gauge::default(),
            join_checked: Gauge::default(),
            join_bytes: Gauge::default(),
            join_liars: Gauge::default(),
            checkpoint: Gauge::default(),
            scrubbed: Counter::default(),
            scrub_found: Family::default(),
            pruned: Counter::default(),
            redacted: Counter::default(),
            fragments: Family::default(),
            store: StoreGauges::default(),
            database: DatabaseGauges::default(),
            present: PresentGauges::default(),
            schemas: SchemaCounts::default(),
            queue: Family::default(),
            latency: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_05, 2.0, 18))),
            traces: None,
            registry: Registry::default(),
        };
        metrics.register_blocks(&mut registry);
        metrics.register_heights(&mut registry);
        metrics.register_joining(&mut registry);
        metrics.register_files_and_stages(&mut registry);
        metrics.store.register(&mut registry);
        metrics.database.register(&mut registry);
        metrics.present.register(&mut registry);
        metrics.schemas.register(&mut registry);
        NodeMetrics { registry, ..metrics }
    }

    /// What became of transactions and blocks.
    fn register_blocks(&self, registry: &mut Registry) {
        let transactions = self.transactions.clone();
        registry.register("entente_execute_transactions", "Transactions by outcome", transactions);
        registry.register(
            "entente_execute_executions",
            "Simulations, repeated included",
            self.executions.clone(),
        );
        registry.register(
            "entente_execute_reexecuted",
            "Transactions that ran twice",
            self.reexecuted.clone(),
        );
        registry.register("entente_record_blocks", "Blocks recorded", self.blocks.clone());
        registry.register("entente_record_flushes", "Flushes of the ledger's files", self.flushes.clone());
        registry.register(
            "entente_endorse_transactions",
            "Transactions of this node's clients by what became of their endorsement",
            self.collected.clone(),
        );
        for outcome in COLLECTED {
            drop(self.collected.get_or_create(&OutcomeLabel { outcome }));
        }
        registry.register(
            "entente_endorse_diverging",
            "Answers of other endorsers that were not what this node found",
            self.diverging.clone(),
        );
    }

    /// How far the node is, and whether others agree.
    fn register_heights(&self, registry: &mut Registry) {
        registry.register(
            "entente_record_height",
            "Height of the newest recorded block",
            self.height.clone(),
        );
        registry.register(
            "entente_record_clock_difference_seconds",
            "This machine's clock minus the time of the newest recorded block, when it was recorded",
            self.clock_difference.clone(),
        );
        registry.register(
            "entente_attest_height",
            "Up to here this node's outcomes are those of a quorum",
            self.certified.clone(),
        );
        registry.register(
            "entente_attest_diverged",
            "How often a quorum came to another outcome than this node",
            self.diverged.clone(),
        );
        registry.register(
            "entente_attest_contradictions",
            "Members that have attested two different outcomes of one block",
            self.contradicted.clone(),
        );
    }

    /// Checkpoints that go from node to node.
    fn register_joining(&self, registry: &mut Registry) {
        let joining = [
            (
                "entente_join_height",
                "Height of the checkpoint that is, or was last, fetched",
                &self.join_height,
            ),
            (
                "entente_join_offered_height",
                "Height of the certified checkpoint that others can fetch from this node; 0 where there is none",
                &self.join_offered,
            ),
            ("entente_join_pieces", "Pieces of its state", &self.join_pieces),
            ("entente_join_checked", "Pieces that are here and checked", &self.join_checked),
            ("entente_join_bytes", "Bytes that came", &self.join_bytes),
            ("entente_join_liars", "Members that have sent something wrong", &self.join_liars),
        ];
        for (name, help, gauge) in joining {
            registry.register(name, help, gauge.clone());
        }
    }

    /// What is on the disk, and how long the stages take.
    fn register_files_and_stages(&self, registry: &mut Registry) {
        registry.register(
            "entente_attest_checkpoint_height",
            "Height of the newest checkpoint whose root is certified and this node's",
            self.checkpoint.clone(),
        );
        registry.register(
            "entente_scrub_bytes",
            "Bytes of files that were read again and compared with their checksums",
            self.scrubbed.clone(),
        );
        registry.register(
            "entente_scrub_found",
            "Damage that was found in files or in rows, by what is damaged",
            self.scrub_found.clone(),
        );
        registry.register(
            "entente_ledger_pruned_bytes",
            "Bytes of transactions and receipts that old blocks have given up since the node's start",
            self.pruned.clone(),
        );
        registry.register(
            "entente_ledger_redacted_transactions",
            "Transactions whose content this node has taken out of its ledger by consent since its start",
            self.redacted.clone(),
        );
        // A counter that comes into being with its first count shows no increase.
        for what in DAMAGED {
            drop(self.scrub_found.get_or_create(&FoundLabel { what }));
        }
        for from in FRAGMENTS_FROM {
            drop(self.fragments.get_or_create(&FragmentLabel { from }));
        }
        registry.register(
            "entente_fragments",
            "Fragments of queries outside of transactions, by what they were run on",
            self.fragments.clone(),
        );
        registry.register(
            "entente_pipeline_queue_blocks",
            "Blocks that wait for a stage",
            self.queue.clone(),
        );
        registry.register_with_unit(
            "entente_pipeline_stage",
            "Time that a stage or a part of it works on one block",
            Unit::Seconds,
            self.latency.clone(),
        );
    }

    /// Tells these when stages have worked.
    pub(crate) fn with_traces(self, traces: Option<Arc<Traces>>) -> NodeMetrics {
        NodeMetrics { traces, ..self }
    }

    /// A stage has worked on the blocks at these heights since `start`.
    pub(crate) fn worked_on(
        &self,
        stage: &'static str,
        heights: impl IntoIterator<Item = u64>,
        start: Instant,
    ) {
        self.worked(stage, start.elapsed());
        if let Some(traces) = &self.traces {
            heights.into_iter().for_each(|height| traces.worked(stage, height, start));
        }
    }

    /// Nothing is measured any more.
    pub(crate) fn end(&self) {
        if let Some(traces) = &self.traces {
            traces.end();
        }
    }

    pub(crate) fn waiting(&self, stage: &'static str, blocks: usize) {
        self.queue.get_or_create(&StageLabel { stage }).set(blocks as i64);
    }

    pub(crate) fn worked(&self, stage: &'static str, time: Duration) {
        self.latency.get_or_create(&StageLabel { stage }).observe(time.as_secs_f64());
    }

    pub(crate) fn executed(&self, block: &ExecutedBlock) {
        let statistics = &block.statistics;
        let outcomes = [
            ("committed", statistics.committed),
            ("business_abort", statistics.business_aborts),
            ("conflict_abort", statistics.conflict_aborts),
            ("rejected", statistics.rejected),
        ];
        for (outcome, count) in outcomes {
            self.transactions.get_or_create(&OutcomeLabel { outcome }).inc_by(count);
        }
        self.reexecuted.inc_by(statistics.reexecuted);
        self.executions.inc_by(statistics.executions);
        let times = &block.times;
        let parts = [
            ("execute_admit", times.admit),
            ("execute_protocol", times.protocol),
            ("execute_apply", times.apply),
            ("execute_digest", times.digest),
            ("execute_receipts", times.receipts),
        ];
        for (part, time) in parts {
            self.worked(part, time);
        }
    }

    pub(crate) fn collected(&self, outcome: &'static str, transactions: u64) {
        self.collected.get_or_create(&OutcomeLabel { outcome }).inc_by(transactions);
    }

    pub(crate) fn diverging(&self, answers: u64) {
        self.diverging.inc_by(answers);
    }

    /// So many blocks are recorded, and this is the newest one's height and time.
    pub(crate) fn recorded(&self, blocks: u64, height: u64, timestamp_ms: u64) {
        self.blocks.inc_by(blocks);
        self.flushes.inc();
        self.height.set(height as i64);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.clock_difference.set(now.as_secs_f64() - timestamp_ms as f64 / 1_000.0);
    }

    pub(crate) fn certified(&self, height: u64) {
        self.certified.set(height as i64);
    }

    pub(crate) fn checkpoint_certified(&self, height: u64) {
        self.checkpoint.set(height as i64);
    }

    /// Files were read again.
    pub(crate) fn scrubbed(&self, bytes: u64) {
        self.scrubbed.inc_by(bytes);
    }

    /// Reading again has found damage.
    pub(crate) fn scrub_found(&self, what: &'static str) {
        self.scrub_found.get_or_create(&FoundLabel { what }).inc();
    }

    /// Old blocks have given up so many bytes.
    pub(crate) fn pruned(&self, bytes: u64) {
        self.pruned.inc_by(bytes);
    }

    /// The content of so many transactions is gone by consent.
    pub(crate) fn redacted(&self, transactions: u64) {
        self.redacted.inc_by(transactions);
    }

    /// A fragment of a query was run on columns, or is run on rows.
    pub(crate) fn fragment_ran(&self, from: &'static str) {
        self.fragments.get_or_create(&FragmentLabel { from }).inc();
    }

    /// What the store of the state has.
    pub(crate) fn stored(&self, statistics: &StoreStatistics) {
        self.store.set(statistics);
    }

    /// What is so now. `folder`: the node's.
    pub(crate) fn present(&self, present: Present, folder: &Path) {
        self.present.set(present, folder);
    }

    /// How far the organisation's own database is.
    pub(crate) fn own_database(&self, status: &OwnDatabaseStatus) {
        self.database.set(status);
    }

    pub(crate) fn diverged(&self) {
        self.diverged.inc();
    }

    pub(crate) fn contradicted(&self) {
        self.contradicted.inc();
    }

    pub(crate) fn offered(&self, height: Option<u64>) {
        self.join_offered.set(height.unwrap_or(0) as i64);
    }

    pub(crate) fn joining(&self, progress: &FetchProgress) {
        let FetchProgress { height, pieces, checked, bytes, liars, .. } = *progress;
        self.join_height.set(height as i64);
        self.join_pieces.set(pieces as i64);
        self.join_checked.set(checked as i64);
        self.join_bytes.set(bytes as i64);
        self.join_liars.set(liars as i64);
    }

    /// Prometheus text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_stage_thing_and_unit() {
        let metrics = NodeMetrics::new();
        metrics.recorded(3, 17, 1_000);
        metrics.waiting(RECORD, 2);
        metrics.worked(VERIFY, Duration::from_millis(2));
        let text = metrics.text();
        assert!(text.contains("entente_record_height 17"), "{text}");
        assert!(text.contains("entente_record_clock_difference_seconds "), "{text}");
        assert!(text.contains("entente_scrub_found_total{what=\"state\"} 0"), "{text}");
        assert!(text.contains("entente_pipeline_queue_blocks{stage=\"record\"} 2"), "{text}");
        assert!(text.contains("entente_pipeline_stage_seconds_count{stage=\"verify\"} 1"), "{text}");
    }
}
