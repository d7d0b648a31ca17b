//! The laboratory: one harness for all experiments on protocols.
//!
//! ```text
//!  docs/experiments.toml ──Experiments──▶ Plan ──▶ per point: counted run ──▶ rates       ┐
//!  (figures as data)       checked,       points   (deterministic, untimed)               ├─▶ Measurement ─▶ JSON, CSV,
//!                          filtered                rounds over all points: timed runs ──▶ ┘                  Markdown, HTML
//!                                                  in the engine, or in PostgreSQL
//! ```
//!
//! An experiment is an entry of a file, not code; what it sweeps becomes [`Point`]s, and a point that two experiments
//! share is measured once. `docs/laboratory.md` defines every figure that comes out.

mod arguments;
mod counting;
mod experiments;
mod measurement;
mod plan;
mod report;
mod run;
mod store_place;
mod timing;

pub use arguments::{LaboratoryArguments, LaboratoryCommand};
pub use measurement::{Measurement, Record};
pub use run::run;

pub(crate) use experiments::paper_options;
pub(crate) use timing::{Arrival, Pace, Source, Timed, run_on};
