//! Seven analytical queries on the same rows in Entente, in PostgreSQL and in DuckDB.

mod data;
mod queries;
mod record;

pub use record::{AnalyticsRecord, analytics_table};

use crate::LaboratoryError;
use crate::side_by_side::{
    self, EntentePlace, Measured, Rounds, System, Wanted, count, measure, of_postgres,
};
use data::Size;
use queries::{QUERIES, Query};
use sql::RunFragments;
use std::sync::Arc;

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
    /// Who runs fragments of Entente's queries on columns; `None`: they run row by row.
    pub fragments: Option<Arc<dyn RunFragments>>,
}

impl AnalyticsOptions {
    /// All systems that can be measured.
    pub const SYSTEMS: [&str; 3] = side_by_side::SYSTEMS;

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
        side_by_side::check(&self.systems)
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
    let wanted = Wanted {
        systems: &options.systems,
        tables: &size.tables(),
        postgres_megabytes: size.postgres_megabytes(),
        fragments: options.fragments.clone(),
        place: EntentePlace::default(),
    };
    let mut systems = wanted.load(progress)?;
    let queries = QUERIES.map(|query| (query.id, query.sql));
    let rounds = Rounds { count: options.rounds, limit: None };
    let measured = measure(&queries, &mut systems, rounds, progress);
    let mut records = Vec::new();
    for (query, of_query) in QUERIES.iter().zip(measured) {
        records.extend(of_one_query(query, of_query, &mut systems)?);
    }
    Ok(records)
}

fn of_one_query(
    query: &Query,
    mut measured: Vec<Measured>,
    systems: &mut [Box<dyn System>],
) -> Result<Vec<AnalyticsRecord>, LaboratoryError> {
    if let Some(refusal) = measured.iter_mut().find_map(|measured| measured.refusal.take()) {
        return Err(refusal);
    }
    let rows = count(systems, query.largest)?;
    let expected = of_postgres(&measured);
    let record = |of_system: &Measured| AnalyticsRecord {
        query: query.id,
        system: of_system.system,
        rows,
        ms: of_system.ms().unwrap_or(0.0),
        rows_equal: of_system.is_equal(expected),
    };
    Ok(measured.iter().map(record).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut AnalyticsOptions)) -> String {
        let systems = vec!["entente".to_string()];
        let mut options = AnalyticsOptions { rows: 10, scale: 0.001, rounds: 1, systems, fragments: None };
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
}
