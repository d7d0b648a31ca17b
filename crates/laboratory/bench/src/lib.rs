//! Experiments and their measurements.
//!
//! - [`engine_alone`]: the deterministic core without network, signatures and disk.
//! - [`laboratory()`]: the experiments of `docs/experiments.toml`, protocols side by side and beside PostgreSQL.
//! - [`endorse()`]: execute–order–validate in one process, the experiments of `docs/endorse.toml`.
//! - [`state_bench`]: a state of any size in a store, with checkpoints beside it.
//! - [`growth()`]: the same on ever more rows.
//! - [`tpcc()`]: TPC-C, all protocols and PostgreSQL in one run.
//! - [`analytics()`]: analytical queries here, in PostgreSQL and in DuckDB.
//! - [`tpch()`]: the 22 queries of TPC-H, the same way.
//! - [`scale()`]: networks of up to eighty members on simulated machines and lines.
//! - [`postgres_server`]: a PostgreSQL of one's own, to compare with.
//! - [`SignedLedger`]: a ledger on disk as a network of four would have written it, for audits.
//! - [`Load`]: signed transactions through the gateways of a running network, closed or open loop.

mod analytics;
mod arguments;
mod chain;
mod endorse;
mod engine_alone;
mod error;
mod executing;
mod growth;
mod htap;
mod laboratory;
mod load;
mod machine;
mod median;
mod memory;
mod paper;
mod parts_load;
mod postgres;
mod report;
mod scale;
mod side_by_side;
mod signed_ledger;
mod soak;
mod stored;
mod tpcc;
mod tpch;

pub use analytics::{AnalyticsOptions, AnalyticsRecord, analytics, analytics_table};
pub use arguments::ExperimentArguments;
pub use chain::EngineBenchError;
pub use disk::{DiskOptions, RowsIn};
pub use endorse::{EndorseMeasurement, EndorseRecord, endorse};
pub use engine_alone::{EngineOptions, EngineRecord, EngineStore, engine_alone};
pub use error::LaboratoryError;
pub use executing::{ExecutingError, ExecutingOptions, ExecutingPoint, ExecutingRecord, executing};
pub use growth::{GrowthOptions, GrowthRecord, growth};
pub use htap::{HtapOptions, HtapRecord, htap, htap_table};
pub use laboratory::{LaboratoryArguments, LaboratoryCommand, Measurement, Record, run as laboratory};
pub use load::{
    Load, LoadError, LoadHandle, LoadOptions, LoadProgress, LoadReport, Pace, Submit, bytes_per_call,
};
pub use machine::process_seconds;
pub use memory::{peak_memory_bytes, peak_memory_bytes_of};
pub use parts_load::{PartsLoadOptions, PartsLoadReport, parts_load};
pub use postgres::{PostgresError, postgres_server};
pub use report::grouped;
pub use scale::{ScaleNetwork, ScaleOptions, ScaleRecord, scale, scale_report, scale_table};
pub use side_by_side::EntentePlace;
pub use signed_ledger::{SignedLedger, SignedLedgerError, SignedLedgerOptions};
pub use soak::{
    Growth as SoakGrowth, SoakEvent, SoakInterval, SoakRecord, SoakSample, soak_growth, soak_report,
};
pub use stored::{
    CheckpointTime, ControlGroup, ControlGroupRecord, DurablePoint, JoinedControlGroup, LoadRecord,
    Percentiles, ReadRecord, ReopenRecord, RunRecord, StateBenchError, StateOptions, StateRecord, TimesMs,
    state_bench,
};
pub use tpcc::{TpccArguments, TpccRecord, tpcc, tpcc_table};
pub use tpch::{TpchOptions, TpchRecord, tpch, tpch_table};

use hdrhistogram::Histogram;
use serde::Serialize;

/// Percentiles of a latency in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyMs {
    /// The median.
    pub p50: f64,
    /// Ninety-nine of a hundred are at most this.
    pub p99: f64,
}

impl LatencyMs {
    /// From a histogram of microseconds.
    pub fn of(histogram: &Histogram<u64>) -> LatencyMs {
        let milliseconds = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        LatencyMs { p50: milliseconds(0.5), p99: milliseconds(0.99) }
    }
}
