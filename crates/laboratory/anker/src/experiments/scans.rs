//! What version chains cost a scan (2.5.4).

use super::{Progress, median};
use crate::AnkerError;
use crate::arguments::Plan;
use crate::engine::Engine;
use crate::question::Question;
use crate::record::AnkerRecord;
use crate::system::System;
use crate::table::TableShape;
use std::time::Instant;

/// Tables of TPC-H, and how many rows of LINEITEM there are to one of theirs.
const TABLES: [(&str, usize); 3] = [("LINEITEM", 1), ("ORDERS", 4), ("PART", 30)];
/// Rows that a transaction writes.
const WRITES: usize = 1_000;

/// Figure 2.5: a full scan by somebody who began before a share of the rows was overwritten.
pub(super) fn figure_2_5(plan: &Plan, progress: &mut Progress<'_>) -> Result<Vec<AnkerRecord>, AnkerError> {
    let see = System::named("see")?;
    let mut records = Vec::new();
    if !plan.systems.contains(&see) {
        return Ok(records);
    }
    for (name, fewer) in TABLES {
        let rows = plan.rows / fewer;
        progress(&format!("  {name}, {rows} rows"));
        let mut unversioned = 0.0;
        for percent in [0, 20, 40, 60, 80, 100] {
            let taken = scan(see, rows, percent, plan.rounds)?;
            if percent == 0 {
                unversioned = taken;
            }
            let record = |metric| {
                AnkerRecord::new("figure-2-5", see.name, metric)
                    .at("versioned_percent", percent)
                    .at("table", name)
            };
            // "Scanning a table that is completely versioned takes around 5 times longer."
            let paper = match percent {
                0 => Some(1.0),
                100 => Some(5.0),
                _ => None,
            };
            records.push(record("scan_ms").is(taken));
            records.push(record("times_unversioned").is(taken / f64::max(unversioned, 1e-9)).beside(paper));
        }
    }
    records.sort_by_key(|record| record.metric);
    Ok(records)
}

/// Milliseconds of a scan, the median over the rounds.
fn scan(see: System, rows: usize, percent: usize, rounds: usize) -> Result<f64, AnkerError> {
    let shape = TableShape { name: "scanned", columns: &["value"], keys: 0, rows_max: rows };
    let mut engine = Engine::new(see, &[shape], 0)?;
    engine.load(0, (0..rows as i64).map(|row| ([row], None)))?;
    let question = Question::Groups { table: 0, by: None, groups: 1, sums: vec![0], among: None };
    let asked = (0..rounds).map(|_| engine.ask(&question)).collect::<Result<Vec<_>, _>>()?;
    // Spread evenly over the table.
    let versioned: Vec<usize> = (0..rows).filter(|row| row * 7 % 100 < percent).collect();
    for rows in versioned.chunks(WRITES) {
        let mut transaction = engine.begin();
        for row in rows {
            transaction.write(0, *row as u32, 0, -1)?;
        }
        transaction.commit()?;
    }
    let expected = (rows as i64 - 1) * rows as i64 / 2;
    let mut times = Vec::new();
    for asked in asked {
        let began = Instant::now();
        let answer = asked.answer()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        if answer.groups[0] != [rows as i64, expected] {
            let condition = format!("a scan found {:?} and not {expected}", answer.groups[0]);
            return Err(AnkerError::Inconsistent { system: see.name, condition });
        }
    }
    Ok(median(times))
}
