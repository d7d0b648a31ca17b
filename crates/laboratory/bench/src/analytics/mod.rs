//! Analytical queries on the same rows in Entente, in PostgreSQL and in DuckDB, one thread each.
//!
//! ```text
//!  Table::rows ──▶ Entente::load
//!      └──▶ files ──▶ Postgres::load, DuckDb::load
//!  QUERIES ──▶ System::run, round by round ──▶ AnalyticsRecord
//! ```

mod data;
mod duckdb;
mod entente;
mod files;
mod postgres;
mod queries;
mod record;
mod rounds;
mod system;

pub use record::{AnalyticsRecord, analytics_table};

use crate::LaboratoryError;
use columns::WithColumns;
use data::Size;
use duckdb::DuckDb;
use entente::Entente;
use files::Files;
use memory::Memory;
use postgres::Postgres;
use sql::MakeGroups;
use state::Stores;
use std::sync::Arc;
use system::System;

/// What to measure.
#[derive(Clone, Debug)]
pub struct AnalyticsOptions {
    /// Rows of the tables `t` and `u`.
    pub rows: u64,
    /// Scale of TPC-H: 1 has six million rows in `lineitem`.
    pub scale: f64,
    /// How often every system answers every query on the clock.
    pub rounds: usize,
    /// Some of [`AnalyticsOptions::SYSTEMS`].
    pub systems: Vec<String>,
    /// Who makes the groups of Entente's queries, from columns; `None`: they are made row by row.
    pub groups: Option<Arc<dyn MakeGroups>>,
}

/// What copies of tables in columns may have: enough for any of these tables.
const COLUMN_BYTES: u64 = 64 << 30;

impl AnalyticsOptions {
    /// All systems that can be measured.
    pub const SYSTEMS: [&str; 3] = [entente::NAME, postgres::NAME, duckdb::NAME];

    fn check(&self) -> Result<(), LaboratoryError> {
        if !(1..=1_000_000_000).contains(&self.rows) {
            return Err(LaboratoryError::option("--rows", "1 to 1000000000", self.rows));
        }
        if !(1..=1_000).contains(&self.rounds) {
            return Err(LaboratoryError::option("--rounds", "1 to 1000", self.rounds));
        }
        if !(0.000_1..=1_000.0).contains(&self.scale) {
            return Err(LaboratoryError::option("scale", "0.0001 to 1000", self.scale));
        }
        let expected = "some of entente, postgres and duckdb";
        if self.systems.is_empty() {
            return Err(LaboratoryError::option("--systems", expected, "none"));
        }
        match self.systems.iter().find(|name| !AnalyticsOptions::SYSTEMS.contains(&name.as_str())) {
            Some(found) => Err(LaboratoryError::option("--systems", expected, format_args!("`{found}`"))),
            None => Ok(()),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.systems.iter().any(|system| system == name)
    }
}

/// Measures. `progress` is told what is being done, and which system is left out and why.
///
/// # Errors
/// Bad options; no system that can be had; a system that refuses a query.
pub fn analytics(
    options: &AnalyticsOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<AnalyticsRecord>, LaboratoryError> {
    options.check()?;
    let size = Size { rows: options.rows, scale: options.scale };
    let mut systems = loaded(options, size, progress)?;
    if systems.is_empty() {
        return Err(LaboratoryError::Missing {
            expected: "at least one of the systems that --systems names".to_string(),
            found: "none that can be had here".to_string(),
        });
    }
    rounds::measure(&mut systems, options.rounds, progress)
}

/// The systems that can be had, with all rows.
fn loaded(
    options: &AnalyticsOptions,
    size: Size,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Box<dyn System>>, LaboratoryError> {
    // What may be missing comes first, so that one hears of it at once.
    let postgres = start(options, postgres::NAME, progress, || Ok(Postgres::start(size)?));
    let duckdb = start(options, duckdb::NAME, progress, DuckDb::start);
    let mut systems: Vec<Box<dyn System>> = Vec::new();
    if options.has(entente::NAME) {
        progress("rows are loaded into Entente");
        systems.push(Box::new(Entente::load(stores(options), size, options.groups.clone())?));
    }
    if postgres.is_none() && duckdb.is_none() {
        return Ok(systems);
    }
    progress("rows are written to files");
    let files = Files::write(size)?;
    if let Some(postgres) = postgres {
        progress("rows are loaded into PostgreSQL");
        systems.push(Box::new(postgres.load(&files)?));
    }
    if let Some(duckdb) = duckdb {
        progress("rows are loaded into DuckDB");
        systems.push(Box::new(duckdb.load(&files)?));
    }
    Ok(systems)
}

/// A store in memory, with columns where somebody reads them.
fn stores(options: &AnalyticsOptions) -> Arc<dyn Stores> {
    match options.groups {
        Some(_) => Arc::new(WithColumns::new(Arc::new(Memory), COLUMN_BYTES)),
        None => Arc::new(Memory),
    }
}

/// A system that is asked for; `None`, and a word why, where it cannot be had.
fn start<S>(
    options: &AnalyticsOptions,
    name: &str,
    progress: &mut dyn FnMut(&str),
    start: impl FnOnce() -> Result<S, LaboratoryError>,
) -> Option<S> {
    if !options.has(name) {
        return None;
    }
    progress(&format!("{name} is started"));
    start().inspect_err(|error| progress(&format!("{name} is left out: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut AnalyticsOptions)) -> String {
        let systems = vec!["entente".to_string()];
        let mut options = AnalyticsOptions { rows: 10, scale: 0.001, rounds: 1, systems, groups: None };
        change(&mut options);
        analytics(&options, &mut |_| ()).expect_err("it makes no sense").to_string()
    }

    #[test]
    fn options_that_make_no_sense_are_refused_with_what_was_expected() {
        assert_eq!(refused(|options| options.rows = 0), "--rows: expected 1 to 1000000000, found 0");
        assert_eq!(refused(|options| options.rounds = 0), "--rounds: expected 1 to 1000, found 0");
        assert!(refused(|options| options.scale = f64::NAN).starts_with("scale: expected"));
        let expected = "--systems: expected some of entente, postgres and duckdb, found";
        assert_eq!(refused(|options| options.systems.clear()), format!("{expected} none"));
        let found = refused(|options| options.systems.push("oracle".to_string()));
        assert_eq!(found, format!("{expected} `oracle`"));
    }

    #[test]
    fn a_system_that_cannot_be_had_is_left_out_with_its_reason() {
        let systems = vec!["duckdb".to_string()];
        let options = AnalyticsOptions { rows: 10, scale: 0.001, rounds: 1, systems, groups: None };
        let mut said = Vec::new();
        let missing = LaboratoryError::Missing { expected: "python3".to_string(), found: "none".to_string() };
        let mut progress = |text: &str| said.push(text.to_string());
        assert!(start::<()>(&options, "duckdb", &mut progress, || Err(missing)).is_none());
        assert!(start(&options, "postgres", &mut progress, || Ok(())).is_none(), "nobody asks for it");
        assert_eq!(said, ["duckdb is started", "duckdb is left out: expected python3, found none"]);
    }
}
