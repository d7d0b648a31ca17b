//! The rounds: every system answers every query in turn, so that whatever else the machine does meets all alike.

use super::postgres;
use super::queries::{QUERIES, Query};
use super::record::AnalyticsRecord;
use super::system::{Rows, System};
use crate::LaboratoryError;
use crate::median::median;

/// What came of one query in one system.
#[derive(Default)]
struct Measured {
    ms: Vec<f64>,
    /// What the first run gave.
    rows: Rows,
    /// Whether all later runs gave the same.
    steady: bool,
}

/// Runs every query once to get warm, and `rounds` times on the clock.
pub(super) fn measure(
    systems: &mut [Box<dyn System>],
    rounds: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<AnalyticsRecord>, LaboratoryError> {
    progress("every query runs once, to get warm");
    let mut measured: Vec<Vec<Measured>> = Vec::new();
    for query in &QUERIES {
        let mut of_query = Vec::new();
        for system in systems.iter_mut() {
            of_query.push(Measured {
                rows: system.run(query.sql)?.rows,
                steady: true,
                ..Measured::default()
            });
        }
        measured.push(of_query);
    }
    for round in 1..=rounds {
        progress(&format!("round {round}/{rounds}"));
        for (query, of_query) in QUERIES.iter().zip(&mut measured) {
            for (system, measured) in systems.iter_mut().zip(of_query) {
                let answer = system.run(query.sql)?;
                measured.ms.push(answer.ms);
                measured.steady &= answer.rows == measured.rows;
            }
        }
    }
    let mut records = Vec::new();
    for (query, of_query) in QUERIES.iter().zip(&measured) {
        let rows = count(query, systems)?;
        records.extend(of_one_query(query, rows, systems, of_query));
    }
    Ok(records)
}

fn of_one_query(
    query: &Query,
    rows: u64,
    systems: &[Box<dyn System>],
    measured: &[Measured],
) -> Vec<AnalyticsRecord> {
    let place = systems.iter().position(|system| system.name() == postgres::NAME);
    let expected = place.map(|place| &measured[place]);
    let mut records = Vec::new();
    for (system, measured) in systems.iter().zip(measured) {
        let is_equal = |expected: &Measured| {
            expected.steady && measured.steady && measured.rows.are_those_of(&expected.rows)
        };
        records.push(AnalyticsRecord {
            query: query.id,
            system: system.name(),
            rows,
            ms: median(&measured.ms).unwrap_or(0.0),
            rows_equal: expected.map(is_equal),
        });
    }
    records
}

/// The rows of the largest table of a query, as the first system counts them.
fn count(query: &Query, systems: &mut [Box<dyn System>]) -> Result<u64, LaboratoryError> {
    let [first, ..] = systems else { return Ok(0) };
    let sql = format!("SELECT count(*) FROM {}", query.largest.name());
    let rows = first.run(&sql)?.rows.cells;
    let number = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    number.ok_or_else(|| LaboratoryError::Answer {
        system: first.name(),
        request: sql,
        error: format!("expected a number, found {rows:?}"),
    })
}
