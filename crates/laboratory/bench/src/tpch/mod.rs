//! TPC-H: its 22 queries on the same rows in Entente, in PostgreSQL and in DuckDB.

mod queries;
mod record;
mod rows;
mod tables;

pub use record::{TpchRecord, tpch_table};
pub(crate) use tables::line_items;

use crate::side_by_side::{self, EntentePlace, Measured, Rounds, Wanted, count, measure, of_postgres};
use crate::{LaboratoryError, machine, peak_memory_bytes};
use queries::{QUERIES, Query};
use sql::RunFragments;
use std::sync::Arc;
use std::time::Duration;

/// Rows of `lineitem` at scale 1, rounded up.
const LINE_ITEMS: f64 = 6_100_000.0;
/// Bytes of one of them in PostgreSQL with its index, at most.
const LINE_ITEM_BYTES: f64 = 224.0;

/// What to measure.
#[derive(Clone, Debug)]
pub struct TpchOptions {
    /// Scale of TPC-H: 1 has six million rows in `lineitem`.
    pub scale: f64,
    /// How often every system answers every query on the clock.
    pub rounds: usize,
    /// Some of [`TpchOptions::SYSTEMS`].
    pub systems: Vec<String>,
    /// Some of [`TpchOptions::QUERIES`].
    pub queries: Vec<String>,
    /// What a query may take in a system.
    pub seconds_max: f64,
    /// Who runs fragments of Entente's queries on columns; `None`: they run row by row.
    pub fragments: Option<Arc<dyn RunFragments>>,
    /// Where Entente has its rows, and what memory it may use.
    pub place: EntentePlace,
}

impl TpchOptions {
    /// All systems that can be measured.
    pub const SYSTEMS: [&str; 3] = side_by_side::SYSTEMS;

    /// All queries.
    pub const QUERIES: [&str; 22] = {
        let (mut ids, mut number) = ([""; 22], 0);
        while number < 22 {
            ids[number] = QUERIES[number].id;
            number += 1;
        }
        ids
    };

    fn check(&self) -> Result<Vec<&'static Query>, LaboratoryError> {
        if !(0.001..=1_000.0).contains(&self.scale) {
            return Err(LaboratoryError::option("--scale", "0.001 to 1000", self.scale));
        }
        if !(1..=1_000).contains(&self.rounds) {
            return Err(LaboratoryError::option("--rounds", "1 to 1000", self.rounds));
        }
        if !(0.001..=1_000_000.0).contains(&self.seconds_max) {
            return Err(LaboratoryError::option("--seconds-max", "0.001 to 1000000", self.seconds_max));
        }
        side_by_side::check(&self.systems)?;
        let expected = "some of q1 to q22";
        let queries = queries::named(&self.queries)
            .map_err(|unknown| LaboratoryError::option("--queries", expected, format_args!("`{unknown}`")))?;
        match queries.is_empty() {
            true => Err(LaboratoryError::option("--queries", expected, "none")),
            false => Ok(queries),
        }
    }

    /// Memory with which PostgreSQL has all rows in its own, as far as the machine has it: a table that has more than a quarter
    /// of it is not kept there.
    fn postgres_megabytes(&self) -> u64 {
        let wanted = 256 + (4.0 * postgres_line_items_bytes(self.scale)) as u64 / (1 << 20);
        machine::memory_megabytes().map_or(wanted, |all| wanted.min(all * 2 / 5))
    }
}

/// Measures. `progress` is told what is being done, which system is left out and why, which queries a system refuses or does not
/// end in time, and the first difference where rows are not PostgreSQL's.
///
/// # Errors
/// Bad options; no system that can be had; a system that does not take the rows. A query that fails is a record that says so.
pub fn tpch(
    options: &TpchOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<TpchRecord>, LaboratoryError> {
    let queries = options.check()?;
    let wanted = Wanted {
        systems: &options.systems,
        tables: &tables::tables(options.scale),
        postgres_megabytes: options.postgres_megabytes(),
        fragments: options.fragments.clone(),
        place: options.place.clone(),
    };
    let mut systems = wanted.load(progress)?;
    let rows = count(&mut systems, "lineitem")?;
    let texts: Vec<String> = queries.iter().map(|query| query.at(options.scale)).collect();
    let asked: Vec<(&str, &str)> =
        queries.iter().zip(&texts).map(|(query, text)| (query.id, text.as_str())).collect();
    let limit = Some(Duration::from_secs_f64(options.seconds_max));
    let measured = measure(&asked, &mut systems, Rounds { count: options.rounds, limit }, progress);
    if options.systems.iter().any(|system| system == side_by_side::ENTENTE) {
        let peak = peak_memory_bytes() >> 20;
        progress(&format!("Entente, with the program that makes the rows, had at most {peak} MB of memory"));
    }
    let of_query = |(query, measured): (&&Query, &Vec<Measured>)| records(query.id, rows, measured);
    Ok(queries.iter().zip(&measured).flat_map(of_query).collect())
}

/// Bytes of `lineitem` in PostgreSQL with its index, at most.
pub(crate) fn postgres_line_items_bytes(scale: f64) -> f64 {
    scale * LINE_ITEMS * LINE_ITEM_BYTES
}

fn records(query: &'static str, rows: u64, measured: &[Measured]) -> Vec<TpchRecord> {
    let expected = of_postgres(measured);
    let record = |of_system: &Measured| TpchRecord {
        query,
        system: of_system.system,
        rows,
        ms: of_system.ms(),
        rows_equal: of_system.is_equal(expected),
        from: of_system.from.filter(|_| of_system.refusal.is_none()),
        error: of_system.refusal.as_ref().map(said),
    };
    measured.iter().map(record).collect()
}

/// What a system says, without the query, which the record names.
fn said(refusal: &LaboratoryError) -> String {
    match refusal {
        LaboratoryError::Answer { error, .. } => error.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut TpchOptions)) -> String {
        let mut options = TpchOptions {
            scale: 0.001,
            rounds: 1,
            systems: vec!["entente".to_string()],
            queries: vec!["q6".to_string()],
            seconds_max: 5.0,
            fragments: None,
            place: EntentePlace::default(),
        };
        change(&mut options);
        tpch(&options, &mut |_| ()).expect_err("it makes no sense").to_string()
    }

    #[test]
    fn options_that_make_no_sense_are_refused_with_what_was_expected() {
        assert_eq!(refused(|options| options.scale = 0.0), "--scale: expected 0.001 to 1000, found 0");
        assert!(refused(|options| options.scale = f64::NAN).starts_with("--scale: expected"));
        assert_eq!(refused(|options| options.rounds = 0), "--rounds: expected 1 to 1000, found 0");
        let found = refused(|options| options.seconds_max = -1.0);
        assert_eq!(found, "--seconds-max: expected 0.001 to 1000000, found -1");
        let found = refused(|options| options.queries = vec!["q23".to_string()]);
        assert_eq!(found, "--queries: expected some of q1 to q22, found `q23`");
        let found = refused(|options| options.queries.clear());
        assert_eq!(found, "--queries: expected some of q1 to q22, found none");
        assert!(refused(|options| options.systems.clear()).starts_with("--systems: expected some of"));
    }
}
