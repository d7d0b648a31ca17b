//! Transactions and analytical questions side by side: TPC-C with queries of the CH-benCHmark, here and in PostgreSQL.
//!
//! ```text
//!  one thread: blocks of TPC-C ──▶ engine ──▶ store ◀── snapshot ◀── questions, one thread
//! ```
//!
//! In a round the loads take turns: transactions on a store that keeps no columns, on one that keeps columns that nobody asks,
//! and beside questions; then questions alone.

mod asking;
mod entente;
mod postgres;
mod questions;
mod record;

pub use record::{HtapRecord, htap_table};

use crate::LaboratoryError;
use crate::chain::EngineBenchError;
use sql::RunFragments;
use std::sync::Arc;
use std::time::Duration;
use workloads::Tpcc;

/// What to measure.
#[derive(Clone, Debug)]
pub struct HtapOptions {
    /// Warehouses of TPC-C.
    pub warehouses: u64,
    /// Customers of a district.
    pub customers: u64,
    /// Items.
    pub items: u64,
    /// Some of [`HtapOptions::SYSTEMS`].
    pub systems: Vec<String>,
    /// Rounds in which all loads take turns.
    pub rounds: usize,
    /// Seconds of a load.
    pub seconds: f64,
    /// From the beginning of a question to that of the next one.
    pub every: Duration,
    /// Threads of the engine.
    pub threads: usize,
    /// Transactions of an execution batch.
    pub block_size: u32,
    /// Seed of the calls.
    pub seed: u64,
    /// Who runs fragments of Entente's questions on columns.
    pub fragments: Arc<dyn RunFragments>,
}

impl HtapOptions {
    /// All systems that can be measured.
    pub const SYSTEMS: [&str; 2] = [entente::NAME, postgres::NAME];

    fn check(&self) -> Result<(), LaboratoryError> {
        if !(1..=10_000).contains(&self.warehouses) {
            return Err(LaboratoryError::option("--warehouses", "1 to 10000", self.warehouses));
        }
        if !(1..=1_000).contains(&self.rounds) {
            return Err(LaboratoryError::option("--rounds", "1 to 1000", self.rounds));
        }
        if !(0.01..=86_400.0).contains(&self.seconds) {
            return Err(LaboratoryError::option("--seconds", "0.01 to 86400", self.seconds));
        }
        let expected = "some of entente and postgres";
        if self.systems.is_empty() {
            return Err(LaboratoryError::option("--systems", expected, "none"));
        }
        match self.systems.iter().find(|name| !HtapOptions::SYSTEMS.contains(&name.as_str())) {
            Some(found) => Err(LaboratoryError::option("--systems", expected, format_args!("`{found}`"))),
            None => Ok(()),
        }
    }

    fn has(&self, system: &str) -> bool {
        self.systems.iter().any(|name| name == system)
    }
}

/// A system that is loaded, and what its loads came to so far.
trait Measured {
    /// All loads once.
    fn round(&mut self, workload: &Tpcc, options: &HtapOptions, seed: u64) -> Result<(), LaboratoryError>;

    /// A record for each load.
    fn records(&self, options: &HtapOptions) -> Vec<HtapRecord>;
}

/// Measures. `progress` is told what is being done.
///
/// # Errors
/// Bad options; an engine or PostgreSQL that cannot be measured; a consistency condition of TPC-C that does not hold.
pub fn htap(
    options: &HtapOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<HtapRecord>, LaboratoryError> {
    options.check()?;
    let workload = Tpcc::reduced(options.warehouses, options.customers, options.items)
        .map_err(|error| failed(error.into()))?;
    let mut systems: Vec<Box<dyn Measured>> = Vec::new();
    if options.has(entente::NAME) {
        progress("warehouses are loaded into Entente");
        systems.push(Box::new(entente::Entente::load(&workload, options).map_err(failed)?));
    }
    if options.has(postgres::NAME) {
        progress("warehouses are loaded into PostgreSQL");
        systems.push(Box::new(postgres::Postgres::load(&workload)?));
    }
    for round in 0..options.rounds {
        progress(&format!("round {}/{}", round + 1, options.rounds));
        for system in &mut systems {
            system.round(&workload, options, options.seed + round as u64)?;
        }
    }
    Ok(systems.iter().flat_map(|system| system.records(options)).collect())
}

fn failed(error: EngineBenchError) -> LaboratoryError {
    LaboratoryError::Engine { point: "htap".to_string(), error }
}
