//! What comes out: CSV and Markdown for machines and other documents, one HTML page that opens without a network.

mod chart;
mod html;
mod tables;

pub(super) use html::html;
pub use tables::grouped;
pub(super) use tables::{csv, markdown};

use std::time::Duration;

/// How the measurements were made.
pub(super) struct Context {
    /// `protocols` or `ablation`.
    pub(super) command: &'static str,
    /// The machine, as names and values.
    pub(super) machine: Vec<(&'static str, String)>,
    pub(super) seed: u64,
    pub(super) rounds: usize,
    /// Seconds of a point in a round.
    pub(super) seconds: f64,
    /// How transactions came, for people.
    pub(super) pace: String,
    /// The same of PostgreSQL, which keeps its own, where it was measured.
    pub(super) postgres: Option<String>,
    pub(super) took: Duration,
}
